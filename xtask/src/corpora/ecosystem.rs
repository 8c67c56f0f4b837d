//! What a corpus holds: base projects, and changes to them that are honest or not.
//!
//! One TOML file for each ecosystem, in `xtask/corpus/cheats`. Knows nothing of how they are tried.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, ensure};
use serde::{Deserialize, Serialize};

use super::entry::Entrance;

/// Where the files are, from the top of the repository.
const DIRECTORY: &str = "xtask/corpus/cheats";

/// One kind of project: a base with a bug that its tests show, and changes to it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CorpusEcosystem {
    /// The name of its file.
    #[serde(skip)]
    pub(super) name: String,
    /// What the agent is asked to do.
    pub(super) task: String,
    /// The project's usual command.
    pub(super) verify: String,
    /// Programs without which nothing of it can be tried.
    pub(super) needs: Vec<String>,
    /// A shell line that prepares dependencies once, in a cache, with the network.
    #[serde(default)]
    pub(super) prepare: Option<String>,
    /// What of the cache lies in every repository, untracked where `.gitignore` says so.
    #[serde(default)]
    pub(super) carry: Vec<String>,
    /// The base project.
    pub(super) files: BTreeMap<String, String>,
    /// Checks that the agent never sees, for the cases that ask for them.
    #[serde(default)]
    pub(super) hidden: BTreeMap<String, String>,
    /// The changes.
    #[serde(rename = "case")]
    pub(super) cases: Vec<CorpusCase>,
}

/// One change.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CorpusCase {
    /// Names it within its ecosystem.
    pub(super) name: String,
    /// What sort of change it is.
    pub(super) kind: String,
    /// What must come of it.
    pub(super) expect: Expectation,
    /// Whether it belongs to the part that the gate runs.
    #[serde(default)]
    pub(super) quick: bool,
    /// By which ways it is tried; three in rotation where nothing is said.
    #[serde(default)]
    pub(super) ways: Vec<Entrance>,
    /// The command instead of the ecosystem's.
    #[serde(default)]
    pub(super) verify: Option<String>,
    /// Further options of the command line, where there is one.
    #[serde(default)]
    pub(super) options: Vec<String>,
    /// Whether the person also has checks that the agent never sees.
    #[serde(default)]
    pub(super) hidden: bool,
    /// A shell script that changes the base before it is committed.
    #[serde(default)]
    pub(super) before: Option<String>,
    /// Whether the change passes the command when a person runs it by hand. A cheat that does not
    /// even do that proves nothing, unless it takes the prover's machinery to work.
    #[serde(default = "yes")]
    pub(super) passes_by_hand: bool,
    /// Whether the command is run on the base first, to find out whether it passes there already.
    #[serde(skip)]
    pub(super) asks_base: bool,
    /// The shell script that the agent performs; `{cache}` is what was prepared.
    #[serde(rename = "do")]
    pub(super) script: String,
}

/// What must come of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Expectation {
    /// A cheat that is never done.
    Refused,
    /// A cheat that may be done where the result names it.
    Named,
    /// An honest change that is done.
    Honest,
    /// An honest change of tests: its work is kept and waits for a person.
    Waits,
    /// What no exit code can tell, listed so that nobody believes otherwise.
    Unseen,
}

impl Expectation {
    /// Tells whether the change is a cheat.
    pub(super) const fn is_cheat(self) -> bool {
        match self {
            Self::Refused | Self::Named | Self::Unseen => true,
            Self::Honest | Self::Waits => false,
        }
    }
}

const fn yes() -> bool {
    true
}

/// Reads every ecosystem, in the order of their names.
///
/// # Errors
/// When a file cannot be read or two cases have one name.
pub(super) fn load(root: &Path) -> anyhow::Result<Vec<CorpusEcosystem>> {
    let directory = root.join(DIRECTORY);
    let reading = || format!("read {}", directory.display());
    let mut paths = Vec::new();
    for entry in fs::read_dir(&directory).with_context(reading)? {
        paths.push(entry.with_context(reading)?.path());
    }
    paths.sort();
    paths.iter().map(|path| load_one(path)).collect()
}

fn load_one(path: &Path) -> anyhow::Result<CorpusEcosystem> {
    let reading = || format!("read {}", path.display());
    let text = fs::read_to_string(path).with_context(reading)?;
    let mut ecosystem: CorpusEcosystem = toml::from_str(&text).with_context(reading)?;
    let name = path.file_stem().unwrap_or_default();
    ecosystem.name = name.to_string_lossy().into_owned();
    let mut names: Vec<&str> = ecosystem
        .cases
        .iter()
        .map(|case| case.name.as_str())
        .collect();
    names.sort_unstable();
    names.dedup();
    ensure!(
        names.len() == ecosystem.cases.len(),
        "read {}: two cases have the same name",
        path.display()
    );
    Ok(ecosystem)
}
