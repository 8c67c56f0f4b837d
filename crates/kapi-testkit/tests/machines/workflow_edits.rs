//! Artifacts that a person edited while they waited: nothing of that is overwritten.

use std::path::PathBuf;

use kapi_core::actor::Actor;
use kapi_core::workflow_key::WorkflowKey;
use kapi_sys::disk::{Disk as _, replace_derived};
use kapi_workflow::record::workflows::Workflows;
use kapi_workflow::rules::command::WorkflowCommand;
use kapi_workflow::rules::decide::TEXT_BYTES_MAX;

use crate::support::person;
use crate::workflow_support::Governed;

/// An interview whose spec waits and was edited: its key, the file, what was drafted and the edit.
fn edited(governed: &Governed) -> (WorkflowKey, PathBuf, String, String) {
    let key = governed.drafted("Keep sessions");
    let file = document(governed, &key, "spec.md");
    let drafted = text(governed, &file).unwrap();
    let edit = format!("{drafted}\nAnd it must work offline.\n");
    replace_derived(&governed.disk, &file, edit.as_bytes()).unwrap();
    (key, file, drafted, edit)
}

fn document(governed: &Governed, key: &WorkflowKey, name: &str) -> PathBuf {
    let layout = governed.project().layout.workflow(key.mode, &key.id);
    layout.document(name)
}

fn text(governed: &Governed, file: &PathBuf) -> Option<String> {
    let bytes = governed.disk.snapshot().get(file).cloned()?;
    Some(String::from_utf8(bytes).unwrap())
}

#[test]
fn an_edit_goes_along_with_the_words_of_a_revision_and_is_kept() {
    let governed = Governed::new();
    let (key, file, drafted, edit) = edited(&governed);
    let project = governed.project();
    let revised = Workflows::of(&project)
        .revise_workflow(&key, &person(), "Smaller.")
        .unwrap();
    let [kept] = &revised.edited[..] else {
        panic!("one artifact was edited");
    };
    assert_eq!(*kept, document(&governed, &key, "spec.edited.md"));
    assert_eq!(text(&governed, kept).unwrap(), edit);
    let workflow = revised.submitted.workflow;
    let said = &workflow.revisions[0].text;
    assert!(
        said.starts_with("Smaller.\n\nI edited spec.md by hand."),
        "{said}"
    );
    assert!(said.contains("\n+And it must work offline.\n"), "{said}");
    assert!(!said.contains("-#"), "nothing else was changed: {said}");
    assert!(workflow.pending.is_none());
    let now = text(&governed, &file).unwrap();
    assert_ne!(now, edit, "the file is the log's again");
    assert!(drafted.starts_with("# Spec"));
}

#[test]
fn without_an_edit_the_words_are_the_persons_alone() {
    let governed = Governed::new();
    let key = governed.drafted("Keep sessions");
    // Lost in a crash: nobody edited that.
    let file = document(&governed, &key, "spec.md");
    governed
        .disk
        .rename(&file, &file.with_extension("gone"))
        .unwrap();
    let project = governed.project();
    let revised = Workflows::of(&project)
        .revise_workflow(&key, &person(), "Smaller.")
        .unwrap();
    assert!(revised.edited.is_empty());
    assert_eq!(revised.submitted.workflow.revisions[0].text, "Smaller.");
    let again = Workflows::of(&project)
        .revise_workflow(&key, &person(), "Still smaller.")
        .unwrap();
    assert!(again.edited.is_empty(), "nothing waits now");
    let agent = Actor::Agent {
        run: "r".to_owned(),
    };
    let refused = Workflows::of(&project)
        .revise_workflow(&key, &agent, "Mine.")
        .unwrap_err();
    assert_eq!(refused.denied_code(), Some("not_human"));
}

#[test]
fn an_edit_too_large_to_be_told_is_refused_and_stays() {
    let governed = Governed::new();
    let (key, file, ..) = edited(&governed);
    let large = "x\n".repeat(TEXT_BYTES_MAX);
    replace_derived(&governed.disk, &file, large.as_bytes()).unwrap();
    let before = governed.disk.snapshot();
    let refused = Workflows::of(&governed.project()).revise_workflow(&key, &person(), "Smaller.");
    assert_eq!(refused.unwrap_err().denied_code(), Some("malformed"));
    assert_eq!(governed.disk.snapshot(), before);
}

#[test]
fn whatever_ends_the_wait_keeps_the_edit() {
    let governed = Governed::new();
    let (key, _, _, edit) = edited(&governed);
    let project = governed.project();
    // Another edit of that name is there already.
    let first = document(&governed, &key, "spec.edited.md");
    replace_derived(&governed.disk, &first, b"An older one.").unwrap();
    let reason = "Not wanted.".to_owned();
    Workflows::of(&project)
        .submit_workflow(&key, &person(), &WorkflowCommand::Abandon { reason })
        .unwrap();
    assert_eq!(text(&governed, &first).unwrap(), "An older one.");
    let second = document(&governed, &key, "spec.edited-2.md");
    assert_eq!(text(&governed, &second).unwrap(), edit);
}
