//! Given what happened, when somebody asks, then this is recorded or denied.
//!
//! One `check` for all cases; events are compared as lines.

mod limits;
mod proposed;

use kapi_check::rules::proof::verify_run::Checks;
use kapi_core::agent_end::{AgentRun, Claim, ProviderFailureKind};
use kapi_core::failure::Failure;
use kapi_core::id::EffectId;
use kapi_core::judge::{Judge, JudgeUnavailable};
use kapi_core::verdict::{JudgeAnswer, JudgeVerdict};

use crate::rules::command::GoalCommand;
use crate::rules::contract::Contract;
use crate::rules::event::TurnVerdict;
use crate::rules::outcome::GoalOutcome;
use crate::rules::scenario::Step::{Begins, Ends, Engine, Person, Reports, Uses};
use crate::rules::scenario::{
    Step, approve, cancelled, claims, committed, contract, crashed, create, failed, judged, passed,
    play, provider, ready, render, to_judge, to_verify, unchanged, verdict, verified, worked,
};
use crate::rules::state::GoalStatus;

#[expect(
    clippy::needless_pass_by_value,
    reason = "cases read better without `&`"
)]
pub(super) fn check(given: &[Step], when: Step, then: &str) {
    let mut state = None;
    for (idx, step) in given.iter().enumerate() {
        play(&mut state, step).unwrap_or_else(|denied| panic!("given {idx} is denied: {denied}"));
    }
    let before = state.clone();
    let text = match play(&mut state, &when) {
        Ok(events) if events.is_empty() => "nothing".to_owned(),
        Ok(events) => events.iter().map(render).collect::<Vec<_>>().join("\n"),
        Err(denied) => {
            assert_eq!(state.is_some(), before.is_some());
            format!("denied: {denied}")
        }
    };
    assert_eq!(text, then);
}

#[test]
fn a_turn_goes_from_agent_to_done() {
    check(
        &[create(contract()), approve()],
        Begins,
        "intended t000-workspace-a1",
    );
    check(
        &ready(contract()),
        Ends(worked()),
        "intended t001-agent-a1\nagent ended",
    );
    let given = [ready(contract()), vec![Ends(worked())]].concat();
    check(
        &given,
        Ends(committed("t")),
        "intended t001-commit-a1\ncommitted t",
    );
    check(
        &to_verify(contract(), "t"),
        Ends(passed()),
        "intended t001-verify-a1\nverified",
    );
    check(
        &to_judge(contract()),
        Ends(verdict(JudgeVerdict::Done)),
        "intended t001-judge-a1\njudged",
    );
    let given = [
        to_judge(contract()),
        vec![Ends(verdict(JudgeVerdict::Done))],
    ]
    .concat();
    let published = GoalOutcome::Published {
        commit: "commit-tree".to_owned(),
    };
    check(
        &given,
        Ends(published),
        "intended t001-publish-a1\ndone commit-tree",
    );
}

#[test]
fn without_verify_and_judge_the_result_is_accepted_only() {
    let mut open = contract();
    open.verify = Vec::new();
    open.judge = Judge::None;
    let published = GoalOutcome::Published {
        commit: "c".to_owned(),
    };
    check(
        &to_verify(open, "tree"),
        Ends(published),
        "intended t001-publish-a1\naccepted c",
    );
}

#[test]
fn protected_files_are_checked_even_without_a_verify_command() {
    let mut open = contract();
    open.verify = Vec::new();
    open.judge = Judge::None;
    open.protect = vec!["tests/**".to_owned()];
    check(&to_verify(open, "tree"), Begins, "intended t001-verify-a1");
}

#[test]
fn an_intent_is_recorded_once() {
    let given = [ready(contract()), vec![Begins]].concat();
    check(&given, Begins, "nothing");
    let other = Engine(GoalCommand::Intend {
        effect: EffectId::new(1, "commit", 1),
    });
    check(
        &given,
        other,
        "denied: effect t001-commit-a1 is not in progress",
    );
}

#[test]
fn an_outcome_belongs_to_its_effect() {
    let given = [ready(contract()), vec![Begins]].concat();
    check(
        &given,
        Reports(passed()),
        "denied: effect t001-agent-a1 cannot end in a verify report",
    );
    check(
        &given,
        Reports(GoalOutcome::Waited),
        "denied: effect t001-agent-a1 cannot end in a wait",
    );
    let not_begun = "denied: effect t009-none-a9 is not in progress";
    check(&ready(contract()), Reports(worked()), not_begun);
    check(&ready(contract()), Uses(1, 1), not_begun);
}

#[test]
fn a_failed_check_ends_the_turn() {
    let given = to_verify(contract(), "tree");
    let intended = "intended t001-verify-a1";
    check(
        &given,
        Ends(failed()),
        &format!("{intended}\nnot verified\nturn 1 VerifyFailed"),
    );
    let timed_out = verified(None, Checks::Visible, &[]);
    check(
        &given,
        Ends(timed_out),
        &format!("{intended}\nnot verified\nturn 1 VerifyFailed"),
    );
    let hidden = verified(Some(1), Checks::Hidden, &[]);
    check(
        &given,
        Ends(hidden),
        &format!("{intended}\nnot verified\nturn 1 HiddenFailed"),
    );
    let tampered = verified(Some(0), Checks::Visible, &["tests/a"]);
    check(
        &given,
        Ends(tampered),
        &format!("{intended}\nnot verified\nturn 1 Tampered"),
    );
}

#[test]
fn the_executors_word_is_no_evidence() {
    let done = [
        ready(contract()),
        vec![Ends(claims(Claim::Done)), Ends(committed("tree"))],
    ]
    .concat();
    let then = "intended t001-verify-a1\nnot verified\nturn 1 VerifyFailed";
    check(&done, Ends(failed()), then);
    let blocked = Claim::Blocked {
        reason: "no key".to_owned(),
    };
    let given = [
        ready(contract()),
        vec![Ends(claims(blocked)), Ends(committed("tree"))],
    ]
    .concat();
    let then = format!("{then}\nblocked: agent says no key");
    check(&given, Ends(failed()), &then);
    check(&given, Ends(passed()), "intended t001-verify-a1\nverified");
}

#[test]
fn the_same_tree_with_the_same_verdict_stalls() {
    let again = |tree| vec![Ends(worked()), Ends(committed(tree))];
    let given = [to_verify(contract(), "a"), vec![Ends(failed())], again("a")].concat();
    let then = "intended t002-verify-a1\nnot verified\nturn 2 VerifyFailed";
    check(
        &given,
        Ends(failed()),
        &format!("{then}\nstalled: 2 turns alike"),
    );
    let given = [to_verify(contract(), "a"), vec![Ends(failed())], again("b")].concat();
    check(&given, Ends(failed()), then);
    let given = [
        to_verify(contract(), "a"),
        vec![Ends(passed()), Ends(verdict(JudgeVerdict::Continue))],
        again("a"),
    ]
    .concat();
    check(&given, Ends(failed()), then);
}

#[test]
fn going_to_and_fro_stalls_too() {
    let mut contract = contract();
    contract.budget.turns = 9;
    let turn = |tree| vec![Ends(worked()), Ends(committed(tree)), Ends(failed())];
    let given = [
        ready(contract),
        turn("a"),
        turn("b"),
        vec![Ends(worked()), Ends(committed("a"))],
    ];
    let then = "intended t003-verify-a1\nnot verified\nturn 3 VerifyFailed\nstalled: 2 turns alike";
    check(&given.concat(), Ends(failed()), then);
}

#[test]
fn a_judge_sends_on_or_stops() {
    let given = to_judge(contract());
    let intended = "intended t001-judge-a1\njudged";
    let turn = "turn 1 JudgeContinue";
    check(
        &given,
        Ends(verdict(JudgeVerdict::Continue)),
        &format!("{intended}\n{turn}"),
    );
    let blocked = format!("{intended}\n{turn}\nblocked: judge says so");
    check(&given, Ends(verdict(JudgeVerdict::Blocked)), &blocked);
    let impossible = format!("{intended}\nimpossible: judge says so");
    check(&given, Ends(verdict(JudgeVerdict::Impossible)), &impossible);
}

#[test]
fn a_judge_without_a_verdict_is_asked_again_and_then_blocks() {
    let malformed = || {
        judged(JudgeAnswer::Malformed {
            text: "hm".to_owned(),
        })
    };
    let wait = || Ends(GoalOutcome::Waited);
    let first = "intended t001-judge-a1\nno verdict, again in 1000 ms";
    check(&to_judge(contract()), Ends(malformed()), first);
    let twice = vec![Ends(malformed()), wait(), Ends(malformed()), wait()];
    let given = [to_judge(contract()), twice.clone()].concat();
    let closed = "intended t001-judge-a3\nno verdict\n\
                  blocked: judge: the judge's answer is not a verdict: hm";
    check(&given, Ends(malformed()), closed);
    let mut open = contract();
    open.judge_unavailable = JudgeUnavailable::Open;
    let given = [to_judge(open), twice, vec![Ends(malformed())]].concat();
    check(&given, Begins, "intended t001-publish-a1");
}

#[test]
fn a_provider_is_tried_again_with_growing_waits() {
    let busy = || provider(ProviderFailureKind::RateLimited, None);
    let given = ready(contract());
    let first = "intended t001-agent-a1\nprovider failed, again in 1000 ms";
    check(&given, Ends(busy()), first);
    let waited = "intended t001-agent-wait-a1\nwaited";
    let once = [given.clone(), vec![Ends(busy())]].concat();
    check(&once, Ends(GoalOutcome::Waited), waited);
    let given_twice = [once, vec![Ends(GoalOutcome::Waited)]].concat();
    let second = "intended t001-agent-a2\nprovider failed, again in 2000 ms";
    check(&given_twice, Ends(busy()), second);
    let asked = provider(ProviderFailureKind::RateLimited, Some(60_000));
    let longer = "intended t001-agent-a1\nprovider failed, again in 60000 ms";
    check(&given, Ends(asked), longer);
    let key = provider(ProviderFailureKind::Unauthorized, None);
    let blocked = "intended t001-agent-a1\nprovider failed\nblocked: provider: not authorized";
    check(&given, Ends(key), blocked);
}

#[test]
fn a_run_without_a_word_is_the_providers_failure_once_and_then_a_turn() {
    let silent = || provider(ProviderFailureKind::EmptyAnswer, None);
    let given = ready(contract());
    let first = "intended t001-agent-a1\nprovider failed, again in 1000 ms";
    check(&given, Ends(silent()), first);
    let again = [
        given.clone(),
        vec![Ends(silent()), Ends(GoalOutcome::Waited)],
    ]
    .concat();
    let turn = "intended t001-agent-a2\nagent ended";
    check(&again, Ends(silent()), turn);
    // One that used its tools has worked, whatever it said.
    let GoalOutcome::Agent(run) = silent() else {
        panic!("not a run")
    };
    let worked = GoalOutcome::Agent(AgentRun { tools: 1, ..run });
    check(&given, Ends(worked), "intended t001-agent-a1\nagent ended");
}

#[test]
fn a_refusal_of_the_world_blocks_and_is_no_fault_of_the_turn() {
    let failure = Failure {
        message: "mount".to_owned(),
        hint: None,
    };
    let then = "intended t001-agent-a1\ncut off t001-agent-a1 after 0 tokens\n\
                blocked: failed to mount";
    check(
        &ready(contract()),
        Ends(GoalOutcome::Failed(failure.clone())),
        then,
    );
    let given = [
        ready(contract()),
        vec![
            Ends(GoalOutcome::Failed(failure)),
            Person(GoalCommand::Resume),
        ],
    ];
    check(&given.concat(), Begins, "intended t001-agent-a3");
}

#[test]
fn a_person_stops_a_running_effect() {
    let given = [ready(contract()), vec![Begins]].concat();
    check(
        &given,
        Person(GoalCommand::Interrupt),
        "paused: interrupted",
    );
    let reason = Some("enough".to_owned());
    let cancel = || {
        Person(GoalCommand::Cancel {
            reason: reason.clone(),
        })
    };
    check(&given, cancel(), "cancelled: cancelled Some(\"enough\")");
    let stopped = [given, vec![Person(GoalCommand::Interrupt)]].concat();
    let cut_off = "cut off t001-agent-a1 after 4 tokens";
    check(&stopped, Reports(cancelled()), cut_off);
    // It ended well a moment before it heard of the stop: it is done again, not half-believed.
    check(
        &stopped,
        Reports(worked()),
        "cut off t001-agent-a1 after 11 tokens",
    );
    let ended = [
        stopped,
        vec![Reports(cancelled()), Person(GoalCommand::Resume)],
    ]
    .concat();
    check(&ended, Begins, "intended t001-agent-a3");
}

#[test]
fn an_ended_goal_accepts_nothing() {
    let given = [
        ready(contract()),
        vec![Person(GoalCommand::Cancel { reason: None })],
    ]
    .concat();
    let denied = |action: &str| format!("denied: the goal is cancelled, so it cannot be {action}");
    check(&given, Person(GoalCommand::Resume), &denied("resumed"));
    check(
        &given,
        Person(GoalCommand::Cancel { reason: None }),
        &denied("cancelled"),
    );
    check(&given, Person(GoalCommand::Interrupt), &denied("paused"));
    check(&given, approve(), &denied("approved"));
    check(&given, Begins, &denied("worked on"));
}

#[test]
fn resuming_what_goes_on_changes_nothing() {
    check(&ready(contract()), Person(GoalCommand::Resume), "nothing");
    let proposed = "denied: the goal is proposed, so it cannot be resumed";
    check(&[create(contract())], Person(GoalCommand::Resume), proposed);
}

#[test]
fn a_turn_that_broke_off_is_not_the_last_while_it_changes_files() {
    let patient = Contract {
        stall_after: 3,
        ..contract()
    };
    let mut steps = [ready(patient), vec![Ends(crashed(7))]].concat();
    check(
        &steps,
        Ends(committed("tree")),
        "intended t001-commit-a1\ncommitted tree\nturn 1 AgentFailed",
    );
    // An agent that dies again and changed nothing since has broken nothing off: it is checked.
    steps.extend([Ends(committed("tree")), Ends(crashed(7))]);
    check(
        &steps,
        Ends(committed("tree")),
        "intended t002-commit-a1\ncommitted tree",
    );
    steps.push(Ends(committed("tree")));
    check(
        &steps,
        Ends(failed()),
        "intended t002-verify-a1\nnot verified\nturn 2 VerifyFailed",
    );
    steps.extend([Ends(failed()), Ends(crashed(7)), Ends(committed("tree"))]);
    check(
        &steps,
        Ends(failed()),
        "intended t003-verify-a1\nnot verified\nturn 3 VerifyFailed\nstalled: 3 turns alike",
    );
}

#[test]
fn nothing_done_and_nothing_checked_is_not_done() {
    let unverified = Contract {
        verify: Vec::new(),
        judge: Judge::None,
        ..contract()
    };
    let given = [ready(unverified), vec![Ends(worked()), Ends(unchanged())]].concat();
    let mut state = None;
    for step in &given {
        play(&mut state, step).unwrap();
    }
    let goal = state.unwrap();
    assert_eq!(goal.last_verdict, Some(TurnVerdict::NothingDone));
    assert_eq!((goal.status, goal.turn), (GoalStatus::Active, 2));
}
