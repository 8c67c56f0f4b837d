//! What a person says to the agent of a launch while it works.
//!
//! It is on record before the agent hears it, and cuts into the turn under way; the same session goes on
//! with it. Knows nothing of how an agent is started.

use kapi_agent::agent::AgentKind;
use kapi_core::actor::Actor;
use kapi_machine::opened::OpenStream;

use super::error::{LaunchError, LaunchErrorKind};
use super::event::{LaunchEvent, LaunchHistory, LaunchMachine};
use super::log;
use super::paths::SandboxPaths;
use super::record::LaunchState;

/// Bytes of a message.
const TEXT_BYTES_MAX: usize = 64 * 1024;
/// Messages that wait for an agent.
const WAITING_MAX: usize = 100;

/// Why nobody hears what is said to a launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Silence {
    NotRunning,
    AtTerminal,
    Command,
}

/// Says something to the agent of a launch that is under way.
///
/// # Errors
/// When no agent would hear it; the error says why, and nothing is recorded.
pub fn say(
    location: &SandboxPaths,
    actor: &Actor,
    text: &str,
    now_ms: i64,
) -> Result<(), LaunchError> {
    let text = text.trim();
    if text.is_empty() || text.len() > TEXT_BYTES_MAX {
        return Err(LaunchError::new(
            LaunchErrorKind::Usage,
            format!(
                "a message has 1 to {TEXT_BYTES_MAX} bytes, not {}",
                text.len()
            ),
            "put what is longer into a file of the project and name that.",
        ));
    }
    let is_held = location.holder()?.is_some();
    let recorded = log::at(location).decide(actor, now_ms, |history| {
        let silence = if is_held {
            silence(history)
        } else {
            Some(Silence::NotRunning)
        };
        match silence {
            Some(silence) => Err(silence.refusal(location.id().as_str())),
            None if history.said.len() >= WAITING_MAX => Err(LaunchError::new(
                LaunchErrorKind::Denied,
                format!("{WAITING_MAX} messages wait for the agent already"),
                "wait until it has heard them.",
            )),
            None => {
                let text = text.to_owned();
                Ok(vec![LaunchEvent::PersonSaid { text }])
            }
        }
    });
    recorded.map(drop)
}

/// Returns why nobody would hear what is said; `None` where the agent does.
fn silence(history: &LaunchHistory) -> Option<Silence> {
    let (Some(sandbox), Some(request)) = (&history.sandbox, &history.request) else {
        return Some(Silence::NotRunning);
    };
    if sandbox.state == LaunchState::Finished || history.agent.is_some() {
        return Some(Silence::NotRunning);
    }
    if request.is_interactive {
        return Some(Silence::AtTerminal);
    }
    let takes_turns = AgentKind::parse(&sandbox.agent).is_ok_and(|agent| agent.takes_turns());
    (!takes_turns).then_some(Silence::Command)
}

impl Silence {
    fn refusal(self, id: &str) -> LaunchError {
        let (why, hint) = match self {
            Self::NotRunning => (
                "its agent is not at work",
                "start it again with what you want to say in its task.",
            ),
            Self::AtTerminal => ("its agent has a terminal of its own", "type it there."),
            Self::Command => (
                "its agent is a command, which takes no messages once it has started",
                "stop it with `kapi cancel`, and start it again with what you want to say in its \
                 task.",
            ),
        };
        let message = format!("no message reaches launch/{id}: {why}");
        LaunchError::new(LaunchErrorKind::Denied, message, hint)
    }
}

/// Returns what a person said and no agent was told yet.
pub(crate) fn unheard(location: &SandboxPaths) -> Result<Vec<String>, LaunchError> {
    Ok(log::at(location).history()?.said)
}

/// Puts on record that the agent took a turn in which it was told the first so many messages.
pub(crate) fn told(
    location: &SandboxPaths,
    messages: usize,
    now_ms: i64,
) -> Result<(), LaunchError> {
    log::at(location).record(now_ms, &[LaunchEvent::Told { messages }])
}

/// The log of a launch, in which a person may say something at any time.
pub(crate) struct MessageWatch {
    opened: OpenStream<'static, LaunchMachine>,
    n_known: usize,
}

impl MessageWatch {
    /// Opens the log, to look for more than the messages that are known.
    pub(crate) fn open(location: &SandboxPaths, n_known: usize) -> Result<Self, LaunchError> {
        let opened = OpenStream::load(log::at(location).stream()).map_err(log::failed)?;
        Ok(Self { opened, n_known })
    }

    /// Looks whether something more was said. A log that cannot be read now is read again later.
    pub(crate) fn has_more(&mut self) -> bool {
        if self.opened.refresh().is_ok() {
            drop(self.opened.take_unseen());
        }
        self.opened.state().said.len() > self.n_known
    }
}

#[cfg(test)]
mod tests {
    use kapi_run::spending::usage_meter::UsageLimits;

    use super::{Silence, silence};
    use crate::event::{LaunchHistory, LaunchRequest};

    #[test]
    fn nobody_is_said_to_hear_who_does_not() {
        assert_eq!(
            silence(&LaunchHistory::default()),
            Some(Silence::NotRunning)
        );
        let history = |agent: &str, state: &str, is_interactive: bool| {
            let sandbox = format!(
                r#"{{"version":1,"id":"7","project":"/p","mode":"overlay","made":"layer","level":"native","network":"filtered","agent":"{agent}","branch":null,"base":null,"below":null,"port_base":20000,"launches":1,"state":"{state}","work":"pending","created_at_ms":1,"updated_at_ms":2,"exit_code":null,"error":null,"error_class":null,"advice":null,"grade":null,"n_changed":0}}"#
            );
            silence(&LaunchHistory {
                sandbox: Some(serde_json::from_str(&sandbox).unwrap()),
                request: Some(LaunchRequest {
                    task: "do it".to_owned(),
                    command: Vec::new(),
                    limits: UsageLimits::default(),
                    deadline_ms: 1,
                    is_interactive,
                }),
                ..LaunchHistory::default()
            })
        };
        assert_eq!(history("claude", "running", false), None);
        assert_eq!(
            history("claude", "running", true),
            Some(Silence::AtTerminal)
        );
        assert_eq!(
            history("claude", "finished", false),
            Some(Silence::NotRunning)
        );
        assert_eq!(
            history("command:cat", "running", false),
            Some(Silence::Command)
        );
    }
}
