//! The policy at the moment of launch: each kind of rule stops a real one, or holds inside it.

use std::sync::atomic::{AtomicBool, Ordering};

use kapi_core::isolation::SandboxLevel;
use kapi_machine::watch::Activity;
use kapi_task::rules::task::{FailureKind, PhaseStatus};
use kapi_task::rules::task_state::KernelTaskState;

use crate::asks::{Ask, failure, shell};
use crate::conditions::with;
use crate::loops::phases;
use crate::machine::Machine;

fn denied(machine: &Machine, ask: &Ask, words: &[&str]) {
    let task = machine.run(ask);
    let why = failure(&task);
    assert_eq!(why.kind, FailureKind::PolicyDenied, "{why:?}");
    for word in words {
        assert!(why.message.contains(word), "{word:?} in {why:?}");
    }
}

#[test]
fn a_rule_that_came_after_the_request_stops_the_launch() {
    let machine = Machine::new();
    machine.policy("rules:\n  - {name: no-shell, effect: deny, when: {backend: 'command:*'}}\n");
    denied(
        &machine,
        &shell("touch never"),
        &["policy denied request", "no-shell", "line 2"],
    );
    assert_eq!(machine.git(&["branch", "--list", "kapi/*"]), "");
}

#[test]
fn a_rule_that_came_after_the_request_stops_a_run_before_its_condition() {
    let mut machine = Machine::new();
    let definition = machine.define("fix", "workspace: branch", "touch never");
    // The condition would be skipped over, and takes a command that must not run either.
    let definition = with(&definition, "{command: {run: 'exit 1'}}");
    machine.policy("rules:\n  - {name: no-shell, effect: deny, when: {backend: 'command:*'}}\n");
    let ran = AtomicBool::new(false);
    let task = machine.trigger_watched(&definition, &|activity, _| {
        if matches!(activity, Activity::Tool { .. } | Activity::Verifying { .. }) {
            ran.store(true, Ordering::SeqCst);
        }
    });
    let why = failure(&task);
    assert_eq!(why.kind, FailureKind::PolicyDenied, "{task:#?}");
    assert!(why.message.contains("no-shell"), "{why:?}");
    let phases = phases(&task);
    assert_eq!(phases[1], ("shouldRun", PhaseStatus::Error), "{phases:?}");
    assert_eq!(phases[2], ("context", PhaseStatus::Skipped), "{phases:?}");
    assert!(!ran.load(Ordering::SeqCst));
    assert_eq!(machine.git(&["branch", "--list", "kapi/*"]), "");
}

#[test]
fn a_policy_that_cannot_be_read_stops_everything_and_says_where() {
    let machine = Machine::new();
    machine.policy("rules:\n  - nme: x\n");
    denied(&machine, &shell("touch never"), &["policy.yaml", "line 2"]);
}

#[test]
fn a_limited_network_is_limited_inside() {
    let machine = Machine::new();
    let ask = shell("env | grep -c -i ^https_proxy= ; true");
    let task = machine.run(&ask);
    assert_eq!(task.report.as_ref().unwrap().output.trim(), "2");
    machine.policy("rules:\n  - {name: offline, effect: deny, when: {network: filtered}}\n");
    let task = machine.run(&ask);
    assert_eq!(task.state, KernelTaskState::Completed, "{task:#?}");
    assert_eq!(task.report.as_ref().unwrap().output.trim(), "0");
}

#[test]
fn a_forbidden_command_does_not_run_inside() {
    let machine = Machine::new();
    machine.policy("rules:\n  - {name: no-push, effect: deny, when: {command: git push}}\n");
    let script = "
turns:
  - steps:
      - bash: git push origin main || true; touch pushed
      - bash: touch looked
      - say: done
";
    let ask = Ask {
        backend: Some(machine.script(script)),
        ..shell("true")
    };
    let task = machine.run(&ask);
    assert_eq!(task.state, KernelTaskState::Completed, "{task:#?}");
    let files = machine.git(&["ls-tree", "--name-only", "kapi/task_1"]);
    assert!(
        files.contains("looked") && !files.contains("pushed"),
        "{files}"
    );
    // Nothing would ask before what a plain program runs.
    denied(
        &machine,
        &shell("touch never"),
        &["no permission hook", "no-push"],
    );
}

#[test]
fn a_kept_path_stays_as_it_is() {
    let machine = Machine::new();
    machine.policy("rules:\n  - {name: keep-notes, effect: deny, when: {path: 'notes/**'}}\n");
    let held = shell("echo x > notes/keep.md && exit 9; echo right > answer.txt");
    let task = machine.run(&held);
    assert_eq!(task.state, KernelTaskState::Completed, "{task:#?}");
    assert_eq!(machine.at("kapi/task_1", "notes/keep.md"), "as it is");
    denied(&machine, &shell("echo x > notes/new.md"), &["notes/new.md"]);
}

#[test]
fn without_isolation_nothing_is_promised_that_would_not_hold() {
    let mut machine = Machine::new();
    machine.setting.level = SandboxLevel::None;
    let task = machine.run(&shell("echo right > answer.txt"));
    assert_eq!(task.state, KernelTaskState::Completed, "{task:#?}");
    assert_eq!(machine.at("kapi/task_1", "answer.txt"), "right");
    let mut reader = shell("touch never");
    reader.agent = "oracle".to_owned();
    let task = machine.run(&reader);
    let why = failure(&task);
    assert_eq!(why.kind, FailureKind::NotLaunched);
    assert!(
        why.message
            .contains("nothing prevents an agent from writing"),
        "{why:?}"
    );
    machine.policy("rules:\n  - {name: offline, effect: deny, when: {network: open}}\n");
    denied(
        &machine,
        &shell("touch never"),
        &["cannot be limited", "offline"],
    );
}

#[test]
fn what_a_person_would_be_asked_is_refused_where_nobody_is() {
    let machine = Machine::new();
    machine.policy("rules:\n  - {name: careful, effect: ask, when: {command: rm}}\n");
    let script = "
turns:
  - steps:
      - bash: rm answer.txt
      - write: {path: new.txt, content: new}
";
    let ask = Ask {
        backend: Some(machine.script(script)),
        ..shell("true")
    };
    let task = machine.run(&ask);
    assert_eq!(task.state, KernelTaskState::Completed, "{task:#?}");
    let files = machine.git(&["ls-tree", "--name-only", "kapi/task_1"]);
    assert!(
        files.contains("answer.txt") && files.contains("new.txt"),
        "{files}"
    );
}
