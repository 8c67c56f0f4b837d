//! Exit codes, documented in `docs/json.md` and tested; scripts rely on them.
//!
//! Nothing else in the program chooses a number.

/// What the process tells its caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Exit {
    /// The command did what it was asked; a goal is done.
    Success = 0,
    /// A defect of Kapi.
    Internal = 1,
    /// The command line or a configuration file is wrong.
    Usage = 2,
    /// A rule refused; nothing changed.
    Denied = 3,
    /// The world refused: disk, git, sandbox, a missing program.
    Failed = 4,
    /// The goal ended or stopped without being done.
    NotDone = 5,
    /// There is no such goal.
    NotFound = 6,
    /// Another process holds what is needed.
    Busy = 7,
    /// A signal interrupted it; the state is saved.
    Interrupted = 130,
}

impl Exit {
    /// Returns the number for the operating system.
    pub(crate) const fn code(self) -> u8 {
        self as u8
    }
}
