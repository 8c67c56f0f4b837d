//! Limits end a run, survive a restart, and only a person raises them.

use serde_json::{Value, json};

use crate::dialogs::at_terminal;
use crate::environment::{BRANCH, Environment, FIRST, write};
use crate::program::Run;

/// A script that uses money and tokens each turn and is right in the third.
const SPENDER: &str = "\
turns:
  - steps: [{usage: {input_tokens: 900, output_tokens: 100, usd: 0.5}}, {say: one}]
  - steps: [{usage: {input_tokens: 900, output_tokens: 100, usd: 0.5}}, {say: two}]
  - steps: [{usage: {input_tokens: 900, output_tokens: 100, usd: 0.5}}, {bash: echo 42 > answer.txt}]
";

#[test]
fn turns_that_the_agents_program_broke_off_are_told_with_its_last_words() {
    let env = Environment::new();
    let agent = "command:echo $KAPI_TURN >> log.txt; echo no key found >&2; exit 3";
    let run = env.run(agent, &["--turns", "3"]);
    run.assert_status("paused", 5);
    let why = "the agent exited with 3 before ending its turn; its last words: no key found";
    let reason = format!("the turn budget is used up: in each of the 3 turns, {why}");
    assert_eq!(run.reason(), reason);
    let hint = run.result["hint"].as_str().unwrap();
    assert!(hint.contains("`kapi log 001`"), "{hint}");
    for command in ["status", "show"] {
        let shown = env.kapi(&[command, "1"]);
        assert!(shown.stdout.contains(&reason), "{shown:?}");
    }
    // An agent that changes nothing is stopped before.
    let run = env.run("command:nosuchagent", &[]);
    run.assert_status("stalled", 5);
    let why = "the agent exited with 127 before ending its turn; its last words: ";
    assert!(run.reason().contains(why), "{}", run.reason());
    assert!(
        run.reason().contains("nosuchagent: not found"),
        "{}",
        run.reason()
    );
}

#[test]
fn turns_end_a_run_until_a_person_raises_them() {
    let env = Environment::new();
    let agent = "command:echo $KAPI_TURN >> log.txt; [ $KAPI_TURN -lt 3 ] || echo 42 > answer.txt";
    let run = env.run(agent, &["--turns", "2"]);
    run.assert_status("paused", 5);
    assert_eq!(run.reason(), "the turn budget is used up");
    assert_eq!(run.result["turns"], 2);
    let next = run.result["next"][0].as_str().unwrap();
    assert_eq!(next, "kapi resume 001 --turns +10");
    let log = env.events(FIRST);
    let refused = env.kapi(&["resume", "1"]);
    let one_command = "raise it and continue with `kapi resume 001 --turns +10`";
    refused.assert_error(3, &["the turn budget is used up", one_command]);
    assert_eq!(env.events(FIRST), log, "a denial changes nothing");
    let raised = env.json(&["budget", "1", "--turns", "+1"]);
    assert_eq!(raised["budget"]["turns"], 3);
    assert_eq!(raised["spent"]["turns"], 2);
    let run = env.resume("1");
    run.assert_status("done", 0);
    assert_eq!(run.result["turns"], 3);
    assert_eq!(env.show(BRANCH, "log.txt"), "1\n2\n3");
}

#[test]
fn one_command_raises_a_limit_and_goes_on_and_at_a_terminal_consent_does() {
    let agent = "command:[ $KAPI_TURN -lt 2 ] || echo 42 > answer.txt";
    let env = Environment::new();
    env.run(agent, &["--turns", "1"]).assert_status("paused", 5);
    let run = Run::from(env.kapi(&["resume", "1", "--turns", "+1", "--json"]));
    run.assert_status("done", 0);
    assert_eq!(run.result["turns"], 2);
    let env = Environment::new();
    env.run(agent, &["--turns", "1"]).assert_status("paused", 5);
    let asked = "Add 10 turns and continue?";
    let no = at_terminal(&env, &["resume", "1"], &[(asked, "n\n")]);
    assert_eq!(no.code, 3, "{no:?}");
    let yes = at_terminal(&env, &["resume", "1"], &[(asked, "y\n")]);
    assert_eq!(yes.code, 0, "{yes:?}");
    assert_eq!(env.json(&["budget", "1"])["budget"]["turns"], 11);
}

#[test]
fn tokens_and_money_are_counted_exactly_and_end_a_run() {
    for (option, limit, raise) in [("--tokens", "1500", "+1M"), ("--usd", "0.75", "+100")] {
        let env = Environment::new();
        let agent = env.script("agent.yaml", SPENDER);
        let run = env.run(&agent, &[option, limit]);
        run.assert_status("paused", 5);
        // The turn that goes over the limit may be cut off before it ends, and is then done again.
        assert_eq!(run.result["usage"], used(2), "{option}");
        env.kapi(&["resume", "1"])
            .assert_error(3, &["budget is used up", option]);
        let raised = env.json(&["budget", "1", option, raise]);
        assert_eq!(raised["spent"]["tokens"], 2000);
        assert_eq!(raised["spent"]["usd_micros"], 1_000_000);
        let run = env.resume("1");
        run.assert_status("done", 0);
        let times = run
            .lines
            .iter()
            .filter(|line| line["kind"] == "used")
            .count();
        assert!((1..=2).contains(&times), "{times}");
        assert_eq!(run.result["usage"], used(2 + times), "{option}");
    }
}

/// Returns the use of so many turns of the spender.
fn used(turns: usize) -> Value {
    json!({"input_tokens": 900 * turns, "output_tokens": 100 * turns, "usd": turns as f64 / 2.0})
}

#[test]
fn a_limit_kills_in_the_middle_of_a_turn() {
    let env = Environment::new();
    let agent = env.script(
        "agent.yaml",
        "turns:\n  - steps:\n      - usage: {input_tokens: 5000}\n      - bash: sleep 3000\n",
    );
    let run = env.run(&agent, &["--tokens", "4k"]);
    run.assert_status("paused", 5);
    assert_eq!(run.result["usage"]["input_tokens"], 5000);
    assert_eq!(run.reason(), "the token budget is used up");
    env.await_no_process();
}

#[test]
fn time_ends_a_run_and_more_time_lets_it_go_on() {
    let env = Environment::new();
    // However little of its work fits in on a busy machine, it does not end before it is let.
    let gate = env.root().join("gate");
    write(&gate.join("shut"), "");
    env.configure(&format!("[sandbox]\nread_only = [{gate:?}]\n"));
    let open = gate.join("open");
    let agent = format!(
        "command:until [ -e {} ]; do sleep 0.05; done; echo 42 > answer.txt",
        open.display()
    );
    let run = env.run(&agent, &["--wall", "6s"]);
    run.assert_status("paused", 5);
    assert_eq!(run.reason(), "the time budget is used up");
    assert!(run.result["wall_ms"].as_u64().unwrap() >= 6000);
    env.await_no_process();
    env.kapi(&["resume", "1"]).assert_error(3, &["time budget"]);
    assert_eq!(env.kapi(&["budget", "1", "--wall", "+10m"]).code, 0);
    write(&open, "");
    env.resume("1").assert_status("done", 0);
}

#[test]
fn a_judge_s_use_counts_too() {
    let env = Environment::new();
    let judge = env.script(
        "judge.yaml",
        "turns:\n  - steps:\n      - usage: {input_tokens: 70, output_tokens: 7, usd: 0.01}\n      \
         - say: '{\"verdict\": \"done\", \"reason\": \"fine\"}'\n",
    );
    let agent = env.script(
        "agent.yaml",
        "turns:\n  - steps:\n      - usage: {input_tokens: 10, output_tokens: 1, usd: 0.02}\n      \
         - bash: echo 42 > answer.txt\n",
    );
    let run = env.run(&agent, &["--judge", &judge]);
    run.assert_status("done", 0);
    let usage = json!({"input_tokens": 80, "output_tokens": 8, "usd": 0.03});
    assert_eq!(run.result["usage"], usage);
}

#[test]
fn limits_nobody_could_measure_are_refused_at_the_start() {
    let env = Environment::new();
    for option in [["--usd", "1"], ["--tokens", "1k"]] {
        let args = crate::environment::usual("command:true", &option);
        env.kapi(&args).assert_error(2, &["does not report"]);
    }
    assert!(!env.repository().join(".ilchul").exists());
}

#[test]
fn a_raise_must_raise_something_and_a_look_changes_nothing() {
    let env = Environment::new();
    env.run("command:true", &["--turns", "1"]);
    let before = env.events(FIRST);
    let shown = env.json(&["budget", "1"]);
    assert_eq!(
        shown["budget"],
        json!({"turns": 1, "tokens": null, "usd_micros": null, "wall_ms": null})
    );
    for raise in [["--turns", "+0"], ["--turns", "+20000"], ["--turns", "-1"]] {
        assert_eq!(
            env.kapi(&["budget", "1", raise[0], raise[1]]).code,
            2,
            "{raise:?}"
        );
    }
    assert_eq!(env.events(FIRST), before);
}
