//! Scenarios as JSON: everything a file can say, and what it cannot.

use kapi_testkit::model_server::fault::{FaultKind, FaultTarget, InjectedFault, Times};
use kapi_testkit::model_server::scenario::{
    AssistantTurn, JudgeRule, ModelScenario, ReplyUsage, Route, ToolUse,
};
use serde_json::json;

const EVERYTHING: &str = include_str!("../fixtures/everything.json");

fn every_step() -> Vec<AssistantTurn> {
    vec![
        AssistantTurn::bash("ls -la").saying("Looking around."),
        AssistantTurn::tools(vec![
            ToolUse::Write {
                path: "a.txt".to_owned(),
                content: "a\n".to_owned(),
            },
            ToolUse::Edit {
                path: "b.txt".to_owned(),
                old: "b".to_owned(),
                new: "c".to_owned(),
            },
            ToolUse::Read {
                path: "a.txt".to_owned(),
            },
            ToolUse::Mcp {
                name: "claim".to_owned(),
                arguments: json!({ "state": "done" }),
            },
            ToolUse::Named {
                name: "Unknown".to_owned(),
                arguments: json!({}),
            },
        ]),
        AssistantTurn {
            usage: Some(ReplyUsage {
                output: 7,
                ..ReplyUsage::default()
            }),
            ..AssistantTurn::text("Done at last.")
        },
    ]
}

#[test]
fn a_file_says_what_code_says() {
    let mut expected = ModelScenario::new(every_step());
    expected.after = "Nothing left to do.".to_owned();
    expected.usage = ReplyUsage {
        input: 1200,
        output: 80,
        cache_read: 300,
        cache_write: 40,
        reasoning: 10,
    };
    expected.judges = vec![JudgeRule::new(
        "JUDGE-THIS",
        vec![json!({ "verdict": "continue" }), json!("not JSON")],
    )];
    expected.routes = vec![Route::new(
        "turn 2",
        vec![AssistantTurn::text("Second turn.")],
    )];
    expected.require_key = Some("sk-expected".to_owned());
    let fault = |at, times, kind| InjectedFault::new(at, times, kind);
    expected.faults = vec![
        fault(
            FaultTarget::Step(1),
            Times::First(2),
            FaultKind::Status {
                code: 429,
                retry_after_s: Some(1),
            },
        ),
        InjectedFault {
            matching: Some("poison".to_owned()),
            ..fault(FaultTarget::Any, Times::Always, FaultKind::Hang)
        },
        fault(
            FaultTarget::Judge,
            Times::Always,
            FaultKind::Delay { ms: 500 },
        ),
        fault(
            FaultTarget::Step(0),
            Times::First(1),
            FaultKind::Huge { bytes: 1000 },
        ),
    ];
    assert_eq!(
        ModelScenario::parse(EVERYTHING).expect("a scenario"),
        expected
    );
    let written = serde_json::to_string(&expected).expect("JSON");
    assert_eq!(
        ModelScenario::parse(&written).expect("a scenario"),
        expected
    );
}

#[test]
fn misspelt_fields_are_errors_with_their_place() {
    let check = |text: &str, part: &str| {
        let error = ModelScenario::parse(text).expect_err("no scenario");
        let source = std::error::Error::source(&error)
            .expect("a source")
            .to_string();
        assert!(
            source.contains(part) && source.contains("line 1"),
            "{source}"
        );
    };
    check(r#"{"steps": [], "stepps": []}"#, "stepps");
    check(
        r#"{"steps": [{"tools": [{"bush": {"command": "ls"}}]}]}"#,
        "bush",
    );
    check(r#"{"steps": [], "usage": {"inputs": 1}}"#, "inputs");
    check(
        r#"{"steps": [], "faults": [{"at": "any", "kind": "hang"}]}"#,
        "times",
    );
}
