//! Pi in a session with a goal: what its model says, and the rig that both run in.

use std::fs;
use std::io::Write as _;

use kapi_testkit::model_server::ModelServer;
use kapi_testkit::model_server::record::RecordedRequest;
use kapi_testkit::model_server::scenario::{
    AssistantTurn, JudgeRule, ModelScenario, Route, ToolUse,
};
use serde_json::{Value, json};

use crate::environment::{Environment, FIRST, TASK};
use crate::machine::JUDGE_MARK;
use crate::pi_host::{Host, Options, PiVersion};
use crate::program::finish;

/// Words that begin the setup, the first turn, and the account at the end.
const SETUP: &str = "Draft a contract for a goal";
pub(crate) const BEGIN: &str = "The contract is approved.";
pub(crate) const DISTILL: &str = "The goal is done: ";
/// Words that begin a turn after one that nobody claimed, and after one of the person's.
pub(crate) const UNFINISHED: &str = "Go on. When the goal is reached";
pub(crate) const GO_ON: &str = "Go on with the goal.";
/// Waits until the test opens the gate beside the repository.
pub(crate) const AT_THE_GATE: &str = "read open < ../gate";

pub(crate) fn tool(name: &str, arguments: Value) -> AssistantTurn {
    AssistantTurn::tools(vec![ToolUse::Named {
        name: format!("until_done_{name}"),
        arguments,
    }])
}

fn draft(judge: &Value) -> AssistantTurn {
    let mut contract = json!({
        "goal": TASK,
        "doneCriteria": "sh test.sh exits 0",
        "askBefore": ["git push"],
        "decisionStyle": "the simplest way",
        "goalType": "ticket",
        "surfaces": [],
        "verifyCommand": "sh test.sh",
    });
    for (key, value) in judge.as_object().unwrap() {
        contract[key] = value.clone();
    }
    tool("set", contract)
}

pub(crate) fn complete() -> AssistantTurn {
    tool(
        "complete",
        json!({"evidence": "it printed: the answer is right"}),
    )
}

pub(crate) fn says(text: &str) -> AssistantTurn {
    AssistantTurn::text(text)
}

pub(crate) fn verdict(verdict: &str, reason: &str) -> Value {
    json!({ "verdict": verdict, "reason": reason, "token": "{{token}}" })
}

/// Returns what the model does at each prompt, and how a judge of another model answers.
pub(crate) fn scenario(routes: Vec<Route>, verdicts: Vec<Value>) -> ModelScenario {
    let mut scenario = ModelScenario::new(vec![says("Hello.")]);
    scenario.routes = routes;
    scenario.judges = vec![JudgeRule::new(JUDGE_MARK, verdicts)];
    scenario
}

pub(crate) fn drafting() -> Route {
    drafting_with(&json!({}))
}

pub(crate) fn drafting_with(more: &Value) -> Route {
    let mut terms = json!({"judgeModel": {"provider": "mine", "modelId": "judge"}});
    for (key, value) in more.as_object().unwrap() {
        terms[key] = value.clone();
    }
    drafting_by(&terms)
}

/// A model that drafts a contract with these terms, and names no judge but in them.
pub(crate) fn drafting_by(terms: &Value) -> Route {
    Route::new(SETUP, vec![draft(terms), says("It is drafted.")])
}

/// What the model does to reach the goal at once.
pub(crate) fn done() -> Vec<AssistantTurn> {
    vec![
        AssistantTurn::bash("echo 42 > answer.txt"),
        complete(),
        says("It is done."),
    ]
}

/// A model that drafts, works like this, and is accepted.
pub(crate) fn accepted(routes: Vec<Route>) -> GoalRig {
    let routes = [vec![drafting()], routes].concat();
    GoalRig::new(scenario(routes, vec![verdict("done", "it says 42")]))
}

pub(crate) fn working(steps: Vec<AssistantTurn>) -> Route {
    Route::new(BEGIN, steps)
}

/// Adds an argument and hands the command on.
trait ArgumentOf {
    fn arg_of(self, argument: &str) -> Self;
}

impl ArgumentOf for std::process::Command {
    fn arg_of(mut self, argument: &str) -> Self {
        self.arg(argument);
        self
    }
}

/// A machine whose Pi and whose judge ask the same server.
pub(crate) struct GoalRig {
    pub(crate) env: Environment,
    pub(crate) server: ModelServer,
    pub(crate) version: PiVersion,
}

impl GoalRig {
    pub(crate) fn new(scenario: ModelScenario) -> Self {
        let server = ModelServer::start(scenario).unwrap();
        let mut env = Environment::new();
        env.configure(&format!(
            "[judges.mine]\napi = \"openai\"\nbase_url = \"{}/v1\"\napi_key_env = \"JUDGE_KEY\"\n",
            server.base_url()
        ));
        env.set("JUDGE_KEY", "sk-judge");
        Self {
            env,
            server,
            version: PiVersion::Pinned,
        }
    }

    /// Returns the same in another Pi.
    pub(crate) fn in_pi(self, version: PiVersion) -> Self {
        Self { version, ..self }
    }

    pub(crate) fn options(&self) -> Options<'static> {
        Options {
            version: self.version,
            base_url: self.server.base_url(),
            ..Options::default()
        }
    }

    pub(crate) fn host(&self) -> Host {
        Host::start(&self.env, &self.options())
    }

    /// Returns a Pi in which a goal was set up and its contract approved.
    pub(crate) fn begun(&self) -> Host {
        let mut host = self.host();
        host.command(&format!("/until-done {TASK}"));
        let shown = host.confirm(true);
        assert_eq!(shown["title"], "Approve this contract and start?");
        let message = shown["message"].as_str().unwrap();
        assert!(message.contains("sh test.sh exits 0"), "{message}");
        host.reported("is approved.");
        host
    }

    pub(crate) fn asked(&self) -> Vec<RecordedRequest> {
        let mut asked = self.server.requests();
        asked.retain(|request| request.api.is_some());
        asked
    }

    /// Returns what the model was told of its last call of a tool that holds a text.
    pub(crate) fn told(&self, text: &str) -> bool {
        let asked = self.asked();
        asked.iter().any(|it| it.last_tool_result.contains(text))
    }

    /// Makes the gate that a model's command waits at.
    pub(crate) fn gate(&self) {
        let made = finish(self.env.command("mkfifo", self.env.root()).arg_of("gate"));
        assert_eq!(made.code, 0, "{made:?}");
    }

    /// Lets the command that waits at the gate go on.
    pub(crate) fn open_gate(&self) {
        let gate = self.env.root().join("gate");
        let mut gate = fs::OpenOptions::new().write(true).open(gate).unwrap();
        writeln!(gate, "open").unwrap();
    }

    pub(crate) fn goal(&self) -> Value {
        self.env.json(&["show", "1"])
    }

    pub(crate) fn verdicts(&self) -> Vec<String> {
        let events = self.env.events(FIRST);
        let ended = events.iter().filter(|event| event["type"] == "turn_ended");
        ended
            .map(|event| event["data"]["verdict"].as_str().unwrap().to_owned())
            .collect()
    }
}
