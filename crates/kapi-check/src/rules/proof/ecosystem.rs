//! The form of the table of ecosystems: where each keeps its tests, what steers a run, what it needs.
//!
//! The table itself is `ecosystems.toml`, where each key is explained. Reading it is the caller's
//! business: nothing here knows its notation, and nothing here looks at a disk.

use std::collections::BTreeMap;

use serde::Deserialize;

/// The table that comes with Kapi.
pub const TABLE: &str = include_str!("ecosystems.toml");

/// The whole table, as it is written.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EcosystemTable {
    /// Every ecosystem; a project may be of several.
    #[serde(rename = "ecosystem")]
    pub all: Vec<ProjectEcosystem>,
}

/// One ecosystem.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ProjectEcosystem {
    /// Its name.
    pub id: String,
    /// Whether it concerns every project.
    pub always: bool,
    /// Files that make their directory a project.
    pub markers: Vec<String>,
    /// Files that show that it is there at all.
    pub sources: Vec<String>,
    /// Test files and what tests read.
    pub tests: Vec<String>,
    /// Files among these that no test run reads.
    pub not_tests: Vec<String>,
    /// Files that steer a run.
    pub steering: Vec<String>,
    /// Files that steer by some of their keys.
    pub steering_keys: Vec<SteeringKeys>,
    /// Files that steer by some of their lines.
    pub steering_lines: Vec<SteeringLines>,
    /// What stands before a runner or a module that a runner uses.
    pub shadows: Vec<String>,
    /// Directories of the project that come first on `PATH`.
    pub path: Vec<String>,
    /// Directories of the project with what was installed.
    pub dependencies: Vec<String>,
    /// Directories and files of the project with what was built.
    pub output: Vec<String>,
    /// Files among the project's own sources that installing it writes.
    pub installed: Vec<InstalledFiles>,
    /// Those of the output that may be kept between Kapi's own runs.
    pub reusable: Vec<String>,
    /// What was downloaded before.
    pub caches: Vec<Location>,
    /// Where tool chains live.
    pub homes: Vec<Location>,
    /// Files that hold secrets.
    pub credentials: Vec<String>,
    /// How dependencies are installed, by lock file.
    pub prepare: Vec<Prepare>,
    /// Directories whose lock files the checks are seldom installed from.
    pub aside: Vec<String>,
    /// Variables that keep tools from waiting for a network.
    pub offline: BTreeMap<String, String>,
}

/// A file that steers a run by some of its keys only.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SteeringKeys {
    /// Which file: a pattern.
    pub file: String,
    /// The keys: patterns of `/`-separated paths; a key stands for all below it.
    pub keys: Vec<String>,
}

/// A file that steers a run by some of its lines only.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SteeringLines {
    /// Which file: a pattern.
    pub file: String,
    /// The lines, without blanks around them: patterns in which `*` is anything.
    pub lines: Vec<String>,
}

/// Files that installing a project writes among its sources, where git ignores them.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InstalledFiles {
    /// Which: patterns of names.
    pub files: Vec<String>,
    /// Sources that they are out of date with once these change: patterns of names.
    #[serde(default)]
    pub unless: Vec<String>,
}

/// Where a cache or the home of a tool chain lies.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Location {
    /// Its path below the person's home.
    pub home: Option<String>,
    /// Its absolute path; exactly one of the two is there.
    pub system: Option<String>,
    /// The variable that moves it.
    pub variable: Option<String>,
    /// Where it lies below what the variable says; the variable itself, if nothing is said.
    pub below: Option<String>,
}

/// How dependencies are installed as a lock file says.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prepare {
    /// The lock file: a pattern.
    pub lock: String,
    /// The shell line, run beside the lock file, that brings it into step with its manifest; nothing
    /// where a person writes the file.
    pub relock: Option<String>,
    /// The shell line, run beside the lock file; `{lock}` is the file's name.
    pub run: String,
    /// Shell lines by which the ecosystem's own client says which registries it asks.
    pub registries: Vec<String>,
}

impl EcosystemTable {
    /// Returns an ecosystem by its name.
    #[must_use]
    pub fn get(&self, id: &str) -> Option<&ProjectEcosystem> {
        self.all.iter().find(|one| one.id == id)
    }
}

impl ProjectEcosystem {
    /// Returns what was downloaded before, below the home, where nothing moved it.
    pub fn caches_below_home(&self) -> impl Iterator<Item = &str> {
        self.caches.iter().filter_map(|cache| cache.home.as_deref())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{EcosystemTable, Location, TABLE};

    fn table() -> EcosystemTable {
        toml::from_str(TABLE).unwrap()
    }

    #[test]
    fn every_ecosystem_is_there_once() {
        let table = table();
        let ids: BTreeSet<&str> = table.all.iter().map(|one| one.id.as_str()).collect();
        assert_eq!(ids.len(), table.all.len());
        for id in [
            "python", "node", "deno", "rust", "go", "jvm", "c", "ruby", "php", "elixir", "erlang",
            "dotnet", "swift", "zig", "lua", "shell", "perl", "tools", "generic",
        ] {
            assert!(ids.contains(id), "{id}");
        }
    }

    #[test]
    fn a_location_is_below_the_home_or_absolute() {
        for ecosystem in table().all {
            for location in ecosystem.caches.iter().chain(&ecosystem.homes) {
                let Location {
                    home,
                    system,
                    below,
                    variable,
                } = location;
                assert!(home.is_some() != system.is_some(), "{location:?}");
                assert!(
                    home.iter().all(|path| !path.starts_with('/')),
                    "{location:?}"
                );
                assert!(
                    system.iter().all(|path| path.starts_with('/')),
                    "{location:?}"
                );
                assert!(below.is_none() || variable.is_some(), "{location:?}");
            }
        }
    }

    #[test]
    fn what_may_be_kept_is_output() {
        for ecosystem in table().all {
            for kept in &ecosystem.reusable {
                assert!(ecosystem.output.contains(kept), "{}: {kept}", ecosystem.id);
            }
        }
    }

    #[test]
    fn no_registry_is_written_down() {
        let names_host = |line: &String| {
            let mut behind = line.split("://").skip(1);
            behind.any(|rest| rest.starts_with(char::is_alphanumeric))
        };
        let table = table();
        for prepare in table.all.iter().flat_map(|one| &one.prepare) {
            let mut lines = prepare.registries.iter().chain([&prepare.run]);
            assert!(!lines.any(names_host), "{prepare:?}");
        }
    }
}
