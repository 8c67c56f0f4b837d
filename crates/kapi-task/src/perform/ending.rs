//! How an attempt ends, in the words of the kernel.
//!
//! Only data.

use kapi_core::failure::Failure;

use crate::rules::task::{AttemptFailure, End, FailureKind};

/// Returns a bad end.
pub fn failed(kind: FailureKind, message: impl Into<String>) -> End {
    End::Failed(AttemptFailure {
        kind,
        message: message.into(),
        hint: None,
        exit_code: None,
    })
}

/// Returns the end of what could not be launched.
pub fn not_launched(message: impl Into<String>) -> End {
    failed(FailureKind::NotLaunched, message)
}

/// Returns the end of what was not as it has to be.
pub(super) fn eval_failed(message: impl Into<String>) -> End {
    failed(FailureKind::EvalFailed, message)
}

/// Returns the end of what a rule forbids.
pub(super) fn denied(message: impl Into<String>) -> End {
    failed(FailureKind::PolicyDenied, message)
}

/// Returns the end of what could not be launched, with what to do about it.
pub(super) fn not_launched_but(message: impl Into<String>, hint: impl Into<String>) -> End {
    End::Failed(AttemptFailure {
        kind: FailureKind::NotLaunched,
        message: message.into(),
        hint: Some(hint.into()),
        exit_code: None,
    })
}

/// Returns the end of what the world refused.
pub fn refused(failure: &Failure) -> End {
    End::Failed(AttemptFailure {
        kind: FailureKind::NotLaunched,
        message: format!("failed to {}", failure.message),
        hint: failure.hint.clone(),
        exit_code: None,
    })
}
