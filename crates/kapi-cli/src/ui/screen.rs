//! What a terminal can show besides lines, by the environment and by what a person asked for.
//!
//! Whether there is a terminal at all is asked elsewhere.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::sync::OnceLock;

/// The variable of a person who wants lines: a screen reader reads them in their order.
const PLAIN: &str = "KAPI_PLAIN";

/// What can be shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ScreenKind {
    /// Lines only.
    Lines,
    /// A screen that is drawn anew, without colours.
    Mono,
    /// A screen with colours.
    Colour,
}

/// Where a line belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LineStream {
    /// Standard output.
    Output,
    /// Standard error.
    Error,
}

/// What stands between us and the terminal while something of ours is drawn there.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ScreenHooks {
    /// Keeps what is printed, and tells whether it did.
    pub(crate) keeps: fn(LineStream, &str) -> bool,
    /// Tells whether it is drawn now.
    pub(crate) is_open: fn() -> bool,
    /// Gives the terminal back for good.
    pub(crate) leave: fn(),
}

/// One process has one terminal.
static HOOKS: OnceLock<ScreenHooks> = OnceLock::new();

/// Sets what is asked from now on before anything is printed; who comes first stays.
pub(crate) fn set_hooks(hooks: ScreenHooks) {
    HOOKS.get_or_init(|| hooks);
}

/// Keeps what is printed, where something is drawn; tells whether it is kept.
pub(super) fn keeps(stream: LineStream, text: &str) -> bool {
    HOOKS.get().is_some_and(|hooks| (hooks.keeps)(stream, text))
}

/// Tells whether something is drawn now.
pub(super) fn is_open() -> bool {
    HOOKS.get().is_some_and(|hooks| (hooks.is_open)())
}

/// Gives the terminal back for good.
pub(super) fn leave() {
    if let Some(hooks) = HOOKS.get() {
        (hooks.leave)();
    }
}

impl ScreenKind {
    /// Reads an environment: `TERM`, `KAPI_PLAIN` and `NO_COLOR`.
    pub(crate) fn of(env: &BTreeMap<OsString, OsString>) -> Self {
        let value = |name: &str| env.get(OsStr::new(name)).filter(|value| !value.is_empty());
        let is_dumb = value("TERM").is_none_or(|term| term == "dumb");
        if is_dumb || value(PLAIN).is_some() {
            Self::Lines
        } else if value("NO_COLOR").is_some() {
            Self::Mono
        } else {
            Self::Colour
        }
    }
}

#[cfg(test)]
mod tests {
    use super::ScreenKind;

    fn check(variables: &[(&str, &str)], expected: ScreenKind) {
        let env = variables.iter();
        let env = env.map(|(name, value)| ((*name).into(), (*value).into()));
        assert_eq!(ScreenKind::of(&env.collect()), expected, "{variables:?}");
    }

    #[test]
    fn the_environment_says_what_can_be_shown() {
        check(&[], ScreenKind::Lines);
        check(&[("TERM", "dumb")], ScreenKind::Lines);
        check(&[("TERM", "xterm")], ScreenKind::Colour);
        check(&[("TERM", "xterm"), ("NO_COLOR", "1")], ScreenKind::Mono);
        check(&[("TERM", "xterm"), ("NO_COLOR", "")], ScreenKind::Colour);
        check(&[("TERM", "xterm"), ("KAPI_PLAIN", "1")], ScreenKind::Lines);
    }
}
