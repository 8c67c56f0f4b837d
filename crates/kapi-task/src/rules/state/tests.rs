//! The kernel's fold as it stands in a file.

use kapi_core::task_id::KernelTaskId;

use crate::rules::event::KernelEvent;
use crate::rules::evolve::evolve;
use crate::rules::state::KernelState;

/// Facts as a log holds them.
const FACTS: [&str; 8] = [
    r#"{"type":"submitted","data":{"task":"task_1","request":{"description":"d","prompt":"p","agent":"a","timeout_ms":0,"key":{"text":"k","ttl_ms":1000},"origin":{"by":"person","user":"u"}}}}"#,
    r#"{"type":"submitted","data":{"task":"task_2","request":{"description":"d","prompt":"p","agent":"a","timeout_ms":0,"origin":{"by":"agent","run":"r"}}}}"#,
    r#"{"type":"claimed","data":{"task":"task_1","holder":"worker 1","fence":1,"expires_at_ms":60000}}"#,
    r#"{"type":"begun","data":{"task":"task_1"}}"#,
    r#"{"type":"claimed","data":{"task":"task_2","holder":"worker 1","fence":2,"expires_at_ms":60000}}"#,
    r#"{"type":"ended","data":{"task":"task_1","report":{"end":{"end":"completed"}}}}"#,
    r#"{"type":"loop_switched","data":{"loop":"nightly","is_enabled":true}}"#,
    r#"{"type":"led","data":{"holder":"worker 1","fence":3,"expires_at_ms":9}}"#,
];

const STATE: &str = r#"{"last_task":2,"last_fence":3,"tasks":{"task_2":{"id":"task_2","request":{"description":"d","prompt":"p","agent":"a","timeout_ms":0,"origin":{"by":"agent","run":"r"}},"state":"leased","submitted_at_ms":2,"not_before_ms":2,"attempts":0,"losses":0,"retries":0,"lease":{"holder":"worker 1","fence":2,"acquired_at_ms":5,"heartbeat_at_ms":5,"expires_at_ms":60000},"usage":{"input_tokens":0,"output_tokens":0}}},"ended":{},"keys":{"k":{"task":"task_1","expires_at_ms":1001}},"served":{"agent r":2,"person u":1},"loops":{"nightly":{"is_enabled":true,"fired_at_ms":7,"totals":{"completed":0,"failed":0,"cancelled":0}}},"leader":{"holder":"worker 1","fence":3,"expires_at_ms":9},"totals":{"completed":1,"failed":0,"cancelled":0}}"#;

fn folded() -> KernelState {
    let mut kernel = KernelState::default();
    for (line, at_ms) in FACTS.iter().zip(1..) {
        let event: KernelEvent = serde_json::from_str(line).unwrap();
        evolve(&mut kernel, &event, at_ms);
    }
    kernel
}

#[test]
fn what_has_ended_is_handed_over_and_the_rest_is_stored_and_read_back() {
    let mut kernel = folded();
    let ended = kernel.take_ended();
    let ids: Vec<KernelTaskId> = ended.iter().map(|task| task.id).collect();
    assert_eq!(ids, [KernelTaskId::new(1)]);
    assert_eq!(ended[0].ended_at_ms, Some(6));
    assert_eq!(serde_json::to_string(&kernel).unwrap(), STATE);
    assert_eq!(serde_json::from_str::<KernelState>(STATE).unwrap(), kernel);
    assert_eq!(kernel.task(KernelTaskId::new(1)), None);
}

#[test]
fn a_fact_about_a_task_that_is_not_there_changes_no_other() {
    let mut kernel = folded();
    kernel.take_ended();
    let before = kernel.clone();
    for line in [FACTS[3], FACTS[5]] {
        let event: KernelEvent = serde_json::from_str(line).unwrap();
        evolve(&mut kernel, &event, 99);
    }
    assert_eq!(kernel, before);
}
