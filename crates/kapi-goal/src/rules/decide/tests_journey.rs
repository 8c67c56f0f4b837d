//! What an agent's tools, a person's words and a wait do to a goal.
//!
//! The same `check` as for the main rules.

use kapi_core::agent_end::{AgentEnd, AgentRun, ProviderFailureKind};
use kapi_core::id::GoalId;
use kapi_core::judge::Judge;
use kapi_core::usage::Usage;
use kapi_core::verdict::JudgeVerdict;

use crate::rules::command::{GoalCommand, PersonCommand};
use crate::rules::contract::Contract;
use crate::rules::decide::tests::check;
use crate::rules::decide::tests_spec::after;
use crate::rules::outcome::GoalOutcome;
use crate::rules::plan::patch::TaskPatch;
use crate::rules::plan::task::{GoalPlanTask, PlanTaskId, TaskPhase, TaskStatus};
use crate::rules::scenario::Step::{Begins, Calls, Ends, Engine, Person, Reports};
use crate::rules::scenario::{
    Step, approve, committed, contract, create, failed, passed, provider, ready, verdict, worked,
};
use crate::rules::tool::ToolCall;
use crate::rules::wait::WaitFor;
use crate::rules::words;

fn unjudged() -> Contract {
    Contract {
        judge: Judge::None,
        ..contract()
    }
}

fn id(text: &str) -> PlanTaskId {
    PlanTaskId::parse(text).unwrap()
}

fn task(name: &str) -> GoalPlanTask {
    serde_json::from_value(serde_json::json!({"id": name, "title": name, "phase": "green"}))
        .unwrap()
}

fn plan(names: &[&str]) -> Step {
    Calls(ToolCall::Plan {
        tasks: names.iter().map(|name| task(name)).collect(),
    })
}

fn ends(name: &str) -> Step {
    Calls(ToolCall::TaskUpdate {
        id: id(name),
        patch: Box::new(TaskPatch {
            status: Some(TaskStatus::Done),
            ..TaskPatch::default()
        }),
    })
}

fn complete() -> Step {
    Calls(ToolCall::Complete {
        evidence: "ok".to_owned(),
        summary: None,
    })
}

fn wait_for(until: WaitFor) -> Step {
    Calls(ToolCall::Wait {
        until,
        reason: "later".to_owned(),
        timeout_ms: None,
    })
}

fn person(command: PersonCommand) -> Step {
    Person(GoalCommand::Person(command))
}

fn say(text: &str) -> Step {
    person(PersonCommand::Say {
        text: text.to_owned(),
    })
}

fn scored(score: u32) -> GoalOutcome {
    GoalOutcome::Agent(AgentRun {
        end: AgentEnd::Finished,
        claim: None,
        message: String::new(),
        session: None,
        usage: Usage::default(),
        tools: 0,
        isolation: None,
        score: Some(score),
    })
}

/// Checks how the next effect ends, once it is under way.
fn check_end(given: &[Step], outcome: GoalOutcome, then: &str) {
    let given = [given, &[Begins]].concat();
    check(&given, Reports(outcome), then);
}

/// A turn in which these calls are made, up to its verification.
fn turn(calls: &[Step], tree: &str) -> Vec<Step> {
    let mut steps = vec![Begins];
    steps.extend(calls.iter().cloned());
    steps.extend([Reports(worked()), Ends(committed(tree))]);
    steps
}

fn setup() -> Step {
    Person(GoalCommand::Create {
        id: GoalId::parse("001-x").unwrap(),
        contract: Box::new(contract()),
        contract_hash: "hash".to_owned(),
        setup: true,
    })
}

#[test]
fn setup_is_left_only_by_a_draft_that_a_person_approves() {
    check(
        &[setup()],
        approve(),
        "denied: the goal is setup, so it cannot be approved",
    );
    // Reference D1: resume during setup makes nothing active.
    check(&[setup()], Person(GoalCommand::Resume), "nothing");
    let paused = [
        setup(),
        Person(GoalCommand::Interrupt),
        Person(GoalCommand::Resume),
    ];
    check(
        &paused,
        approve(),
        "denied: the goal is setup, so it cannot be approved",
    );
    let draft = |hash: &str| {
        Person(GoalCommand::Draft {
            contract: Box::new(contract()),
            contract_hash: hash.to_owned(),
        })
    };
    check(&[setup()], draft("other"), "drafted other");
    check(
        &[setup(), draft("other")],
        approve(),
        "denied: the contract does not have the approved hash (hash)",
    );
    check(
        &[setup(), draft("other"), draft("hash")],
        approve(),
        "approved",
    );
    check(
        &[create(contract()), approve()],
        draft("late"),
        "denied: goal_exists: the goal is active, and its contract cannot change; only the user \
         can start another",
    );
    let silent = "setup ended\nblocked: no draft: ";
    check_end(&[setup()], scored(4), silent);
    // A draft that is approved in advance begins its goal while its run still ends.
    let in_advance = [setup(), Begins, draft("hash"), approve()];
    check(
        &in_advance,
        Reports(scored(4)),
        "cut off t000-setup-a1 after 0 tokens",
    );
}

#[test]
fn a_plan_that_is_not_worked_off_goes_on_though_the_checks_pass() {
    let first = [ready(unjudged()), turn(&[plan(&["a", "b"])], "one")].concat();
    check_end(&first, passed(), "verified\nturn 1 PlanOpen");
    let second = [
        first,
        vec![Ends(passed())],
        turn(&[ends("a"), ends("b"), complete()], "two"),
    ]
    .concat();
    check_end(&second, passed(), "verified");
}

#[test]
fn clean_end_reminds_twice_and_then_pauses() {
    let mut contract = unjudged();
    contract.budget.turns = 9;
    let mut given = [ready(contract), turn(&[plan(&["a"]), ends("a")], "one")].concat();
    check_end(&given, passed(), "verified\nturn 1 Unclaimed");
    given.push(Ends(passed()));
    given.extend(turn(&[], "one"));
    check_end(&given, passed(), "verified\nturn 2 Unclaimed");
    given.push(Ends(passed()));
    given.extend(turn(&[], "one"));
    check_end(
        &given,
        passed(),
        "verified\nturn 3 Unclaimed\npaused: worked off, 2 reminders",
    );
}

#[test]
fn a_turn_whose_time_was_up_before_any_work_is_told_as_that() {
    for (end, told, remedy) in [
        (AgentEnd::Finished, "in its turn", "kapi say"),
        (
            AgentEnd::DeadlinePassed,
            "before the time of its turn was up",
            "--turn-timeout",
        ),
    ] {
        let GoalOutcome::Agent(mut run) = scored(0) else {
            panic!("an agent's turn");
        };
        run.end = end;
        let given = [
            ready(unjudged()),
            vec![
                Begins,
                Reports(GoalOutcome::Agent(run)),
                Ends(committed("base-tree")),
            ],
            vec![Ends(failed())],
        ];
        let goal = after(&given.concat());
        let reason = words::reason(&goal).unwrap();
        assert!(
            reason.starts_with("spin guard: ") && reason.ends_with(told),
            "{reason}"
        );
        let hint = words::hint(&goal).unwrap();
        assert!(hint.contains(remedy), "{hint}");
    }
}

#[test]
fn spin_guard_blocks_a_turn_without_any_work() {
    let turn = |score: u32, tree: &str| {
        [
            ready(unjudged()),
            vec![Begins, Reports(scored(score)), Ends(committed(tree))],
        ]
        .concat()
    };
    check_end(
        &turn(0, "base-tree"),
        failed(),
        "not verified\nturn 1 VerifyFailed\nblocked: spin guard",
    );
    check_end(
        &turn(1, "base-tree"),
        failed(),
        "not verified\nturn 1 VerifyFailed",
    );
    // A changed tree is work, whatever the tools say.
    check_end(
        &turn(0, "new"),
        failed(),
        "not verified\nturn 1 VerifyFailed",
    );
    // Reference D6: a turn in which a person spoke is theirs.
    let persons = [
        ready(unjudged()),
        vec![
            say("hello"),
            Begins,
            Reports(scored(0)),
            Ends(committed("base-tree")),
        ],
    ]
    .concat();
    check_end(&persons, failed(), "not verified\nturn 1 VerifyFailed");
}

#[test]
fn refused_commands_are_not_called_spinning() {
    let mut asked = unjudged();
    asked.working.ask_before = vec!["git push".to_owned()];
    let ask = Step::Agent(GoalCommand::AskConsent {
        pattern: "git push".to_owned(),
        command: "git push origin".to_owned(),
    });
    let given = [
        ready(asked),
        vec![
            Begins,
            ask,
            Reports(scored(0)),
            Ends(committed("base-tree")),
        ],
    ]
    .concat();
    check_end(
        &given,
        failed(),
        "not verified\nturn 1 VerifyFailed\nblocked: needs consent to git push",
    );
    let allow = person(PersonCommand::Allow {
        what: "git push".to_owned(),
    });
    check(&given, allow, "allowed git push");
    let other = person(PersonCommand::Allow {
        what: "rm".to_owned(),
    });
    check(&given, other, "denied: not_found: nothing asked for \"rm\"");
}

#[test]
fn a_wait_parks_the_goal_and_is_ended_once() {
    let until = WaitFor::File {
        path: "ready".to_owned(),
        until: crate::rules::wait::FileState::Exists,
    };
    let given = [
        ready(unjudged()),
        vec![Begins, wait_for(until), Reports(worked())],
    ]
    .concat();
    check(
        &given,
        Ends(committed("one")),
        "intended t001-commit-a1\ncommitted one\nturn 1 Waiting\nparked 1",
    );
    let parked = [given, vec![Ends(committed("one"))]].concat();
    let wake = || {
        Engine(GoalCommand::Wake {
            number: 1,
            why: "there".to_owned(),
        })
    };
    check(
        &parked,
        Begins,
        "denied: the goal is waiting, so it cannot be worked on",
    );
    check(&parked, wake(), "woken 1: there");
    let woken = [parked, vec![wake()]].concat();
    check(
        &woken,
        wake(),
        "denied: the goal is active, so it cannot be woken",
    );
    check(&woken, Begins, "intended t002-agent-a2");
}

#[test]
fn a_long_rate_limit_parks_the_goal() {
    let limited = provider(ProviderFailureKind::RateLimited, Some(3_600_000));
    check(
        &ready(unjudged()),
        Ends(limited),
        "intended t001-agent-a1\nprovider failed\nparked 1",
    );
}

#[test]
fn a_person_cuts_in_and_the_loop_goes_on_afterwards() {
    let given = [ready(unjudged()), vec![Begins]].concat();
    check(&given, say("look here"), "person says look here");
    // The turn under way is begun anew, with the words.
    let spoken = [given, vec![say("look here")]].concat();
    check(&spoken, Begins, "intended t001-agent-a2");
    // What is said while the work is proved keeps it from being the last word.
    let late = [
        ready(contract()),
        vec![Ends(worked()), Ends(committed("one")), say("and the docs")],
    ]
    .concat();
    check_end(&late, passed(), "verified\nturn 1 PersonSpoke");
}

#[test]
fn only_the_run_under_way_speaks_for_the_goal() {
    let stale = Step::Agent(GoalCommand::Tool(ToolCall::Progress {
        note: "n".to_owned(),
        phase: Some(TaskPhase::Red),
    }));
    let given = [ready(unjudged()), vec![Begins]].concat();
    check(
        &given,
        stale.clone(),
        "denied: wrong_run: until_done_progress is only for the current run, and the turn of agent r \
         is over",
    );
    check(
        &[create(unjudged())],
        stale,
        "denied: no_active_goal: the goal is proposed, so until_done_progress does nothing",
    );
    let distill = Calls(ToolCall::Distill {
        markdown: "m".to_owned(),
    });
    check(
        &given,
        distill,
        "denied: not_done: the goal is active; summarize it once it is done",
    );
}

#[test]
fn a_done_goal_is_distilled_and_stays_done() {
    let done = [
        ready(unjudged()),
        turn(&[plan(&["a"]), ends("a"), complete()], "one"),
        vec![
            Ends(passed()),
            Ends(GoalOutcome::Published {
                commit: "commit-one".to_owned(),
            }),
        ],
    ]
    .concat();
    check(&done, Begins, "intended t001-distill-a1");
    let distilling = [done.clone(), vec![Begins]].concat();
    let markdown = "learnt".to_owned();
    check(
        &distilling,
        Calls(ToolCall::Distill { markdown }),
        "distilled learnt",
    );
    check(&distilling, Reports(worked()), "distil ended");
    check(
        &distilling,
        Person(GoalCommand::Interrupt),
        "distil skipped",
    );
    let skipped = [distilling, vec![Person(GoalCommand::Interrupt)]].concat();
    check(
        &skipped,
        Reports(worked()),
        "cut off t001-distill-a1 after 11 tokens",
    );
}

#[test]
fn a_result_that_is_not_accepted_is_worked_on_again() {
    let done = [
        ready(contract()),
        vec![
            Ends(worked()),
            Ends(committed("one")),
            Ends(passed()),
            Ends(verdict(JudgeVerdict::Done)),
            Ends(GoalOutcome::Published {
                commit: "commit-one".to_owned(),
            }),
        ],
    ]
    .concat();
    let reopen = || {
        person(PersonCommand::Reopen {
            reason: "no docs".to_owned(),
        })
    };
    check(&done, reopen(), "reopened: no docs");
    let again = [done.clone(), vec![reopen()]].concat();
    check(&again, Begins, "intended t001-workspace-a1");
    let workspace = GoalOutcome::Workspace {
        path: "/w".to_owned(),
    };
    let working = [again, vec![Ends(workspace)]].concat();
    check(&working, Begins, "intended t002-agent-a1");
}

#[test]
fn the_turn_budget_is_set_between_1_and_20000() {
    let set = |turns| person(PersonCommand::SetTurns { turns });
    let given = ready(contract());
    check(&given, set(20_000), "turns 20000");
    let denied = "denied: the raise is not valid: the turn budget must be 1 to 20000";
    check(&given, set(0), denied);
    check(&given, set(20_001), denied);
}

#[test]
fn a_cap_on_spending_pauses_before_anything_is_begun() {
    let cap = GoalOutcome::CapReached {
        cap: "machine".to_owned(),
        session: None,
    };
    check(
        &ready(contract()),
        Ends(cap),
        "intended t001-agent-a1\ncut off t001-agent-a1 after 0 tokens\npaused: cap machine",
    );
}
