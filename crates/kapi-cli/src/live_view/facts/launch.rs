//! What is known of a launch: one agent in a sandbox, without contract or verdict.
//!
//! Of its record, as it is listed.

use kapi_core::isolation::SandboxLevel;
use kapi_core::text::one_line;
use kapi_launch::plan::LaunchPlan;
use kapi_launch::record::{LaunchState, SandboxRecord};

use crate::live_view::facts::{Account, Mood, SubjectFacts, SubjectVerbs, command_line};

/// Returns what is known of a launch by its record.
pub(crate) fn facts(record: &SandboxRecord) -> SubjectFacts {
    let mut details = vec![("agent", record.agent.clone())];
    details.extend(record.branch.iter().map(|it| ("branch", it.name.clone())));
    details.push(("sandbox", level(record.level)));
    SubjectFacts {
        id: record.id.clone(),
        reference: format!("launch/{}", record.id),
        kind: "launch",
        title: format!("{} in {}", record.agent, record.project.display()),
        status: match record.state {
            LaunchState::Running => "running",
            LaunchState::Finished => "finished",
        }
        .to_owned(),
        mood: match record.state {
            LaunchState::Running => Mood::Working,
            LaunchState::Finished => Mood::Good,
        },
        why: record.error.clone(),
        details,
        verbs: verbs(&record.id, record.state),
        ..SubjectFacts::default()
    }
}

/// Returns what is known of a launch by its plan.
pub(crate) fn of_plan(plan: &LaunchPlan) -> SubjectFacts {
    let id = plan.location.id().as_str().to_owned();
    let mut details = vec![("agent", plan.agent.to_string())];
    details.extend(plan.branch.iter().map(|it| ("branch", it.name.clone())));
    details.push(("sandbox", level(plan.level)));
    SubjectFacts {
        reference: format!("launch/{id}"),
        id,
        kind: "launch",
        title: one_line(&plan.prompt),
        status: "running".to_owned(),
        details,
        account: Account {
            work_max_ms: Some(plan.deadline_ms),
            ..Account::default()
        },
        verbs: verbs(plan.location.id().as_str(), LaunchState::Running),
        ..SubjectFacts::default()
    }
}

fn verbs(id: &str, state: LaunchState) -> SubjectVerbs {
    let reference = format!("launch/{id}");
    match state {
        LaunchState::Running => SubjectVerbs {
            cancel: command_line(&["cancel", &reference, "--yes"]),
            ..SubjectVerbs::default()
        },
        LaunchState::Finished => SubjectVerbs {
            diff: Some(reference),
            ..SubjectVerbs::default()
        },
    }
}

fn level(level: SandboxLevel) -> String {
    match level {
        SandboxLevel::None => "none: NO ISOLATION".to_owned(),
        level => level.to_string(),
    }
}
