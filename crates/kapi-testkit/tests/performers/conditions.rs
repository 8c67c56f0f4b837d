//! What must hold before a loop runs: each kind of condition lets a real run through or stops it.

use std::collections::BTreeMap;

use kapi_settings::fault::Faults;
use kapi_settings::{read as settings, yaml};
use kapi_task::rules::condition::ConditionForm;
use kapi_task::rules::definition::Definition;
use kapi_task::rules::task::{End, KernelTask, PhaseStatus};
use kapi_task::rules::task_state::KernelTaskState;

use crate::loops::{detail, phases};
use crate::machine::Machine;

pub(crate) fn with(definition: &Definition, should_run: &str) -> Definition {
    let mut faults = Faults::of("f".to_owned());
    let root = yaml::parse(&format!("c:\n  {should_run}\n"), &mut faults).unwrap();
    let mut read: BTreeMap<String, ConditionForm> = settings::read(&root, &mut faults).unwrap();
    assert_eq!(faults.into_list(), []);
    Definition {
        should_run: read.remove("c").map(|form| form.0),
        ..definition.clone()
    }
}

fn was_skipped(task: &KernelTask) -> bool {
    assert_eq!(task.state, KernelTaskState::Completed, "{task:#?}");
    matches!(task.report.as_ref().unwrap().end, End::Skipped { .. })
}

#[test]
fn a_condition_that_does_not_hold_skips_the_run_and_says_why() {
    let mut machine = Machine::new();
    let definition = machine.define("fix", "workspace: branch", "touch never");
    let task = machine.trigger(&with(&definition, "{file: {exists: '*.nothing'}}"));
    assert!(was_skipped(&task));
    assert_eq!(phases(&task)[1], ("shouldRun", PhaseStatus::Skipped));
    let rest = phases(&task).split_off(2);
    assert!(
        rest.iter()
            .all(|(_, status)| *status == PhaseStatus::Skipped)
    );
    assert_eq!(rest.len(), 6);
    assert!(
        detail(&task, "shouldRun").contains("*.nothing"),
        "{task:#?}"
    );
    assert_eq!(machine.git(&["branch", "--list", "kapi/*"]), "");
}

#[test]
fn each_kind_is_looked_up_in_the_project() {
    let mut machine = Machine::new();
    let definition = machine.define("fix", "workspace: read_only", "true");
    machine.git(&["tag", "old", "HEAD~1"]);
    for (text, holds) in [
        ("payload.n == 7", true),
        ("payload.n == 8", false),
        ("{file: {exists: 'notes/*.md'}}", true),
        ("{file: {gone: 'notes/*.md'}}", false),
        ("{git: {branch: ma*}}", true),
        ("{git: {branch: other}}", false),
        ("{git: clean}", true),
        ("{git: dirty}", false),
        ("{git: {ahead_of: old}}", true),
        ("{git: {ahead_of: main}}", false),
        ("{command: {run: grep -q wrong answer.txt}}", true),
        ("{command: {run: grep -q right answer.txt}}", false),
        // The project cannot be written to, and what is not known does not hold.
        ("{command: {run: touch answer.txt}}", false),
        ("{command: {run: test -e .ilchul/policy.yaml}}", false),
        ("{command: {run: sleep 600, timeout: 1}}", false),
        ("{not: {git: {ahead_of: nowhere}}}", false),
    ] {
        let task = machine.trigger(&with(&definition, text));
        assert_eq!(
            was_skipped(&task),
            !holds,
            "{text}: {}",
            detail(&task, "shouldRun")
        );
    }
}

#[test]
fn what_changed_is_seen_since_the_last_run_and_not_since_the_last_look() {
    let mut machine = Machine::new();
    let definition = machine.define("fix", "workspace: read_only", "true");
    let changed = with(&definition, "{changed: ['notes/**']}");
    let moved = with(&definition, "{git: {ref_changed: refs/heads/main}}");
    // Before the first run everything is new.
    assert!(!was_skipped(&machine.trigger(&changed)));
    assert!(was_skipped(&machine.trigger(&changed)));
    machine.write("answer.txt", "other\n");
    machine.commit("elsewhere");
    assert!(was_skipped(&machine.trigger(&changed)));
    machine.write("notes/keep.md", "otherwise\n");
    let task = machine.trigger(&changed);
    assert!(!was_skipped(&task));
    assert!(
        detail(&task, "shouldRun").contains("notes/keep.md"),
        "{task:#?}"
    );
    assert!(!was_skipped(&machine.trigger(&moved)));
    assert!(was_skipped(&machine.trigger(&moved)));
    machine.commit("the notes");
    assert!(!was_skipped(&machine.trigger(&moved)));
    let last = with(&definition, "{last_result: {is: completed}}");
    assert!(!was_skipped(&machine.trigger(&last)));
}
