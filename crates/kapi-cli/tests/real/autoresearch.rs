//! A search with a real CLI on a small C program: a mixed bag of ideas ends with the real gains.
//!
//! Another process counts the program's comparisons, so that chance decides nothing.

use std::fs;

use kapi_testkit::agent_tools::Cli;
use kapi_testkit::mixed_bag::idea::{Idea, mixed_bag};
use kapi_testkit::mixed_bag::{CHECKED, COUNTED, write_held_back, write_program};
use kapi_testkit::model_server::scenario::{AssistantTurn, ModelScenario, Route};
use serde_json::Value;

use crate::machine::Machine;

const ID: &str = "001-fewer-comparisons";
const BRANCH: &str = "perf/autoresearch-fewer-comparisons";

/// What hangs is ended by the clock alone, which a busy machine makes a matter of luck; the search of
/// a scripted agent has it.
const HANGING: &str = "fewer writes";

/// One experiment: what is done, and what is said of it. Prompts differ in how many runs are left.
fn experiment(runs_left: usize, idea: &Idea) -> Route {
    let answer = &idea.answer;
    let left = match runs_left {
        1 => "1 run is left".to_owned(),
        more => format!("{more} runs are left"),
    };
    Route::new(
        &left,
        vec![
            AssistantTurn::bash(&idea.deed),
            AssistantTurn::text(&format!("I changed it.\n\n```json\n{answer:#}\n```\n")),
        ],
    )
}

fn scenario(bag: &[Idea]) -> ModelScenario {
    let mut scenario = ModelScenario::new(vec![AssistantTurn::text("I do not know.")]);
    let left = (1..=bag.len()).rev();
    scenario.routes = left
        .zip(bag)
        .map(|(left, idea)| experiment(left, idea))
        .collect();
    scenario
}

fn search(cli: Cli) {
    let mut bag = mixed_bag();
    bag.retain(|idea| idea.description != HANGING);
    let machine = Machine::new(scenario(&bag));
    let env = &machine.env;
    write_program(&env.repository()).unwrap();
    env.commit_all("a program");
    let held_back = env.root().join("held-back");
    write_held_back(&held_back).unwrap();
    let (held_back, runs) = (held_back.display().to_string(), bag.len().to_string());
    let words = ["autoresearch", "fewer comparisons", "--unlinked", "--agent"];
    let limits = [
        cli.name(),
        "--runs",
        &runs,
        "--benchmark-timeout",
        "10m",
        "--held-back",
        &held_back,
    ];
    let proposed = env.kapi(&[&words[..], &limits, COUNTED, CHECKED].concat());
    assert_eq!(proposed.code, 5, "{proposed:?}");
    assert_eq!(env.kapi(&["autoresearch", "approve", "1", "--yes"]).code, 0);
    let done = env.kapi(&["autoresearch", "resume", "1"]);
    assert_eq!(done.code, 0, "{done:?}");
    let ledger = env
        .repository()
        .join(".ilchul/workflows/autoresearch")
        .join(ID)
        .join("ledger.jsonl");
    let ledger = fs::read_to_string(ledger).unwrap();
    let runs = ledger
        .lines()
        .skip(1)
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let found: Vec<String> = runs
        .skip(1)
        .map(|run| run["status"].as_str().unwrap().to_owned())
        .collect();
    let expected: Vec<&str> = bag.iter().map(|idea| idea.status).collect();
    assert_eq!(found, expected, "{ledger}");
    assert_eq!(
        machine.commits_on(BRANCH),
        ["perf: sort by merging", "perf: search by halves"]
    );
    machine.assert_key_is_in_no_file();
}

#[test]
fn a_mixed_bag_of_ideas_of_claude_ends_with_the_real_gains() {
    search(Cli::Claude);
}

#[test]
fn a_mixed_bag_of_ideas_of_pi_ends_with_the_real_gains() {
    search(Cli::Pi);
}
