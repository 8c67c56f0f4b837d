//! The facts of a build as they stand in a log: a line of each, which no change may make unreadable.

use kapi_goal::rules::state::GoalStatus;

use crate::rules::changed::LandedPaths;
use crate::rules::event::WorkflowEvent;
use crate::rules::identity::ReviewerIdentity;
use crate::rules::limits::Amounts;
use crate::rules::modes::ModeEvent;
use crate::rules::modes::ralph::event::{AcceptedCriterion, RalphEvent};
use crate::rules::modes::ralph::fixture::outcomes::report;
use crate::rules::modes::ralph::fixture::{
    finding, findings, goal_id, objections, plan, synthesis, task, task_id,
};
use crate::rules::modes::ralph::plan::Consensus;
use crate::rules::modes::ralph::review::{FindingCategory, Review};

fn check(event: RalphEvent, data: &str) {
    let event = WorkflowEvent::Mode(ModeEvent::Ralph(event));
    let line = format!(r#"{{"type":"ralph","data":{data}}}"#);
    assert_eq!(serde_json::to_string(&event).unwrap(), line);
    assert_eq!(serde_json::from_str::<WorkflowEvent>(&line).unwrap(), event);
}

fn by() -> ReviewerIdentity {
    ReviewerIdentity {
        agent: "claude".to_owned(),
        run: "run-1".to_owned(),
    }
}

const BY: &str = r#"{"agent":"claude","run":"run-1"}"#;
const PLAN: &str = r#"{"summary":"Do it in small steps.","branch_type":"feat","context":"There is a file.","options":[{"name":"steps","summary":"The way of steps.","rejected":null},{"name":"leap","summary":"The way of leap.","rejected":"It cannot be proved on the way."}],"tasks":[{"id":"T-001","title":"Title of T-001","description":"What T-001 does.","depends_on":[],"touches":["a"],"isolation":"own","verify":["sh T-001.sh"],"criteria":["AC-1"]}],"criteria":[{"id":"AC-1","text":"It works.","verify":"sh works.sh","exempt":null},{"id":"AC-2","text":"It reads well.","verify":null,"exempt":"Taste has no exit code."}],"excluded":["the other thing"],"risks":["it may rain"],"verify":["sh all.sh"]}"#;

#[test]
fn planning() {
    let small = || Box::new(plan(vec![task("T-001", &[], &["a"])]));
    check(
        RalphEvent::ThesisRecorded {
            cycle: 1,
            attempt: 2,
            by: by(),
            plan: small(),
        },
        &format!(r#"{{"thesis_recorded":{{"cycle":1,"attempt":2,"by":{BY},"plan":{PLAN}}}}}"#),
    );
    check(
        RalphEvent::AntithesisRecorded {
            cycle: 1,
            attempt: 2,
            by: by(),
            objections: objections(),
        },
        &format!(
            r#"{{"antithesis_recorded":{{"cycle":1,"attempt":2,"by":{BY},"objections":{{"strongest":"It may be too slow.","tension":"Speed against clarity.","objections":[{{"text":"T-001 has no test.","blocking":true}}]}}}}}}"#
        ),
    );
    check(
        RalphEvent::SynthesisRecorded {
            cycle: 1,
            attempt: 2,
            by: by(),
            synthesis: Box::new(synthesis(Consensus::Revise, &["no"], *small())),
        },
        &format!(
            r#"{{"synthesis_recorded":{{"cycle":1,"attempt":2,"by":{BY},"synthesis":{{"verdict":"revise","answers":["It has one now."],"dissent":["no"],"plan":{PLAN}}}}}}}"#
        ),
    );
    check(
        RalphEvent::ConsensusMissed { cycle: 1 },
        r#"{"consensus_missed":{"cycle":1}}"#,
    );
    check(
        RalphEvent::PlanProposed {
            cycle: 1,
            plan: small(),
        },
        &format!(r#"{{"plan_proposed":{{"cycle":1,"plan":{PLAN}}}}}"#),
    );
    check(
        RalphEvent::PlanReopened {
            reason: "wrong".to_owned(),
            by_review: true,
        },
        r#"{"plan_reopened":{"reason":"wrong","by_review":true}}"#,
    );
}

#[test]
fn running() {
    let id = || task_id("T-001");
    check(
        RalphEvent::BranchPrepared {
            branch: "feat/ralph-x".to_owned(),
            worktree: "wt".to_owned(),
            base: "b".to_owned(),
        },
        r#"{"branch_prepared":{"branch":"feat/ralph-x","worktree":"wt","base":"b"}}"#,
    );
    check(
        RalphEvent::TaskBegun {
            task: id(),
            attempt: 1,
            base: "b".to_owned(),
            allowance: None,
        },
        r#"{"task_begun":{"task":"T-001","attempt":1,"base":"b"}}"#,
    );
    check(
        RalphEvent::TaskBegun {
            task: id(),
            attempt: 1,
            base: "b".to_owned(),
            allowance: Some(Amounts {
                tokens: Some(5),
                usd_micros: None,
            }),
        },
        r#"{"task_begun":{"task":"T-001","attempt":1,"base":"b","allowance":{"tokens":5}}}"#,
    );
    check(
        RalphEvent::TaskRested {
            task: id(),
            attempt: 1,
            goal: goal_id("012-x"),
            status: GoalStatus::Done,
            commit: Some("c".to_owned()),
            reason: None,
            at_ms: 5,
        },
        r#"{"task_rested":{"task":"T-001","attempt":1,"goal":"012-x","status":"done","commit":"c","reason":null,"at_ms":5}}"#,
    );
}

#[test]
fn landing() {
    let id = || task_id("T-001");
    check(
        RalphEvent::TaskLanded {
            task: id(),
            head: "h".to_owned(),
            tree: "t".to_owned(),
            merged: true,
            changed: None,
        },
        r#"{"task_landed":{"task":"T-001","head":"h","tree":"t","merged":true}}"#,
    );
    check(
        RalphEvent::TaskLanded {
            task: id(),
            head: "h".to_owned(),
            tree: "t".to_owned(),
            merged: false,
            changed: Some(LandedPaths {
                paths: vec!["a".to_owned()],
                n_more: 2,
            }),
        },
        r#"{"task_landed":{"task":"T-001","head":"h","tree":"t","merged":false,"changed":{"paths":["a"],"n_more":2}}}"#,
    );
    check(
        RalphEvent::TaskAlreadyDone {
            task: id(),
            commit: "c".to_owned(),
        },
        r#"{"task_already_done":{"task":"T-001","commit":"c"}}"#,
    );
    check(
        RalphEvent::TaskConflicted {
            task: id(),
            paths: vec!["a".to_owned()],
        },
        r#"{"task_conflicted":{"task":"T-001","paths":["a"]}}"#,
    );
    check(
        RalphEvent::TaskSentBack {
            task: id(),
            because: "no".to_owned(),
        },
        r#"{"task_sent_back":{"task":"T-001","because":"no"}}"#,
    );
    check(
        RalphEvent::TaskGivenUp {
            task: id(),
            reason: "no".to_owned(),
        },
        r#"{"task_given_up":{"task":"T-001","reason":"no"}}"#,
    );
    check(
        RalphEvent::TaskRetried { task: id() },
        r#"{"task_retried":{"task":"T-001"}}"#,
    );
    check(
        RalphEvent::HeadVerified {
            commit: "h".to_owned(),
            report: report("h", &["sh x".to_owned()], &[]),
        },
        r#"{"head_verified":{"commit":"h","report":{"commit":"h","tree":"tree-h","tampered":[],"runs":[{"command":"sh x","checks":"visible","exit_code":0,"timed_out":false,"duration_ms":5,"output_tail":"yes\n","output_bytes":4}]}}}"#,
    );
}

#[test]
fn closing() {
    check(
        RalphEvent::ReviewAsked {
            commit: "h".to_owned(),
        },
        r#"{"review_asked":{"commit":"h"}}"#,
    );
    check(
        RalphEvent::FixPlanned {
            task: Box::new(task("F-001", &[], &[])),
            because: "no".to_owned(),
        },
        r#"{"fix_planned":{"task":{"id":"F-001","title":"Title of F-001","description":"What F-001 does.","depends_on":[],"touches":[],"isolation":"own","verify":["sh F-001.sh"],"criteria":["AC-1"]},"because":"no"}}"#,
    );
    check(
        RalphEvent::Reviewed {
            review: Review {
                cycle: 1,
                commit: "h".to_owned(),
                by: by(),
                findings: findings(vec![finding(FindingCategory::MissingTest, true)]),
            },
        },
        &format!(
            r#"{{"reviewed":{{"review":{{"cycle":1,"commit":"h","by":{BY},"findings":{{"approve":false,"summary":"Looked at everything.","findings":[{{"category":"missing_test","must_fix":true,"file":"src/a/x.rs","line":7,"title":"A case of missing test","detail":"One sees it by running it."}}]}}}}}}}}"#
        ),
    );
    check(
        RalphEvent::AnswerRefused {
            role: "thesis".to_owned(),
            why: "no".to_owned(),
        },
        r#"{"answer_refused":{"role":"thesis","why":"no"}}"#,
    );
    check(
        RalphEvent::Accounted {
            acceptance: vec![AcceptedCriterion {
                criterion: "AC-1".to_owned(),
                evidence: vec![1, 3],
            }],
            rationale: "r".to_owned(),
            risks: Vec::new(),
            follow_up: vec!["f".to_owned()],
        },
        r#"{"accounted":{"acceptance":[{"criterion":"AC-1","evidence":[1,3]}],"rationale":"r","risks":[],"follow_up":["f"]}}"#,
    );
}

#[test]
fn what_is_not_known_is_refused() {
    for data in [
        r#"{"plan_reopened":{"reason":"wrong","by_review":true,"more":1}}"#,
        r#"{"plan_reopened":{"reason":"wrong"}}"#,
        r#"{"plan_closed":{}}"#,
    ] {
        assert!(serde_json::from_str::<RalphEvent>(data).is_err(), "{data}");
    }
}

#[test]
fn what_a_person_decides_by() {
    let id = || task_id("T-001");
    check(
        RalphEvent::BaseChecked {
            report: report("b", &["sh x".to_owned()], &["sh x"]),
        },
        r#"{"base_checked":{"report":{"commit":"b","tree":"tree-b","tampered":[],"runs":[{"command":"sh x","checks":"visible","exit_code":1,"timed_out":false,"duration_ms":5,"output_tail":"no\n","output_bytes":4}]}}}"#,
    );
    check(
        RalphEvent::TaskStrayed {
            task: id(),
            commit: "c".to_owned(),
            reason: "no".to_owned(),
        },
        r#"{"task_strayed":{"task":"T-001","commit":"c","reason":"no"}}"#,
    );
    check(
        RalphEvent::StrayingAllowed { task: id() },
        r#"{"straying_allowed":{"task":"T-001"}}"#,
    );
}
