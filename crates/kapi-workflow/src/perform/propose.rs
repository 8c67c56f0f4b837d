//! An agent's turn in the workflow's own worktree, and a commit of what it left: a goal's turn without
//! the goal.
//!
//! An attempt that was cut off is put back first, as a goal's is. What the agent says is read in the
//! shape of its role; whether the change is any good is not known here.

use kapi_agent::agent::AgentKind;
use kapi_agent::script::part;
use kapi_core::failure::Failure;
use kapi_core::usage::Usage;
use kapi_git::candidate::CandidatePlan;
use kapi_git::id::RefPart;
use kapi_git::workspace::WorkspaceOrigin;
use kapi_goal::perform::agent_run::WorkspaceTurn;
use kapi_goal::perform::real::RealWorld;
use kapi_goal::rules::effect::{AgentPurpose, AgentTask};
use kapi_machine::watch::EffectWatch;
use kapi_run::asker::patiently;
use kapi_run::repository_session::RepositorySession;
use kapi_run::spending::BookedResult;
use kapi_run::spending::turn::{BookedTurn, TurnKey};
use kapi_run::{failure, repository_session};

use crate::perform::ask::{QuestionRun, booked_as, guidance};
use crate::perform::{EffectRefusal, WorkflowEnvironment, clear, run_id, scratch};
use crate::rules::changed::LandedPaths;
use crate::rules::effect::{Proposal, WorkflowEffect};
use crate::rules::outcome::{ProposalReport, ProposedCommit, WorkflowOutcome};

mod workspace;

/// Files that could not be taken over, of which so many are named.
const LEFT_OUT_MAX: usize = 20;

/// Lets an agent propose a change.
pub(super) fn propose(
    location: &WorkflowEnvironment<'_>,
    effect: &WorkflowEffect,
    proposal: &Proposal,
    watch: &EffectWatch<'_>,
) -> Result<WorkflowOutcome, EffectRefusal> {
    let own = workspace::owner(effect, proposal)?;
    let mut world = (location.world)(&own)?;
    let question = &proposal.question;
    let reference = part::of_role(&question.agent, question.role.name);
    let kind = AgentKind::parse(&reference)
        .map_err(|error| EffectRefusal::lasting(failure::agent(&error)))?;
    let repo = RepositorySession::open(&world.grants, &world.location.project, watch.cancel)?;
    let task = task(location, &repo, proposal, reference)?;
    // A home and layers of its own, so that nothing goes from one proposal to the next.
    let scratch = scratch(&world, effect)?;
    world.location.scratch.clone_from(&scratch);
    let run_id = run_id(effect);
    let turn = WorkspaceTurn {
        task: &task,
        effect: &effect.id,
        owner: &own,
        run_id: &run_id,
        tools: None,
        sealed: &proposal.sealed,
    };
    let key = TurnKey {
        goal: effect.workflow.to_string(),
        effect: effect.id.to_string(),
    };
    let booked = BookedTurn::of_agent(key, &kind, booked_as(question.role), &world.grants);
    let ran = world.spending.booked(&booked, watch, |watch| {
        let ran = patiently(watch, || world.run_in_workspace(&turn, watch));
        BookedResult {
            rest: ran
                .as_ref()
                .map_or_else(|_| Usage::default(), |(run, _)| run.usage),
            has_run: ran.is_ok(),
            value: ran,
        }
    });
    clear(&scratch);
    let (ran, stopped) = ran.map_err(|stopped| EffectRefusal::lasting(stopped.failure()))?;
    let (run, end) = ran?;
    if let Some(stopped) = stopped {
        return Err(EffectRefusal {
            failure: stopped.failure(),
            may_pass: false,
            usage: run.usage,
        });
    }
    let asked = QuestionRun {
        question,
        kind: &kind,
        run_id: &run_id,
    };
    let outcome = asked.outcome(&run, end)?;
    let WorkflowOutcome::Answered { by, answer, usage } = outcome else {
        workspace::remove(&repo, &world, proposal)?;
        return Ok(outcome);
    };
    let named = named_by(location, effect)?;
    let candidate = commit(&world, proposal, named, watch).and_then(|candidate| {
        workspace::remove(&repo, &world, proposal)?;
        Ok(candidate)
    });
    let candidate = candidate.map_err(|failure| EffectRefusal {
        failure,
        may_pass: true,
        usage,
    })?;
    Ok(WorkflowOutcome::Proposed(Box::new(ProposalReport {
        by,
        answer: *answer,
        candidate,
        usage,
    })))
}

/// Returns what the workflow's commits are named by.
fn named_by(
    location: &WorkflowEnvironment<'_>,
    effect: &WorkflowEffect,
) -> Result<RefPart, EffectRefusal> {
    let main = (location.world)(&effect.workflow)?;
    Ok(repository_session::ref_part(&main.location.ref_name)?)
}

/// Returns the turn as a goal has it.
fn task(
    location: &WorkflowEnvironment<'_>,
    repo: &RepositorySession,
    proposal: &Proposal,
    reference: String,
) -> Result<AgentTask, EffectRefusal> {
    let question = &proposal.question;
    let head = head(proposal);
    let tree = repo
        .repository
        .tree_of(&repository_session::commit_id(head)?)
        .map_err(|error| failure::plain(&error))?;
    let guidance = guidance(location, &question.guidance)?;
    Ok(AgentTask {
        purpose: AgentPurpose::Work,
        agent: reference,
        turn: question.ordinal,
        prompt: format!("{guidance}{}", question.prompt),
        session: None,
        start_commit: head.to_owned(),
        start_tree: tree.to_string(),
        base: proposal.first.clone(),
        branch: workspace::branch(proposal),
        deadline_ms: question.deadline_ms,
        sandbox: question.sandbox,
        network: question.network,
    })
}

/// Returns where the branch is.
fn head(proposal: &Proposal) -> &str {
    let head = proposal.question.commit.as_deref();
    head.unwrap_or(&proposal.first)
}

/// Makes one commit on the head of what the agent left; nothing where that is the head's files.
fn commit(
    world: &RealWorld<'_>,
    proposal: &Proposal,
    named: RefPart,
    watch: &EffectWatch<'_>,
) -> Result<Option<ProposedCommit>, Failure> {
    let repo = RepositorySession::open(&world.grants, &world.location.project, watch.cancel)?;
    let head = head(proposal);
    let branch = workspace::branch(proposal);
    let mut workspace = repo.workspace(&world.location, &branch, &proposal.first, head)?;
    if workspace.origin != WorkspaceOrigin::Adopted {
        return Err(Failure {
            message: "record what an agent proposed: its worktree was gone".to_owned(),
            hint: Some("it was made again when the turn began; resume to continue.".to_owned()),
        });
    }
    let plan = CandidatePlan {
        name: repository_session::ref_part(&format!("proposal-{}", proposal.question.ordinal))?,
        message: proposal.message.clone(),
        author: repository_session::person(&repo.repository, &world.grants),
        at_unix_seconds: proposal.at_s,
    };
    // Named below the workflow, whichever workspace it is of.
    workspace.goal = named;
    let found = repo
        .repository
        .commit_candidate_on(&workspace, &repository_session::commit_id(head)?, &plan)
        .map_err(|error| failure::plain(&error))?;
    if found.changed.is_empty() {
        return Ok(None);
    }
    let paths = found
        .changed
        .iter()
        .map(|change| change.path.display().to_string());
    let left_out = found.refused.iter().take(LEFT_OUT_MAX);
    Ok(Some(ProposedCommit {
        commit: found.commit.to_string(),
        tree: found.tree.to_string(),
        changed: LandedPaths::of(paths.collect()),
        left_out: left_out
            .map(|refused| format!("{}: {}", refused.path.display(), refused.why))
            .collect(),
    }))
}
