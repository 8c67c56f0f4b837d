//! Text that reads otherwise than it is: reordered, invisible, or with letters that look like others.
//!
//! Such a line passes a review by eye and does something else. Only tells; decides nothing.

use std::fmt;

use crate::quote;

/// How a line deceives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Deception {
    /// Characters that change the order in which others are shown.
    Bidirectional,
    /// Characters that show nothing.
    Invisible,
    /// A word with letters of another script that look like Latin ones beside Latin letters.
    LookAlike,
}

/// The most lines that are told of one patch.
pub const LINES_MAX: usize = 100;
/// Letters that look like Latin ones, besides the forms of whole blocks.
const LOOK_ALIKES: &str = "аеорсухіјѕһԁԛԝАВЕКМНОРСТУХІЈЅοαικρτυνΑΒΕΖΗΙΚΜΝΟΡΤΥΧ";

/// Returns how a line deceives; none when it is what it seems.
///
/// A mark of byte order at the very beginning of a text is nothing to speak of; a joiner between
/// signs that are no Latin text is how some scripts and emoji are written.
#[must_use]
pub fn deception(line: &str) -> Option<Deception> {
    let line = line.trim_start_matches('\u{feff}');
    let mut before = None;
    let mut found = None;
    for c in line.chars() {
        let is_joined = matches!(c, '\u{200c}' | '\u{200d}')
            && before.is_some_and(|before: char| !before.is_ascii());
        if is_bidirectional(c) {
            return Some(Deception::Bidirectional);
        }
        if quote::is_hidden(c) && !c.is_control() && !is_joined {
            found = Some(Deception::Invisible);
        }
        before = Some(c);
    }
    found.or_else(|| {
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let mut words = line.split(|c| !is_word(c));
        words.any(is_mixed).then_some(Deception::LookAlike)
    })
}

/// A line that a patch adds and that is not what it seems.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeceptiveLine {
    /// The file; bytes that are no text are replaced.
    pub path: String,
    /// The line's number in the new file.
    pub line: u64,
    /// How it deceives.
    pub how: Deception,
}

/// Returns the lines that a patch in the format of git adds and that deceive, at most
/// [`LINES_MAX`]; names of files are looked at, too.
#[must_use]
pub fn of_patch(patch: &[u8]) -> Vec<DeceptiveLine> {
    let mut found = Vec::new();
    let (mut path, mut next, mut left) = (String::new(), 0, HunkLines::default());
    for bytes in patch.split(|&b| b == b'\n') {
        let line = String::from_utf8_lossy(bytes);
        if found.len() >= LINES_MAX {
            break;
        }
        if left.is_over() {
            if let Some(name) = line.strip_prefix("+++ ") {
                path = name.strip_prefix("b/").unwrap_or(name).to_owned();
                let how = deception(&path);
                found.extend(how.map(|how| DeceptiveLine {
                    path: path.clone(),
                    line: 0,
                    how,
                }));
            } else if let Some((at, hunk)) = hunk(&line) {
                (next, left) = (at, hunk);
            }
            continue;
        }
        let is_new = bytes.first() == Some(&b'+');
        if let (true, Some(how)) = (is_new, deception(line.get(1..).unwrap_or_default())) {
            let path = path.clone();
            found.push(DeceptiveLine {
                path,
                line: next,
                how,
            });
        }
        next += u64::from(left.count(bytes.first().copied()));
    }
    found
}

/// Lines of a hunk that are still to come: of the old file, and of the new one.
#[derive(Debug, Clone, Copy, Default)]
struct HunkLines {
    old: u64,
    new: u64,
}

impl HunkLines {
    const fn is_over(self) -> bool {
        self.old == 0 && self.new == 0
    }

    /// Counts a line by its mark; tells whether the new file has it.
    const fn count(&mut self, mark: Option<u8>) -> bool {
        let (is_old, is_new) = match mark {
            Some(b'+') => (false, true),
            Some(b'-') => (true, false),
            Some(b'\\') => (false, false),
            Some(_) | None => (true, true),
        };
        self.old = self.old.saturating_sub(is_old as u64);
        self.new = self.new.saturating_sub(is_new as u64);
        is_new
    }
}

/// Reads where a hunk begins in the new file, and how long it is: `@@ -1,2 +3,4 @@`.
fn hunk(line: &str) -> Option<(u64, HunkLines)> {
    let (old, new) = line.strip_prefix("@@ -")?.split_once(" +")?;
    let (new, _) = new.split_once(" @@")?;
    let range = |text: &str| -> Option<(u64, u64)> {
        let (at, count) = text.split_once(',').unwrap_or((text, "1"));
        Some((at.parse().ok()?, count.parse().ok()?))
    };
    let ((_, old), (at, new)) = (range(old)?, range(new)?);
    Some((at, HunkLines { old, new }))
}

const fn is_bidirectional(c: char) -> bool {
    matches!(
        c,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    )
}

/// Tells whether a word has Latin letters and some that only look like them.
fn is_mixed(word: &str) -> bool {
    let looks_latin = |c: char| {
        LOOK_ALIKES.contains(c) || matches!(c, '\u{ff21}'..='\u{ff5a}' | '\u{1d400}'..='\u{1d6a5}')
    };
    word.chars().any(|c| c.is_ascii_alphabetic()) && word.chars().any(looks_latin)
}

impl fmt::Display for Deception {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Bidirectional => "characters that reorder the text",
            Self::Invisible => "invisible characters",
            Self::LookAlike => "letters that look like others",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Deception::{Bidirectional, Invisible, LookAlike};
    use super::{deception, of_patch};

    #[test]
    fn lines_that_are_not_what_they_seem_are_told_from_text() {
        for (line, expected) in [
            (
                "if access != \"user\u{202e} \u{2066}// admin\u{2069}\"",
                Some(Bidirectional),
            ),
            ("is\u{200b}Admin", Some(Invisible)),
            ("a\u{ad}b", Some(Invisible)),
            ("let \u{0430}dmin = 1;", Some(LookAlike)),
            ("pаypal", Some(LookAlike)),
            ("ｓudo", Some(LookAlike)),
            ("\u{feff}plain", None),
            ("привет, мир", None),
            ("Größe π Δx", None),
            ("👩\u{200d}💻 works", None),
            ("می\u{200c}خواهم", None),
            ("tab\tand end\r", None),
        ] {
            assert_eq!(deception(line), expected, "{line:?}");
        }
    }

    #[test]
    fn only_lines_that_a_patch_adds_are_told() {
        let patch = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,3 +1,4 @@\n same\u{200b}\n\
                     -old\u{202e}\n+new\u{202e}\n+++ b/not a name\u{200b}\n end\n\
                     diff --git a/y b/y\n--- /dev/null\n+++ b/y\n@@ -0,0 +1 @@\n+p\u{0430}th\n\
                     \\ No newline at end of file\n";
        let found = of_patch(patch.as_bytes()).into_iter();
        let found: Vec<String> = found
            .map(|one| format!("{}:{} {}", one.path, one.line, one.how))
            .collect();
        assert_eq!(
            found,
            [
                "x:2 characters that reorder the text",
                "x:3 invisible characters",
                "y:1 letters that look like others"
            ]
        );
    }
}
