//! The tools' shapes: what is read, what is refused and where, what a draft becomes.

use kapi_check::rules::proof::attribution::Attribution;
use kapi_check::rules::proof::policy::CheckPolicy;
use kapi_core::isolation::{NetworkMode, SandboxLevel};
use kapi_core::judge::{Judge, JudgeUnavailable};
use serde_json::{Value, json};

use super::call::{GoalToolRequest, read};
use super::input::SetInput;
use super::{GoalTool, ToolRefusal, listing, schema, set};
use crate::rules::budget::Budget;
use crate::rules::contract::{Base, CONTRACT_VERSION, Contract, GoalType, Working};
use crate::rules::plan::task::TaskPhase;
use crate::rules::tool::ToolCall;
use crate::rules::wait::WaitFor;

const NOW_MS: i64 = 1_000_000;

fn call(tool: GoalTool, input: Value) -> Result<ToolCall, ToolRefusal> {
    match read(tool.name(), input, NOW_MS)? {
        GoalToolRequest::Call(call) => Ok(*call),
        other => panic!("not a call: {other:?}"),
    }
}

fn refusal(tool: GoalTool, input: Value) -> String {
    let refused = read(tool.name(), input, NOW_MS).unwrap_err();
    assert_eq!(refused.code, "bad_input", "{refused}");
    refused.message
}

fn whole_set() -> Value {
    json!({
        "goal": "Move the auth tests", "doneCriteria": "all specs are green",
        "askBefore": ["git push"], "decisionStyle": "ask when in doubt",
        "goalType": "exploratory",
        "surfaces": [{"kind": "logs", "location": "/var/log/app", "notes": "noisy"}],
        "verifyCommand": "bun test && bun lint", "startPhase": "red", "maxTurns": 40,
        "judgeModel": {"provider": "anthropic", "modelId": "claude/opus"},
    })
}

fn set_input(change: impl FnOnce(&mut Value)) -> SetInput {
    let mut value = whole_set();
    change(&mut value);
    match read("until_done_set", value, NOW_MS).unwrap() {
        GoalToolRequest::Set(input) => *input,
        other => panic!("not a draft: {other:?}"),
    }
}

fn provisional() -> Contract {
    Contract {
        version: CONTRACT_VERSION,
        intent: "vague".to_owned(),
        done_criteria: "vague".to_owned(),
        verify: Vec::new(),
        verify_timeout_ms: 1,
        verify_network: false,
        protect: Vec::new(),
        hidden: None,
        budget: Budget {
            turns: 20,
            tokens: Some(9),
            usd_micros: None,
            wall_ms: None,
        },
        stall_after: 3,
        turn_timeout_ms: 1,
        agent: "claude".to_owned(),
        models: Vec::new(),
        judge: Judge::None,
        judge_unavailable: JudgeUnavailable::Closed,
        base: Base {
            revision: "HEAD".to_owned(),
            commit: "c".to_owned(),
            tree: "t".to_owned(),
        },
        branch: "feat/x".to_owned(),
        sandbox: SandboxLevel::Podman,
        network: NetworkMode::None,
        working: Working::default(),
        checks: CheckPolicy::default(),
        attribution: Attribution::default(),
        race: None,
        delivery: None,
    }
}

#[test]
fn every_tool_has_a_schema_that_allows_nothing_else() {
    for tool in GoalTool::ALL {
        let schema = schema::input_schema(tool);
        assert_eq!(schema["type"], "object", "{tool:?}");
        assert_eq!(schema["additionalProperties"], false, "{tool:?}");
        assert!(schema["properties"].is_object(), "{tool:?}");
        let text = schema.to_string();
        assert!(!text.contains("$ref") && !text.contains("$defs"), "{text}");
        assert!(!text.contains("null"), "{text}");
        assert_eq!(GoalTool::named(tool.name()), Some(tool));
        let unknown = refusal(tool, json!({"colour": "blue"}));
        assert!(unknown.contains("colour"), "{unknown}");
    }
    // A model is told of a tool's name, description and input; the rest is its client's.
    let told = |tool: &Value| -> usize {
        let told = ["name", "description", "inputSchema"].map(|key| tool[key].to_string().len());
        told.iter().sum()
    };
    let bytes: usize = listing().iter().map(told).sum();
    assert!(
        bytes < 20_000,
        "every request of every agent carries these {bytes} bytes"
    );
}

#[test]
fn required_fields_are_those_of_the_specification() {
    for (tool, required) in [
        (
            GoalTool::Set,
            json!([
                "goal",
                "doneCriteria",
                "askBefore",
                "decisionStyle",
                "goalType",
                "surfaces"
            ]),
        ),
        (GoalTool::Plan, json!(["tasks"])),
        (GoalTool::Replan, json!(["operations", "reason"])),
        (GoalTool::TaskUpdate, json!(["id", "patch"])),
        (GoalTool::Progress, json!(["note"])),
        (GoalTool::Complete, json!(["evidence"])),
        (GoalTool::Block, json!(["question", "reason"])),
        (GoalTool::Wait, json!(["until", "reason"])),
        (GoalTool::Distill, json!(["prdMarkdown"])),
        (GoalTool::Status, Value::Null),
    ] {
        assert_eq!(schema::input_schema(tool)["required"], required, "{tool:?}");
    }
}

#[test]
fn the_place_and_the_rule_are_said() {
    let task = |phase: &str| json!({"id": "T-1", "title": "t", "phase": phase});
    let plan = json!({"tasks": [task("red"), task("purple")]});
    let message = refusal(GoalTool::Plan, plan);
    assert!(
        message.starts_with("tasks[1].phase: unknown variant"),
        "{message}"
    );
    let message = refusal(GoalTool::Plan, json!({}));
    assert!(message.contains("missing field `tasks`"), "{message}");
    let message = refusal(GoalTool::TaskUpdate, json!({"id": "a b", "patch": {}}));
    assert!(message.starts_with("id: "), "{message}");
    let message = refusal(
        GoalTool::Replan,
        json!({"operations": [{"op": "explode"}], "reason": "r"}),
    );
    assert!(message.starts_with("operations[0]"), "{message}");
    assert_eq!(
        refusal(GoalTool::Plan, json!([1])),
        "the input must be a JSON object"
    );
    assert_eq!(
        read("until_done_fly", json!({}), 0).unwrap_err().code,
        "unknown_tool"
    );
}

#[test]
fn every_input_becomes_its_call() {
    let task = json!({"id": "T-1", "title": "t", "phase": "red", "validationSteps": ["v"]});
    let op = json!({"op": "insert", "task": task, "insertAfter": "T-0"});
    for (tool, input) in [
        (GoalTool::Plan, json!({"tasks": [task]})),
        (GoalTool::Replan, json!({"operations": [op], "reason": "r"})),
        (
            GoalTool::TaskUpdate,
            json!({"id": "T-1", "patch": {"status": "done", "addLearning": "l"}}),
        ),
        (GoalTool::Progress, json!({"note": "n", "phase": "green"})),
        (GoalTool::Complete, json!({"evidence": "e", "summary": "s"})),
        (GoalTool::Block, json!({"question": "q", "reason": "r"})),
        (
            GoalTool::Wait,
            json!({"until": {"for": "approval", "what": "w"}, "reason": "r"}),
        ),
        (GoalTool::Distill, json!({"prdMarkdown": "# m"})),
    ] {
        assert_eq!(call(tool, input).unwrap().name(), tool.name());
    }
    assert_eq!(
        read("until_done_status", Value::Null, 0).unwrap(),
        GoalToolRequest::Status(super::input::StatusInput::default())
    );
}

#[test]
fn waits_are_counted_from_now() {
    let wait = |until: Value| {
        let input = json!({"until": until, "reason": "r", "timeoutSeconds": 60});
        match call(GoalTool::Wait, input).unwrap() {
            ToolCall::Wait {
                until, timeout_ms, ..
            } => (until, timeout_ms),
            other => panic!("{other:?}"),
        }
    };
    let time = wait(json!({"for": "time", "seconds": 5}));
    assert_eq!(
        time,
        (
            WaitFor::Time {
                at_ms: NOW_MS + 5_000
            },
            Some(60_000)
        )
    );
    let far = wait(json!({"for": "quota", "provider": "p", "seconds": u64::MAX}));
    let WaitFor::Quota { at_ms, .. } = far.0 else {
        panic!("{far:?}");
    };
    assert_eq!(at_ms, i64::MAX);
    let command = wait(json!({"for": "command", "command": "c", "everySeconds": 30}));
    let every = WaitFor::Command {
        command: "c".to_owned(),
        every_ms: 30_000,
    };
    assert_eq!(command.0, every);
    let message = refusal(
        GoalTool::Wait,
        json!({"until": {"for": "process", "pid": 1}, "reason": "r"}),
    );
    assert!(message.contains("process"), "{message}");
}

#[test]
fn a_draft_fills_the_contract_and_keeps_what_the_person_said() {
    let contract = set::contract(&provisional(), &set_input(|_| ()), None).unwrap();
    assert_eq!(contract.intent, "Move the auth tests");
    assert_eq!(contract.done_criteria, "all specs are green");
    assert_eq!(contract.verify, ["bun test && bun lint"]);
    assert_eq!(contract.budget.turns, 20, "a draft only narrows");
    let judge = Judge::Agent("anthropic/claude/opus".to_owned());
    assert_eq!(contract.judge, judge);
    let working = &contract.working;
    assert_eq!(working.goal_type, GoalType::Exploratory);
    assert_eq!(working.ask_before, ["git push"]);
    assert_eq!(working.start_phase, TaskPhase::Red);
    assert_eq!(working.surfaces[0].location, "/var/log/app");
    let (before, after) = (provisional(), contract);
    assert_eq!(after.agent, before.agent);
    assert_eq!(after.sandbox, before.sandbox);
    assert_eq!(after.network, before.network);
    assert_eq!(after.branch, before.branch);
    assert_eq!(after.base, before.base);
    assert_eq!(after.budget.tokens, before.budget.tokens);
}

#[test]
fn the_persons_own_verify_commands_and_patterns_come_first() {
    let mut person = provisional();
    person.verify = vec!["make check".to_owned()];
    person.working.ask_before = vec!["rm".to_owned(), "git push".to_owned()];
    let contract = set::contract(&person, &set_input(|_| ()), None).unwrap();
    assert_eq!(contract.verify, ["make check", "bun test && bun lint"]);
    assert_eq!(contract.working.ask_before, ["rm", "git push"]);
    let none = set_input(|value| drop(value.as_object_mut().unwrap().remove("verifyCommand")));
    let contract = set::contract(&person, &none, None).unwrap();
    assert_eq!(contract.verify, ["make check"]);
}

#[test]
fn a_verify_command_goes_through_mise_only_where_that_is_wanted() {
    let mut person = provisional();
    person.working.mise = true;
    let contract = set::contract(&person, &set_input(|_| ()), None).unwrap();
    assert_eq!(
        contract.verify,
        ["mise exec -- sh -c 'bun test && bun lint'"]
    );
}

#[test]
fn judge_unspecified_and_who_wins() {
    let unsaid = |value: &mut Value| drop(value.as_object_mut().unwrap().remove("judgeModel"));
    let none = set_input(unsaid);
    let refused = set::contract(&provisional(), &none, None).unwrap_err();
    assert_eq!(refused.code, "judge_unspecified");
    let default = Judge::Agent("codex".to_owned());
    let judge = |input: &SetInput| set::contract(&provisional(), input, None).unwrap().judge;
    let with_default = set::contract(&provisional(), &none, Some(&default)).unwrap();
    assert_eq!(with_default.judge, default);
    let same = set_input(|value| {
        unsaid(value);
        value["sameModelJudge"] = json!(true);
    });
    assert_eq!(judge(&same), Judge::Same);
    let not_same = set_input(|value| {
        unsaid(value);
        value["sameModelJudge"] = json!(false);
    });
    let refused = set::contract(&provisional(), &not_same, None).unwrap_err();
    assert_eq!(refused.code, "judge_unspecified");
    let both = set_input(|value| value["sameModelJudge"] = json!(true));
    assert_eq!(
        judge(&both),
        Judge::Agent("anthropic/claude/opus".to_owned())
    );
}

#[test]
fn the_persons_judge_and_limits_stay_whatever_is_drafted() {
    let mut person = provisional();
    person.judge = Judge::Agent("codex".to_owned());
    person.budget.turns = 5;
    person.protect = vec!["tests/**".to_owned()];
    let input = set_input(|value| value["sameModelJudge"] = json!(true));
    let contract = set::contract(&person, &input, None).unwrap();
    assert_eq!(contract.judge, person.judge);
    assert_eq!(contract.budget, person.budget);
    assert_eq!(contract.protect, person.protect);
    let refused: Vec<String> = contract
        .attribution
        .refusals
        .iter()
        .map(|it| format!("{} {} {}", it.part, it.value, it.kept))
        .collect();
    assert_eq!(refused, ["judge anthropic/claude/opus codex", "turns 40 5"]);

    // The person's preference counts as much as a flag of theirs.
    let default = Judge::Agent("gemini".to_owned());
    let contract = set::contract(&provisional(), &input, Some(&default)).unwrap();
    assert_eq!(contract.judge, default);
}

#[test]
fn a_second_draft_takes_the_place_of_the_first() {
    let mut person = provisional();
    person.verify = vec!["make check".to_owned()];
    let first = set::contract(&person, &set_input(|_| ()), None).unwrap();
    let other = set_input(|value| {
        value["verifyCommand"] = json!("make test");
        value["judgeModel"]["modelId"] = json!("other");
    });
    let second = set::contract(&first, &other, None).unwrap();
    assert_eq!(second.verify, ["make check", "make test"]);
    assert_eq!(second.judge, Judge::Agent("anthropic/other".to_owned()));
    assert_eq!(
        second,
        set::contract(&person, &other, None).unwrap(),
        "nothing of the first draft is left"
    );
}

#[test]
fn bad_drafts_name_the_field_as_it_was_given() {
    let message = |change: fn(&mut Value)| {
        let refused = set::contract(&provisional(), &set_input(change), None).unwrap_err();
        assert_eq!(refused.code, "bad_input");
        refused.message
    };
    for (change, field) in [
        (
            (|value| value["goal"] = json!(" ")) as fn(&mut Value),
            "goal",
        ),
        (|value| value["doneCriteria"] = json!(""), "doneCriteria"),
        (|value| value["maxTurns"] = json!(0), "maxTurns"),
        (|value| value["maxTurns"] = json!(20_001), "maxTurns"),
        (|value| value["maxTurns"] = json!(u64::MAX), "maxTurns"),
        (|value| value["verifyCommand"] = json!(" "), "verifyCommand"),
        (|value| value["askBefore"] = json!([""]), "askBefore"),
        (|value| value["decisionStyle"] = json!(""), "decisionStyle"),
        (
            |value| value["judgeModel"]["provider"] = json!(""),
            "judgeModel",
        ),
        (|value| value["surfaces"][0]["kind"] = json!(""), "surfaces"),
    ] {
        let message = message(change);
        assert!(message.starts_with(&format!("{field}: ")), "{message}");
    }
}
