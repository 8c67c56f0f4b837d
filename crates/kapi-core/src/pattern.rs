//! Patterns for names and paths, matched in time at most the product of the lengths.
//!
//! `*` stands for anything, in a path within one name; `**` for any directories, `?` for one
//! character. Everything else stands for itself. Knows no directory.

/// One piece of a pattern of paths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PatternPiece {
    Literal(char),
    /// One character, no slash.
    One,
    /// Any characters, no slash.
    Any,
    /// Any characters.
    Everything,
    /// Nothing, or directories with the slash after them.
    Directories,
}

/// Tells whether a pattern matches a whole name; `*` and `?` match any character. Mostly at once.
#[must_use]
pub fn is_name(pattern: &str, name: &str) -> bool {
    let (pattern, text) = (pattern.as_bytes(), name.as_bytes());
    let (mut at, mut from) = (0, 0);
    // Where the last star was, and how much of the text it has swallowed.
    let mut star: Option<(usize, usize)> = None;
    while let Some(byte) = text.get(from) {
        match pattern.get(at) {
            Some(b'*') => {
                star = Some((at, from));
                at += 1;
            }
            Some(b'?') => {
                at += 1;
                from = next_char(text, from);
            }
            Some(literal) if literal == byte => {
                at += 1;
                from += 1;
            }
            Some(_) | None => {
                let Some((star_at, swallowed)) = star else {
                    return false;
                };
                let swallowed = next_char(text, swallowed);
                star = Some((star_at, swallowed));
                at = star_at + 1;
                from = swallowed;
            }
        }
    }
    pattern.iter().skip(at).all(|byte| *byte == b'*')
}

/// Returns where the character after the one at `from` begins.
fn next_char(text: &[u8], from: usize) -> usize {
    let rest = text.get(from + 1..).unwrap_or_default();
    let is_inside = |byte: &&u8| **byte & 0xC0 == 0x80;
    from + 1 + rest.iter().take_while(is_inside).count()
}

/// Tells whether a pattern matches a whole relative path. Case counts.
#[must_use]
pub fn is_path(pattern: &str, path: &str) -> bool {
    matches(&path_pieces(plain(pattern)), plain(path))
}

/// Tells whether a pattern matches a relative path or a directory that it lies in.
#[must_use]
pub fn covers(pattern: &str, path: &str) -> bool {
    let pieces = path_pieces(plain(pattern));
    let path = plain(path);
    let ends = path.match_indices('/').map(|(at, _)| at);
    let mut prefixes = ends.chain([path.len()]);
    prefixes.any(|end| matches(&pieces, path.get(..end).unwrap_or(path)))
}

fn plain(path: &str) -> &str {
    path.trim_start_matches("./").trim_end_matches('/')
}

fn path_pieces(pattern: &str) -> Vec<PatternPiece> {
    let mut pieces = Vec::new();
    let mut rest = pattern;
    while let Some(c) = rest.chars().next() {
        let is_start = pieces.last().is_none_or(|last| {
            matches!(last, PatternPiece::Literal('/') | PatternPiece::Directories)
        });
        let (piece, length) = match c {
            '*' if is_start && rest.starts_with("**/") => (PatternPiece::Directories, 3),
            '*' if rest.starts_with("**") => (PatternPiece::Everything, 2),
            '*' => (PatternPiece::Any, 1),
            '?' => (PatternPiece::One, 1),
            c => (PatternPiece::Literal(c), c.len_utf8()),
        };
        pieces.push(piece);
        rest = rest.get(length..).unwrap_or_default();
    }
    pieces
}

/// Follows every way through the pattern at once.
fn matches(pieces: &[PatternPiece], text: &str) -> bool {
    let is_inner = |c| c != '/';
    let mut at = vec![false; pieces.len() + 1];
    enter(pieces, &mut at, 0);
    for c in text.chars() {
        let mut next = vec![false; pieces.len() + 1];
        let here = pieces.iter().enumerate().zip(&at);
        for ((location, piece), _) in here.filter(|(_, is_here)| **is_here) {
            match piece {
                PatternPiece::Literal(literal) if *literal == c => {
                    enter(pieces, &mut next, location + 1);
                }
                PatternPiece::One if is_inner(c) => enter(pieces, &mut next, location + 1),
                PatternPiece::Any if is_inner(c) => enter(pieces, &mut next, location),
                PatternPiece::Everything => enter(pieces, &mut next, location),
                PatternPiece::Directories if c == '/' => {
                    stay(&mut next, location);
                    enter(pieces, &mut next, location + 1);
                }
                PatternPiece::Directories => stay(&mut next, location),
                PatternPiece::Literal(_) | PatternPiece::One | PatternPiece::Any => {}
            }
        }
        at = next;
    }
    at.last() == Some(&true)
}

fn stay(at: &mut [bool], location: usize) {
    if let Some(is_here) = at.get_mut(location) {
        *is_here = true;
    }
}

/// Goes to a place, and to those after it that nothing is needed for.
fn enter(pieces: &[PatternPiece], at: &mut [bool], location: usize) {
    let mut location = location;
    loop {
        stay(at, location);
        match pieces.get(location) {
            Some(PatternPiece::Any | PatternPiece::Everything | PatternPiece::Directories) => {
                location += 1;
            }
            Some(PatternPiece::Literal(_) | PatternPiece::One) | None => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{covers, is_name, is_path};

    #[test]
    fn names() {
        for (pattern, name) in [
            ("*", ""),
            ("*", "a/b"),
            ("claude*", "claude-code"),
            ("*-review", "code-review"),
            ("a?c", "aüc"),
            ("a*b*c", "a-b-b-c"),
        ] {
            assert!(is_name(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [("", "a"), ("a", "A"), ("a?c", "ac"), ("a*b", "abc")] {
            assert!(!is_name(pattern, name), "{pattern} {name}");
        }
    }

    #[test]
    fn a_pattern_matches_the_whole_name() {
        let cases = [
            ("", "", true),
            ("", "a", false),
            ("*", "", true),
            ("*", "a b", true),
            ("mvn test*", "mvn test -q", true),
            ("mvn test*", "mvn -q test", false),
            ("mvn *test*", "mvn clean test", true),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "a-b-b-d", false),
            ("?s", "ls", true),
            ("?s", "s", false),
            ("*ü", "grün-ü", true),
            ("gr?n", "grün", true),
            ("gr??n", "grün", false),
            ("*?n", "ü", false),
        ];
        for (pattern, text, is_match) in cases {
            assert_eq!(is_name(pattern, text), is_match, "{pattern:?} {text:?}");
        }
    }

    #[test]
    fn paths() {
        for (pattern, path) in [
            ("src/*.rs", "src/a.rs"),
            ("./src/*.rs", "src/a.rs"),
            ("**/*.rs", "a.rs"),
            ("**/*.rs", "x/y/a.rs"),
            ("src/**/b", "src/b"),
            ("src/**/b", "src/x/y/b"),
            ("src/**", "src/x/y"),
            ("**", "x/y"),
            ("a?c/**", "abc/d"),
            ("a/**/**/b", "a/b"),
        ] {
            assert!(is_path(pattern, path), "{pattern} {path}");
        }
        for (pattern, path) in [
            ("src/*.rs", "src/x/a.rs"),
            ("*.rs", "src/a.rs"),
            ("**/b", "ab"),
            ("src/**/b", "src/xb"),
            ("src/**", "source/x"),
            ("a?c", "a/c"),
            ("src", "src/a"),
        ] {
            assert!(!is_path(pattern, path), "{pattern} {path}");
        }
    }

    #[test]
    fn a_directory_covers_what_lies_in_it() {
        assert!(covers("secrets", "secrets/a/b"));
        assert!(covers("secrets/", "secrets/a"));
        assert!(covers("**/keys", "a/keys/b"));
        assert!(!covers("secrets", "secrets2/a"));
        assert!(!covers("secrets/a", "secrets"));
    }

    #[test]
    fn no_pattern_is_slow() {
        let pattern = "**/*a".repeat(100);
        assert!(!is_path(&pattern, &"a".repeat(4_000)));
        assert!(!is_name(&"*a".repeat(100), &"b".repeat(4_000)));
    }
}
