//! Which profiles a launch has: one of the person's, and whatever the project adds to narrow it.
//!
//! A file that an agent could have written is the project's, however it was named: it counts in
//! full only when the person trusts its content, by its hash, in their own configuration.

use std::fs;
use std::io::Read as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Component, Path, PathBuf};

use kapi_core::quote::shell_word;
use kapi_store::hash::sha256_hex;
use rustix::fs::OFlags;

use crate::error::Error;
use crate::profile::read::{self, ProfileOrigin};
use crate::profile::{ProfileFile, ProfileOwner, built_in};

/// Bytes of a profile that are read.
const FILE_BYTES_MAX: u64 = 256 * 1024;
/// Where a project keeps its own.
const IN_PROJECTS: &[&str] = &["agent-sandbox.yaml", ".kapsis/config.yaml"];
/// The profile a person may keep for every launch that names none.
const PERSONS_DEFAULT: &str = "default";

/// Where profiles are looked for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ProfileSearch<'a> {
    /// The person's home.
    pub(crate) home: &'a Path,
    /// The person's configuration file; profiles are in `profiles/` beside it.
    pub(crate) config_path: &'a Path,
    /// The project, a resolved path.
    pub(crate) project: &'a Path,
    /// The hashes of contents that the person trusts.
    pub(crate) trusted: &'a [String],
}

/// What a launch names.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ProfileNames<'a> {
    /// A file.
    File(&'a Path),
    /// A profile.
    Profile(&'a str),
    /// Nothing.
    Nothing,
}

/// The profiles of a launch.
#[derive(Debug, Clone)]
pub(crate) struct LaunchProfiles {
    /// The person's, or a built-in one.
    pub(crate) person: ProfileFile,
    /// The project's; they only narrow.
    pub(crate) project: Vec<ProfileFile>,
    /// What the person should know.
    pub(crate) notes: Vec<String>,
}

/// Finds and reads the profiles of a launch.
pub(crate) fn find(
    search: &ProfileSearch<'_>,
    named: ProfileNames<'_>,
) -> Result<LaunchProfiles, Error> {
    let (mut person, mut project, mut notes) = (None, Vec::new(), Vec::new());
    let mut seen: Vec<PathBuf> = Vec::new();
    if let ProfileNames::File(path) = named {
        let file = File::read(path)?
            .ok_or_else(|| Error::usage(format!("there is no file {}", path.display())))?;
        seen.push(file.real.clone());
        let profile = file.profile(search)?;
        match profile.owner {
            ProfileOwner::Person => {
                notes.push(format!("{}: sha256 {}", profile.location(), file.hash));
                person = Some(profile);
            }
            ProfileOwner::Project => project.push(profile),
        }
    }
    if let ProfileNames::Profile(name) = named {
        person = Some(by_name(search, name)?);
    }
    for location in IN_PROJECTS {
        let Some(file) = File::read(&search.project.join(location))? else {
            continue;
        };
        if seen.contains(&file.real) {
            continue;
        }
        let profile = file.profile(search)?;
        match profile.owner {
            ProfileOwner::Person if person.is_none() => {
                notes.push(format!(
                    "{} is used because you trust its content.",
                    profile.location()
                ));
                person = Some(profile);
            }
            ProfileOwner::Person => notes.push(format!(
                "{} is not used because you named another profile.",
                profile.location()
            )),
            ProfileOwner::Project => project.push(profile),
        }
    }
    let person = match person {
        Some(person) => person,
        None => by_default(search)?,
    };
    Ok(LaunchProfiles {
        person,
        project,
        notes,
    })
}

/// The content of a profile's file.
pub(crate) struct ProfileContent {
    /// Its text.
    pub(crate) text: String,
    /// The hash of it.
    pub(crate) hash: String,
}

/// Reads a profile's file as a launch does.
pub(crate) fn content(path: &Path) -> Result<ProfileContent, Error> {
    let file = File::read(path)?
        .ok_or_else(|| Error::usage(format!("there is no file {}", path.display())))?;
    Ok(ProfileContent {
        text: file.text,
        hash: file.hash,
    })
}

/// Returns a profile by its name: the person's of that name, or a built-in one.
pub(crate) fn by_name(search: &ProfileSearch<'_>, name: &str) -> Result<ProfileFile, Error> {
    let is_word = |c: char| c.is_alphanumeric() || "._- ".contains(c);
    let is_name = !name.starts_with('.') && !name.is_empty() && name.chars().all(is_word);
    if is_name && let Some(file) = File::read(&own(search, name))? {
        return file.profile(search);
    }
    match built_in::find(name) {
        Some(found) => built_in::read(found, search.home),
        None => {
            let names: Vec<&str> = built_in::ALL.iter().map(|profile| profile.name).collect();
            let text = format!("there is no profile {name:?}");
            Err(Error::usage(text).with_hint(format!(
                "available profiles: {}; your own are files in {}.",
                names.join(", "),
                own(search, "NAME").display()
            )))
        }
    }
}

fn by_default(search: &ProfileSearch<'_>) -> Result<ProfileFile, Error> {
    if let Some(file) = File::read(&own(search, PERSONS_DEFAULT))? {
        return file.profile(search);
    }
    by_name(search, built_in::DEFAULT)
}

/// Returns where the person's own profile of a name is.
fn own(search: &ProfileSearch<'_>, name: &str) -> PathBuf {
    let dir = search.config_path.parent().unwrap_or(search.config_path);
    dir.join("profiles").join(format!("{name}.yaml"))
}

/// A file and its content.
struct File {
    /// The path as it was named.
    path: PathBuf,
    /// The path without links.
    real: PathBuf,
    text: String,
    hash: String,
    /// Whether others than the person and root could have written it.
    is_others: bool,
}

impl File {
    /// Reads a file, if there is one.
    fn read(path: &Path) -> Result<Option<Self>, Error> {
        let failed =
            |what: &str| Error::usage(format!("failed to read {}: {what}", path.display()));
        // Not blocking: a pipe in a project must not hold a launch.
        let mut options = fs::OpenOptions::new();
        let flags = (OFlags::NONBLOCK | OFlags::CLOEXEC).bits();
        let flags = i32::try_from(flags).map_err(|_| failed("it could not be opened"))?;
        let mut handle = match options.read(true).custom_flags(flags).open(path) {
            Ok(handle) => handle,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(&error.to_string())),
        };
        let found = handle
            .metadata()
            .map_err(|error| failed(&error.to_string()))?;
        if !found.is_file() {
            return Err(failed("it is not a file"));
        }
        let mut text = String::new();
        (&mut handle)
            .take(FILE_BYTES_MAX + 1)
            .read_to_string(&mut text)
            .map_err(|error| failed(&error.to_string()))?;
        if u64::try_from(text.len()).is_ok_and(|count| count > FILE_BYTES_MAX) {
            return Err(failed("it is longer than 256 KiB"));
        }
        let real = fs::canonicalize(path).map_err(|error| failed(&error.to_string()))?;
        let own = rustix::process::geteuid().as_raw();
        Ok(Some(Self {
            path: path.to_path_buf(),
            real,
            hash: sha256_hex(text.as_bytes()),
            text,
            is_others: (found.uid() != own && found.uid() != 0) || found.mode() & 0o002 != 0,
        }))
    }

    /// Returns what it says, by whose word it is.
    fn profile(&self, search: &ProfileSearch<'_>) -> Result<ProfileFile, Error> {
        let is_trusted = search.trusted.contains(&self.hash);
        let is_reached =
            is_reached_by_agents(&self.path, search) || is_reached_by_agents(&self.real, search);
        if self.is_others && !is_reached {
            let text = format!("others can write {}", self.path.display());
            return Err(Error::usage(text).with_hint(
                "run `chmod go-w` on it and make sure you own it: it controls what \
                    runs may do.",
            ));
        }
        let owner = if is_reached && !is_trusted {
            ProfileOwner::Project
        } else {
            ProfileOwner::Person
        };
        let stem = self.path.file_stem().unwrap_or_default().to_string_lossy();
        let trust_hint = format!(
            "read the file; to trust it as it is now, run `kapi sandbox profile --trust {}`, or add \
             `trust = [\"{}\"]` under [launch] in {}, or keep it outside the project and name it with \
             `--config`.",
            shell_word(&self.path.display().to_string()),
            self.hash,
            search.config_path.display()
        );
        let location = ProfileOrigin {
            name: &stem,
            path: Some(&self.path),
            owner,
            home: search.home,
            trust_hint: &trust_hint,
        };
        read::read(&self.text, &location)
    }
}

/// Tells whether an agent's work can end up at a path: in the project, or below Kapi's own state.
fn is_reached_by_agents(path: &Path, search: &ProfileSearch<'_>) -> bool {
    let state = search.home.join(".ilchul");
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    // A link in the project is the project's, wherever it leads.
    let parent = absolute
        .parent()
        .and_then(|parent| fs::canonicalize(parent).ok());
    let linked = parent.map(|parent| parent.join(absolute.file_name().unwrap_or_default()));
    let real_state = fs::canonicalize(&state).unwrap_or_else(|_| state.clone());
    // What goes up is judged by where it ends, not by how it begins.
    let has_up = absolute
        .components()
        .any(|part| part == Component::ParentDir);
    let written = Some(absolute).filter(|_| !has_up);
    let mut locations = [written, linked].into_iter().flatten();
    locations.any(|location| {
        [search.project, state.as_path(), real_state.as_path()]
            .iter()
            .any(|dir| location.starts_with(dir))
    })
}
