//! Effects: what should be under way, as data that says everything needed to do it.
//!
//! [`crate::rules::effect::next`] is the only planner. It looks at nothing but the state, so asking
//! again after a crash gives the same effect under the same id.

use kapi_check::rules::proof::baseline;
use kapi_check::rules::proof::downloads::Downloads;
use kapi_check::rules::proof::judge_prompt::instructions;
use kapi_check::rules::proof::policy::CheckPolicy;
use kapi_core::hidden_checks::HiddenCheckSet;
use kapi_core::id::{EffectId, GoalId};
use kapi_core::isolation::{NetworkMode, SandboxLevel};
use kapi_core::text::agent_name;

use crate::rules::prompt;
use crate::rules::state::{Goal, GoalStage};

/// An intent to touch the world, performed under its id; repeating it is safe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GoalEffect {
    /// Its id within the goal.
    pub id: EffectId,
    /// The goal it belongs to.
    pub goal: GoalId,
    /// What to do.
    pub action: GoalAction,
}

/// What an effect does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GoalAction {
    /// Make the worktree and the branch at the base.
    CreateWorkspace {
        /// The branch.
        branch: String,
        /// The base commit.
        base: String,
        /// The commit it starts from: the base, or the work so far of a goal that was reopened.
        start: String,
    },
    /// Run the agent in the workspace.
    RunAgent(AgentTask),
    /// Record the workspace as one commit on the base.
    Commit(CommitTask),
    /// Run the verify commands on the base, to see what they say before anything is done.
    Baseline(VerifyTask),
    /// Run the verify commands on a clean checkout.
    Verify(VerifyTask),
    /// Ask the judge.
    Judge(JudgeTask),
    /// Move the branch from the base to the proved commit.
    Publish {
        /// The branch.
        branch: String,
        /// Where it is now.
        base: String,
        /// Where it goes.
        commit: String,
    },
    /// Wait.
    Wait {
        /// Until when, in milliseconds since the epoch.
        until_ms: i64,
    },
}

impl GoalAction {
    /// Says what is done, in a few words.
    #[must_use]
    pub fn words(&self) -> String {
        match self {
            Self::CreateWorkspace { .. } => "creating the worktree".to_owned(),
            Self::RunAgent(task) => match task.purpose {
                AgentPurpose::Setup => "drafting".to_owned(),
                AgentPurpose::Work => "working".to_owned(),
                AgentPurpose::Distill => "distilling".to_owned(),
            },
            Self::Commit(_) => "recording".to_owned(),
            Self::Baseline(_) => "checking the base".to_owned(),
            Self::Verify(_) => "verifying".to_owned(),
            Self::Judge(task) => format!("asking judge {}", agent_name(&task.agent)),
            Self::Publish { .. } => "publishing".to_owned(),
            Self::Wait { .. } => "waiting for the provider".to_owned(),
        }
    }
}

/// What an agent is run for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgentPurpose {
    /// To draft the contract: it reads the base and changes nothing.
    Setup,
    /// To work.
    Work,
    /// To say what was learnt: it reads its workspace and changes nothing.
    Distill,
}

/// One run of the agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentTask {
    /// What for.
    pub purpose: AgentPurpose,
    /// The agent reference of the contract.
    pub agent: String,
    /// The turn, from 1.
    pub turn: u32,
    /// The whole prompt.
    pub prompt: String,
    /// The session to resume.
    pub session: Option<String>,
    /// The commit the turn began with, to which the workspace is put back when an attempt under
    /// this id was cut off.
    pub start_commit: String,
    /// That commit's tree.
    pub start_tree: String,
    /// The base commit.
    pub base: String,
    /// The branch.
    pub branch: String,
    /// Milliseconds it may take.
    pub deadline_ms: u64,
    /// The isolation.
    pub sandbox: SandboxLevel,
    /// What it can reach.
    pub network: NetworkMode,
}

/// One recording of the workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitTask {
    /// The turn, from 1.
    pub turn: u32,
    /// The branch.
    pub branch: String,
    /// The base commit, which is the parent.
    pub base: String,
    /// The commit the turn began with.
    pub start_commit: String,
    /// Whether the agent's own commits stand between the base and this one.
    pub keep_commits: bool,
    /// The commit message.
    pub message: String,
    /// Author and committer time, in seconds since the epoch.
    pub at_s: i64,
}

/// One verification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifyTask {
    /// The branch.
    pub branch: String,
    /// The base commit, from which protected files are restored.
    pub base: String,
    /// The commit to check out.
    pub commit: String,
    /// Its tree.
    pub tree: String,
    /// The shell commands.
    pub commands: Vec<String>,
    /// The protected pathspecs.
    pub protect: Vec<String>,
    /// The hidden checks that are part of it, as they were approved.
    pub hidden: Option<HiddenCheckSet>,
    /// What the checks are held to.
    pub policy: CheckPolicy,
    /// Every check passed on the base, so the change's own tests are tried without the change.
    pub base_is_green: bool,
    /// Whether each hunk of the change is taken back in turn.
    pub strength: StrengthWanted,
    /// Milliseconds one command may take.
    pub timeout_ms: u64,
    /// What commands can reach.
    pub network: NetworkMode,
    /// What can be reached where dependencies are installed that the work asks for.
    pub downloads: Downloads,
    /// The isolation.
    pub sandbox: SandboxLevel,
}

/// Whether, and how long, it is looked which hunks of a change the checks notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StrengthWanted {
    /// Not at all.
    No,
    /// For as long as nobody minds who did not ask.
    Briefly,
    /// For as long as a person who asked will wait.
    Whole,
}

/// One question to a judge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JudgeTask {
    /// The agent that judges.
    pub agent: String,
    /// The branch.
    pub branch: String,
    /// The base commit.
    pub base: String,
    /// The commit to judge.
    pub commit: String,
    /// What it is told; the world puts the token of the question in at the marks.
    pub instructions: String,
    /// What it is to judge; the world adds the change itself.
    pub material: String,
    /// Milliseconds it may take.
    pub deadline_ms: u64,
    /// The isolation.
    pub sandbox: SandboxLevel,
    /// What it can reach.
    pub network: NetworkMode,
}

/// The longest a judge may take, in milliseconds.
pub const JUDGE_DEADLINE_MS: u64 = 10 * 60 * 1000;

/// Returns what should be under way now; nothing when the goal waits for a person or has ended.
#[must_use]
pub fn next(goal: &Goal) -> Option<GoalEffect> {
    if !goal.is_driven() {
        return None;
    }
    let effect = |id, action| {
        Some(GoalEffect {
            id,
            goal: goal.id.clone(),
            action,
        })
    };
    if let Some(until_ms) = goal.wait_until_ms {
        return effect(goal.wait_effect(), GoalAction::Wait { until_ms });
    }
    let action = stage_action(goal)?;
    effect(goal.stage_effect(), action)
}

fn stage_action(goal: &Goal) -> Option<GoalAction> {
    let contract = &goal.contract;
    let base = contract.base.commit.clone();
    match goal.stage {
        GoalStage::Workspace => Some(GoalAction::CreateWorkspace {
            branch: contract.branch.clone(),
            base,
            start: goal.turn_start_commit().to_owned(),
        }),
        GoalStage::Baseline => {
            let base = &contract.base;
            let task = verify_task(goal, &base.commit, &base.tree);
            Some(GoalAction::Baseline(task))
        }
        GoalStage::Setup => Some(GoalAction::RunAgent(agent_task(goal, AgentPurpose::Setup))),
        GoalStage::Agent => Some(GoalAction::RunAgent(agent_task(goal, AgentPurpose::Work))),
        GoalStage::Distill => Some(GoalAction::RunAgent(agent_task(
            goal,
            AgentPurpose::Distill,
        ))),
        GoalStage::Commit => Some(GoalAction::Commit(CommitTask {
            turn: goal.turn,
            branch: contract.branch.clone(),
            base,
            start_commit: goal.turn_start_commit().to_owned(),
            keep_commits: contract.working.keep_commits,
            message: prompt::commit_message(goal),
            at_s: commit_time_ms(goal).div_euclid(1000),
        })),
        GoalStage::Verify => {
            let candidate = goal.candidate.as_ref()?;
            let task = verify_task(goal, &candidate.commit, &candidate.tree);
            Some(GoalAction::Verify(task))
        }
        GoalStage::Judge => {
            let candidate = goal.candidate.as_ref()?;
            Some(GoalAction::Judge(JudgeTask {
                agent: goal.judge_agent()?.to_owned(),
                branch: contract.branch.clone(),
                base,
                commit: candidate.commit.clone(),
                instructions: instructions(),
                material: prompt::judge::of_goal(goal),
                deadline_ms: within_wall(goal, JUDGE_DEADLINE_MS),
                sandbox: contract.sandbox,
                network: contract.network,
            }))
        }
        GoalStage::Publish => Some(GoalAction::Publish {
            branch: contract.branch.clone(),
            base: goal.published().to_owned(),
            commit: goal.candidate.as_ref()?.commit.clone(),
        }),
        GoalStage::Ended => None,
    }
}

/// The time of the recorded intent, so that repeating the effect makes the same commit.
fn commit_time_ms(goal: &Goal) -> i64 {
    goal.in_flight
        .as_ref()
        .map_or(goal.created_at_ms, |in_flight| in_flight.since_ms)
}

fn agent_task(goal: &Goal, purpose: AgentPurpose) -> AgentTask {
    AgentTask {
        purpose,
        agent: goal.contract.agent.clone(),
        turn: goal.turn,
        prompt: match purpose {
            AgentPurpose::Setup if goal.contract.is_session() => prompt::session::setup(goal),
            AgentPurpose::Setup => prompt::setup_prompt(goal),
            AgentPurpose::Work if goal.contract.is_session() => prompt::session::message(goal),
            AgentPurpose::Work => prompt::turn_prompt(goal),
            AgentPurpose::Distill => prompt::distill_prompt(goal),
        },
        session: goal.session.clone(),
        start_commit: goal.turn_start_commit().to_owned(),
        start_tree: goal.turn_start_tree().to_owned(),
        base: goal.contract.base.commit.clone(),
        branch: goal.contract.branch.clone(),
        deadline_ms: within_wall(goal, goal.contract.turn_timeout_ms),
        sandbox: goal.contract.sandbox,
        network: goal.contract.network,
    }
}

fn verify_task(goal: &Goal, commit: &str, tree: &str) -> VerifyTask {
    let contract = &goal.contract;
    VerifyTask {
        branch: contract.branch.clone(),
        base: contract.base.commit.clone(),
        commit: commit.to_owned(),
        tree: tree.to_owned(),
        commands: contract.verify.clone(),
        protect: contract.protect.clone(),
        hidden: contract.hidden.clone(),
        policy: contract.checks,
        strength: if contract.checks.strength {
            StrengthWanted::Whole
        } else {
            StrengthWanted::No
        },
        base_is_green: goal.baseline.as_ref().is_some_and(baseline::is_green),
        timeout_ms: contract.verify_timeout_ms,
        network: if contract.verify_network {
            contract.network
        } else {
            NetworkMode::None
        },
        downloads: Downloads::allowed(contract.network, &goal.consent.allowed),
        sandbox: contract.sandbox,
    }
}

fn within_wall(goal: &Goal, deadline_ms: u64) -> u64 {
    goal.budget
        .wall_left_ms(&goal.spent)
        .map_or(deadline_ms, |left| left.min(deadline_ms))
}
