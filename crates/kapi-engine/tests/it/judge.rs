//! A judge that is not there or makes no sense never completes a goal, unless that was chosen.

use std::sync::Mutex;

use kapi_core::goal::contract::{Judge, JudgeUnavailable};
use kapi_core::goal::effect::Action;
use kapi_core::goal::event::Stop;
use kapi_core::goal::outcome::{JudgeAnswer, ProviderFailureKind, Verdict};
use kapi_core::goal::state::{Goal, Status};

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
        Action::Judge(task) => {
            *asked.lock().unwrap() += 1;
            judged(&task.agent, answer.clone())
        }
        _ => well(effect),
    });
    (goal, asked.into_inner().unwrap())
}

#[test]
fn an_unreachable_judge_blocks_a_closed_goal() {
    let answer = JudgeAnswer::Unavailable(failure(ProviderFailureKind::Unreachable));
    let (goal, asked) = drive(JudgeUnavailable::Closed, &answer);
    assert_eq!(
        (goal.status, asked, goal.result),
        (Status::Blocked, 3, None)
    );
    assert_eq!(
        goal.stop,
        Some(Stop::JudgeUnavailable {
            reason: "no".to_owned()
        })
    );
    assert_eq!(goal.spent.turns, 0, "a judge's failure is never a turn");
}

#[test]
fn an_unreachable_judge_lets_an_open_goal_pass_and_the_record_says_so() {
    let answer = JudgeAnswer::Unavailable(failure(ProviderFailureKind::Unreachable));
    let (goal, asked) = drive(JudgeUnavailable::Open, &answer);
    assert_eq!((goal.status, asked), (Status::Done, 3));
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
        (Status::Blocked, 3, None)
    );
}

#[test]
fn verdicts_lead_where_they_say() {
    let status = |given| drive(JudgeUnavailable::Closed, &verdict(given)).0.status;
    assert_eq!(status(Verdict::Done), Status::Done);
    assert_eq!(status(Verdict::Blocked), Status::Blocked);
    assert_eq!(status(Verdict::Impossible), Status::Impossible);
    assert_eq!(
        status(Verdict::Continue),
        Status::Paused,
        "until its turns are used up"
    );
}
