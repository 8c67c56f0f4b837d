//! How long what tasks leave for people is kept: the runs of their attempts, and their branches.
//!
//! Runs go by age, by number and by size, the oldest first, and an audit is told so. A branch goes only
//! when its task put it there and its commit is pushed or merged; any other stays, and is named.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use kapi_core::task_id::KernelTaskId;
use kapi_core::text::counted;
use kapi_git::id::CommitId;
use kapi_git::ref_name::{branch_ref, is_held, shown_name};
use kapi_git::rescue::batch::Refs;
use kapi_goal::record::project::Project;
use kapi_launch::branch::refuse_checked_out;
use kapi_launch::error::LaunchError;
use kapi_launch::look::size;
use kapi_launch::paths::{SandboxPaths, Sandboxes};
use kapi_launch::pruned;
use kapi_run::host_grants::HostGrants;
use kapi_run::repository_session::RepositorySession;
use kapi_sys::cancel::Cancel;

use super::held;
use super::leavings::{attempts, is_more_than_runs};
use crate::record::queue::Queue;
use crate::record::store::KernelStore;
use crate::rules::task::KernelTask;

/// Attempts that one survey looks at.
const LOOKED_AT_MAX: usize = 100_000;
/// What full names of branches begin with.
const HEADS: &str = "refs/heads/";
/// What the branches of tasks begin with.
const BRANCHES: &str = "kapi/";
/// Bytes of a mebibyte.
const MIB: u64 = 1 << 20;

/// What is kept at most.
#[derive(Debug, Clone, Copy, Default)]
pub struct RetentionLimits {
    /// Only what is of tasks that ended before this goes for its age, in milliseconds since the epoch.
    pub ended_before_ms: Option<i64>,
    /// Tasks whose runs are kept.
    pub tasks_max: Option<usize>,
    /// Bytes of runs.
    pub bytes_max: Option<u64>,
}

/// Something that a task left.
#[derive(Debug, Clone)]
pub struct TaskLeaving {
    /// The task.
    pub task: KernelTaskId,
    /// What it is.
    pub what: LeavingKind,
    /// The name of its sandbox, or of its branch.
    pub name: String,
    /// Where it is.
    pub path: PathBuf,
    /// Bytes on disk.
    pub bytes: u64,
    /// Whether it goes, and why or why not.
    pub verdict: LeavingVerdict,
}

/// Kinds of what tasks leave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeavingKind {
    /// The runs of an attempt: transcript and logs.
    Runs(SandboxPaths),
    /// A branch, at this commit.
    Branch(CommitId),
}

/// Whether something goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeavingVerdict {
    /// It goes, and why it may.
    Goes(String),
    /// It stays, and why.
    Stays(String),
}

/// What a task that has ended says of what it left.
struct EndedTask {
    ended_at_ms: i64,
    branch: Option<(String, String)>,
}

/// A branch of a task's work.
struct TaskBranch {
    task: KernelTaskId,
    /// Without `refs/heads/`; the whole name of one that is held back.
    name: String,
    tip: CommitId,
}

/// Whose leavings are looked at.
#[derive(Clone, Copy)]
pub struct Retention<'a> {
    /// What may be used of the host.
    pub grants: &'a HostGrants,
    /// The project.
    pub project: &'a Project<'a>,
    /// Where its queue is.
    pub store: &'a KernelStore,
    /// Where sandboxes are.
    pub sandboxes: &'a Sandboxes,
    /// The project's key.
    pub project_key: &'a str,
}

impl Retention<'_> {
    /// Looks at everything that tasks left that have ended, and says what goes.
    ///
    /// # Errors
    /// When the queue or the repository cannot be read.
    pub fn survey(&self, limits: &RetentionLimits) -> Result<Vec<TaskLeaving>, LaunchError> {
        let queue = Queue::open_in(self.project, self.store);
        let queue = queue.map_err(|error| LaunchError::failed(&error))?;
        let mut found = self.runs(&queue, limits)?;
        found.extend(self.branches(&queue, limits)?);
        Ok(found)
    }

    /// Removes what goes of these.
    ///
    /// # Errors
    /// When the disk refuses, or a branch is no longer where it was seen; what went before is gone.
    pub fn remove(&self, leavings: &[TaskLeaving]) -> Result<(), LaunchError> {
        let goes = |one: &&TaskLeaving| matches!(one.verdict, LeavingVerdict::Goes(_));
        let mut runs = Vec::new();
        let mut branches = BTreeMap::new();
        for one in leavings.iter().filter(goes) {
            match &one.what {
                LeavingKind::Runs(location) => runs.push(location),
                LeavingKind::Branch(tip) => {
                    drop(branches.insert(branch_ref(&one.name), tip.clone()));
                }
            }
        }
        pruned::remove(&self.sandboxes.state_dir, &runs)?;
        if branches.is_empty() {
            return Ok(());
        }
        let repo = self.repo()?;
        let refs = repo.repository.refs();
        let refs = refs.map_err(|error| LaunchError::failed(&error))?;
        let dropped = repo.repository.drop_refs(&refs, &branches);
        dropped.map_err(|error| LaunchError::failed(&error))
    }

    fn runs(
        &self,
        queue: &Queue<'_>,
        limits: &RetentionLimits,
    ) -> Result<Vec<TaskLeaving>, LaunchError> {
        let found = attempts(self.sandboxes, self.project_key, LOOKED_AT_MAX);
        let ended = ended(queue, found.keys().copied().collect())?;
        let mut of_tasks: Vec<(i64, KernelTaskId, Vec<SandboxPaths>)> = Vec::new();
        for (id, locations) in found {
            let Some(task) = ended.get(&id) else {
                continue;
            };
            let locations = locations.into_iter().map(|(_, location)| location);
            let bare: Vec<SandboxPaths> = locations
                .filter(|location| location.runs().is_dir() && !is_more_than_runs(location))
                .collect();
            if !bare.is_empty() {
                of_tasks.push((task.ended_at_ms, id, bare));
            }
        }
        // The newest stay.
        of_tasks.sort_by_key(|one| Reverse((one.0, one.1)));
        let (mut leavings, mut bytes) = (Vec::new(), 0_u64);
        for (nth, (ended_at_ms, id, locations)) in of_tasks.into_iter().enumerate() {
            for location in locations {
                let own = size(&location.dir());
                bytes = bytes.saturating_add(own);
                let verdict = limits.of_runs(ended_at_ms, nth, bytes);
                leavings.push(TaskLeaving {
                    task: id,
                    name: location.id().as_str().to_owned(),
                    path: location.runs(),
                    bytes: own,
                    verdict,
                    what: LeavingKind::Runs(location),
                });
            }
        }
        leavings.reverse();
        Ok(leavings)
    }

    fn branches(
        &self,
        queue: &Queue<'_>,
        limits: &RetentionLimits,
    ) -> Result<Vec<TaskLeaving>, LaunchError> {
        // Without a repository there are none.
        let Ok(repo) = self.repo() else {
            return Ok(Vec::new());
        };
        let repository = &repo.repository;
        let refs = repository.refs();
        let refs = refs.map_err(|error| LaunchError::failed(&error))?;
        let held = held::of_queue(self.project_key);
        let found = refs.0.iter();
        let found: Vec<TaskBranch> = found
            .filter_map(|(full, tip)| TaskBranch::of(full, tip, &held))
            .collect();
        let ended = ended(queue, found.iter().map(|one| one.task).collect())?;
        let of_ended = found.into_iter().filter_map(|one| {
            let task = ended.get(&one.task)?;
            one.is_put_by(task).then_some((one, task))
        });
        let own: Vec<(TaskBranch, &EndedTask)> = of_ended.collect();
        let commits: BTreeSet<CommitId> = own.iter().map(|(one, _)| one.tip.clone()).collect();
        let arrived = repository.arrived(&refs, &commits);
        let arrived = arrived.map_err(|error| LaunchError::failed(&error))?;
        let leavings = own.into_iter().map(|(one, task)| {
            let is_free = || refuse_checked_out(repository, &one.name, Path::new("")).is_ok();
            let is_recent = limits
                .ended_before_ms
                .is_some_and(|before| task.ended_at_ms >= before);
            let goes = |why: &str| LeavingVerdict::Goes(why.to_owned());
            let stays = |why: &str| LeavingVerdict::Stays(why.to_owned());
            let verdict = if one.is_given(task, &refs) {
                goes("its commit is on the branch of its task")
            } else if !arrived.contains(&one.tip) {
                stays("its commit is neither pushed nor merged")
            } else if !is_free() {
                stays("it is checked out")
            } else if is_recent {
                stays("its task ended recently")
            } else {
                goes("its commit is pushed or merged")
            };
            TaskLeaving {
                task: one.task,
                path: repository.common_dir().join(branch_ref(&one.name)),
                name: one.name,
                bytes: 0,
                what: LeavingKind::Branch(one.tip),
                verdict,
            }
        });
        Ok(leavings.collect())
    }

    fn repo(&self) -> Result<RepositorySession, LaunchError> {
        let root = self.project.layout.root();
        Ok(RepositorySession::open(self.grants, root, &Cancel::new())?)
    }
}

impl TaskBranch {
    /// Reads the full name of a ref; `held` begins those that are held back for this queue's tasks.
    fn of(full: &str, tip: &CommitId, held: &str) -> Option<Self> {
        let name = match full.strip_prefix(HEADS) {
            Some(name) => name,
            None if full.starts_with(held) => full,
            None => return None,
        };
        let task = task_of(shown_name(name).strip_prefix(BRANCHES)?)?;
        Some(Self {
            task,
            name: name.to_owned(),
            tip: tip.clone(),
        })
    }

    /// Tells whether its task put it where it is: one that somebody else has put there, or moved, is
    /// theirs, and what is held back is nobody else's.
    fn is_put_by(&self, task: &EndedTask) -> bool {
        let said = task.branch.as_ref();
        let is_said = |(branch, commit): &(String, String)| {
            *branch == self.name && commit == self.tip.as_str()
        };
        is_held(&self.name) || said.is_some_and(is_said)
    }

    /// Tells whether it is held back although its task has its own branch: a worker was killed between.
    fn is_given(&self, task: &EndedTask, refs: &Refs) -> bool {
        let is_there = |(branch, _): &(String, String)| {
            !is_held(branch) && refs.0.get(&branch_ref(branch)) == Some(&self.tip)
        };
        is_held(&self.name) && task.branch.as_ref().is_some_and(is_there)
    }
}

impl RetentionLimits {
    /// Decides about the runs of a task that so many newer ones come before; `bytes` are those of all
    /// newer ones and its own.
    fn of_runs(&self, ended_at_ms: i64, nth: usize, bytes: u64) -> LeavingVerdict {
        let goes = |why: String| LeavingVerdict::Goes(why);
        if self
            .ended_before_ms
            .is_some_and(|before| ended_at_ms < before)
        {
            return goes("its task ended before the time limit".to_owned());
        }
        if let Some(max) = self.tasks_max.filter(|max| nth >= *max) {
            return goes(format!(
                "the runs of {} are newer",
                counted(max as u64, "task")
            ));
        }
        if let Some(max) = self.bytes_max.filter(|max| bytes > *max) {
            return goes(format!("newer runs use up the {} MB for runs", max / MIB));
        }
        LeavingVerdict::Stays("within the limits".to_owned())
    }
}

/// Returns which of these tasks have ended, and what they say of what they left.
fn ended(
    queue: &Queue<'_>,
    ids: BTreeSet<KernelTaskId>,
) -> Result<BTreeMap<KernelTaskId, EndedTask>, LaunchError> {
    let mut found = BTreeMap::new();
    let mut take = |task: &KernelTask| {
        let Some(ended_at_ms) = task.ended_at_ms.filter(|_| task.state.is_ended()) else {
            return;
        };
        let work = task.report.as_ref().map(|report| &report.work);
        let branch = work.and_then(|work| Some((work.branch.clone()?, work.commit.clone()?)));
        let ended = EndedTask {
            ended_at_ms,
            branch,
        };
        found.insert(task.id, ended);
    };
    let known = queue.kernel();
    let (live, past): (BTreeSet<_>, BTreeSet<_>) =
        ids.into_iter().partition(|id| known.task(*id).is_some());
    live.iter()
        .filter_map(|id| known.task(*id))
        .for_each(&mut take);
    let visited = queue.history().visit(&past, &mut take);
    visited.map_err(|error| LaunchError::failed(&error))?;
    Ok(found)
}

/// Returns the task whose branch has a name: `task_7`, `nightly-task_7`, `task_7-18c`.
fn task_of(name: &str) -> Option<KernelTaskId> {
    let at = name.rfind("task_")?;
    let is_word = at == 0 || name[..at].ends_with('-');
    let id = name[at..].split('-').next().unwrap_or_default();
    KernelTaskId::parse(id).ok().filter(|_| is_word)
}

#[cfg(test)]
mod tests {
    use kapi_core::task_id::KernelTaskId;

    use super::{LeavingVerdict, RetentionLimits, task_of};

    #[test]
    fn the_task_of_a_branch_stands_in_its_name() {
        for (name, number) in [
            ("task_7", Some(7)),
            ("nightly-task_7", Some(7)),
            ("task_7-18c0a", Some(7)),
            ("mytask_7", None),
            ("task_x", None),
            ("other", None),
        ] {
            assert_eq!(task_of(name).map(KernelTaskId::number), number, "{name}");
        }
    }

    #[test]
    fn the_oldest_runs_go_by_age_number_and_size() {
        let limits = RetentionLimits {
            ended_before_ms: Some(100),
            tasks_max: Some(2),
            bytes_max: Some(1 << 20),
        };
        let goes = |ended_at_ms, nth, bytes| {
            matches!(
                limits.of_runs(ended_at_ms, nth, bytes),
                LeavingVerdict::Goes(_)
            )
        };
        assert!(!goes(100, 1, 1 << 20));
        assert!(goes(99, 0, 1));
        assert!(goes(200, 2, 1));
        assert!(goes(200, 0, (1 << 20) + 1));
        let none = RetentionLimits::default();
        let all = none.of_runs(0, usize::MAX, u64::MAX);
        assert!(matches!(all, LeavingVerdict::Stays(_)));
    }
}
