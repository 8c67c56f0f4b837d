//! What may be left after a soak, and what not: processes, mounts, sandboxes, worktrees, branches, refs,
//! locks, control groups and temporary files.
//!
//! Whether the work itself is right is not known here.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::soak::machine::SoakMachine;

/// The most leavings of one kind that are told.
const TOLD_MAX: usize = 10;
/// Where the trees of control groups are.
const GROUPS: &str = "/sys/fs/cgroup";
/// Which word behind its name says when a process was started.
const START_AFTER_NAME: usize = 19;

/// Returns what is left and should not be; `tasks` and `launches` are all that there are, by id.
pub(super) fn faults(
    machine: &SoakMachine,
    tasks: &BTreeMap<String, Value>,
    launches: &BTreeMap<String, Value>,
) -> Vec<String> {
    let mut faults = Vec::new();
    let audit = machine.kapi(&["audit"]);
    if audit.code != 0 {
        let said = format!("{}{}", audit.stdout, audit.stderr);
        faults.push(format!("the audit finds: {said}"));
    }
    if let Err(why) = machine.git(&["fsck", "--no-dangling"]) {
        faults.push(format!("the repository is damaged: {why}"));
    }
    let processes = machine.processes().into_iter();
    let found = [
        (
            "process",
            processes
                .map(|(pid, words)| format!("{pid} {words}"))
                .collect(),
        ),
        ("mount", mounts(machine)),
        ("sandbox", sandboxes(machine)),
        ("worktree", worktrees(machine)),
        ("branch", branches(machine, tasks, launches)),
        ("ref", refs(machine, tasks, launches)),
        ("lock", locks(machine)),
        ("temporary file", temporary_files(machine)),
        ("control group", control_groups()),
    ];
    for (kind, left) in found {
        let told = left.iter().take(TOLD_MAX);
        faults.extend(told.map(|one| format!("a {kind} is left: {one}")));
        if left.len() > TOLD_MAX {
            faults.push(format!("{} of the kind {kind} are left", left.len()));
        }
    }
    faults
}

fn mounts(machine: &SoakMachine) -> Vec<String> {
    let root = format!("{}/", machine.root().display());
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let points = mounts.lines().filter_map(|line| line.split(' ').nth(1));
    let points = points.filter(|point| point.starts_with(&root));
    points.map(str::to_owned).collect()
}

/// Returns the sandboxes of tasks that hold more than the record of what agents did.
fn sandboxes(machine: &SoakMachine) -> Vec<String> {
    let all = below(&machine.home().join(".ilchul/sandboxes"));
    let all = all.iter().flat_map(|dir| below(dir));
    let is_left = |dir: &PathBuf| {
        let is_more = below(dir).iter().any(|entry| !entry.ends_with("runs"));
        name(dir).starts_with("task_") && is_more
    };
    all.filter(is_left).map(|path| shown(&path)).collect()
}

/// Returns the worktrees of launches and tasks, and git's records of those that are gone.
fn worktrees(machine: &SoakMachine) -> Vec<String> {
    let all = below(&machine.home().join(".ilchul/worktrees"));
    let all = all.iter().flat_map(|dir| below(dir));
    let is_left =
        |dir: &PathBuf| name(dir).starts_with("launch-") || name(dir).starts_with("task_");
    let mut left: Vec<String> = all.filter(is_left).map(|path| shown(&path)).collect();
    for record in below(&machine.project().join(".git/worktrees")) {
        let at = fs::read_to_string(record.join("gitdir")).unwrap_or_default();
        if !Path::new(at.trim_end()).exists() {
            left.push(format!("{} of one that is gone", record.display()));
        }
    }
    left
}

/// Returns the branches of launches that nobody asked for, and those of tasks that are not their work.
fn branches(
    machine: &SoakMachine,
    tasks: &BTreeMap<String, Value>,
    launches: &BTreeMap<String, Value>,
) -> Vec<String> {
    let of_launches = launches.values().map(|row| &row["branch"]);
    let of_tasks = tasks.values().map(|row| &row["work"]["branch"]);
    let known = of_launches.chain(of_tasks).filter_map(Value::as_str);
    let known: BTreeSet<&str> = known.collect();
    let names = names_of(launches);
    let mut left = ref_names(machine, "refs/heads/");
    left.retain(|name| {
        let own = name.strip_prefix("kapi/");
        let is_ours = name.starts_with("launch-") || own.is_some();
        is_ours && !known.contains(name.as_str()) && !own.is_some_and(|own| names.contains(own))
    });
    left
}

/// Returns Kapi's refs of tasks that have ended, and those that no launch calls its own any more.
fn refs(
    machine: &SoakMachine,
    tasks: &BTreeMap<String, Value>,
    launches: &BTreeMap<String, Value>,
) -> Vec<String> {
    let names = names_of(launches);
    let mut left = ref_names(machine, "refs/kapi/");
    left.retain(|name| {
        let owner = name.split('/').next().unwrap_or_default();
        let is_of_task = tasks.contains_key(owner.split('-').next().unwrap_or_default());
        is_of_task || (owner.starts_with("launch-") && !names.contains(owner))
    });
    left
}

/// Returns what launches call their refs, and their branches while another is in the way: until a sandbox
/// goes, that stays.
fn names_of(launches: &BTreeMap<String, Value>) -> BTreeSet<String> {
    let names = launches.values().filter_map(|row| {
        let record = Path::new(row["sandbox"].as_str()?).join("sandbox.json");
        let record: Value = serde_json::from_str(&fs::read_to_string(record).ok()?).ok()?;
        record["branch"]["refs"].as_str().map(str::to_owned)
    });
    names.collect()
}

fn ref_names(machine: &SoakMachine, prefix: &str) -> Vec<String> {
    let listed = machine.git(&["for-each-ref", "--format=%(refname)", prefix]);
    let listed = listed.unwrap_or_else(|why| format!("{prefix}{why}"));
    let names = listed.lines().filter_map(|line| line.strip_prefix(prefix));
    names.map(str::to_owned).collect()
}

/// Returns git's lock files: whoever made one removes it, or is dead.
fn locks(machine: &SoakMachine) -> Vec<String> {
    let mut left = Vec::new();
    walk(&machine.project().join(".git"), &mut |path| {
        if path
            .extension()
            .is_some_and(|extension| extension == "lock")
        {
            left.push(shown(path));
        }
    });
    left
}

fn temporary_files(machine: &SoakMachine) -> Vec<String> {
    let left = below(&machine.temporary());
    left.into_iter().map(|path| shown(&path)).collect()
}

/// Returns the control groups below our own whose owner is gone: the next sandbox removes those.
fn control_groups() -> Vec<String> {
    let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let dirs = own.lines().filter_map(|line| {
        let (_, tree) = line.split_once(':')?;
        let (controllers, path) = tree.split_once(':')?;
        let tree = if controllers.is_empty() {
            "unified"
        } else {
            controllers
        };
        Some(
            Path::new(GROUPS)
                .join(tree)
                .join(path.trim_start_matches('/')),
        )
    });
    let groups = dirs.flat_map(|dir| below(&dir));
    groups
        .filter(|group| is_abandoned(&name(group)))
        .map(|path| shown(&path))
        .collect()
}

/// Tells whether a control group is one of ours, which names its owner's number and start at the end, and
/// that process is gone.
fn is_abandoned(group: &str) -> bool {
    let owner = group
        .strip_prefix("kapi-")
        .and_then(|rest| rest.rsplit_once('.'));
    let Some((_, owner)) = owner else {
        return false;
    };
    let mut numbers = owner.split('-');
    let (pid, start) = (numbers.next().unwrap_or_default(), numbers.next());
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let after_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    after_name.split_whitespace().nth(START_AFTER_NAME) != start
}

/// Calls `look` for every file below a directory.
fn walk(dir: &Path, look: &mut impl FnMut(&Path)) {
    for entry in below(dir) {
        if entry.is_dir() && !entry.is_symlink() {
            walk(&entry, look);
        } else {
            look(&entry);
        }
    }
}

fn name(path: &Path) -> String {
    path.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

fn below(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}
