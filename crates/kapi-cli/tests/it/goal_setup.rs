//! The agent drafts the contract, a person approves it, and only then does the work begin.

use serde_json::{Value, json};

use crate::environment::{BRANCH, Environment, FIRST, TASK};
use crate::program::Run;

/// What the agent drafts.
const DRAFT: &str = r#"{"goal": "make the answer 42", "doneCriteria": "answer.txt holds 42",
    "askBefore": [], "decisionStyle": "boring first", "goalType": "ticket",
    "surfaces": [{"kind": "logs", "location": "answer.txt"}], "verifyCommand": "sh test.sh",
    "startPhase": "red", "maxTurns": 5, "sameModelJudge": true}"#;

/// An agent that drafts, judges and works, each when it is asked to.
fn agent(draft: &str) -> String {
    let draft = draft.replace('\n', " ");
    format!(
        "command:if grep -q 'Draft a contract' \"$KAPI_PROMPT_FILE\"; then \
         touch here 2>/dev/null && echo WRITTEN; \
         printf '%s' '{draft}' | kapi agent set; exit 0; fi; \
         if grep -q 'You are the judge' \"$KAPI_PROMPT_FILE\"; then \
         token=$(grep -o '\"token\": *\"[^\"]*\"' \"$KAPI_PROMPT_FILE\" | head -n 1); \
         echo \"{{\\\"verdict\\\": \\\"done\\\", \\\"reason\\\": \\\"it is\\\"${{token:+, $token}}}}\"; exit 0; fi; \
         echo 42 > answer.txt"
    )
}

fn new(env: &Environment, agent: &str, options: &[&str]) -> crate::program::Output {
    let usual = ["goal", "new", TASK, "--draft", "--agent", agent];
    env.kapi(&[&usual[..], options].concat())
}

/// Specification, edge case 23: the agent's draft is recorded, and `not_confirmed`.
#[test]
fn a_draft_is_shown_whole_and_waits_for_its_hash() {
    let env = Environment::new();
    let output = new(&env, &agent(DRAFT), &[]);
    assert_eq!(output.code, 5, "{output:?}");
    assert!(
        output.stderr.contains("is drafting the contract"),
        "{output:?}"
    );
    for word in [
        "make the answer 42",
        "answer.txt holds 42",
        "boring first",
        "logs: answer.txt",
        "same model",
    ] {
        assert!(output.stderr.contains(word), "{word}: {output:?}");
    }
    let detail = env.json(&["show", "1", "--all"]);
    assert_eq!(detail["status"], "proposed");
    let contract = &detail["contract"];
    assert_eq!(contract["verify"], json!(["sh test.sh"]));
    assert_eq!(contract["budget"]["turns"], 5);
    assert_eq!(contract["working"]["start_phase"], "red");
    let hash = detail["contract_hash"].as_str().unwrap();
    let line = format!("kapi goal approve 001 --hash {}", &hash[..12]);
    assert!(output.stdout.contains(&line), "{output:?}");
    let kinds: Vec<String> = env
        .events(FIRST)
        .iter()
        .map(|event| event["type"].as_str().unwrap().to_owned())
        .collect();
    assert!(kinds.contains(&"contract_drafted".to_owned()), "{kinds:?}");
    assert!(
        !kinds.contains(&"contract_approved".to_owned()),
        "{kinds:?}"
    );
    assert!(
        !kinds.contains(&"workspace_created".to_owned()),
        "nothing was begun: {kinds:?}"
    );
    let run = Run::from(env.kapi(&["goal", "approve", "--hash", hash, "--json"]));
    run.assert_status("done", 0);
    assert_eq!(env.show(BRANCH, "answer.txt"), "42");
}

#[test]
fn a_draft_that_was_approved_in_advance_is_worked_on_at_once() {
    let env = Environment::new();
    let run = Run::from(new(&env, &agent(DRAFT), &["--yes", "--json"]));
    run.assert_status("done", 0);
    assert_eq!(env.json(&["show", "1", "--all"])["approval"], "yes_flag");
    env.kapi(&["goal", "autopilot", "on"]);
    let run = Run::from(new(&env, &agent(DRAFT), &["--json", "--keep"]));
    run.assert_status("done", 0);
    assert_eq!(env.json(&["show", "2", "--all"])["approval"], "autopilot");
}

#[test]
fn what_a_person_said_by_flags_stays_in_the_draft() {
    let env = Environment::new();
    let flags = [
        "--verify",
        "test -e answer.txt",
        "--wall",
        "1h",
        "--network",
        "none",
        "--protect",
        "test.sh",
    ];
    let output = new(&env, &agent(DRAFT), &flags);
    assert_eq!(output.code, 5, "{output:?}");
    let contract = env.json(&["show", "1", "--all"])["contract"].clone();
    assert_eq!(
        contract["verify"],
        json!(["test -e answer.txt", "sh test.sh"])
    );
    assert_eq!(contract["budget"]["wall_ms"], 3_600_000);
    assert_eq!(contract["network"], "none");
    assert_eq!(contract["branch"], BRANCH);
}

#[test]
fn an_agent_that_drafts_nothing_blocks_its_setup() {
    let env = Environment::new();
    let output = new(&env, "command:echo I would rather not", &["--json"]);
    let run = Run::from(output);
    run.assert_status("blocked", 5);
    assert!(
        run.reason().contains("drafted no contract"),
        "{}",
        run.reason()
    );
    assert_eq!(env.json(&["show", "1", "--all"])["approval"], Value::Null);
    env.kapi(&["goal", "approve", "1", "--yes"])
        .assert_error(3, &["the goal is blocked"]);
    assert_eq!(env.json(&["goal", "reject", "1"])["status"], "cancelled");
}

/// Specification: neither `judgeModel` nor `sameModelJudge` nor a default is `judge_unspecified`.
#[test]
fn a_draft_without_a_judge_is_refused() {
    let env = Environment::new();
    let draft = DRAFT.replace(", \"sameModelJudge\": true", "");
    let agent = agent(&draft).replace("kapi agent set;", "kapi agent set; true;");
    let run = Run::from(new(&env, &agent, &["--json"]));
    run.assert_status("blocked", 5);
    assert!(
        run.reason().contains("judge_unspecified"),
        "{}",
        run.reason()
    );
    // The person's own choice is the default of a draft.
    let judge = "command:exit 1";
    let output = new(&env, &agent, &["--judge", judge, "--keep"]);
    assert_eq!(output.code, 5, "{output:?}");
    let contract = env.json(&["show", "2", "--all"])["contract"].clone();
    assert_eq!(contract["judge"]["agent"], judge);
}
