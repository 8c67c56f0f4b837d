//! What happens in a sandbox, as it stands in its log, and what is known of it by that.
//!
//! Each event that changes what is known holds all of it, so folding applies no rule. Knows no file.

use kapi_core::evidence::EvidenceFile;
use kapi_core::text::{agent_name, counted, shortened};
use kapi_core::usage::Usage;
use kapi_machine::logged::EventRecord;
use kapi_machine::machine::Machine;
use kapi_run::spending::usage_meter::UsageLimits;
use serde::{Deserialize, Serialize};

use super::record::{LaunchState, SandboxRecord};

/// Characters of a task in a line.
const TASK_CHARS_MAX: usize = 200;

/// What a launch was asked to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LaunchRequest {
    /// What its agent was told.
    pub task: String,
    /// The words of the command line that launches it again, without the task; none where it was not
    /// a command line that launched it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// The most it may use.
    #[serde(default)]
    pub limits: UsageLimits,
    /// The longest its agent may take, in milliseconds.
    pub deadline_ms: u64,
    /// Whether a person is at its terminal.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_interactive: bool,
}

/// How the agent of a launch has ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EndedAgent {
    /// Its exit code.
    pub exit_code: i32,
    /// Why it did not do its work, where it did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Its last message.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The isolation it had.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grade: Option<String>,
}

/// What happens in a sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    tag = "type",
    content = "data",
    rename_all = "snake_case",
    deny_unknown_fields
)]
pub enum LaunchEvent {
    /// A launch began.
    Launched {
        /// What is known of the sandbox now.
        sandbox: Box<SandboxRecord>,
        /// What was asked for.
        request: Box<LaunchRequest>,
    },
    /// A person said something to its agent.
    PersonSaid {
        /// What.
        text: String,
    },
    /// The agent took a turn in which it was told what the person had said.
    Told {
        /// How many messages that were.
        messages: usize,
    },
    /// A run is over, and left these files.
    RunRecorded {
        /// Its directory below those of all runs.
        run: String,
        /// Its files.
        files: Vec<EvidenceFile>,
        /// What it used.
        used: Usage,
    },
    /// The agent of the launch has ended. What it made is kept next.
    AgentEnded {
        /// How.
        agent: Box<EndedAgent>,
    },
    /// A person raised the limits of the launch.
    LimitsRaised {
        /// What they are now.
        limits: UsageLimits,
    },
    /// The work is on its branch, and is about to be pushed.
    Committed {
        /// What is known of the sandbox now.
        sandbox: Box<SandboxRecord>,
    },
    /// A launch came to its end.
    Ended {
        /// What is known of the sandbox now.
        sandbox: Box<SandboxRecord>,
    },
    /// What came of the launch is on record where it was asked for: nobody takes it over any more.
    Settled,
    /// A program of the person's was started in it.
    Entered {
        /// What is known of the sandbox now.
        sandbox: Box<SandboxRecord>,
    },
    /// That program has ended.
    Left {
        /// What is known of the sandbox now.
        sandbox: Box<SandboxRecord>,
    },
    /// Work was taken over into the project.
    Merged {
        /// What is known of the sandbox now.
        sandbox: Box<SandboxRecord>,
    },
    /// The files of its runs are removed because a person asked.
    RunsRemoved,
}

/// What is known of a sandbox by its log.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LaunchHistory {
    /// It, as it is now.
    pub sandbox: Option<SandboxRecord>,
    /// It, as it was before the last change: what a power cut can leave in its file.
    pub before: Option<SandboxRecord>,
    /// What the last launch was asked to do.
    pub request: Option<LaunchRequest>,
    /// What its launches used.
    pub used: Usage,
    /// What a person said and no agent was told yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub said: Vec<String>,
    /// What the last launch used, once its run is over.
    pub run_used: Option<Usage>,
    /// How the agent of the last launch has ended, until that is settled.
    pub agent: Option<EndedAgent>,
}

/// The machine of a sandbox.
#[derive(Debug)]
pub struct LaunchMachine;

impl Machine for LaunchMachine {
    type State = LaunchHistory;
    type Event = LaunchEvent;
    const EVENT: &'static str = "an event of a launch";
    const STATE: &'static str = "a launch";

    fn evolve(state: &mut LaunchHistory, logged: &EventRecord<LaunchEvent>) {
        match &logged.event {
            LaunchEvent::Launched { sandbox, request } => {
                let before = state.request.replace((**request).clone());
                // What was said of another task is not about this one.
                if before.is_some_and(|before| before.task != request.task) {
                    state.said.clear();
                }
                state.run_used = None;
                state.agent = None;
                state.know(sandbox);
            }
            LaunchEvent::PersonSaid { text } => state.said.push(text.clone()),
            LaunchEvent::Told { messages } => {
                state.said.drain(..(*messages).min(state.said.len()));
            }
            LaunchEvent::RunRecorded { run, used, .. } => {
                state.used.add(used);
                let launches = state.sandbox.as_ref().map(|sandbox| sandbox.launches);
                if launches.is_some_and(|launches| launches.to_string() == *run) {
                    state.run_used = Some(*used);
                }
            }
            LaunchEvent::AgentEnded { agent } => state.agent = Some((**agent).clone()),
            LaunchEvent::LimitsRaised { limits } => {
                if let Some(request) = &mut state.request {
                    request.limits = *limits;
                }
            }
            LaunchEvent::Settled => state.agent = None,
            LaunchEvent::Committed { sandbox }
            | LaunchEvent::Ended { sandbox }
            | LaunchEvent::Entered { sandbox }
            | LaunchEvent::Left { sandbox }
            | LaunchEvent::Merged { sandbox } => state.know(sandbox),
            LaunchEvent::RunsRemoved => {}
        }
    }
}

impl EndedAgent {
    /// Tells whether it did its work.
    #[must_use]
    pub const fn is_well(&self) -> bool {
        self.exit_code == 0 && self.error.is_none()
    }
}

impl LaunchHistory {
    /// Returns how the agent of the last launch ended, where it did its work and nobody has that on
    /// record yet: it need not run again.
    #[must_use]
    pub fn finished_agent(&self) -> Option<&EndedAgent> {
        self.agent.as_ref().filter(|agent| agent.is_well())
    }

    /// Tells whether the launcher was cut off behind the agent of the last launch: it did its work, a
    /// person has said nothing since, and what is left is what comes after it.
    #[must_use]
    pub fn is_cut_off_behind_agent(&self) -> bool {
        let sandbox = self.sandbox.as_ref();
        let is_running = sandbox.is_some_and(|sandbox| sandbox.state == LaunchState::Running);
        is_running && self.said.is_empty() && self.finished_agent().is_some()
    }

    fn know(&mut self, sandbox: &SandboxRecord) {
        self.before = self.sandbox.replace(sandbox.clone());
    }
}

impl LaunchEvent {
    /// Returns what happened, in words for people.
    #[must_use]
    pub fn words(&self) -> String {
        match self {
            Self::Launched { sandbox, request } => format!(
                "launch {} of {} began: {}",
                sandbox.launches,
                agent_name(&sandbox.agent),
                shortened(&request.task, TASK_CHARS_MAX)
            ),
            Self::PersonSaid { text } => {
                format!("you said: {}", shortened(text, TASK_CHARS_MAX))
            }
            Self::Told { messages } => {
                format!("the agent was told {}", counted(*messages, "message"))
            }
            Self::RunRecorded { run, files, .. } => {
                format!("run {run} left {}", counted(files.len(), "file"))
            }
            Self::AgentEnded { agent } => match &agent.error {
                Some(error) => format!("its agent ended: {error}"),
                None => format!("its agent ended with exit code {}", agent.exit_code),
            },
            Self::LimitsRaised { limits } => {
                format!("its limits were raised to {}", limits.words())
            }
            Self::Committed { sandbox } => match &sandbox.branch {
                Some(branch) => format!("committed on branch {}", branch.holder()),
                None => "committed".to_owned(),
            },
            Self::Ended { sandbox } => {
                let code = sandbox.exit_code.unwrap_or_default();
                match &sandbox.error {
                    Some(error) => format!("ended with exit code {code}: {error}"),
                    None => format!("ended with exit code {code}"),
                }
            }
            Self::Settled => "what came of it is on record with its task".to_owned(),
            Self::Entered { .. } => "the person started a program in it".to_owned(),
            Self::Left { .. } => "that program ended".to_owned(),
            Self::Merged { sandbox } => match sandbox.n_changed {
                0 => "all changes were taken over".to_owned(),
                n => format!("changes were taken over, {n} are left"),
            },
            Self::RunsRemoved => "the files of its runs were removed".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests;
