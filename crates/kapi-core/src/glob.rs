//! Patterns of paths as projects and tools write them: `*`, `?` and `[a-z]` within a name, `**` for
//! any directories, `{a,b}` for either.
//!
//! Made once and matched often, in time at most the product of the lengths. A bracket or brace that
//! is not closed stands for itself. Knows no directory. The patterns of policies and conditions have
//! fewer signs and are read elsewhere.

/// The most patterns without braces that one pattern stands for; what is beyond stays as written.
const WAYS_MAX: usize = 1_024;

/// A pattern, ready to be matched.
#[derive(Debug, Clone)]
pub struct Glob {
    ways: Vec<Vec<Segment>>,
}

/// What stands between two slashes.
#[derive(Debug, Clone)]
enum Segment {
    /// Any number of directories, or none.
    Directories,
    Literal(String),
    Name(Vec<GlobPiece>),
}

#[derive(Debug, Clone)]
enum GlobPiece {
    Literal(char),
    One,
    Any,
    Set {
        inverted: bool,
        ranges: Vec<(char, char)>,
    },
}

impl Glob {
    /// Makes a pattern of its text.
    #[must_use]
    pub fn new(text: &str) -> Self {
        let plain = text.trim_start_matches("./").trim_end_matches('/');
        let ways = alternatives(plain);
        Self {
            ways: ways.iter().map(|way| segments(way)).collect(),
        }
    }

    /// Tells whether it matches a whole relative path. Case counts.
    #[must_use]
    pub fn matches(&self, path: &str) -> bool {
        let names: Vec<&str> = path.split('/').collect();
        self.matches_names(&names)
    }

    /// Tells whether it matches a path that is taken apart at its slashes.
    #[must_use]
    pub fn matches_names(&self, names: &[&str]) -> bool {
        self.ways.iter().any(|way| is_path(way, names))
    }

    /// Tells whether it matches a path or a directory that the path lies in.
    #[must_use]
    pub fn covers_names(&self, names: &[&str]) -> bool {
        (1..=names.len()).any(|end| names.get(..end).is_some_and(|top| self.matches_names(top)))
    }
}

/// Tells whether a pattern names a path: as it stands, or as a directory for all below it; nothing
/// and a point name everything.
#[must_use]
pub fn covers(pattern: &str, path: &str) -> bool {
    let pattern = pattern.trim_start_matches("./").trim_end_matches('/');
    if pattern.is_empty() || pattern == "." {
        return true;
    }
    let names: Vec<&str> = path.split('/').collect();
    Glob::new(pattern).covers_names(&names)
}

/// Returns a pattern without braces for each alternative of the first pair, and so on.
fn alternatives(text: &str) -> Vec<String> {
    let mut done: Vec<String> = Vec::new();
    let mut open = vec![text.to_owned()];
    while let Some(text) = open.pop() {
        let inner = text.rsplit_once('{').and_then(|(before, rest)| {
            let (inner, after) = rest.split_once('}')?;
            Some((before, inner, after))
        });
        match inner {
            Some((before, inner, after)) if done.len() + open.len() < WAYS_MAX => {
                let each = inner.split(',').map(|one| format!("{before}{one}{after}"));
                open.extend(each);
            }
            Some(_) | None => done.push(text),
        }
    }
    done
}

fn segments(text: &str) -> Vec<Segment> {
    text.split('/')
        .map(|name| match name {
            "**" => Segment::Directories,
            name if name.contains(['*', '?', '[']) => Segment::Name(pieces(name)),
            name => Segment::Literal(name.to_owned()),
        })
        .collect()
}

fn pieces(name: &str) -> Vec<GlobPiece> {
    let mut pieces = Vec::new();
    let mut rest = name;
    while let Some(first) = rest.chars().next() {
        let after = rest.get(first.len_utf8()..).unwrap_or_default();
        let set = (first == '[').then(|| set(after)).flatten();
        let (piece, next) = match (set, first) {
            (Some((piece, next)), _) => (piece, next),
            (None, '*') => (GlobPiece::Any, after),
            (None, '?') => (GlobPiece::One, after),
            (None, literal) => (GlobPiece::Literal(literal), after),
        };
        pieces.push(piece);
        rest = next;
    }
    pieces
}

/// Reads what follows an opening bracket: `abc]`, `a-z]`, `!a]`; and what is after it.
fn set(text: &str) -> Option<(GlobPiece, &str)> {
    let (inner, after) = text.split_once(']')?;
    let (inner, inverted) = inner
        .strip_prefix(['!', '^'])
        .map_or((inner, false), |inner| (inner, true));
    let chars: Vec<char> = inner.chars().collect();
    let mut ranges = Vec::new();
    let mut at = 0;
    while let Some(first) = chars.get(at) {
        match (chars.get(at + 1), chars.get(at + 2)) {
            (Some('-'), Some(last)) => {
                ranges.push((*first, *last));
                at += 3;
            }
            _ => {
                ranges.push((*first, *first));
                at += 1;
            }
        }
    }
    Some((GlobPiece::Set { inverted, ranges }, after))
}

fn is_path(way: &[Segment], names: &[&str]) -> bool {
    // Most paths differ in their last name: it is looked at first.
    if let (Some(last), Some(name)) = (way.last(), names.last())
        && !is_segment(last, name)
    {
        return false;
    }
    let (mut at, mut name_at) = (0, 0);
    // Only the last `**` before can take more: what an earlier one could take, it can take as well.
    let mut retry: Option<(usize, usize)> = None;
    while let Some(name) = names.get(name_at) {
        match way.get(at) {
            Some(Segment::Directories) => {
                retry = Some((at, name_at));
                at += 1;
            }
            Some(segment) if is_segment(segment, name) => {
                at += 1;
                name_at += 1;
            }
            Some(_) | None => match retry {
                Some((star, taken)) => {
                    retry = Some((star, taken + 1));
                    at = star + 1;
                    name_at = taken + 1;
                }
                None => return false,
            },
        }
    }
    way.get(at..)
        .unwrap_or_default()
        .iter()
        .all(|rest| matches!(rest, Segment::Directories))
}

fn is_segment(segment: &Segment, name: &str) -> bool {
    match segment {
        Segment::Directories => true,
        Segment::Literal(literal) => literal == name,
        Segment::Name(pieces) => is_name(pieces, name),
    }
}

fn is_name(pieces: &[GlobPiece], name: &str) -> bool {
    let chars: Vec<char> = name.chars().collect();
    let (mut at, mut char_at) = (0, 0);
    let mut retry: Option<(usize, usize)> = None;
    while let Some(c) = chars.get(char_at) {
        let fits = match pieces.get(at) {
            Some(GlobPiece::Any) => {
                retry = Some((at, char_at));
                at += 1;
                continue;
            }
            Some(GlobPiece::One) => true,
            Some(GlobPiece::Literal(literal)) => literal == c,
            Some(GlobPiece::Set { inverted, ranges }) => {
                ranges
                    .iter()
                    .any(|(first, last)| (first..=last).contains(&c))
                    != *inverted
            }
            None => false,
        };
        if fits {
            at += 1;
            char_at += 1;
            continue;
        }
        let Some((star, taken)) = retry else {
            return false;
        };
        retry = Some((star, taken + 1));
        at = star + 1;
        char_at = taken + 1;
    }
    pieces
        .get(at..)
        .unwrap_or_default()
        .iter()
        .all(|rest| matches!(rest, GlobPiece::Any))
}

#[cfg(test)]
mod tests {
    use super::Glob;

    fn check(pattern: &str, matching: &[&str], others: &[&str]) {
        let glob = Glob::new(pattern);
        for path in matching {
            assert!(glob.matches(path), "{pattern} {path}");
        }
        for path in others {
            assert!(!glob.matches(path), "{pattern} {path}");
        }
    }

    #[test]
    fn names_and_directories() {
        check(
            "packages/*",
            &["packages/a"],
            &["packages/a/b", "packages", "x/a"],
        );
        check("./packages/*/", &["packages/a"], &[]);
        check("crates/kapi-*", &["crates/kapi-core"], &["crates/other"]);
        check("*-x-*", &["a-x-b"], &["a-b"]);
        check("apps/**", &["apps/a/b", "apps/a"], &["app/a"]);
        check("**", &["a/b/c", "a"], &[]);
        check("**/ui", &["a/b/ui", "ui"], &["a/uix", "ui/a"]);
        check("**/a/**/b", &["a/b", "x/a/y/b", "a/a/b/b"], &["a", "b/a"]);
        check("a", &["a"], &["a/b", "b"]);
        check("*a*a", &["aa", "xaya"], &["a"]);
        check("../x", &["../x"], &["x"]);
    }

    #[test]
    fn sets_and_alternatives() {
        check("a?c", &["abc", "a\u{fc}c"], &["ac", "a/c"]);
        check("[Nn]u[a-z].x", &["Nub.x"], &["nuB.x", "xua.x"]);
        check("[!a]", &["b"], &["a", "bb"]);
        check(
            "{a,b}/*.{js,ts}",
            &["a/x.js", "b/x.ts"],
            &["c/x.js", "a/x.rs"],
        );
        check("x{,.d}.ts", &["x.ts", "x.d.ts"], &["x.a.ts"]);
        check("a{b,{c,d}}", &["ab", "ac", "ad"], &["a"]);
        check("a[b", &["a[b"], &["ab"]);
        check("a{b", &["a{b"], &["ab"]);
    }

    #[test]
    fn a_hostile_pattern_ends() {
        let path = vec!["a"; 400].join("/");
        assert!(!Glob::new(&("**/".repeat(400) + "x")).matches(&path));
        assert!(!Glob::new(&("**/a/".repeat(100) + "x/a")).matches(&path));
        assert!(!Glob::new(&("*a".repeat(200) + "b")).matches(&"a".repeat(2_000)));
        assert!(!Glob::new(&"{a,b}".repeat(64)).matches("c"));
    }
}
