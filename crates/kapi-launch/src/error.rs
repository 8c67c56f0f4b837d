//! Why a command on sandboxes did not do what it was asked.
//!
//! The kind chooses how a caller reacts; message and advice are for people. Knows no exit codes.

use std::error::Error;

use kapi_core::failure::Failure;
use kapi_run::failure;
use kapi_run::spending::SpendingStop;

/// What kind of no it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LaunchErrorKind {
    /// What was asked makes no sense here.
    Usage,
    /// A rule refused; nothing changed.
    Denied,
    /// There is no such sandbox.
    NotFound,
    /// Another process uses it.
    Busy,
    /// The world refused.
    Failed,
}

/// A command on a sandbox that was not carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaunchError {
    /// What kind of no it is.
    pub kind: LaunchErrorKind,
    /// What to tell, as "failed to …" for [`LaunchErrorKind::Failed`] and as a sentence's text otherwise.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

impl LaunchError {
    /// Builds one of a kind with advice.
    #[must_use]
    pub fn new(kind: LaunchErrorKind, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            hint: Some(hint.into()),
        }
    }

    /// Builds one from why whoever books a launch does not let it begin.
    pub(crate) fn of_stop(stopped: SpendingStop) -> Self {
        let kind = match &stopped {
            SpendingStop::Cap(_) => LaunchErrorKind::Denied,
            SpendingStop::Ledger(_) => LaunchErrorKind::Failed,
        };
        Self {
            kind,
            ..stopped.failure().into()
        }
    }

    /// Builds one from an error of an adapter.
    pub fn failed(error: &dyn Error) -> Self {
        failure::plain(error).into()
    }
}

impl From<Failure> for LaunchError {
    fn from(failure: Failure) -> Self {
        Self {
            kind: LaunchErrorKind::Failed,
            message: failure.message,
            hint: failure.hint,
        }
    }
}
