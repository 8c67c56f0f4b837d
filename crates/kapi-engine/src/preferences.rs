//! What a person prefers for all goals of one project: autopilot, and who judges.
//!
//! A stream below the person's own home, so that nothing in a repository can prefer anything for
//! them; every change stands there with who made it. Does not know what a judge's name means.

use std::path::PathBuf;

use kapi_core::actor::Actor;
use kapi_core::goal::denied::Denied;
use kapi_store::layout::HomeLayout;
use kapi_store::record::Batch;
use kapi_store::stream::{Cursor, Loaded, Stream};
use kapi_sys::clock::Clock;
use kapi_sys::disk::{Disk, create_dir_durably};
use serde::{Deserialize, Serialize};
use serde_json::value::to_raw_value;

use crate::error::EngineError;
use crate::machine::logged::{read, to_payload};
use crate::project::LOCK_WAIT_MS;

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
pub struct Preferred {
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
pub enum Change {
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

impl Preferred {
    fn evolve(&mut self, change: &Change, actor: &Actor) {
        match (change, actor) {
            (Change::AutopilotSet { on: true }, Actor::Human { user }) => {
                self.autopilot = Some(user.clone());
            }
            // Nobody but a person is ever recorded; a line that says otherwise approves nothing.
            (Change::AutopilotSet { .. }, _) => self.autopilot = None,
            (Change::JudgeSet { judge }, _) => self.judge.clone_from(judge),
        }
    }
}

impl Preferences<'_> {
    /// Returns what is preferred now. Changes nothing, and needs no lock.
    ///
    /// # Errors
    /// When the log is damaged or the disk refuses.
    pub fn load(&self) -> Result<Preferred, EngineError> {
        self.read().map(|(preferred, _)| preferred)
    }

    /// Records a change, which only a person makes, and returns what is preferred then.
    ///
    /// # Errors
    /// When it is not a person who asks (nothing has changed then), the log is damaged, or the
    /// disk refuses.
    pub fn change(&self, actor: &Actor, change: &Change) -> Result<Preferred, EngineError> {
        if !matches!(actor, Actor::Human { .. }) {
            return Err(EngineError::Denied(Denied::OnlyHuman {
                action: "set preferences",
                actor: actor.to_string(),
            }));
        }
        check(change)?;
        let stream = self.stream();
        create_dir_durably(self.disk, &self.home, &stream.dir)?;
        let held = stream.lock(&self.owner, LOCK_WAIT_MS)?;
        let (mut preferred, mut cursor) = self.read()?;
        stream.settle(&held, &mut cursor)?;
        let before = preferred.clone();
        preferred.evolve(change, actor);
        if preferred == before {
            return Ok(preferred);
        }
        let batch = Batch {
            actor,
            at_ms: self.clock.now_ms(),
            payloads: vec![to_payload(change).map_err(encode)?],
        };
        stream.append(&held, &mut cursor, &batch)?;
        let state = to_raw_value(&preferred).map_err(encode)?;
        stream.save(&held, &cursor, state)?;
        Ok(preferred)
    }

    /// Returns the directory of the stream.
    #[must_use]
    pub fn dir(&self) -> PathBuf {
        let home = HomeLayout::new(&self.home);
        let projects = home.state_dir().join("projects");
        projects.join(&self.project_key).join("preferences")
    }

    fn stream(&self) -> Stream<'_> {
        Stream {
            disk: self.disk,
            name: "preferences".to_owned(),
            dir: self.dir(),
            anchor: self.home.clone(),
        }
    }

    fn read(&self) -> Result<(Preferred, Cursor), EngineError> {
        let stream = self.stream();
        let mut loaded = stream.load()?;
        let mut preferred = saved(&loaded);
        if loaded.state.is_some() && preferred.is_none() {
            // The fold has another shape: it is made anew from the log.
            loaded = stream.load_all()?;
            preferred = None;
        }
        let mut preferred = preferred.unwrap_or_default();
        for logged in read::<Change>(&stream.log(), &loaded.records)? {
            preferred.evolve(&logged.event, &logged.actor);
        }
        Ok((preferred, loaded.cursor))
    }
}

fn saved(loaded: &Loaded) -> Option<Preferred> {
    let state = loaded.state.as_ref()?;
    serde_json::from_str(state.get()).ok()
}

fn check(change: &Change) -> Result<(), EngineError> {
    let Change::JudgeSet { judge: Some(judge) } = change else {
        return Ok(());
    };
    if judge.trim().is_empty() || judge.len() > JUDGE_BYTES_MAX {
        return Err(EngineError::Denied(Denied::Refused {
            code: "bad_input",
            message: "a judge's name must be a text of at most 4 KiB".to_owned(),
        }));
    }
    Ok(())
}

const fn encode(source: serde_json::Error) -> EngineError {
    EngineError::Encode {
        what: "a preference",
        source,
    }
}
