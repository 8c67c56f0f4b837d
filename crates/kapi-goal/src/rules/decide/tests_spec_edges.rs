//! Pi-until-done's edge cases and the original's defects, each by its number.
//!
//! Those that need more than a goal's rules are shown by the program's own tests.

use kapi_core::actor::Actor;
use kapi_core::agent_end::AgentRun;
use kapi_core::usage::Usage;
use kapi_core::verdict::JudgeAnswer;
use serde_json::json;

use crate::rules::command::{GoalCommand, PersonCommand};
use crate::rules::decide::decide;
use crate::rules::decide::tests::check;
use crate::rules::decide::tests_spec::{
    after, and, current, named, note, plan, replan, reported, setup, two_tasks, unjudged, update,
    working,
};
use crate::rules::denied::GoalDenial;
use crate::rules::effect::{GoalAction, next};
use crate::rules::event::{GoalEvent, Stop};
use crate::rules::evolve::evolve;
use crate::rules::outcome::GoalOutcome;
use crate::rules::prompt::blocks::reminder;
use crate::rules::prompt::{distill_prompt, setup_prompt, turn_prompt};
use crate::rules::scenario::Step::{Begins, Ends, Engine, Person, Reports};
use crate::rules::scenario::{
    Step, approve, committed, contract, create, failed, goal_of, judged, passed, play, ready,
    to_judge, worked,
};
use crate::rules::state::{Goal, GoalStatus};

#[test]
fn edge_01_a_goal_is_the_fold_of_its_events_and_nothing_is_a_goal_without_them() {
    let (goal, events) = reported(&and(&working(), &[two_tasks(), note("n", None)]));
    assert_eq!(reloaded(&events), Some(goal));
    assert_eq!(reloaded(&[]), None);
}

/// Returns the state that another process makes of the written log.
fn reloaded(events: &[GoalEvent]) -> Option<Goal> {
    let mut state = None;
    for event in events {
        let line = serde_json::to_string(event).unwrap();
        evolve(&mut state, &serde_json::from_str(&line).unwrap());
    }
    state
}

#[test]
fn edge_02_the_next_prompt_holds_goal_proof_task_learnings_and_notes() {
    let learnt = json!({"addLearning": "the port is taken"});
    let turn = [
        Begins,
        two_tasks(),
        update("a", learnt),
        note("half way", None),
        Reports(worked()),
        Ends(committed("one")),
        Ends(failed()),
    ];
    let prompt = turn_prompt(&after(&and(&ready(unjudged()), &turn)));
    for part in [
        "make it work",
        "it works",
        "all must exit 0:\n- test",
        "At hand: a.",
        "a: the port is taken",
        "turn 1: half way",
    ] {
        assert!(prompt.contains(part), "{part} in {prompt}");
    }
}

#[test]
fn edge_08_turns_used_up_pause_the_goal_and_a_person_lets_it_go_on() {
    let mut contract = unjudged();
    contract.budget.turns = 1;
    let given = and(
        &ready(contract),
        &[Ends(worked()), Ends(committed("one")), Begins],
    );
    check(
        &given,
        Reports(failed()),
        "not verified\nturn 1 VerifyFailed\npaused: turn budget",
    );
    let paused = and(&given, &[Reports(failed())]);
    check(
        &paused,
        Person(GoalCommand::Resume),
        "denied: the turn budget is used up",
    );
    let more = Person(GoalCommand::Person(PersonCommand::SetTurns { turns: 2 }));
    check(
        &and(&paused, &[more]),
        Person(GoalCommand::Resume),
        "resumed",
    );
}

#[test]
fn edge_12_the_judge_stays_the_one_of_the_contract() {
    let again = [Person(GoalCommand::Interrupt), Person(GoalCommand::Resume)];
    let goal = after(&and(&to_judge(contract()), &again));
    let GoalAction::Judge(task) = next(&goal).unwrap().action else {
        panic!("it is not judged again");
    };
    assert_eq!(task.agent, "codex");
}

#[test]
fn edge_14_the_contract_is_the_first_event_and_stands_in_every_prompt() {
    let mut contract = unjudged();
    contract.budget.turns = 9;
    contract.stall_after = 20;
    let mut steps = ready(contract);
    for turn in 0..8 {
        let tree = format!("tree-{turn}");
        steps.extend([Ends(worked()), Ends(committed(&tree)), Ends(failed())]);
    }
    let (goal, events) = reported(&steps);
    assert!(matches!(events[0], GoalEvent::GoalCreated { .. }));
    assert_eq!(goal.turn, 9);
    let prompt = turn_prompt(&goal);
    assert!(prompt.contains("# Goal\n\nmake it work"), "{prompt}");
    assert!(prompt.contains("# Done when\n\nit works"), "{prompt}");
}

#[test]
fn edge_20_a_cancelled_goal_takes_nothing_from_the_run_that_ends() {
    let cancel = Person(GoalCommand::Cancel { reason: None });
    let cancelled = and(&working(), &[cancel]);
    check(
        &cancelled,
        Reports(worked()),
        "cut off t001-agent-a1 after 11 tokens",
    );
    let goal = after(&and(&cancelled, &[Reports(worked())]));
    assert_eq!((goal.status, next(&goal)), (GoalStatus::Cancelled, None));
}

#[test]
fn judge_response_that_cannot_be_read_never_completes() {
    let given = and(&to_judge(contract()), &[Begins]);
    let malformed = JudgeAnswer::Malformed {
        text: "{\"verdict\": \"don".to_owned(),
    };
    check(
        &given,
        Reports(judged(malformed)),
        "no verdict, again in 1000 ms",
    );
}

/// Reference D1: the original's resume makes a goal active that nobody approved.
#[test]
fn d01_resume_during_setup_goes_on_drafting_and_nothing_else() {
    for given in [vec![setup()], vec![setup(), Begins]] {
        let goal = after(&and(
            &given,
            &[Person(GoalCommand::Interrupt), Person(GoalCommand::Resume)],
        ));
        assert_eq!((goal.status, goal.approval), (GoalStatus::Setup, None));
        let GoalAction::RunAgent(task) = next(&goal).unwrap().action else {
            panic!("it is not drafted again");
        };
        assert!(task.prompt.starts_with("# Draft a contract"));
    }
    check(
        &[create(contract())],
        Person(GoalCommand::Resume),
        "denied: the goal is proposed, so it cannot be resumed",
    );
}

/// Reference D2: the original asks only while the goal is active.
#[test]
fn d02_ask_before_holds_in_every_status() {
    let mut asked = unjudged();
    asked.working.ask_before = vec!["git push".to_owned()];
    let ask = || {
        Step::Agent(GoalCommand::AskConsent {
            pattern: "git push".to_owned(),
            command: "git push origin".to_owned(),
        })
    };
    let begun = and(&ready(asked.clone()), &[Begins]);
    for given in [
        vec![create(asked.clone())],
        begun.clone(),
        and(&begun, &[Person(GoalCommand::Interrupt)]),
        and(&begun, &[Person(GoalCommand::Cancel { reason: None })]),
        and(
            &ready(asked),
            &[Ends(worked()), Ends(committed("one")), Begins],
        ),
    ] {
        check(&given, ask(), "refused git push origin (git push)");
    }
    // Consent is a person's, and it is no way for the agent to give it.
    let allow = GoalCommand::Person(PersonCommand::Allow {
        what: "git push".to_owned(),
    });
    let mut state = Some(after(&begun));
    assert!(matches!(
        play(&mut state, &Step::Agent(allow.clone())),
        Err(GoalDenial::OnlyHuman { .. })
    ));
    check(&and(&begun, &[Person(allow)]), ask(), "nothing");
}

/// Reference D4 and D5: the original forgets the turns it used and remembers why it was paused.
#[test]
fn d04_d05_a_reload_keeps_the_budget_and_forgets_what_is_over() {
    let turn = [Ends(worked()), Ends(committed("one")), Ends(failed())];
    let steps = and(&ready(unjudged()), &turn);
    let rests = [Person(GoalCommand::Interrupt), Person(GoalCommand::Resume)];
    let (goal, events) = reported(&and(&steps, &rests));
    let again = reloaded(&events).unwrap();
    assert_eq!(again, goal);
    assert_eq!(
        (again.spent.turns, again.budget.turns, again.stop),
        (1, 3, None)
    );
    let planned = [
        Begins,
        plan(&[named("a")]),
        update("a", json!({"status": "done"})),
    ];
    let (_, events) = reported(&and(&steps, &planned));
    let plan = reloaded(&events).unwrap().journey.plan.unwrap();
    assert_eq!(plan.current(), None);
}

/// Reference D6: answering a side question is no turn and cannot spin.
#[test]
fn d06_a_side_question_touches_neither_loop_nor_guard() {
    let aside = Engine(GoalCommand::AnswerSideQuestion {
        question: "why?".to_owned(),
        answer: "because".to_owned(),
        usage: Usage::default(),
    });
    check(&working(), aside.clone(), "aside why?");
    let (before, asked) = (after(&working()), after(&and(&working(), &[aside])));
    assert_eq!(asked, before);
}

/// Reference D8: in the original they keep waiting for a task that is gone.
#[test]
fn d08_tasks_behind_a_split_or_a_merge_become_ready() {
    let planned = and(&working(), &[two_tasks()]);
    let new = |id: &str| json!({"id": id, "title": id, "phase": "red"});
    let done = || json!({"status": "done"});
    let split = json!([{"op": "split", "taskId": "a", "into": [new("c"), new("d")]}]);
    let given = and(
        &planned,
        &[
            replan(split, "two"),
            update("c", done()),
            update("d", done()),
        ],
    );
    assert_eq!(current(&given), "b");
    let third = json!([{"op": "insert", "task": {"id": "e", "title": "e", "phase": "red",
        "dependencies": ["b"]}}, {"op": "merge", "taskIds": ["a", "b"], "into": new("f")}]);
    let given = and(&planned, &[replan(third, "one"), update("f", done())]);
    assert_eq!(current(&given), "e");
}

/// Reference D9: in the original the next turn still began.
#[test]
fn d09_an_interrupt_ends_the_loop() {
    let stopped = and(
        &working(),
        &[Person(GoalCommand::Interrupt), Reports(worked())],
    );
    let goal = after(&stopped);
    assert_eq!(
        (goal.status, goal.stop.clone()),
        (GoalStatus::Paused, Some(Stop::Interrupted))
    );
    assert_eq!(next(&goal), None);
    check(
        &stopped,
        Begins,
        "denied: the goal is paused, so it cannot be worked on",
    );
}

/// Reference D10: the original delivers the failure while every gate is off.
#[test]
fn d10_a_failed_check_leaves_the_goal_active_with_its_gates() {
    let mut asked = unjudged();
    asked.working.ask_before = vec!["rm".to_owned()];
    let turn = [
        Ends(worked()),
        Ends(committed("one")),
        Ends(failed()),
        Begins,
    ];
    let given = and(&ready(asked), &turn);
    assert_eq!(after(&given).status, GoalStatus::Active);
    let ask = GoalCommand::AskConsent {
        pattern: "rm".to_owned(),
        command: "rm -r build".to_owned(),
    };
    check(&given, Step::Agent(ask), "refused rm -r build (rm)");
}

/// Reference D11: the original cannot be approved where there is no screen.
#[test]
fn d11_an_approval_needs_the_hash_and_no_screen() {
    check(&[create(contract())], approve(), "approved");
    let agent = Actor::Agent {
        run: "r".to_owned(),
    };
    let Person(command) = approve() else {
        panic!("an approval is a person's");
    };
    let goal = after(&[create(contract())]);
    assert_eq!(
        decide(Some(&goal), &agent, &command, 0)
            .unwrap_err()
            .to_string(),
        "only the user may approve a contract, not agent r"
    );
}

/// The six blocks of the specification, in its order, by what each of them must demand.
#[test]
fn per_turn_principles_are_all_there_and_in_their_order() {
    let mut contract = unjudged();
    contract.working.mise = true;
    let blocks = reminder(&goal_of(contract));
    let demands: [&[&str]; 6] = [
        &[
            "red",
            "green",
            "refactor",
            "cleanup",
            "no production code before a test fails",
        ],
        &["is not success", "treat it as not achieved", "quote"],
        &[
            "typechecked, linted, formatted, compiled, tested, built, run from a clean checkout",
            "checked by one command",
            "needless slowness is a defect",
            "instead of reaching for them",
            "never internals, and share no state",
            "the project's own checks pass",
            "say which phase you are in",
            "claim nothing that is not verified",
        ],
        &["mise run", "mise exec --"],
        &["3 levels", "30 lines", "200 lines", "one responsibility"],
        &[
            "until_done_replan",
            "until_done_task_update",
            "until_done_complete",
            "until_done_block",
        ],
    ];
    assert_eq!(blocks.len(), demands.len());
    for (block, wanted) in blocks.iter().zip(demands) {
        for words in wanted {
            assert!(block.contains(words), "{words} in {block}");
        }
    }
}

#[test]
fn phase_zero_and_the_distilling_ask_for_what_the_specification_lists() {
    let goal = goal_of(contract());
    for (prompt, wanted) in [
        (
            setup_prompt(&goal),
            &[
                "ticket",
                "exploratory",
                "logs",
                "metrics",
                "staging",
                "flame graphs",
                "sandboxes",
                "the one command",
                "until_done_set",
            ][..],
        ),
        (
            distill_prompt(&goal),
            &[
                "until_done_distill",
                "problem",
                "solution",
                "learnt",
                "gotchas",
                "surfaces",
                "follow-ups",
            ][..],
        ),
    ] {
        for words in wanted {
            assert!(prompt.contains(words), "{words} in {prompt}");
        }
    }
}

/// The specification's "Clean-end guarantee": two ways on, and nothing invented.
#[test]
fn clean_end_reminder_names_both_ways() {
    let turn = [
        Begins,
        plan(&[named("a")]),
        update("a", json!({"status": "done"})),
        Reports(worked()),
        Ends(committed("one")),
        Ends(passed()),
    ];
    let prompt = turn_prompt(&after(&and(&ready(unjudged()), &turn)));
    assert!(
        prompt.starts_with("All planned tasks are marked done."),
        "{prompt}"
    );
    for words in [
        "verify command",
        "until_done_complete",
        "residual_work_discovered",
        "invent",
    ] {
        assert!(prompt.contains(words), "{words} in {prompt}");
    }
}

/// The specification's `agent_start`: what one turn was refused is no excuse for the next.
#[test]
fn agent_start_counts_every_turn_anew() {
    let mut asked = unjudged();
    asked.working.ask_before = vec!["rm".to_owned()];
    let ask = Step::Agent(GoalCommand::AskConsent {
        pattern: "rm".to_owned(),
        command: "rm -r build".to_owned(),
    });
    let idle = || {
        let GoalOutcome::Agent(run) = worked() else {
            panic!("work is an agent's run");
        };
        let score = Some(0);
        GoalOutcome::Agent(AgentRun { score, ..run })
    };
    let first = [
        Begins,
        ask,
        Reports(worked()),
        Ends(committed("one")),
        Ends(failed()),
    ];
    let second = [Begins, Reports(idle()), Ends(committed("one")), Begins];
    check(
        &and(&ready(asked), &[&first[..], &second[..]].concat()),
        Reports(failed()),
        "not verified\nturn 2 VerifyFailed\nblocked: spin guard",
    );
}
