//! What a storm left behind: is everything there, once, in order?
//!
//! Looks at the log, the history, the files, and at what the workers wrote down of what they were
//! told (`said`: key, task, microseconds) and what they performed (`did`: task, fence).

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use kapi_core::task_id::KernelTaskId;
use kapi_fleet::client::FleetSettings;
use kapi_fleet::error::FleetError;
use kapi_fleet::log::NetLog;
use kapi_goal::record::project::Project;
use kapi_machine::logged::to_logged;
use kapi_store::audit::audit;
use kapi_store::layout::ProjectLayout;
use kapi_store::record::LogRecord;
use kapi_store::stream::LogStream;
use kapi_sys::clock::SystemClock;
use kapi_sys::disk::Disk as _;
use kapi_sys::real_disk::RealDisk;
use kapi_task::record::queue::Queue;
use kapi_task::record::store::KernelStore;
use kapi_task::rules::event::{KernelEvent, RetryCause};
use kapi_task::rules::task::End;
use kapi_task::rules::task_state::KernelTaskState;

use crate::oracle::{Oracle, OracleViolation};

/// Numbers of a storm in which every promise was kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StormCounts {
    /// Records of the log.
    pub records: u64,
    /// Attempts whose worker was lost after the launch, and before it.
    pub lost: (u64, u64),
    /// Attempts that were performed beyond one for each task.
    pub repeated: u64,
    /// How long the tasks of each group waited for their first worker, in milliseconds: the mean
    /// and the longest.
    pub waited_ms: BTreeMap<String, (u64, u64)>,
    /// How long the submits took in microseconds: the median, the 99th percentile, the longest.
    pub submit_micros: (u64, u64, u64),
}

/// What the log says of one task.
#[derive(Debug, Default)]
struct Trail {
    group: String,
    submitted_ms: i64,
    claimed_ms: Option<i64>,
    n_ends: u32,
}

type Trails = BTreeMap<KernelTaskId, Trail>;

pub(super) fn judge(
    root: &Path,
    n_tasks: u64,
    store: &KernelStore,
) -> Result<StormCounts, OracleViolation> {
    let dir = ProjectLayout::new(root.to_path_buf()).kernel_dir();
    let records = match store {
        KernelStore::Files => in_files(root, &dir)?,
        KernelStore::Fleet { settings, project } => on_cluster(settings, project)?,
    };
    let mut judged = StormCounts {
        records: records.len().try_into().unwrap_or(u64::MAX),
        lost: (0, 0),
        repeated: 0,
        waited_ms: BTreeMap::new(),
        submit_micros: (0, 0, 0),
    };
    let (trails, keys) = follow(&records, &mut judged)?;
    for (task, trail) in &trails {
        if trail.n_ends != 1 {
            let detail = format!("{task} ended {} times", trail.n_ends);
            return Err(OracleViolation::new(Oracle::Once, detail));
        }
    }
    let n_keys = u64::try_from(keys.len()).unwrap_or(u64::MAX);
    if n_keys != n_tasks || keys.len() != trails.len() {
        let n_trails = trails.len();
        return Err(lost(format!(
            "{n_keys} keys and {n_trails} tasks, {n_tasks} were wanted"
        )));
    }
    check_said(root, &keys, &mut judged)?;
    check_did(root, &trails, &mut judged)?;
    check_history(root, &trails, store)?;
    if matches!(store, KernelStore::Files) {
        check_files(&dir)?;
    }
    judged.waited_ms = waited(&trails);
    Ok(judged)
}

/// Returns the records of a log in files, each of which chains to the one before.
fn in_files(root: &Path, dir: &Path) -> Result<Vec<LogRecord>, OracleViolation> {
    let stream = LogStream {
        disk: &RealDisk,
        name: "kernel".to_owned(),
        dir: dir.to_path_buf(),
        anchor: root.to_path_buf(),
    };
    let audited = audit(&stream).map_err(|error| broken(&error.to_string()))?;
    match audited.faults.first() {
        Some(fault) => Err(broken(&format!("{fault}: {}", fault.fault))),
        None => Ok(audited.records),
    }
}

/// Returns the records of a log on a cluster, each of which chains to the one before; nothing that
/// was to travel lies about there.
fn on_cluster(settings: &FleetSettings, project: &str) -> Result<Vec<LogRecord>, OracleViolation> {
    let failed = |error: FleetError| broken(&error.to_string());
    let log = NetLog::open(settings.clone(), project, "kernel").map_err(failed)?;
    if let Some(name) = log.objects().names().map_err(failed)?.first() {
        let detail = format!("object {name} lies about");
        return Err(OracleViolation::new(Oracle::Ownership, detail));
    }
    Ok(log.load_all().map_err(failed)?.records)
}

/// Follows each task through the log.
fn follow(
    records: &[LogRecord],
    judged: &mut StormCounts,
) -> Result<(Trails, BTreeMap<String, KernelTaskId>), OracleViolation> {
    let mut trails = Trails::new();
    let mut keys = BTreeMap::new();
    for record in records {
        let logged = to_logged(record).map_err(|error| broken(&error.to_string()))?;
        match logged.event {
            KernelEvent::Submitted { task, request } => {
                if let Some(key) = &request.key
                    && let Some(other) = keys.insert(key.text.clone(), task)
                {
                    let detail = format!("{task} and {other} have one key");
                    return Err(OracleViolation::new(Oracle::Once, detail));
                }
                let trail = trails.entry(task).or_default();
                trail.group = request.origin.group();
                trail.submitted_ms = record.at_ms;
            }
            KernelEvent::Claimed { task, .. } => {
                let trail = trails.entry(task).or_default();
                trail.claimed_ms.get_or_insert(record.at_ms);
            }
            KernelEvent::Requeued {
                cause: RetryCause::Lost,
                ..
            } => judged.lost.0 += 1,
            KernelEvent::Requeued {
                cause: RetryCause::LostBefore,
                ..
            } => judged.lost.1 += 1,
            KernelEvent::Ended { task, report } => {
                if report.end != End::Completed {
                    let detail = format!("{task} did not complete: {:?}", report.end);
                    return Err(OracleViolation::new(Oracle::Convergence, detail));
                }
                trails.entry(task).or_default().n_ends += 1;
            }
            _ => {}
        }
    }
    Ok((trails, keys))
}

/// Checks that what workers were told is what the log says.
fn check_said(
    root: &Path,
    keys: &BTreeMap<String, KernelTaskId>,
    judged: &mut StormCounts,
) -> Result<(), OracleViolation> {
    let mut micros = Vec::new();
    for (key, rest) in pairs(root, "said")? {
        let mut words = rest.split(' ');
        let task = words.next().unwrap_or_default().to_owned();
        let reported = keys.get(&key).map(ToString::to_string);
        if reported.as_ref() != Some(&task) {
            return Err(lost(format!(
                "{key} was let in as {task}, the log has {reported:?}"
            )));
        }
        micros.extend(words.next().and_then(|word| word.parse::<u64>().ok()));
    }
    micros.sort_unstable();
    let at = |percent: usize| {
        let idx = micros.len() * percent / 100;
        micros
            .get(idx.min(micros.len().saturating_sub(1)))
            .copied()
            .unwrap_or(0)
    };
    judged.submit_micros = (at(50), at(99), at(100));
    Ok(())
}

/// Checks that every task was performed, and none twice under one lease.
fn check_did(
    root: &Path,
    trails: &Trails,
    judged: &mut StormCounts,
) -> Result<(), OracleViolation> {
    let did = pairs(root, "did")?;
    let leases: BTreeSet<&(String, String)> = did.iter().collect();
    if leases.len() != did.len() {
        let detail = "one task was performed twice under one lease";
        return Err(OracleViolation::new(Oracle::Once, detail));
    }
    let performed: BTreeSet<&str> = did.iter().map(|(task, _)| task.as_str()).collect();
    for task in trails.keys() {
        if !performed.contains(task.to_string().as_str()) {
            let detail = format!("{task} completed and was not performed");
            return Err(OracleViolation::new(Oracle::Intent, detail));
        }
    }
    judged.repeated = (did.len() - performed.len()).try_into().unwrap_or(u64::MAX);
    Ok(())
}

/// Checks that every ended task can still be looked up, and that none is left over.
fn check_history(root: &Path, trails: &Trails, store: &KernelStore) -> Result<(), OracleViolation> {
    let project = Project {
        disk: &RealDisk,
        clock: &SystemClock,
        layout: ProjectLayout::new(root.to_path_buf()),
        owner: "storm".to_owned(),
        home: None,
    };
    let queue = Queue::open_in(&project, store).map_err(|error| broken(&error.to_string()))?;
    let history = queue.history().last(trails.len(), None);
    let history = history.map_err(|error| broken(&error.to_string()))?;
    let kernel = queue.kernel();
    let completed = history.iter().chain(kernel.ended.values());
    let known: BTreeSet<KernelTaskId> = completed
        .filter(|task| task.state == KernelTaskState::Completed)
        .map(|task| task.id)
        .collect();
    if let Some(task) = trails.keys().find(|task| !known.contains(task)) {
        return Err(lost(format!(
            "{task} is neither in the fold nor in the history"
        )));
    }
    if kernel.tasks.is_empty() {
        Ok(())
    } else {
        let detail = format!("{} tasks are left over", kernel.tasks.len());
        Err(OracleViolation::new(Oracle::Convergence, detail))
    }
}

/// Checks that nothing lies about.
fn check_files(dir: &Path) -> Result<(), OracleViolation> {
    // A fold that was being written when its process was killed is replaced by the next.
    let known = [
        "events.jsonl",
        "history",
        "lock",
        "state.json",
        "state.json.tmp",
        "workers",
    ];
    let names = list(dir)?;
    let locks = list(&dir.join("workers"))?;
    let foreign = names.iter().find(|name| !known.contains(&name.as_str()));
    let foreign = foreign.or_else(|| locks.iter().find(|name| !name.ends_with(".lock")));
    match foreign {
        None => Ok(()),
        Some(name) => Err(OracleViolation::new(
            Oracle::Ownership,
            format!("{name} lies about"),
        )),
    }
}

fn waited(trails: &Trails) -> BTreeMap<String, (u64, u64)> {
    let mut waits: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for trail in trails.values() {
        let waited = trail.claimed_ms.unwrap_or(trail.submitted_ms) - trail.submitted_ms;
        let waited = u64::try_from(waited).unwrap_or(0);
        waits.entry(trail.group.clone()).or_default().push(waited);
    }
    let of = |waits: Vec<u64>| {
        let n = u64::try_from(waits.len()).unwrap_or(1).max(1);
        let longest = waits.iter().max().copied().unwrap_or(0);
        (waits.iter().sum::<u64>() / n, longest)
    };
    waits
        .into_iter()
        .map(|(group, it)| (group, of(it)))
        .collect()
}

/// Returns the first word of each line and the rest.
fn pairs(root: &Path, name: &str) -> Result<Vec<(String, String)>, OracleViolation> {
    let file: PathBuf = root.join(name);
    let bytes = RealDisk
        .read(&file, 0)
        .map_err(|error| broken(&error.to_string()))?;
    let text = String::from_utf8_lossy(&bytes.unwrap_or_default()).into_owned();
    let pairs = text.lines().filter_map(|line| line.split_once(' '));
    Ok(pairs
        .map(|(first, rest)| (first.to_owned(), rest.to_owned()))
        .collect())
}

fn list(dir: &Path) -> Result<Vec<String>, OracleViolation> {
    RealDisk
        .list(dir)
        .map_err(|error| broken(&error.to_string()))
}

fn broken(detail: &str) -> OracleViolation {
    OracleViolation::new(Oracle::Prefix, detail)
}

fn lost(detail: String) -> OracleViolation {
    OracleViolation::new(Oracle::Durability, detail)
}
