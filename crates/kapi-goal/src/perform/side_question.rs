//! A side question: an agent looks at the work so far and answers, beside whatever goes on.
//!
//! It has a read-only checkout, a home of its own and no session, so the loop never notices it. The
//! caps on spending hold it like a turn. What becomes of the answer is the caller's affair.

use std::sync::Mutex;
use std::time::Duration;

use kapi_agent::agent::AgentKind;
use kapi_core::agent_end::AgentEnd;
use kapi_core::failure::Failure;
use kapi_core::quote::fenced;
use kapi_core::usage::Usage;
use kapi_machine::watch::{Activity, EffectWatch};
use kapi_run::asker::{AgentHome, QuestionFiles, ReadOnlyQuestion, ToolSet};
use kapi_run::gate::GateRules;
use kapi_run::goal_paths::GoalPaths;
use kapi_run::host_grants::HostGrants;
use kapi_run::repository_session::RepositorySession;
use kapi_run::run_dir::RunDir;
use kapi_run::spending::turn::{BookedTurn, TurnKey};
use kapi_run::spending::{BookedResult, Spending, SpendingStop};
use kapi_run::{asker, failure, repository_session};
use kapi_spend::rules::account::ModelRole;
use kapi_sys::process::ProcessEnd;

use crate::perform::tools::open_entries;
use crate::rules::plan::task_list::task_list;
use crate::rules::state::Goal;
use crate::rules::words;

/// The longest a side question may take, in milliseconds.
const DEADLINE_MS_MAX: u64 = 15 * 60 * 1000;
/// Bytes of a task list that are shown with a question.
const TASKS_BYTES_MAX: usize = 16 * 1024;

/// A question beside the work.
#[derive(Debug, Clone, Copy)]
pub struct SideQuestion<'a> {
    /// The goal on whose work it is asked.
    pub goal: &'a Goal,
    /// What is asked.
    pub text: &'a str,
    /// A name that no other question has, safe as a file name.
    pub name: &'a str,
}

/// What came of a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SideAnswer {
    /// What the agent said last.
    pub text: String,
    /// What it used.
    pub usage: Usage,
    /// How its run ended; only a finished one is an answer.
    pub end: AgentEnd,
}

/// Lets a goal's agent answer a question about the work so far, within the caps on spending; `None`
/// when it was cut off.
///
/// # Errors
/// When a cap is used up, or the checkout, the sandbox or the agent cannot be had. Nothing of the
/// goal has changed.
pub fn answer(
    grants: &HostGrants,
    spending: &Spending<'_>,
    location: &GoalPaths,
    question: SideQuestion<'_>,
    watch: &EffectWatch<'_>,
) -> Result<Option<SideAnswer>, Failure> {
    let goal = question.goal;
    let kind = AgentKind::parse(&goal.contract.agent).map_err(|error| failure::agent(&error))?;
    let key = TurnKey {
        goal: goal.id.to_string(),
        effect: question.name.to_owned(),
    };
    let turn = BookedTurn::of_agent(key, &kind, ModelRole::Executor, grants);
    let booked = spending.booked(&turn, watch, |watch| {
        let asked = ask(grants, location, question, &kind, watch);
        BookedResult {
            rest: match &asked {
                Ok((_, rest)) => *rest,
                Err(_) => Usage::default(),
            },
            has_run: asked.is_ok(),
            value: asked.map(|(answered, _)| answered),
        }
    });
    let (answered, stopped) = booked.map_err(SpendingStop::failure)?;
    match stopped {
        Some(stopped) => Err(stopped.failure()),
        None => answered,
    }
}

/// Asks, and also returns the part of the use that no notice reported.
fn ask(
    grants: &HostGrants,
    location: &GoalPaths,
    question: SideQuestion<'_>,
    kind: &AgentKind,
    watch: &EffectWatch<'_>,
) -> Result<(Option<SideAnswer>, Usage), Failure> {
    let goal = question.goal;
    let contract = &goal.contract;
    let repo = RepositorySession::open(grants, &location.project, watch.cancel)?;
    let run_id = format!("{}-{}", goal.id, question.name);
    let list = open_entries(goal);
    let posed = ReadOnlyQuestion {
        agent: kind,
        prompt: &prompt(goal, question.text),
        files: QuestionFiles::Commit {
            repo: &repo,
            commit: &repository_session::commit_id(goal.turn_start_commit())?,
        },
        home: AgentHome::Anew,
        session: None,
        tools: ToolSet::Reading(GateRules::Fixed(&list)),
        turn: goal.turn.max(1),
        run_id: &run_id,
        run_dir: &RunDir::open(&location.runs, &run_id)?,
        dir: &location.scratch.join(question.name),
        level: contract.sandbox,
        network: contract.network,
        deadline: Duration::from_millis(contract.turn_timeout_ms.min(DEADLINE_MS_MAX)),
        env: Vec::new(),
        mounts: Vec::new(),
    };
    let used = Mutex::new(Usage::default());
    let notice = |activity: Activity| {
        if let Activity::Used(usage) = &activity
            && let Ok(mut used) = used.lock()
        {
            used.add(usage);
        }
        (watch.notice)(activity);
    };
    let metered = EffectWatch {
        cancel: watch.cancel,
        notice: &notice,
        room: watch.room,
    };
    let (run, end) = asker::ask(grants, &posed, &metered)?;
    let mut usage = used.lock().map_or_else(|_| Usage::default(), |used| *used);
    usage.add(&run.usage);
    let rest = run.usage;
    let answered = (end != ProcessEnd::Cancelled).then_some(SideAnswer {
        text: run.message,
        usage,
        end: run.end,
    });
    Ok((answered, rest))
}

fn prompt(goal: &Goal, question: &str) -> String {
    let contract = &goal.contract;
    let state = words::reason(goal).map_or_else(
        || goal.status.to_string(),
        |reason| format!("{}: {reason}", goal.status),
    );
    let plan = goal.journey.plan.as_ref().map_or_else(
        || "There is no task list.".to_owned(),
        |plan| {
            let text = task_list(plan);
            let end = text.floor_char_boundary(TASKS_BYTES_MAX);
            fenced(text.get(..end).unwrap_or_default(), "yaml")
        },
    );
    format!(
        "A person asks a question beside the work on a goal. You only look: the working directory \
         holds the work so far, read-only, and somebody else goes on with it. Change nothing, plan \
         nothing, and do not continue the work. Answer the question in plain words, shortly, from \
         what you can see here.\n\n\
         # The question\n\n{question}\n\n\
         # The goal\n\n{}\n\nDone when: {}\n\n\
         # Where it stands\n\nTurn {} of {}; {state}.\n\n{plan}\n",
        contract.intent, contract.done_criteria, goal.spent.turns, goal.budget.turns
    )
}
