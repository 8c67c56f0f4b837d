//! The goal of a task: made once, approved with its workflow's plan, and driven to its rest as a
//! task of the kernel.
//!
//! Which goal it is, is kept before there is one, so that a repeated effect finds it. A goal that
//! came to rest goes on only where the workflow says so.

use std::fs;

use kapi_agent::script::part;
use kapi_check::rules::proof::attribution::Attribution;
use kapi_core::failure::Failure;
use kapi_core::id::GoalId;
use kapi_core::judge::JudgeUnavailable;
use kapi_core::usage::Usage;
use kapi_goal::perform::survey;
use kapi_goal::record::contract_hash::contract_hash;
use kapi_goal::record::error::EngineError;
use kapi_goal::rules::command::GoalCommand;
use kapi_goal::rules::contract::{Base, CONTRACT_VERSION, Contract, OfWorkflow, Working};
use kapi_goal::rules::event::ApprovalMeans;
use kapi_goal::rules::state::{Goal, GoalStatus};
use kapi_goal::rules::words;
use kapi_machine::watch::EffectWatch;
use kapi_run::repository_session::RepositorySession;
use kapi_run::run_dir::RunDir;
use kapi_run::{failure, repository_session};
use kapi_task::rules::task::{End, FailureKind, KernelTask};

use crate::perform::{
    EffectRefusal, GoalTaskOutcome, GoalTaskPlan, WorkflowEnvironment, ask, cancelled, run_id,
};
use crate::rules::branch::BranchType;
use crate::rules::decision_spec::GrantedBy;
use crate::rules::effect::{GoalWork, WorkflowEffect};
use crate::rules::outcome::WorkflowOutcome;
use crate::rules::state::Workflow;

/// Milliseconds one turn of a task's goal may take.
const TURN_TIMEOUT_MS: u64 = 60 * 60 * 1000;
/// Turns without progress before a task's goal is stalled.
const STALL_AFTER: u32 = 3;
/// The file that keeps which goal it is.
const FILE: &str = "goal";
/// How many names are tried for a goal's branch.
const NAMES_MAX: u32 = 9;

/// Makes the goal of a task, or finds it, and drives it to its rest.
pub(super) fn work(
    location: &WorkflowEnvironment<'_>,
    effect: &WorkflowEffect,
    work: &GoalWork,
    watch: &EffectWatch<'_>,
) -> Result<WorkflowOutcome, EffectRefusal> {
    let id = match &work.goal {
        Some(id) => {
            go_on(location, id)?;
            id.clone()
        }
        None => made(location, effect, work, watch)?,
    };
    let goal = location.project.load(&id).map_err(|error| engine(&error))?;
    if rests(&goal) {
        // The process that had it driven died before it could say so.
        return Ok(rested(&goal));
    }
    let asked = GoalTaskPlan {
        effect: &effect.id,
        work,
        goal: &goal,
    };
    let task = match (location.as_task)(&asked, watch)? {
        GoalTaskOutcome::Ended(task) => task,
        GoalTaskOutcome::LetGo => return Ok(cancelled(Usage::default())),
    };
    let goal = location.project.load(&id).map_err(|error| engine(&error))?;
    if rests(&goal) {
        return Ok(rested(&goal));
    }
    Err(unfinished(&task, work))
}

/// Tells whether a goal goes no further by itself.
const fn rests(goal: &Goal) -> bool {
    !goal.is_driven() && !matches!(goal.status, GoalStatus::Waiting)
}

fn rested(goal: &Goal) -> WorkflowOutcome {
    WorkflowOutcome::Rested {
        goal: goal.id.clone(),
        worktree: goal.workspace.clone(),
        status: goal.status,
        commit: goal.result.clone(),
        reason: words::reason(goal),
    }
}

/// Says why a task ended whose goal could still go on.
fn unfinished(task: &KernelTask, work: &GoalWork) -> EffectRefusal {
    let (id, of_plan) = (task.id, &work.task);
    let end = task.report.as_deref().map(|report| &report.end);
    let (why, may_pass) = match end {
        Some(End::Failed(failure)) => {
            let is_rule = failure.kind == FailureKind::PolicyDenied;
            (format!("failed: {}", failure.message), !is_rule)
        }
        // Whoever did not want it must want it again before it is tried again.
        Some(End::Cancelled) => ("was cancelled".to_owned(), false),
        Some(End::Completed | End::Skipped { .. }) | None => {
            ("ended without a result".to_owned(), true)
        }
    };
    let failure = Failure {
        message: format!("finish {of_plan}: its task {id} {why}"),
        hint: Some(format!(
            "review it with `kapi show {id}`, then resume the workflow."
        )),
    };
    EffectRefusal {
        may_pass,
        ..EffectRefusal::lasting(failure)
    }
}

/// Lets a goal go on that came to rest: the person said so by going on with its workflow.
fn go_on(location: &WorkflowEnvironment<'_>, id: &GoalId) -> Result<(), EffectRefusal> {
    let goal = location.project.load(id).map_err(|error| engine(&error))?;
    if !matches!(
        goal.status,
        GoalStatus::Blocked | GoalStatus::Stalled | GoalStatus::Paused
    ) {
        return Ok(());
    }
    match location
        .project
        .submit(id, &location.person, &GoalCommand::Resume)
    {
        // A limit that is used up is told by where the goal stands.
        Ok(_) | Err(EngineError::Denied(_)) => Ok(()),
        Err(error) => Err(engine(&error)),
    }
}

/// Returns the goal of a task's try, which is there and approved then.
fn made(
    location: &WorkflowEnvironment<'_>,
    effect: &WorkflowEffect,
    work: &GoalWork,
    watch: &EffectWatch<'_>,
) -> Result<GoalId, EffectRefusal> {
    let workflow = (location.workflow)()?;
    let world = (location.world)(&effect.workflow)?;
    let run_dir = RunDir::open(&world.location.runs, &run_id(effect))?;
    let repo = RepositorySession::open(&world.grants, &world.location.project, watch.cancel)?;
    let draft = contract(location, &workflow, work, &repo)?;
    let id = match kept(&run_dir)? {
        Some(id) => id,
        None => {
            let (person, task) = (&location.person, work.task.as_str());
            let claimed = location
                .project
                .claim_part(person, &workflow.id, task, &draft);
            let id = claimed.map_err(|error| engine(&error))?;
            run_dir.keep(FILE, id.to_string().as_bytes())?;
            id
        }
    };
    match location.project.load(&id) {
        Ok(goal) => approve(location, &goal, &draft),
        Err(EngineError::NotFound { .. }) => {
            let contract = Contract {
                branch: free_branch(&repo, work.branch_type, &id)?,
                ..draft.clone()
            };
            let made = location
                .project
                .create_claimed(&location.person, &id, &contract);
            made.map_err(|error| engine(&error))?;
            let goal = location.project.load(&id).map_err(|error| engine(&error))?;
            approve(location, &goal, &draft)
        }
        Err(error) => Err(engine(&error)),
    }?;
    Ok(id)
}

fn kept(run_dir: &RunDir) -> Result<Option<GoalId>, EffectRefusal> {
    let file = run_dir.file(FILE);
    let Ok(text) = fs::read_to_string(&file) else {
        return Ok(None);
    };
    GoalId::parse(text.trim()).map(Some).map_err(|_malformed| {
        EffectRefusal::lasting(Failure {
            message: format!("read which goal a task has from {}", file.display()),
            hint: Some("it is no longer a goal name; somebody changed it.".to_owned()),
        })
    })
}

/// Approves a goal's contract, which has to be what the plan says.
fn approve(
    location: &WorkflowEnvironment<'_>,
    goal: &Goal,
    draft: &Contract,
) -> Result<(), EffectRefusal> {
    let expected = Contract {
        branch: goal.contract.branch.clone(),
        ..draft.clone()
    };
    if goal.status != GoalStatus::Proposed {
        let is_ours = goal.contract.working.workflow == expected.working.workflow;
        return if is_ours {
            Ok(())
        } else {
            Err(other_contract(goal))
        };
    }
    if goal.contract != expected {
        return Err(other_contract(goal));
    }
    let hash = contract_hash(&goal.contract).map_err(|error| engine(&error))?;
    let command = GoalCommand::Approve {
        contract_hash: hash,
        means: ApprovalMeans::Plan,
    };
    let approved = location
        .project
        .submit(&goal.id, &location.person, &command);
    approved
        .map(drop)
        .map_err(|error| EffectRefusal::lasting_error(&error))
}

fn other_contract(goal: &Goal) -> EffectRefusal {
    EffectRefusal::lasting(Failure {
        message: format!(
            "continue goal {}: its contract does not match the plan",
            goal.id
        ),
        hint: Some(format!("review it with `kapi show {}`.", goal.id)),
    })
}

/// Draws up what the plan and the workflow's terms say of a task; the branch is still to be chosen.
fn contract(
    location: &WorkflowEnvironment<'_>,
    workflow: &Workflow,
    work: &GoalWork,
    repo: &RepositorySession,
) -> Result<Contract, EffectRefusal> {
    let terms = &workflow.terms;
    let guidance = ask::guidance(location, &work.guidance)?;
    let mut verify = work.verify.clone();
    for command in &terms.verify {
        if !verify.contains(command) {
            verify.push(command.clone());
        }
    }
    let commit = repository_session::commit_id(&work.base)?;
    let tree = repo.repository.tree_of(&commit);
    let tree = tree.map_err(|error| failure::plain(&error))?;
    let mut protect = terms.protect.clone();
    // What a plan's commands name is protected as what a person's flags name.
    for file in survey::checks_named_in(&repo.repository, &commit, &verify)? {
        if !protect.contains(&file) && !work.intent.contains(&file) {
            protect.push(file);
        }
    }
    let contract = Contract {
        version: CONTRACT_VERSION,
        intent: format!("{}\n\n{guidance}", work.intent.trim())
            .trim()
            .to_owned(),
        done_criteria: work.criteria.clone(),
        verify,
        verify_timeout_ms: terms.verify_timeout_ms,
        verify_network: false,
        protect,
        hidden: None,
        budget: work.budget,
        stall_after: STALL_AFTER,
        turn_timeout_ms: TURN_TIMEOUT_MS,
        agent: part::of_task(&terms.agent, work.task.as_str(), work.attempt),
        models: terms.models.clone(),
        judge: terms.judge.clone(),
        judge_unavailable: JudgeUnavailable::Closed,
        base: Base {
            revision: work.base.clone(),
            commit: work.base.clone(),
            tree: tree.to_string(),
        },
        branch: format!("{}/goal", work.branch_type.as_str()),
        sandbox: terms.sandbox,
        network: terms.network,
        working: Working {
            workflow: Some(OfWorkflow {
                id: workflow.id.clone(),
                task: work.task.clone(),
                attempt: work.attempt,
                plan_sha256: approved_plan(workflow)?,
            }),
            ..Working::default()
        },
        checks: work.checks,
        attribution: Attribution::default(),
        race: None,
        delivery: None,
    };
    match contract.fault() {
        None => Ok(contract),
        Some((field, rule)) => Err(EffectRefusal::lasting(Failure {
            message: format!(
                "create a contract for task {}: its {field} is not valid: {rule}",
                work.task.as_str()
            ),
            hint: None,
        })),
    }
}

/// Returns the hash of the plan that a person approved last.
fn approved_plan(workflow: &Workflow) -> Result<String, EffectRefusal> {
    let found = workflow.approvals.iter().rev();
    let mut plans = found.filter(|approval| approval.decision.spec().gives == GrantedBy::Work);
    let found = plans.next().map(|approval| approval.sha256.clone());
    found.ok_or_else(|| {
        EffectRefusal::lasting(Failure {
            message: format!("find the approved plan of workflow {}", workflow.id),
            hint: Some("no work starts before the user has approved a plan.".to_owned()),
        })
    })
}

/// Returns a branch for a goal. No other goal has its name, so only a person's can be in the way.
fn free_branch(
    repo: &RepositorySession,
    branch_type: BranchType,
    id: &GoalId,
) -> Result<String, EffectRefusal> {
    let plain = format!("{}/goal-{id}", branch_type.as_str());
    let numbered = (2..=NAMES_MAX).map(|number| format!("{plain}-{number}"));
    for name in [plain.clone()].into_iter().chain(numbered) {
        let is_free = repo.repository.branch_is_free(&name);
        if is_free.map_err(|error| failure::plain(&error))? {
            return Ok(name);
        }
    }
    Err(EffectRefusal::lasting(Failure {
        message: format!("find a free name for branch {plain}"),
        hint: Some("rename or delete branches of that name.".to_owned()),
    }))
}

/// Returns the refusal for a request of the engine that failed: a rule stays, a disk may recover.
fn engine(error: &EngineError) -> EffectRefusal {
    EffectRefusal {
        may_pass: !matches!(error, EngineError::Denied(_)),
        ..EffectRefusal::lasting_error(error)
    }
}
