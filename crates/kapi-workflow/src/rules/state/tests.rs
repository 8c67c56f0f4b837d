//! A workflow as it stands in `state.json`: written once in full, so that no change makes old ones
//! unreadable unseen.

use crate::rules::modes::interview::scenario::drafted;
use crate::rules::state::Workflow;

/// The keys of a state, in the order in which they are written.
fn keys(value: &serde_json::Value) -> Vec<&str> {
    value
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect()
}

#[test]
fn a_state_is_written_with_these_fields() {
    let mut scenario = drafted();
    scenario.approve();
    let text = serde_json::to_string(scenario.workflow()).unwrap();
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    let mut shared = keys(&value);
    shared.sort_unstable();
    assert_eq!(
        shared,
        [
            "approvals",
            "blocked",
            "body",
            "evidence",
            "failures",
            "goals",
            "id",
            "in_flight",
            "links",
            "pending",
            "purpose",
            "raised",
            "revisions",
            "started_at_ms",
            "started_by",
            "status",
            "terms",
            "used",
            "workers"
        ]
    );
    let interview = &value["body"]["interview"];
    let mut own = keys(interview);
    own.sort_unstable();
    assert_eq!(
        own,
        [
            "commit",
            "contradictions",
            "is_enough",
            "phase",
            "refused",
            "restarts",
            "restated",
            "rounds",
            "score",
            "spec",
            "steps",
            "streak"
        ]
    );
    assert_eq!(
        serde_json::to_string(&interview["rounds"][0]).unwrap(),
        r#"{"number":1,"question":{"dimension":"goal","perspective":"breadth","proposed":null,"text":"What hurts?"},"reply":{"answered":{"at_ms":1795000000000,"provenance":"person","refs":[],"text":"Lost sign-ins."}},"settles":[]}"#
    );
    assert_eq!(
        serde_json::to_string(&interview["restated"]).unwrap(),
        r#"{"goal":"Sign-in survives a crash.","is_confirmed":true,"round":2,"times":1}"#
    );
    assert_eq!(value["status"], "active");
    let read: Workflow = serde_json::from_str(&text).unwrap();
    assert_eq!(read, *scenario.workflow());
    let later = text.replacen("\"purpose\"", "\"later\":1,\"purpose\"", 1);
    assert!(serde_json::from_str::<Workflow>(&later).is_err());
}
