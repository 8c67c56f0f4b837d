//! Workflows in tests: scripted agents that interview, plan, work and review, and how they are run.
//!
//! Knows the command lines; what should come of them is each test's affair.

use std::fs;

use serde_json::Value;

use crate::environment::Environment;
use crate::program::{Output, parse};

pub(crate) const AGENT: &str = include_str!("../fixtures/workflows/agent.yaml");
const REVIEWER: &str = include_str!("../fixtures/workflows/reviewer.yaml");
/// Answers to everything, the goal said back included.
pub(crate) const ANSWERS: &str = "answers: [whoever is named on the command line]\n\
    by:\n  success: [sh greet.sh Ada prints hello Ada]\notherwise: accept\n";

/// A machine with a repository and the two agents.
pub(crate) struct Machine {
    pub(crate) env: Environment,
    pub(crate) agent: String,
    pub(crate) reviewer: String,
}

impl Machine {
    pub(crate) fn new() -> Self {
        Self::with_agent(AGENT)
    }

    /// Returns one whose plan has another check in the place of the one of its first criterion.
    pub(crate) fn with_check(check: &str) -> Self {
        const CHECK: &str = r#"verify: '[ "$(sh greet.sh Ada)" = "hello Ada" ]'}"#;
        assert!(AGENT.contains(CHECK));
        Self::with_agent(&AGENT.replace(CHECK, &format!("verify: '{check}'}}")))
    }

    pub(crate) fn with_agent(agent: &str) -> Self {
        let mut env = Environment::new();
        env.set("KAPI_SESSION", "test");
        let agent = env.script("agent.yaml", agent);
        let reviewer = env.script("reviewer.yaml", REVIEWER);
        crate::environment::write(&env.root().join("answers.yaml"), ANSWERS);
        Self {
            env,
            agent,
            reviewer,
        }
    }

    /// Starts an interview that is not driven.
    pub(crate) fn interview(&self, options: &[&str]) -> Output {
        let args = [
            "deep-interview",
            "greet people by name",
            "--agent",
            &self.agent,
        ];
        self.env.kapi(&[&args[..], options].concat())
    }

    /// Interviews with answers from a file, up to the spec.
    pub(crate) fn drafted(&self) -> Output {
        let answers = self.env.root().join("answers.yaml").display().to_string();
        self.interview(&["--answers", &answers])
    }

    /// Starts a Ralph workflow.
    pub(crate) fn ralph(&self, words: &[&str], options: &[&str]) -> Output {
        let parties = [
            "--agent",
            &self.agent,
            "--reviewer",
            &self.reviewer,
            "--judge",
            "none",
        ];
        self.env
            .kapi(&[&["ralph"], words, &parties[..], options].concat())
    }

    pub(crate) fn dir(&self, mode: &str, id: &str) -> std::path::PathBuf {
        let workflows = self.env.repository().join(".ilchul/workflows");
        workflows.join(mode).join(id)
    }

    pub(crate) fn document(&self, mode: &str, id: &str, name: &str) -> String {
        let path = self.dir(mode, id).join(name);
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// Returns the types of a workflow's events, those of a mode as `interview.…` or `ralph.…`.
    pub(crate) fn events(&self, mode: &str, id: &str) -> Vec<Value> {
        let log = self.document(mode, id, "events.jsonl");
        log.lines().map(parse).collect()
    }
}

/// The last line of a stream of JSON.
pub(crate) fn last(output: &Output) -> Value {
    let line = output.stdout.lines().last();
    parse(line.unwrap_or_else(|| panic!("nothing was printed: {output:?}")))
}
