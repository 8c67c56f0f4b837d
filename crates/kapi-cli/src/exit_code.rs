//! Exit codes, documented in `docs/json.md` and tested; scripts rely on them.
//!
//! Nothing else in the program chooses a number.

/// What the process tells its caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// The command did what it was asked; a goal is done.
    Success,
    /// A defect of Kapi.
    Internal,
    /// The command line or a configuration file is wrong.
    Usage,
    /// A rule refused; nothing changed.
    Denied,
    /// The world refused: disk, git, sandbox, a missing program.
    Failed,
    /// The goal ended or stopped without being done.
    NotDone,
    /// There is no such goal.
    NotFound,
    /// Another process holds what is needed.
    Busy,
    /// A signal interrupted it; the state is saved.
    Interrupted,
    /// What the agent of a launch, or a command in a sandbox, exited with; passed on as it is.
    Agent(u8),
}

impl Exit {
    /// Returns the number for the operating system.
    pub(crate) const fn code(self) -> u8 {
        match self {
            Self::Success => 0,
            Self::Internal => 1,
            Self::Usage => 2,
            Self::Denied => 3,
            Self::Failed => 4,
            Self::NotDone => 5,
            Self::NotFound => 6,
            Self::Busy => 7,
            Self::Interrupted => 130,
            Self::Agent(code) => code,
        }
    }
    /// Returns the word for it in JSON.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Internal => "internal",
            Self::Usage => "usage",
            Self::Denied => "denied",
            Self::Failed => "failed",
            Self::NotDone => "not_done",
            Self::NotFound => "not_found",
            Self::Busy => "busy",
            Self::Interrupted => "interrupted",
            Self::Agent(_) => "agent",
        }
    }
}
