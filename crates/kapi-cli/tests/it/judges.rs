//! What a judge can and cannot decide, and what happens when none answers.

use serde_json::{Value, json};

use crate::environment::{BRANCH, Environment, for_each};

const HONEST: &str = "command:echo 42 > answer.txt";

#[test]
fn a_judge_decides_after_the_checks() {
    let cases = [
        (r#"{"verdict": "done", "reason": "it is 42"}"#, "done", 0),
        (
            r#"{"verdict": "blocked", "reason": "ask Ada"}"#,
            "blocked",
            5,
        ),
        (
            r#"{"verdict": "impossible", "reason": "no such number"}"#,
            "impossible",
            5,
        ),
        // Always the same wish for the same tree is no progress.
        (
            r#"{"verdict": "continue", "reason": "add a note"}"#,
            "stalled",
            5,
        ),
    ];
    for_each(&cases, |&(answer, status, code)| {
        let env = Environment::new();
        let judge = format!("command:echo '{answer}'");
        let run = env.run(HONEST, &["--judge", &judge, "--stall-after", "2"]);
        run.assert_status(status, code);
        let said: Value = serde_json::from_str(answer).unwrap();
        assert_eq!(run.result["judge"]["verdict"], said["verdict"]);
        assert_eq!(run.result["judge"]["reason"], said["reason"]);
        assert_eq!(run.result["judge"]["by"], judge);
        if code != 0 {
            run.assert_nothing_published(&env);
        }
    });
}

#[test]
fn a_judge_s_reason_opens_the_next_prompt() {
    let env = Environment::new();
    let agent = "command:cat > prompt-$KAPI_TURN.txt; echo 42 > answer.txt; \
                 [ $KAPI_TURN = 1 ] || echo because > why.txt";
    // The judge looks at the checkout, which it cannot write.
    let judge = "command:touch here 2>/dev/null && exit 9; [ -e why.txt ] && \
                 echo '{\"verdict\": \"done\", \"reason\": \"explained\"}' || \
                 echo '{\"verdict\": \"continue\", \"reason\": \"explain it in why.txt\"}'";
    let run = env.run(agent, &["--judge", judge]);
    run.assert_status("done", 0);
    assert_eq!(run.verdicts(), ["judge_continue"]);
    let prompt = env.show(BRANCH, "prompt-2.txt");
    let first = prompt.lines().next().unwrap();
    assert!(first.contains("explain it in why.txt"), "{prompt}");
}

#[test]
fn a_judge_never_overrules_a_failed_check() {
    let env = Environment::new();
    let judge = "command:echo '{\"verdict\": \"done\", \"reason\": \"looks fine\"}'";
    let run = env.run("command:true", &["--judge", judge]);
    run.assert_status("stalled", 5);
    run.assert_nothing_published(&env);
    assert_eq!(run.result["judge"], Value::Null, "nobody was asked");
}

#[test]
fn the_same_agent_judges_in_its_own_words() {
    let env = Environment::new();
    let agent = "command:if grep -q 'You are the judge' \"$KAPI_PROMPT_FILE\"; \
                 then echo '{\"verdict\": \"done\", \"reason\": \"same\"}'; \
                 else echo 42 > answer.txt; fi";
    let run = env.run(agent, &["--judge", "same"]);
    run.assert_status("done", 0);
    assert_eq!(
        run.result["judge"],
        json!({"by": agent, "verdict": "done", "reason": "same"})
    );
    let contract = env.json(&["show", "1"])["contract"]["judge"].clone();
    assert_eq!(contract, json!({"by": "same"}));
}

#[test]
fn no_judge_is_recorded_and_shown() {
    let env = Environment::new();
    let run = env.run(HONEST, &["--judge", "none"]);
    run.assert_status("done", 0);
    assert!(run.reason().ends_with("; no judge"), "{}", run.reason());
    assert_eq!(
        env.json(&["show", "1"])["contract"]["judge"],
        json!({"by": "none"})
    );
    assert!(
        env.kapi(&["show", "1"])
            .stdout
            .contains("  judge     none\n")
    );
}

#[test]
fn a_judge_that_cannot_be_understood_never_completes_a_goal() {
    let closed = Environment::new();
    let babble = "command:echo it looks done to me";
    let run = closed.run(HONEST, &["--judge", babble]);
    run.assert_status("blocked", 5);
    run.assert_nothing_published(&closed);
    assert_eq!(run.result["judge"]["verdict"], "malformed");
    assert_eq!(
        run.result["turns"], 0,
        "the judge's failure is not a turn of the agent"
    );
}

#[test]
fn an_unavailable_judge_parks_the_goal_unless_the_contract_lets_it_pass() {
    let broken = "command:exit 3";
    for_each(&["closed", "open"], |rule| {
        let env = Environment::new();
        let options = ["--judge", broken, "--judge-unavailable", rule, "--park"];
        let run = env.run(HONEST, &options);
        if *rule == "closed" {
            run.assert_status("waiting", 5);
            run.assert_nothing_published(&env);
            assert_eq!(run.result["judge"]["verdict"], "unavailable");
        } else {
            run.assert_status("done", 0);
            assert!(run.reason().contains("was unavailable"), "{}", run.reason());
            assert_eq!(env.show(BRANCH, "answer.txt"), "42");
        }
    });
}

/// Everything that would keep a judge from seeing what was done, in a goal whose judge looks for it.
#[test]
fn what_an_agent_hides_from_its_judge_is_shown() {
    let agent = "command:echo 42 > answer.txt; echo '* binary' > .gitattributes; \
                 yes 'nothing to see here' | head -c 200000 > a.py; \
                 printf 'def cheat():\\n    return 42 #\\000\\n' > z.py; \
                 touch \"$(printf 'x\\n+++ b/answer.txt')\"";
    let judge = "command:grep -q '^+    return 42 #.u{0}$' $KAPI_PROMPT_FILE && \
                 grep -q '^new .* \"a.py\": 200000 bytes' $KAPI_PROMPT_FILE && \
                 ! grep -q '^+++ b/answer.txt$' $KAPI_PROMPT_FILE && \
                 echo '{\"verdict\": \"blocked\", \"reason\": \"it cheats\"}'";
    let env = Environment::new();
    let run = env.run(agent, &["--judge", judge, "--judge-unavailable", "open"]);
    run.assert_status("blocked", 5);
    assert_eq!(run.result["judge"]["reason"], "it cheats");
}

#[test]
fn a_verdict_without_a_reason_is_asked_for_again_and_completes_nothing() {
    let env = Environment::new();
    let empty = "command:echo '{\"verdict\": \"done\", \"reason\": \"  \"}'";
    let run = env.run(HONEST, &["--judge", empty]);
    run.assert_status("blocked", 5);
    run.assert_nothing_published(&env);
    assert_eq!(run.events("judge_failed").len(), 3);
    assert_eq!(run.result["judge"]["verdict"], "malformed");
}
