//! Which of the offered paths are wanted.
//!
//! Pure matching on bytes: `*`, `?` and `[…]` within one name, `**` for any number of names, and a
//! pattern that ends stands for all below it. Looks at no file.

use std::ffi::OsStr;
use std::path::Path;

use super::ApplyError;
use crate::name_pattern::name_matches;

/// The most names a pattern may have; matching time grows with them.
const NAMES_MAX: usize = 64;

/// The most `**` in one pattern.
const JUMPS_MAX: usize = 4;

/// A list of patterns, read once.
#[derive(Debug)]
pub(super) struct PathSelection {
    wanted: Vec<SelectPattern>,
    unwanted: Vec<SelectPattern>,
}

#[derive(Debug)]
struct SelectPattern {
    text: String,
    names: Vec<Vec<u8>>,
}

impl PathSelection {
    pub(super) fn parse(patterns: &[String]) -> Result<Self, ApplyError> {
        let mut selection = Self {
            wanted: Vec::new(),
            unwanted: Vec::new(),
        };
        for text in patterns {
            let bad = || ApplyError::Pattern {
                pattern: text.clone(),
            };
            let (list, rest) = match text.strip_prefix('!') {
                Some(rest) => (&mut selection.unwanted, rest),
                None => (&mut selection.wanted, text.as_str()),
            };
            let rest = rest.trim_start_matches("./").trim_end_matches('/');
            let names: Vec<Vec<u8>> = rest
                .split('/')
                .map(|name| name.as_bytes().to_vec())
                .filter(|name| name != b".")
                .collect();
            let is_odd = |name: &Vec<u8>| name.is_empty() || name == b".." || name.contains(&0);
            let n_jumps = names.iter().filter(|name| *name == b"**").count();
            let is_all = rest == ".";
            if (names.iter().any(is_odd) || names.is_empty()) && !is_all
                || names.len() > NAMES_MAX
                || n_jumps > JUMPS_MAX
            {
                return Err(bad());
            }
            list.push(SelectPattern {
                text: text.clone(),
                names,
            });
        }
        Ok(selection)
    }

    pub(super) fn wants(&self, path: &Path) -> bool {
        let names = names_of(path);
        let is_wanted = self.wanted.is_empty() || self.wanted.iter().any(|p| p.matches(&names));
        is_wanted && !self.unwanted.iter().any(|p| p.matches(&names))
    }

    /// Returns the patterns that match none of `paths`.
    pub(super) fn unmatched(&self, paths: &[&Path]) -> Vec<String> {
        let all = self.wanted.iter().chain(&self.unwanted);
        let idle = all.filter(|p| !paths.iter().any(|path| p.matches(&names_of(path))));
        idle.map(|p| p.text.clone()).collect()
    }
}

impl SelectPattern {
    fn matches(&self, path: &[&[u8]]) -> bool {
        names_match(&self.names, path)
    }
}

fn names_of(path: &Path) -> Vec<&[u8]> {
    path.iter().map(OsStr::as_encoded_bytes).collect()
}

fn names_match(pattern: &[Vec<u8>], path: &[&[u8]]) -> bool {
    let Some((first, rest)) = pattern.split_first() else {
        return true;
    };
    if first == b"**" {
        // At the end it stands for what is below, which is at least one name.
        let last = if rest.is_empty() { 1 } else { 0 };
        let most = path.len().saturating_sub(last);
        return (!rest.is_empty() || !path.is_empty())
            && (0..=most).any(|n| names_match(rest, path.get(n..).unwrap_or_default()));
    }
    match path.split_first() {
        Some((name, below)) => name_matches(first, name) && names_match(rest, below),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::PathSelection;

    fn wants(patterns: &[&str], path: &str) -> bool {
        let patterns: Vec<String> = patterns.iter().map(|&p| p.to_owned()).collect();
        PathSelection::parse(&patterns)
            .expect("patterns")
            .wants(Path::new(path))
    }

    #[test]
    fn patterns_select_as_they_read() {
        for (patterns, path, expected) in [
            (&[][..], "any/thing", true),
            (&["src"], "src/a/b", true),
            (&["src/"], "src", true),
            (&["./src"], "src/x", true),
            (&["src"], "src2/x", false),
            (&["."], "x/y", true),
            (&["*.rs"], "a.rs", true),
            (&["*.rs"], "d/a.rs", false),
            (&["**/*.rs"], "a.rs", true),
            (&["**/*.rs"], "d/e/a.rs", true),
            (&["src/**"], "src/a", true),
            (&["src/**"], "src", false),
            (&["src/**/x"], "src/x", true),
            (&["src/**/x"], "src/a/b/x/y", true),
            (&["src/*/x"], "src/a/b/x", false),
            (&["a?c"], "abc", true),
            (&["a?c"], "ac", false),
            (&["[a-c]x"], "bx", true),
            (&["[!a-c]x"], "bx", false),
            (&["[]a]x"], "]x", true),
            (&["a\\*"], "a*", true),
            (&["a\\*"], "ab", false),
            (&["a*b*c"], "axxbxbc", true),
            (&["a*b*c"], "axxbxb", false),
            (&["src", "!src/gen"], "src/gen/x", false),
            (&["!**/*.lock"], "d/a.lock", false),
            (&["!**/*.lock"], "d/a.rs", true),
        ] {
            assert_eq!(wants(patterns, path), expected, "{patterns:?} {path}");
        }
    }

    #[test]
    fn what_is_no_pattern_is_an_error_and_what_matches_nothing_is_said() {
        for wrong in ["", "/etc", "a//b", "../x", "!", "**/**/**/**/**/x"] {
            assert!(
                PathSelection::parse(&[wrong.to_owned()]).is_err(),
                "{wrong}"
            );
        }
        let selection = PathSelection::parse(&["a".to_owned(), "!b".to_owned()]).expect("patterns");
        assert_eq!(selection.unmatched(&[Path::new("a/x")]), ["!b"]);
    }
}
