//! What is known of a workflow: where its mode is, its workers, and the account of all it does.
//!
//! What a mode shows of itself it says in its own words.

use kapi_core::text::{agent_name, one_line};
use kapi_core::workflow_status::WorkflowStatus;
use kapi_workflow::rules::spent::{limit, time_limit_ms, used};
use kapi_workflow::rules::state::Workflow;
use kapi_workflow::rules::worker::{Capability, WorkerStatus, WorkflowWorker};

use crate::live_view::facts::{
    Account, Mood, SubjectFacts, SubjectVerbs, TaskFacts, TaskMark, command_line,
};
use crate::modes;

/// Returns what is known of a workflow; `driver` is who drives it.
pub(crate) fn facts(workflow: &Workflow, driver: Option<&str>) -> SubjectFacts {
    let (phase, part) = workflow.phase();
    let mode = workflow.mode();
    let limits = limit(workflow);
    let progress = modes::front(mode).and_then(|front| (front.live)(workflow));
    let location = match part {
        Some(part) => format!("{phase}, {part}"),
        None => phase.to_owned(),
    };
    let terms = &workflow.terms;
    let mut details = vec![("agent", agent_name(&terms.agent))];
    if let Some(reviewer) = &terms.reviewer {
        details.push(("reviewer", agent_name(reviewer)));
    }
    if let Some(driver) = driver {
        details.push(("driver", driver.to_owned()));
    }
    let phase: Vec<String> = [Some(location), progress].into_iter().flatten().collect();
    SubjectFacts {
        id: workflow.id.to_string(),
        reference: workflow.id.reference(),
        kind: mode.as_str(),
        title: one_line(&workflow.purpose),
        status: status(workflow, driver),
        mood: mood(workflow),
        phase: phase.join(", "),
        why: why(workflow),
        details,
        account: Account {
            turn: None,
            used: used(workflow),
            tokens_max: limits.tokens,
            usd_micros_max: limits.usd_micros,
            worked_ms: workflow.wall_used_ms,
            work_max_ms: time_limit_ms(workflow),
        },
        tasks: workflow.workers.iter().map(worker).collect(),
        verbs: verbs(workflow, driver),
        ..SubjectFacts::default()
    }
}

fn verbs(workflow: &Workflow, driver: Option<&str>) -> SubjectVerbs {
    let branch = workflow.body.rules().branch();
    let diff = branch.map(|_| workflow.id.reference());
    if workflow.status.is_terminal() {
        return SubjectVerbs {
            diff,
            ..SubjectVerbs::default()
        };
    }
    let (mode, reference) = (workflow.mode().as_str(), workflow.id.reference());
    let is_active = workflow.status == WorkflowStatus::Active;
    let pause = driver.filter(|_| is_active);
    let mut workers = workflow.workers.iter();
    // Whoever is only asked a question hears nothing.
    let listener = workers.find(|worker| {
        worker.capability == Capability::Goal && worker.status == WorkerStatus::Dispatched
    });
    let resume = match driver {
        Some(_) => None,
        None => command_line(&[mode, "resume", &reference]),
    };
    SubjectVerbs {
        say: listener.and_then(|_| command_line(&["say", &reference, "--"])),
        pause: pause.and_then(|_| command_line(&["pause", &reference])),
        resume,
        diff,
        cancel: command_line(&["cancel", &reference, "--yes"]),
        ..SubjectVerbs::default()
    }
}

fn status(workflow: &Workflow, driver: Option<&str>) -> String {
    match (workflow.status, &workflow.pending, driver) {
        (WorkflowStatus::Active, Some(_), _) => "waiting for you",
        (WorkflowStatus::Active, None, None) => "active, not driven",
        (status, _, _) => status.as_str(),
    }
    .to_owned()
}

const fn mood(workflow: &Workflow) -> Mood {
    match workflow.status {
        WorkflowStatus::Active if workflow.pending.is_some() => Mood::Person,
        WorkflowStatus::Active => Mood::Working,
        WorkflowStatus::Blocked => Mood::Person,
        WorkflowStatus::Completed | WorkflowStatus::Linked | WorkflowStatus::Integrated => {
            Mood::Good
        }
        WorkflowStatus::Failed | WorkflowStatus::Abandoned => Mood::Bad,
    }
}

fn why(workflow: &Workflow) -> Option<String> {
    let pending = workflow.pending.as_ref();
    let waits = pending.map(|pending| format!("{} waits for approval", pending.decision.words()));
    waits.or_else(|| workflow.blocked.as_ref().map(|block| block.reason.clone()))
}

fn worker(worker: &WorkflowWorker) -> TaskFacts {
    let mark = match worker.status {
        WorkerStatus::Dispatched => TaskMark::Current,
        WorkerStatus::Waiting => TaskMark::Blocked,
        WorkerStatus::Prepared | WorkerStatus::Idle => TaskMark::Open,
        WorkerStatus::Closed => TaskMark::Done,
    };
    let what = worker.dispatches.last().map(|it| it.what.as_str());
    let text = format!("{}  {}", worker.id, what.unwrap_or_default());
    TaskFacts {
        mark,
        text: one_line(text.trim_end()),
    }
}
