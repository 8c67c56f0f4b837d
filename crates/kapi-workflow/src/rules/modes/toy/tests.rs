//! The toy from its beginning to its end, and everything that can be asked of it on the way.

use kapi_core::actor::Actor;
use kapi_core::failure::Failure;
use kapi_core::id::GoalId;
use kapi_core::usage::Usage;
use kapi_core::workflow_status::Status;
use kapi_goal::rules::state::Status as GoalStatus;

use crate::rules::changed::Changed;
use crate::rules::command::{Command, Start};
use crate::rules::denied::Why;
use crate::rules::effect::{Action, next};
use crate::rules::event::Event;
use crate::rules::evolve::evolve;
use crate::rules::model::{Alphabet, print, search};
use crate::rules::modes::toy::answer::ToyAnswer;
use crate::rules::modes::toy::begin::ToyBegin;
use crate::rules::modes::toy::command::ToyCommand;
use crate::rules::modes::toy::event::ToyEvent;
use crate::rules::modes::toy::state::Toy;
use crate::rules::modes::{Begin, Body, ModeAnswer, ModeCommand};
use crate::rules::outcome::Outcome;
use crate::rules::state::Workflow;
use crate::rules::story::{Story, agent, answered, approve, hash, human, identity, terms};

fn begun() -> Story {
    let begin = Begin::Toy(ToyBegin {
        base: "c0ffee".to_owned(),
    });
    Story::begin(&Command::Start(Box::new(Start {
        id: GoalId::parse("001-weigh-it").unwrap(),
        purpose: "Weigh it".to_owned(),
        terms: terms(),
        begin,
    })))
}

fn toy(workflow: &Workflow) -> &Toy {
    let Body::Toy(toy) = &workflow.body else {
        panic!("not a toy");
    };
    toy
}

fn scale() -> ToyAnswer {
    ToyAnswer {
        text: "A scale.".to_owned(),
        script: "sh weigh.sh".to_owned(),
    }
}

fn rested(commit: Option<&str>) -> Outcome {
    Outcome::Rested {
        goal: GoalId::parse("002-scale").unwrap(),
        worktree: None,
        status: GoalStatus::Done,
        commit: commit.map(str::to_owned),
        reason: None,
    }
}

/// Returns how an effect can end: well, and in each way that it cannot.
fn outcomes(action: &Action) -> Vec<Outcome> {
    let prepared = Outcome::Prepared {
        branch: "chore/toy".to_owned(),
        worktree: "/w".to_owned(),
        baseline: None,
    };
    let mut ends = if let Action::Ask(_) = action {
        let unreadable = Outcome::Unreadable {
            by: identity("r2"),
            why: "it is no JSON".to_owned(),
            usage: Usage::default(),
        };
        vec![answered(ModeAnswer::Toy(scale())), unreadable]
    } else if let Action::Prepare { .. } = action {
        vec![prepared]
    } else if let Action::Work(_) = action {
        vec![rested(Some("beef")), rested(None), prepared]
    } else if let Action::Land(_) = action {
        let landed = Outcome::Landed {
            head: "beef".to_owned(),
            tree: "tree".to_owned(),
            merged: false,
            changed: Changed::of(Vec::new()),
        };
        vec![landed, Outcome::Conflicted { paths: Vec::new() }]
    } else {
        super::verb::tests::outcomes()
    };
    ends.push(Outcome::Cancelled {
        usage: Usage::default(),
    });
    ends.extend([true, false].map(|may_pass| Outcome::Failed {
        failure: Failure {
            message: "reach it".to_owned(),
            hint: None,
        },
        may_pass,
        usage: Usage::default(),
    }));
    ends
}

fn commands(workflow: &Workflow) -> Vec<(Actor, Command)> {
    let wanted = next(workflow);
    let mut all: Vec<(Actor, Command)> = Vec::new();
    for effect in &wanted {
        let effect = effect.id.clone();
        all.push((Actor::Engine, Command::Intend { effect }));
    }
    for effect in workflow.in_flight.keys() {
        let action = wanted.iter().find(|wanted| wanted.id == *effect);
        let ends = action.map(|wanted| outcomes(&wanted.action));
        let stale = || vec![answered(ModeAnswer::Toy(scale()))];
        for outcome in ends.unwrap_or_else(stale) {
            let (effect, outcome) = (effect.clone(), Box::new(outcome));
            all.push((Actor::Engine, Command::Report { effect, outcome }));
        }
    }
    let pending = workflow.pending.as_ref();
    let hash = pending.map_or("none", |pending| pending.sha256.as_str());
    let asked = [
        approve(hash, hash, false),
        approve(hash, "other", false),
        Command::Revise {
            text: "Heavier.".to_owned(),
        },
        Command::Mode(ModeCommand::Toy(ToyCommand::Reweigh)),
        Command::Unblock {},
        Command::Abandon {
            reason: "no more".to_owned(),
        },
    ];
    for command in asked {
        let actors = [human(), agent(), Actor::Engine];
        all.extend(actors.map(|actor| (actor, command.clone())));
    }
    all
}

fn key(workflow: &Workflow) -> String {
    let toy = toy(workflow);
    let wanted = next(workflow).first().map(|wanted| wanted.id.clone());
    let is_wanted = |id| wanted.as_ref() == Some(id);
    format!(
        "{:?} {:?} {:?} {} {} {:?} {} {}",
        workflow.status,
        workflow.phase(),
        toy.proved,
        toy.branch.is_some(),
        toy.landed().is_some(),
        wanted.as_ref().and_then(|id| workflow.failures.get(id)),
        workflow.in_flight.keys().any(is_wanted),
        workflow.in_flight.keys().any(|id| !is_wanted(id)),
    )
}

fn holds(workflow: &Workflow) -> Result<(), String> {
    let toy = toy(workflow);
    let is_approved = toy.is_approved == (workflow.approvals.len() == 1);
    let is_carried = toy.carried.is_some() == (workflow.status == Status::Completed);
    let is_in_order = toy.is_approved || toy.branch.is_none();
    match (is_approved, is_carried, is_in_order) {
        (true, true, true) => Ok(()),
        found => Err(format!("approved, carried, in order: {found:?}")),
    }
}

#[test]
fn everything_that_can_be_asked_of_it_leads_to_its_end() {
    let alphabet = Alphabet {
        starts: vec![begun().workflow().clone()],
        commands,
        key,
        waits: |_| false,
        is_success: |workflow| workflow.status == Status::Completed,
        holds,
    };
    let found = search(&alphabet);
    print("toy", &found, &alphabet);
    assert!(found.statuses.contains_key("blocked"), "{found:?}");
    assert!(
        found.states > 30 && found.transitions > found.states,
        "{found:?}"
    );
}

#[test]
fn it_goes_from_question_to_approval_to_landing_to_its_own_effect() {
    let mut story = begun();
    story.answer(ModeAnswer::Toy(scale()));
    let pending = story.workflow().pending.clone().unwrap();
    let list = format!(
        "{}  toy.md\n{}  toy.sh\n",
        hash(b"A scale.\n"),
        hash(b"sh weigh.sh\n")
    );
    assert_eq!(pending.sha256, hash(list.as_bytes()));
    story.tell(
        &human(),
        &Command::Mode(ModeCommand::Toy(ToyCommand::Reweigh)),
    );
    assert_eq!(story.workflow().phase(), ("describe", Some("asking")));
    story.answer(ModeAnswer::Toy(scale()));
    story.approve();
    while story.workflow().status == Status::Active {
        let wanted = next(story.workflow()).remove(0);
        story.perform(outcomes(&wanted.action).remove(0));
    }
    assert_eq!(story.workflow().status, Status::Completed);
    let reweigh = Command::Mode(ModeCommand::Toy(ToyCommand::Reweigh));
    let denied = story.ask(&human(), &reweigh).unwrap_err();
    assert!(matches!(denied.why, Why::AlreadyTerminal { .. }));
    // What its log says leads to where it stands.
    let mut folded = None;
    for event in &story.events {
        let line = serde_json::to_string(event).unwrap();
        assert_eq!(serde_json::from_str::<Event>(&line).unwrap(), *event);
        evolve(&mut folded, event);
    }
    assert_eq!(folded.as_ref(), Some(story.workflow()));
}

#[test]
fn its_facts_stand_in_the_log_as_those_of_any_mode() {
    let line = |event: ToyEvent| serde_json::to_string(&Event::from(event)).unwrap();
    let lines = [
        ToyEvent::Described {
            scale: Box::new(scale()),
        },
        ToyEvent::Reopened {},
        ToyEvent::TriedInVain {},
        ToyEvent::BranchMade {
            branch: "b".to_owned(),
            worktree: "w".to_owned(),
        },
        ToyEvent::Proved {
            commit: "c".to_owned(),
        },
        ToyEvent::Landed {
            head: "h".to_owned(),
            tree: "t".to_owned(),
        },
        ToyEvent::Carried {
            what: "h".to_owned(),
        },
    ]
    .map(line);
    let data = [
        r#"{"described":{"scale":{"text":"A scale.","script":"sh weigh.sh"}}}"#,
        r#"{"reopened":{}}"#,
        r#"{"tried_in_vain":{}}"#,
        r#"{"branch_made":{"branch":"b","worktree":"w"}}"#,
        r#"{"proved":{"commit":"c"}}"#,
        r#"{"landed":{"head":"h","tree":"t"}}"#,
        r#"{"carried":{"what":"h"}}"#,
    ];
    assert_eq!(
        lines,
        data.map(|data| format!(r#"{{"type":"toy","data":{data}}}"#))
    );
}
