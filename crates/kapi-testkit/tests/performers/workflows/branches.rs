//! The workflow's branch: made once, never somebody else's, and moved by landings alone.

use std::fs;

use kapi_workflow::rules::effect::{Verification, WorkflowAction};
use kapi_workflow::rules::outcome::WorkflowOutcome;

use super::{WorkflowRig, effect, failed, landed};

const NOTHING: &str = "turns: []\n";

#[test]
fn the_branch_is_made_once() {
    let rig = WorkflowRig::new(NOTHING);
    let (branch, worktree) = rig.prepare();
    assert_eq!(branch, "feat/ralph-demo");
    assert_eq!(rig.machine.git(&["rev-parse", &branch]), rig.base());
    let home = rig.home();
    assert!(worktree.starts_with(home.state_dir().join("worktrees").to_str().unwrap()));
    assert_eq!(
        fs::read_to_string(format!("{worktree}/answer.txt")).unwrap(),
        "wrong\n"
    );
    assert_eq!(rig.prepare(), (branch, worktree));
}

#[test]
fn a_branch_of_somebody_elses_is_not_touched() {
    let rig = WorkflowRig::new(NOTHING);
    rig.machine.git(&["branch", "feat/ralph-demo"]);
    rig.machine.git(&["branch", "feat/ralph-demo-900"]);
    let before = rig.machine.git(&["for-each-ref", "refs/heads"]);
    let (branch, worktree) = rig.prepare();
    assert_eq!(branch, "feat/ralph-demo-900-2");
    assert_eq!(rig.prepare(), (branch.clone(), worktree));
    let after = rig.machine.git(&["for-each-ref", "refs/heads"]);
    let kept: Vec<&str> = after
        .lines()
        .filter(|line| !line.ends_with(&branch))
        .collect();
    assert_eq!(kept.join("\n"), before);
}

#[test]
fn a_name_that_was_kept_before_a_crash_is_taken_up_unless_somebody_was_faster() {
    let rig = WorkflowRig::new(NOTHING);
    let kept = rig
        .project
        .layout
        .state_dir()
        .join("runs/900-demo-branch/branch");
    fs::create_dir_all(kept.parent().unwrap()).unwrap();
    rig.machine
        .write(".ilchul/runs/900-demo-branch/branch", "feat/ralph-demo-900");
    rig.machine.git(&["branch", "feat/ralph-demo-900"]);
    assert_eq!(rig.prepare().0, "feat/ralph-demo");
    assert_eq!(fs::read_to_string(kept).unwrap(), "feat/ralph-demo");
}

#[test]
fn a_landing_tells_which_paths_the_task_changed() {
    let rig = WorkflowRig::new(NOTHING);
    rig.prepare();
    let base = rig.base();
    rig.machine.git(&["checkout", "--quiet", "-b", "aside"]);
    rig.machine.write("answer.txt", "right\n");
    rig.machine.write("docs/a b.md", "new\n");
    rig.machine.commit("task");
    let commit = rig.machine.git(&["rev-parse", "HEAD"]);
    rig.machine.git(&["checkout", "--quiet", "main"]);
    for _ in 0..2 {
        let outcome = rig.perform(&rig.landing("T-001", (&commit, &base, &base)));
        let WorkflowOutcome::Landed { changed, .. } = outcome else {
            panic!("it did not land: {outcome:?}");
        };
        assert_eq!(changed.paths, ["answer.txt", "docs/a b.md"]);
        assert_eq!(changed.n_more, 0);
    }
}

#[test]
fn a_branch_that_was_moved_before_any_work_is_told_and_left() {
    let rig = WorkflowRig::new(NOTHING);
    let (branch, _) = rig.prepare();
    let other = rig
        .machine
        .git(&["commit-tree", "HEAD^{tree}", "-p", "HEAD", "-m", "mine"]);
    rig.machine
        .git(&["update-ref", &format!("refs/heads/{branch}"), &other]);
    let (message, may_pass) = failed(&rig.perform(&rig.prepare_effect("feat/ralph-demo")));
    assert!(message.contains(&other) && !may_pass, "{message}");
    let base = rig.base();
    let commit = rig
        .machine
        .git(&["commit-tree", "HEAD^{tree}", "-p", "HEAD", "-m", "task"]);
    let (message, may_pass) = failed(&rig.perform(&rig.landing("T-001", (&commit, &base, &base))));
    assert!(message.contains(&other) && !may_pass, "{message}");
    assert_eq!(rig.machine.git(&["rev-parse", &branch]), other);
}

#[test]
fn what_brings_a_moved_branch_back_is_said_and_does_it() {
    let rig = WorkflowRig::new(NOTHING);
    let (branch, worktree) = rig.prepare();
    let commit_on = |text: &str, head: &str| {
        let args = ["commit-tree", "HEAD^{tree}", "-p", head, "-m", text];
        rig.machine.git(&args)
    };
    let base = rig.base();
    let (mine, task) = (commit_on("mine", "HEAD"), commit_on("task", "HEAD"));
    rig.machine
        .git(&["-C", &worktree, "reset", "--hard", &mine]);
    let landing = rig.landing("T-001", (&task, &base, &base));
    let WorkflowOutcome::Failed { failure, .. } = rig.perform(&landing) else {
        panic!("somebody moved the branch");
    };
    let hint = failure.hint.unwrap();
    let commands: Vec<&str> = hint.split('`').skip(1).step_by(2).collect();
    assert_eq!(commands.len(), 2, "{hint}");
    for command in commands {
        let words = command.replace('\'', "");
        let args: Vec<&str> = words.split(' ').skip(1).collect();
        rig.machine.git(&args);
    }
    assert_eq!(landed(&rig.perform(&landing)).0, task);
    let kept = rig
        .machine
        .git(&["rev-parse", &format!("kept-{}", &mine[..10])]);
    assert_eq!(kept, mine);
    rig.machine
        .git(&["worktree", "remove", "--force", &worktree]);
    rig.machine.git(&["branch", "-D", &branch]);
    let WorkflowOutcome::Failed { failure, .. } = rig.perform(&landing) else {
        panic!("somebody deleted the branch");
    };
    let hint = failure.hint.unwrap();
    assert!(
        hint.contains(&format!("`git branch {branch} {base}`")),
        "{hint}"
    );
}

#[test]
fn a_worktree_follows_its_branch_unless_a_person_is_at_work_in_it() {
    let rig = WorkflowRig::new(NOTHING);
    let (_, worktree) = rig.prepare();
    let base = rig.base();
    let commit = |name: &str, parent: &str| {
        rig.machine
            .git(&["checkout", "--quiet", "--detach", parent]);
        rig.machine.write(name, "x\n");
        rig.machine.commit(name);
        let made = rig.machine.git(&["rev-parse", "HEAD"]);
        rig.machine.git(&["checkout", "--quiet", "main"]);
        made
    };
    let first = commit("one.txt", &base);
    let effect = rig.landing("T-001", (&first, &base, &base));
    for _ in 0..2 {
        assert_eq!(landed(&rig.perform(&effect)), (first.clone(), false));
    }
    assert!(fs::exists(format!("{worktree}/one.txt")).unwrap());
    assert_eq!(rig.notes(), "");
    // Another, with something of a person's in the worktree.
    let mine = format!("{worktree}/mine.txt");
    fs::copy(format!("{worktree}/one.txt"), &mine).unwrap();
    let second = commit("two.txt", &base);
    let effect = rig.landing("T-002", (&second, &base, &first));
    let (head, merged) = landed(&rig.perform(&effect));
    assert!(merged && head != second);
    assert!(rig.notes().contains("uncommitted changes"));
    assert!(!fs::exists(format!("{worktree}/two.txt")).unwrap());
    // Repeated after they took it away, it is brought into step; and a worktree that is gone comes
    // back with what the branch holds.
    fs::remove_file(mine).unwrap();
    assert_eq!(landed(&rig.perform(&effect)), (head.clone(), true));
    assert!(fs::exists(format!("{worktree}/two.txt")).unwrap());
    fs::remove_dir_all(&worktree).unwrap();
    assert_eq!(landed(&rig.perform(&effect)), (head, true));
    assert!(fs::exists(format!("{worktree}/two.txt")).unwrap());
}

#[test]
fn the_branch_is_verified_as_a_whole_on_a_clean_checkout() {
    let rig = WorkflowRig::new(NOTHING);
    let (_, worktree) = rig.prepare();
    let base = rig.base();
    // What lies in the worktree is not what is verified.
    fs::copy(
        format!("{worktree}/answer.txt"),
        format!("{worktree}/stray.txt"),
    )
    .unwrap();
    let verify = |commands: &[&str], commit: &str| {
        effect(
            "verify",
            WorkflowAction::Verify(Box::new(Verification {
                commit: commit.to_owned(),
                base: base.clone(),
                commands: commands.iter().map(|it| (*it).to_owned()).collect(),
                protect: vec!["notes/**".to_owned()],
                timeout_ms: 60_000,
                sandbox: kapi_core::isolation::SandboxLevel::Native,
            })),
        )
    };
    let commands = [
        "! test -f stray.txt",
        "git log --oneline | grep -q base",
        "exit 3",
        "true",
    ];
    for _ in 0..2 {
        let WorkflowOutcome::Verified(report) = rig.perform(&verify(&commands, &base)) else {
            panic!("it was not verified");
        };
        assert_eq!(report.commit, base);
        assert_eq!(report.tree, rig.machine.git(&["rev-parse", "main^{tree}"]));
        let codes: Vec<_> = report.runs.iter().map(|run| run.exit_code).collect();
        assert_eq!(codes, [Some(0), Some(0), Some(3), Some(0)]);
    }
    rig.machine
        .git(&["checkout", "--quiet", "--detach", "main"]);
    rig.machine.write("notes/keep.md", "tampered\n");
    rig.machine.commit("tampered");
    let tampered = rig.machine.git(&["rev-parse", "HEAD"]);
    let check = ["grep -q 'as it is' notes/keep.md"];
    let WorkflowOutcome::Verified(report) = rig.perform(&verify(&check, &tampered)) else {
        panic!("it was not verified");
    };
    assert_eq!(report.tampered, ["notes/keep.md"]);
    assert_eq!(report.runs[0].exit_code, Some(0));
}
