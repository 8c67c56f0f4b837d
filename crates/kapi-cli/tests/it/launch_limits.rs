//! Limits of launches that a person raises, and caps on spending that end a launch or an attempt: each
//! says what ended it.

use serde_json::Value;

use crate::environment::{Environment, await_some, write};
use crate::kernel_task::result;

const TASK: &str = "make it right";

/// Starts an agent that uses 1,000 tokens, waits, and uses as many again; returns what lets it go on.
fn waiting(
    env: &Environment,
    options: &[&str],
    work: impl FnOnce(&dyn Fn()),
) -> crate::program::Output {
    let (began, go) = (env.root().join("began"), env.root().join("go"));
    let steps = format!(
        "turns:\n  - steps:\n      - usage: {{input_tokens: 900, output_tokens: 100}}\n      \
         - bash: touch {}; while [ ! -e {} ]; do sleep 0.05; done; echo 2 > two.txt\n      \
         - usage: {{input_tokens: 900, output_tokens: 100}}\n      - say: done\n",
        began.display(),
        go.display()
    );
    let agent = env.script("waiting.yaml", &steps);
    let fixed = [
        "launch",
        "1",
        ".",
        "--task",
        TASK,
        "--agent",
        &agent,
        "--branch",
        "b",
        "--sandbox",
        "none",
        "--json",
    ];
    let running = env.start(&[&fixed[..], options].concat());
    await_some("the agent", || began.exists().then_some(()));
    work(&|| write(&go, ""));
    running.finish()
}

#[test]
fn the_limits_of_a_running_launch_are_raised() {
    let env = Environment::new();
    let output = waiting(&env, &["--tokens", "1500"], |go| {
        let raised = env.json(&["budget", "launch/1", "--tokens", "+1000"]);
        assert_eq!(raised["budget"]["tokens"], 2_500, "{raised:#}");
        go();
    });
    assert_eq!(output.code, 0, "{output:?}");
    assert_eq!(env.show("b", "two.txt"), "2");
    let logged = env.kapi(&["log", "launch/1"]).stdout;
    assert!(
        logged.contains("its limits were raised to 2500 tokens"),
        "{logged}"
    );
    let audit = env.kapi(&["audit", "launch/1"]);
    assert_eq!(audit.code, 0, "{audit:?}");
}

#[test]
fn a_raise_that_a_launch_cannot_take_changes_nothing() {
    let env = Environment::new();
    let output = waiting(&env, &["--tokens", "1500"], |go| {
        for (options, code, words) in [
            (&["--usd", "+1"][..], 3, "launch/1 has no limit on money"),
            (&["--tokens", "+500", "--usd", "+1"], 3, "no limit on money"),
            (&["--wall", "+1h"], 2, "a launch has no `--wall`"),
            (&["--turns", "+1"], 2, "only a goal has a turn limit"),
        ] {
            let refused = env.kapi(&[&["budget", "launch/1"], options].concat());
            refused.assert_error(code, &[words]);
        }
        go();
    });
    assert_eq!(output.code, 5, "{output:?}");
    // What was met can be raised, and is kept for when it is resumed.
    let raised = env.kapi(&["budget", "launch/1", "--tokens", "+1M"]);
    assert!(
        raised
            .stdout
            .contains("Resume it with `kapi resume launch/1`"),
        "{raised:?}"
    );
    let resumed = env.kapi(&["resume", "launch/1", "--json"]);
    assert_eq!(resumed.code, 0, "{resumed:?}");
    let over = env.kapi(&["budget", "launch/1", "--tokens", "+1"]);
    over.assert_error(3, &["has ended well"]);
}

fn capped() -> (Environment, String) {
    let mut env = Environment::new();
    env.at_noon();
    env.configure("[spend]\nmachine_per_day_usd = 1.0\nask_at_percent = 100\n");
    let steps = "turns:\n  - steps:\n      - bash: touch began\n      \
                 - usage: {input_tokens: 900, output_tokens: 100, usd: 0.7}\n      \
                 - usage: {input_tokens: 900, output_tokens: 100, usd: 0.7}\n      \
                 - bash: sleep 3000\n";
    let agent = env.script("dear.yaml", steps);
    (env, agent)
}

fn assert_names_the_cap(text: &Value) {
    let text = text.as_str().unwrap();
    assert!(
        text.contains("spending cap") && text.contains(" of $1.00"),
        "{text}"
    );
    assert!(!text.contains("interrupted"), "{text}");
}

#[test]
fn a_launch_that_a_cap_ended_says_so_everywhere() {
    let (env, agent) = capped();
    let output = env.kapi(&[
        "launch", "1", ".", "--task", TASK, "--agent", &agent, "--branch", "b", "--json",
    ]);
    env.await_no_process();
    assert_eq!(output.code, 5, "{output:?}");
    assert_names_the_cap(&output.document()["error"]);
    assert_eq!(env.show("b", "began"), "", "its work is kept");
    let shown = env.json(&["show", "launch/1"]);
    assert_eq!(shown["error_class"], "limit", "{shown:#}");
    assert_names_the_cap(&shown["error"]);
    let inbox = env.json(&["inbox"]);
    assert_names_the_cap(&inbox["items"][0]["what"]);
    let status = env.json(&["status"]);
    assert_eq!(status["launches"][0]["status"], "failed", "{status:#}");
    let logged = env.kapi(&["log", "launch/1"]).stdout;
    assert!(!logged.contains("interrupted"), "{logged}");
}

#[test]
fn an_attempt_that_a_cap_ended_says_so() {
    let (env, agent) = capped();
    let ended = result(&env, &agent, &[], 5);
    env.await_no_process();
    assert_eq!(ended["error_kind"], "budget_spent", "{ended:#}");
    assert_names_the_cap(&ended["error"]);
}
