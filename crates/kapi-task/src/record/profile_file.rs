//! Agent profiles as files: who an agent is, which program and model it is, and what it may use.
//!
//! Of profiles with one name the first of these counts: the nearest `.pi/agents` of the project,
//! `.claude/agents` of the project, the person's own, the shipped ones. A project's profile can
//! take tools away and can give none that its sandbox does not allow. Starts no agent.

mod read;
pub mod tool;

use std::path::{Path, PathBuf};

use kapi_settings::fault::{SettingsFault, nearest};

use crate::record::definition_file::directory::{DefinitionDirectory, upward};
use crate::record::profile_file::read::Dialect;
use crate::record::profile_file::tool::AgentTool;
use crate::record::shipped;

/// Where the specification keeps profiles: the nearest one upward, within the project.
pub const PI_AGENTS: &str = ".pi/agents";
/// Where Claude Code keeps profiles.
pub const CLAUDE_AGENTS: &str = ".claude/agents";
/// Where a person keeps profiles, below the directory of their configuration.
pub const OWN_AGENTS: &str = "agents";
/// Other names of shipped profiles.
pub const ALIASES: [(&str, &str); 2] = [("default", "sisyphus"), ("pi", "sisyphus")];

/// Who an agent is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentProfile {
    /// Its name in lower case.
    pub name: String,
    /// What it is for, in one line.
    pub description: String,
    /// The agent program; `None` for the one that the configuration names.
    pub backend: Option<String>,
    /// The model; `None` for the program's own choice.
    pub model: Option<String>,
    /// What it may use; `None` for everything.
    pub tools: Option<Vec<AgentTool>>,
    /// Whether it may change files. The sandbox holds it to that.
    pub access: Access,
    /// What it is told before its task.
    pub system_prompt: String,
    /// The file it came from, or what stands for it.
    pub source: String,
    /// Keys of another program that mean nothing here.
    pub ignored: Vec<String>,
}

/// Whether an agent may change files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// No: its workspace cannot be written to, by a shell command either.
    ReadOnly,
    /// Yes.
    Write,
}

/// The profiles that can be used.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AgentProfiles {
    /// One for each name, in the order of the names.
    pub list: Vec<AgentProfile>,
    /// What is wrong with others.
    pub faults: Vec<SettingsFault>,
}

/// A name that is no profile's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("find the agent profile {name:?}; available: {}", .known.join(", "))]
pub struct UnknownProfile {
    /// The name as it was given.
    pub name: String,
    /// The names there are.
    pub known: Vec<String>,
    /// The one that was probably meant.
    pub meant: Option<String>,
    /// What is wrong with the file that would have had it.
    pub fault: Option<Box<SettingsFault>>,
}

impl AgentProfiles {
    /// Returns the profile with a name: `oracle`, `@oracle`, in any case.
    ///
    /// # Errors
    /// When there is none. Another is never taken instead.
    pub fn find(&self, name: &str) -> Result<&AgentProfile, UnknownProfile> {
        let wanted = name.trim().trim_start_matches('@').to_lowercase();
        let named = |name: &str| self.list.iter().find(|profile| profile.name == name);
        let alias = || {
            let (_, meant) = ALIASES.iter().find(|(alias, _)| *alias == wanted)?;
            named(meant)
        };
        named(&wanted).or_else(alias).ok_or_else(|| {
            let names = self.list.iter().map(|profile| profile.name.as_str());
            let is_its = |fault: &&SettingsFault| {
                let stem = Path::new(&fault.file).file_stem();
                stem.is_some_and(|stem| *stem == *wanted)
            };
            UnknownProfile {
                name: name.to_owned(),
                known: names.clone().map(str::to_owned).collect(),
                meant: nearest(&wanted, names).map(str::to_owned),
                fault: self.faults.iter().find(is_its).cloned().map(Box::new),
            }
        })
    }
}

/// Returns the profiles of the project at `root`, as seen from `start`, a directory of it, with
/// those of a person whose configuration lies in `configuration`.
#[must_use]
pub fn discover(root: &Path, start: &Path, configuration: &Path) -> AgentProfiles {
    let mut found = AgentProfiles::default();
    if let Some(location) = opened(root, &mut found.faults) {
        let dirs = upward(root, start);
        for (name, dialect) in [(PI_AGENTS, Dialect::Pi), (CLAUDE_AGENTS, Dialect::Claude)] {
            // The nearest one hides those above.
            dirs.iter()
                .any(|dir| add_all(&location, &dir.join(name), dialect, &mut found));
        }
    }
    add_own(&configuration.join(OWN_AGENTS), &mut found);
    for file in shipped::PROFILES {
        match read::profile(file.path, file.text, Dialect::Pi) {
            Ok(profile) => add(profile, &mut found),
            Err(faults) => found.faults.extend(faults),
        }
    }
    found.list.sort_by(|left, right| left.name.cmp(&right.name));
    found
}

/// Adds a person's own profiles: their directory may lie anywhere, links in it lead nowhere else.
fn add_own(dir: &Path, found: &mut AgentProfiles) {
    let Some(location) = opened(dir, &mut found.faults) else {
        return;
    };
    let mut own = AgentProfiles::default();
    add_all(&location, Path::new("."), Dialect::Pi, &mut own);
    let absolute = |file: &str| dir.join(file).display().to_string();
    for mut fault in own.faults {
        fault.file = absolute(&fault.file);
        found.faults.push(fault);
    }
    for mut profile in own.list {
        profile.source = absolute(&profile.source);
        add(profile, found);
    }
}

fn opened(root: &Path, faults: &mut Vec<SettingsFault>) -> Option<DefinitionDirectory> {
    match DefinitionDirectory::open(root) {
        Ok(location) => location,
        Err(error) => {
            faults.push(error.fault(root));
            None
        }
    }
}

/// Adds the profiles of a directory; tells whether there is such a directory.
fn add_all(
    location: &DefinitionDirectory,
    dir: &Path,
    dialect: Dialect,
    found: &mut AgentProfiles,
) -> bool {
    let files: Vec<PathBuf> = match location.markdown(dir) {
        Ok(Some(files)) => files,
        Ok(None) => return false,
        Err(error) => {
            found.faults.push(error.fault(dir));
            return true;
        }
    };
    let mut names: Vec<(String, String)> = Vec::new();
    for file in files {
        let name = file.display().to_string();
        let name = name.strip_prefix("./").unwrap_or(&name).to_owned();
        let text = match location.read(&file) {
            Ok(Some(text)) => text,
            // It was removed since the directory was listed.
            Ok(None) => continue,
            Err(error) => {
                found.faults.push(error.fault(Path::new(&name)));
                continue;
            }
        };
        match read::profile(&name, &text, dialect) {
            Ok(profile) => {
                let first = names.iter().find(|(taken, _)| *taken == profile.name);
                if let Some((_, first)) = first {
                    found.faults.push(duplicate(&profile, first));
                    continue;
                }
                names.push((profile.name.clone(), name));
                add(profile, found);
            }
            Err(faults) => found.faults.extend(faults),
        }
    }
    true
}

/// What was found before holds over what is found now.
fn add(profile: AgentProfile, found: &mut AgentProfiles) {
    if found.list.iter().all(|known| known.name != profile.name) {
        found.list.push(profile);
    }
}

fn duplicate(second: &AgentProfile, first: &str) -> SettingsFault {
    SettingsFault {
        file: second.source.clone(),
        line: 0,
        key: Some("name".to_owned()),
        what: format!(
            "duplicate agent name: {} is also the agent of {first}",
            second.name
        ),
        remedy: "rename one of them; until then, Kapi uses the other file".to_owned(),
    }
}

#[cfg(test)]
mod tests;
