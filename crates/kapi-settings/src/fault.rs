//! What is wrong with a file that a person wrote: where, what, and what to do.
//!
//! Faults are collected, so that a person sees all of a file at once. Knows no file format.

use std::fmt;

use crate::setting::Setting;

/// The most faults of one file that are reported; a person corrects them and asks again.
pub const FAULTS_MAX: usize = 50;
/// The most characters of a key or word that are shown.
const CHARS_MAX: usize = 80;

/// One thing that is wrong with a file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SettingsFault {
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

impl SettingsFault {
    /// Builds one about a file as a whole.
    #[must_use]
    pub fn of_file(file: String, what: String, remedy: &str) -> Self {
        Self {
            file,
            line: 0,
            key: None,
            what,
            remedy: remedy.to_owned(),
        }
    }

    /// Returns where it is and what is wrong, without what to do.
    #[must_use]
    pub fn location_and_what(&self) -> String {
        let line = match self.line {
            0 => String::new(),
            line => format!(":{line}"),
        };
        let key = self.key.as_ref();
        let key = key.map_or_else(String::new, |key| format!("`{key}`: "));
        format!("{}{line}: {key}{}", self.file, self.what)
    }
}

impl fmt::Display for SettingsFault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}; {}", self.location_and_what(), self.remedy)
    }
}

/// The faults of one file.
#[derive(Debug)]
pub struct Faults {
    file: String,
    list: Vec<SettingsFault>,
}

impl Faults {
    /// Begins with none.
    #[must_use]
    pub const fn of(file: String) -> Self {
        Self {
            file,
            list: Vec::new(),
        }
    }

    /// Adds one about the file, or what stands on a line of it.
    pub fn at_line(&mut self, line: usize, what: impl Into<String>, remedy: impl Into<String>) {
        self.push(line, None, what.into(), remedy.into());
    }

    /// Adds one about a key.
    pub fn at_key(
        &mut self,
        line: usize,
        key: &str,
        what: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        self.push(line, Some(short(key)), what.into(), remedy.into());
    }

    /// Adds one about a setting.
    pub fn at<T>(
        &mut self,
        setting: &Setting<T>,
        what: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        self.at_key(setting.line, &setting.key, what, remedy);
    }

    fn push(&mut self, line: usize, key: Option<String>, what: String, remedy: String) {
        let (line, key, what, remedy) = match self.list.len() {
            FAULTS_MAX => (
                usize::MAX,
                None,
                format!("there are more than {FAULTS_MAX} errors"),
                "fix those above first".to_owned(),
            ),
            count if count > FAULTS_MAX => return,
            _ => (line, key, what, remedy),
        };
        self.list.push(SettingsFault {
            file: self.file.clone(),
            line,
            key,
            what,
            remedy,
        });
    }

    /// Tells whether there is none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Tells whether something is wrong with a key, or below it.
    #[must_use]
    pub fn blames(&self, key: &str) -> bool {
        let mut keys = self.list.iter().filter_map(|fault| fault.key.as_deref());
        keys.any(|blamed| {
            let rest = blamed.strip_prefix(key);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        })
    }

    /// Returns what was read, if nothing is wrong with the file.
    ///
    /// # Errors
    /// With everything that is wrong.
    pub fn instead_of<T>(self, read: Option<T>) -> Result<T, Vec<SettingsFault>> {
        match read {
            Some(read) if self.is_empty() => Ok(read),
            Some(_) | None => Err(self.into_list()),
        }
    }

    /// Returns them in the order of the file.
    #[must_use]
    pub fn into_list(self) -> Vec<SettingsFault> {
        let mut list = self.list;
        list.sort_by_key(|fault| fault.line);
        if let Some(last) = list.last_mut().filter(|last| last.line == usize::MAX) {
            last.line = 0;
        }
        list
    }
}

/// Returns a word as far as it is worth showing.
#[must_use]
pub fn short(word: &str) -> String {
    match word.char_indices().nth(CHARS_MAX) {
        Some((end, _)) => format!("{}…", word.split_at(end).0),
        None => word.to_owned(),
    }
}

/// Returns the word that was probably meant. Case and the marks between words do not count.
#[must_use]
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    const LENGTH_MAX: usize = 64;
    let plain = plain(word);
    let length = plain.chars().count();
    if length > LENGTH_MAX {
        return None;
    }
    let distance = |name: &'a str| (strsim::osa_distance(&plain, &self::plain(name)), name);
    let (distance, name) = known.into_iter().map(distance).min()?;
    let is_near = distance <= (length / 3).max(2) && distance * 2 <= length;
    is_near.then_some(name)
}

fn plain(word: &str) -> String {
    let is_letter = |c: &char| !matches!(c, '_' | '-' | ' ' | '.');
    word.to_lowercase().chars().filter(is_letter).collect()
}

/// Returns what to do about a word that is none of those that are known: the one that was meant,
/// or all of them after `otherwise`.
#[must_use]
pub fn did_you_mean(word: &str, known: &[&str], otherwise: &str) -> String {
    match nearest(word, known.iter().copied()) {
        Some(name) => format!("did you mean `{name}`?"),
        None => format!("{otherwise} {}", known.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::{SettingsFault, nearest};

    #[test]
    fn a_fault_says_where_what_and_what_to_do() {
        let mut fault = SettingsFault {
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
        let known = [
            "timeout",
            "trigger",
            "max_retries",
            "eval",
            "maxConcurrency",
            "defaultAgent",
            "provider",
            "cron",
        ];
        for (word, meant) in [
            ("timout", Some("timeout")),
            ("maxRetries", Some("max_retries")),
            ("evals", Some("eval")),
            ("max_concurrency", Some("maxConcurrency")),
            ("maxConcurency", Some("maxConcurrency")),
            ("defaultAgents", Some("defaultAgent")),
            ("providr", Some("provider")),
            ("corn", Some("cron")),
            ("colour", None),
            ("e", None),
            ("", None),
            (&"x".repeat(1_000), None),
        ] {
            assert_eq!(nearest(word, known), meant, "{word}");
        }
    }
}
