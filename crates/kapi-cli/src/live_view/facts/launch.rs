//! What is known of a launch: one agent in a sandbox, without contract or verdict.
//!
//! Of its record, as it is listed.

use kapi_agent::agent::AgentKind;
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
    let reference = format!("launch/{}", record.id);
    SubjectFacts {
        id: record.id.clone(),
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
        verbs: match record.state {
            LaunchState::Running => {
                let agent = AgentKind::parse(&record.agent).ok();
                running_verbs(&reference, agent.as_ref())
            }
            LaunchState::Finished => SubjectVerbs {
                diff: Some(reference.clone()),
                ..SubjectVerbs::default()
            },
        },
        reference,
        ..SubjectFacts::default()
    }
}

/// Returns what is known of a launch by its plan.
pub(crate) fn of_plan(plan: &LaunchPlan) -> SubjectFacts {
    let id = plan.location.id().as_str().to_owned();
    let mut details = vec![("agent", plan.agent.to_string())];
    details.extend(plan.branch.iter().map(|it| ("branch", it.name.clone())));
    details.push(("sandbox", level(plan.level)));
    let reference = format!("launch/{id}");
    SubjectFacts {
        verbs: running_verbs(&reference, Some(&plan.agent)),
        reference,
        id,
        kind: "launch",
        title: one_line(&plan.prompt),
        status: "running".to_owned(),
        details,
        account: Account {
            work_max_ms: Some(plan.deadline_ms),
            ..Account::default()
        },
        ..SubjectFacts::default()
    }
}

/// Returns what a person can do with a launch under way.
fn running_verbs(reference: &str, agent: Option<&AgentKind>) -> SubjectVerbs {
    let listener = agent.filter(|agent| agent.takes_turns());
    SubjectVerbs {
        say: listener.and_then(|_| command_line(&["say", reference, "--"])),
        pause: command_line(&["pause", reference]),
        cancel: command_line(&["cancel", reference, "--yes"]),
        ..SubjectVerbs::default()
    }
}

fn level(level: SandboxLevel) -> String {
    match level {
        SandboxLevel::None => "none: NO ISOLATION".to_owned(),
        level => level.to_string(),
    }
}
