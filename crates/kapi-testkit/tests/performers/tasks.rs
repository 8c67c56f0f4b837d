//! One task: what its agent may touch, what is kept of it, and how its end is told.

use std::fs;
use std::sync::Mutex;

use kapi_core::isolation::SandboxLevel;
use kapi_machine::watch::Activity;
use kapi_task::rules::task::{End, FailureKind};
use kapi_task::rules::task_state::KernelTaskState;
use kapi_task::rules::task_terms::Retry;

use crate::asks::{failure, shell};
use crate::machine::Machine;

#[test]
fn the_work_of_a_task_is_on_a_branch_and_nothing_else_changed() {
    let machine = Machine::new();
    let mut ask = shell("echo right > answer.txt; echo did it");
    ask.verify = vec![
        "grep -q right answer.txt".to_owned(),
        "git log -1".to_owned(),
    ];
    let task = machine.run(&ask);
    assert_eq!(task.state, KernelTaskState::Completed, "{task:#?}");
    let report = task.report.as_ref().unwrap();
    assert_eq!(report.output.trim(), "did it");
    assert_eq!(report.work.branch.as_deref(), Some("kapi/task_1"));
    assert_eq!(report.work.n_files, 1);
    let commit = report.work.commit.clone().unwrap();
    assert_eq!(machine.git(&["rev-parse", "kapi/task_1"]), commit);
    assert_eq!(machine.at("kapi/task_1", "answer.txt"), "right");
    assert_eq!(machine.at("main", "answer.txt"), "wrong");
    let there = fs::read_to_string(machine.app().join("answer.txt")).unwrap();
    assert_eq!(there, "wrong\n");
    assert!(machine.transcript(&task).contains("did it"));
    let prompt = machine.prompt(&task);
    assert!(prompt.starts_with("## Kernel Awareness\n"), "{prompt}");
    assert!(
        prompt.contains("`kapi/task_1`") && prompt.contains("## Your Role"),
        "{prompt}"
    );
    assert!(prompt.contains("\n---\n\ndo it"), "{prompt}");
}

#[test]
fn of_a_task_that_completed_only_its_branch_and_its_runs_are_left() {
    let machine = Machine::new();
    let task = machine.run(&shell("echo right > answer.txt"));
    assert_eq!(machine.left(&task), ["runs"]);
    assert_eq!(
        kapi_status::perform::writer::list(&machine.setting.sandboxes.status_dir()).unwrap(),
        []
    );
    assert_eq!(machine.git(&["for-each-ref", "refs/kapi"]), "");
    assert_eq!(machine.git(&["worktree", "list"]).lines().count(), 1);
    let task = machine.run(&shell("true"));
    assert_eq!(task.report.as_ref().unwrap().work.branch, None);
    assert_eq!(machine.git(&["branch", "--list", "kapi/*"]), "kapi/task_1");
}

#[test]
fn a_read_only_profile_cannot_write_whatever_its_agent_does() {
    let machine = Machine::new();
    let mut ask = shell(
        "echo x > answer.txt && exit 9; touch new && exit 9; rm notes/keep.md && exit 9; \
         mount -o remount,rw /workspace && exit 9; cat answer.txt",
    );
    ask.agent = "oracle".to_owned();
    let task = machine.run(&ask);
    assert_eq!(task.state, KernelTaskState::Completed, "{task:#?}");
    let report = task.report.as_ref().unwrap();
    assert!(report.output.contains("wrong"), "{}", report.output);
    assert_eq!((report.work.branch.clone(), report.work.n_files), (None, 0));
    assert_eq!(machine.git(&["status", "--porcelain"]), "");
    assert_eq!(machine.git(&["branch", "--list", "kapi/*"]), "");
}

#[test]
fn an_unknown_profile_is_not_replaced_by_another() {
    let machine = Machine::new();
    let mut ask = shell("echo no");
    ask.agent = "orakle".to_owned();
    let task = machine.run(&ask);
    let failure = failure(&task);
    assert_eq!(failure.kind, FailureKind::NotLaunched);
    assert!(
        failure.message.contains("oracle, prometheus, sisyphus"),
        "{failure:?}"
    );
}

#[test]
fn what_to_do_about_a_failure_is_apart_from_what_happened() {
    let machine = Machine::new();
    let mut ask = shell("echo no");
    ask.verify = vec!["no-such-program".to_owned()];
    let task = machine.run(&ask);
    let failure = failure(&task);
    assert_eq!(failure.kind, FailureKind::NotLaunched);
    assert!(failure.message.contains("cannot run"), "{failure:?}");
    let hint = failure.hint.as_deref().unwrap();
    assert!(!failure.message.contains(hint), "{failure:?}");
}

#[test]
fn a_failed_agent_keeps_its_work_and_its_next_attempt_hears_of_it() {
    let machine = Machine::new();
    let mut ask = shell("echo half > answer.txt; exit 7");
    let task = machine.run(&ask);
    let why = failure(&task);
    assert_eq!((why.kind, why.exit_code), (FailureKind::Agent, Some(7)));
    let held = machine.held_back(&task);
    let left = format!("(1 file) is at {held}");
    assert!(why.message.contains(&left), "{why:?}");
    assert_eq!(machine.at(&held, "answer.txt"), "half");

    ask.retry = Retry {
        times: 1,
        backoff_ms: 1,
        backoff_ms_max: 1,
    };
    let task = machine.run(&ask);
    assert_eq!(
        (task.state, task.attempts),
        (KernelTaskState::Failed, 2),
        "{task:#?}"
    );
    assert_eq!(machine.at(&machine.held_back(&task), "answer.txt"), "half");
    let prompt = machine.prompt(&task);
    assert!(
        prompt.contains("```\nthe agent exited with code 7;"),
        "{prompt}"
    );
}

#[test]
fn a_verify_command_that_fails_is_the_end_and_is_shown() {
    let machine = Machine::new();
    let mut ask = shell("echo right > answer.txt; echo built > ignored.o");
    machine.write(".gitignore", "*.o\n");
    machine.commit("ignore");
    ask.verify = vec![
        "test ! -e ignored.o".to_owned(),
        "echo looked; curl -s -m 2 http://example.com || exit 3".to_owned(),
        "touch never".to_owned(),
    ];
    let task = machine.run(&ask);
    let why = failure(&task);
    assert_eq!(why.kind, FailureKind::EvalFailed);
    assert!(why.message.contains("exited with 3\nlooked"), "{why:?}");
    assert_eq!(machine.at(&machine.held_back(&task), "answer.txt"), "right");
}

#[test]
fn while_a_task_runs_its_branch_is_seen_by_its_agent_and_by_nobody_else() {
    for level in [SandboxLevel::Native, SandboxLevel::None] {
        let mut machine = Machine::new();
        machine.setting.level = level;
        let seen = Mutex::new(None);
        let ask = shell("echo right > answer.txt; git symbolic-ref HEAD; echo on $KAPI_BRANCH");
        let task = machine.run_watched(&ask, &|activity, _| {
            if matches!(activity, Activity::Text { text } if text.contains("on kapi/")) {
                let branches = machine.git(&["branch", "--all"]);
                *seen.lock().unwrap() = Some(branches);
            }
        });
        assert_eq!(task.state, KernelTaskState::Completed, "{task:#?}");
        assert_eq!(seen.lock().unwrap().as_deref(), Some("* main"), "{level:?}");
        let report = task.report.as_ref().unwrap();
        let expected = "refs/heads/kapi/task_1\non kapi/task_1";
        assert_eq!(report.output.trim(), expected);
        assert_eq!(machine.at("kapi/task_1", "answer.txt"), "right");
        assert_eq!(machine.git(&["for-each-ref", "refs/kapi"]), "");
        assert_eq!(machine.git(&["worktree", "list"]).lines().count(), 1);
    }
}

#[test]
fn what_is_held_back_and_taken_away_meanwhile_is_made_again() {
    let machine = Machine::new();
    let ask = shell("echo right > answer.txt; echo begun");
    let task = machine.run_watched(&ask, &|activity, _| {
        if matches!(activity, Activity::Text { text } if text.contains("begun")) {
            let held = ["for-each-ref", "--format=%(refname)", "refs/kapi/held"];
            machine.git(&["update-ref", "-d", &machine.git(&held)]);
        }
    });
    assert_eq!(task.state, KernelTaskState::Completed, "{task:#?}");
    assert_eq!(machine.at("kapi/task_1", "answer.txt"), "right");
    assert_eq!(machine.git(&["for-each-ref", "refs/kapi"]), "");
}

#[test]
fn a_cancelled_task_ends_with_its_whole_tree() {
    let machine = Machine::new();
    let mark = format!("{}.5", 70_000 + std::process::id());
    let line = format!("echo part > answer.txt; echo begun; (sleep {mark} & sleep {mark})");
    let task = machine.run_watched(&shell(&line), &|activity, cancel| {
        if matches!(activity, Activity::Text { text } if text.contains("begun")) {
            cancel();
        }
    });
    assert_eq!(task.state, KernelTaskState::Cancelled, "{task:#?}");
    assert_eq!(task.report.as_ref().unwrap().end, End::Cancelled);
    assert_eq!(machine.at(&machine.held_back(&task), "answer.txt"), "part");
    let left = fs::read_dir("/proc").unwrap().flatten().filter(|entry| {
        let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(&mark)
    });
    assert_eq!(left.count(), 0);
}

#[test]
fn a_project_without_git_keeps_its_changes_in_the_sandbox() {
    let machine = Machine::plain();
    machine.write("a.txt", "one\n");
    let task = machine.run(&shell("echo two > a.txt"));
    assert_eq!(task.state, KernelTaskState::Completed, "{task:#?}");
    let work = &task.report.as_ref().unwrap().work;
    assert_eq!((work.branch.clone(), work.n_files), (None, 1));
    let there = fs::read_to_string(machine.app().join("a.txt")).unwrap();
    assert_eq!(there, "one\n");
    assert!(machine.left(&task).contains(&"layer".to_owned()));
}

#[test]
fn several_at_once_do_not_get_in_each_others_way() {
    let mut machine = Machine::new();
    machine.slots = 3;
    let asks: Vec<_> = (0..5)
        .map(|n| {
            shell(&format!(
                "sleep 0.3; echo {n} > answer.txt; echo {n} > new-{n}"
            ))
        })
        .collect();
    let tasks = machine.run_all(&asks);
    assert_eq!(tasks.len(), 5);
    for (n, task) in tasks.iter().enumerate() {
        assert_eq!(task.state, KernelTaskState::Completed, "{task:#?}");
        let branch = task.report.as_ref().unwrap().work.branch.clone().unwrap();
        assert_eq!(machine.at(&branch, "answer.txt"), n.to_string());
        assert_eq!(task.report.as_ref().unwrap().work.n_files, 2);
    }
    assert_eq!(machine.git(&["for-each-ref", "refs/kapi"]), "");
}
