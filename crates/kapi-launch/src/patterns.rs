//! Patterns as in a `.gitignore`: the last one that matches decides.
//!
//! Pure matching of names; reads no file. A pattern that cannot be understood matches nothing.

use kapi_git::name_pattern::name_matches;

/// The most patterns of one file.
const PATTERNS_MAX: usize = 1_000;
/// The most parts of one pattern, so that matching stays short.
const PARTS_MAX: usize = 64;

/// A list of patterns.
#[derive(Debug, Clone, Default)]
pub(crate) struct ShowPatterns {
    list: Vec<ShowPattern>,
}

#[derive(Debug, Clone)]
struct ShowPattern {
    is_negated: bool,
    is_for_directories: bool,
    parts: Vec<String>,
}

impl ShowPatterns {
    /// Reads the lines of a file.
    pub(crate) fn parse(text: &str) -> Self {
        let list = text.lines().filter_map(ShowPattern::parse);
        Self {
            list: list.take(PATTERNS_MAX).collect(),
        }
    }

    /// Tells whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Tells whether a path, relative to the file's directory, is meant by itself.
    pub(crate) fn match_path(&self, path: &str, is_directory: bool) -> bool {
        let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        let matching = self.list.iter().rev().find(|pattern| {
            (is_directory || !pattern.is_for_directories) && parts_match(&pattern.parts, &parts)
        });
        matching.is_some_and(|pattern| !pattern.is_negated)
    }
}

impl ShowPattern {
    fn parse(line: &str) -> Option<Self> {
        let line = line.strip_suffix('\r').unwrap_or(line);
        let line = if line.ends_with("\\ ") {
            line
        } else {
            line.trim_end_matches(' ')
        };
        if line.is_empty() || line.starts_with('#') {
            return None;
        }
        let (is_negated, rest) = match line.strip_prefix('!') {
            Some(rest) => (true, rest),
            None => (false, line),
        };
        let (is_for_directories, rest) = match rest.strip_suffix('/') {
            Some(rest) => (true, rest),
            None => (false, rest),
        };
        let is_anchored = rest.contains('/');
        let rest = rest.strip_prefix('/').unwrap_or(rest);
        let mut parts: Vec<String> = rest.split('/').map(str::to_owned).collect();
        if !is_anchored {
            parts.insert(0, "**".to_owned());
        }
        let is_odd = parts.len() > PARTS_MAX || parts.iter().any(String::is_empty);
        (!is_odd).then_some(Self {
            is_negated,
            is_for_directories,
            parts,
        })
    }
}

fn parts_match(pattern: &[String], path: &[&str]) -> bool {
    let Some((first, rest)) = pattern.split_first() else {
        return path.is_empty();
    };
    if first == "**" {
        if rest.is_empty() {
            return !path.is_empty();
        }
        return (0..=path.len()).any(|n| parts_match(rest, path.get(n..).unwrap_or_default()));
    }
    match path.split_first() {
        Some((name, below)) => {
            name_matches(first.as_bytes(), name.as_bytes()) && parts_match(rest, below)
        }
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::ShowPatterns;

    #[test]
    fn patterns_mean_what_they_mean_to_git() {
        for (patterns, path, is_directory, expected) in [
            (".env", ".env", false, true),
            (".env", "a/b/.env", false, true),
            ("/.env", "a/.env", false, false),
            ("a/.env", "a/.env", false, true),
            ("a/.env", "b/a/.env", false, false),
            ("*.pem", "keys/x.pem", false, true),
            ("*.pem", "x.pem.txt", false, false),
            ("target/", "target", true, true),
            ("target/", "target", false, false),
            ("**/x", "a/b/x", false, true),
            ("a/**/x", "a/x", false, true),
            ("a/**", "a/b/c", false, true),
            ("a/**", "a", true, false),
            ("a?c", "abc", false, true),
            ("[a-c]x", "bx", false, true),
            ("[!a-c]x", "bx", false, false),
            ("*.env\n!keep.env", "keep.env", false, false),
            ("*.env\n!keep.env", "other.env", false, true),
            ("# .env\n\n", ".env", false, false),
            ("\\#x", "#x", false, true),
            ("a*b*c", "axxbxbc", false, true),
            ("a*b*c", "axxbxb", false, false),
        ] {
            let found = ShowPatterns::parse(patterns).match_path(path, is_directory);
            assert_eq!(found, expected, "{patterns:?} {path}");
        }
    }
}
