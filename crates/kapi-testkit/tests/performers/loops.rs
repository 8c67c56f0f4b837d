//! Runs of loops: the eight phases, what one run leaves for the next, and going on after a worker.

use std::fs;

use kapi_task::rules::task::{FailureKind, KernelTask, PhaseStatus};
use kapi_task::rules::task_state::KernelTaskState;
use kapi_task::rules::task_terms::Retry;

use crate::asks::failure;
use crate::machine::Machine;

/// Returns the phases with how they ended.
pub(crate) fn phases(task: &KernelTask) -> Vec<(&'static str, PhaseStatus)> {
    let records = task.phases.iter();
    records
        .map(|record| (record.phase.name(), record.status))
        .collect()
}

/// Returns what is worth knowing of a phase.
pub(crate) fn detail(task: &KernelTask, phase: &str) -> String {
    let mut records = task.phases.iter();
    let record = records.find(|record| record.phase.name() == phase).unwrap();
    record.detail.clone().unwrap_or_default()
}

#[test]
fn a_run_goes_through_eight_phases_and_leaves_something_for_the_next() {
    let mut machine = Machine::new();
    let line = "echo right > answer.txt; echo did it; echo NEXT: look at the notes; \
                echo LESSON: the answer is always wrong at first";
    let definition = machine.define("fix", "workspace: branch\nlearn: always", line);
    let task = machine.trigger(&definition);
    assert_eq!(task.state, KernelTaskState::Completed, "{task:#?}");
    use PhaseStatus::{Ok, Skipped};
    assert_eq!(
        phases(&task),
        [
            ("trigger", Ok),
            ("shouldRun", Ok),
            ("context", Ok),
            ("execute", Ok),
            ("evaluate", Ok),
            ("learn", Ok),
            ("handoff", Ok),
            ("retrigger", Skipped),
        ]
    );
    assert!(detail(&task, "context").starts_with("promptChars="));
    assert_eq!(detail(&task, "execute"), "exit 0, 1 file");
    assert_eq!(detail(&task, "learn"), "1 lesson proposed");
    assert!(detail(&task, "handoff").starts_with("freshness="));
    assert_eq!(machine.at("kapi/fix-task_1", "answer.txt"), "right");
    let report = task.report.as_ref().unwrap();
    let handoff = report.handoff.as_ref().unwrap();
    assert_eq!(handoff.next_action, "look at the notes");
    assert_eq!(handoff.files[0].path, "answer.txt");
    let lessons = fs::read_to_string(machine.app().join(".ilchul/guardrails/fix.md")).unwrap();
    assert!(
        lessons.contains("always wrong") && lessons.contains("proposed"),
        "{lessons}"
    );
    assert!(lessons.contains("loop:task_1"), "{lessons}");
    assert!(
        machine
            .prompt(&task)
            .contains("The number is 7; the last one was none.")
    );

    // The next run is told what this one left; what a person accepted, too.
    fs::remove_file(machine.app().join(".ilchul/guardrails/fix.md")).unwrap();
    machine.write(
        ".ilchul/guardrails/fix.md",
        "- 2026-01-01T00:00:00Z [warning] mind the gap\n",
    );
    let next = machine.trigger(&definition);
    let prompt = machine.prompt(&next);
    assert!(
        prompt.contains("Next action: look at the notes"),
        "{prompt}"
    );
    assert!(prompt.contains("the last one was completed"), "{prompt}");
    assert!(prompt.contains("mind the gap"), "{prompt}");

    // One that is not true any more is left out, and why is said.
    machine.write("answer.txt", "otherwise\n");
    let third = machine.trigger(&definition);
    assert!(
        detail(&third, "context").contains("stale: answer.txt was changed"),
        "{third:#?}"
    );
    let prompt = machine.prompt(&third);
    assert!(!prompt.contains("Next action:") && prompt.contains("left out, because it is stale"));
}

#[test]
fn a_place_that_nothing_is_known_for_is_an_error_and_nothing_runs() {
    let mut machine = Machine::new();
    let mut definition = machine.define("fix", "workspace: branch", "touch never");
    definition.body = "Fix {payload.bug}.".to_owned();
    let task = machine.trigger(&definition);
    let why = failure(&task);
    assert_eq!(why.kind, FailureKind::NotLaunched);
    assert!(
        why.message.contains("{payload.bug}") && why.message.contains("payload.n"),
        "{why:?}"
    );
    assert_eq!(phases(&task)[2], ("context", PhaseStatus::Error));
    assert_eq!(phases(&task)[3], ("execute", PhaseStatus::Skipped));
    assert_eq!(task.phases.len(), 8);
}

#[test]
fn a_worker_that_takes_over_goes_on_at_the_recorded_phase() {
    let mut machine = Machine::new();
    machine.leaves_at = Some("sleep");
    let settings = "workspace: branch\nverify:\n  - sleep 2; grep -q right answer.txt";
    let definition = machine.define("fix", settings, "echo right > answer.txt");
    let task = machine.trigger(&definition);
    assert_eq!(
        (task.state, task.attempts),
        (KernelTaskState::Completed, 2),
        "{task:#?}"
    );
    assert_eq!(task.phases.len(), 8);
    // The agent ran once, in the first attempt.
    let work = &task.report.as_ref().unwrap().work;
    assert_eq!(work.branch.as_deref(), Some("kapi/fix-task_1"));
    assert_eq!(
        machine.git(&["branch", "--list", "kapi/*"]),
        "kapi/fix-task_1"
    );
}

#[test]
fn a_failed_attempt_is_tried_again_and_only_the_last_one_learns() {
    let mut machine = Machine::new();
    let settings = "workspace: branch\nlearn: on_failure";
    let command = "echo half > answer.txt; echo LESSON: half is not enough; exit 3";
    let mut definition = machine.define("fix", settings, command);
    definition.retry = Retry {
        times: 1,
        backoff_ms: 1,
        backoff_ms_max: 1,
    };
    let task = machine.trigger(&definition);
    assert_eq!(
        (task.state, task.attempts),
        (KernelTaskState::Failed, 2),
        "{task:#?}"
    );
    assert_eq!(failure(&task).exit_code, Some(3));
    assert_eq!(task.phases.len(), 8);
    assert_eq!(detail(&task, "learn"), "1 lesson proposed");
    assert_eq!(machine.at(&machine.held_back(&task), "answer.txt"), "half");
    let handoff = task.report.as_ref().unwrap().handoff.clone().unwrap();
    assert_eq!(handoff.next_action, "inspect the transcript and retry");
}

#[test]
fn a_loop_that_sets_itself_off_comes_to_its_end() {
    let mut machine = Machine::new();
    let settings = "workspace: read_only\nretrigger: {loop: again, on: completed, depth_max: 2}";
    let definition = machine.define("again", settings, "true");
    let mut definition = definition;
    definition.body = "Go on.".to_owned();
    machine.write(
        ".pi/loops/again.md",
        &format!("---\nname: again\nagent: worker\n{settings}\n---\nGo on.\n"),
    );
    let first = machine.trigger(&definition);
    let mut task = first;
    let mut n_runs = 1;
    while let Some(&next) = machine.open_tasks().first() {
        assert_eq!(detail(&task, "retrigger"), next.to_string());
        task = machine.finish(next);
        n_runs += 1;
        assert!(n_runs < 9, "it goes on and on");
    }
    assert_eq!(n_runs, 3);
    assert_eq!(
        detail(&task, "retrigger"),
        "2 runs in a row have triggered each other"
    );
    assert_eq!(task.loop_run().unwrap().depth, 2);
}
