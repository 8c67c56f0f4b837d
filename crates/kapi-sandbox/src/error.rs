//! What can go wrong around a sandbox, with the failing call and the way out of it.
//!
//! Does not know how the calls are made; `hint` holds the advice.

use std::io;
use std::path::PathBuf;

use kapi_sys::process::{ProcessEnd, ProcessError};

use crate::hint::{HostRestrictions, hint};
use crate::status::StepFailure;

/// A sandbox that could not be made, entered or cleared.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// A step of the set-up was refused; the program did not run.
    #[error("set up the sandbox: {call} on {target}")]
    Setup {
        /// The system call, with the argument that tells it from others, `unshare(CLONE_NEWUSER)`.
        call: String,
        /// The path or thing it was called on.
        target: String,
        /// What the system said.
        #[source]
        source: io::Error,
        /// What a person can do about it.
        hint: Option<String>,
    },
    /// The launcher could not be started or watched.
    #[error("start the sandbox launcher")]
    Launch(#[source] ProcessError),
    /// The launcher ended without running the program and without saying why.
    #[error("start the sandbox: its launcher ended with {end:?}: {output}")]
    Launcher {
        /// How it ended.
        end: ProcessEnd,
        /// The end of what it wrote to standard error.
        output: String,
    },
    /// Some process of the sandbox was still alive long after all were killed.
    #[error("end every process of the sandbox within {waited_ms} ms")]
    StillAlive {
        /// How long was waited.
        waited_ms: u64,
    },
    /// Without isolation, a descendant of the program could not be ended, for one because it runs as
    /// another user.
    #[error("end every descendant of the program: {call}")]
    Survived {
        /// The call that failed.
        call: String,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The order for the launcher could not be written down.
    #[error("encode the sandbox order")]
    Encode(#[source] serde_json::Error),
    /// The launcher's report could not be read.
    #[error("decode the sandbox launcher's report")]
    Decode(#[source] serde_json::Error),
    /// There is no such program to expose.
    #[error("find program {}", program.display())]
    NoProgram {
        /// What was asked for.
        program: PathBuf,
    },
    /// A program's script names an interpreter that cannot be found.
    #[error("find interpreter {interpreter} of {}", program.display())]
    NoInterpreter {
        /// The script.
        program: PathBuf,
        /// What its first line asks for.
        interpreter: String,
    },
    /// A program to expose could not be read.
    #[error("read program {}", path.display())]
    ReadProgram {
        /// The path.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

impl SandboxError {
    /// Turns a refused step into an error with advice for this host.
    pub(crate) fn setup(failure: &StepFailure) -> Self {
        Self::Setup {
            call: failure.call.clone(),
            target: failure.target.clone(),
            source: io::Error::from_raw_os_error(failure.errno),
            hint: hint(failure, &HostRestrictions::observe()),
        }
    }

    /// Returns what a person can do about it.
    #[must_use]
    pub fn hint(&self) -> Option<&str> {
        match self {
            Self::Setup { hint, .. } => hint.as_deref(),
            Self::NoProgram { .. } | Self::NoInterpreter { .. } => {
                Some("give the program's absolute path, or add its directory to PATH")
            }
            Self::Launch(_)
            | Self::Launcher { .. }
            | Self::StillAlive { .. }
            | Self::Survived { .. }
            | Self::Encode(_)
            | Self::Decode(_)
            | Self::ReadProgram { .. } => None,
        }
    }
}
