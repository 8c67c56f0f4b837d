//! What a person prefers for all goals of one project: autopilot, and who judges.
//!
//! A stream below the person's own home, so that nothing in a repository can prefer anything for
//! them; every change stands there with who made it. Does not know what a judge's name means.

use std::path::PathBuf;

use kapi_core::actor::Actor;
use kapi_machine::audit::{StreamAudit, audit_folded};
use kapi_machine::file_log::LOCK_WAIT_MS;
use kapi_machine::logged::EventRecord;
use kapi_machine::machine::Machine;
use kapi_machine::opened::OpenStream;
use kapi_store::layout::HomeLayout;
use kapi_store::stream::LogStream;
use kapi_sys::clock::Clock;
use kapi_sys::disk::{Disk, create_dir_durably};
use serde::{Deserialize, Serialize};

use crate::record::error::EngineError;
use crate::rules::denied::GoalDenial;

/// The longest name of a judge, in bytes.
const JUDGE_BYTES_MAX: usize = 4 * 1024;

/// Where one project's preferences are, seen by one process.
#[derive(Clone)]
pub struct Preferences<'a> {
    /// The disk.
    pub disk: &'a dyn Disk,
    /// The clock.
    pub clock: &'a dyn Clock,
    /// The person's home, which is there.
    pub home: PathBuf,
    /// The project's name below the person's state directory.
    pub project_key: String,
    /// What other processes are told about who holds the lock ("kapi goal").
    pub owner: String,
}

/// What is preferred.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PreferenceValues {
    /// The person who approves contracts in advance, while somebody does.
    pub autopilot: Option<String>,
    /// Who judges where a goal says nothing, as it is written after `--judge`.
    pub judge: Option<String>,
}

/// A change of what is preferred.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    tag = "type",
    content = "data",
    rename_all = "snake_case",
    deny_unknown_fields
)]
pub enum PreferenceChange {
    /// Later contracts are approved in advance, or not any more.
    AutopilotSet {
        /// Whether they are.
        on: bool,
    },
    /// Later goals are judged by somebody else.
    JudgeSet {
        /// Who; `None` to be asked again.
        judge: Option<String>,
    },
}

/// What preferences are folded of.
#[derive(Debug)]
pub struct PreferenceMachine;

impl Machine for PreferenceMachine {
    type State = PreferenceValues;
    type Event = PreferenceChange;
    const EVENT: &'static str = "a preference";
    const STATE: &'static str = "a preference";

    fn evolve(state: &mut PreferenceValues, logged: &EventRecord<PreferenceChange>) {
        state.evolve(&logged.event, &logged.actor);
    }
}

impl PreferenceValues {
    fn evolve(&mut self, change: &PreferenceChange, actor: &Actor) {
        match (change, actor) {
            (PreferenceChange::AutopilotSet { on: true }, Actor::Human { user }) => {
                self.autopilot = Some(user.clone());
            }
            // Nobody but a person is ever recorded; a line that says otherwise approves nothing.
            (PreferenceChange::AutopilotSet { .. }, _) => self.autopilot = None,
            (PreferenceChange::JudgeSet { judge }, _) => self.judge.clone_from(judge),
        }
    }
}

impl Preferences<'_> {
    /// Returns what is preferred now. Changes nothing, and needs no lock.
    ///
    /// # Errors
    /// When the log is damaged or the disk refuses.
    pub fn load(&self) -> Result<PreferenceValues, EngineError> {
        Ok(OpenStream::<PreferenceMachine>::load(self.stream())?.into_state())
    }

    /// Records a change, which only a person makes, and returns what is preferred then.
    ///
    /// # Errors
    /// When it is not a person who asks (nothing has changed then), the log is damaged, or the
    /// disk refuses.
    pub fn change(
        &self,
        actor: &Actor,
        change: &PreferenceChange,
    ) -> Result<PreferenceValues, EngineError> {
        if !matches!(actor, Actor::Human { .. }) {
            return Err(EngineError::Denied(GoalDenial::OnlyHuman {
                action: "set preferences",
                actor: actor.to_string(),
            }));
        }
        check(change)?;
        let stream = self.stream();
        create_dir_durably(self.disk, &self.home, &stream.dir)?;
        let held = stream.lock(&self.owner, LOCK_WAIT_MS)?;
        let mut open = OpenStream::<PreferenceMachine>::load(stream)?;
        open.settle(&held)?;
        let mut preferred = open.state().clone();
        preferred.evolve(change, actor);
        if preferred != *open.state() {
            let changes = std::slice::from_ref(change);
            open.record(&held, actor, self.clock.now_ms(), changes)?;
            open.save(&held)?;
        }
        Ok(preferred)
    }

    /// Checks the stream; `None` where nothing was ever preferred.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn audit(&self) -> Result<Option<StreamAudit>, EngineError> {
        Ok(audit_folded::<PreferenceMachine>(&self.stream())?)
    }

    /// Returns the directory of the stream.
    #[must_use]
    pub fn dir(&self) -> PathBuf {
        let home = HomeLayout::new(&self.home);
        let projects = home.state_dir().join("projects");
        projects.join(&self.project_key).join("preferences")
    }

    fn stream(&self) -> LogStream<'_> {
        LogStream {
            disk: self.disk,
            name: "preferences".to_owned(),
            dir: self.dir(),
            anchor: self.home.clone(),
        }
    }
}

fn check(change: &PreferenceChange) -> Result<(), EngineError> {
    let PreferenceChange::JudgeSet { judge: Some(judge) } = change else {
        return Ok(());
    };
    if judge.trim().is_empty() || judge.len() > JUDGE_BYTES_MAX {
        return Err(EngineError::Denied(GoalDenial::Refused {
            code: "bad_input",
            message: "a judge's name must be a text of at most 4 KiB".to_owned(),
        }));
    }
    Ok(())
}
