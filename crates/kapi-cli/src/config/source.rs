//! Where a value comes from, so that a person can go there and change it.
//!
//! Knows files by path and line; what a key means is the business of those who read it.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use kapi_settings::fault::Faults;
use kapi_settings::setting::Setting;

/// The place that a value was taken from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ValueSource {
    /// Nobody said anything.
    Default,
    /// What is known of an agent or comes with Kapi, by name.
    BuiltIn(String),
    /// A line of a file.
    Line {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
    },
    /// A variable of the environment.
    Variable(&'static str),
    /// A flag of this command line.
    Flag(&'static str),
    /// What the person prefers in this project, set by this command.
    Preference(&'static str),
}

impl fmt::Display for ValueSource {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => out.write_str("default"),
            Self::BuiltIn(name) => write!(out, "built-in {name}"),
            Self::Line { path, line } => write!(out, "{}:{line}", path.display()),
            Self::Variable(name) => write!(out, "environment {name}"),
            Self::Flag(name) => write!(out, "flag {name}"),
            Self::Preference(command) => write!(out, "preference, set by `{command}`"),
        }
    }
}

/// A value and where it comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SourcedValue<T> {
    /// The value.
    pub(crate) value: T,
    /// The place.
    pub(crate) source: ValueSource,
}

impl<T> SourcedValue<T> {
    /// Builds a value from a place.
    pub(crate) const fn new(value: T, source: ValueSource) -> Self {
        Self { value, source }
    }

    /// Builds what holds when nobody said anything.
    pub(crate) const fn default(value: T) -> Self {
        Self::new(value, ValueSource::Default)
    }
}

/// For each key of the configuration, where its value was said.
#[derive(Debug, Clone, Default)]
pub(crate) struct Origins(BTreeMap<String, Vec<ValueSource>>);

impl Origins {
    /// Returns where a key's value comes from.
    pub(crate) fn of(&self, key: &str) -> Vec<ValueSource> {
        let said = self.0.get(key).cloned();
        said.unwrap_or_else(|| vec![ValueSource::Default])
    }

    /// Returns the first place a key's value comes from.
    pub(crate) fn first(&self, key: &str) -> ValueSource {
        let said = self.0.get(key).and_then(|sources| sources.first());
        said.cloned().unwrap_or(ValueSource::Default)
    }

    /// Notes the only place a key's value comes from.
    pub(crate) fn set(&mut self, key: &str, source: ValueSource) {
        self.0.insert(key.to_owned(), vec![source]);
    }

    /// Notes a further place.
    pub(crate) fn add(&mut self, key: &str, source: ValueSource) {
        self.0.entry(key.to_owned()).or_default().push(source);
    }

    /// Notes every key of a file.
    pub(crate) fn set_all(&mut self, path: &Path, lines: &BTreeMap<String, usize>) {
        for (key, line) in lines {
            self.set(key, at(path, *line));
        }
    }
}

/// What was read of a file: where its values stand, and what is wrong with them.
#[derive(Debug)]
pub(crate) struct SettingsText<'a> {
    /// The file.
    pub(crate) path: &'a Path,
    /// The line of every key, by its dotted path.
    pub(crate) lines: BTreeMap<String, usize>,
    /// What is wrong so far.
    pub(crate) faults: Faults,
}

impl SettingsText<'_> {
    /// Returns the source of a key's value.
    pub(crate) fn source(&self, key: &str) -> ValueSource {
        at(self.path, self.lines.get(key).copied().unwrap_or(1))
    }

    /// Returns a setting's value and its source.
    pub(crate) fn at<T>(&self, setting: Setting<T>) -> SourcedValue<T> {
        SourcedValue::new(setting.value, at(self.path, setting.line))
    }

    /// Notes what is wrong with a key.
    pub(crate) fn wrong(&mut self, key: &str, what: impl Into<String>, remedy: impl Into<String>) {
        let line = self.lines.get(key).copied().unwrap_or(1);
        self.faults.at_key(line, key, what, remedy);
    }
}

/// Returns a line of a file.
pub(crate) fn at(path: &Path, line: usize) -> ValueSource {
    ValueSource::Line {
        path: path.to_path_buf(),
        line,
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{Origins, ValueSource, at};

    #[test]
    fn sources_read_as_places() {
        let cases = [
            (ValueSource::Default, "default"),
            (
                ValueSource::BuiltIn("profile pi".to_owned()),
                "built-in profile pi",
            ),
            (at(Path::new("/a.toml"), 3), "/a.toml:3"),
            (
                ValueSource::Variable("KAPI_AGENT"),
                "environment KAPI_AGENT",
            ),
            (ValueSource::Flag("--network"), "flag --network"),
        ];
        for (source, text) in cases {
            assert_eq!(source.to_string(), text);
        }
        let mut origins = Origins::default();
        assert_eq!(origins.of("k"), [ValueSource::Default]);
        origins.add("k", ValueSource::Flag("--k"));
        origins.add("k", ValueSource::Variable("K"));
        assert_eq!(origins.of("k").len(), 2);
        assert_eq!(origins.first("k"), ValueSource::Flag("--k"));
    }
}
