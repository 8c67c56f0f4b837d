//! The world of a goal whose turns a session takes: a model that a person sits at, in their own
//! checkout.
//!
//! Kapi starts no agent here. A turn is offered to the session, and its end is waited for; the work
//! is committed with an index of Kapi's own, and proved and judged like any other. What is said over
//! the wire is not known here.

pub mod seat;

use std::path::PathBuf;

use kapi_agent::hook::gate::question;
use kapi_check::perform::judge::host_model::HostModels;
use kapi_core::consent_rule::matches;
use kapi_core::failure::Failure;
use kapi_core::id::{EffectId, GoalId};
use kapi_git::id::CommitId;
use kapi_git::in_place::CheckoutInPlace;
use kapi_git::repository::Repository;
use kapi_machine::watch::EffectWatch;
use kapi_run::repository_session::RepositorySession;
use kapi_run::run_service::RunService as _;
use kapi_run::{failure, repository_session};
use kapi_sys::cancel::Cancel;
use serde_json::{Value, json};

use crate::perform::real::{RealWorld, cancelled, candidate_plan, work_so_far};
use crate::perform::session::seat::{Attendance, SessionSeat};
use crate::perform::survey::START_MESSAGE;
use crate::perform::tools::{ToolCaller, open_entries};
use crate::record::world::World;
use crate::rules::effect::{
    AgentPurpose, AgentTask, CommitTask, GoalAction, GoalEffect, JudgeTask,
};
use crate::rules::event::TurnVerdict;
use crate::rules::outcome::GoalOutcome;
use crate::rules::state::Goal;

/// Characters of a commit in a message.
const COMMIT_CHARS: usize = 10;

/// A turn that the session may take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnOffer {
    /// The goal.
    pub goal: GoalId,
    /// The effect.
    pub effect: EffectId,
    /// What for.
    pub purpose: AgentPurpose,
    /// The turn, from 1.
    pub turn: u32,
    /// The message that begins it.
    pub message: String,
}

/// What a goal says to whoever speaks to its session, from the thread that drives it.
#[derive(Clone, Copy)]
pub struct SessionVoice<'a> {
    /// Offers a turn, which the session begins by itself.
    pub offer: &'a (dyn Fn(&TurnOffer) + Sync),
    /// Says that the goal waits until the person begins a turn or resumes it.
    pub hold: &'a (dyn Fn(&TurnOffer) + Sync),
}

/// A tool that falls under a contract's ask-before list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AskedFirst {
    /// The entry.
    pub entry: String,
    /// What would run, in one clean line.
    pub shown: String,
}

/// The world of a session's goal.
pub struct SessionWorld<'a> {
    /// What proves and judges.
    pub real: &'a RealWorld<'a>,
    /// Where the session says what it does.
    pub seat: &'a SessionSeat,
    /// Who speaks to the session.
    pub voice: SessionVoice<'a>,
    /// The models that the session's host can ask; nothing where it asks none for us.
    pub models: Option<HostModels<'a>>,
}

impl World for SessionWorld<'_> {
    fn perform(&self, effect: &GoalEffect, watch: &EffectWatch<'_>) -> GoalOutcome {
        let result = match &effect.action {
            GoalAction::CreateWorkspace { base, .. } => self.settle(base, watch),
            GoalAction::RunAgent(task) => return self.take_turn(effect, task, watch),
            GoalAction::Commit(task) => self.commit(task, watch),
            // Nothing of the person's moves: the proved commit is held by a ref of the goal's.
            GoalAction::Publish { commit, .. } => Ok(GoalOutcome::Published {
                commit: commit.clone(),
            }),
            GoalAction::Judge(task) => return self.judge(effect, task, watch),
            GoalAction::Baseline(_) | GoalAction::Verify(_) | GoalAction::Wait { .. } => {
                return self.real.perform(effect, watch);
            }
        };
        match result {
            Ok(outcome) => outcome,
            Err(_) if watch.cancel.is_raised() => cancelled(),
            Err(failure) => GoalOutcome::Failed(failure),
        }
    }
}

impl SessionWorld<'_> {
    /// Keeps the base, and says that the workspace is the checkout itself.
    fn settle(&self, base: &str, watch: &EffectWatch<'_>) -> Result<GoalOutcome, Failure> {
        let location = &self.real.location;
        let repo = RepositorySession::open(&self.real.grants, &location.project, watch.cancel)?;
        let goal = repository_session::ref_part(&location.ref_name)?;
        repo.repository
            .hold_base(&goal, &repository_session::commit_id(base)?)
            .map_err(|error| failure::plain(&error))?;
        Ok(GoalOutcome::Workspace {
            path: repo.repository.top_level().display().to_string(),
        })
    }

    fn commit(&self, task: &CommitTask, watch: &EffectWatch<'_>) -> Result<GoalOutcome, Failure> {
        let location = &self.real.location;
        let repo = RepositorySession::open(&self.real.grants, &location.project, watch.cancel)?;
        let base = repository_session::commit_id(&task.base)?;
        check_head(&repo.repository, &base)?;
        let checkout = CheckoutInPlace {
            base: &base,
            index_dir: &index_dir(&location.scratch),
        };
        let goal = repository_session::ref_part(&location.ref_name)?;
        let author = repository_session::person(&repo.repository, &self.real.grants);
        let found = repo
            .repository
            .commit_in_place(checkout, &goal, &candidate_plan(task, author)?)
            .map_err(|error| failure::plain(&error))?;
        Ok(GoalOutcome::Committed(work_so_far(&found, &task.base)))
    }

    /// Has the work judged. A model that judges its own work is the session's own, asked anew.
    fn judge(&self, effect: &GoalEffect, task: &JudgeTask, watch: &EffectWatch<'_>) -> GoalOutcome {
        let project = &self.real.tool_service.project;
        let is_same = project
            .load(&effect.goal)
            .is_ok_and(|goal| goal.contract.agent == task.agent);
        let own = self.models.and_then(|models| (models.own)());
        let Some(own) = own.filter(|_| is_same) else {
            return self.real.perform_beside(effect, self.models, watch);
        };
        let mut effect = effect.clone();
        effect.action = GoalAction::Judge(JudgeTask {
            agent: own,
            ..task.clone()
        });
        self.real.perform_beside(&effect, self.models, watch)
    }

    /// Waits for the session to take a turn, and to end it.
    fn take_turn(
        &self,
        effect: &GoalEffect,
        task: &AgentTask,
        watch: &EffectWatch<'_>,
    ) -> GoalOutcome {
        let offer = TurnOffer {
            goal: effect.goal.clone(),
            effect: effect.id.clone(),
            purpose: task.purpose,
            turn: task.turn,
            message: task.prompt.clone(),
        };
        // After a turn of their own the person says when the goal goes on.
        let project = &self.real.tool_service.project;
        let is_persons = project
            .load(&effect.goal)
            .is_ok_and(|goal| goal.last_verdict == Some(TurnVerdict::PersonSpoke));
        let attendance = if is_persons && task.purpose == AgentPurpose::Work {
            Attendance::AfterPerson
        } else {
            Attendance::ByItself
        };
        self.seat.attend(&offer, attendance, self.voice, watch)
    }
}

/// Checks that the checkout stands on what the goal began at: other work that was switched to would
/// be taken for the goal's.
fn check_head(repository: &Repository, base: &CommitId) -> Result<(), Failure> {
    let failed = |error: &dyn std::error::Error| failure::plain(error);
    let said = repository
        .message_of(base)
        .map_err(|error| failed(&error))?;
    // Changes that were there before stand in a commit that no branch holds.
    let began = if said.trim() == START_MESSAGE {
        let parent = repository.resolve_commit(&format!("{base}^"));
        parent.map_err(|error| failed(&error))?
    } else {
        base.clone()
    };
    let head = repository.resolve_commit("HEAD").ok();
    if let Some(head) = &head
        && repository
            .is_ancestor(&began, head)
            .map_err(|error| failed(&error))?
    {
        return Ok(());
    }
    let branch = repository.head_branch().map_err(|error| failed(&error))?;
    let now = match (branch, head) {
        (Some(branch), _) => format!("on branch {branch}"),
        (None, Some(head)) => format!("at {}", short(&head)),
        (None, None) => "at no commit".to_owned(),
    };
    Err(Failure {
        message: format!(
            "commit the work: HEAD of this checkout is {now}, which does not contain {}, where the goal \
             began",
            short(&began)
        ),
        hint: Some("switch back to the branch that the goal began on, then resume it.".to_owned()),
    })
}

fn short(commit: &CommitId) -> String {
    commit.as_str().chars().take(COMMIT_CHARS).collect()
}

/// Returns the files of the checkout that are not as a commit of the goal has them.
///
/// # Errors
/// When git fails.
pub fn changed_since(
    real: &RealWorld<'_>,
    base: &str,
    commit: &str,
) -> Result<Vec<PathBuf>, Failure> {
    let location = &real.location;
    let repo = RepositorySession::open(&real.grants, &location.project, &Cancel::new())?;
    let checkout = CheckoutInPlace {
        base: &repository_session::commit_id(base)?,
        index_dir: &index_dir(&location.scratch),
    };
    repo.repository
        .changed_in_place(checkout, &repository_session::commit_id(commit)?)
        .map_err(|error| failure::plain(&error))
}

/// Performs a call of one of the goal's tools by the run whose turn it is.
#[must_use]
pub fn call_tool(
    real: &RealWorld<'_>,
    goal: &GoalId,
    run: &str,
    tool: &str,
    input: Value,
) -> Value {
    let caller = ToolCaller {
        tool_service: &real.tool_service,
        goal,
        run,
        hidden: &real.location.hidden,
    };
    caller.call(tool, input)
}

/// Returns what the person is asked before a tool runs, if they are.
///
/// # Errors
/// When the tool or its input cannot be read: then it may not run.
pub fn asked_first(goal: &Goal, tool: &str, input: &Value) -> Result<Option<AskedFirst>, String> {
    let open = open_entries(goal);
    if open.is_empty() {
        return Ok(None);
    }
    let payload = json!({ "tool_name": tool, "tool_input": input }).to_string();
    let question = question(payload.as_bytes())
        .ok_or_else(|| "Kapi could not read the tool call.".to_owned())?;
    let entry = matches(&open, &question.tool, &question.fields);
    Ok(entry.map(|entry| AskedFirst {
        entry: entry.to_owned(),
        shown: question.shown.clone(),
    }))
}

/// Returns where the index is that a session's work is committed with.
#[must_use]
pub fn index_dir(scratch: &std::path::Path) -> PathBuf {
    scratch.join("index")
}
