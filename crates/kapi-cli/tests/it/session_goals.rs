//! Goals of a person's own session against a model that lies, and in checkouts as people have them.

use std::fs;

use serde_json::json;

use crate::environment::{Environment, FIRST, write};
use crate::session_host::{Next, Session};

const VERIFY_FAILED: &str = "Not done: Kapi ran the checks";

fn begun(env: &Environment) -> Session {
    let mut session = Session::start(env, &env.repository());
    session.set_up(&json!({}));
    session
}

fn text(rest: &serde_json::Value) -> &str {
    rest["text"].as_str().unwrap()
}

fn done(session: &mut Session, next: Next) -> String {
    let rest = session.rests(next);
    assert!(text(&rest).contains("is done"), "{rest:#}");
    text(&rest).to_owned()
}

#[test]
fn a_false_claim_is_found_out_and_the_next_turn_begins_with_what_failed() {
    let env = Environment::new();
    let mut session = begun(&env);
    let Next::Turn(message) = session.claims(|_| {}) else {
        panic!("a turn")
    };
    assert!(message.contains(VERIFY_FAILED), "{message}");
    assert!(message.contains("the answer is wrong, not 42"), "{message}");
    assert!(session.judged.is_empty(), "no judge is asked");
    let next = session.claims(|_| env.write("answer.txt", "42\n"));
    done(&mut session, next);
    session.hangs_up();
    env.await_no_process();
}

#[test]
fn a_test_that_the_model_made_pass_proves_nothing() {
    let env = Environment::new();
    let mut session = begun(&env);
    let next = session.claims(|_| env.write("test.sh", "echo the answer is right\n"));
    let told = match next {
        Next::Turn(message) => message,
        Next::Rest(rest) => text(&rest).to_owned(),
    };
    assert!(told.contains("test.sh"), "{told}");
    assert_ne!(env.json(&["show", "1"])["status"], "done", "{told}");
    session.hangs_up();
}

#[test]
fn tools_of_a_contract_that_nobody_approved_are_refused() {
    let env = Environment::new();
    let mut session = Session::start(&env, &env.repository());
    session.types("make the answer right");
    session.notice("turn");
    session.begins();
    for (tool, input) in [
        ("until_done_complete", json!({"evidence": "it is right"})),
        ("until_done_plan", json!({"tasks": []})),
        ("until_done_distill", json!({"prdMarkdown": "# x"})),
    ] {
        let reply = session.tool(tool, &input);
        assert_eq!(reply["refused"], true, "{tool}: {reply}");
    }
    session.ends();
    session.notice("rest");
    // A resume is no approval.
    session.types("resume");
    let status = env.json(&["show", "1"]);
    assert_eq!(status["status"], "setup", "{status:#}");
    session.hangs_up();
}

#[test]
fn what_is_drafted_in_a_subdirectory_is_run_there() {
    let env = Environment::new();
    let below = env.repository().join("apps/my web");
    write(&below.join("answer.txt"), "wrong\n");
    let script = env.read("test.sh");
    write(&below.join("test.sh"), script);
    env.git(&["rm", "--quiet", "test.sh", "answer.txt"]);
    env.commit_all("everything is below");
    let mut session = Session::start(&env, &below);
    let shown = session.set_up(&json!({}));
    assert!(shown.contains("cd 'apps/my web' && sh test.sh"), "{shown}");
    let next = session.claims(|_| write(&below.join("answer.txt"), "42\n"));
    done(&mut session, next);
    session.hangs_up();
}

#[test]
fn a_linked_worktree_has_its_own_work_proved() {
    let env = Environment::new();
    let linked = env.root().join("linked tree");
    env.git(&[
        "worktree",
        "add",
        "--quiet",
        "-b",
        "side",
        linked.to_str().unwrap(),
    ]);
    let mut session = Session::start(&env, &linked);
    session.set_up(&json!({}));
    let next = session.claims(|_| write(&linked.join("answer.txt"), "42\n"));
    done(&mut session, next);
    assert_eq!(env.read("answer.txt"), "wrong\n");
    session.hangs_up();
}

#[test]
fn a_directory_that_no_goal_can_be_worked_on_in_is_said_plainly() {
    let env = Environment::bare();
    // The machines of tests are inside a repository; this is not.
    let empty = tempfile::tempdir().unwrap();
    let mut session = Session::start(&env, empty.path());
    let refused = session.types("make it right");
    let message = refused["error"]["message"].as_str().unwrap();
    assert!(message.contains("git"), "{message}");
    session.hangs_up();
    // A repository without a commit has nothing to begin at.
    let mut session = Session::start(&env, &env.repository());
    let refused = session.types("make it right");
    let message = refused["error"]["message"].as_str().unwrap();
    assert!(message.contains("commit"), "{message}");
    session.hangs_up();
}

#[test]
fn thousands_of_files_of_before_are_none_of_the_work_and_hard_names_are_part_of_it() {
    const NAMES: [&str; 4] = [
        "with space.txt",
        "with\nnewline.txt",
        "ünïcödé \"q\".txt",
        "-dash.txt",
    ];
    let env = Environment::new();
    for n in 0..2_000 {
        env.write(&format!("before/{n}.txt"), "x\n");
    }
    let mut session = begun(&env);
    let next = session.claims(|_| {
        env.write("answer.txt", "42\n");
        for name in NAMES {
            env.write(name, "x\n");
        }
        for n in 0..300 {
            env.write(&format!("many/{n}.txt"), "x\n");
        }
    });
    done(&mut session, next);
    let goal = env.json(&["show", "1"]);
    let commit = goal["commit"].as_str().unwrap();
    for name in NAMES {
        assert_eq!(env.show(commit, name), "x", "{name:?}");
    }
    let changed = env.git(&["diff", "--name-only", "-z", &format!("{commit}~"), commit]);
    let n_changed = changed.split('\0').filter(|name| !name.is_empty()).count();
    assert_eq!(n_changed, 1 + NAMES.len() + 300);
    assert!(!changed.contains("before/"), "{changed}");
    session.hangs_up();
}

#[test]
fn two_sessions_in_one_checkout_do_not_take_each_other_s_goal() {
    let env = Environment::new();
    let mut one = begun(&env);
    let mut other = Session::start(&env, &env.repository());
    let begun = other.types("write it down as well");
    assert!(begun.get("error").is_none(), "{begun}");
    assert_eq!(begun["result"]["goal"]["id"], "002-write-down-well");
    other.types("cancel");
    // The same goal in a second window: it is shown, and goes on where it is driven.
    let opened = other.ask("open", json!({ "goal": FIRST }));
    assert!(opened.get("error").is_none(), "{opened}");
    let next = one.claims(|_| env.write("answer.txt", "42\n"));
    done(&mut one, next);
    one.hangs_up();
    other.hangs_up();
}

#[test]
fn files_that_change_after_the_proof_are_not_said_to_be_proved() {
    let env = Environment::new();
    let mut session = begun(&env);
    let answer = env.repository().join("answer.txt");
    session.while_judged = Some(Box::new(move || write(&answer, "43\n")));
    let next = session.claims(|_| env.write("answer.txt", "42\n"));
    let told = done(&mut session, next);
    assert!(!told.contains("your files hold the same"), "{told}");
    assert!(told.contains("answer.txt"), "{told}");
    session.hangs_up();
}

#[test]
fn a_checkout_that_was_switched_to_other_work_is_not_taken_for_the_goal_s() {
    let env = Environment::new();
    env.git(&["branch", "other", "HEAD"]);
    env.write("mine.txt", "mine\n");
    env.commit_all("on main alone");
    let mut session = begun(&env);
    let next = session.claims(|_| {
        env.git(&["switch", "--quiet", "other"]);
        env.write("answer.txt", "42\n");
    });
    let Next::Rest(rest) = next else {
        panic!("{next:?}")
    };
    let told = text(&rest);
    assert!(told.contains("HEAD"), "{told}");
    assert_eq!(env.json(&["show", "1"])["status"], "blocked");
    // Back where it was, it goes on.
    env.git(&["switch", "--quiet", "main"]);
    session.types("resume");
    let next = session.next();
    done(&mut session, next);
    session.hangs_up();
}

#[test]
fn commits_of_the_work_itself_do_no_harm() {
    let env = Environment::new();
    let mut session = begun(&env);
    let next = session.claims(|_| {
        env.write("answer.txt", "42\n");
        env.commit_all("the model commits");
    });
    done(&mut session, next);
    session.hangs_up();
}

#[test]
fn what_the_model_tells_git_about_a_file_does_not_change_what_is_proved() {
    let env = Environment::new();
    let mut session = begun(&env);
    let next = session.claims(|_| {
        env.git(&["config", "filter.lie.clean", "echo 42"]);
        env.write(".gitattributes", "answer.txt filter=lie\n");
        env.git(&["update-index", "--assume-unchanged", "answer.txt"]);
    });
    let Next::Turn(message) = next else {
        panic!("{next:?}")
    };
    assert!(message.contains("the answer is wrong, not 42"), "{message}");
    session.hangs_up();
}

#[test]
fn without_the_goal_s_state_no_tool_runs_until_the_person_lets_go_of_it() {
    let env = Environment::new();
    let mut session = begun(&env);
    session.begins();
    fs::remove_dir_all(env.repository().join(".ilchul")).unwrap();
    let used = json!({"tool": "bash", "input": {"command": "git push"}});
    let refused = session.call("tool_call", used.clone());
    let why = refused["refused"].as_str().unwrap();
    assert!(why.contains("/until-done cancel"), "{why}");
    session.ask(
        "run_ended",
        json!({"outcome": "finished", "message": "", "input_tokens": 0, "output_tokens": 0}),
    );
    let let_go = session.types("cancel");
    assert_eq!(let_go["result"]["goal"]["is_over"], true, "{let_go}");
    let allowed = session.call("tool_call", used);
    assert_eq!(allowed["refused"], json!(null));
    // Another goal begins as if there had been none.
    session.set_up(&json!({}));
    let next = session.claims(|_| env.write("answer.txt", "42\n"));
    done(&mut session, next);
    session.hangs_up();
    env.await_no_process();
}

#[test]
fn who_works_in_the_same_checkout_is_told() {
    let env = Environment::new();
    let mut one = begun(&env);
    let mut other = Session::start(&env, &env.repository());
    let begun = other.types("write it down as well");
    let told = begun["result"]["text"].as_str().unwrap();
    assert!(told.contains(FIRST), "{told}");
    assert!(told.contains("in this checkout, too"), "{told}");
    one.types("cancel");
    other.hangs_up();
    one.hangs_up();
}

#[test]
fn what_lies_in_a_submodule_is_named_where_the_checks_miss_it() {
    let env = Environment::new();
    let inner = env.root().join("inner");
    fs::create_dir(&inner).unwrap();
    let inner = inner.to_str().unwrap();
    env.git(&["-C", inner, "init", "--quiet", "--initial-branch", "main"]);
    write(&env.root().join("inner/lib.sh"), "true\n");
    env.git(&["-C", inner, "add", "--all"]);
    env.git(&["-C", inner, "commit", "--quiet", "--message", "base"]);
    let allowed = [
        "-c",
        "protocol.file.allow=always",
        "submodule",
        "--quiet",
        "add",
    ];
    env.git(&[&allowed[..], &[inner, "lib"]].concat());
    env.commit_all("a submodule");
    let mut session = begun(&env);
    let next = session.claims(|_| env.write("lib/lib.sh", "exit 0\n"));
    let Next::Turn(message) = next else {
        panic!("{next:?}")
    };
    let expected = "lib: files inside a submodule";
    assert!(message.contains(expected), "{message}");
    session.hangs_up();
}
