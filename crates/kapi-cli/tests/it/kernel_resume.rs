//! A task whose worker is lost goes on where it stood: what its agent finished is adopted and proved,
//! and the agent is not run, and not paid for, again.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::process::Signal;
use serde_json::json;

use crate::environment::{Environment, for_each, write};
use crate::kernel_leavings::{attempts, leavings, rescues};
use crate::kernel_task::branches;

/// Does the work, and says so.
const WORKER: &str = "command:echo 42 > answer.txt; echo it ran";
/// Begins, and waits to be ended; the next attempt does the work.
const HALF: &str = "command:if grep -q 'did not finish' \"$KAPI_PROMPT_FILE\"; then echo 42 > answer.txt; else echo half > answer.txt; echo begun; sleep 300; fi";

/// The git processes after an agent has ended.
pub(crate) struct GitCalls {
    /// With a file for each, called by its number.
    directory: PathBuf,
}

impl GitCalls {
    /// Returns the arguments of each.
    pub(crate) fn said(&self) -> Vec<String> {
        let files = (1..).map(|n: usize| self.directory.join(n.to_string()));
        files
            .map_while(|file| fs::read_to_string(file).ok())
            .collect()
    }
}

/// Has the worker killed at the so-and-so-manieth git process after its agent has ended; at none
/// where that is 0.
fn killed_at(env: &mut Environment, n: usize) -> GitCalls {
    git_call_does(env, n, "kill -KILL $PPID")
}

/// Has the worker interrupted there: the process ends when the worker has seen that, and ends it.
fn interrupted_at(env: &mut Environment, n: usize) -> GitCalls {
    git_call_does(env, n, "kill -INT $PPID; sleep 120")
}

/// Has a line of shell run at the so-and-so-manieth git process after the agent has ended.
pub(crate) fn git_call_does(env: &mut Environment, n: usize, line: &str) -> GitCalls {
    git_does(env, &format!("[ $CALLS = {n} ]"), line)
}

/// Has a line of shell run at each git process after the agent has ended for which a condition holds:
/// of its arguments, and of `CALLS`, its number.
fn git_does(env: &mut Environment, condition: &str, line: &str) -> GitCalls {
    let dir = env.root().join("git");
    let (directory, program) = (dir.join("calls"), dir.join("git"));
    fs::create_dir_all(&directory).unwrap();
    let path = std::env::var("PATH").unwrap();
    let real = std::env::split_paths(&path).map(|dir| dir.join("git"));
    let real = real.into_iter().find(|path| path.is_file()).unwrap();
    let state = env.home().join(".ilchul/sandboxes");
    let log = env.repository().join(".ilchul/kernel/events.jsonl");
    // Two that run at once have a number each: a file is made once.
    let script = format!(
        "#!/bin/sh\n\
         if grep -qs '\"agent_ended\"' '{state}'/*/*/events.jsonl || grep -qs '\"execute\"' '{log}'; then\n\
         CALLS=1\n\
         set -C\n\
         until {{ echo \"$*\" > '{directory}'/$CALLS; }} 2>/dev/null; do CALLS=$((CALLS + 1)); done\n\
         set +C\n\
         if {condition}; then {line}; fi\n\
         fi\n\
         exec '{real}' \"$@\"\n",
        state = state.display(),
        log = log.display(),
        directory = directory.display(),
        real = real.display(),
    );
    write(&program, script);
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    env.set("PATH", &format!("{}:{path}", dir.display()));
    GitCalls { directory }
}

/// Returns how often the agent ran.
fn agent_runs(env: &Environment) -> usize {
    let transcripts = attempts(env).into_iter();
    let texts = transcripts.map(|dir| fs::read_to_string(dir.join("runs/1/transcript.jsonl")));
    texts
        .map(|text| text.unwrap_or_default().matches("it ran").count())
        .sum()
}

fn run(env: &Environment, agent: &str) -> i32 {
    let args = ["task", "run", "make it right", "--verify", "sh test.sh"];
    env.kapi(&[&args[..], &["--json", "--agent", agent]].concat())
        .code
}

/// Has the next worker do what a killed one left. Where that one made a git process less than was
/// counted, the next is killed at it instead, and one more takes over.
fn take_over(env: &Environment, case: &str) {
    let mut once = env.kapi(&["up", "--once"]);
    if once.code == -1 {
        env.await_no_process();
        once = env.kapi(&["up", "--once"]);
    }
    assert_eq!(once.code, 0, "{case}: {once:?}");
}

/// Checks that the task is done, by one run of its agent, and that nothing else is left.
fn assert_done_once(env: &Environment, case: &str) {
    let shown = env.json(&["show", "task_1"]);
    assert_eq!(shown["state"], "completed", "{case}: {shown:#}");
    assert_eq!(agent_runs(env), 1, "{case}: {shown:#}");
    assert_eq!(branches(env), ["kapi/task_1"], "{case}: {shown:#}");
    assert_eq!(env.show("kapi/task_1", "answer.txt"), "42", "{case}");
    assert_eq!(shown["work"]["branch"], "kapi/task_1", "{case}: {shown:#}");
    let phases = shown["phases"].as_array().unwrap().iter();
    let phases: Vec<&str> = phases.map(|it| it["phase"].as_str().unwrap()).collect();
    assert_eq!(phases, ["execute", "evaluate"], "{case}: {shown:#}");
    assert_eq!(leavings(env), Vec::<PathBuf>::new(), "{case}");
    assert_eq!(rescues(env), Vec::<String>::new(), "{case}");
    let audit = env.kapi(&["audit"]);
    assert_eq!(audit.code, 0, "{case}: {audit:?}");
}

#[test]
fn finished_work_is_adopted_wherever_its_worker_was_killed() {
    let mut env = Environment::new();
    let git = killed_at(&mut env, 0);
    assert_eq!(run(&env, WORKER), 0);
    let calls = git.said();
    assert_done_once(&env, "not killed");
    assert!(calls.len() > 10, "{calls:?}");
    // The last takes away what held the work back that is on its branch.
    let all = (1..calls.len()).step_by(2).chain([calls.len()]);
    let cases: Vec<usize> = all.collect();
    for_each(&cases, |n| {
        let case = format!("killed at {n}: {}", calls[n - 1]);
        let mut env = Environment::new();
        killed_at(&mut env, *n);
        run(&env, WORKER);
        env.await_no_process();
        take_over(&env, &case);
        assert_done_once(&env, &case);
    });
}

/// Does the work in two commits of its own and leaves a file, and says so.
const STEPS: &str = "command:echo 41 > answer.txt; git commit -qam first; echo 42 > answer.txt; \
     git commit -qam second; echo later > notes.txt; echo it ran";

#[test]
fn an_agents_own_commits_are_kept_wherever_its_worker_was_killed() {
    let keep = |env: &Environment| {
        let args = ["task", "run", "make it right", "--verify", "sh test.sh"];
        let options = ["--keep-commits", "--json", "--agent", STEPS];
        env.kapi(&[&args[..], &options].concat()).code
    };
    let subjects = |env: &Environment| env.git(&["log", "--format=%s", "main..kapi/task_1"]);
    let expected = "make it right\nsecond\nfirst";
    let mut env = Environment::new();
    let git = killed_at(&mut env, 0);
    assert_eq!(keep(&env), 0);
    let calls = git.said();
    assert_eq!(subjects(&env).trim(), expected);
    let cases: Vec<usize> = (1..=calls.len()).step_by(4).collect();
    for_each(&cases, |n| {
        let case = format!("killed at {n}: {}", calls[n - 1]);
        let mut env = Environment::new();
        killed_at(&mut env, *n);
        keep(&env);
        env.await_no_process();
        take_over(&env, &case);
        assert_done_once(&env, &case);
        assert_eq!(subjects(&env).trim(), expected, "{case}");
    });
}

#[test]
fn what_an_earlier_version_noted_of_a_finished_agent_is_adopted() {
    let mut env = Environment::new();
    killed_at(&mut env, 1);
    run(&env, WORKER);
    env.await_no_process();
    let dir = attempts(&env).pop().unwrap();
    let log = fs::read_to_string(dir.join("events.jsonl")).unwrap();
    // That version had a note where this one has two records.
    let lines: Vec<&str> = log.lines().collect();
    let (before, ended) = lines.split_at(lines.len() - 2);
    assert!(ended[0].contains("run_recorded") && ended[1].contains("agent_ended"));
    write(&dir.join("events.jsonl"), before.join("\n") + "\n");
    let note = json!({
        "launch": 1, "message": "it ran", "grade": null,
        "usage": {"input_tokens": 0, "output_tokens": 0},
    });
    write(&dir.join("ended.json"), note.to_string());
    let once = env.kapi(&["up", "--once"]);
    assert_eq!(once.code, 0, "{once:?}");
    assert_done_once(&env, "noted by an earlier version");
}

#[test]
fn a_git_process_that_is_killed_costs_no_work_and_no_second_run() {
    let mut env = Environment::new();
    let git = git_call_does(&mut env, 0, "kill -KILL $$");
    assert_eq!(run(&env, WORKER), 0);
    let calls = git.said();
    let cases: Vec<usize> = (1..=calls.len()).collect();
    for_each(&cases, |n| {
        let case = format!("killed at {n}: {}", calls[n - 1]);
        let mut env = Environment::new();
        git_call_does(&mut env, *n, "kill -KILL $$");
        assert_eq!(
            run(&env, WORKER),
            0,
            "{case}: {:#}",
            env.json(&["show", "task_1"])
        );
        // What could not be taken away then, the next worker takes away.
        let once = env.kapi(&["up", "--once"]);
        assert_eq!(once.code, 0, "{case}: {once:?}");
        assert_done_once(&env, &case);
    });
}

/// Runs a task whose agent may be run a second time.
fn run_twice_at_most(env: &Environment, case: &str) {
    let args = ["task", "run", "make it right", "--json", "--agent", WORKER];
    let retries = ["--retries", "1", "--backoff", "1s"];
    let output = env.kapi(&[&args[..], &retries].concat());
    assert_eq!(output.code, 0, "{case}: {output:?}");
}

/// Returns the condition under which a git process fails, and the commit that is made once more, too.
fn fails_twice(n: usize) -> String {
    format!("[ $CALLS -ge {n} ] && [ $CALLS -le $(({n} + 2)) ]")
}

#[test]
fn work_that_could_not_be_committed_is_kept_when_it_is_done_again() {
    let mut env = Environment::new();
    let git = git_call_does(&mut env, 0, "exit 1");
    run_twice_at_most(&env, "nothing fails");
    let calls = git.said();
    assert!(calls.len() > 5, "{calls:?}");
    let cases: Vec<usize> = (1..=calls.len()).collect();
    let kept = AtomicUsize::new(0);
    for_each(&cases, |n| {
        let case = format!("failed at {n}: {}", calls[n - 1]);
        let mut env = Environment::new();
        git_does(&mut env, &fails_twice(*n), "exit 1");
        run_twice_at_most(&env, &case);
        // What could not be taken away then, the next worker takes away.
        let once = env.kapi(&["up", "--once"]);
        assert_eq!(once.code, 0, "{case}: {once:?}");
        assert_eq!(branches(&env), ["kapi/task_1"], "{case}");
        assert_eq!(env.show("kapi/task_1", "answer.txt"), "42", "{case}");
        assert_eq!(leavings(&env), Vec::<PathBuf>::new(), "{case}");
        let rescues = rescues(&env);
        assert_eq!(rescues.len(), agent_runs(&env) - 1, "{case}: {rescues:?}");
        kept.fetch_add(rescues.len(), Ordering::Relaxed);
    });
    assert!(kept.into_inner() > 0, "nothing failed to be committed");
}

#[test]
fn what_an_attempt_left_that_could_not_be_cleared_goes_with_the_next_worker() {
    let mut env = Environment::new();
    let git = git_call_does(&mut env, 0, "exit 1");
    run_twice_at_most(&env, "nothing fails");
    let calls = git.said();
    let commit = calls.iter().position(|said| said.contains("cat-file"));
    let n = commit.unwrap() + 1;
    let mut env = Environment::new();
    let mended = env.root().join("mended");
    // The commit fails once, and keeping what it was to hold until somebody mends it.
    let condition = format!(
        "[ ! -e '{}' ] && {{ {} || case \"$*\" in *'log --no-walk'*) true;; *) false;; esac; }}",
        mended.display(),
        fails_twice(n)
    );
    git_does(&mut env, &condition, "exit 1");
    run_twice_at_most(&env, "it cannot be kept");
    assert_eq!(agent_runs(&env), 2);
    assert!(!leavings(&env).is_empty(), "nothing was left");
    write(&mended, "");
    let once = env.kapi(&["up", "--once"]);
    assert_eq!(once.code, 0, "{once:?}");
    assert_eq!(leavings(&env), Vec::<PathBuf>::new());
    let rescues = rescues(&env);
    let [rescue] = rescues.as_slice() else {
        panic!("{rescues:?}");
    };
    assert_eq!(env.show(rescue, "answer.txt"), "42");
}

#[test]
fn an_interrupt_while_it_verifies_costs_no_second_run() {
    let mut env = Environment::new();
    let git = interrupted_at(&mut env, 0);
    assert_eq!(run(&env, WORKER), 0);
    let said = git.said();
    let n_calls = said.len();
    // At the last the work is proved, and gets its branch.
    let cases = [n_calls / 2, n_calls - 2];
    for_each(&cases, |n| {
        let mut env = Environment::new();
        interrupted_at(&mut env, *n);
        assert_eq!(run(&env, WORKER), 130, "{n}: {said:?}");
        let waiting = env.json(&["show", "task_1"]);
        assert_eq!(waiting["status"], "queued", "{n}: {waiting:#}");
        assert_eq!(waiting["phase"], "evaluate", "{n}: {waiting:#}");
        assert_eq!(run(&env, WORKER), 0, "{n}");
        assert_done_once(&env, &format!("interrupted at {n}"));
    });
}

#[test]
fn what_an_interrupted_agent_had_done_is_kept_and_its_task_has_one_branch() {
    let env = Environment::new();
    let args = ["task", "run", "make it right", "--json", "--agent", HALF];
    let first = env.start(&args);
    crate::kernel_leavings::await_begun(&env, 1);
    first.signal(Signal::INT);
    assert_eq!(first.finish().code, 130);
    let waiting = env.json(&["show", "task_1"]);
    let why = waiting["retry_cause"].as_str().unwrap();
    assert!(
        why.contains("its work so far (1 file) is at refs/kapi/held/"),
        "{waiting:#}"
    );
    let held = why.split(' ').next_back().unwrap();
    assert_eq!(env.show(held, "answer.txt"), "half");
    assert_eq!(branches(&env), Vec::<String>::new());
    let again = env.kapi(&args);
    assert_eq!(again.code, 0, "{again:?}");
    assert_eq!(branches(&env), ["kapi/task_1"]);
    assert_eq!(env.show("kapi/task_1", "answer.txt"), "42");
    let rescues = rescues(&env);
    let [rescue] = rescues.as_slice() else {
        panic!("{rescues:?}");
    };
    assert_eq!(env.show(rescue, "answer.txt"), "half");
    let shown = env.json(&["show", "task_1"]);
    assert!(
        shown["output"].as_str().unwrap().contains(rescue),
        "{shown:#}"
    );
    assert_eq!(leavings(&env), Vec::<PathBuf>::new());
}

#[test]
fn a_branch_of_somebody_else_is_left_alone() {
    let env = Environment::new();
    env.git(&["branch", "kapi/task_1"]);
    env.git(&["checkout", "--quiet", "kapi/task_1"]);
    env.write("mine.txt", "mine\n");
    env.commit_all("task_1 by hand");
    // As that of another queue, which is gone: its tasks had the same numbers.
    let date = "--date=2020-01-01T00:00:00Z";
    env.git(&["commit", "--quiet", "--amend", "--no-edit", date]);
    env.git(&["checkout", "--quiet", "main"]);
    let mine = env.commit_of("kapi/task_1");
    let args = ["task", "run", "make it right", "--json", "--agent", HALF];
    let first = env.start(&args);
    crate::kernel_leavings::await_begun(&env, 1);
    first.kill();
    env.await_no_process();
    assert_eq!(env.kapi(&["up", "--once"]).code, 0);
    assert_eq!(env.commit_of("kapi/task_1"), mine);
    let shown = env.json(&["show", "task_1"]);
    let branch = shown["work"]["branch"].as_str().unwrap();
    assert!(branch.starts_with("kapi/task_1-"), "{shown:#}");
    assert_eq!(branches(&env), ["kapi/task_1", branch]);
    assert_eq!(
        (&shown["losses"], &shown["attempts"]),
        (&json!(1), &json!(2))
    );
}

#[test]
fn a_loops_run_goes_on_with_an_agent_that_had_finished_unrecorded() {
    let machine = |n: usize| {
        let mut env = Environment::new();
        env.configure(&format!("[kernel]\ndefault_backend = {WORKER:?}\n"));
        env.write(
            ".pi/loops/fix.md",
            "---\nname: fix\nworkspace: branch\nverify: [sh test.sh]\n---\nMake it right.\n",
        );
        let git = killed_at(&mut env, n);
        env.kapi(&["loop", "run", "fix", "--json"]);
        env.await_no_process();
        (env, git)
    };
    let (env, git) = machine(0);
    let n_calls = git.said().len();
    assert_eq!(branches(&env), ["kapi/fix-task_1"]);
    for_each(&[1, 2, 3, n_calls / 2, n_calls], |n| {
        let (env, _) = machine(*n);
        take_over(&env, &n.to_string());
        let shown = env.json(&["show", "task_1"]);
        assert_eq!(shown["state"], "completed", "{n}: {shown:#}");
        assert_eq!(agent_runs(&env), 1, "{n}: {shown:#}");
        assert_eq!(branches(&env), ["kapi/fix-task_1"], "{n}");
        assert_eq!(shown["phases"].as_array().map(Vec::len), Some(8), "{n}");
        assert_eq!(leavings(&env), Vec::<PathBuf>::new(), "{n}");
    });
}
