//! Where people install programs: the directories of `PATH`, and those that package managers use
//! without putting them there.
//!
//! Only reads the host, and starts nothing: what a manager's own program would say is read from
//! where it keeps it. Does not know which program is looked for.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::{env, fs};

/// How many entries of a directory with versions are looked at.
const VERSIONS_MAX: usize = 200;
/// What searching falls back to without a `PATH`.
const USUAL_PATH: &str = "/usr/local/bin:/usr/bin:/bin";
/// Bytes of npm's configuration that are read.
const NPMRC_BYTES_MAX: usize = 64 << 10;

/// A manager of several versions of a tool.
struct VersionManager {
    /// The variable that says where it is.
    variable: &'static str,
    /// Where it is otherwise, relative to the home.
    usual: &'static str,
    /// Its stand-ins, which find out at each start what they stand for.
    shims: Option<&'static str>,
    /// Where the programs themselves are; `*` is any name, the newest version first.
    programs: &'static [&'static str],
}

/// A stand-in asks for settings in a home that a sandbox does not show, so the programs themselves
/// come first.
const MANAGERS: &[VersionManager] = &[
    VersionManager {
        variable: "VOLTA_HOME",
        usual: ".volta",
        shims: Some("bin"),
        programs: &[
            "tools/image/packages/*/bin",
            "tools/image/packages/*/*/bin",
            "tools/image/node/*/bin",
        ],
    },
    VersionManager {
        variable: "ASDF_DATA_DIR",
        usual: ".asdf",
        shims: Some("shims"),
        programs: &["installs/*/*/bin"],
    },
    VersionManager {
        variable: "MISE_DATA_DIR",
        usual: ".local/share/mise",
        shims: Some("shims"),
        programs: &["installs/*/*/bin"],
    },
    VersionManager {
        variable: "NODENV_ROOT",
        usual: ".nodenv",
        shims: Some("shims"),
        programs: &["versions/*/bin"],
    },
    VersionManager {
        variable: "NVM_DIR",
        usual: ".nvm",
        shims: None,
        programs: &["versions/node/*/bin"],
    },
    VersionManager {
        variable: "FNM_DIR",
        usual: ".local/share/fnm",
        shims: None,
        programs: &["node-versions/*/installation/bin"],
    },
    VersionManager {
        variable: "FNM_DIR",
        usual: ".fnm",
        shims: None,
        programs: &["node-versions/*/installation/bin"],
    },
    VersionManager {
        variable: "N_PREFIX",
        usual: "n",
        shims: None,
        programs: &["bin"],
    },
];

/// Variables that name a prefix or a home of a package manager, and where its programs are in it.
const PREFIXES: &[(&str, &[&str])] = &[
    ("NPM_CONFIG_PREFIX", &["bin"]),
    ("npm_config_prefix", &["bin"]),
    ("PNPM_HOME", &["", "bin"]),
    ("BUN_INSTALL", &["bin"]),
    ("HOMEBREW_PREFIX", &["bin"]),
];

/// Places below the home; `*` is any name, the newest version first.
const BELOW_HOME: &[&str] = &[
    ".local/bin",
    "bin",
    ".npm-global/bin",
    ".npm-packages/bin",
    ".npm/bin",
    ".local/share/pnpm",
    ".local/share/pnpm/bin",
    ".yarn/bin",
    ".config/yarn/global/node_modules/.bin",
    ".bun/bin",
    ".claude/local/node_modules/.bin",
    ".linuxbrew/bin",
    ".nix-profile/bin",
    ".local/state/nix/profile/bin",
    "node/bin",
    "sdk/bin",
    "sdk/*/bin",
];

/// Places of the machine.
const OF_MACHINE: &[&str] = &[
    "/home/linuxbrew/.linuxbrew/bin",
    "/nix/var/nix/profiles/default/bin",
    "/run/current-system/sw/bin",
];

/// Returns the directories in which programs of this host are looked for, as a value of `PATH`:
/// those of `PATH` itself, and after them the known places that exist.
///
/// The stand-ins of a version manager come after the programs that they stand for.
#[must_use]
pub fn search_path(env: &BTreeMap<OsString, OsString>, home: &Path) -> OsString {
    let path = env
        .get(OsStr::new("PATH"))
        .cloned()
        .unwrap_or_else(|| OsString::from(USUAL_PATH));
    let managers: Vec<InstalledManager> = MANAGERS
        .iter()
        .map(|manager| InstalledManager::of(manager, env, home))
        .collect();
    let mut directories = Vec::new();
    for directory in env::split_paths(&path) {
        let standing = managers
            .iter()
            .find(|manager| manager.shims.as_ref() == Some(&directory));
        for program in standing.iter().flat_map(|manager| &manager.programs) {
            add(&mut directories, program.clone());
        }
        add(&mut directories, directory);
    }
    for place in known_places(env, home) {
        add(&mut directories, place);
    }
    for manager in managers {
        let all = manager.programs.into_iter().chain(manager.shims);
        for directory in all.filter(|directory| directory.is_dir()) {
            add(&mut directories, directory);
        }
    }
    env::join_paths(directories).unwrap_or(path)
}

fn add(to: &mut Vec<PathBuf>, directory: PathBuf) {
    if !to.contains(&directory) {
        to.push(directory);
    }
}

/// Where a version manager of this host keeps things.
struct InstalledManager {
    shims: Option<PathBuf>,
    programs: Vec<PathBuf>,
}

impl InstalledManager {
    fn of(manager: &VersionManager, env: &BTreeMap<OsString, OsString>, home: &Path) -> Self {
        let root = directory_of(env, manager.variable).unwrap_or_else(|| home.join(manager.usual));
        let programs = manager.programs.iter();
        Self {
            shims: manager.shims.map(|shims| root.join(shims)),
            programs: programs
                .flat_map(|pattern| expanded(&root, pattern))
                .collect(),
        }
    }
}

/// Returns the known places that exist, besides those of version managers.
fn known_places(env: &BTreeMap<OsString, OsString>, home: &Path) -> Vec<PathBuf> {
    let of_variables = PREFIXES.iter().filter_map(|(variable, below)| {
        let root = directory_of(env, variable)?;
        Some(below.iter().map(move |name| root.join(name)))
    });
    let of_npm = npm_prefix(home).map(|prefix| prefix.join("bin"));
    let below_home = BELOW_HOME
        .iter()
        .flat_map(|pattern| expanded(home, pattern));
    of_variables
        .flatten()
        .chain(of_npm)
        .chain(below_home)
        .chain(OF_MACHINE.iter().map(PathBuf::from))
        .filter(|place| place.is_dir())
        .collect()
}

/// Returns the absolute directory that a variable names.
fn directory_of(env: &BTreeMap<OsString, OsString>, variable: &str) -> Option<PathBuf> {
    let named = env.get(OsStr::new(variable)).map(PathBuf::from);
    named.filter(|path| path.is_absolute())
}

/// Returns the prefix of global packages that the person's npm is configured with.
fn npm_prefix(home: &Path) -> Option<PathBuf> {
    let text = fs::read(home.join(".npmrc")).ok()?;
    let text = text.get(..text.len().min(NPMRC_BYTES_MAX))?;
    let text = String::from_utf8_lossy(text);
    let mut values = text.lines().filter_map(|line| {
        let (key, value) = line.split_once('=')?;
        (key.trim() == "prefix").then(|| value.trim().trim_matches(['"', '\'']))
    });
    let value = values.next_back()?;
    let below = value
        .strip_prefix("~/")
        .or_else(|| value.strip_prefix("${HOME}/"));
    let prefix = below.map_or_else(|| PathBuf::from(value), |below| home.join(below));
    prefix.is_absolute().then_some(prefix)
}

/// Returns the directories that a pattern means, the newest version first.
fn expanded(root: &Path, pattern: &str) -> Vec<PathBuf> {
    let mut found = vec![root.to_path_buf()];
    for part in pattern.split('/') {
        found = if part == "*" {
            found.iter().flat_map(|path| versions(path)).collect()
        } else {
            found.iter().map(|path| path.join(part)).collect()
        };
    }
    found.retain(|path| path.is_dir());
    found
}

/// Returns the directories in a directory, the newest version first.
fn versions(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten();
    let mut names: Vec<String> = entries
        .take(VERSIONS_MAX)
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    names.sort_by(|one, other| newest_first(one, other));
    names.iter().map(|name| directory.join(name)).collect()
}

/// Orders names of versions; those that are none come last.
fn newest_first(one: &str, other: &str) -> Ordering {
    let numbers = |name: &str| -> Vec<u64> {
        name.split(|c: char| !c.is_ascii_digit())
            .filter_map(|part| part.parse().ok())
            .collect()
    };
    numbers(other)
        .cmp(&numbers(one))
        .then_with(|| one.cmp(other))
}

#[cfg(test)]
mod tests {
    use std::cmp::Ordering;

    use super::newest_first;

    #[test]
    fn versions_are_ordered_by_their_numbers() {
        for (newer, older) in [
            ("v22.1.0", "v9.11.2"),
            ("22.10.0", "22.9.1"),
            ("3.12.1", "3.12"),
            ("v20.0.0", "latest"),
        ] {
            assert_eq!(newest_first(newer, older), Ordering::Less, "{newer}");
            assert_eq!(newest_first(older, newer), Ordering::Greater, "{newer}");
        }
    }
}
