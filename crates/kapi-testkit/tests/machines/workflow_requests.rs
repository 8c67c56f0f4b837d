//! Requests of workflows: starting, refusing, approving, listing, attaching.

use kapi_core::actor::Actor;
use kapi_core::mode::Mode;
use kapi_core::workflow_key::WorkflowKey;
use kapi_core::workflow_status::WorkflowStatus;
use kapi_sys::disk::{Disk as _, replace_derived};
use kapi_workflow::record::audit::audit_workflow;
use kapi_workflow::record::error::{WorkflowError, WorkflowLack};
use kapi_workflow::record::index::{WorkflowListingEntry, WorkflowSummary};
use kapi_workflow::record::requests::Approving;
use kapi_workflow::record::snapshot::WorkflowSnapshot;
use kapi_workflow::record::start::NewWorkflow;
use kapi_workflow::record::workflows::Workflows;
use kapi_workflow::rules::command::WorkflowCommand;
use kapi_workflow::rules::context_begin::ContextBegin;
use kapi_workflow::rules::modes::Begin;
use kapi_workflow::rules::pending::Means;

use crate::support::{Fixture, contract, person};
use crate::workflow_support::{Governed, asked, terms};

fn agent() -> Actor {
    Actor::Agent {
        run: "001-try.t001-agent-a1".to_owned(),
    }
}

fn approving(shown: &str) -> Approving {
    Approving {
        shown: shown.to_owned(),
        means: Means::NamedHash,
        accepts_risks: true,
    }
}

fn pending_hash(governed: &Governed, key: &WorkflowKey) -> String {
    let workflow = Workflows::of(&governed.project()).workflow(key).unwrap();
    workflow.pending.unwrap().sha256
}

fn approve(governed: &Governed, key: &WorkflowKey) {
    let shown = pending_hash(governed, key);
    let project = governed.project();
    Workflows::of(&project)
        .approve_workflow(key, &person(), &approving(&shown))
        .unwrap();
}

fn words(listed: &[WorkflowListingEntry]) -> Vec<String> {
    let of = |listed: &WorkflowListingEntry| match &listed.state {
        WorkflowSummary::Known(entry) => {
            format!("{} {} {}", listed.key, entry.status.as_str(), entry.phase)
        }
        WorkflowSummary::Damaged(error) => format!("{} {error}", listed.key),
    };
    listed.iter().map(of).collect()
}

/// Asks for what is refused, and compares every byte of the disk.
fn check_refused(governed: &Governed, code: &str, ask: &dyn Fn() -> Result<(), WorkflowError>) {
    let before = governed.disk.snapshot();
    let error = ask().unwrap_err();
    assert_eq!(error.denied_code(), Some(code), "{error}");
    assert_eq!(governed.disk.snapshot(), before, "{code}");
}

#[test]
fn goals_and_workflows_share_one_row_of_indexes() {
    let fixture = Fixture::new();
    fixture.approved(&contract());
    let project = fixture.project();
    let started = Workflows::of(&project).start_workflow(&person(), &asked("Keep sessions"));
    assert_eq!(started.unwrap().id.to_string(), "002-keep-sessions");
    let third = fixture.approved(&contract());
    assert_eq!(third.to_string(), "003-try");
    // The same words again give another name, and a purpose without words is called by its hash.
    let again = Workflows::of(&project).start_workflow(&person(), &asked("Keep sessions"));
    assert_eq!(again.unwrap().id.to_string(), "004-keep-sessions-2");
    let nothing = Workflows::of(&project).start_workflow(&person(), &asked("…"));
    let name = nothing.unwrap().id.to_string();
    assert!(name.starts_with("005-workflow-"), "{name}");
    assert_eq!(fixture.project().inventory().unwrap().next_index(), 6);
}

#[test]
fn a_refusal_leaves_every_byte_as_it_was() {
    let governed = Governed::new();
    let project = governed.project();
    let start = |actor: &Actor, new: &NewWorkflow| {
        Workflows::of(&project).start_workflow(actor, new).map(drop)
    };
    check_refused(&governed, "not_human", &|| {
        start(&agent(), &asked("Keep sessions"))
    });
    let from_nothing = NewWorkflow {
        begin: Begin::Ralph(ContextBegin {
            base: String::new(),
            interview: None,
            spec: None,
        }),
        ..asked("Keep sessions")
    };
    check_refused(&governed, "malformed", &|| start(&person(), &from_nothing));
    assert_eq!(governed.disk.ops(), 0, "nothing was even begun");
    let key = governed.drafted("Keep sessions");
    let shown = pending_hash(&governed, &key);
    let approve = |actor: &Actor, approving: &Approving| {
        let approved = Workflows::of(&governed.project()).approve_workflow(&key, actor, approving);
        approved.map(drop)
    };
    check_refused(&governed, "not_human", &|| {
        approve(&agent(), &approving(&shown))
    });
    check_refused(&governed, "subject_changed", &|| {
        approve(&person(), &approving("other"))
    });
    check_refused(&governed, "risks_not_accepted", &|| {
        let approving = Approving {
            accepts_risks: false,
            ..approving(&shown)
        };
        approve(&person(), &approving)
    });
    let reason = "Not wanted.".to_owned();
    let abandon = WorkflowCommand::Abandon { reason };
    let submit = |actor: &Actor, command: &WorkflowCommand| {
        let submitted = Workflows::of(&governed.project()).submit_workflow(&key, actor, command);
        submitted.map(drop)
    };
    check_refused(&governed, "not_human", &|| submit(&agent(), &abandon));
    submit(&person(), &abandon).unwrap();
    check_refused(&governed, "already_terminal", &|| {
        submit(&person(), &abandon)
    });
}

#[test]
fn an_artifact_that_was_edited_is_not_approved_and_not_overwritten() {
    let governed = Governed::new();
    let key = governed.drafted("Keep sessions");
    let project = governed.project();
    let file = project
        .layout
        .workflow(key.mode, &key.id)
        .document("spec.md");
    let written = governed.disk.snapshot()[&file].clone();
    replace_derived(&governed.disk, &file, b"Something else.").unwrap();
    let shown = pending_hash(&governed, &key);
    check_refused(&governed, "subject_changed", &|| {
        let approved = Workflows::of(&governed.project()).approve_workflow(
            &key,
            &person(),
            &approving(&shown),
        );
        approved.map(drop)
    });
    let faults = audit_workflow(&project, &key).unwrap().faults;
    assert_eq!(faults.len(), 1, "{faults:?}");
    // Put back, or lost in a crash: it is what was drafted again.
    let gone = file.with_extension("gone");
    governed.disk.rename(&file, &gone).unwrap();
    approve(&governed, &key);
    assert_eq!(
        governed.disk.snapshot().get(&file).map(Vec::len),
        Some(written.len())
    );
    assert!(
        Workflows::of(&project)
            .workflow(&key)
            .unwrap()
            .pending
            .is_none()
    );
}

#[test]
fn documents_are_written_only_when_they_change() {
    let governed = Governed::new();
    let key = governed.drafted("Keep sessions");
    let project = governed.project();
    let layout = project.layout.workflow(key.mode, &key.id);
    let ops = governed.disk.ops();
    Workflows::of(&project).repair_workflow(&key).unwrap();
    assert_eq!(governed.disk.ops(), ops, "nothing is written twice");
    for name in ["interview.md", "spec.md", "snapshot.json", "state.json"] {
        let file = layout.document(name);
        let written = governed.disk.snapshot()[&file].clone();
        governed
            .disk
            .rename(&file, &file.with_extension("gone"))
            .unwrap();
        Workflows::of(&project).repair_workflow(&key).unwrap();
        assert_eq!(governed.disk.snapshot()[&file], written, "{name}");
    }
    let bytes = governed.disk.read(&layout.snapshot(), 0).unwrap().unwrap();
    let snapshot: WorkflowSnapshot = serde_json::from_slice(&bytes).unwrap();
    assert_eq!(snapshot.phase, "spec");
    assert_eq!(snapshot.guidance, ["deep-interview"]);
    assert_eq!(snapshot.next_commands[0], "kapi deep-interview approve 001");
    assert_eq!(
        snapshot.readiness.reasons,
        ["spec.md is waiting for approval"]
    );
    let audit = audit_workflow(&project, &key).unwrap();
    assert!(
        audit.faults.is_empty() && audit.stale.is_empty(),
        "{audit:?}"
    );
}

#[test]
fn an_interview_is_linked_with_what_begins_from_it() {
    let governed = Governed::new();
    let key = governed.drafted("Keep sessions");
    let build = NewWorkflow {
        purpose: "Build the store".to_owned(),
        terms: terms(),
        begin: Begin::Ralph(ContextBegin {
            base: "b".repeat(40),
            interview: Some(key.id.clone()),
            spec: None,
        }),
    };
    let project = governed.project();
    check_refused(&governed, "wrong_phase", &|| {
        Workflows::of(&project)
            .start_workflow(&person(), &build)
            .map(drop)
    });
    approve(&governed, &key);
    let fitting = Workflows::of(&project).interviews_for("Keep the sessions", Mode::Ralph);
    assert_eq!(fitting.unwrap()[0].id, key.id);
    let started = Workflows::of(&project)
        .start_workflow(&person(), &build)
        .unwrap();
    let interview = Workflows::of(&project).workflow(&key).unwrap();
    assert_eq!(interview.status, WorkflowStatus::Linked);
    assert_eq!(interview.links[0].workflow, started.id);
    assert_eq!(started.links[0].workflow, key.id);
    assert_eq!(
        Workflows::of(&project)
            .interviews_for("Keep", Mode::Ralph)
            .unwrap(),
        []
    );
    let resumed = Workflows::of(&project)
        .find_to_resume(Mode::Ralph, "001")
        .unwrap();
    assert_eq!(
        (resumed.key.id, resumed.by_way_of),
        (started.id, Some(key.id))
    );
    check_refused(&governed, "already_terminal", &|| {
        Workflows::of(&project)
            .start_workflow(&person(), &build)
            .map(drop)
    });
}

#[test]
fn a_listing_is_true_even_when_the_inventory_is_not() {
    let governed = Governed::new();
    governed.interview("Keep sessions");
    let second = governed.drafted("Other things");
    let expected = [
        "deep-interview 001-keep-sessions active interview",
        "deep-interview 002-other-things active spec",
    ];
    let list = || words(&Workflows::of(&governed.project()).workflows().unwrap());
    assert_eq!(list(), expected);
    let file = governed.project().layout.inventory();
    let inventory = String::from_utf8(governed.disk.snapshot()[&file].clone()).unwrap();
    let stale = inventory.replace("\"log_bytes\": ", "\"log_bytes\": 1");
    for content in ["", "nonsense", stale.replace("spec", "branch").as_str()] {
        replace_derived(&governed.disk, &file, content.as_bytes()).unwrap();
        assert_eq!(list(), expected, "{content:?}");
    }
    // An entry is believed without a look at the stream while the length is right.
    let wrong = inventory.replace("\"phase\": \"spec\"", "\"phase\": \"branch\"");
    replace_derived(&governed.disk, &file, wrong.as_bytes()).unwrap();
    assert!(list()[1].ends_with("active branch"));
    approve(&governed, &second);
    assert!(list()[1].ends_with("active branch"));
    let listed = Workflows::of(&governed.project()).workflows().unwrap();
    let WorkflowSummary::Known(entry) = &listed[0].state else {
        panic!("{listed:?}")
    };
    assert_eq!(entry.waits, None, "the interviewer is to ask");
}

#[test]
fn a_session_is_attached_to_one_workflow_and_detaching_touches_none() {
    let governed = Governed::new();
    let first = governed.interview("Keep sessions");
    let second = governed.interview("Other things");
    let project = governed.project();
    Workflows::of(&project).attach("here", &first).unwrap();
    Workflows::of(&project).attach("there", &first).unwrap();
    Workflows::of(&project).attach("here", &second).unwrap();
    let at = |session| {
        let attachment = Workflows::of(&project).attachment(session).unwrap();
        attachment.map(|attachment| attachment.workflow.to_string())
    };
    assert_eq!(at("here").as_deref(), Some("002-other-things"));
    assert_eq!(at("there").as_deref(), Some("001-keep-sessions"));
    let ops = governed.disk.ops();
    Workflows::of(&project).attach("here", &second).unwrap();
    assert_eq!(governed.disk.ops(), ops, "it is there already");
    let dir = project.layout.workflows_dir();
    let of_workflows = || {
        let mut files = governed.disk.snapshot();
        files.retain(|path, _| path.starts_with(&dir));
        files
    };
    let before = of_workflows();
    assert_eq!(
        Workflows::of(&project)
            .detach("here")
            .unwrap()
            .unwrap()
            .workflow,
        second.id
    );
    assert_eq!(Workflows::of(&project).detach("here").unwrap(), None);
    assert_eq!(of_workflows(), before);
    assert_eq!((at("here"), at("there").is_some()), (None, true));
}

#[test]
fn what_came_from_elsewhere_is_shown_and_not_gone_on_with() {
    let governed = Governed::new();
    let key = governed.drafted("Keep sessions");
    let mut elsewhere = governed.project();
    elsewhere.home = Some("/other".into());
    governed.disk.provide_dir("/other".as_ref());
    let workflow = Workflows::of(&elsewhere).workflow(&key).unwrap();
    let lack = || {
        Workflows::of(&elsewhere)
            .unapproved_workflow(&workflow)
            .unwrap()
    };
    assert_eq!(lack(), Some(WorkflowLack::Nothing));
    let shown = pending_hash(&governed, &key);
    let text = "Smaller.".to_owned();
    let revise = WorkflowCommand::Revise { text };
    check_refused(&governed, "not_approved_here", &|| {
        let approved =
            Workflows::of(&elsewhere).approve_workflow(&key, &person(), &approving(&shown));
        approved.map(drop)
    });
    check_refused(&governed, "not_approved_here", &|| {
        Workflows::of(&elsewhere)
            .submit_workflow(&key, &person(), &revise)
            .map(drop)
    });
    // A person may take it over, of exactly what they were shown; an agent may not.
    assert!(
        Workflows::of(&elsewhere)
            .adopt_workflow(&agent(), &workflow)
            .is_err()
    );
    let mut other = workflow.clone();
    other.purpose.push('!');
    assert!(
        Workflows::of(&elsewhere)
            .adopt_workflow(&person(), &other)
            .is_err()
    );
    assert_eq!(lack(), Some(WorkflowLack::Nothing));
    Workflows::of(&elsewhere)
        .adopt_workflow(&person(), &workflow)
        .unwrap();
    assert_eq!(lack(), None);
    // Leave is for these terms and for what was approved, and for nothing else.
    let mut widened = workflow.clone();
    widened.terms.agent = "command:other".to_owned();
    let unapproved = Workflows::of(&elsewhere)
        .unapproved_workflow(&widened)
        .unwrap();
    assert_eq!(unapproved, Some(WorkflowLack::OtherStart));
    approve(&governed, &key);
    let approved = Workflows::of(&governed.project()).workflow(&key).unwrap();
    let unapproved = Workflows::of(&elsewhere)
        .unapproved_workflow(&approved)
        .unwrap();
    assert!(
        matches!(unapproved, Some(WorkflowLack::Approval { .. })),
        "{unapproved:?}"
    );
}
