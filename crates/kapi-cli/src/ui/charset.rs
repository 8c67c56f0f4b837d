//! Which characters a terminal can show, by the locale that it was started with.
//!
//! Only characters of ours are replaced: what somebody else wrote is shown as it is.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

/// Which characters can be shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Charset {
    /// Every one.
    Unicode,
    /// Those of a plain locale, as `LANG=C` is.
    Ascii,
}

/// What stands for a character of ours where there is only ASCII.
const PLAIN: [(char, &str); 15] = [
    // The columns of a sparkline, from the lowest.
    ('\u{2581}', "_"),
    ('\u{2582}', ","),
    ('\u{2583}', "-"),
    ('\u{2584}', "~"),
    ('\u{2585}', "="),
    ('\u{2586}', "+"),
    ('\u{2587}', "*"),
    ('\u{2588}', "#"),
    ('\u{b7}', "."),
    ('\u{b1}', "+/-"),
    ('\u{2026}', "..."),
    ('\u{2212}', "-"),
    ('\u{2013}', "-"),
    ('\u{2192}', "->"),
    ('\u{d7}', "x"),
];

impl Charset {
    /// Reads the locale of an environment; where none is named, nothing speaks against Unicode.
    pub(crate) fn of(env: &BTreeMap<OsString, OsString>) -> Self {
        let named = ["LC_ALL", "LC_CTYPE", "LANG"]
            .iter()
            .filter_map(|name| env.get(OsStr::new(name)))
            .find(|locale| !locale.is_empty());
        let Some(locale) = named else {
            return Self::Unicode;
        };
        let locale = locale.to_string_lossy().to_lowercase();
        if locale.contains("utf-8") || locale.contains("utf8") {
            Self::Unicode
        } else {
            Self::Ascii
        }
    }

    /// Returns a text in characters that can be shown.
    pub(super) fn shown(self, text: String) -> String {
        if self == Self::Unicode || text.is_ascii() {
            return text;
        }
        let mut shown = String::with_capacity(text.len());
        for c in text.chars() {
            match PLAIN.iter().find(|(ours, _)| *ours == c) {
                Some((_, plain)) => shown.push_str(plain),
                None => shown.push(c),
            }
        }
        shown
    }
}

#[cfg(test)]
mod tests {
    use super::Charset;

    fn check(variables: &[(&str, &str)], expected: Charset) {
        let env = variables.iter();
        let env = env.map(|(name, value)| ((*name).into(), (*value).into()));
        assert_eq!(Charset::of(&env.collect()), expected, "{variables:?}");
    }

    #[test]
    fn the_locale_says_what_can_be_shown() {
        check(&[], Charset::Unicode);
        check(&[("LANG", "C")], Charset::Ascii);
        check(&[("LANG", "POSIX"), ("LC_ALL", "")], Charset::Ascii);
        check(&[("LANG", "C.UTF-8")], Charset::Unicode);
        check(&[("LANG", "de_DE.utf8")], Charset::Unicode);
        check(&[("LANG", "en_US.UTF-8"), ("LC_ALL", "C")], Charset::Ascii);
        check(&[("LANG", "C"), ("LC_CTYPE", "C.UTF-8")], Charset::Unicode);
    }

    #[test]
    fn our_characters_have_a_plain_form() {
        let text = "\u{2581}\u{2588}\u{b7} \u{b1} 3 \u{d7} \u{e9}";
        assert_eq!(Charset::Unicode.shown(text.to_owned()), text);
        assert_eq!(Charset::Ascii.shown(text.to_owned()), "_#. +/- 3 x \u{e9}");
    }
}
