//! The facts of every workflow and of interviews as they stand in a log: a line of each, which no
//! change may make unreadable.

mod interviews;

use kapi_core::evidence::EvidenceFile;
use kapi_core::id::{EffectId, GoalId};
use kapi_core::task_id::KernelTaskId;
use kapi_core::usage::Usage;
use kapi_goal::rules::plan::task::PlanTaskId;

use crate::rules::conflict::Settlement;
use crate::rules::context_begin::ContextBegin;
use crate::rules::event::WorkflowEvent;
use crate::rules::evidence::{Weight, WorkflowEvidence};
use crate::rules::limits::{GoalAccount, LimitRaises};
use crate::rules::modes::interview::begin::InterviewBegin;
use crate::rules::modes::interview::spec::APPROVE_SPEC;
use crate::rules::modes::ralph::event::RalphEvent;
use crate::rules::modes::ralph::spec::APPROVE_PLAN;
use crate::rules::modes::{Begin, ModeEvent};
use crate::rules::pending::{DecisionApproval, Means, WaitingDecision};
use crate::rules::scenario::terms;
use crate::rules::terms::WorkflowTerms;
use crate::rules::worker::{Capability, Closeout, WorkerId, WorkerStatus, WorkflowWorker};

fn check(event: &WorkflowEvent, line: &str) {
    assert_eq!(serde_json::to_string(event).unwrap(), line);
    assert_eq!(serde_json::from_str::<WorkflowEvent>(line).unwrap(), *event);
    // What a later program wrote and this one does not know is refused, not dropped.
    let more = line.replacen("\"type\":", "\"later\":1,\"type\":", 1);
    assert!(
        serde_json::from_str::<WorkflowEvent>(&more).is_err(),
        "{more}"
    );
}

fn effect() -> EffectId {
    EffectId::new(1, "interviewer", 1)
}

fn w1() -> WorkerId {
    WorkerId("w1".to_owned())
}

fn id(text: &str) -> GoalId {
    GoalId::parse(text).unwrap()
}

const USED: Usage = Usage {
    input_tokens: 10,
    output_tokens: 2,
    usd_micros: Some(5),
    ..Usage::ZERO
};

const TERMS: &str = r#"{"agent":"script:a","reviewer":null,"judge":{"by":"none"},"sandbox":"native","network":"none","budget":{"turns":3,"tokens":null,"usd_micros":null,"wall_ms":null},"tokens":null,"usd_micros":null,"jobs":2,"verify_timeout_ms":60000,"question_timeout_ms":60000,"protect":[],"verify":[],"plan_approval":"ask"}"#;

#[test]
fn beginnings_read_back() {
    let started = |begin| WorkflowEvent::Started {
        id: id("001-recover"),
        purpose: "Recover".to_owned(),
        by: "somebody".to_owned(),
        terms: Box::new(terms()),
        begin,
        at_ms: 7,
    };
    let line = |begin: &str| {
        format!(
            r#"{{"type":"started","data":{{"id":"001-recover","purpose":"Recover","by":"somebody","terms":{TERMS},"begin":{begin},"at_ms":7}}}}"#
        )
    };
    let commit = Some("c0ffee".to_owned());
    check(
        &started(Begin::Interview(InterviewBegin { commit })),
        &line(r#"{"interview":{"commit":"c0ffee"}}"#),
    );
    let ralph = Begin::Ralph(ContextBegin {
        base: "c0ffee".to_owned(),
        interview: None,
        spec: None,
    });
    check(
        &started(ralph),
        &line(r#"{"ralph":{"base":"c0ffee","interview":null,"spec":null}}"#),
    );
}

#[test]
fn decisions_read_back() {
    check(
        &WorkflowEvent::DecisionAsked {
            pending: WaitingDecision {
                decision: APPROVE_SPEC,
                sha256: "ab".to_owned(),
                risks: vec!["unclear".to_owned()],
                since_ms: 7,
            },
        },
        r#"{"type":"decision_asked","data":{"pending":{"decision":"approve_interview_spec","sha256":"ab","risks":["unclear"],"since_ms":7}}}"#,
    );
    check(
        &WorkflowEvent::Approved {
            approval: DecisionApproval {
                decision: APPROVE_PLAN,
                sha256: "ab".to_owned(),
                means: Means::InAdvance,
                by: "somebody".to_owned(),
                accepted: Vec::new(),
                at_ms: 7,
            },
        },
        r#"{"type":"approved","data":{"approval":{"decision":"approve_ralph_plan","sha256":"ab","means":"in_advance","by":"somebody","accepted":[],"at_ms":7}}}"#,
    );
    check(
        &WorkflowEvent::Revised {
            text: "More.".to_owned(),
            at_ms: 7,
        },
        r#"{"type":"revised","data":{"text":"More.","at_ms":7}}"#,
    );
}

#[test]
fn turns_of_a_life_read_back() {
    let reason = || "no more".to_owned();
    let unblock = || "mend it".to_owned();
    for (event, line) in [
        (
            WorkflowEvent::Blocked {
                reason: reason(),
                unblock: unblock(),
            },
            r#"{"type":"blocked","data":{"reason":"no more","unblock":"mend it"}}"#,
        ),
        (
            WorkflowEvent::Unblocked {},
            r#"{"type":"unblocked","data":{}}"#,
        ),
        (
            WorkflowEvent::Abandoned { reason: reason() },
            r#"{"type":"abandoned","data":{"reason":"no more"}}"#,
        ),
        (
            WorkflowEvent::Failed { reason: reason() },
            r#"{"type":"failed","data":{"reason":"no more"}}"#,
        ),
        (
            WorkflowEvent::Completed {},
            r#"{"type":"completed","data":{}}"#,
        ),
        (
            WorkflowEvent::Integrated {
                by: id("004-both"),
                at_ms: 7,
            },
            r#"{"type":"integrated","data":{"by":"004-both","at_ms":7}}"#,
        ),
        (
            WorkflowEvent::EffectIntended {
                effect: effect(),
                at_ms: 7,
            },
            r#"{"type":"effect_intended","data":{"effect":"t001-interviewer-a1","at_ms":7}}"#,
        ),
        (
            WorkflowEvent::EffectUsed {
                effect: effect(),
                usage: USED,
            },
            r#"{"type":"effect_used","data":{"effect":"t001-interviewer-a1","usage":{"input_tokens":10,"output_tokens":2,"usd_micros":5}}}"#,
        ),
        (
            WorkflowEvent::EffectEnded {
                effect: effect(),
                usage: Usage::default(),
                failed: Some("reach the model".to_owned()),
            },
            r#"{"type":"effect_ended","data":{"effect":"t001-interviewer-a1","usage":{"input_tokens":0,"output_tokens":0},"failed":"reach the model"}}"#,
        ),
        (
            WorkflowEvent::Mode(ModeEvent::Ralph(RalphEvent::ConsensusMissed { cycle: 2 })),
            r#"{"type":"ralph","data":{"consensus_missed":{"cycle":2}}}"#,
        ),
    ] {
        check(&event, line);
    }
}

#[test]
fn what_is_used_and_allowed_reads_back() {
    for (event, line) in [
        (
            WorkflowEvent::LimitsRaised {
                more: LimitRaises {
                    tokens: 5,
                    usd_micros: 0,
                    wall_ms: 0,
                },
                by: "somebody".to_owned(),
                at_ms: 7,
            },
            r#"{"type":"limits_raised","data":{"more":{"tokens":5,"usd_micros":0},"by":"somebody","at_ms":7}}"#,
        ),
        (
            WorkflowEvent::GoalUsed {
                goal: id("003-first"),
                account: GoalAccount {
                    task: PlanTaskId::parse("T-001").unwrap(),
                    attempt: 1,
                    used: USED,
                },
            },
            r#"{"type":"goal_used","data":{"goal":"003-first","account":{"task":"T-001","attempt":1,"used":{"input_tokens":10,"output_tokens":2,"usd_micros":5}}}}"#,
        ),
    ] {
        check(&event, line);
    }
}

#[test]
fn conflicts_read_back() {
    check(
        &WorkflowEvent::ConflictFound {
            what: "T-002".to_owned(),
            paths: vec!["src/a.rs".to_owned()],
            onto: "c0ffee".to_owned(),
            at_ms: 7,
        },
        r#"{"type":"conflict_found","data":{"what":"T-002","paths":["src/a.rs"],"onto":"c0ffee","at_ms":7}}"#,
    );
    check(
        &WorkflowEvent::ConflictSettled {
            what: "T-002".to_owned(),
            settlement: Settlement {
                by: "goal 004-two".to_owned(),
                commit: Some("c0ffee".to_owned()),
                why: "done again".to_owned(),
                at_ms: 8,
            },
        },
        r#"{"type":"conflict_settled","data":{"what":"T-002","settlement":{"by":"goal 004-two","commit":"c0ffee","why":"done again","at_ms":8}}}"#,
    );
}

#[test]
fn time_reads_back() {
    check(
        &WorkflowEvent::TimeUsed { ms: 30_000 },
        r#"{"type":"time_used","data":{"ms":30000}}"#,
    );
    check(
        &WorkflowEvent::LimitsRaised {
            more: LimitRaises {
                tokens: 0,
                usd_micros: 0,
                wall_ms: 1_800_000,
            },
            by: "somebody".to_owned(),
            at_ms: 7,
        },
        r#"{"type":"limits_raised","data":{"more":{"tokens":0,"usd_micros":0,"wall_ms":1800000},"by":"somebody","at_ms":7}}"#,
    );
    let mut limited = terms();
    limited.wall_ms = Some(7_200_000);
    let line = TERMS.replace(
        r#""usd_micros":null,"jobs""#,
        r#""usd_micros":null,"wall_ms":7200000,"jobs""#,
    );
    assert_eq!(serde_json::to_string(&limited).unwrap(), line);
    assert_eq!(
        serde_json::from_str::<WorkflowTerms>(&line).unwrap(),
        limited
    );
}

#[test]
fn what_a_run_wrote_reads_back() {
    check(
        &WorkflowEvent::RunRecorded {
            effect: EffectId::new(1, "ask", 1),
            files: vec![EvidenceFile {
                name: "transcript.jsonl".to_owned(),
                bytes: 3,
                sha256: "ab".to_owned(),
            }],
        },
        r#"{"type":"run_recorded","data":{"effect":"t001-ask-a1","files":[{"name":"transcript.jsonl","bytes":3,"sha256":"ab"}]}}"#,
    );
}

#[test]
fn evidence_and_workers_read_back() {
    let evidence = WorkflowEvidence {
        weight: Weight::Validation,
        kind: "verify".to_owned(),
        summary: "passed".to_owned(),
        reference: "git:c0ffee".to_owned(),
        command: Some("make test".to_owned()),
        exit_code: Some(0),
        role: None,
        verdict: None,
        phase: Some("run".to_owned()),
        artifacts: Vec::new(),
        worker: Some(w1()),
        verifier: None,
        at_ms: 7,
    };
    check(
        &WorkflowEvent::EvidenceRecorded {
            evidence: Box::new(evidence),
        },
        r#"{"type":"evidence_recorded","data":{"evidence":{"weight":"validation","kind":"verify","summary":"passed","ref":"git:c0ffee","command":"make test","exit_code":0,"phase":"run","worker":"w1","at_ms":7}}}"#,
    );
    let worker = WorkflowWorker {
        id: w1(),
        capability: Capability::Goal,
        workspace: None,
        terminal: None,
        isolated: None,
        status: WorkerStatus::Prepared,
        notes: Vec::new(),
        dispatches: Vec::new(),
        closeout: Closeout::KeepWorktree,
    };
    check(
        &WorkflowEvent::WorkerPrepared { worker },
        r#"{"type":"worker_prepared","data":{"worker":{"id":"w1","capability":"goal","workspace":null,"terminal":null,"isolated":null,"status":"prepared","notes":[],"dispatches":[],"closeout":"keep_worktree"}}}"#,
    );
    check(
        &WorkflowEvent::WorkerDispatched {
            worker: w1(),
            effect: EffectId::new(1, "work-T-001", 1),
            what: "T-001".to_owned(),
            at_ms: 7,
        },
        r#"{"type":"worker_dispatched","data":{"worker":"w1","effect":"t001-work-T-001-a1","what":"T-001","at_ms":7}}"#,
    );
    check(
        &WorkflowEvent::WorkerRefreshed {
            worker: w1(),
            status: WorkerStatus::Idle,
            goal: Some(id("003-first")),
            note: Some("proved".to_owned()),
            terminal: None,
            isolated: None,
            task: None,
        },
        r#"{"type":"worker_refreshed","data":{"worker":"w1","status":"idle","goal":"003-first","note":"proved","terminal":null,"isolated":null}}"#,
    );
    check(
        &WorkflowEvent::WorkerClosed { worker: w1() },
        r#"{"type":"worker_closed","data":{"worker":"w1"}}"#,
    );
}

#[test]
fn a_worker_names_the_kernels_task() {
    check(
        &WorkflowEvent::WorkerRefreshed {
            worker: WorkerId("w1".to_owned()),
            status: WorkerStatus::Dispatched,
            goal: Some(GoalId::parse("003-first").unwrap()),
            note: None,
            terminal: None,
            isolated: None,
            task: Some(KernelTaskId::new(3)),
        },
        r#"{"type":"worker_refreshed","data":{"worker":"w1","status":"dispatched","goal":"003-first","note":null,"terminal":null,"isolated":null,"task":"task_3"}}"#,
    );
}
