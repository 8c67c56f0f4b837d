//! What killed attempts leave: taken away by workers and by `kapi cleanup`, and nothing is lost.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use rustix::process::Signal;
use serde_json::Value;

use crate::environment::{Environment, await_some, write};
use crate::kernel_task::branches;
use crate::program::Running;

/// Changes something and goes on until it is killed; the next attempt does the work.
const HALF: &str = "command:if grep -q ' died' \"$KAPI_PROMPT_FILE\"; then echo 42 > answer.txt; else echo half > answer.txt; echo begun; sleep 300; fi";
/// Changes nothing until it is killed.
const IDLE: &str = "command:if grep -q ' died' \"$KAPI_PROMPT_FILE\"; then echo 42 > answer.txt; else echo begun; sleep 300; fi";

/// Returns the directories of attempts, by name.
pub(crate) fn attempts(env: &Environment) -> Vec<PathBuf> {
    let all = env.home().join(".ilchul/sandboxes");
    let keys = fs::read_dir(all).into_iter().flatten().flatten();
    let dirs = keys.flat_map(|key| fs::read_dir(key.path()).into_iter().flatten().flatten());
    let mut dirs: Vec<PathBuf> = dirs.map(|dir| dir.path()).collect();
    dirs.retain(|dir| {
        dir.file_name()
            .unwrap()
            .to_string_lossy()
            .starts_with("task_")
    });
    dirs.sort();
    dirs
}

/// Tells what is in them but the record of what agents did.
pub(crate) fn leavings(env: &Environment) -> Vec<PathBuf> {
    let entries = attempts(env).into_iter();
    let entries = entries.flat_map(|dir| fs::read_dir(dir).into_iter().flatten().flatten());
    let paths = entries.map(|entry| entry.path());
    paths.filter(|path| !path.ends_with("runs")).collect()
}

/// Waits until so many attempts have an agent that said that it has begun, and kills their worker.
fn kill_when_begun(env: &Environment, worker: Running, n: usize) {
    await_begun(env, n);
    worker.kill();
    env.await_no_process();
}

/// Waits until so many attempts have an agent that said that it has begun.
pub(crate) fn await_begun(env: &Environment, n: usize) {
    await_some("agents that have begun", || {
        let has_begun = |dir: &PathBuf| {
            let file = dir.join("runs/1/transcript.jsonl");
            dir.join("sandbox.json").exists()
                && fs::read_to_string(file).is_ok_and(|text| text.contains("begun"))
        };
        let begun = attempts(env).iter().filter(|dir| has_begun(dir)).count();
        (begun >= n).then_some(())
    });
}

/// Returns the refs that keep what attempts had changed.
pub(crate) fn rescues(env: &Environment) -> Vec<String> {
    kapi_refs(env)
}

fn kapi_refs(env: &Environment) -> Vec<String> {
    let listed = env.git(&["for-each-ref", "--format=%(refname)", "refs/kapi"]);
    listed.lines().map(str::to_owned).collect()
}

/// Makes the project one where somebody works: a file changed, one new, one gone.
fn dirty(env: &Environment) {
    env.write("gone.txt", "is there\n");
    env.write("changed.txt", "as it was\n");
    env.commit_all("more");
    env.write("changed.txt", "by a person\n");
    env.write(".claude/settings.json", "{}\n");
    fs::remove_file(env.repository().join("gone.txt")).unwrap();
}

#[test]
fn what_a_killed_attempt_had_changed_is_under_one_ref_and_nothing_else_is_left() {
    let env = Environment::new();
    dirty(&env);
    let args = ["task", "run", "make it right", "--json", "--agent", HALF];
    kill_when_begun(&env, env.start(&args), 1);
    let once = env.kapi(&["up", "--once"]);
    assert_eq!(once.code, 0, "{once:?}");
    let shown = env.json(&["show", "task_1"]);
    assert_eq!(shown["state"], "completed", "{shown:#}");
    assert_eq!(leavings(&env), Vec::<PathBuf>::new());
    assert_eq!(branches(&env), ["kapi/task_1"]);
    assert_eq!(env.git(&["worktree", "list"]).lines().count(), 1);
    let refs = kapi_refs(&env);
    let [rescue] = refs.as_slice() else {
        panic!("{refs:?}");
    };
    assert!(rescue.starts_with("refs/kapi/rescue/task_1-"), "{rescue}");
    // The commit is what the agent changed, and not what covered the person's own files.
    let changed = env.git(&["diff", "--name-only", "HEAD", rescue]);
    assert_eq!(changed, "answer.txt");
    assert_eq!(env.show(rescue, "answer.txt"), "half");
    let output = shown["output"].as_str().unwrap();
    let line = output.split('`').nth(1).unwrap();
    assert_eq!(
        line.split(' ').next_back(),
        Some(rescue.as_str()),
        "{output}"
    );
    env.git(&line.split(' ').skip(1).collect::<Vec<&str>>());
}

#[test]
fn a_task_that_is_cancelled_after_its_worker_was_killed_leaves_nothing() {
    let env = Environment::new();
    dirty(&env);
    let args = ["task", "run", "make it right", "--json", "--agent", HALF];
    kill_when_begun(&env, env.start(&args), 1);
    let cancelled = env.json(&["cancel", "task_1", "--yes"]);
    assert_eq!(cancelled["state"], "cancelled", "{cancelled:#}");
    assert_eq!(leavings(&env), Vec::<PathBuf>::new());
    assert_eq!(branches(&env), Vec::<String>::new());
    assert_eq!(env.git(&["worktree", "list"]).lines().count(), 1);
    let refs = kapi_refs(&env);
    let [rescue] = refs.as_slice() else {
        panic!("{refs:?}");
    };
    assert_eq!(env.show(rescue, "answer.txt"), "half");
    let output = cancelled["output"].as_str().unwrap();
    assert!(output.contains(rescue), "{cancelled:#}");
    let once = env.kapi(&["up", "--once"]);
    assert_eq!(once.code, 0, "{once:?}");
    assert_eq!(env.json(&["show", "task_1"])["attempts"], 2);
    assert_eq!(env.json(&["task", "list"])["tasks"], serde_json::json!([]));
}

#[test]
fn a_task_that_is_cancelled_after_an_interrupt_says_where_its_work_is() {
    let env = Environment::new();
    let args = ["task", "run", "make it right", "--json", "--agent", HALF];
    let first = env.start(&args);
    await_begun(&env, 1);
    first.signal(Signal::INT);
    assert_eq!(first.finish().code, 130);
    let cancelled = env.json(&["cancel", "task_1", "--yes"]);
    assert_eq!(cancelled["state"], "cancelled", "{cancelled:#}");
    let refs = kapi_refs(&env);
    let [rescue] = refs.as_slice() else {
        panic!("{refs:?}");
    };
    assert_eq!(env.show(rescue, "answer.txt"), "half");
    let output = cancelled["output"].as_str().unwrap();
    assert!(output.contains(rescue), "{cancelled:#}");
    assert_eq!(branches(&env), Vec::<String>::new());
    assert_eq!(leavings(&env), Vec::<PathBuf>::new());
}

#[test]
fn what_covers_a_persons_files_is_no_change_of_a_killed_attempt() {
    let env = Environment::new();
    dirty(&env);
    let args = ["task", "run", "make it right", "--json", "--agent", IDLE];
    kill_when_begun(&env, env.start(&args), 1);
    let reported = env.json(&["cleanup", "--dry-run"]);
    assert_eq!(reported["kept"], serde_json::json!([]), "{reported:#}");
    let once = env.kapi(&["up", "--once"]);
    assert_eq!(once.code, 0, "{once:?}");
    assert_eq!(kapi_refs(&env), Vec::<String>::new());
    assert_eq!(leavings(&env), Vec::<PathBuf>::new());
    assert_eq!(branches(&env), ["kapi/task_1"]);
}

/// Has every git that is started write a line; returns the file.
pub(crate) fn counted(env: &mut Environment) -> PathBuf {
    let dir = env.root().join("counted");
    let (file, program) = (dir.join("lines"), dir.join("git"));
    let path = std::env::var("PATH").unwrap();
    let real = std::env::split_paths(&path).map(|dir| dir.join("git"));
    let real = real.into_iter().find(|path| path.is_file()).unwrap();
    let script = format!(
        "#!/bin/sh\necho \"$*\" >> '{}'\nexec '{}' \"$@\"\n",
        file.display(),
        real.display()
    );
    write(&program, script);
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    env.set("PATH", &format!("{}:{path}", dir.display()));
    file
}

pub(crate) fn lines(file: &PathBuf) -> usize {
    fs::read_to_string(file).unwrap_or_default().lines().count()
}

#[test]
fn however_many_killed_attempts_there_are_they_go_with_a_few_git_processes() {
    let mut env = Environment::new();
    let file = counted(&mut env);
    dirty(&env);
    let agent = "command:echo begun; sleep 300";
    let args = ["task", "run", "x", "--again", "--agent", agent];
    let removed = |document: &Value| document["removed"].as_array().unwrap().len();
    kill_when_begun(&env, env.start(&args), 1);
    let before = lines(&file);
    let done = env.json(&["cleanup"]);
    let for_one = lines(&file) - before;
    assert_eq!(removed(&done), 1, "{done:#}");
    for n in 1..=3 {
        kill_when_begun(&env, env.start(&args), n);
    }
    let before = lines(&file);
    let done = env.json(&["cleanup"]);
    assert_eq!(removed(&done), 3, "{done:#}");
    let said = fs::read_to_string(&file).unwrap();
    assert_eq!(lines(&file) - before, for_one, "{said}");
    assert_eq!(leavings(&env), Vec::<PathBuf>::new());
    assert_eq!(kapi_refs(&env), Vec::<String>::new());
    assert_eq!(branches(&env), Vec::<String>::new());
}
