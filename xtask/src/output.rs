//! The one door to standard output and standard error.
//!
//! A closed pipe is no reason to stop a gate, so a line that cannot be written is dropped.

use std::io;
use std::io::Write as _;

/// Writes a line of results.
pub(crate) fn say(line: &str) {
    #[expect(
        clippy::let_underscore_must_use,
        let_underscore_drop,
        reason = "nobody is left to tell"
    )]
    let _ = writeln!(io::stdout().lock(), "{line}");
}

/// Writes a line of talk.
pub(crate) fn talk(line: &str) {
    #[expect(
        clippy::let_underscore_must_use,
        let_underscore_drop,
        reason = "nobody is left to tell"
    )]
    let _ = writeln!(io::stderr().lock(), "{line}");
}
