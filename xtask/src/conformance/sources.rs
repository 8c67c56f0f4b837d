//! The tests that exist, read from the sources of all crates, and the documents beside them.
//!
//! Knows no Rust but `#[test]` and the function after it. That every such file is compiled is a
//! rule of `tidy`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::Context as _;

/// Directories that hold nothing of ours.
const NOT_OURS: &[&str] = &[".git", ".ilchul", ".test-tools", "node_modules"];

/// The documents at the top that a decision may point at.
const TOP_DOCUMENTS: &[&str] = &["ARCHITECTURE.md", "README.md", "SECURITY.md", "STYLE.md"];

/// What a row may point at.
#[derive(Debug, Default)]
pub(super) struct ConformanceSources {
    /// The names of the tests, by file.
    tests: BTreeMap<String, BTreeSet<String>>,
    documents: BTreeSet<String>,
}

impl ConformanceSources {
    /// Reads all crates and the documents.
    pub(super) fn load(root: &Path) -> anyhow::Result<Self> {
        let mut sources = Self::default();
        let has_it = |name: &&&str| root.join(name).is_file();
        let at_top = TOP_DOCUMENTS.iter().filter(has_it);
        sources.documents = at_top.map(|name| (*name).to_owned()).collect();
        for directory in ["crates", "xtask", "docs"] {
            sources.add_directory(root, &root.join(directory))?;
        }
        Ok(sources)
    }

    fn add_directory(&mut self, root: &Path, directory: &Path) -> anyhow::Result<()> {
        let reading = || format!("read {}", directory.display());
        for entry in fs::read_dir(directory).with_context(reading)? {
            let entry = entry.with_context(reading)?;
            let kind = entry.file_type().with_context(reading)?;
            let path = entry.path();
            if NOT_OURS.iter().any(|name| entry.file_name() == *name) || kind.is_symlink() {
                continue;
            }
            if kind.is_dir() {
                self.add_directory(root, &path)?;
                continue;
            }
            let extension = path.extension().and_then(|extension| extension.to_str());
            let name = path.strip_prefix(root).unwrap_or(&path).to_string_lossy();
            match extension {
                Some("rs") => {
                    let text = fs::read_to_string(&path)
                        .with_context(|| format!("read {}", path.display()))?;
                    self.add_source(&name, &text);
                }
                Some("md") => {
                    self.documents.insert(name.into_owned());
                }
                Some(_) | None => {}
            }
        }
        Ok(())
    }

    fn add_source(&mut self, path: &str, text: &str) {
        let names = tests_of(text);
        if !names.is_empty() {
            self.tests.insert(path.to_owned(), names);
        }
    }

    /// Builds sources of these files and documents.
    #[cfg(test)]
    pub(super) fn of(files: &[(&str, &str)], documents: &[&str]) -> Self {
        let mut sources = Self::default();
        for (path, text) in files {
            sources.add_source(path, text);
        }
        sources.documents = documents.iter().map(|path| (*path).to_owned()).collect();
        sources
    }

    /// Tells whether there is a document at this path.
    pub(super) fn has_document(&self, path: &str) -> bool {
        self.documents.contains(path)
    }

    /// Returns the path of the one file that has the test `file.rs::name`.
    ///
    /// # Errors
    /// When there is none or more than one, in words.
    pub(super) fn find(&self, test: &str) -> Result<&str, String> {
        let Some((file, name)) = test.split_once("::") else {
            return Err(format!("{test} is not written as file.rs::name"));
        };
        let end = format!("/{file}");
        let has_it = |(path, names): &(&String, &BTreeSet<String>)| {
            (path.ends_with(&end) || *path == file) && names.contains(name)
        };
        let found: Vec<&str> = self
            .tests
            .iter()
            .filter(has_it)
            .map(|(path, _)| path.as_str())
            .collect();
        match found.as_slice() {
            [path] => Ok(path),
            [] => Err(format!("there is no test {test}")),
            several => Err(format!("{test} could be in {}", several.join(" or "))),
        }
    }
}

/// Returns the names of the functions that follow `#[test]`.
fn tests_of(text: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let mut is_next = false;
    for line in text.lines().map(str::trim) {
        if line == "#[test]" {
            is_next = true;
        } else if is_next && let Some(rest) = line.strip_prefix("fn ") {
            let is_name = |char: &char| char.is_ascii_alphanumeric() || *char == '_';
            names.insert(rest.chars().take_while(is_name).collect());
            is_next = false;
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::ConformanceSources;

    const TEXT: &str = "//! x\nfn helper() {}\n#[test]\n#[expect(\n    lint,\n    reason = \"r\"\n)]\n\
                        fn one() {}\n    #[test]\n    fn two(text in any::<String>()) {}\n\
                        fn three() {}\n";

    #[test]
    fn tests_are_functions_behind_their_attribute() {
        let sources = ConformanceSources::of(&[("crates/a/src/b.rs", TEXT)], &[]);
        assert_eq!(sources.find("b.rs::one"), Ok("crates/a/src/b.rs"));
        assert_eq!(sources.find("src/b.rs::two"), Ok("crates/a/src/b.rs"));
        for name in ["helper", "three", "on"] {
            let wanted = format!("there is no test b.rs::{name}");
            assert_eq!(sources.find(&format!("b.rs::{name}")), Err(wanted));
        }
        assert!(sources.find("c.rs::one").is_err());
        assert!(sources.find("one").is_err());
    }

    #[test]
    fn a_name_that_could_be_two_tests_is_refused() {
        let files = [("crates/a/b.rs", TEXT), ("crates/c/b.rs", TEXT)];
        let sources = ConformanceSources::of(&files, &[]);
        assert_eq!(
            sources.find("b.rs::one"),
            Err("b.rs::one could be in crates/a/b.rs or crates/c/b.rs".to_owned())
        );
        assert_eq!(sources.find("c/b.rs::one"), Ok("crates/c/b.rs"));
    }
}
