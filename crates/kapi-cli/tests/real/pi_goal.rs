//! A goal of a session in the real Pi: drafted in the conversation, approved in a dialog, worked on by
//! Pi's own model in the person's checkout, and proved by Kapi.

use kapi_testkit::model_server::ModelServer;
use kapi_testkit::model_server::record::RecordedRequest;
use kapi_testkit::model_server::scenario::{
    AssistantTurn, JudgeRule, ModelScenario, Route, ToolUse,
};
use serde_json::{Value, json};

use crate::environment::{Environment, FIRST, TASK};
use crate::machine::{JUDGE_MARK, JUDGE_REFUSED};
use crate::pi_host::{Host, Options};

/// Words that begin the setup, the first turn, and the account at the end.
const SETUP: &str = "Draft a contract for a goal";
const BEGIN: &str = "The contract is approved.";
const DISTILL: &str = "The goal is done: ";

fn tool(name: &str, arguments: Value) -> AssistantTurn {
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

fn complete() -> AssistantTurn {
    tool(
        "complete",
        json!({"evidence": "it printed: the answer is right"}),
    )
}

fn says(text: &str) -> AssistantTurn {
    AssistantTurn::text(text)
}

fn verdict(verdict: &str, reason: &str) -> Value {
    json!({ "verdict": verdict, "reason": reason, "token": "{{token}}" })
}

/// Returns what the model does at each prompt, and how a judge of another model answers.
fn scenario(routes: Vec<Route>, verdicts: Vec<Value>) -> ModelScenario {
    let mut scenario = ModelScenario::new(vec![says("Hello.")]);
    scenario.routes = routes;
    scenario.judges = vec![JudgeRule::new(JUDGE_MARK, verdicts)];
    scenario
}

fn drafting() -> Route {
    let judge = json!({"judgeModel": {"provider": "mine", "modelId": "judge"}});
    Route::new(SETUP, vec![draft(&judge), says("It is drafted.")])
}

fn working(steps: Vec<AssistantTurn>) -> Route {
    Route::new(BEGIN, steps)
}

/// A machine whose Pi and whose judge ask the same server.
struct GoalRig {
    env: Environment,
    server: ModelServer,
}

impl GoalRig {
    fn new(scenario: ModelScenario) -> Self {
        let server = ModelServer::start(scenario).unwrap();
        let mut env = Environment::new();
        env.configure(&format!(
            "[judges.mine]\napi = \"openai\"\nbase_url = \"{}/v1\"\napi_key_env = \"JUDGE_KEY\"\n",
            server.base_url()
        ));
        env.set("JUDGE_KEY", "sk-judge");
        Self { env, server }
    }

    fn options(&self) -> Options<'static> {
        Options {
            base_url: self.server.base_url(),
            ..Options::default()
        }
    }

    fn host(&self) -> Host {
        Host::start(&self.env, &self.options())
    }

    /// Returns a Pi in which a goal was set up and its contract approved.
    fn begun(&self) -> Host {
        let mut host = self.host();
        host.command(&format!("/until-done {TASK}"));
        let shown = host.confirm(true);
        assert_eq!(shown["title"], "Approve this contract and start?");
        let message = shown["message"].as_str().unwrap();
        assert!(message.contains("sh test.sh exits 0"), "{message}");
        host.reported("is approved.");
        host
    }

    fn asked(&self) -> Vec<RecordedRequest> {
        let mut asked = self.server.requests();
        asked.retain(|request| request.api.is_some());
        asked
    }

    fn goal(&self) -> Value {
        self.env.json(&["show", "1"])
    }

    fn verdicts(&self) -> Vec<String> {
        let events = self.env.events(FIRST);
        let ended = events.iter().filter(|event| event["type"] == "turn_ended");
        ended
            .map(|event| event["data"]["verdict"].as_str().unwrap().to_owned())
            .collect()
    }
}

#[test]
fn a_goal_is_planned_refused_by_the_judge_and_proved_in_a_second_turn() {
    let plan = json!({"tasks": [
        {"id": "T-001", "title": "See it fail", "phase": "red"},
        {"id": "T-002", "title": "Make it right", "phase": "green", "dependencies": ["T-001"]},
    ]});
    let rig = GoalRig::new(scenario(
        vec![
            drafting(),
            working(vec![
                tool("plan", plan),
                tool(
                    "task_update",
                    json!({"id": "T-001", "patch": {"status": "done"}}),
                ),
                AssistantTurn::bash("echo 42 > answer.txt"),
                complete(),
                says("It is done."),
            ]),
            Route::new(
                JUDGE_REFUSED,
                vec![
                    AssistantTurn::bash("echo why > reason.txt"),
                    complete(),
                    says("Now it is explained, too."),
                ],
            ),
            Route::new(
                DISTILL,
                vec![
                    tool(
                        "distill",
                        json!({"prdMarkdown": "# Problem\n\nIt was wrong."}),
                    ),
                    says("Distilled."),
                ],
            ),
        ],
        vec![
            verdict("continue", "the reason is not written down"),
            verdict("done", "now it is"),
        ],
    ));
    let env = &rig.env;
    // The person has work of their own here: staged, stashed, changed.
    env.write("stashed.txt", "stashed\n");
    env.git(&["add", "stashed.txt"]);
    env.git(&["stash", "--quiet"]);
    env.write("staged.txt", "staged\n");
    env.git(&["add", "staged.txt"]);
    env.write("mine.txt", "mine\n");
    let state = |env: &Environment| {
        let index = std::fs::read(env.repository().join(".git/index")).unwrap();
        let refs = ["rev-parse", "HEAD", "refs/stash"];
        (index, env.git(&refs), env.git(&["branch", "--list"]))
    };
    let before = state(env);

    let mut host = rig.begun();
    let told = host.reported("is done");
    assert!(told.contains("The proved commit is "), "{told}");
    let goal = rig.goal();
    assert_eq!(goal["status"], "done", "{goal:#}");
    assert_eq!(rig.verdicts(), ["judge_continue"]);
    let commit = goal["commit"].as_str().unwrap();
    assert!(told.contains(commit), "{told}");
    assert_eq!(env.show(commit, "reason.txt"), "why");
    assert_eq!(env.show(commit, "answer.txt"), "42");
    // What the person had changed before is where the goal began, and none of its work.
    let changed = env.git(&["diff", "--name-only", &format!("{commit}~"), commit]);
    assert_eq!(changed, "answer.txt\nreason.txt");
    assert_eq!(
        env.git(&["rev-parse", "refs/kapi/001-make-answer-right/turn-2"]),
        commit
    );
    assert_eq!(state(env), before);
    assert_eq!(env.read("mine.txt"), "mine\n");
    assert_eq!(env.read("answer.txt"), "42\n");
    let distilled = env.goal_dir(FIRST).join("distilled.md");
    let distilled = std::fs::read_to_string(distilled).unwrap();
    assert!(distilled.contains("It was wrong."), "{distilled}");

    // The block stands in the system prompt as long as the goal does.
    host.prompt("hello");
    host.end();
    let asked = rig.asked();
    let system = |request: &RecordedRequest| request.body["messages"][0]["content"].to_string();
    let first = asked
        .iter()
        .find(|it| it.last_user.contains(BEGIN))
        .unwrap();
    assert!(system(first).contains("Done when"), "{}", system(first));
    assert!(first.tools.iter().any(|tool| tool == "until_done_complete"));
    let last = asked.last().unwrap();
    assert!(!system(last).contains(FIRST), "{}", system(last));
    assert!(!last.tools.iter().any(|tool| tool.starts_with("until_done")));
    env.await_no_process();
}
