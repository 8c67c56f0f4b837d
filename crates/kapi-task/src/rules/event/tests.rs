//! The kernel's facts as they stand in a log: a line of each, which no change may make unreadable.

use kapi_check::rules::proof::policy::CheckPolicy;
use kapi_core::evidence::EvidenceFile;
use kapi_core::id::{EffectId, GoalId};
use kapi_core::mode::Mode;
use kapi_core::task_id::{Fence, Holder, KernelTaskId, LoopName};
use kapi_core::usage::Usage;
use kapi_goal::rules::plan;

use crate::rules::event::{KernelEvent, RetryCause};
use crate::rules::goal_drive::GoalDrive;
use crate::rules::loop_run::RunTrigger;
use crate::rules::request::{KernelRequest, RequestKey, TaskOrigin};
use crate::rules::task::{AttemptReport, End, LoopPhase, PhaseStatus};
use crate::rules::task_terms::{Priority, Retry, TaskBudget};

fn check(event: &KernelEvent, line: &str) {
    assert_eq!(serde_json::to_string(event).unwrap(), line);
    assert_eq!(serde_json::from_str::<KernelEvent>(line).unwrap(), *event);
}

fn request() -> KernelRequest {
    KernelRequest {
        description: "Count the tests".to_owned(),
        prompt: "Count them.".to_owned(),
        agent: "sisyphus".to_owned(),
        backend: None,
        model: None,
        timeout_ms: 300_000,
        budget: TaskBudget::default(),
        domain: None,
        priority: Priority::Normal,
        key: None,
        retry: Retry::default(),
        verify: Vec::new(),
        protect: Vec::new(),
        checks: CheckPolicy::default(),
        keep_commits: false,
        base: None,
        origin: TaskOrigin::Person {
            user: "user".to_owned(),
        },
        depth: 0,
        retry_of: None,
        loop_run: None,
        goal: None,
    }
}

#[test]
fn what_an_attempt_wrote_reads_back() {
    check(
        &KernelEvent::RunRecorded {
            task: task(),
            run: "task_17-4".to_owned(),
            files: vec![EvidenceFile {
                name: "1/transcript.jsonl".to_owned(),
                bytes: 3,
                sha256: "ab".to_owned(),
            }],
        },
        r#"{"type":"run_recorded","data":{"task":"task_17","run":"task_17-4","files":[{"name":"1/transcript.jsonl","bytes":3,"sha256":"ab"}]}}"#,
    );
}

#[test]
fn a_drive_says_which_goal_it_is_and_where() {
    let goal = |text: &str| GoalId::parse(text).unwrap();
    let drive = |location: Option<&str>| GoalDrive {
        mode: Mode::Ralph,
        workflow: goal("002-fix-login"),
        task: plan::task::PlanTaskId::parse("T-001").unwrap(),
        effect: EffectId::new(1, "work-T-001", 1),
        goal: goal("003-the-word"),
        location: location.map(str::to_owned),
    };
    let submitted = |location| KernelEvent::Submitted {
        task: task(),
        request: Box::new(KernelRequest {
            goal: Some(Box::new(drive(location))),
            ..request()
        }),
    };
    check(
        &submitted(None),
        r#"{"type":"submitted","data":{"task":"task_17","request":{"description":"Count the tests","prompt":"Count them.","agent":"sisyphus","timeout_ms":300000,"origin":{"by":"person","user":"user"},"goal":{"mode":"ralph","workflow":"002-fix-login","task":"T-001","effect":"t001-work-T-001-a1","goal":"003-the-word"}}}}"#,
    );
    check(
        &submitted(Some("host:/project")),
        r#"{"type":"submitted","data":{"task":"task_17","request":{"description":"Count the tests","prompt":"Count them.","agent":"sisyphus","timeout_ms":300000,"origin":{"by":"person","user":"user"},"goal":{"mode":"ralph","workflow":"002-fix-login","task":"T-001","effect":"t001-work-T-001-a1","goal":"003-the-word","place":"host:/project"}}}}"#,
    );
}

fn task() -> KernelTaskId {
    KernelTaskId::new(17)
}

fn name() -> LoopName {
    LoopName::parse("nightly").unwrap()
}

const USED: Usage = Usage {
    input_tokens: 10,
    output_tokens: 2,
    usd_micros: Some(5),
    ..Usage::ZERO
};

#[test]
fn a_plain_request_is_short() {
    check(
        &KernelEvent::Submitted {
            task: task(),
            request: Box::new(request()),
        },
        r#"{"type":"submitted","data":{"task":"task_17","request":{"description":"Count the tests","prompt":"Count them.","agent":"sisyphus","timeout_ms":300000,"origin":{"by":"person","user":"user"}}}}"#,
    );
}

#[test]
fn a_request_says_everything_that_was_asked() {
    let full = KernelRequest {
        backend: Some("pi".to_owned()),
        model: Some("small".to_owned()),
        budget: TaskBudget {
            tokens: Some(1_000),
            usd_micros: Some(2),
            time_ms: Some(3),
        },
        domain: Some("tests".to_owned()),
        priority: Priority::High,
        key: Some(RequestKey {
            text: "count".to_owned(),
            ttl_ms: 600_000,
        }),
        retry: Retry {
            times: 2,
            backoff_ms: 1_000,
            backoff_ms_max: 60_000,
        },
        verify: vec!["make test".to_owned()],
        protect: Vec::new(),
        checks: CheckPolicy::default(),
        keep_commits: true,
        base: None,
        origin: TaskOrigin::Agent {
            run: "r1".to_owned(),
            task: Some(KernelTaskId::new(3)),
        },
        depth: 1,
        retry_of: Some(KernelTaskId::new(2)),
        ..request()
    };
    check(
        &KernelEvent::Submitted {
            task: task(),
            request: Box::new(full),
        },
        r#"{"type":"submitted","data":{"task":"task_17","request":{"description":"Count the tests","prompt":"Count them.","agent":"sisyphus","backend":"pi","model":"small","timeout_ms":300000,"budget":{"tokens":1000,"usd_micros":2,"time_ms":3},"domain":"tests","priority":"high","key":{"text":"count","ttl_ms":600000},"retry":{"times":2,"backoff_ms":1000,"backoff_ms_max":60000},"verify":["make test"],"keep_commits":true,"origin":{"by":"agent","run":"r1","task":"task_3"},"depth":1,"retry_of":"task_2"}}}"#,
    );
}

#[test]
fn what_a_worker_does_with_a_task() {
    check(
        &KernelEvent::Claimed {
            task: task(),
            holder: Holder("worker 3".to_owned()),
            fence: Fence(41),
            expires_at_ms: 60_000,
        },
        r#"{"type":"claimed","data":{"task":"task_17","holder":"worker 3","fence":41,"expires_at_ms":60000}}"#,
    );
    check(
        &KernelEvent::Begun { task: task() },
        r#"{"type":"begun","data":{"task":"task_17"}}"#,
    );
    check(
        &KernelEvent::Beat {
            task: task(),
            expires_at_ms: 80_000,
            usage: USED,
        },
        r#"{"type":"beat","data":{"task":"task_17","expires_at_ms":80000,"usage":{"input_tokens":10,"output_tokens":2,"usd_micros":5}}}"#,
    );
    check(
        &KernelEvent::PhaseEnded {
            task: task(),
            phase: LoopPhase::ShouldRun,
            status: PhaseStatus::Skipped,
            detail: Some("no condition".to_owned()),
            report: None,
        },
        r#"{"type":"phase_ended","data":{"task":"task_17","phase":"shouldRun","status":"skipped","detail":"no condition","report":null}}"#,
    );
    check(
        &KernelEvent::CancelAsked {
            task: task(),
            why: "not wanted".to_owned(),
        },
        r#"{"type":"cancel_asked","data":{"task":"task_17","why":"not wanted"}}"#,
    );
}

#[test]
fn why_a_task_waits_again() {
    for (cause, word) in [
        (RetryCause::Retry, "retry"),
        (RetryCause::GivenBack, "given_back"),
        (RetryCause::LostBefore, "lost_before"),
        (RetryCause::Lost, "lost"),
    ] {
        check(
            &KernelEvent::Requeued {
                task: task(),
                not_before_ms: 5,
                cause,
                why: "It did not work.".to_owned(),
                usage: Usage::default(),
            },
            &format!(
                r#"{{"type":"requeued","data":{{"task":"task_17","not_before_ms":5,"cause":"{word}","why":"It did not work.","usage":{{"input_tokens":0,"output_tokens":0}}}}}}"#
            ),
        );
    }
}

#[test]
fn what_came_of_a_task() {
    check(
        &KernelEvent::Ended {
            task: task(),
            report: Box::new(AttemptReport::of(End::Completed)),
        },
        r#"{"type":"ended","data":{"task":"task_17","report":{"end":{"end":"completed"},"usage":{"input_tokens":0,"output_tokens":0},"work":{"n_files":0}}}}"#,
    );
    let reason = "nothing changed".to_owned();
    check(
        &KernelEvent::Ended {
            task: task(),
            report: Box::new(AttemptReport::of(End::Skipped { reason })),
        },
        r#"{"type":"ended","data":{"task":"task_17","report":{"end":{"end":"skipped","reason":"nothing changed"},"usage":{"input_tokens":0,"output_tokens":0},"work":{"n_files":0}}}}"#,
    );
}

#[test]
fn what_is_known_of_loops_and_of_who_leads() {
    check(
        &KernelEvent::LoopSkipped {
            name: name(),
            trigger: RunTrigger::Cron { due_at_ms: 7 },
            reason: "cooldown active".to_owned(),
            is_refused: false,
        },
        r#"{"type":"loop_skipped","data":{"loop":"nightly","trigger":{"type":"cron","due_at_ms":7},"reason":"cooldown active"}}"#,
    );
    check(
        &KernelEvent::LoopSkipped {
            name: name(),
            trigger: RunTrigger::Manual { source: None },
            reason: "denied".to_owned(),
            is_refused: true,
        },
        r#"{"type":"loop_skipped","data":{"loop":"nightly","trigger":{"type":"manual"},"reason":"denied","is_refused":true}}"#,
    );
    check(
        &KernelEvent::LoopSwitched {
            name: name(),
            is_enabled: false,
        },
        r#"{"type":"loop_switched","data":{"loop":"nightly","is_enabled":false}}"#,
    );
    check(
        &KernelEvent::LoopSeen {
            name: name(),
            mark: Some("abc".to_owned()),
        },
        r#"{"type":"loop_seen","data":{"loop":"nightly","mark":"abc"}}"#,
    );
    check(
        &KernelEvent::Led {
            holder: Holder("worker 3".to_owned()),
            fence: Fence(42),
            expires_at_ms: 60_000,
        },
        r#"{"type":"led","data":{"holder":"worker 3","fence":42,"expires_at_ms":60000}}"#,
    );
    check(
        &KernelEvent::Resigned {},
        r#"{"type":"resigned","data":{}}"#,
    );
}

#[test]
fn what_is_not_known_is_refused_and_not_dropped() {
    for line in [
        r#"{"type":"begun","data":{"task":"task_17","since":1}}"#,
        r#"{"type":"begun","data":{"task":"task_0"}}"#,
        r#"{"type":"vanished","data":{"task":"task_17"}}"#,
        r#"{"type":"loop_switched","data":{"loop":"../x","is_enabled":true}}"#,
    ] {
        assert!(serde_json::from_str::<KernelEvent>(line).is_err(), "{line}");
    }
}
