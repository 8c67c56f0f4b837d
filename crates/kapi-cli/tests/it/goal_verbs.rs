//! Every verb of `kapi goal` on a goal that was approved.

use serde_json::{Value, json};

use crate::environment::{Environment, FIRST, await_some};
use crate::goal_judges::with_clis;
use crate::program::Run;

/// Right in its third turn.
const SLOW: &str =
    "command:echo $KAPI_TURN >> log.txt; [ $KAPI_TURN -lt 3 ] || echo 42 > answer.txt";
const HONEST: &str = "command:echo 42 > answer.txt";

/// Makes a goal that rests after its first turn.
fn paused(env: &Environment) {
    env.run(SLOW, &["--turns", "1"]).assert_status("paused", 5);
}

#[test]
fn status_is_one_line_and_one_document() {
    let env = Environment::new();
    assert_eq!(
        env.json(&["goal", "slash", "status"]),
        json!({"goals": [], "ended": []})
    );
    let nothing = env.kapi(&["goal", "slash", "status"]);
    assert!(nothing.stdout.starts_with("No active goal."), "{nothing:?}");
    paused(&env);
    let shown = env.kapi(&["goal", "slash", "status"]).stdout;
    assert_eq!(
        shown,
        "Ⅱ 001-make-answer-right paused 1/1: make the answer right (the turn budget is used up)\n"
    );
    let shown = env.json(&["show", "1"]);
    assert_eq!(shown["type"], "goal");
    let view = &shown["standing"];
    assert_eq!(view["type"], "goal_status");
    assert_eq!(view["turns"], json!({"used": 1, "max": 1}));
    assert_eq!(env.json(&["goal", "slash", "status"])["goals"][0], *view);
    env.kapi(&["cancel", "--yes"]);
    let nothing = env.kapi(&["goal", "slash", "status"]);
    assert!(nothing.stdout.starts_with("No active goal."), "{nothing:?}");
    assert!(nothing.stdout.contains("\n× 001-"), "{nothing:?}");
}

#[test]
fn looking_verbs_say_what_there_is_not() {
    let env = Environment::new();
    paused(&env);
    for (verb, word) in [
        ("tasks", "has no tasks yet"),
        ("plan", "has no plan yet"),
        ("replan-log", "has not changed"),
    ] {
        let output = env.kapi(&["goal", verb]);
        assert_eq!((output.code, output.stdout.as_str()), (0, ""), "{output:?}");
        assert!(output.stderr.contains(word), "{output:?}");
    }
    assert_eq!(env.json(&["goal", "tasks"])["tasks"], json!([]));
    assert_eq!(env.json(&["goal", "plan"])["path"], Value::Null);
    assert_eq!(env.json(&["goal", "replan-log"])["replans"], json!([]));
    let star = env.kapi(&["goal", "northstar"]).stdout;
    assert_eq!(
        star,
        "northStar:\n  goal: \"make the answer right\"\n  doneCriteria: \"The task above is done in \
         full, and every verify command exits 0.\"\n  verifyCommand: \"sh test.sh\"\n  askBefore: \
         []\n  decisionStyle: null\n  goalType: \"ticket\"\n  surfaces: []\n"
    );
    let detail = env.kapi(&["show", "--all"]).stdout;
    for word in [
        "  ask first –\n",
        "  approved  with --yes\n",
        "  judge     none\n",
    ] {
        assert!(detail.contains(word), "{word}: {detail}");
    }
    let help = env.kapi(&["goal", "help"]).stdout;
    assert!(help.contains("/until-done budget <n>"), "{help}");
    let rows = env.json(&["goal", "help"])["subcommands"].clone();
    assert_eq!(rows.as_array().unwrap().len(), 19);
}

#[test]
fn a_goal_is_named_unless_only_one_can_be_meant() {
    let env = Environment::new();
    env.kapi(&["pause"])
        .assert_error(6, &["nothing here is unfinished"]);
    paused(&env);
    paused(&env);
    env.kapi(&["pause"])
        .assert_error(2, &["2 things are unfinished here", "001-", "002-"]);
    env.kapi(&["budget", "--set-turns", "30"])
        .assert_error(2, &["2 things are unfinished here", "001-", "002-"]);
    assert_eq!(
        env.json(&["budget", "2", "--set-turns", "30"])["budget"]["turns"],
        30
    );
    env.kapi(&["cancel", "2", "--yes"]);
    assert_eq!(env.json(&["budget", "--set-turns", "40"])["id"], FIRST);
    env.kapi(&["cancel", "--yes"]);
    env.kapi(&["cancel", "--yes"])
        .assert_error(6, &["nothing here is unfinished"]);
    // Looking takes the last one then.
    assert_eq!(
        env.json(&["show", "--all"])["id"],
        "002-make-answer-right-2"
    );
}

#[test]
fn resume_adds_the_first_number_of_turns_and_says_so() {
    let env = Environment::new();
    paused(&env);
    // The strict command stays strict.
    assert_eq!(env.kapi(&["resume", "1"]).code, 3);
    let slash = ["goal", "slash", "resume", "--json"];
    let run = Run::from(env.kapi(&slash));
    run.assert_status("paused", 5);
    assert!(run.stderr.contains("adding 1 more"), "{}", run.stderr);
    assert_eq!(
        env.json(&["show", "1"])["standing"]["turns"],
        json!({"used": 2, "max": 2})
    );
    Run::from(env.kapi(&slash)).assert_status("done", 0);
    let sets = env.events(FIRST);
    let sets: Vec<&Value> = sets
        .iter()
        .filter(|event| event["type"] == "turns_set")
        .collect();
    assert_eq!(sets.len(), 2, "{sets:?}");
    assert_eq!(sets[0]["actor"]["kind"], "human");
}

/// Specification, edge case 19.
#[test]
fn budget_is_1_to_20000_and_asks_above_500() {
    let env = Environment::new();
    paused(&env);
    let log = env.events(FIRST);
    for bad in ["0", "20001", "99999999999999999999", "5.5", "many"] {
        env.kapi(&["budget", "--set-turns", bad])
            .assert_error(2, &["turn"]);
    }
    env.kapi(&["budget", "--set-turns", "501"])
        .assert_error(3, &["more than 500 turns", "--yes"]);
    env.kapi(&["goal", "slash", "/until-done budget 20000"])
        .assert_error(3, &["more than 500 turns"]);
    assert_eq!(env.events(FIRST), log);
    assert_eq!(
        env.json(&["budget", "--set-turns", "500"])["budget"]["turns"],
        500
    );
    assert_eq!(
        env.json(&["budget", "--set-turns", "20000", "--yes"])["budget"]["turns"],
        20000
    );
    assert_eq!(
        env.json(&["budget", "--set-turns", "2"])["budget"]["turns"],
        2
    );
}

#[test]
fn pause_stops_a_running_loop_and_keeps_the_goal() {
    let env = Environment::new();
    let agent = "command:case $KAPI_RUN_ID in *-a1) sleep 3000;; esac; echo 42 > answer.txt";
    let running = env.start_run(agent, &[]);
    env.await_event(FIRST, &|event| event["data"]["effect"] == "t001-agent-a1");
    env.kapi(&["resume"])
        .assert_error(7, &["being driven", "kapi log 001 -f"]);
    assert_eq!(env.json(&["pause"])["status"], "paused");
    Run::from(running.finish()).assert_status("paused", 130);
    assert_eq!(env.json(&["pause"])["status"], "paused", "once is enough");
    env.await_no_process();
    Run::from(env.kapi(&["resume", "--json"])).assert_status("done", 0);
    env.kapi(&["pause", "1"])
        .assert_error(3, &["the goal is done"]);
}

/// Specification, edge case 20: what was cancelled while it streamed stays cancelled.
#[test]
fn cancel_ends_a_running_loop_for_good() {
    let env = Environment::new();
    let running = env.start_run("command:sleep 3000", &[]);
    env.await_event(FIRST, &|event| event["data"]["effect"] == "t001-agent-a1");
    let cancelled = env.json(&["cancel", "--reason", "changed my mind"]);
    assert_eq!(cancelled["status"], "cancelled");
    Run::from(running.finish()).assert_status("cancelled", 5);
    env.kapi(&["resume", "1"])
        .assert_error(3, &["the goal is cancelled"]);
}

/// Specification, edge case 6: the person's words suspend the turn, and the loop goes on with them.
#[test]
fn say_cuts_into_the_turn_and_re_arms_the_loop() {
    let env = Environment::new();
    let agent = "command:if grep -q 'use forty-two' \"$KAPI_PROMPT_FILE\"; \
                 then echo 42 > answer.txt; else sleep 3000; fi";
    let running = env.start_run(agent, &[]);
    env.await_event(FIRST, &|event| event["data"]["effect"] == "t001-agent-a1");
    let said = env.kapi(&["say", "use forty-two"]);
    assert!(said.stdout.contains("gets the message"), "{said:?}");
    Run::from(running.finish()).assert_status("done", 0);
    env.kapi(&["say", "1", "more"])
        .assert_error(3, &["the goal is done"]);
}

#[test]
fn say_waits_for_a_goal_that_rests() {
    let env = Environment::new();
    paused(&env);
    let said = env.kapi(&["say", "1", "hurry"]);
    assert!(said.stdout.contains("kapi resume 001"), "{said:?}");
    assert_eq!(env.json(&["show", "--all"])["said"], "hurry");
    env.kapi(&["say", "1", "  "])
        .assert_error(2, &["the message is empty"]);
}

/// Specification, edge case 9: a result is challenged, and new evidence is needed.
#[test]
fn a_done_result_is_reopened_with_a_reason() {
    let env = Environment::new();
    let agent = "command:echo 42 > answer.txt; cat \"$KAPI_PROMPT_FILE\" > prompt-$KAPI_TURN.txt";
    env.run(agent, &[]).assert_status("done", 0);
    env.kapi(&["resume", "1"]).assert_error(
        3,
        &["is done and cannot be resumed", "kapi goal reopen 001"],
    );
    env.kapi(&["resume"])
        .assert_error(6, &["nothing here is unfinished"]);
    let reopened = env.json(&["goal", "reopen", "explain it", "--no-run"]);
    assert_eq!(reopened["status"], "active");
    let run = Run::from(env.kapi(&["resume", "--json"]));
    run.assert_status("done", 0);
    let prompt = env.show(crate::environment::BRANCH, "prompt-2.txt");
    assert!(prompt.contains("explain it"), "{prompt}");
    env.kapi(&["goal", "reopen", "1", " "])
        .assert_error(3, &["bad_input"]);
}

/// Git checks a branch out once, and who gets a proved branch wants to look at it.
#[test]
fn the_branch_of_a_done_goal_can_be_checked_out_and_is_not_moved_while_it_is() {
    let env = Environment::new();
    let agent = "command:echo 42 > answer.txt; echo \"$KAPI_TURN\" > turn.txt";
    env.run(agent, &[]).assert_status("done", 0);
    let home = env.git(&["branch", "--show-current"]);
    env.git(&["switch", "--quiet", crate::environment::BRANCH]);
    assert_eq!(env.git(&["status", "--porcelain"]), "");
    env.kapi(&["goal", "reopen", "1", "again", "--no-run"]);
    let held = env.kapi(&["resume", "1"]);
    assert_ne!(held.code, 0, "{held:?}");
    let said = [held.stdout.as_str(), held.stderr.as_str()].concat();
    assert!(said.contains("switch to another branch there"), "{said}");
    assert_eq!(env.git(&["status", "--porcelain"]), "");
    env.git(&["switch", "--quiet", home.trim()]);
    Run::from(env.kapi(&["resume", "1", "--json"])).assert_status("done", 0);
    let turn = env.show(crate::environment::BRANCH, "turn.txt");
    assert_eq!(turn, "2");
}

#[test]
fn allow_takes_what_was_asked_about_and_nothing_else() {
    let mut env = with_clis(&["claude"]);
    env.set("ANTHROPIC_API_KEY", "not-a-key");
    paused(&env);
    env.kapi(&["goal", "allow", "1", "git push"])
        .assert_error(3, &["not_found", "nothing asked for"]);
    // A goal out of turns is not parked: it could not go on.
    env.kapi(&["goal", "park", "--approval", "the new price"])
        .assert_error(3, &["the turn budget is used up"]);
    let asks = env.kapi(&[
        "goal",
        "new",
        "ask first",
        "--agent",
        "claude",
        "--judge",
        "none",
        "--unverified",
        "--ask-before",
        "git push",
        "--keep",
        "--yes",
        "--no-run",
    ]);
    assert_eq!(asks.code, 0, "{asks:?}");
    env.kapi(&["goal", "allow", "2", "rm"])
        .assert_error(3, &["not_found", "\"git push\""]);
    env.kapi(&["goal", "allow", "2", "git push"]);
    let consent = env.json(&["show", "2", "--all"])["consent"].clone();
    assert_eq!(consent["allowed"], json!(["git push"]));
}

#[test]
fn wait_parks_on_every_condition() {
    let env = Environment::new();
    let running = env.start_run("command:sleep 3000", &["--turns", "2"]);
    env.await_event(FIRST, &|event| event["data"]["effect"] == "t001-agent-a1");
    env.kapi(&["pause"]);
    running.finish();
    let own = std::process::id().to_string();
    let file = env.root().join("ready");
    for (flags, condition) in [
        (&["--until", "2999-01-01T00:00Z"][..], None),
        (&["--until", "tomorrow"], None),
        (&["--for", "2h"], Some("time")),
        (&["--file", "ready"], Some("file")),
        (&["--file", file.to_str().unwrap(), "--gone"], Some("file")),
        (&["--file", "ready", "--changed"], Some("file")),
        (&["--pid", &own], Some("process")),
        (&["--pid", "4000000"], None),
        (
            &["--command", "test -e x", "--every", "30s"],
            Some("command"),
        ),
        (&["--command", "true", "--every", "1s"], None),
        (&["--quota", "anthropic", "--for", "3h"], Some("quota")),
        (&["--quota", "anthropic"], None),
        (&["--gone"], None),
        (&[], None),
        (
            &["--approval", "the new price", "--timeout", "1h"],
            Some("approval"),
        ),
    ] {
        let output = env.kapi(&[&["goal", "park"][..], flags, &["--json"]].concat());
        let Some(condition) = condition else {
            assert!([2, 3, 6].contains(&output.code), "{flags:?}: {output:?}");
            continue;
        };
        assert_eq!(output.code, 0, "{flags:?}: {output:?}");
        assert_eq!(output.document()["status"], "waiting");
        assert_eq!(
            env.json(&["show", "--all"])["wait"]["until"]["for"],
            condition
        );
    }
    let wait = env.json(&["show", "--all"])["wait"].clone();
    assert!(wait["deadline_ms"].as_i64().unwrap() > wait["since_ms"].as_i64().unwrap());
    env.kapi(&["goal", "allow", "1", "an old price"])
        .assert_error(3, &["not_found", "\"the new price\""]);
    assert_eq!(
        env.json(&["goal", "allow", "the new price"])["status"],
        "active"
    );
}

/// Specification, edge case 6 and reference 1.19 D6: a side question neither stops nor spins a loop.
#[test]
fn ask_answers_beside_the_loop_and_never_touches_it() {
    let env = Environment::new();
    let agent = "command:if grep -q 'A person asks a question' \"$KAPI_PROMPT_FILE\"; \
                 then cat answer.txt; touch here 2>/dev/null && echo WRITTEN; exit 0; fi; \
                 case $KAPI_RUN_ID in *-a1) sleep 3000;; esac; echo 42 > answer.txt";
    let running = env.start_run(agent, &[]);
    env.await_event(FIRST, &|event| event["data"]["effect"] == "t001-agent-a1");
    let answer = env.json(&["goal", "ask", "what is the answer now?"]);
    assert_eq!(answer["type"], "answer");
    assert_eq!(answer["answer"].as_str().unwrap().trim(), "wrong");
    assert_eq!(env.json(&["show", "1"])["status"], "active");
    let asked = env.await_event(FIRST, &|event| event["type"] == "side_question_answered");
    assert_eq!(asked["data"]["question"], "what is the answer now?");
    assert_eq!(asked["actor"]["kind"], "engine");
    env.kapi(&["pause"]);
    running.finish();
    Run::from(env.kapi(&["resume", "--json"])).assert_status("done", 0);
    // The candidate is what is looked at afterwards.
    let answer = env.json(&["goal", "ask", "1", "and now?"]);
    assert_eq!(answer["answer"].as_str().unwrap().trim(), "42");
    assert_eq!(env.json(&["show", "1"])["status"], "done");
    env.kapi(&["goal", "ask", "1", " "])
        .assert_error(2, &["empty"]);
    await_some("nothing is left", || {
        let scratch = env.home().join(".ilchul/sandboxes");
        let left = walk(&scratch)
            .into_iter()
            .find(|name| name.contains("aside-") && !name.ends_with("-home"));
        left.is_none().then_some(())
    });
}

fn walk(dir: &std::path::Path) -> Vec<String> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        names.push(entry.file_name().to_string_lossy().into_owned());
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            names.extend(walk(&entry.path()));
        }
    }
    names
}

#[test]
fn an_agent_that_does_not_answer_is_an_error_and_changes_nothing() {
    let env = Environment::new();
    let agent = "command:grep -q 'A person asks a question' \"$KAPI_PROMPT_FILE\" && exit 9; \
                 echo 42 > answer.txt";
    env.run(agent, &[]).assert_status("done", 0);
    let log = env.events(FIRST);
    env.kapi(&["goal", "ask", "1", "why?"])
        .assert_error(4, &["get an answer: the agent exited with 9"]);
    assert_eq!(env.events(FIRST), log);
}

#[test]
fn slash_lines_are_read_by_the_specifications_rules() {
    let env = Environment::new();
    paused(&env);
    let line = |line: &str| env.kapi(&["goal", "slash", line]);
    assert!(line("/until-done status").stdout.starts_with("Ⅱ 001-"));
    assert!(
        line("status").stdout.starts_with("Ⅱ 001-"),
        "the command's name may be left out"
    );
    assert!(
        line("/until-done help")
            .stdout
            .contains("/until-done <intent>")
    );
    assert!(
        line("/until-done northstar")
            .stdout
            .starts_with("northStar:\n")
    );
    assert!(line("/until-done budget 30").stdout.contains("30 turns"));
    assert!(
        line("/until-done pause")
            .stdout
            .contains("is paused already")
    );
    assert!(
        line("/until-done judge same")
            .stdout
            .contains("Judge of new goals here: same")
    );
    assert!(
        line("/until-done judge")
            .stdout
            .contains("Judge of new goals here: same")
    );
    assert!(
        line("/until-done judge clear")
            .stdout
            .contains("No judge is set")
    );
    line("/until-done judge a/").assert_error(2, &["is not a judge"]);
    line("/until-done judge anthropic/claude-opus-4-7");
    assert_eq!(
        env.json(&["goal", "judge"])["judge"],
        "anthropic/claude-opus-4-7"
    );
    line("/until-done judge off");
    assert!(line("/until-done autopilot").stdout.contains("is on"));
    // A word of the table with more behind it is a goal in ordinary words.
    env.configure(&format!(
        "[goal]\nagent = {HONEST:?}\nverify = [\"sh test.sh\"]\n"
    ));
    let output = line("/until-done status report on the migration");
    assert_eq!(output.code, 0, "{output:?}");
    assert_eq!(
        env.json(&["show", "2"])["contract"]["intent"],
        "status report on the migration"
    );
    let output = line("/until-done cancel");
    assert!(
        output.stdout.contains("001-make-answer-right is cancelled"),
        "{output:?}"
    );
}

#[test]
fn a_goal_that_is_driven_offers_only_what_its_driver_lets_happen() {
    let env = Environment::new();
    let running = env.start_run("command:sleep 900", &[]);
    env.await_event(FIRST, &|event| {
        event["type"] == "effect_intended" && event["data"]["effect"] == "t001-agent-a1"
    });
    let offered = ["kapi log 001 -f", "kapi pause 001", "kapi cancel 001"];
    assert_eq!(env.json(&["show", "1"])["next"], json!(offered));
    running.kill();
    env.await_no_process();
    let offered = ["kapi resume 001", "kapi cancel 001"];
    assert_eq!(env.json(&["show", "1"])["next"], json!(offered));
}
