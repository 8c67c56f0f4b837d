//! Judges that are away for seconds, for an hour or for good: verified work is never lost to that, and
//! nothing but the judge is run again.

use kapi_testkit::model_server::ModelServer;
use kapi_testkit::model_server::fault::{FaultKind, FaultTarget, InjectedFault, Times};
use kapi_testkit::model_server::scenario::{JudgeRule, ModelScenario};
use serde_json::{Value, json};

use crate::environment::{BRANCH, Environment, FIRST};
use crate::parking::count;

const HONEST: &str = "command:echo 42 > answer.txt";
/// Words that only a question to a judge holds.
const MARK: &str = "You are the judge of a goal";
const DONE: &str = "command:echo '{\"verdict\": \"done\", \"reason\": \"it is 42\"}'";

/// Starts a judge that fails in this way before it says done.
fn failing(times: Times, kind: FaultKind) -> (ModelServer, Environment) {
    let done = json!({ "verdict": "done", "reason": "it says 42", "token": "{{token}}" });
    let mut scenario = ModelScenario::new(Vec::new());
    scenario.judges = vec![JudgeRule::new(MARK, vec![done])];
    scenario.faults = vec![InjectedFault::new(FaultTarget::Judge, times, kind)];
    let server = ModelServer::start(scenario).unwrap();
    let env = Environment::new();
    env.configure(&format!(
        "[judges.mine]\napi = \"openai\"\nbase_url = {:?}\n",
        server.base_url()
    ));
    (server, env)
}

const fn status(code: u16, retry_after_s: Option<u64>) -> FaultKind {
    FaultKind::Status {
        code,
        retry_after_s,
    }
}

/// Checks that a goal came to its end by one turn and one verification, however often it was judged.
fn assert_only_judged_again(env: &Environment) {
    for kind in ["agent_ended", "candidate_committed", "verify_ended"] {
        assert_eq!(count(env, FIRST, kind), 1, "{kind}");
    }
    assert_eq!(env.show(BRANCH, "answer.txt"), "42");
}

#[test]
fn a_judge_that_is_down_for_seconds_delays_a_goal_and_nothing_else() {
    let (_server, env) = failing(Times::First(2), status(503, None));
    let run = env.run(HONEST, &["--judge", "mine/judge-1"]);
    run.assert_status("done", 0);
    assert!((1..=2).contains(&run.events("judge_failed").len()));
    assert_only_judged_again(&env);
}

#[test]
fn a_judge_that_is_away_for_an_hour_parks_the_goal_and_a_person_may_name_another() {
    let (_server, env) = failing(Times::Always, status(429, Some(3_600)));
    let run = env.run(HONEST, &["--judge", "mine/judge-1", "--park"]);
    run.assert_status("waiting", 5);
    run.assert_nothing_published(&env);
    let parked = &run.events("goal_parked")[0]["wait"]["until"];
    assert_eq!(parked["for"], "judge", "{parked}");
    assert!(
        run.reason()
            .contains("Kapi asks the judge mine/judge-1 again"),
        "{}",
        run.reason()
    );
    let inbox = env.json(&["inbox"]);
    assert_eq!(inbox["items"][0]["kind"], "judge_unreachable", "{inbox}");
    assert!(env.kapi(&["status"]).stdout.contains("waiting"));

    for unknown in ["nobody/model", "gpt-5", "gemini/x"] {
        let refused = env.kapi(&["goal", "judge", "1", unknown]);
        assert!(
            refused.code != 0 && refused.stderr.contains("mine"),
            "{refused:?}"
        );
    }
    let none = env.kapi(&["goal", "judge", "1", "none"]);
    assert_eq!(none.code, 3, "{none:?}");
    assert_eq!(
        count(&env, FIRST, "judge_changed"),
        0,
        "nothing was recorded"
    );

    let changed = env.kapi(&["goal", "judge", "1", DONE]);
    assert_eq!(changed.code, 0, "{changed:?}");
    assert!(changed.stdout.contains("kapi resume 001"), "{changed:?}");
    let up = env.kapi(&["up", "--once"]);
    assert_eq!(up.code, 0, "{up:?}");
    let goal = env.json(&["show", "1"]);
    assert_eq!(
        (&goal["status"], &goal["standing"]["judge"]),
        (&json!("done"), &json!(DONE)),
        "{goal}"
    );
    assert_only_judged_again(&env);
    let is_persons = |event: &Value| event["actor"]["kind"] == "human";
    let events = env.events(FIRST);
    let changed = events
        .iter()
        .find(|event| event["type"] == "judge_changed")
        .unwrap();
    assert!(is_persons(changed), "{changed}");
}

#[test]
fn a_judge_that_nobody_here_approved_is_not_asked() {
    let (_server, env) = failing(Times::Always, status(429, Some(3_600)));
    let run = env.run(HONEST, &["--judge", "mine/judge-1", "--park"]);
    run.assert_status("waiting", 5);
    // Somebody else's process, without this person's home, says that another judge judges.
    crate::parking::change_judge(&env, FIRST, DONE);
    let resumed = env.kapi(&["resume", "1"]);
    assert_eq!(resumed.code, 3, "{resumed:?}");
    assert!(
        resumed.stderr.contains("in place of the contract's judge"),
        "{resumed:?}"
    );
    assert_eq!(count(&env, FIRST, "goal_done"), 0);
}

#[test]
fn a_kill_while_the_judge_is_away_loses_nothing() {
    let (server, env) = failing(Times::First(1), FaultKind::Hang);
    let running = env.start_run(HONEST, &["--judge", "mine/judge-1"]);
    let is_asked = |event: &Value| {
        event["type"] == "effect_intended" && event["data"]["effect"] == "t001-judge-a1"
    };
    env.await_event(FIRST, &is_asked);
    let is_judged = |requests: &[kapi_testkit::model_server::record::RecordedRequest]| {
        requests
            .iter()
            .any(|request| request.body.to_string().contains(MARK))
    };
    assert!(server.wait_until(std::time::Duration::from_secs(60), &is_judged));
    running.kill();
    env.await_no_process();
    let up = env.kapi(&["up", "--once"]);
    assert_eq!(up.code, 0, "{up:?}");
    assert_eq!(count(&env, FIRST, "goal_done"), 1);
    assert_only_judged_again(&env);
}

#[test]
fn a_preference_names_a_provider_that_there_is() {
    let (_server, env) = failing(Times::Always, status(503, None));
    env.kapi(&["goal", "judge", "foo/bar"])
        .assert_error(2, &["foo", "mine"]);
    let known = env.kapi(&["goal", "judge", "mine/any"]);
    assert_eq!(known.code, 0, "{known:?}");
}
