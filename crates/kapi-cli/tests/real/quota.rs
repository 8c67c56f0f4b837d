//! A provider whose quota is used up for long: the goal is parked, nobody asks, and it goes on.
//!
//! The CLIs are real and the provider is scripted. Only the clock that sees the quota reset is moved.

use std::time::Instant;

use kapi_core::id::GoalId;
use kapi_goal::record::project::Project;
use kapi_goal::rules::state::GoalStatus;
use kapi_store::layout::ProjectLayout;
use kapi_sys::clock::SystemClock;
use kapi_sys::real_disk::RealDisk;
use kapi_testkit::agent_tools::Cli;
use kapi_testkit::model_server::fault::{FaultKind, FaultTarget, InjectedFault, Times};
use kapi_testkit::model_server::scenario::{AssistantTurn, ModelScenario};
use kapi_workflow::record::supervise::{WakeOutcome, wake};

use crate::environment::{BRANCH, FIRST, PATIENCE};
use crate::machine::Machine;
use crate::program::Run;

/// Longer than any process should sit through.
const RETRY_AFTER_S: u64 = 3_600;

fn does_it() -> ModelScenario {
    ModelScenario::new(vec![
        AssistantTurn::bash("echo 42 > answer.txt"),
        AssistantTurn::text("It is done."),
    ])
}

fn used_up() -> ModelScenario {
    let mut scenario = does_it();
    let kind = FaultKind::Status {
        code: 429,
        retry_after_s: Some(RETRY_AFTER_S),
    };
    scenario.faults = vec![InjectedFault::new(FaultTarget::Any, Times::Always, kind)];
    scenario
}

/// Runs into a used-up quota with a CLI, and goes on when it is reset.
fn check(cli: Cli) {
    let machine = Machine::new(used_up());
    let env = &machine.env;
    let began = Instant::now();
    let run = machine.run(cli, "none", &["--turns", "1", "--park"]);
    run.assert_status("waiting", 5);
    assert!(began.elapsed() < PATIENCE, "{:?}", began.elapsed());
    assert_eq!(run.result["turns"], 0, "a used-up quota is no turn");
    let failed = run.events("provider_failed")[0];
    assert_eq!(failed["failure"]["kind"], "rate_limited");
    assert_eq!(failed["failure"]["retry_after_ms"], RETRY_AFTER_S * 1_000);
    let wait = &run.events("goal_parked")[0]["wait"];
    assert_eq!(wait["until"]["for"], "quota");
    let parked_ms = wait["since_ms"].as_u64().unwrap();
    let at_ms = wait["until"]["at_ms"].as_u64().unwrap();
    assert_eq!(at_ms - parked_ms, RETRY_AFTER_S * 1_000);
    env.await_no_process();

    // Parked: whoever looks finds it parked, and no model is asked.
    let asked = machine.asked().len();
    let n_events = env.events(FIRST).len();
    for _ in 0..2 {
        assert_eq!(env.kapi(&["up", "--once"]).code, 0);
    }
    assert_eq!(machine.asked().len(), asked);
    assert_eq!(env.events(FIRST).len(), n_events);

    machine.server.set_scenario(does_it());
    let project = Project {
        disk: &RealDisk,
        clock: &SystemClock,
        layout: ProjectLayout::new(env.repository()),
        owner: "test".to_owned(),
        home: None,
    };
    let id = GoalId::parse(FIRST).unwrap();
    // An hour later, as far as whoever looks is concerned.
    let woken = wake(&project, &id, 1, "the quota is reset").unwrap();
    assert_eq!(woken, WakeOutcome::Now);
    let up = env.kapi(&["up", "--once"]);
    assert_eq!(up.code, 0, "{up:?}");
    let goal = project.load(&id).unwrap();
    assert_eq!((goal.status, goal.spent.turns), (GoalStatus::Done, 1));
    assert_eq!(env.show(BRANCH, "answer.txt"), "42");
    env.await_no_process();
}

#[test]
fn a_used_up_quota_parks_the_goal_with_claude() {
    check(Cli::Claude);
}

#[test]
fn a_used_up_quota_parks_the_goal_with_codex() {
    check(Cli::Codex);
}

#[test]
fn a_used_up_quota_parks_the_goal_with_gemini() {
    check(Cli::Gemini);
}

#[test]
fn a_used_up_quota_parks_the_goal_with_pi() {
    check(Cli::Pi);
}

#[test]
fn a_parked_run_asks_no_model_and_ctrl_c_leaves_it_parked() {
    let machine = Machine::new(used_up());
    let mut running = machine.env.start_run("pi", &["--judge", "none"]);
    running.await_line(&|line| line.contains("after Ctrl-C it stays parked"));
    let asked = machine.asked().len();
    running.signal(rustix::process::Signal::INT);
    let run = Run::from(running.finish());
    run.assert_status("waiting", 130);
    assert_eq!(machine.asked().len(), asked);
    machine.env.await_no_process();
}
