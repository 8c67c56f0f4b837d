//! Why the kernel could not answer.

use std::path::PathBuf;

use kapi_fleet::error::FleetError;
use kapi_machine::error::StreamError;
use kapi_machine::slots::SlotError;
use kapi_store::error::StoreError;
use kapi_sys::disk::DiskError;
use kapi_sys::lock::LockError;

use crate::rules::definition::InputError;
use crate::rules::denied::KernelDenial;
use crate::rules::policy;
use crate::rules::policy::PolicyDecision;

/// A request of the kernel that failed.
#[derive(Debug, thiserror::Error)]
pub enum KernelError {
    /// A rule said no; nothing changed.
    #[error(transparent)]
    Denied(#[from] KernelDenial),
    /// The policy said no; nothing changed.
    #[error("{}", policy_words(.0))]
    Policy(Box<PolicyDecision>),
    /// A loop cannot be run with these inputs.
    #[error(transparent)]
    Inputs(#[from] InputError),
    /// The stream could not be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The cluster that several machines share could not answer.
    #[error(transparent)]
    Fleet(#[from] FleetError),
    /// A sound line of the log holds an event that this program does not know.
    #[error("understand {} at line {line}", file.display())]
    UnknownEvent {
        /// The log.
        file: PathBuf,
        /// The line, from 1.
        line: u64,
        /// Why.
        #[source]
        source: serde_json::Error,
    },
    /// A line of the history does not parse.
    #[error("understand {} at line {line}", file.display())]
    BadHistory {
        /// The file.
        file: PathBuf,
        /// The line, from 1.
        line: usize,
        /// Why.
        #[source]
        source: serde_json::Error,
    },
    /// Something could not be written as JSON.
    #[error("encode {what}")]
    Encode {
        /// What.
        what: &'static str,
        /// Why.
        #[source]
        source: serde_json::Error,
    },
    /// The events are recorded, but what follows from them could not be written; it is written
    /// with a later event.
    #[error("write what follows from the recorded events")]
    NotDerived(#[source] Box<Self>),
    /// The commit that a task begins at could not be offered to other machines.
    #[error("offer the commit that the task starts from: {why}")]
    Base {
        /// What went wrong.
        why: String,
    },
    /// There is no place for one more worker.
    #[error(transparent)]
    Place(#[from] SlotError),
}

impl KernelError {
    /// Returns what to do about it, if there is something.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Store(error) => error.hint(),
            Self::Fleet(error) => error.hint(),
            Self::NotDerived(error) => error.hint(),
            Self::UnknownEvent { .. } => {
                Some("a newer version of Kapi wrote the log; use that version.".to_owned())
            }
            Self::BadHistory { file, .. } => Some(format!(
                "move {} away: Kapi rebuilds it from events.jsonl.",
                file.display()
            )),
            Self::Place(SlotError::Full { .. }) => Some("wait for some of them to end.".to_owned()),
            Self::Denied(KernelDenial::NoTask { .. }) => {
                Some("`kapi task list` lists the tasks.".to_owned())
            }
            Self::Denied(KernelDenial::OnlyHuman { .. }) => {
                Some("ask the user to run the command in their own terminal.".to_owned())
            }
            Self::Denied(KernelDenial::OverCapacity { .. }) => {
                Some("wait for a task to end, or raise `max_concurrency`.".to_owned())
            }
            Self::Policy(decision) => decision.violations.first().map(|violation| {
                format!(
                    "the rule is in {}, line {}.",
                    violation.file, violation.line
                )
            }),
            Self::Denied(_)
            | Self::Inputs(_)
            | Self::Place(SlotError::Lock(_))
            | Self::Base { .. }
            | Self::Encode { .. } => None,
        }
    }
}

fn policy_words(decision: &PolicyDecision) -> String {
    let texts = decision
        .violations
        .iter()
        .map(|violation| violation.text.as_str());
    let texts: Vec<&str> = texts.collect();
    format!("{}: {}", policy::DENIED, texts.join("; "))
}

impl From<DiskError> for KernelError {
    fn from(error: DiskError) -> Self {
        Self::Store(error.into())
    }
}

impl From<LockError> for KernelError {
    fn from(error: LockError) -> Self {
        Self::Store(StoreError::Lock(error))
    }
}

impl From<StreamError> for KernelError {
    fn from(error: StreamError) -> Self {
        match error {
            StreamError::Store(error) => Self::Store(error),
            StreamError::UnknownEvent { file, line, source } => {
                Self::UnknownEvent { file, line, source }
            }
            StreamError::Encode { what, source } => Self::Encode { what, source },
        }
    }
}
