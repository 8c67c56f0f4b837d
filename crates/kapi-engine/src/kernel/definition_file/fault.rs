//! What is wrong with a file that a person wrote: where, what, and what to do.
//!
//! Faults are collected, so that a person sees all of a file at once. Knows no file format.

use std::fmt;

/// One thing that is wrong with a file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fault {
    /// The file, relative to the project, or absolute when it lies elsewhere.
    pub file: String,
    /// The line, from 1; 0 when the file as a whole is meant.
    pub line: usize,
    /// The key, with those above it: `trigger.schedule`.
    pub key: Option<String>,
    /// What is wrong.
    pub what: String,
    /// What to do.
    pub remedy: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.file)?;
        if self.line > 0 {
            write!(out, ":{}", self.line)?;
        }
        out.write_str(": ")?;
        if let Some(key) = &self.key {
            write!(out, "`{key}`: ")?;
        }
        write!(out, "{}; {}", self.what, self.remedy)
    }
}

/// The most faults of one file that are told; a person corrects them and asks again.
const FAULTS_MAX: usize = 50;
/// The most characters of a key or word that are told.
const CHARS_MAX: usize = 80;

/// The faults of one file.
#[derive(Debug)]
pub(in crate::kernel) struct Faults {
    file: String,
    list: Vec<Fault>,
}

impl Faults {
    /// Begins with none.
    pub(in crate::kernel) const fn of(file: String) -> Self {
        Self {
            file,
            list: Vec::new(),
        }
    }

    /// Adds one about the file, or what stands on a line of it.
    pub(in crate::kernel) fn at_line(&mut self, line: usize, what: String, remedy: &str) {
        self.push(Fault {
            file: self.file.clone(),
            line,
            key: None,
            what,
            remedy: remedy.to_owned(),
        });
    }

    /// Adds one about a key.
    pub(in crate::kernel) fn at_key(&mut self, place: (usize, &str), what: String, remedy: String) {
        let (line, key) = place;
        self.push(Fault {
            file: self.file.clone(),
            line,
            key: Some(short(key)),
            what,
            remedy,
        });
    }

    fn push(&mut self, fault: Fault) {
        if self.list.len() < FAULTS_MAX {
            self.list.push(fault);
        } else if self.list.len() == FAULTS_MAX {
            self.list.push(Fault {
                line: usize::MAX,
                key: None,
                what: format!("more than {FAULTS_MAX} things are wrong"),
                remedy: "correct those above first".to_owned(),
                ..fault
            });
        }
    }

    /// Tells whether there is none.
    pub(in crate::kernel) const fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Returns them in the order of the file.
    pub(in crate::kernel) fn into_list(self) -> Vec<Fault> {
        let mut list = self.list;
        list.sort_by_key(|fault| fault.line);
        if let Some(last) = list.last_mut().filter(|last| last.line == usize::MAX) {
            last.line = 0;
        }
        list
    }
}

/// Returns a word as far as it is worth telling.
pub(in crate::kernel) fn short(word: &str) -> String {
    match word.char_indices().nth(CHARS_MAX) {
        Some((end, _)) => format!("{}…", word.split_at(end).0),
        None => word.to_owned(),
    }
}

/// Returns the name that was probably meant.
pub(in crate::kernel) fn nearest<'a>(
    word: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    const LENGTH_MAX: usize = 64;
    if word.len() > LENGTH_MAX {
        return None;
    }
    let squeezed = squeezed(word);
    let distance_of = |name: &'a str| (distance(&squeezed, &self::squeezed(name)), name);
    let found = known.into_iter().map(distance_of).min()?;
    let (distance, name) = found;
    let is_near = distance <= 2 && distance * 2 <= word.len();
    is_near.then_some(name)
}

/// Two spellings of one name are as near as can be.
fn squeezed(word: &str) -> String {
    let is_word = |c: &char| !matches!(c, '_' | '-' | ' ');
    word.to_lowercase().chars().filter(is_word).collect()
}

/// Counts the letters that must be put in, left out or exchanged.
fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (number, l) in left.chars().enumerate() {
        let mut next = vec![number + 1];
        for (r, above) in right.iter().zip(row.windows(2)) {
            let before = next.last().copied().unwrap_or(usize::MAX - 1);
            let [diagonal, up] = above else { continue };
            next.push(
                (before + 1)
                    .min(up + 1)
                    .min(diagonal + usize::from(l != *r)),
            );
        }
        row = next;
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::{Fault, distance, nearest};

    #[test]
    fn a_fault_says_where_what_and_what_to_do() {
        let mut fault = Fault {
            file: ".pi/loops/a.md".to_owned(),
            line: 3,
            key: Some("timeout".to_owned()),
            what: "it is text".to_owned(),
            remedy: "give seconds".to_owned(),
        };
        let shown = ".pi/loops/a.md:3: `timeout`: it is text; give seconds";
        assert_eq!(fault.to_string(), shown);
        fault.line = 0;
        fault.key = None;
        assert_eq!(
            fault.to_string(),
            ".pi/loops/a.md: it is text; give seconds"
        );
    }

    #[test]
    fn the_name_that_was_meant_is_found_and_no_other() {
        let known = ["timeout", "trigger", "max_retries", "eval"];
        for (word, meant) in [
            ("timout", Some("timeout")),
            ("maxRetries", Some("max_retries")),
            ("evals", Some("eval")),
            ("colour", None),
            ("corn", None),
            ("e", None),
            ("", None),
        ] {
            assert_eq!(nearest(word, known), meant, "{word}");
        }
    }

    #[test]
    fn distances_count_single_letters() {
        for (left, right, expected) in [("", "", 0), ("a", "", 1), ("kitten", "sitting", 3)] {
            assert_eq!(distance(left, right), expected);
            assert_eq!(distance(right, left), expected);
        }
    }
}
