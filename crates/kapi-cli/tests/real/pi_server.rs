//! A model server of the person's own, asked by Pi in the sandbox: it has no key, and a model that no
//! vendor knows. Pi works with it and judges with it, in both pinned versions.

use kapi_testkit::agent_tools::{Cli, Edition};
use kapi_testkit::model_server::record::{Api, ServedAnswer};
use kapi_testkit::model_server::scenario::{AssistantTurn, JudgeRule, ModelScenario};
use serde_json::json;

use crate::environment::BRANCH;
use crate::machine::{JUDGE_MARK, Machine};

const MODEL: &str = "qwen3-coder:30b";

fn machine(edition: Edition) -> Machine {
    let mut scenario = ModelScenario::new(vec![
        AssistantTurn::bash("echo 42 > answer.txt"),
        AssistantTurn::text("The answer is right."),
    ]);
    let verdict = json!({"verdict": "done", "reason": "it says 42", "token": "{{token}}"});
    scenario.judges = vec![JudgeRule::new(JUDGE_MARK, vec![verdict])];
    let machine = Machine::of_edition(scenario, Cli::Pi, edition);
    machine.env.configure(&format!(
        "[agents.pi]\ncommand = {:?}\nbase_url = {:?}\nmodel = {MODEL:?}\n",
        machine.binary(Cli::Pi),
        machine.server.base_url()
    ));
    machine
}

/// Checks that the server was asked for this by the model's name, and shown no key of anybody's.
fn check_asked(machine: &Machine, kind: &ServedAnswer) {
    let mut asked = machine.asked();
    asked.retain(|request| request.answer == *kind);
    assert!(!asked.is_empty(), "{kind:?}");
    for request in &asked {
        assert_eq!(request.api, Some(Api::Chat));
        assert_eq!(request.model, MODEL);
        assert_eq!(request.key_fingerprint, None);
    }
}

fn check(edition: Edition) {
    let works = machine(edition);
    let run = works.run(Cli::Pi, "none", &[]);
    run.assert_status("done", 0);
    assert_eq!(works.env.show(BRANCH, "answer.txt"), "42");
    check_asked(&works, &ServedAnswer::Step);

    let judges = machine(edition);
    let agent = "command:echo 42 > answer.txt";
    let run = judges.env.run(agent, &["--judge", "pi"]);
    run.assert_status("done", 0);
    assert_eq!(run.result["judge"]["by"], "pi");
    assert_eq!(run.result["judge"]["reason"], "it says 42");
    check_asked(&judges, &ServedAnswer::Judge);
}

#[test]
fn the_oldest_pi_works_and_judges_with_a_server_of_the_person_s_own() {
    check(Edition::Oldest);
}

#[test]
fn a_recent_pi_works_and_judges_with_a_server_of_the_person_s_own() {
    check(Edition::Recent);
}
