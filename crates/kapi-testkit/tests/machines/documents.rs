//! What is written to disk for others: event lines, snapshot, contract.

use kapi_core::actor::Actor;
use kapi_core::evidence::EvidenceFile;
use kapi_core::hidden_checks::HiddenCheckSet;
use kapi_core::id::{EffectId, GoalId};
use kapi_core::judge::Judge;
use kapi_goal::record::snapshot::GoalSnapshot;
use kapi_goal::rules::budget::{BudgetLimit, Raise};
use kapi_goal::rules::contract::Contract;
use kapi_goal::rules::event::{ApprovalMeans, GoalEvent, Stop, TurnVerdict};
use kapi_goal::rules::outcome::GoalOutcome;
use kapi_goal::rules::state::GoalStatus;
use kapi_machine::logged::{to_logged, to_payload};
use kapi_store::record::LogRecord;

use crate::support::{Fixture, contract, failing, usage, verified, well};

fn transcript() -> EvidenceFile {
    EvidenceFile {
        name: "transcript.jsonl".to_owned(),
        bytes: 3,
        sha256: "ab".to_owned(),
    }
}

fn events() -> Vec<GoalEvent> {
    let effect = EffectId::new(1, "agent", 2);
    let GoalOutcome::Verified(report) = verified("tree", 1) else {
        panic!("not a report")
    };
    vec![
        GoalEvent::GoalCreated {
            id: GoalId::parse("001-try").unwrap(),
            contract: Box::new(contract()),
            contract_hash: "abc".to_owned(),
            at_ms: 5,
            setup: false,
        },
        GoalEvent::ContractApproved {
            contract_hash: "abc".to_owned(),
            means: ApprovalMeans::Terminal,
        },
        GoalEvent::EffectIntended {
            effect: effect.clone(),
            at_ms: 6,
        },
        GoalEvent::EffectProgressed {
            effect: effect.clone(),
            usage: usage(3),
            elapsed_ms: 7,
        },
        GoalEvent::RunRecorded {
            effect: effect.clone(),
            files: vec![transcript()],
        },
        GoalEvent::WorkspaceCreated {
            path: "/w".to_owned(),
            elapsed_ms: 1,
        },
        GoalEvent::WaitEnded,
        GoalEvent::VerifyEnded {
            report,
            elapsed_ms: 1,
        },
        GoalEvent::TurnEnded {
            turn: 1,
            verdict: TurnVerdict::VerifyFailed,
        },
        GoalEvent::GoalDone {
            commit: "c".to_owned(),
            verified: true,
            elapsed_ms: 1,
        },
        GoalEvent::GoalStopped {
            stop: Stop::BudgetUsedUp {
                limit: BudgetLimit::Usd,
            },
        },
        GoalEvent::GoalStopped {
            stop: Stop::Interrupted,
        },
        GoalEvent::EffectCancelled {
            effect,
            usage: usage(1),
            session: None,
            elapsed_ms: 1,
        },
        GoalEvent::GoalResumed,
        GoalEvent::BudgetRaised {
            raise: Raise {
                turns: 2,
                ..Raise::default()
            },
        },
    ]
}

#[test]
fn events_read_back_as_written() {
    for event in events() {
        let payload = to_payload(&event).unwrap();
        let record = LogRecord {
            v: 1,
            seq: 1,
            at_ms: 0,
            id: "001-try#1".to_owned(),
            kind: payload.kind,
            actor: Actor::Engine,
            data: payload.data,
            prev: String::new(),
            more: false,
        };
        // Through the very bytes of a line.
        let line = serde_json::to_string(&record).unwrap();
        let record: LogRecord = serde_json::from_str(&line).unwrap();
        assert_eq!(to_logged::<GoalEvent>(&record).unwrap().event, event);
    }
}

#[test]
fn event_lines_have_their_golden_form() {
    let golden = |event: &GoalEvent| {
        let payload = to_payload(event).unwrap();
        format!("{} {}", payload.kind, payload.data.get())
    };
    let lines: Vec<String> = events().iter().skip(1).map(golden).collect();
    assert_eq!(
        lines,
        [
            r#"contract_approved {"contract_hash":"abc","means":"terminal"}"#,
            r#"effect_intended {"effect":"t001-agent-a2","at_ms":6}"#,
            r#"effect_progressed {"effect":"t001-agent-a2","usage":{"input_tokens":3,"output_tokens":0},"elapsed_ms":7}"#,
            r#"run_recorded {"effect":"t001-agent-a2","files":[{"name":"transcript.jsonl","bytes":3,"sha256":"ab"}]}"#,
            r#"workspace_created {"path":"/w","elapsed_ms":1}"#,
            "wait_ended null",
            r#"verify_ended {"report":{"commit":"commit-of-tree","tree":"tree","tampered":[],"runs":[{"command":"sh test.sh","checks":"visible","exit_code":1,"timed_out":false,"duration_ms":12,"output_tail":"1 test failed","output_bytes":13}]},"elapsed_ms":1}"#,
            r#"turn_ended {"turn":1,"verdict":"verify_failed"}"#,
            r#"goal_done {"commit":"c","verified":true,"elapsed_ms":1}"#,
            r#"goal_stopped {"stop":{"stop":"budget_used_up","limit":"usd"}}"#,
            r#"goal_stopped {"stop":{"stop":"interrupted"}}"#,
            r#"effect_cancelled {"effect":"t001-agent-a2","usage":{"input_tokens":1,"output_tokens":0},"session":null,"elapsed_ms":1}"#,
            "goal_resumed null",
            r#"budget_raised {"raise":{"turns":2,"tokens":0,"usd_micros":0,"wall_ms":0}}"#,
        ]
    );
}

#[test]
fn a_line_of_a_newer_program_is_named() {
    let payload = to_payload(&GoalEvent::WaitEnded).unwrap();
    let record = LogRecord {
        v: 1,
        seq: 1,
        at_ms: 0,
        id: String::new(),
        kind: "goal_teleported".to_owned(),
        actor: Actor::Engine,
        data: payload.data,
        prev: String::new(),
        more: false,
    };
    assert!(
        to_logged::<GoalEvent>(&record)
            .unwrap_err()
            .to_string()
            .contains("goal_teleported")
    );
}

#[test]
fn the_snapshot_is_the_public_view() {
    let fixture = Fixture::new();
    let id = fixture.approved(&contract());
    let snapshot = || -> serde_json::Value {
        let file = fixture.project().layout.goal(&id).snapshot();
        serde_json::from_slice(&fixture.disk.snapshot()[&file]).unwrap()
    };
    let new = snapshot();
    assert_eq!(new["mode"], "goal");
    assert_eq!(new["status"], "active");
    assert_eq!(new["phase"], "workspace");
    assert_eq!(new["pendingDecision"], serde_json::Value::Null);
    assert_eq!(new["links"], serde_json::json!([]));

    let goal = fixture.drive(&id, &|effect, _| failing(effect));
    assert_eq!(goal.status, GoalStatus::Paused);
    let paused = snapshot();
    assert_eq!(paused["pendingDecision"], "raise_budget");
    assert_eq!(paused["reason"], "the turn budget is used up");
    assert_eq!(paused["progress"]["turn"], 6);
    assert_eq!(paused["progress"]["failure"], "`sh test.sh` exited with 1");
    assert_eq!(paused["spent"]["turns"], 5);
    assert_eq!(paused["branch"], "feat/goal-try");
    assert_eq!(paused["worktree"], "/worktree");
    let read: GoalSnapshot = serde_json::from_value(paused).unwrap();
    assert_eq!(read, GoalSnapshot::of(&goal, read.seq));
    assert_eq!(usize::try_from(read.seq).unwrap(), fixture.kinds(&id).len());
}

#[test]
fn a_proposed_goal_waits_for_its_approval() {
    let fixture = Fixture::new();
    let slug = kapi_core::id::Slug::parse("try").unwrap();
    let id = fixture
        .project()
        .create_goal(&crate::support::person(), &slug, &contract())
        .unwrap();
    let goal = fixture.drive(&id, &|effect, _| well(effect));
    assert_eq!(
        goal.status,
        GoalStatus::Proposed,
        "driving does not approve"
    );
    let snapshot = serde_json::to_value(GoalSnapshot::of(&goal, 1)).unwrap();
    assert_eq!(snapshot["pendingDecision"], "approve_contract");
}

#[test]
fn the_contract_is_there_for_people_to_read() {
    let mut contract = contract();
    contract.intent =
        "Fix the login:\n- \"quoted\" # not a comment\n- tab\there: {a: b}".to_owned();
    contract.done_criteria = "one\ntwo: three".to_owned();
    contract.verify = vec!["sh test.sh && echo 'x: y'".to_owned(), "true".to_owned()];
    contract.hidden = Some(HiddenCheckSet {
        source: "/h".to_owned(),
        sha256: "00".to_owned(),
        files: 1,
    });
    contract.judge = Judge::Agent("codex".to_owned());
    contract.protect = Vec::new();
    let fixture = Fixture::new();
    let id = fixture.approved(&contract);
    let file = fixture.project().layout.goal(&id).contract();
    let text = String::from_utf8(fixture.disk.snapshot()[&file].clone()).unwrap();
    let read: Contract = serde_saphyr::from_str(&text).unwrap();
    assert_eq!(read, contract);
    assert!(
        text.contains("done_criteria: |-\n  one\n  two: three\n"),
        "{text}"
    );
    assert!(
        text.starts_with("# The contract of goal 001-try."),
        "{text}"
    );
}
