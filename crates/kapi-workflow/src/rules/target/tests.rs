//! The reference's tables of what a token means, row by row.

use kapi_core::id::GoalId;
use kapi_core::mode::Mode;
use kapi_core::workflow_status::WorkflowStatus;

use crate::rules::target::{InventoryRow, TargetError, WorkflowTarget, approve, resume};

fn id(text: &str) -> GoalId {
    GoalId::parse(text).unwrap()
}

fn row(text: &str, mode: Mode, status: WorkflowStatus) -> InventoryRow {
    InventoryRow {
        id: id(text),
        mode,
        status,
        is_approved: false,
        successor: None,
    }
}

fn rows() -> Vec<InventoryRow> {
    let approved = |text| InventoryRow {
        is_approved: true,
        ..row(text, Mode::DeepInterview, WorkflowStatus::Active)
    };
    let linked = |text, mode, successor| InventoryRow {
        is_approved: true,
        successor: Some((mode, id(successor))),
        ..row(text, Mode::DeepInterview, WorkflowStatus::Linked)
    };
    vec![
        linked("001-unified-state", Mode::Ralph, "002-auth-session"),
        row("002-auth-session", Mode::Ralph, WorkflowStatus::Active),
        linked("003-benchmark", Mode::Autoresearch, "004-quality-loop"),
        row(
            "004-quality-loop",
            Mode::Autoresearch,
            WorkflowStatus::Blocked,
        ),
        approved("005-login-page"),
        row("006-cache", Mode::DeepInterview, WorkflowStatus::Active),
        row("007-old", Mode::Ralph, WorkflowStatus::Completed),
        row(
            "008-dropped",
            Mode::DeepInterview,
            WorkflowStatus::Abandoned,
        ),
        linked("009-done", Mode::Ralph, "007-old"),
        row("1000-twin", Mode::Ralph, WorkflowStatus::Active),
        row("1001-twin", Mode::Ralph, WorkflowStatus::Active),
    ]
}

fn meant(mode: Mode, token: &str) -> Result<WorkflowTarget, TargetError> {
    resume(mode, token, &rows())
}

fn check(mode: Mode, token: &str, workflow: &str, by_way_of: Option<&str>) {
    let expected = WorkflowTarget {
        workflow: id(workflow),
        by_way_of: by_way_of.map(id),
    };
    assert_eq!(meant(mode, token), Ok(expected), "{mode} {token}");
}

fn refused(mode: Mode, token: &str, code: &str, command: &str) {
    let error = meant(mode, token).unwrap_err();
    assert_eq!(error.code(), code, "{mode} {token}: {error}");
    assert_eq!(error.next_commands()[0], command, "{mode} {token}: {error}");
}

#[test]
fn an_index_a_name_or_both_mean_the_workflow() {
    for token in [
        "2",
        "002",
        "0002",
        "auth-session",
        "002-auth-session",
        " 002 ",
    ] {
        check(Mode::Ralph, token, "002-auth-session", None);
    }
    check(Mode::Ralph, "1000", "1000-twin", None);
    check(Mode::DeepInterview, "login-page", "005-login-page", None);
    check(Mode::DeepInterview, "6", "006-cache", None);
}

#[test]
fn an_interview_means_what_came_of_it() {
    for token in ["1", "unified-state", "001-unified-state"] {
        check(
            Mode::Ralph,
            token,
            "002-auth-session",
            Some("001-unified-state"),
        );
    }
    check(
        Mode::Autoresearch,
        "3",
        "004-quality-loop",
        Some("003-benchmark"),
    );
}

#[test]
fn what_cannot_be_resumed_says_what_can() {
    refused(Mode::Ralph, "7", "already_terminal", "kapi status 007");
    refused(Mode::Ralph, "9", "already_terminal", "kapi status 007");
    refused(Mode::Ralph, "8", "already_terminal", "kapi status 008");
    refused(
        Mode::DeepInterview,
        "1",
        "already_terminal",
        "kapi ralph resume 002",
    );
    refused(
        Mode::Ralph,
        "3",
        "wrong_mode",
        "kapi autoresearch resume 004",
    );
    refused(
        Mode::Ralph,
        "4",
        "wrong_mode",
        "kapi autoresearch resume 004",
    );
    refused(
        Mode::Ralph,
        "quality-loop",
        "wrong_mode",
        "kapi autoresearch resume 004",
    );
    refused(
        Mode::DeepInterview,
        "2",
        "wrong_mode",
        "kapi ralph resume 002",
    );
    refused(Mode::Ralph, "5", "not_linked", "kapi ralph --from 005");
    refused(
        Mode::Ralph,
        "6",
        "not_approved",
        "kapi deep-interview resume 006",
    );
    refused(Mode::Ralph, "twin", "ambiguous_target", "kapi status");
}

#[test]
fn a_part_of_a_name_means_nothing() {
    for token in [
        "auth",
        "00",
        "002-auth",
        "003-auth-session",
        "",
        "99999999999",
    ] {
        refused(Mode::Ralph, token, "unknown_workflow", "kapi status");
    }
    let error = meant(Mode::Ralph, "auth-sesion").unwrap_err();
    let TargetError::Unknown { nearest, .. } = &error else {
        panic!("{error}");
    };
    assert_eq!(
        (nearest[0].to_string(), nearest.len()),
        ("002-auth-session".to_owned(), 3)
    );
    let none = resume(Mode::Ralph, "x", &[]).unwrap_err();
    assert_eq!(none.to_string(), "find a workflow \"x\": there is none");
}

#[test]
fn approving_never_follows_a_link() {
    let meant = |mode, token| approve(mode, token, &rows());
    assert_eq!(meant(Mode::DeepInterview, "5"), Ok(id("005-login-page")));
    assert_eq!(meant(Mode::Ralph, "2"), Ok(id("002-auth-session")));
    let error = meant(Mode::Ralph, "1").unwrap_err();
    assert_eq!(error.next_commands(), ["kapi deep-interview approve 001"]);
}
