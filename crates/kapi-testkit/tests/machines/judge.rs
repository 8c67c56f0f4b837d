//! A judge that is not there or makes no sense never completes a goal, unless that was chosen.

use std::sync::Mutex;

use kapi_core::actor::Actor;
use kapi_core::agent_end::ProviderFailureKind;
use kapi_core::judge::{Judge, JudgeUnavailable};
use kapi_core::verdict::{JudgeAnswer, JudgeVerdict};
use kapi_goal::rules::command::GoalCommand;
use kapi_goal::rules::effect::GoalAction;
use kapi_goal::rules::event::Stop;
use kapi_goal::rules::state::{Goal, GoalStatus};

use crate::support::{Fixture, contract, failure, judged, verdict, well};

/// Drives a goal whose judge gives this answer whenever it is asked; also returns how often.
fn drive(rule: JudgeUnavailable, answer: &JudgeAnswer) -> (Goal, u32) {
    let fixture = Fixture::new();
    let mut contract = contract();
    contract.judge = Judge::Agent("codex".to_owned());
    contract.judge_unavailable = rule;
    let id = fixture.approved(&contract);
    let asked = Mutex::new(0);
    let goal = fixture.drive(&id, &|effect, _| match &effect.action {
        GoalAction::Judge(task) => {
            *asked.lock().unwrap() += 1;
            judged(&task.agent, answer.clone())
        }
        _ => well(effect),
    });
    (goal, asked.into_inner().unwrap())
}

#[test]
fn an_unreachable_judge_parks_a_closed_goal() {
    let answer = JudgeAnswer::Unavailable(failure(ProviderFailureKind::Unreachable));
    let (goal, asked) = drive(JudgeUnavailable::Closed, &answer);
    assert_eq!(
        (goal.status, asked, goal.result),
        (GoalStatus::Waiting, 5, None)
    );
    assert_eq!(goal.spent.turns, 0, "a judge's failure is never a turn");
}

#[test]
fn a_judge_that_refuses_the_key_blocks_a_closed_goal() {
    let answer = JudgeAnswer::Unavailable(failure(ProviderFailureKind::Unauthorized));
    let (goal, asked) = drive(JudgeUnavailable::Closed, &answer);
    assert_eq!((goal.status, asked), (GoalStatus::Blocked, 1));
    assert_eq!(
        goal.stop,
        Some(Stop::JudgeUnavailable {
            reason: "no".to_owned()
        })
    );
}

/// Three processes one after the other: the judge is away, the next is woken, the last has an answer.
#[test]
fn what_was_verified_outlives_the_outage_of_its_judge_and_nothing_else_is_run_again() {
    let fixture = Fixture::new();
    let mut contract = contract();
    contract.judge = Judge::Agent("codex".to_owned());
    let id = fixture.approved(&contract);
    let away = JudgeAnswer::Unavailable(failure(ProviderFailureKind::ServerError));
    let performed = Mutex::new(Vec::new());
    let drive = |is_away: bool| {
        fixture.drive(&id, &|effect, _| match &effect.action {
            GoalAction::Judge(task) if is_away => judged(&task.agent, away.clone()),
            _ => {
                performed.lock().unwrap().push(effect.id.to_string());
                well(effect)
            }
        })
    };
    let parked = drive(true);
    let candidate = parked.candidate.clone().unwrap().commit;
    for number in 1..=3 {
        let wake = GoalCommand::Wake {
            number,
            why: "it is time".to_owned(),
        };
        fixture
            .project()
            .submit(&id, &Actor::Engine, &wake)
            .unwrap();
        let goal = drive(number < 3);
        if number < 3 {
            assert_eq!(goal.status, GoalStatus::Waiting);
            continue;
        }
        assert_eq!(
            (goal.status, goal.result),
            (GoalStatus::Done, Some(candidate.clone()))
        );
    }
    let performed = performed.into_inner().unwrap();
    let is_work = |id: &&String| !id.contains("wait") && !id.contains("baseline");
    let works = performed.iter().filter(is_work);
    let works: Vec<&str> = works.map(String::as_str).collect();
    assert_eq!(
        works,
        [
            "t000-workspace-a1",
            "t001-agent-a1",
            "t001-commit-a1",
            "t001-verify-a1",
            "t001-judge-a8",
            "t001-publish-a1"
        ]
    );
}

#[test]
fn an_unreachable_judge_lets_an_open_goal_pass_and_the_record_says_so() {
    let answer = JudgeAnswer::Unavailable(failure(ProviderFailureKind::Unreachable));
    let (goal, asked) = drive(JudgeUnavailable::Open, &answer);
    assert_eq!((goal.status, asked), (GoalStatus::Done, 5));
    assert_eq!(goal.judge.unwrap().answer, answer);
}

#[test]
fn an_answer_that_is_no_verdict_completes_nothing() {
    let answer = JudgeAnswer::Malformed {
        text: "{\"verdict\": \"done\"} looks good".to_owned(),
    };
    let (goal, asked) = drive(JudgeUnavailable::Closed, &answer);
    assert_eq!(
        (goal.status, asked, goal.result),
        (GoalStatus::Blocked, 3, None)
    );
}

#[test]
fn verdicts_lead_where_they_say() {
    let status = |given| drive(JudgeUnavailable::Closed, &verdict(given)).0.status;
    assert_eq!(status(JudgeVerdict::Done), GoalStatus::Done);
    assert_eq!(status(JudgeVerdict::Blocked), GoalStatus::Blocked);
    assert_eq!(status(JudgeVerdict::Impossible), GoalStatus::Impossible);
    assert_eq!(
        status(JudgeVerdict::Continue),
        GoalStatus::Paused,
        "until its turns are used up"
    );
}
