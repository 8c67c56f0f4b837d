//! Loop definitions as files: Markdown with settings before it, in `.pi/loops` and
//! `.ilchul/loops`.
//!
//! Whoever can write to the project can write them, so nothing outside of the project is read
//! and every size has a limit. One bad file never hides the others. Runs nothing.

mod body;
mod evals;
pub(in crate::record) mod front_matter;
pub(in crate::record) mod place;
pub(in crate::record) mod read;
#[cfg(test)]
mod tests;
mod triggers;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use kapi_core::state_directory::{OWN_LOOPS, PI_LOOPS};
use kapi_core::task_id::LoopName;
use kapi_settings::fault::{Fault, Faults};
use kapi_store::hash::sha256_hex;

use self::place::Files;
use crate::record::definition_file::place::{Place, PlaceError, upward};
use crate::rules::definition::{Definition, Source};

/// The loops of a project.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Discovered {
    /// Those that can be used, in the order of their files.
    pub definitions: Vec<Definition>,
    /// What is wrong with the others.
    pub faults: Vec<Fault>,
}

impl Discovered {
    /// Returns the definition with a name.
    #[must_use]
    pub fn find(&self, name: &LoopName) -> Option<&Definition> {
        self.definitions
            .iter()
            .find(|definition| definition.name == *name)
    }
}

/// Returns the loops of the project at `root`, as seen from `start`, a directory of it.
///
/// The nearest `.pi/loops` from `start` up to `root` comes first, then `.ilchul/loops` of `root`;
/// each in the order of its file names. Of two loops with one name the first can be used.
#[must_use]
pub fn discover(root: &Path, start: &Path) -> Discovered {
    let mut found = Discovered::default();
    let place = match Place::open(root) {
        Ok(Some(place)) => place,
        Ok(None) => return found,
        Err(error) => {
            found.faults.push(unreadable(root, &error));
            return found;
        }
    };
    let mut files = Vec::new();
    for dir in upward(root, start) {
        let listed = listed(&place, &dir.join(PI_LOOPS), &mut found.faults);
        if let Some(listed) = listed {
            files.extend(listed);
            break;
        }
    }
    let own = listed(&place, Path::new(OWN_LOOPS), &mut found.faults);
    // Started in the directory of its own loops, a project has them twice.
    let is_new = |file: &PathBuf| !files.contains(file);
    let own: Vec<PathBuf> = own.unwrap_or_default().into_iter().filter(is_new).collect();
    files.extend(own);
    for file in files {
        add(&place, &file, &mut found);
    }
    found
}

/// Reads one definition; `name` is what faults and its source call the file.
///
/// `schema_root` is the directory that schemas in files are named from.
///
/// # Errors
/// When anything in it is wrong; everything that is.
pub fn parse(name: &str, text: &str, schema_root: &Path) -> Result<Definition, Vec<Fault>> {
    let files = |path: &Path| match Place::open(schema_root)? {
        Some(place) => place.read(path),
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

fn parse_with(name: &str, text: &str, files: Files<'_>) -> Result<Definition, Vec<Fault>> {
    let mut faults = Faults::of(name.to_owned());
    let source = Source {
        file: name.to_owned(),
        sha256: sha256_hex(text.as_bytes()),
    };
    let read = read::definition(text, source, files, &mut faults);
    faults.instead_of(read)
}

fn listed(place: &Place, dir: &Path, faults: &mut Vec<Fault>) -> Option<Vec<PathBuf>> {
    match place.markdown(dir) {
        Ok(files) => files,
        Err(error) => {
            faults.push(unreadable(dir, &error));
            // The directory is there: one further up is not meant instead.
            Some(Vec::new())
        }
    }
}

fn add(place: &Place, file: &Path, found: &mut Discovered) {
    let text = match place.read(file) {
        Ok(Some(text)) => text,
        // It was removed since the directory was listed.
        Ok(None) => return,
        Err(error) => {
            found.faults.push(unreadable(file, &error));
            return;
        }
    };
    let name = file.display().to_string();
    match parse_with(&name, &text, &|path| place.read(path)) {
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

fn duplicate(name: &str, second: &Definition, first: &Definition, text: &str) -> Fault {
    let is_name = |line: &str| line.starts_with("name:");
    let line = text.lines().position(is_name).map_or(0, |place| place + 1);
    Fault {
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

fn unreadable(path: &Path, error: &PlaceError) -> Fault {
    Fault::of_file(
        path.display().to_string(),
        error.to_string(),
        error.remedy(),
    )
}
