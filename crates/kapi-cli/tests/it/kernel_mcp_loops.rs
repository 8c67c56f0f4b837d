//! Loops through the tools of the kernel.

use std::fs;

use serde_json::{Value, json};

use crate::kernel_mcp::{assert_refused, await_status, call, machine, status};
use crate::mcp::Client;

/// Checks that a tool shows every phase of a run, and that none is left.
fn assert_phases_are_over(client: &mut Client, id: &str) {
    let reported = status(client, id);
    let phases = reported.details["phases"].as_array().unwrap();
    assert_eq!(phases.len(), 8, "{reported:?}");
    let is_over = |it: &Value| it["status"] != "deferred";
    assert!(phases.iter().all(is_over), "{reported:?}");
    assert!(
        reported.text.contains("\n- execute: ok ("),
        "{}",
        reported.text
    );
}

#[test]
fn loop_trigger_runs_a_loop_and_skipped_and_duplicate_are_no_errors() {
    let env = machine("echo looked");
    env.write(
        ".pi/loops/nightly.md",
        "---\nname: nightly\ntrigger:\n  type: cron\n  schedule: \"0 3 * * *\"\ncooldown: 3600\n\
         ---\nLook around.\n",
    );
    let mut client = Client::new(&env);
    let reported = call(&mut client, "loop_status", &json!({}));
    assert_eq!(
        reported.details["loops"][0]["status"], "idle",
        "{reported:?}"
    );
    assert_eq!(reported.details["loops"][0]["lastRun"], Value::Null);
    assert!(
        reported.details["loops"][0]["nextScheduled"]
            .as_str()
            .unwrap()
            .contains("T03:00:00")
    );
    let trigger = json!({"loopName": " nightly ", "triggerSource": "a test"});
    let reported = call(&mut client, "loop_trigger", &trigger);
    assert!(!reported.is_error, "{reported:?}");
    assert_eq!(reported.details["status"], "launched");
    assert_eq!(reported.details["backgroundTaskId"], "task_1");
    let phases = reported.details["phases"].as_array().unwrap();
    let names: Vec<&str> = phases
        .iter()
        .map(|it| it["phase"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        [
            "trigger",
            "shouldRun",
            "context",
            "execute",
            "evaluate",
            "learn",
            "handoff",
            "retrigger"
        ]
    );
    assert_eq!(phases[0]["status"], "ok");
    let head = "Loop: nightly\nStatus: launched\nBackground task: task_1\nPhases:\n- trigger: ok";
    assert!(reported.text.starts_with(head), "{}", reported.text);
    let reported = call(&mut client, "loop_trigger", &trigger);
    assert!(!reported.is_error, "{reported:?}");
    assert_eq!(reported.details["status"], "duplicate");
    assert_eq!(reported.details["reason"], "duplicate trigger");
    await_status(&mut client, "task_1", "completed");
    assert_phases_are_over(&mut client, "task_1");
    let reported = call(&mut client, "loop_trigger", &json!({"loopName": "nightly"}));
    assert!(!reported.is_error, "{reported:?}");
    assert_eq!(reported.details["status"], "skipped");
    assert_eq!(reported.details["reason"], "cooldown active");
    let reported = call(&mut client, "loop_status", &json!({"loopName": "nightly"}));
    assert_eq!(
        reported.details["loops"][0]["status"], "completed",
        "{reported:?}"
    );
    assert!(reported.details["loops"][0]["lastRun"].is_string());
    let line = reported.text.lines().nth(1).unwrap();
    assert!(
        line.starts_with("- nightly: completed · lastRun=20"),
        "{line}"
    );
}

#[test]
fn loops_that_are_not_there() {
    let env = machine("true");
    env.write(
        ".pi/loops/broken.md",
        "---\nname: broken\ntimeout: soon\n---\nx\n",
    );
    let mut client = Client::new(&env);
    let reported = call(&mut client, "loop_status", &json!({}));
    assert_eq!(reported.text, "no loops discovered");
    assert_eq!(reported.details, json!({"loops": []}));
    let reported = call(&mut client, "loop_status", &json!({"loopName": "Ghost!"}));
    assert_refused(
        &reported,
        "loop not found: Ghost!. There are no loops.",
        &json!({"error": "not_found", "loops": []}),
    );
    env.write(".pi/loops/nightly.md", "---\nname: nightly\n---\nx\n");
    for (name, hint) in [
        ("nighly", "Did you mean nightly?"),
        ("ghost", "There are: nightly."),
        ("broken", ".pi/loops/broken.md:3: `timeout`"),
    ] {
        let reported = call(&mut client, "loop_status", &json!({"loopName": name}));
        assert!(reported.is_error, "{reported:?}");
        assert!(reported.text.contains(hint), "{}", reported.text);
    }
    fs::remove_file(env.repository().join(".pi/loops/nightly.md")).unwrap();
    let reported = call(&mut client, "loop_trigger", &json!({}));
    assert_refused(
        &reported,
        "loopName is required",
        &json!({"error": "loopName is required"}),
    );
    let reported = call(&mut client, "loop_trigger", &json!({"loopName": "ghost"}));
    assert_eq!(reported.details["status"], "error");
    assert_eq!(reported.details["reason"], "loop not found: ghost");
    assert!(reported.is_error);
    let reported = call(&mut client, "loop_trigger", &json!({"loopName": "broken"}));
    let reason = reported.details["reason"].as_str().unwrap();
    assert!(
        reason.starts_with("loop not found: broken (.pi/loops/broken.md:"),
        "{reason}"
    );
}

#[test]
fn loop_trigger_is_blocked_by_policy_inputs_and_faults() {
    let env = machine("echo looked");
    env.write(
        ".ilchul/policy.yaml",
        "loopTrigger:\n  requireTriggerSource: true\n",
    );
    env.write(".pi/loops/a.md", "---\nname: plain\n---\nLook around.\n");
    env.write(
        ".pi/loops/b.md",
        "---\nname: needy\ninputs:\n  market: null\n---\nLook at {market}.\n",
    );
    let mut client = Client::new(&env);
    for (arguments, reason) in [
        (json!({"loopName": "plain"}), "policy denied request: "),
        (
            json!({"loopName": "needy", "triggerSource": "me"}),
            "failed to ",
        ),
    ] {
        let reported = call(&mut client, "loop_trigger", &arguments);
        assert!(reported.is_error, "{reported:?}");
        assert_eq!(reported.details["status"], "error");
        assert_eq!(reported.details["backgroundTaskId"], Value::Null);
        let said = reported.details["reason"].as_str().unwrap();
        assert!(said.starts_with(reason), "{said}");
    }
    let reported = status(&mut client, "task_1");
    assert_eq!(reported.details["error"], "not_found", "nothing was let in");
    let reported = call(
        &mut client,
        "loop_trigger",
        &json!({"loopName": "plain", "triggerSource": "me"}),
    );
    assert_eq!(reported.details["status"], "launched", "{reported:?}");
}
