//! `kapi loop policy`, `guardrail`, `dashboard`, `health` and `[kernel]`: what holds, and where it was said.

use serde_json::{Value, json};

use crate::environment::{Environment, write};
use crate::goal_judges::with_clis;
use crate::kernel_task::{HONEST, as_agent, branches, result};

const POLICY: &str = "\
rules:
  - name: no pushes
    effect: deny
    when:
      command: git push
    reason: a person pushes
  - name: never prometheus
    effect: deny
    when:
      agent: prometheus
    reason: it only plans
";

/// A program under the name of a real one that answers as it would.
const ANSWERS: &str = r#"#!/bin/sh
[ "$1" = --version ] && echo 9.9 && exit
echo '{"type":"result","subtype":"success","is_error":false,"result":"ok","usage":{"input_tokens":9,"output_tokens":1}}'
"#;

fn policy(env: &Environment, text: &str) {
    env.write(".ilchul/policy.yaml", text);
}

#[test]
fn a_rule_keeps_a_task_out_and_says_where_it_stands() {
    let env = Environment::new();
    policy(&env, POLICY);
    let denied = env.kapi(&[
        "task",
        "run",
        "x",
        "--profile",
        "prometheus",
        "--agent",
        HONEST,
    ]);
    denied.assert_error(
        3,
        &[
            "policy denied request",
            "it only plans",
            "policy.yaml, line 7",
        ],
    );
    let denied = env.kapi(&[
        "task",
        "run",
        "x",
        "--agent",
        HONEST,
        "--verify",
        "git push origin",
    ]);
    denied.assert_error(3, &["policy denied request", "a person pushes"]);
    assert_eq!(env.json(&["task", "list", "--all"])["tasks"], json!([]));
    assert_eq!(branches(&env), Vec::<String>::new());
    // What this agent runs cannot be looked at beforehand, so it is not launched at all.
    let refused = result(&env, HONEST, &[], 3);
    assert_eq!(refused["error_kind"], "policy_denied", "{refused:#}");
    let why = refused["error"].as_str().unwrap();
    assert!(
        why.contains("a person pushes") && why.contains("line 2"),
        "{why}"
    );
    assert_eq!(branches(&env), Vec::<String>::new());

    let shown = env.json(&["loop", "policy"]);
    assert_eq!(shown["ok"], true);
    assert_eq!(shown["files"][0]["rules"][1]["rule"], "never prometheus");
    assert_eq!(shown["files"][0]["rules"][1]["line"], 7);
    let words = env.kapi(&["loop", "policy"]).stdout;
    assert!(words.contains("line 2"), "{words}");
    let tried = env.kapi(&[
        "loop",
        "policy",
        "test",
        "--profile",
        "prometheus",
        "--json",
    ]);
    assert_eq!(tried.code, 3);
    assert_eq!(
        tried.document()["violations"][0]["rule"],
        "never prometheus"
    );
    let tried = env.kapi(&["loop", "policy", "test", "--command", "git push"]);
    assert_eq!(tried.code, 3, "{tried:?}");
    assert!(tried.stdout.contains("a person pushes"), "{tried:?}");
    let tried = env.kapi(&["loop", "policy", "test"]);
    assert_eq!(tried.code, 0, "{tried:?}");
    assert!(tried.stdout.starts_with("allowed\n"), "{tried:?}");
    assert!(
        tried.stdout.contains("git push"),
        "what holds inside: {tried:?}"
    );
}

#[test]
fn a_policy_that_cannot_be_read_denies_everything_and_says_where() {
    let env = Environment::new();
    policy(&env, "rules:\n  - nonsense: 1\n");
    let denied = env.kapi(&["task", "run", "x", "--agent", HONEST]);
    denied.assert_error(
        3,
        &["policy denied request", "nonsense", "policy.yaml, line 2"],
    );
    let shown = env.kapi(&["loop", "policy"]);
    assert_eq!(shown.code, 2, "{shown:?}");
    assert!(shown.stdout.contains("denies everything"), "{shown:?}");
    let warnings = env.json(&["dashboard"])["warnings"].to_string();
    assert!(warnings.contains(".ilchul/policy.yaml:2"), "{warnings}");
}

#[test]
fn every_faulty_file_is_a_warning_of_the_dashboard_and_an_error_elsewhere() {
    let env = Environment::new();
    env.write(
        ".pi/oh-my-creampi.jsonc",
        "{\n  \"maxConcurrency\": 99,\n}\n",
    );
    env.write(
        ".pi/loops/broken.md",
        "---\nname: broken\ntrigger: {type: sometimes}\n---\nx\n",
    );
    env.write(".pi/agents/broken.md", "---\ntools: [Fly]\n---\nx\n");
    env.write(".ilchul/guardrails/any.md", "- [not an entry\n");
    let error = env.kapi(&["task", "list"]);
    error.assert_error(2, &["oh-my-creampi.jsonc:2:", "maxConcurrency", "1 to 32"]);
    let view = env.json(&["dashboard"]);
    let warnings = view["warnings"].to_string();
    for words in [
        "oh-my-creampi.jsonc:2:",
        "loops/broken.md:3",
        "agents/broken.md:2",
    ] {
        assert!(warnings.contains(words), "{words} in {warnings}");
    }
    let cases = [
        (
            "[kernel]\nmax_concurrency = 0\n",
            "config.toml:2: `kernel.max_concurrency`",
        ),
        ("[kernel]\n\nbanana = 1\n", "config.toml:3"),
        (
            "[kernel]\nguardrails_dir = \"../out\"\n",
            "inside the project",
        ),
        ("[kernel]\noverflow = \"explode\"\n", "config.toml:2"),
        (
            "[kernel.priorities]\nsisyphus = \"soon\"\n",
            "config.toml:2",
        ),
    ];
    for (text, words) in cases {
        env.configure(text);
        env.kapi(&["task", "list"]).assert_error(2, &[words]);
        let warnings = env.json(&["dashboard"])["warnings"].to_string();
        assert!(warnings.contains("config.toml:"), "{warnings}");
    }
}

fn setting(env: &Environment, key: &str) -> (String, String) {
    let view = env.json(&["dashboard"]);
    let rows = view["settings"].as_array().unwrap();
    let row = rows.iter().find(|row| row["key"] == key).unwrap();
    let text = |name: &str| row[name].as_str().unwrap().to_owned();
    (text("value"), text("source"))
}

#[test]
fn each_value_remembers_its_source_and_a_project_only_narrows() {
    let env = Environment::new();
    assert_eq!(
        setting(&env, "max_concurrency"),
        ("3".to_owned(), "default".to_owned())
    );
    // The file of oh-my-creampi chooses where the person said nothing.
    env.write(
        ".pi/oh-my-creampi.jsonc",
        "{\n  // five\n  \"maxConcurrency\": 5,\n  \"defaultTimeoutSec\": 60,\n  \"guardrailsDir\": \".creampi/guardrails\",\n  \"checkpointsDir\": \".creampi/checkpoints\"\n}\n",
    );
    let (value, source) = setting(&env, "max_concurrency");
    assert_eq!(value, "5");
    assert!(source.ends_with(".pi/oh-my-creampi.jsonc:3"), "{source}");
    assert_eq!(setting(&env, "default_timeout_sec").0, "60");
    assert!(
        setting(&env, "guardrails_dir")
            .0
            .ends_with(".creampi/guardrails")
    );
    assert!(setting(&env, "checkpoints_dir").0.contains("not used"));
    // Not beyond the person's.
    env.configure("[kernel]\nmax_concurrency = 4\ndefault_agent = \"oracle\"\nmachine_max = 2\n");
    let (value, source) = setting(&env, "max_concurrency");
    assert_eq!(value, "4");
    assert!(source.ends_with("config.toml:2"), "{source}");
    assert_eq!(setting(&env, "machine_max").0, "2");
    // The project's own file makes less of it, never more.
    env.write(
        ".ilchul/config.toml",
        "[kernel]\nmax_concurrency = 2\ntasks_max = 30000\ndefault_agent = \"sisyphus\"\n",
    );
    let (value, source) = setting(&env, "max_concurrency");
    assert_eq!(value, "2");
    assert!(source.ends_with(".ilchul/config.toml:2"), "{source}");
    assert_eq!(setting(&env, "tasks_max").0, "20000");
    assert_eq!(setting(&env, "default_agent").0, "oracle");
    for text in ["machine_max = 9", "accept_learnt_after = 1"] {
        env.write(".ilchul/config.toml", &format!("[kernel]\n{text}\n"));
        env.kapi(&["task", "list"])
            .assert_error(2, &[".ilchul/config.toml:2"]);
    }
    env.write(
        ".ilchul/config.toml",
        "[kernel]\ndefault_backend = \"command:rm\"\n",
    );
    env.kapi(&["task", "list"])
        .assert_error(2, &["must be a built-in agent"]);
    env.write(".ilchul/config.toml", "");
    env.write(
        ".pi/oh-my-creampi.jsonc",
        "{\"defaultBackend\": \"command:rm\"}\n",
    );
    env.kapi(&["task", "list"])
        .assert_error(2, &["oh-my-creampi.jsonc:1", "built-in agent"]);
}

#[test]
fn a_lesson_is_noted_proposed_accepted_rejected_and_removed() {
    const RUN: &str = "launch-1-a-1";
    let env = Environment::new();
    let add = [
        "loop",
        "guardrail",
        "add",
        "Sisyphus",
        "Run the tests first",
    ];
    let added = env.json(&[&add[..], &["--severity", "critical"]].concat());
    assert_eq!(
        (&added["new"], &added["entry"]["state"]),
        (&json!(true), &json!("accepted"))
    );
    assert_eq!(added["entry"]["domain"], "sisyphus");
    let again = env.json(&[
        "loop",
        "guardrail",
        "add",
        "sisyphus",
        "run the tests first",
    ]);
    assert_eq!(
        (&again["new"], &again["entry"]["id"]),
        (&json!(false), &added["entry"]["id"])
    );
    // A task of that domain is told it.
    let reported = "command:grep -q 'Run the tests first' \"$KAPI_PROMPT_FILE\" && echo told";
    assert_eq!(result(&env, reported, &[], 0)["output"], "told");

    let add = [
        "loop",
        "guardrail",
        "add",
        "sisyphus",
        "Never touch main",
        "--json",
    ];
    let proposed = as_agent(&env, RUN, &add).document();
    assert_eq!(proposed["entry"]["state"], "proposed");
    let id = proposed["entry"]["id"].as_str().unwrap();
    for verb in ["accept", "reject", "remove"] {
        as_agent(&env, RUN, &["loop", "guardrail", verb, id])
            .assert_error(3, &["only the user may"]);
    }
    as_agent(&env, RUN, &["loop", "guardrail", "edit", "sisyphus"])
        .assert_error(3, &["only the user may"]);
    let untold = "command:grep -q 'Never touch main' \"$KAPI_PROMPT_FILE\" || echo untold";
    assert_eq!(result(&env, untold, &[], 0)["output"], "untold");
    let listed = env.json(&["loop", "guardrail", "list", "--state", "proposed"]);
    assert_eq!(listed["entries"][0]["id"], id);
    let settled = |verb, id| env.json(&["loop", "guardrail", verb, id]);
    assert_eq!(settled("accept", id)["entry"]["state"], "accepted");
    assert_eq!(settled("reject", &id[..4])["entry"]["state"], "rejected");
    assert_eq!(settled("remove", id)["removed"], true);
    env.kapi(&["loop", "guardrail", "accept", id])
        .assert_error(6, &["find guardrail"]);
    let path = env.kapi(&["loop", "guardrail", "edit", "sisyphus"]).stdout;
    assert!(
        path.trim_end().ends_with(".ilchul/guardrails/sisyphus.md"),
        "{path}"
    );
    env.kapi(&["loop", "guardrail", "edit", "nothing"])
        .assert_error(6, &["no lessons about nothing"]);
    env.kapi(&["loop", "guardrail", "add", "x", "   "])
        .assert_error(2, &["lesson"]);
    let counts = env.json(&["dashboard"])["guardrails"].clone();
    let expected = json!([
        {"domain": "sisyphus", "accepted": 1, "proposed": 0, "rejected": 0, "expired": 0},
    ]);
    assert_eq!(counts, expected);
}

#[test]
fn the_dashboard_has_tasks_with_reasons_and_loops_and_needs_nothing_to_be_there() {
    let env = Environment::new();
    let empty = env.json(&["dashboard"]);
    assert_eq!(empty["type"], "dashboard");
    assert_eq!(
        (&empty["queue"]["queued"], &empty["loops"]),
        (&json!(0), &json!([]))
    );
    assert_eq!(empty["warnings"], json!([]), "{empty:#}");
    assert!(
        !env.repository().join(".ilchul").exists(),
        "looking writes nothing"
    );
    env.write(
        ".ilchul/loops/nightly.md",
        "---\nname: nightly\ntrigger:\n  type: cron\n  schedule: \"0 3 * * *\"\n---\nlook\n",
    );
    env.kapi(&["task", "run", "x", "--detach", "--agent", HONEST]);
    let view = env.json(&["dashboard"]);
    assert_eq!(view["queue"]["queued"], 1);
    assert_eq!(view["queue"]["tasks"][0]["waits"], "waiting for a worker");
    assert_eq!(view["loops"][0]["name"], "nightly");
    assert_eq!(view["loops"][0]["status"], "idle");
    assert!(view["loops"][0]["next_at_ms"].as_i64().unwrap() > 0);
    let words = env.kapi(&["dashboard"]).stdout;
    assert!(words.contains("0 running of 3, 1 queued"), "{words}");
    assert!(words.contains("inbox      nothing is waiting"), "{words}");
    assert!(words.contains("next: kapi up"), "{words}");
}

#[test]
fn the_dashboard_as_data_has_what_is_alive_what_waits_what_was_spent_and_the_sandboxes() {
    let mut env = Environment::new();
    env.at_noon();
    let agent = env.script("agent.yaml", "turns:\n  - steps:\n      - bash: 'true'\n");
    env.run(&agent, &["--turns", "1"])
        .assert_status("paused", 5);
    let repository = env.repository().display().to_string();
    let launch = ["launch", "2", &repository, "--agent", HONEST, "--task", "x"];
    env.kapi(&launch);
    let view = env.json(&["dashboard"]);
    let alive = &view["alive"][0];
    assert_eq!(
        (&alive["kind"], &alive["reference"], &alive["status"]),
        (&json!("goal"), &json!("001"), &json!("paused")),
        "{view:#}"
    );
    assert_eq!(
        (&alive["turn"], &alive["turns_max"]),
        (&json!(1), &json!(1))
    );
    assert_eq!(view["inbox"], env.json(&["inbox"])["items"]);
    assert_eq!(view["inbox"][0]["kind"], "budget");
    assert_eq!(view["sandboxes"], env.json(&["sandbox", "list"]));
    assert_eq!(view["sandboxes"][0]["id"], "2");
    let spent = env.json(&["spend"]);
    assert_eq!(view["spend"]["total"], spent["total"]);
    assert_eq!(view["spend"]["today"], spent["today"]);
    let words = env.kapi(&["dashboard"]).stdout;
    for part in [
        "goal       001-make-answer-right  paused",
        "inbox      2 waiting for you; next: kapi inbox",
        "sandboxes  1; next: kapi sandbox list",
        "spent      ",
    ] {
        assert!(words.contains(part), "{part:?} in {words}");
    }
}

#[test]
fn health_tells_what_is_there_without_asking_anybody_and_what_answers_when_asked() {
    let mut env = with_clis(&["claude"]);
    let nothing = env.kapi(&["doctor", "--agents", "--json"]);
    assert_eq!(nothing.code, 4, "{nothing:?}");
    let of = |view: &Value, name: &str| {
        let all = view["backends"].as_array().unwrap().clone();
        all.into_iter()
            .find(|backend| backend["name"] == name)
            .unwrap()
    };
    let claude = of(&nothing.document(), "claude");
    assert_eq!(
        (&claude["found"], &claude["logged_in"]),
        (&json!(true), &json!(false))
    );
    assert_eq!(of(&nothing.document(), "codex")["found"], false);
    assert_eq!(of(&nothing.document(), "claude")["profiles"], json!([]));
    env.set("ANTHROPIC_API_KEY", "not-a-key");
    let found = env.kapi(&["doctor", "--agents", "--json"]);
    assert_eq!(found.code, 0, "{found:?}");
    assert_eq!(of(&found.document(), "claude")["probe"], Value::Null);
    // The shipped profiles work with the agent that is there.
    assert_eq!(
        of(&found.document(), "claude")["profiles"],
        json!(["oracle", "prometheus", "sisyphus"])
    );
    assert_eq!(
        env.kapi(&["doctor", "--agents", "--agent", "codex"]).code,
        4
    );
    // It is there and has a key, and does not answer: this program ends with 7.
    let probed = env.kapi(&[
        "doctor", "--agents", "--probe", "--agent", "claude", "--json",
    ]);
    assert_eq!(probed.code, 4, "{probed:?}");
    let claude = of(&probed.document(), "claude");
    assert_eq!(claude["probe"]["ok"], false, "{claude:#}");
    let detail = claude["probe"]["detail"].as_str().unwrap();
    assert!(
        detail.starts_with("exit 107: the agent exited with code 7"),
        "{claude:#}"
    );
    write(&env.root().join("bin/claude"), ANSWERS);
    let probed = env.kapi(&[
        "doctor", "--agents", "--probe", "--agent", "claude", "--json",
    ]);
    assert_eq!(probed.code, 0, "{probed:?}");
    let claude = of(&probed.document(), "claude");
    let detail = claude["probe"]["detail"].as_str().unwrap();
    assert!(detail.starts_with("\"ok\" in "), "{claude:#}");
    let words = env.kapi(&["doctor", "--agents", "--probe", "--agent", "claude"]);
    assert!(words.stdout.contains("answer   \"ok\""), "{words:?}");
    let left = env.json(&["sandbox", "list"]);
    assert_eq!(left, json!([]), "the probe's sandbox is gone");
    as_agent(&env, "launch-1-a-1", &["doctor", "--agents", "--probe"])
        .assert_error(3, &["only the user may"]);
}
