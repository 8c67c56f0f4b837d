//! Effects of a workflow: what should be under way now, as data that says everything needed.
//!
//! [`next`] looks at nothing but the state. What is in flight already is part of its answer, so that
//! after a crash the same effects are asked for under the same ids.

pub mod combine;

use kapi_check::rules::measure::Measurement;
use kapi_check::rules::proof::policy::CheckPolicy;
use kapi_core::id::{EffectId, GoalId};
use kapi_core::integration_branch::{CheckoutRule, IntegrationBranch};
use kapi_core::isolation::{NetworkMode, SandboxLevel};
use kapi_core::text::{agent_name, short_id};
use kapi_core::workflow_status::WorkflowStatus;
use kapi_goal::rules::budget::Budget;
use kapi_goal::rules::plan::task::PlanTaskId;

use crate::rules::branch::BranchType;
use crate::rules::effect::combine::CombineStep;
use crate::rules::role::RoleSpec;
use crate::rules::state::Workflow;

/// An intent to touch the world, performed under its id; repeating it is safe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkflowEffect {
    /// Its id within the workflow.
    pub id: EffectId,
    /// The workflow it belongs to.
    pub workflow: GoalId,
    /// What to do.
    pub action: WorkflowAction,
}

/// What an effect does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorkflowAction {
    /// Ask an agent one question; it reads and changes nothing.
    Ask(Box<AgentQuestion>),
    /// Make the workflow's branch at the base, and a worktree of it, and see what the checks say there.
    Prepare {
        /// The branch.
        branch: String,
        /// The commit.
        base: String,
        /// What is to hold in the end, on the base.
        checks: Box<Verification>,
    },
    /// Drive a goal to its rest.
    Work(Box<GoalWork>),
    /// Put a proved commit on the workflow's branch.
    Land(Box<WorkflowLanding>),
    /// Run commands on a clean checkout of a commit.
    Verify(Box<Verification>),
    /// Move the integration branch.
    Advance(Box<Advancing>),
    /// Have an agent change the workflow's worktree, and make a commit of what it left.
    Propose(Box<Proposal>),
    /// Apply a change to another commit than the one that it was made on, on no branch.
    Reapply(Box<Reapplication>),
    /// Measure a commit, each sample on a clean checkout of its own.
    Measure(Box<Measurement>),
    /// Put the branch and its worktree to a commit, and prove that they are there.
    Restore(Box<Restoration>),
    /// Make a branch for each independent part of what is on the workflow's branch.
    Split(Box<Split>),
    /// Take one step of bringing the work of several together.
    Combine(Box<CombineStep>),
}

/// What an effect uses up while it is performed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EffectResource {
    /// A model, metered by the effect itself.
    Model,
    /// A goal, which keeps its own account.
    Goal,
    /// Neither: git and checks cost no tokens.
    Nothing,
}

/// How many effects of a kind may be under way at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EffectSlots {
    /// Any number.
    Any,
    /// As many as the terms allow jobs.
    Jobs,
    /// One: each begins where the one before it ended.
    One,
}

impl WorkflowAction {
    /// Returns what it uses.
    #[must_use]
    pub const fn uses(&self) -> EffectResource {
        match self {
            Self::Ask(_) | Self::Propose(_) => EffectResource::Model,
            Self::Work(_) => EffectResource::Goal,
            Self::Prepare { .. }
            | Self::Land(_)
            | Self::Verify(_)
            | Self::Advance(_)
            | Self::Reapply(_)
            | Self::Measure(_)
            | Self::Restore(_)
            | Self::Split(_)
            | Self::Combine(_) => EffectResource::Nothing,
        }
    }

    /// Returns how many of its kind may be under way at once.
    #[must_use]
    pub const fn locations(&self) -> EffectSlots {
        match self {
            Self::Work(_) => EffectSlots::Jobs,
            Self::Land(_)
            | Self::Advance(_)
            | Self::Reapply(_)
            | Self::Measure(_)
            | Self::Restore(_)
            | Self::Combine(_) => EffectSlots::One,
            // Each has a workspace of its own.
            Self::Propose(_)
            | Self::Ask(_)
            | Self::Prepare { .. }
            | Self::Verify(_)
            | Self::Split(_) => EffectSlots::Any,
        }
    }

    /// Says what it does, in a few words.
    #[must_use]
    pub fn words(&self) -> String {
        match self {
            Self::Ask(question) => {
                let agent = agent_name(&question.agent);
                format!("asking {agent} {}", question.role.asked)
            }
            Self::Prepare { branch, .. } => format!("creating branch {branch}"),
            Self::Work(work) if work.attempt > 1 => format!(
                "{}: a goal is working on it, attempt {}: {}",
                work.task, work.attempt, work.title
            ),
            Self::Work(work) => format!("{}: a goal is working on it: {}", work.task, work.title),
            Self::Land(landing) => {
                format!("{}: landing {}", landing.task, short_id(&landing.commit))
            }
            Self::Verify(asked) if asked.commit == asked.base => {
                format!("verifying the base at {}", short_id(&asked.commit))
            }
            Self::Verify(asked) => {
                format!("verifying the combined work at {}", short_id(&asked.commit))
            }
            Self::Advance(step) => format!("moving {} to {}", step.target, short_id(&step.to)),
            Self::Propose(proposal) => {
                let question = &proposal.question;
                let agent = agent_name(&question.agent);
                format!("asking {agent} {}", question.role.asked)
            }
            Self::Reapply(wanted) => {
                let (commit, head) = (short_id(&wanted.commit), short_id(&wanted.head));
                format!("applying {commit} to {head}")
            }
            Self::Measure(wanted) => {
                let on = wanted.held_back.as_ref();
                let on = on.map_or("", |_| " on the held-back inputs");
                format!("measuring {}{on}", short_id(&wanted.commit))
            }
            Self::Restore(wanted) => match &wanted.keep {
                Some(keep) => format!("keeping {}", short_id(&keep.commit)),
                None => format!("restoring the worktree to {}", short_id(&wanted.head)),
            },
            Self::Split(wanted) => {
                let head = short_id(&wanted.head);
                format!("splitting {head} into independent branches")
            }
            Self::Combine(step) => step.words(),
        }
    }

    /// Returns the task that a worker is given with it.
    #[must_use]
    pub fn worker_task(&self) -> Option<&PlanTaskId> {
        if let Self::Work(work) = self {
            Some(&work.task)
        } else {
            None
        }
    }
}

/// One question to an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentQuestion {
    /// In which role it is asked.
    pub role: &'static RoleSpec,
    /// The how many-th question in this role it is, from 1: a scripted agent answers by it.
    pub ordinal: u32,
    /// The agent.
    pub agent: String,
    /// The whole prompt, guidance apart.
    pub prompt: String,
    /// The documents that go before it, see [`crate::rules::guidance`].
    pub guidance: Vec<&'static str>,
    /// The commit it reads; `None` where there is no repository.
    pub commit: Option<String>,
    /// The commit that the change to read begins after, for a review.
    pub since: Option<String>,
    /// Milliseconds it may take.
    pub deadline_ms: u64,
    /// The isolation.
    pub sandbox: SandboxLevel,
    /// What it can reach.
    pub network: NetworkMode,
}

/// One goal of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GoalWork {
    /// The task.
    pub task: PlanTaskId,
    /// The try at it, from 1; another try is another goal.
    pub attempt: u32,
    /// The goal that is there already, to go on with.
    pub goal: Option<GoalId>,
    /// A few words for the goal's name.
    pub title: String,
    /// What the agent is to do.
    pub intent: String,
    /// What must hold.
    pub criteria: String,
    /// The commands that must pass.
    pub verify: Vec<String>,
    /// The commit it starts from.
    pub base: String,
    /// What the goal may use: the terms' limits, and no more than was set aside for it of what was
    /// left of the workflow's when it was set to work.
    pub budget: Budget,
    /// What the goal's branch begins with.
    pub branch_type: BranchType,
    /// What its checks may be.
    pub checks: CheckPolicy,
    /// Documents that the agent is given.
    pub guidance: Vec<&'static str>,
}

/// One landing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkflowLanding {
    /// The task.
    pub task: PlanTaskId,
    /// Its goal, whose own branch and worktree have served their purpose then.
    pub goal: Option<GoalId>,
    /// The proved commit: one commit on `base`.
    pub commit: String,
    /// What it was made on.
    pub base: String,
    /// The paths that it may change; empty where it may change any.
    pub within: Vec<String>,
    /// The branch.
    pub branch: String,
    /// Its worktree.
    pub worktree: String,
    /// Where the branch is.
    pub head: String,
    /// The message of the commit, where one has to be made.
    pub message: String,
    /// Author and committer time of such a commit, in seconds since the epoch.
    pub at_s: i64,
}

/// One step of the integration branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Advancing {
    /// The branch.
    pub target: IntegrationBranch,
    /// Where it has to be.
    pub from: String,
    /// Where it goes: a proved commit that goes on from there.
    pub to: String,
    /// What the approval says of a checkout of it.
    pub checkout: CheckoutRule,
}

/// One verification of a commit as a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verification {
    /// The commit.
    pub commit: String,
    /// The commit from which protected files are restored.
    pub base: String,
    /// The shell commands.
    pub commands: Vec<String>,
    /// The protected pathspecs.
    pub protect: Vec<String>,
    /// Milliseconds one command may take.
    pub timeout_ms: u64,
    /// The isolation.
    pub sandbox: SandboxLevel,
}

/// One turn of an agent that changes the workflow's worktree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proposal {
    /// What it is asked; its commit is where the branch is, and the parent of what it makes.
    pub question: AgentQuestion,
    /// The branch.
    pub branch: String,
    /// The commit at which the branch began.
    pub first: String,
    /// Files that it cannot write.
    pub sealed: Vec<String>,
    /// The message of the commit.
    pub message: String,
    /// Author and committer time, in seconds since the epoch.
    pub at_s: i64,
    /// Its place among those that propose at once; the first works in the workflow's own worktree.
    pub place: u32,
}

/// A change that is applied to another commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reapplication {
    /// The change: one commit on `parent`.
    pub commit: String,
    /// What it was made on.
    pub parent: String,
    /// What it is applied to, which has `parent` in its history.
    pub head: String,
    /// The branch, which stays where it is.
    pub branch: String,
    /// What names the commit that is made.
    pub name: String,
    /// Its message.
    pub message: String,
    /// Author and committer time, in seconds since the epoch.
    pub at_s: i64,
}

/// Where a branch and its worktree belong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restoration {
    /// The branch.
    pub branch: String,
    /// The commit at which it began.
    pub first: String,
    /// Where it is.
    pub head: String,
    /// What is put on it; `None` where it stays.
    pub keep: Option<KeptChange>,
}

/// A change that is put on a branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptChange {
    /// The commit with its files.
    pub commit: String,
    /// The message of the commit that is made of them.
    pub message: String,
    /// Author and committer time, in seconds since the epoch.
    pub at_s: i64,
}

/// The independent parts of what is on a branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Split {
    /// The commit that each part begins at.
    pub base: String,
    /// The commit that they are together.
    pub head: String,
    /// The parts.
    pub parts: Vec<SplitPart>,
    /// Author and committer time, in seconds since the epoch.
    pub at_s: i64,
}

/// One part: the files that some commits changed, as they are in the end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SplitPart {
    /// The branch that is made for it.
    pub branch: String,
    /// The message of its commit.
    pub message: String,
    /// The commits, each the child of another commit of the branch.
    pub commits: Vec<String>,
}

/// Returns what should be under way now, most urgent first; nothing when the workflow waits for a
/// person, is held up or has ended.
#[must_use]
pub fn next(workflow: &Workflow) -> Vec<WorkflowEffect> {
    if workflow.status != WorkflowStatus::Active || workflow.pending.is_some() {
        return Vec::new();
    }
    workflow.body.rules().next(workflow)
}
