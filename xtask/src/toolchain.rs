//! The version of Rust whose warnings the house is held to.
//!
//! `stable` moves every six weeks and brings lints that nobody has read yet: a warning of another version
//! is shown and fails nothing. Installs no tool chain, because a fresh machine may have no way to one.

use std::path::Path;

use anyhow::Context as _;

use crate::output::talk;
use crate::tool::ToolCommand;

/// `workspace.package.rust-version`, told by Cargo.
const PINNED: &str = env!("CARGO_PKG_RUST_VERSION");

/// What becomes of a warning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Warnings {
    /// It fails the gate.
    Deny,
    /// It is shown.
    Show,
}

impl Warnings {
    /// Returns the flags for Clippy and rustdoc.
    pub(crate) fn flags(self) -> &'static [&'static str] {
        match self {
            Self::Deny => &["-D", "warnings"],
            Self::Show => &[],
        }
    }
}

/// Asks the compiler for its version, says so when it is not the pinned one, and returns what becomes of
/// its warnings.
///
/// # Errors
/// When there is no compiler, or what it prints is no version.
pub(crate) fn warnings(root: &Path) -> anyhow::Result<Warnings> {
    let text = ToolCommand::new(root, "rustc", &["--version"]).read()?;
    let version = version(&text).with_context(|| format!("read the version in {text:?}"))?;
    if is_pinned(version, PINNED) {
        return Ok(Warnings::Deny);
    }
    talk(&format!(
        "warning: this is Rust {version}, and the house is held to the warnings of {PINNED}: warnings are shown and fail nothing\nhint: `cargo +{PINNED} xtask ci` denies them, where that version is installed"
    ));
    Ok(Warnings::Show)
}

/// Returns the number in `rustc 1.95.0 (59807616e 2026-04-14)`.
fn version(text: &str) -> Option<&str> {
    text.strip_prefix("rustc ")?.split_whitespace().next()
}

/// Tells whether a version is the pinned one or a repair of it.
fn is_pinned(version: &str, pinned: &str) -> bool {
    let rest = version.strip_prefix(pinned);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

#[cfg(test)]
mod tests {
    use super::{is_pinned, version};

    #[test]
    fn a_repair_of_the_pinned_version_is_pinned_and_no_other_is() {
        let pinned = ["1.95", "1.95.0", "1.95.2", "1.9.5", "1.950.0", "1.96.0"];
        let pinned = pinned.map(|version| is_pinned(version, "1.95"));
        assert_eq!(pinned, [true, true, true, false, false, false]);
    }

    #[test]
    fn the_version_is_read_of_what_the_compiler_prints() {
        let text = "rustc 1.97.0-nightly (59807616e 2026-04-14)\n";
        assert_eq!(version(text), Some("1.97.0-nightly"));
        assert_eq!(version("clippy 0.1.95"), None);
    }
}
