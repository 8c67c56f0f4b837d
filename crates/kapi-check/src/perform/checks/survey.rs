//! Looking through a working tree for what selection asks for.
//!
//! Only lists directories and reads small files that the table names. Links are not followed, and
//! what tools made or people keep as examples is passed over.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs;
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Component, Path};

use kapi_core::failure::Failure;
use kapi_run::failure;
use rustix::fs::OFlags;

use super::declared;
use crate::rules::checks::directory::Directory;
use crate::rules::checks::profile::CheckProfiles;

/// How many directories are looked at.
const DIRECTORIES_MAX: usize = 20_000;
/// How many directories below the beginning projects are looked for.
const DEPTH_MAX: usize = 8;
/// How many names of a directory are looked at.
const NAMES_MAX: usize = 10_000;
/// Bytes of a file that are read.
const FILE_BYTES_MAX: u64 = 256 << 10;
/// Directories that hold no project of the person's own: made by tools, taken over, or made up for
/// tests.
const PASSED_OVER: &[&str] = &[
    "node_modules",
    "bower_components",
    "target",
    "build",
    "dist",
    "out",
    "_build",
    "deps",
    "_deps",
    "vendor",
    "third_party",
    "venv",
    "testdata",
    "fixtures",
    "__fixtures__",
    "__pycache__",
    "Pods",
    "DerivedData",
    "zig-out",
];

/// What was found.
#[derive(Debug, Default)]
pub(super) struct ProjectSurvey {
    /// The directories that can matter.
    pub(super) directories: Vec<Directory>,
    /// What the person should know, as sentences.
    pub(super) notes: Vec<String>,
}

/// Looks through everything below `top`, and at the way to each of `locations` and everything below it,
/// whatever they are called.
pub(super) fn survey(
    profiles: &CheckProfiles,
    top: &Path,
    locations: &[&Path],
) -> Result<ProjectSurvey, Failure> {
    let mut walk = ProjectWalk {
        profiles,
        texts: profiles.texts(),
        top,
        seen: BTreeSet::new(),
        surveyed: ProjectSurvey::default(),
    };
    // First what is meant: there is a limit to what is looked at.
    for location in locations {
        for directory in location
            .ancestors()
            .take_while(|path| path.starts_with(top))
        {
            walk.look(directory)?;
        }
        walk.below(location)?;
    }
    walk.below(top)?;
    let mut surveyed = walk.surveyed;
    surveyed.notes.sort();
    surveyed.notes.dedup();
    Ok(surveyed)
}

/// Returns where a directory is below the top, with slashes.
pub(super) fn relative(top: &Path, directory: &Path) -> String {
    let below = directory.strip_prefix(top).unwrap_or(Path::new(""));
    let names = below.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_string_lossy().into_owned()),
        Component::Prefix(_) | Component::RootDir | Component::CurDir | Component::ParentDir => {
            None
        }
    });
    names.collect::<Vec<String>>().join("/")
}

struct ProjectWalk<'a> {
    profiles: &'a CheckProfiles,
    texts: Vec<String>,
    top: &'a Path,
    seen: BTreeSet<String>,
    surveyed: ProjectSurvey,
}

impl ProjectWalk<'_> {
    fn below(&mut self, begin: &Path) -> Result<(), Failure> {
        let mut waiting = VecDeque::from([(begin.to_path_buf(), 0)]);
        while let Some((path, depth)) = waiting.pop_front() {
            let below = self.look(&path)?;
            if depth == DEPTH_MAX {
                continue;
            }
            let children = below.iter().filter(|name| is_of_interest(name));
            let children = children.map(|name| path.join(name));
            // A repository in a repository is a project of somebody else.
            let own = children.filter(|child| !child.join(".git").exists());
            waiting.extend(own.map(|child| (child, depth + 1)));
        }
        Ok(())
    }

    /// Looks at one directory, unless it was seen, and returns the names of those in it.
    fn look(&mut self, path: &Path) -> Result<Vec<String>, Failure> {
        let at = relative(self.top, path);
        if self.seen.contains(&at) {
            return list(path).map(|(_, below)| below);
        }
        if self.seen.len() >= DIRECTORIES_MAX {
            self.note(format!(
                "Only {DIRECTORIES_MAX} directories were searched; narrow it with `--path`."
            ));
            return Ok(Vec::new());
        }
        let (names, below) = list(path)?;
        if names.len() >= NAMES_MAX {
            self.note(format!(
                "Only {NAMES_MAX} names in {} were searched.",
                path.display()
            ));
        }
        let mut directory = Directory {
            path: at.clone(),
            names,
            ..Directory::default()
        };
        self.seen.insert(at);
        if self.profiles.concerns(&directory) {
            self.read(path, &mut directory)?;
            self.surveyed.directories.push(directory);
        }
        Ok(below)
    }

    fn read(&mut self, path: &Path, directory: &mut Directory) -> Result<(), Failure> {
        let mut texts = BTreeMap::new();
        let wanted = self.texts.iter();
        for name in wanted.flat_map(|name| directory.matching(name)) {
            if let Some(text) = text(&path.join(name))? {
                texts.insert(name.to_owned(), text);
            }
        }
        for fault in declared::declare(&texts, directory) {
            self.note(format!("{}: {fault}.", path.display()));
        }
        directory.texts = texts;
        Ok(())
    }

    fn note(&mut self, note: String) {
        self.surveyed.notes.push(note);
    }
}

/// Tells whether projects are looked for in a directory of a name.
fn is_of_interest(name: &str) -> bool {
    !name.starts_with('.') && !PASSED_OVER.contains(&name)
}

/// Returns the names in a directory, and which of them are directories.
fn list(path: &Path) -> Result<(BTreeSet<String>, Vec<String>), Failure> {
    let failed = |error: &io::Error| failure::file("list", path, error);
    let entries = match fs::read_dir(path) {
        Ok(entries) => entries,
        // What cannot be read here cannot be read inside either.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            return Ok((BTreeSet::new(), Vec::new()));
        }
        Err(error) => return Err(failed(&error)),
    };
    let (mut names, mut below) = (BTreeSet::new(), Vec::new());
    for entry in entries.take(NAMES_MAX) {
        let entry = entry.map_err(|error| failed(&error))?;
        // A name that is no text is no name that the table has.
        let Ok(name) = entry.file_name().into_string() else {
            continue;
        };
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            below.push(name.clone());
        }
        names.insert(name);
    }
    below.sort();
    Ok((names, below))
}

/// Returns the beginning of a file; `None` of what is no file.
fn text(path: &Path) -> Result<Option<String>, Failure> {
    let flags = OFlags::NONBLOCK | OFlags::NOFOLLOW;
    let flags = i32::try_from(flags.bits()).unwrap_or_default();
    let mut options = fs::OpenOptions::new();
    let Ok(file) = options.read(true).custom_flags(flags).open(path) else {
        return Ok(None);
    };
    if !file.metadata().is_ok_and(|found| found.is_file()) {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX)
        .read_to_end(&mut bytes)
        .map_err(|error| failure::file("read", path, &error))?;
    Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
}
