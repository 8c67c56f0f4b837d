//! Every command in every state of a task by every actor.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use kapi_core::actor::Actor;
use kapi_core::task_id::{Fence, KernelTaskId};
use kapi_core::usage::Usage;

use super::{
    LEASE_MS, TestKernel, agent, by_agent, cancel, claim, failed, give_back, holder, locations,
    loop_name, person, request, word,
};
use crate::rules::command::{Hold, KernelCommand};
use crate::rules::decide::decide;
use crate::rules::loop_run::RunTrigger;
use crate::rules::task::{AttemptReport, End, FailureKind, LoopPhase, PhaseStatus};

/// Where a task can stand, with the lease that was the last to be given for it.
fn situations() -> Vec<(&'static str, TestKernel, Hold)> {
    let unknown = Hold {
        task: KernelTaskId::new(1),
        fence: Fence(1),
    };
    let mut all = vec![("none", TestKernel::new(), unknown)];
    let mut test_kernel = TestKernel::new();
    let task = test_kernel.submit(request(by_agent("r1")));
    assert_eq!(task, unknown.task);
    all.push(("pending", test_kernel.clone(), unknown));
    let mut unwanted = test_kernel.clone();
    unwanted.ask(&person(), &cancel(task)).unwrap();
    all.push(("cancelled", unwanted, unknown));
    let hold = test_kernel.claim("worker 1").unwrap();
    all.push(("leased", test_kernel.clone(), hold));
    let mut stopping = test_kernel.clone();
    stopping.ask(&person(), &cancel(task)).unwrap();
    all.push(("leased, unwanted", stopping, hold));
    test_kernel.engine(&KernelCommand::Begin(hold)).unwrap();
    all.push(("running", test_kernel.clone(), hold));
    let mut stopping = test_kernel.clone();
    stopping.ask(&person(), &cancel(task)).unwrap();
    all.push(("running, unwanted", stopping, hold));
    let mut taken = test_kernel.clone();
    taken.expire(&["worker 1"]);
    all.push(("lost", taken.clone(), hold));
    taken.claim("worker 2").unwrap();
    all.push(("taken over", taken, hold));
    let mut bad = test_kernel.clone();
    bad.finish(hold, failed(FailureKind::Agent)).unwrap();
    all.push(("failed", bad, hold));
    test_kernel.finish(hold, End::Completed).unwrap();
    all.push(("completed", test_kernel.clone(), hold));
    test_kernel.kernel.take_ended();
    all.push(("archived", test_kernel, hold));
    all
}

/// What can be asked about one task.
fn of_task(hold: Hold) -> Vec<(&'static str, KernelCommand)> {
    let finish = |end| KernelCommand::Finish {
        hold,
        report: Box::new(AttemptReport::of(end)),
    };
    vec![
        ("begin", KernelCommand::Begin(hold)),
        (
            "beat",
            KernelCommand::Beat {
                hold,
                ttl_ms: LEASE_MS,
                usage: Usage::default(),
            },
        ),
        (
            "end phase",
            KernelCommand::EndPhase {
                hold,
                phase: LoopPhase::ShouldRun,
                status: PhaseStatus::Ok,
                detail: None,
                report: None,
            },
        ),
        ("complete", finish(End::Completed)),
        ("fail", finish(failed(FailureKind::Agent))),
        ("stop", finish(End::Cancelled)),
        ("give back", give_back(hold)),
        ("cancel", cancel(hold.task)),
    ]
}

/// What can be asked of the kernel as a whole.
fn of_kernel() -> Vec<(&'static str, KernelCommand)> {
    let name = loop_name("look");
    vec![
        (
            "submit",
            KernelCommand::Submit {
                request: Box::new(request(by_agent("r1"))),
                admission: TestKernel::new().admission,
            },
        ),
        ("claim", claim("worker 9", locations(100), None)),
        (
            "expire",
            KernelCommand::Expire {
                gone: BTreeSet::new(),
            },
        ),
        (
            "skip",
            KernelCommand::Skip {
                name: name.clone(),
                trigger: RunTrigger::Cron { due_at_ms: 1 },
                reason: "missed".to_owned(),
                is_refused: false,
            },
        ),
        (
            "switch",
            KernelCommand::Switch {
                name: name.clone(),
                is_enabled: false,
            },
        ),
        ("see", KernelCommand::See { name, mark: None }),
        (
            "lead",
            KernelCommand::Lead {
                holder: holder("worker 1"),
                ttl_ms: LEASE_MS,
                gone: BTreeSet::new(),
            },
        ),
        (
            "resign",
            KernelCommand::Resign {
                holder: holder("worker 1"),
            },
        ),
    ]
}

/// Returns what a command comes to: a word of refusal, what is recorded, or `-` for nothing.
fn outcome(test_kernel: &TestKernel, actor: &Actor, command: &KernelCommand) -> String {
    match decide(&test_kernel.kernel, actor, command, test_kernel.now_ms) {
        Err(denied) => word(&denied).to_owned(),
        Ok(decided) if decided.events.is_empty() => "-".to_owned(),
        Ok(decided) => {
            let kinds = decided.events.iter().map(|event| {
                let event = serde_json::to_value(event).unwrap();
                event["type"].as_str().unwrap().to_owned()
            });
            kinds.collect::<Vec<_>>().join("+")
        }
    }
}

/// What the engine is told about a task, by where the task stands.
const ENGINE: &str = "\
none              | NoTask | NoTask | NoTask | NoTask | NoTask | NoTask | NoTask | NoTask
pending           | Fenced | Fenced | Fenced | Fenced | Fenced | Fenced | Fenced | ended
cancelled         | Fenced | Fenced | Fenced | Fenced | Fenced | Fenced | Fenced | WrongState
leased            | begun | beat | WrongPhase | WrongState | WrongState | ended | requeued | cancel_asked
leased, unwanted  | WrongState | beat | WrongPhase | WrongState | WrongState | ended | ended | -
running           | WrongState | beat | WrongPhase | ended | ended | ended | requeued | cancel_asked
running, unwanted | WrongState | beat | WrongPhase | ended | ended | ended | ended | -
lost              | Fenced | Fenced | Fenced | Fenced | Fenced | Fenced | Fenced | cancel_asked
taken over        | Fenced | Fenced | Fenced | Fenced | Fenced | Fenced | Fenced | cancel_asked
failed            | Fenced | Fenced | Fenced | Fenced | Fenced | Fenced | Fenced | WrongState
completed         | Fenced | Fenced | Fenced | Fenced | Fenced | Fenced | Fenced | WrongState
archived          | NoTask | NoTask | NoTask | NoTask | NoTask | NoTask | NoTask | NoTask
";

#[test]
fn every_command_in_every_state_by_the_engine() {
    let mut table = String::new();
    for (name, test_kernel, hold) in situations() {
        write!(table, "{name:<17}").unwrap();
        for (_, command) in of_task(hold) {
            write!(
                table,
                " | {}",
                outcome(&test_kernel, &Actor::Engine, &command)
            )
            .unwrap();
        }
        table.push('\n');
    }
    assert_eq!(table, ENGINE, "\n{table}");
}

#[test]
fn only_the_engine_speaks_for_workers_and_whoever_asked_may_cancel() {
    let not_there = ["none", "archived"];
    for (name, test_kernel, hold) in situations() {
        for (command_name, command) in of_task(hold) {
            let actors = [(person(), true), (agent("r1"), true), (agent("r2"), false)];
            for (actor, is_theirs) in actors {
                let found = outcome(&test_kernel, &actor, &command);
                let by_engine = outcome(&test_kernel, &Actor::Engine, &command);
                let expected = match command_name {
                    "cancel" if is_theirs || not_there.contains(&name) => by_engine,
                    "cancel" => "NotYours".to_owned(),
                    _ => "OnlyEngine".to_owned(),
                };
                assert_eq!(found, expected, "{command_name} of {name} by {actor}");
            }
        }
    }
}

#[test]
fn the_kernel_as_a_whole_is_the_engines_but_for_submitting_and_switching() {
    for (name, test_kernel, _) in situations() {
        for (command_name, command) in of_kernel() {
            let by = |actor: &Actor| outcome(&test_kernel, actor, &command);
            let found = (by(&Actor::Engine), by(&person()), by(&agent("r1")));
            let pick = match name {
                "pending" | "lost" => "claimed",
                _ => "-",
            };
            let engine_only = |word: &str| {
                let no = "OnlyEngine".to_owned();
                (word.to_owned(), no.clone(), no)
            };
            let expected = match command_name {
                "submit" => {
                    let yes = "submitted".to_owned();
                    (yes.clone(), yes.clone(), yes)
                }
                "switch" => {
                    let no = "OnlyHuman".to_owned();
                    (no.clone(), "loop_switched".to_owned(), no)
                }
                "claim" => engine_only(pick),
                "skip" => engine_only("loop_skipped"),
                "see" => engine_only("loop_seen"),
                "lead" => engine_only("led"),
                _ => engine_only("-"),
            };
            assert_eq!(found, expected, "{command_name} while {name}");
        }
    }
}

#[test]
fn a_request_that_breaks_a_rule_of_its_own_is_named_by_that_rule() {
    use super::plain;
    use crate::rules::request::{
        DEPTH_MAX, DESCRIPTION_BYTES_MAX, KEY_BYTES_MAX, KernelRequest, PROMPT_BYTES_MAX,
        RETRIES_MAX, RequestKey, TIMEOUT_MS_MAX,
    };
    let key = |text: String| Some(RequestKey { text, ttl_ms: 1 });
    let check = |change: &dyn Fn(&mut KernelRequest), expected: Option<&str>| {
        let mut asked = plain();
        change(&mut asked);
        let found = TestKernel::new().try_submit(&person(), asked);
        assert_eq!(
            found.err().map(|denied| denied.to_string()).as_deref(),
            expected
        );
    };
    check(
        &|it| it.prompt = " \n".to_owned(),
        Some("description and prompt are required"),
    );
    check(
        &|it| it.description.clear(),
        Some("description and prompt are required"),
    );
    check(
        &|it| it.description = "x".repeat(DESCRIPTION_BYTES_MAX),
        None,
    );
    check(
        &|it| it.description = "x".repeat(DESCRIPTION_BYTES_MAX + 1),
        Some("the description must be at most 500 bytes"),
    );
    check(&|it| it.prompt = "x".repeat(PROMPT_BYTES_MAX), None);
    check(
        &|it| it.prompt = "x".repeat(PROMPT_BYTES_MAX + 1),
        Some("the prompt must be at most 256 KiB"),
    );
    check(&|it| it.agent.clear(), Some("an agent profile is required"));
    check(&|it| it.timeout_ms = TIMEOUT_MS_MAX, None);
    check(
        &|it| it.timeout_ms = TIMEOUT_MS_MAX + 1,
        Some("the timeout must be at most 24 hours"),
    );
    check(&|it| it.retry.times = RETRIES_MAX, None);
    check(
        &|it| it.retry.times = RETRIES_MAX + 1,
        Some("a task can be retried at most 16 times"),
    );
    check(
        &|it| it.key = key(" ".to_owned()),
        Some("idempotency key is required"),
    );
    check(&|it| it.key = key("k".repeat(KEY_BYTES_MAX)), None);
    check(
        &|it| it.key = key("k".repeat(KEY_BYTES_MAX + 1)),
        Some("the idempotency key must be at most 512 bytes"),
    );
    check(&|it| it.depth = DEPTH_MAX, None);
    check(
        &|it| it.depth = DEPTH_MAX + 1,
        Some("self recursion depth 4 exceeds maxDepth=3"),
    );
}
