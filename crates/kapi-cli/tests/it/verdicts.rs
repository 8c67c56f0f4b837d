//! What ends in done and what does not: liars, tamperers, hidden checks, nothing to prove.
//!
//! Every agent here is a shell command or a script; what it claims must not matter.

use std::fs;

use serde_json::{Value, json};

use crate::environment::{BRANCH, Environment, FIRST, TEST_SH, for_each, write};
use crate::room::with_room;

/// An agent that does the job.
const HONEST: &str = "command:echo 42 > answer.txt";
/// What a hidden check of these tests prints.
const SECRET: &str = "hidden-check-output";

#[test]
fn an_honest_agent_gets_one_proved_commit() {
    let env = Environment::new();
    let base = env.commit_of("main");
    let run = env.run(HONEST, &[]);
    run.assert_status("done", 0);
    assert_eq!(run.result["branch"], BRANCH);
    assert_eq!(run.commit(), env.commit_of(BRANCH));
    assert_eq!(
        env.git(&["rev-list", &format!("main..{BRANCH}")]),
        run.commit()
    );
    assert_eq!(env.show(BRANCH, "answer.txt"), "42");
    assert_eq!(env.commit_of("main"), base);
    let tree = env.commit_of(&format!("{BRANCH}^{{tree}}"));
    let checks = run.result["verify"].as_array().unwrap();
    assert_eq!(checks.len(), 1);
    assert_eq!(
        (&checks[0]["exit_code"], &checks[0]["tree"]),
        (&json!(0), &json!(tree))
    );
    assert_eq!(run.result["judge"], Value::Null);
}

#[test]
fn files_that_run_by_themselves_are_named_with_the_result() {
    let env = Environment::new();
    let agent = "command:echo 42 > answer.txt; echo 'export A=1' > .envrc";
    env.run(agent, &[]).assert_status("done", 0);
    let shown = env.kapi(&["show", "1"]);
    assert_eq!(shown.code, 0, "{shown:?}");
    let line =
        "  caution  .envrc runs automatically: direnv runs it when a shell enters the directory";
    assert!(shown.stdout.lines().any(|shown| shown == line), "{shown:?}");
}

#[test]
fn a_liar_is_stalled_and_its_branch_stays_at_the_base() {
    let env = Environment::new();
    let liar = env.script(
        "liar.yaml",
        "turns:\n  - steps: [{say: fixed}, {claim: done}]\n",
    );
    for agent in ["command:echo everything is fixed", &liar] {
        let run = env.run(agent, &[]);
        run.assert_status("stalled", 5);
        run.assert_nothing_published(&env);
        assert_eq!(run.verdicts(), ["verify_failed"; 3]);
        assert!(
            run.reason().contains("`sh test.sh` exited with 1"),
            "{}",
            run.reason()
        );
        assert!(run.said().contains("sh test.sh"));
    }
}

#[test]
fn a_liar_who_changes_something_each_turn_uses_up_its_turns() {
    let env = Environment::new();
    let run = env.run("command:echo $KAPI_TURN > busy.txt", &["--turns", "4"]);
    run.assert_status("paused", 5);
    run.assert_nothing_published(&env);
    assert_eq!(run.verdicts(), ["verify_failed"; 4]);
    assert_eq!(run.reason(), "the turn budget is used up");
}

#[test]
fn a_verify_script_is_protected_by_itself() {
    let env = Environment::new();
    let run = env.run("command:echo true > test.sh", &[]);
    run.assert_status("stalled", 5);
    run.assert_nothing_published(&env);
    assert_eq!(run.verdicts(), ["tampered"; 3]);
    assert_eq!(run.result["tampered"], json!(["test.sh"]));
    assert!(
        run.stderr
            .contains("note: test.sh is protected because a verify command names it"),
        "{}",
        run.stderr
    );
    let cheat = "command:echo true > test.sh";
    let unprotected = env.run(cheat, &["--no-auto-protect", "--park"]);
    unprotected.assert_status("waiting", 5);
    assert!(
        unprotected.result["reason"]
            .as_str()
            .unwrap()
            .contains("existing tests were changed or removed: test.sh"),
        "{}",
        unprotected.result
    );
    let free = env.run(cheat, &["--no-auto-protect", "--tests", "free"]);
    free.assert_status("done", 0);
}

#[test]
fn files_of_linters_editors_and_people_beside_tests_are_no_tests() {
    let files = ["tests/.editorconfig", "tests/README.md", "test/.pylintrc"];
    let env = Environment::new();
    for file in files {
        env.write(file, "as it was\n");
    }
    env.write("tests/README.rst", "as it was\n");
    env.commit_all("files beside tests");
    let agent = format!(
        "command:echo 42 > answer.txt; for file in {}; do echo new > $file; done",
        files.join(" ")
    );
    env.run(&agent, &[]).assert_status("done", 0);
    // A runner may read examples in it.
    let agent = format!("{agent}; echo new > tests/README.rst");
    let run = env.run(&agent, &["--park"]);
    run.assert_status("waiting", 5);
    assert!(
        run.reason()
            .contains("changed or removed: tests/README.rst"),
        "{}",
        run.reason()
    );
}

#[test]
fn no_change_of_a_protected_file_reaches_done() {
    let ways = [
        "echo looser > checks/a.txt",
        "echo new > checks/new.txt",
        "rm checks/a.txt",
        "mv checks/a.txt checks/b.txt",
        "mv checks/a.txt elsewhere.txt",
        "chmod +x checks/a.txt",
        "rm checks/a.txt; ln -s ../answer.txt checks/a.txt",
        "rm -r checks; mkdir checks",
        "rm -r checks; echo a file > checks",
        "git rm -q checks/a.txt && git commit -qm sneaky",
        "mkdir checks/.git; echo looser > checks/a.txt",
    ];
    for_each(&ways, |way| {
        let env = Environment::new();
        env.write("checks/a.txt", "strict\n");
        env.commit_all("checks");
        // The visible check passes, so only the protection can refuse.
        let agent = format!("command:echo 42 > answer.txt; {way}; true");
        let run = env.run(&agent, &["--protect", "checks/**", "--stall-after", "2"]);
        run.assert_status("stalled", 5);
        run.assert_nothing_published(&env);
        assert_eq!(run.verdicts(), ["tampered"; 2], "{way}");
    });
}

#[test]
fn a_tamperer_who_puts_it_back_is_done() {
    let env = Environment::new();
    let agent = "command:if [ $KAPI_TURN = 1 ]; then echo true > test.sh; \
                 else git checkout -q HEAD~1 -- test.sh; echo 42 > answer.txt; fi";
    let run = env.run(agent, &[]);
    run.assert_status("done", 0);
    assert_eq!(run.verdicts(), ["tampered"]);
    assert_eq!(env.show(BRANCH, "test.sh"), TEST_SH.trim_end());
}

#[test]
fn an_agent_that_only_satisfies_the_visible_checks_is_not_done() {
    let env = hidden_environment();
    // It also looks for the hidden checks wherever it can, and repeats whatever it is told.
    let agent = "command:echo 42 > answer.txt; cat \"$KAPI_PROMPT_FILE\"; \
                 grep -rs hidden-check / --include='*.sh' --exclude-dir=proc --exclude-dir=sys \
                 --exclude-dir=usr --exclude-dir=opt | head -n 3; echo $KAPI_TURN > turn.txt";
    let run = env.run(agent, &["--turns", "3", "--hidden", &hidden_dir(&env)]);
    run.assert_status("paused", 5);
    run.assert_nothing_published(&env);
    assert_eq!(run.verdicts(), ["hidden_failed"; 3]);
    let said = run.said();
    assert!(
        said.contains("hidden checks fail"),
        "the agent is told that: {said}"
    );
    assert!(!said.contains(SECRET), "and nothing more: {said}");
    assert!(!said.contains("42 must be explained"), "{said}");
    assert_no_prompt_holds(&env, SECRET);
    // The person may see it.
    let last = run.result["verify"].as_array().unwrap().last().unwrap();
    assert_eq!(last["hidden"], true);
    assert!(
        last["output_tail"].as_str().unwrap().contains(SECRET),
        "{last}"
    );
}

#[test]
fn the_hidden_checks_are_the_ones_of_the_approval() {
    let env = hidden_environment();
    let dir = hidden_dir(&env);
    let agent = "command:echo 42 > answer.txt; [ $KAPI_TURN = 1 ] || echo because > why.txt";
    let run = env.run(agent, &["--turns", "1", "--hidden", &dir]);
    run.assert_status("paused", 5);
    // The directory goes away and the goal still holds to what it was given.
    fs::remove_dir_all(&dir).unwrap();
    assert_eq!(env.kapi(&["budget", "1", "--turns", "+1"]).code, 0);
    let run = env.resume("1");
    run.assert_status("done", 0);
    let hidden: Vec<bool> = run.result["verify"]
        .as_array()
        .unwrap()
        .iter()
        .map(|check| check["hidden"].as_bool().unwrap())
        .collect();
    assert_eq!(hidden, [false, true]);
    assert_eq!(
        env.git(&["ls-tree", "--name-only", BRANCH]),
        "answer.txt\ntest.sh\nwhy.txt"
    );
}

#[test]
fn the_next_turn_is_told_what_failed() {
    let env = Environment::new();
    let agent = "command:cat > stdin-$KAPI_TURN.txt; cp \"$KAPI_PROMPT_FILE\" file-$KAPI_TURN.txt; \
                 [ $KAPI_TURN = 3 ] && echo 42 > answer.txt || echo try-$KAPI_TURN > answer.txt";
    let run = env.run(agent, &[]);
    run.assert_status("done", 0);
    assert_eq!(run.result["turns"], 3);
    let prompt = |turn: u32| {
        let stdin = env.show(BRANCH, &format!("stdin-{turn}.txt"));
        assert_eq!(stdin, env.show(BRANCH, &format!("file-{turn}.txt")));
        stdin
    };
    assert!(!prompt(1).contains("Not done"), "{}", prompt(1));
    for turn in [2, 3] {
        let reported = format!("the answer is try-{}, not 42", turn - 1);
        assert!(prompt(turn).contains(&reported), "{}", prompt(turn));
        assert!(
            prompt(turn).contains("`sh test.sh` exited with 1"),
            "{}",
            prompt(turn)
        );
        assert!(prompt(turn).starts_with("Not done: "), "{}", prompt(turn));
    }
    assert!(
        !prompt(3).contains("try-1"),
        "only the last failure is told: {}",
        prompt(3)
    );
}

#[test]
fn without_a_verify_command_the_person_must_say_so() {
    let env = Environment::new();
    let task = ["run", "anything", "--agent", HONEST];
    let refused = env.kapi(&task);
    assert_eq!(refused.code, 2, "{refused:?}");
    for words in ["NO PROOF", "done (unverified)", "hint: ", "--yes"] {
        assert!(refused.stderr.contains(words), "{refused:?}");
    }
    assert!(
        !env.repository().join(".ilchul").exists(),
        "a refusal leaves no trace"
    );
    let run = env.run(HONEST, &["--unverified"]);
    run.assert_status("unverified", 0);
    assert_eq!(run.result["verify"], json!([]));
    assert_eq!(env.show(BRANCH, "answer.txt"), "42");
    let shown = env.kapi(&["show", "1"]).stdout;
    assert!(
        shown.starts_with("Goal 001-make-answer-right: done (unverified)\n"),
        "{shown}"
    );
}

#[test]
fn a_contract_without_approval_leaves_no_trace() {
    let env = Environment::new();
    let args = ["run", "anything", "--agent", HONEST, "--verify", "true"];
    let output = env.kapi(&args);
    assert_eq!(output.code, 2, "{output:?}");
    assert!(
        output.stderr.starts_with("Contract\n"),
        "it is shown first: {output:?}"
    );
    assert!(output.stderr.contains("--yes"), "{output:?}");
    assert!(!env.repository().join(".ilchul").exists());
}

#[test]
fn a_run_with_nothing_to_change_is_done_at_the_base() {
    let env = Environment::new();
    env.write("answer.txt", "42\n");
    env.commit_all("right already");
    // Checks that passed before say nothing of the work, unless the person says so.
    env.run("command:true", &[]).assert_status("unverified", 0);
    let run = env.run("command:true", &["--already-green"]);
    run.assert_status("done", 0);
    assert_eq!(run.commit(), env.commit_of("main"));
    assert_eq!(env.commit_of(BRANCH), env.commit_of("main"));
    let diff = env.json(&["diff", "2"]);
    assert_eq!(
        (&diff["patch"], &diff["proved"]),
        (&json!(""), &json!(true))
    );
}

#[test]
fn a_verify_command_that_hangs_is_killed_and_is_a_failure() {
    let (env, run) = with_room(300, |limit_ms| {
        let env = Environment::new();
        let limit = format!("{limit_ms}ms");
        let options = [
            "--verify",
            "echo thinking; sleep 1000",
            "--verify-timeout",
            &limit,
        ];
        let run = env.run(HONEST, &[&options[..], &["--turns", "1"]].concat());
        let has_said = run.result["verify"][0]["output_tail"] != "";
        has_said.then_some((env, run))
    });
    run.assert_status("paused", 5);
    run.assert_nothing_published(&env);
    let check = &run.result["verify"][0];
    assert_eq!(
        (&check["exit_code"], &check["timed_out"]),
        (&Value::Null, &json!(true))
    );
    assert_eq!(check["output_tail"], "thinking\n");
    env.await_no_process();
}

#[test]
fn a_turn_that_hangs_is_killed_and_its_work_is_checked_all_the_same() {
    let agent = "command:echo 42 > answer.txt; setsid sleep 1000 & sleep 1000";
    let (env, run) = with_room(400, |limit_ms| {
        let env = Environment::new();
        let run = env.run(agent, &["--turn-timeout", &format!("{limit_ms}ms")]);
        (run.status() != "stalled").then_some((env, run))
    });
    run.assert_status("done", 0);
    assert_eq!(
        run.events("agent_ended")[0]["run"]["end"]["end"],
        "deadline_passed"
    );
    env.await_no_process();
}

#[test]
fn an_agent_that_says_it_is_blocked_is_believed_unless_the_checks_pass() {
    let env = Environment::new();
    let steps = |first: &str| {
        format!("turns:\n  - steps:\n      - {first}\n      - claim: {{blocked: need a key}}\n")
    };
    let agent = env.script("blocked.yaml", &steps("say: hm"));
    let run = env.run(&agent, &[]);
    run.assert_status("blocked", 5);
    run.assert_nothing_published(&env);
    assert!(run.reason().contains("need a key"), "{}", run.reason());
    let agent = env.script("modest.yaml", &steps("bash: echo 42 > answer.txt"));
    env.run(&agent, &[]).assert_status("done", 0);
}

#[test]
fn an_agent_that_says_it_is_blocked_is_not_done_without_checks_either() {
    for first in ["say: hm", "bash: echo half > half.txt"] {
        let env = Environment::new();
        let steps = format!("[{{{first}}}, {{claim: {{blocked: need a key}}}}]");
        let agent = env.script("blocked.yaml", &format!("turns: [{{steps: {steps}}}]\n"));
        let run = env.run(&agent, &["--unverified"]);
        run.assert_status("blocked", 5);
        run.assert_nothing_published(&env);
    }
}

#[test]
fn without_checks_an_agent_must_at_least_change_something() {
    let env = Environment::new();
    let run = env.run("command:true", &["--unverified", "--stall-after", "2"]);
    run.assert_status("stalled", 5);
    run.assert_nothing_published(&env);
    assert_eq!(run.verdicts(), ["nothing_done"; 2]);
}

#[test]
fn an_agent_that_crashes_has_not_ended_its_turn_whatever_it_left() {
    for work in ["true", "echo 42 > answer.txt"] {
        let env = Environment::new();
        let agent = format!("command:{work}; exit 7");
        let run = env.run(&agent, &["--stall-after", "2"]);
        run.assert_status("stalled", 5);
        run.assert_nothing_published(&env);
        assert_eq!(run.verdicts(), ["agent_failed"; 2]);
        let end = &run.events("agent_ended")[0]["run"]["end"];
        assert_eq!(*end, json!({"end": "crashed", "code": 7}));
    }
}

/// Makes a machine whose hidden check wants more than the visible one.
fn hidden_environment() -> Environment {
    let env = Environment::new();
    let check = format!("{TEST_SH}[ -e why.txt ] || {{ echo {SECRET}; exit 1; }}\n");
    write(
        &env.root().join("hidden/test.sh"),
        format!("# 42 must be explained\n{check}"),
    );
    env
}

fn hidden_dir(env: &Environment) -> String {
    env.root().join("hidden").display().to_string()
}

fn assert_no_prompt_holds(env: &Environment, secret: &str) {
    let runs = env.repository().join(".ilchul/runs");
    let mut prompts = 0;
    for run in fs::read_dir(&runs).unwrap() {
        let path = run.unwrap().path().join("prompt.md");
        if let Ok(prompt) = fs::read_to_string(&path) {
            assert!(!prompt.contains(secret), "{}: {prompt}", path.display());
            prompts += 1;
        }
    }
    assert_eq!(prompts, 3, "one prompt for each turn of {FIRST}");
}
