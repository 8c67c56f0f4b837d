//! The model of a goal: named, approved by the contract's hash, within the person's own list, and
//! refused where nobody could pass it on.

use kapi_testkit::model_server::ModelServer;
use kapi_testkit::model_server::scenario::ModelScenario;
use serde_json::json;

use crate::environment::{Environment, TASK, usual};

fn machine() -> Environment {
    let mut env = Environment::new();
    let agent = env.root().join("bin/claude");
    crate::environment::write(&agent, "#!/bin/sh\necho '2.0.0 (Claude Code)'\n");
    env.git(&["config", "core.fileMode", "true"]);
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&agent, executable).unwrap();
    env.set("ANTHROPIC_API_KEY", "not-a-key");
    // No test asks a vendor: nobody listens there.
    env.set("https_proxy", "http://127.0.0.1:9");
    env.configure(&format!(
        "[agents.claude]\ncommand = {:?}\n",
        agent.display()
    ));
    env
}

fn new(env: &Environment, options: &[&str]) -> crate::program::Output {
    let words = [
        "goal",
        "new",
        TASK,
        "--verify",
        "sh test.sh",
        "--judge",
        "none",
    ];
    env.kapi(&[&words[..], &["--agent", "claude"], options].concat())
}

#[test]
fn a_named_model_stands_in_the_contract_and_its_hash() {
    let env = machine();
    let plain = new(&env, &[]);
    assert!(!plain.stderr.contains("models"), "{plain:?}");
    let named = new(&env, &["--model", "claude-opus-4-5"]);
    let row = "models    claude: claude-opus-4-5 (may ask claude-opus-4-5, \
               claude-opus-4-5-????????, claude-*haiku*)";
    assert!(named.stderr.contains(row), "{named:?}");
    let [first, second] = ["1", "2"].map(|goal| env.json(&["show", goal, "--all"]));
    assert_eq!(first["contract"].get("models"), None);
    assert_eq!(
        second["contract"]["models"],
        json!([{"agent": "claude", "model": "claude-opus-4-5", "may_ask":
            ["claude-opus-4-5", "claude-opus-4-5-????????", "claude-*haiku*"]}])
    );
    assert_ne!(first["contract_hash"], second["contract_hash"]);
    // What Kapi writes for people is read back as the same contract, and a flag holds over it.
    let whole = env
        .goal_dir(second["id"].as_str().unwrap())
        .join("contract.yaml");
    let text = std::fs::read_to_string(&whole).unwrap();
    let copy = env.root().join("copy.yaml");
    let branch = second["contract"]["branch"].as_str().unwrap();
    crate::environment::write(&copy, text.replace(branch, "feat/another"));
    let copy = copy.to_str().unwrap();
    env.kapi(&["goal", "new", "--contract", copy]);
    let again = env.json(&["show", "3", "--all"]);
    assert_eq!(again["contract"]["models"], second["contract"]["models"]);
    crate::environment::write(
        std::path::Path::new(copy),
        text.replace(branch, "feat/a-third"),
    );
    env.kapi(&["goal", "new", "--contract", copy, "--model", "sonnet"]);
    let other = env.json(&["show", "4", "--all"]);
    assert_eq!(
        other["contract"]["models"][0]["may_ask"],
        json!([
            "sonnet",
            "sonnet-????????",
            "claude-*sonnet*",
            "claude-*haiku*"
        ])
    );
}

#[test]
fn a_model_that_cannot_be_had_is_refused_before_anything_starts() {
    let env = machine();
    let own = env.kapi(&usual("command:true", &["--model", "m"]));
    own.assert_error_among_talk(2, &["\"m\"", "chooses its model itself"]);
    let race = [
        "run",
        TASK,
        "--race",
        "claude,codex",
        "--model",
        "opus",
        "--verify",
        "true",
    ];
    env.kapi(&race)
        .assert_error_among_talk(2, &["one model was named for a race of several agents"]);
    let table = std::fs::read_to_string(env.home().join(".config/kapi/config.toml")).unwrap();
    env.configure(&format!("{table}models = [\"claude-sonnet-*\"]\n"));
    new(&env, &["--model", "claude-opus-4-5"]).assert_error_among_talk(
        2,
        &[
            "its `models` list only claude-sonnet-*",
            "`models` under [agents.claude]",
        ],
    );
    let fits = new(&env, &["--model", "claude-sonnet-4-5"]);
    assert!(
        fits.stderr.contains("claude: claude-sonnet-4-5"),
        "{fits:?}"
    );
    assert!(!env.repository().join(".ilchul/goals/002").exists());
    // A task of the queue is held to the list, too.
    let task = env.kapi(&[
        "task",
        "run",
        "x",
        "--agent",
        "claude",
        "--model",
        "claude-opus-4-5",
    ]);
    assert_eq!(task.code, 5, "{task:?}");
    let said = format!("{}{}", task.stdout, task.stderr);
    assert!(
        said.contains("its `models` list only claude-sonnet-*"),
        "{task:?}"
    );
}

#[test]
fn a_provider_that_refuses_the_key_is_told_before_anybody_approves() {
    let env = machine();
    let silent = new(&env, &[]);
    assert!(
        silent
            .stderr
            .contains("claude's provider does not answer at the moment"),
        "{silent:?}"
    );
    let mut scenario = ModelScenario::new(Vec::new());
    scenario.require_key = Some("sk-right".to_owned());
    let server = ModelServer::start(scenario).unwrap();
    let config = env.home().join(".config/kapi/config.toml");
    let table = std::fs::read_to_string(config).unwrap();
    env.configure(&format!("{table}base_url = {:?}\n", server.base_url()));
    env.kapi(&usual("claude", &["--judge", "none"]))
        .assert_error_among_talk(4, &["claude cannot work", "401", "check the key"]);
    assert!(!env.goal_dir("002-make-answer-right").exists());
    assert_eq!(
        server.requests().len(),
        1,
        "it is not asked for anything else"
    );
}

#[test]
fn explain_names_the_model_and_where_it_was_chosen() {
    let env = machine();
    for words in [
        &[
            "run",
            "x",
            "--explain",
            "--agent",
            "claude",
            "--model",
            "opus",
        ][..],
        &[
            "launch",
            "--explain",
            "--agent",
            "claude",
            "--model",
            "opus",
        ],
    ] {
        let said = env.kapi(words);
        assert_eq!(said.code, 0, "{said:?}");
        let row = said
            .stdout
            .lines()
            .find(|line| line.trim_start().starts_with("model "));
        assert!(row.is_some_and(|row| row.contains("opus")), "{said:?}");
    }
}
