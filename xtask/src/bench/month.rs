//! Commands in a project after a month of work, beside the same after a tenth of it.
//!
//! Goals and launches are the shipped program's own, from the first command to the commit; tasks and
//! workflows are written by the code that records them. Whoever looks must not pay for all that was
//! ever done.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use super::comparison::compare;
use super::invocation::Invocation;
use super::kernel::past::Past;
use super::launcher::{Launcher, remove_all};
use super::table::{ComparisonTable, Quantity};
use super::{BenchDirectory, program, workflows};
use crate::output::talk;
use crate::tool::ToolCommand;

/// Rounds that count.
const ROUNDS: usize = 10;
/// What a month leaves.
const MONTH: History = History {
    n_goals: 2_000,
    n_workflows: 500,
    n_tasks: 20_000,
    n_launches: 300,
};
/// How much shorter the other history is.
const PART: usize = 10;
/// A command, and what it is called in the table.
const COMMANDS: [&[&str]; 8] = [
    &["status"],
    &["status", "--all"],
    &["inbox"],
    &["dashboard"],
    &["spend"],
    &["show", "1"],
    &["cleanup", "--dry-run"],
    &["audit"],
];
/// The verify command of every goal.
const VERIFY: &str = "test -s made.txt";
/// The file that every goal makes.
const WORK: &str = "command:echo made > made.txt";

/// How much was done in a project.
#[derive(Debug, Clone, Copy)]
struct History {
    n_goals: usize,
    n_workflows: usize,
    n_tasks: usize,
    n_launches: usize,
}

/// A project with its past, and the home it was worked on from.
struct PastProject {
    project: PathBuf,
    home: PathBuf,
}

/// Measures what people look at.
pub(super) fn commands(location: &BenchDirectory) -> anyhow::Result<ComparisonTable> {
    let tenth = History {
        n_goals: MONTH.n_goals / PART,
        n_workflows: MONTH.n_workflows / PART,
        n_tasks: MONTH.n_tasks / PART,
        n_launches: MONTH.n_launches / PART,
    };
    let long = PastProject::create(location, "month", MONTH)?;
    let short = PastProject::create(location, "tenth", tenth)?;
    let mut rows = Vec::new();
    for words in COMMANDS {
        let shown = format!("`kapi {}`", words.join(" "));
        let look = |past: &PastProject, which: &str| {
            let shown = format!("{shown}, {which}");
            let kapi = location.kapi.to_string_lossy();
            Invocation::new(&shown, &past.project, &kapi, words).at_home(&past.home)
        };
        let (ours, peer) = (look(&long, "a month"), look(&short, "a tenth of it"));
        rows.push(compare(ROUNDS, &ours, &peer)?);
    }
    let used = format!("{} and {}", long.size()?, short.size()?);
    long.clean(location)?;
    let left = long.size()?;
    for past in [&long, &short] {
        remove_all(&past.home)?;
    }
    Ok(ComparisonTable {
        title: "A month of work",
        note: format!(
            "The same commands in two projects: one with {} goals, {} workflows, {} tasks and {} launches, and one with a tenth of each. Goals and launches were run from their first command to their commit. What Kapi keeps in the project and in the person's home takes {used}; after `kapi cleanup` it is {left} in the first. `audit` reads every log, and `cleanup` every workspace that is left.",
            MONTH.n_goals, MONTH.n_workflows, MONTH.n_tasks, MONTH.n_launches
        ),
        quantity: Quantity::Time,
        rows,
    })
}

impl PastProject {
    fn create(location: &BenchDirectory, name: &str, history: History) -> anyhow::Result<Self> {
        let directory = location.scratch.join(name);
        let project = directory.join("project");
        program::make_project(&project)?;
        talk(&format!("Making the past of {name} …"));
        Past::create(&project, u64::try_from(history.n_tasks)?)?;
        workflows::fill(&project, history.n_workflows)?;
        let launcher = Launcher::new(location, &directory)?;
        for _ in 0..history.n_launches {
            launcher.launch(&project, &[])?;
        }
        let past = Self {
            project,
            home: launcher.home().to_path_buf(),
        };
        for number in 0..history.n_goals {
            let task = format!("Make the file, for the {number}th time");
            let goal = [
                "run", &task, "--agent", WORK, "--judge", "none", "--verify", VERIFY, "--yes",
            ];
            past.kapi(location, &goal)?;
        }
        Ok(past)
    }

    fn kapi(&self, location: &BenchDirectory, words: &[&str]) -> anyhow::Result<()> {
        let kapi = location.kapi.to_string_lossy();
        ToolCommand::new(&self.project, &kapi, words)
            .env("HOME", &self.home)
            .env("XDG_CONFIG_HOME", self.home.join(".config"))
            .read()?;
        Ok(())
    }

    fn clean(&self, location: &BenchDirectory) -> anyhow::Result<()> {
        self.kapi(location, &["cleanup", "--yes"])
    }

    /// Returns what it takes on disk, the person's own files aside.
    fn size(&self) -> anyhow::Result<String> {
        let in_project = self.project.join(".ilchul");
        let in_home = self.home.join(".ilchul");
        let bytes = disk_bytes(&in_project)? + disk_bytes(&in_home)?;
        Ok(format!("{} MiB", bytes >> 20))
    }
}

/// Returns how many bytes the files below a directory take on disk.
fn disk_bytes(directory: &Path) -> anyhow::Result<u64> {
    use std::os::unix::fs::MetadataExt as _;
    let mut bytes = 0;
    let mut open = vec![directory.to_path_buf()];
    while let Some(directory) = open.pop() {
        let listed =
            fs::read_dir(&directory).with_context(|| format!("list {}", directory.display()))?;
        for entry in listed {
            let entry = entry.with_context(|| format!("list {}", directory.display()))?;
            let found = entry.metadata().context("measure a file")?;
            bytes += found.blocks() * 512;
            if found.is_dir() {
                open.push(entry.path());
            }
        }
    }
    Ok(bytes)
}
