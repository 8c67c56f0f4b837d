//! Stories of judges that cannot be reached, and of judges that a person changes.

use kapi_core::actor::Actor;
use kapi_core::agent_end::{ProviderFailure, ProviderFailureKind};
use kapi_core::failure::Failure;
use kapi_core::judge::{Judge, JudgeUnavailable};
use kapi_core::verdict::{JudgeAnswer, JudgeVerdict};

use crate::rules::command::{GoalCommand, PersonCommand};
use crate::rules::contract::Contract;
use crate::rules::denied::GoalDenial;
use crate::rules::effect::{GoalAction, next};
use crate::rules::event::GoalEvent;
use crate::rules::outcome::GoalOutcome;
use crate::rules::scenario::Step::{Agent, Begins, Ends, Engine, Person, Reports};
use crate::rules::scenario::{Step, contract, judged, play, render, to_judge, verdict};
use crate::rules::state::{Goal, GoalStatus};
use crate::rules::wait::WaitFor;
use crate::rules::words;

fn away_for(kind: ProviderFailureKind, retry_after_ms: Option<u64>) -> GoalOutcome {
    judged(JudgeAnswer::Unavailable(ProviderFailure {
        kind,
        message: "no".to_owned(),
        retry_after_ms,
    }))
}

fn away() -> GoalOutcome {
    away_for(ProviderFailureKind::Unreachable, None)
}

fn malformed() -> GoalOutcome {
    judged(JudgeAnswer::Malformed {
        text: "hm".to_owned(),
    })
}

fn change(judge: &str) -> Step {
    Person(change_judge(judge))
}

fn change_judge(judge: &str) -> GoalCommand {
    GoalCommand::Person(PersonCommand::ChangeJudge {
        judge: judge.to_owned(),
    })
}

fn wake(number: u32) -> Step {
    Engine(GoalCommand::Wake {
        number,
        why: "it is time".to_owned(),
    })
}

fn after(steps: &[Step]) -> Goal {
    let mut state = None;
    for step in steps {
        play(&mut state, step).unwrap();
    }
    state.unwrap()
}

fn and(given: &[Step], more: &[Step]) -> Vec<Step> {
    [given, more].concat()
}

/// Returns the events of one step more, as lines.
fn then(given: &[Step], step: &Step) -> String {
    let mut state = Some(after(given));
    let events = play(&mut state, step).unwrap();
    events.iter().map(render).collect::<Vec<_>>().join("\n")
}

fn denied(given: &[Step], step: &Step) -> GoalDenial {
    play(&mut Some(after(given)), step).unwrap_err()
}

/// The steps of a judge that is away until the goal is parked.
fn parked() -> Vec<Step> {
    let near = (0..4).flat_map(|_| [Ends(away()), Ends(GoalOutcome::Waited)]);
    let near: Vec<Step> = near.collect();
    [to_judge(contract()), near, vec![Ends(away())]].concat()
}

#[test]
fn a_judge_that_is_away_for_seconds_is_asked_again_by_the_same_process() {
    let mut steps = to_judge(contract());
    for (attempt, wait_ms) in [(1, 1_000), (2, 2_000), (3, 4_000), (4, 8_000)] {
        let line = format!("intended t001-judge-a{attempt}\nno verdict, again in {wait_ms} ms");
        assert_eq!(then(&steps, &Ends(away())), line);
        steps.extend([Ends(away()), Ends(GoalOutcome::Waited)]);
    }
    let fifth = "intended t001-judge-a5\nno verdict\nparked 1";
    assert_eq!(then(&steps, &Ends(away())), fifth);
    let done = then(&steps, &Ends(verdict(JudgeVerdict::Done)));
    assert_eq!(done, "intended t001-judge-a5\njudged");
}

#[test]
fn a_judge_that_stays_away_is_asked_for_days_and_nothing_else_is_run_again() {
    let mut steps = parked();
    let mut waits = Vec::new();
    for number in 1.. {
        let goal = after(&steps);
        let Some(wait) = &goal.wait else { break };
        let WaitFor::Judge { judge, at_ms } = &wait.until else {
            panic!("{wait:?}")
        };
        assert_eq!(
            (judge.as_str(), goal.status),
            ("codex", GoalStatus::Waiting)
        );
        assert_eq!(goal.candidate.as_ref().unwrap().commit, "commit-tree");
        assert!(goal.verify.as_ref().unwrap().passed());
        waits.push((at_ms - wait.since_ms) / 60_000);
        if number == 9 {
            break;
        }
        steps.push(wake(number));
        let planned = next(&after(&steps)).unwrap();
        assert!(
            matches!(planned.action, GoalAction::Judge(_)),
            "{planned:?}"
        );
        steps.push(Ends(away()));
    }
    assert_eq!(waits, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
    let spent = after(&steps).spent;
    assert_eq!(spent.turns, 0, "an outage is never a turn");

    let answered = and(&steps, &[wake(9), Ends(verdict(JudgeVerdict::Done))]);
    let planned = next(&after(&answered)).unwrap();
    assert!(
        matches!(planned.action, GoalAction::Publish { .. }),
        "{planned:?}"
    );
}

#[test]
fn a_judge_that_is_away_for_more_than_a_week_blocks_at_last() {
    let mut steps = parked();
    for number in 1..400 {
        steps.extend([wake(number), Ends(away())]);
        let goal = after(&steps);
        if goal.status == GoalStatus::Blocked {
            assert!((190..200).contains(&number), "{number}");
            assert!(goal.lacks_a_judge());
            let resumed = and(&steps, &[Person(GoalCommand::Resume)]);
            let planned = next(&after(&resumed)).unwrap();
            assert!(
                matches!(planned.action, GoalAction::Judge(_)),
                "{planned:?}"
            );
            return;
        }
        // The fold is what a snapshot holds: a long story need not be told again.
        if number > 198 {
            break;
        }
    }
    panic!("it was never given up");
}

#[test]
fn a_quota_of_days_is_kept_and_a_wrong_key_blocks_at_once() {
    let day_ms = 24 * 60 * 60 * 1_000;
    let quota = away_for(ProviderFailureKind::RateLimited, Some(day_ms));
    let goal = after(&and(&to_judge(contract()), &[Ends(quota.clone())]));
    let wait = goal.wait.unwrap();
    let WaitFor::Judge { at_ms, .. } = wait.until else {
        panic!("{wait:?}")
    };
    assert_eq!(at_ms - wait.since_ms, i64::try_from(day_ms).unwrap());
    let key = away_for(ProviderFailureKind::Unauthorized, None);
    let blocked = then(&to_judge(contract()), &Ends(key));
    assert_eq!(
        blocked,
        "intended t001-judge-a1\nno verdict\nblocked: judge: no"
    );
    let mut open = contract();
    open.judge_unavailable = JudgeUnavailable::Open;
    let passes = and(&to_judge(open), &[Ends(quota)]);
    assert_eq!(then(&passes, &Begins), "intended t001-publish-a1");
}

#[test]
fn an_open_goal_passes_where_no_judge_is_there_soon() {
    let mut open = contract();
    open.judge_unavailable = JudgeUnavailable::Open;
    let near = (0..4).flat_map(|_| [Ends(away()), Ends(GoalOutcome::Waited)]);
    let steps = [to_judge(open), near.collect(), vec![Ends(away())]].concat();
    assert_eq!(then(&steps, &Begins), "intended t001-publish-a1");
}

#[test]
fn one_answer_without_a_verdict_after_an_outage_is_asked_for_again() {
    let steps = and(&parked(), &[wake(1)]);
    let once = and(&steps, &[Ends(malformed())]);
    assert_eq!(after(&once).status, GoalStatus::Active, "it is asked again");
    let twice = and(&once, &[Ends(GoalOutcome::Waited), Ends(malformed())]);
    assert_eq!(after(&twice).status, GoalStatus::Blocked);
}

#[test]
fn a_person_lets_another_judge_judge_the_same_commit() {
    let given = parked();
    let line = "judge gemini\nwoken 1: the user chose gemini as the judge";
    assert_eq!(then(&given, &change("gemini")), line);
    let goal = after(&and(&given, &[change("gemini")]));
    let GoalAction::Judge(task) = next(&goal).unwrap().action else {
        panic!("it is not judged")
    };
    assert_eq!(
        (task.agent.as_str(), task.commit.as_str()),
        ("gemini", "commit-tree")
    );
    assert_eq!(
        (goal.failures, goal.contract.judge),
        (0, Judge::Agent("codex".to_owned()))
    );
    let again = "woken 1: the user chose codex as the judge";
    assert_eq!(then(&given, &change("codex")), again, "it is asked now");

    let key = away_for(ProviderFailureKind::Unauthorized, None);
    let refused = GoalOutcome::Failed(Failure {
        message: "find the program of agent codex".to_owned(),
        hint: None,
    });
    for stopped in [key, refused] {
        let given = and(&to_judge(contract()), &[Ends(stopped)]);
        assert_eq!(then(&given, &change("gemini")), "judge gemini\nresumed");
        let goal = after(&and(
            &given,
            &[change("gemini"), Ends(verdict(JudgeVerdict::Done))],
        ));
        assert!(matches!(
            next(&goal).unwrap().action,
            GoalAction::Publish { .. }
        ));
    }
}

#[test]
fn a_judgement_under_way_ends_when_its_judge_is_changed() {
    let given = and(&to_judge(contract()), &[Begins, change("gemini")]);
    let late = then(&given, &Reports(verdict(JudgeVerdict::Done)));
    assert_eq!(late, "cut off t001-judge-a1 after 2 tokens");
    let goal = after(&and(&given, &[Reports(verdict(JudgeVerdict::Done))]));
    let GoalAction::Judge(task) = next(&goal).unwrap().action else {
        panic!("it is not judged")
    };
    assert_eq!(task.agent, "gemini");
}

#[test]
fn only_a_person_changes_a_judge_and_only_where_somebody_judges() {
    let given = parked();
    for (step, who) in [
        (Agent(change_judge("same")), "agent"),
        (Engine(change_judge("same")), "engine"),
    ] {
        let refused = denied(&given, &step);
        assert!(
            matches!(refused, GoalDenial::OnlyHuman { .. }),
            "{who}: {refused:?}"
        );
    }
    assert!(matches!(
        denied(&given, &change(" ")),
        GoalDenial::Refused { .. }
    ));
    let unjudged = Contract {
        judge: Judge::None,
        ..contract()
    };
    let without = denied(&crate::rules::scenario::ready(unjudged), &change("gemini"));
    assert!(
        matches!(
            without,
            GoalDenial::Refused {
                code: "no_judge",
                ..
            }
        ),
        "{without:?}"
    );
    let proposed = [crate::rules::scenario::create(contract())];
    let early = denied(&proposed, &change("gemini"));
    assert!(matches!(early, GoalDenial::WrongStatus { .. }), "{early:?}");
    let mut goal = after(&given);
    goal.spent.turns = goal.budget.turns;
    let human = Actor::Human {
        user: "ada".to_owned(),
    };
    let used_up = super::decide(Some(&goal), &human, &change_judge("gemini"), 0).unwrap_err();
    assert!(
        matches!(used_up, GoalDenial::BudgetUsedUp { .. }),
        "{used_up:?}"
    );
}

#[test]
fn a_goal_says_that_it_waits_for_its_judge() {
    let goal = after(&parked());
    let reason = words::reason(&goal).unwrap();
    assert!(
        reason.starts_with("parked until Kapi asks the judge codex again, 1970-01-01 00:01:10 UTC"),
        "{reason}"
    );
    assert!(
        reason.ends_with("and the verified candidate is kept"),
        "{reason}"
    );
    assert_eq!(
        words::next_commands(&goal),
        ["kapi up", "kapi resume 001", "kapi goal judge 001 JUDGE"]
    );
}

#[test]
fn the_event_is_one_line_of_the_log() {
    let event = GoalEvent::JudgeChanged {
        judge: "gemini".to_owned(),
    };
    let line = serde_json::to_string(&event).unwrap();
    assert_eq!(
        line,
        r#"{"type":"judge_changed","data":{"judge":"gemini"}}"#
    );
}
