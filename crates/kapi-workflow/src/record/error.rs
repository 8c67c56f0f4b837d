//! Why a request of a workflow did not succeed, in the kinds a caller must tell apart.
//!
//! A rule's refusal and the world's are different variants; nothing here is printed.

use kapi_core::workflow_key::WorkflowKey;
use kapi_goal::record::error::EngineError;
use kapi_goal::rules::denied::NOT_APPROVED_HERE;
use kapi_machine::error::StreamError;
use kapi_store::error::StoreError;
use kapi_sys::disk::DiskError;
use kapi_sys::lock::LockError;

use crate::rules::denied::WorkflowDenial;
use crate::rules::pending::WorkflowDecision;
use crate::rules::slug::SlugError;
use crate::rules::target::TargetError;

/// What a workflow says of itself that nobody here gave leave for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WorkflowLack {
    /// Nothing is recorded.
    #[error("your home directory has no record that you started it in this project")]
    Nothing,
    /// It was started as something else.
    #[error(
        "your home directory records that you started it with another purpose, other terms \
        or another base"
    )]
    OtherStart,
    /// An approval is not there.
    #[error("it lists {} ({sha256}) as approved, which you never approved", .decision.words())]
    Approval {
        /// What was decided.
        decision: WorkflowDecision,
        /// The hash that it says was approved.
        sha256: String,
    },
    /// Its limits go further.
    #[error("it lists higher limits than you set")]
    Limits,
    /// What is carried out is not what was approved.
    #[error("it would carry out something you did not approve")]
    OtherContent,
}

/// A request that did not succeed.
#[derive(Debug, thiserror::Error)]
pub enum WorkflowError {
    /// A rule said no; nothing changed.
    #[error(transparent)]
    Denied(Box<WorkflowDenial>),
    /// It came from elsewhere: this person's home gives no leave for it. Nothing changed.
    #[error("continue workflow {}: {lack}", workflow.id)]
    NotApprovedHere {
        /// Which.
        workflow: WorkflowKey,
        /// What is missing.
        lack: WorkflowLack,
    },
    /// There is no such workflow.
    #[error("find workflow {workflow}")]
    NotFound {
        /// What was looked for.
        workflow: WorkflowKey,
    },
    /// What was typed means no workflow, or none that can be meant so.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// The purpose gives it no name.
    #[error(transparent)]
    Name(#[from] SlugError),
    /// The store or something like it failed; a damaged log and a held lock are told apart there.
    #[error(transparent)]
    Engine(#[from] EngineError),
}

impl WorkflowError {
    /// Returns the code of a refusal, for programs; `None` where nothing was refused by rule.
    #[must_use]
    pub const fn denied_code(&self) -> Option<&'static str> {
        match self {
            Self::Denied(denied) => Some(denied.why.code()),
            Self::NotApprovedHere { .. } => Some(NOT_APPROVED_HERE),
            Self::Target(error) => Some(error.code()),
            Self::Name(_) => Some("malformed"),
            Self::NotFound { .. } | Self::Engine(_) => None,
        }
    }

    /// Returns what to do about it, if there is something.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Denied(denied) => possible(denied.next_commands.first()?),
            Self::Target(error) => possible(error.next_commands().first()?),
            Self::Name(_) => {
                Some("put a few other words in front of it: \"greet visitors: …\".".to_owned())
            }
            Self::NotApprovedHere { workflow, .. } => {
                let (mode, index) = (workflow.mode, workflow.id.index());
                Some(format!(
                    "review it with `kapi status {index:03}`; `kapi {mode} resume {index:03} \
                     --adopt` shows what you would trust and adopts it."
                ))
            }
            Self::NotFound { .. } => Some("list the workflows with `kapi status`.".to_owned()),
            Self::Engine(error) => error.hint(""),
        }
    }
}

fn possible(command: &str) -> Option<String> {
    Some(format!("next: `{command}`."))
}

impl From<WorkflowDenial> for WorkflowError {
    fn from(denied: WorkflowDenial) -> Self {
        Self::Denied(Box::new(denied))
    }
}

impl From<StoreError> for WorkflowError {
    fn from(error: StoreError) -> Self {
        Self::Engine(error.into())
    }
}

impl From<DiskError> for WorkflowError {
    fn from(error: DiskError) -> Self {
        Self::Engine(error.into())
    }
}

impl From<LockError> for WorkflowError {
    fn from(error: LockError) -> Self {
        Self::Engine(error.into())
    }
}

impl From<StreamError> for WorkflowError {
    fn from(error: StreamError) -> Self {
        Self::Engine(error.into())
    }
}
