//! What runs cost is booked, and caps stop them: in the middle of a turn, before one, and together.

use rustix::process::Signal;
use serde_json::json;

use crate::environment::{Environment, await_some};
use crate::program::Run;

/// Turns of a scripted agent that uses so much in each step before it does the rest.
fn spender(dollars: &[&str], rest: &str) -> String {
    let steps: String = dollars
        .iter()
        .map(|usd| {
            format!("      - usage: {{input_tokens: 900, output_tokens: 100, usd: {usd}}}\n")
        })
        .collect();
    format!("turns:\n  - steps:\n{steps}      - bash: {rest}\n")
}

fn capped(machine_per_day_usd: &str) -> Environment {
    let mut env = Environment::new();
    env.at_noon();
    env.configure(&format!(
        "[spend]\nmachine_per_day_usd = {machine_per_day_usd}\nask_at_percent = 100\n"
    ));
    env
}

/// Returns key, turns and cost of each row.
fn rows(env: &Environment, by: &str) -> Vec<(String, u64, u64)> {
    let view = env.json(&["spend", "--by", by]);
    let rows = view["rows"].as_array().unwrap().iter();
    rows.map(|row| {
        let key = row["key"].as_str().unwrap();
        let key = key.rsplit('/').next().unwrap().to_owned();
        let number = |name: &str| row["sum"][name].as_u64().unwrap();
        (key, number("turns"), number("usd_micros"))
    })
    .collect()
}

fn row(key: &str, turns: u64, usd_micros: u64) -> (String, u64, u64) {
    (key.to_owned(), turns, usd_micros)
}

#[test]
fn a_cap_stops_a_run_in_the_middle_of_a_turn_and_the_next_goal_before_it_begins() {
    let env = capped("1.0");
    let honest = env.script("honest.yaml", &spender(&["0.2"], "echo 42 > answer.txt"));
    env.run(&honest, &[]).assert_status("done", 0);
    let dear = env.script("dear.yaml", &spender(&["0.5", "0.4", "0.1"], "sleep 3000"));
    let run = env.run(&dear, &[]);
    run.assert_status("paused", 5);
    env.await_no_process();
    let said = run.reason();
    assert!(
        said.starts_with("the spending cap is reached: this machine today"),
        "{said}"
    );
    assert!(said.contains(" of $1.00"), "{said}");
    assert_eq!(run.result["turns"], 0, "the turn came to no verdict");
    let cost = run.result["usage"]["usd"].as_f64().unwrap();
    assert!(cost > 0.8, "what was used counts: {cost}");
    run.assert_nothing_published(&env);
    // Two goals and one cap are in the same books.
    let spent = rows(&env, "goal");
    assert_eq!(spent.len(), 2, "{spent:?}");
    let total: u64 = spent.iter().map(|(_, _, micros)| micros).sum();
    assert!((1_000_001..=1_200_000).contains(&total), "{spent:?}");

    let run = env.run(&honest, &[]);
    run.assert_status("paused", 5);
    assert!(
        run.reason().contains("this machine today has spent"),
        "{}",
        run.reason()
    );
    assert_eq!(run.result["usage"]["input_tokens"], 0, "nothing was begun");
    assert_eq!(rows(&env, "goal").len(), 2, "and nothing is booked");
    let human = env.kapi(&["spend"]).stdout;
    assert!(human.contains("This machine today: $"), "{human}");
    // More room is given by a person alone, and then the goal goes on where it stands.
    env.configure("[spend]\nmachine_per_day_usd = 5.0\n");
    env.resume("3").assert_status("done", 0);
    assert_eq!(rows(&env, "goal").len(), 3);
}

#[test]
fn a_project_can_only_lower_the_cap() {
    let env = capped("0.5");
    let agent = env.script("agent.yaml", &spender(&["0.4", "0.2"], "sleep 3000"));
    env.write(
        ".ilchul/config.toml",
        "[spend]\nmachine_per_day_usd = 9.0\n",
    );
    env.run(&agent, &[]).assert_status("paused", 5);
    let lower = capped("9.0");
    let agent = lower.script("agent.yaml", &spender(&["0.4", "0.2"], "sleep 3000"));
    lower.write(
        ".ilchul/config.toml",
        "[spend]\nproject_per_day_usd = 0.5\n",
    );
    let run = lower.run(&agent, &[]);
    run.assert_status("paused", 5);
    assert!(
        run.reason().contains("this project today"),
        "{}",
        run.reason()
    );
}

#[test]
fn two_runs_at_once_share_a_cap() {
    let env = capped("0.6");
    let slow = env.script("slow.yaml", &spender(&["0.1"], "sleep 3000"));
    let slow = env.start_run(&slow, &[]);
    await_some("a turn under way", || {
        let open = env.json(&["spend"])["open"].clone();
        (open[0]["usd_micros"] == json!(500_000)).then_some(())
    });
    // What the first may still use is not the second's: 0.5 of 0.6 are reserved.
    let other = env.script("other.yaml", &spender(&["0.09", "0.09"], "sleep 3000"));
    let other = env.run(&other, &[]);
    other.assert_status("paused", 5);
    assert!(
        other.reason().contains("running turns reserve"),
        "{}",
        other.reason()
    );
    slow.signal(Signal::INT);
    Run::from(slow.finish()).assert_status("paused", 130);
    env.await_no_process();
    assert_eq!(env.json(&["spend"])["open"], json!([]));
    let total = &env.json(&["spend"])["total"];
    assert_eq!(
        (&total["turns"], &total["usd_micros"]),
        (&json!(2), &json!(280_000))
    );
}

#[test]
fn without_caps_the_books_are_kept_judges_apart() {
    let env = Environment::new();
    let agent = env.script("agent.yaml", &spender(&["0.02"], "echo 42 > answer.txt"));
    let judge = env.script(
        "judge.yaml",
        "turns:\n  - steps:\n      - usage: {input_tokens: 70, output_tokens: 7, usd: 0.01}\n      \
         - say: '{\"verdict\": \"done\", \"reason\": \"fine\"}'\n",
    );
    let run = env.run(&agent, &["--judge", &judge]);
    run.assert_status("done", 0);
    assert_eq!(
        rows(&env, "agent"),
        [
            row("script:agent.yaml", 1, 20_000),
            row("script:judge.yaml (judge)", 1, 10_000)
        ]
    );
    assert_eq!(env.json(&["spend"])["caps"], json!([]));
    // What a command asks of a model nobody sees, and that is what the books say.
    env.run("command:echo 42 > answer.txt", &[])
        .assert_status("done", 0);
    let total = env.json(&["spend"])["total"].clone();
    assert_eq!(
        (&total["turns"], &total["unknown_turns"]),
        (&json!(3), &json!(1))
    );
}

#[test]
fn with_a_cap_a_person_is_asked_about_an_unknown_price_and_answers_for_a_day() {
    let env = capped("5.0");
    let run = env.run("command:echo 42 > answer.txt", &[]);
    run.assert_status("paused", 5);
    assert!(
        run.reason().contains("`kapi spend --go-on unknown-price`"),
        "{}",
        run.reason()
    );
    assert_eq!(env.kapi(&["spend", "--go-on", "unknown-price"]).code, 0);
    env.resume("1").assert_status("done", 0);
}

#[test]
fn books_that_cannot_be_kept_stop_runs_only_where_there_are_caps() {
    let agent = "command:echo 42 > answer.txt";
    let env = capped("5.0");
    // A file where the ledger's directory would be.
    crate::environment::write(&env.home().join(".ilchul/spend"), "");
    let refused = env.kapi(&crate::environment::usual(agent, &[]));
    refused.assert_error_among_talk(4, &["failed to enforce the spending caps"]);
    env.configure("");
    let run = env.run(agent, &[]);
    run.assert_status("done", 0);
    assert!(
        run.stderr.contains("the cost of turns is not recorded"),
        "{}",
        run.stderr
    );
    // What was refused waits where it was.
    env.resume("1").assert_status("done", 0);
}
