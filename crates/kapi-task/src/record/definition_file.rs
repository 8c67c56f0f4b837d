//! Loop definitions as files: Markdown with settings before it, in `.pi/loops` and
//! `.ilchul/loops`.
//!
//! Whoever can write to the project can write them, so nothing outside of the project is read
//! and every size has a limit. One bad file never hides the others. Runs nothing.

mod body;
pub(in crate::record) mod directory;
mod evals;
pub(in crate::record) mod front_matter;
pub(in crate::record) mod read;
#[cfg(test)]
mod tests;
mod triggers;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use kapi_core::state_directory::{OWN_LOOPS, PI_LOOPS};
use kapi_core::task_id::LoopName;
use kapi_settings::fault::{Faults, SettingsFault};
use kapi_store::hash::sha256_hex;

use self::directory::Files;
use crate::record::definition_file::directory::{DefinitionDirectory, upward};
use crate::rules::definition::{Definition, DefinitionSource};

/// The loops of a project.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LoopCatalog {
    /// Those that can be used, in the order of their files.
    pub definitions: Vec<Definition>,
    /// What is wrong with the others.
    pub faults: Vec<SettingsFault>,
}

impl LoopCatalog {
    /// Returns the definition with a name.
    #[must_use]
    pub fn find(&self, name: &LoopName) -> Option<&Definition> {
        self.definitions
            .iter()
            .find(|definition| definition.name == *name)
    }

    /// Returns what is wrong with the file that would have a loop of this name.
    #[must_use]
    pub fn fault_of(&self, name: &str) -> Option<&SettingsFault> {
        let is_its = |file: &str| Path::new(file).file_stem().is_some_and(|stem| stem == name);
        self.faults.iter().find(|fault| is_its(&fault.file))
    }
}

/// Returns the loops of the project at `root`, as seen from `start`, a directory of it.
///
/// The nearest `.pi/loops` from `start` up to `root` comes first, then `.ilchul/loops` of `root`;
/// each in the order of its file names. Of two loops with one name the first can be used.
#[must_use]
pub fn discover(root: &Path, start: &Path) -> LoopCatalog {
    let mut found = LoopCatalog::default();
    let location = match DefinitionDirectory::open(root) {
        Ok(Some(location)) => location,
        Ok(None) => return found,
        Err(error) => {
            found.faults.push(error.fault(root));
            return found;
        }
    };
    let mut files = Vec::new();
    for dir in upward(root, start) {
        let listed = listed(&location, &dir.join(PI_LOOPS), &mut found.faults);
        if let Some(listed) = listed {
            files.extend(listed);
            break;
        }
    }
    let own = listed(&location, Path::new(OWN_LOOPS), &mut found.faults);
    // Started in the directory of its own loops, a project has them twice.
    let is_new = |file: &PathBuf| !files.contains(file);
    let own: Vec<PathBuf> = own.unwrap_or_default().into_iter().filter(is_new).collect();
    files.extend(own);
    for file in files {
        add(&location, &file, &mut found);
    }
    found
}

/// Reads one definition; `name` is what faults and its source call the file.
///
/// `schema_root` is the directory that schemas in files are named from.
///
/// # Errors
/// When anything in it is wrong; everything that is.
pub fn parse(name: &str, text: &str, schema_root: &Path) -> Result<Definition, Vec<SettingsFault>> {
    let files = |path: &Path| match DefinitionDirectory::open(schema_root)? {
        Some(location) => location.read(path),
        None => Ok(None),
    };
    parse_with(name, text, &files)
}

/// Returns the line of each key of a definition's text, from 1; none where it cannot be read.
#[must_use]
pub fn key_lines(text: &str) -> BTreeMap<String, usize> {
    let mut faults = Faults::of(String::new());
    let settings = read::settings(text, &mut faults);
    let entries = settings.iter().flat_map(|(root, _)| root.entries());
    let lines = entries.map(|entry| (entry.key.clone(), entry.line));
    lines.collect()
}

fn parse_with(name: &str, text: &str, files: Files<'_>) -> Result<Definition, Vec<SettingsFault>> {
    let mut faults = Faults::of(name.to_owned());
    let source = DefinitionSource {
        file: name.to_owned(),
        sha256: sha256_hex(text.as_bytes()),
        is_tracked: false,
    };
    let read = read::definition(text, source, files, &mut faults);
    faults.instead_of(read)
}

fn listed(
    location: &DefinitionDirectory,
    dir: &Path,
    faults: &mut Vec<SettingsFault>,
) -> Option<Vec<PathBuf>> {
    match location.markdown(dir) {
        Ok(files) => files,
        Err(error) => {
            faults.push(error.fault(dir));
            // The directory is there: one further up is not meant instead.
            Some(Vec::new())
        }
    }
}

fn add(location: &DefinitionDirectory, file: &Path, found: &mut LoopCatalog) {
    let text = match location.read(file) {
        Ok(Some(text)) => text,
        // It was removed since the directory was listed.
        Ok(None) => return,
        Err(error) => {
            found.faults.push(error.fault(file));
            return;
        }
    };
    let name = file.display().to_string();
    match parse_with(&name, &text, &|path| location.read(path)) {
        Ok(definition) => match found.find(&definition.name) {
            Some(first) => {
                let fault = duplicate(&name, &definition, first, &text);
                found.faults.push(fault);
            }
            None => found.definitions.push(definition),
        },
        Err(faults) => found.faults.extend(faults),
    }
}

fn duplicate(name: &str, second: &Definition, first: &Definition, text: &str) -> SettingsFault {
    let is_name = |line: &str| line.starts_with("name:");
    let line = text
        .lines()
        .position(is_name)
        .map_or(0, |location| location + 1);
    SettingsFault {
        file: name.to_owned(),
        line,
        key: Some("name".to_owned()),
        what: format!(
            "duplicate loop name: {} is also the loop of {}",
            second.name, first.source.file
        ),
        remedy: "rename one of them; until then, Kapi uses the other file".to_owned(),
    }
}
