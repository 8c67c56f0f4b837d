//! The workflow's branch: made once, never somebody else's, and moved by landings alone.

use std::fs;

use kapi_workflow::rules::effect::{Action, Verification};
use kapi_workflow::rules::outcome::Outcome;

use super::{Bench, effect, failed, landed};

const NOTHING: &str = "turns: []\n";

#[test]
fn the_branch_is_made_once() {
    let bench = Bench::new(NOTHING);
    let (branch, worktree) = bench.prepare();
    assert_eq!(branch, "feat/ralph-demo");
    assert_eq!(bench.machine.git(&["rev-parse", &branch]), bench.base());
    let home = bench.home();
    assert!(worktree.starts_with(home.state_dir().join("worktrees").to_str().unwrap()));
    assert_eq!(
        fs::read_to_string(format!("{worktree}/answer.txt")).unwrap(),
        "wrong\n"
    );
    assert_eq!(bench.prepare(), (branch, worktree));
}

#[test]
fn a_branch_of_somebody_elses_is_not_touched() {
    let bench = Bench::new(NOTHING);
    bench.machine.git(&["branch", "feat/ralph-demo"]);
    bench.machine.git(&["branch", "feat/ralph-demo-900"]);
    let before = bench.machine.git(&["for-each-ref", "refs/heads"]);
    let (branch, worktree) = bench.prepare();
    assert_eq!(branch, "feat/ralph-demo-900-2");
    assert_eq!(bench.prepare(), (branch.clone(), worktree));
    let after = bench.machine.git(&["for-each-ref", "refs/heads"]);
    let kept: Vec<&str> = after
        .lines()
        .filter(|line| !line.ends_with(&branch))
        .collect();
    assert_eq!(kept.join("\n"), before);
}

#[test]
fn a_name_that_was_kept_before_a_crash_is_taken_up_unless_somebody_was_faster() {
    let bench = Bench::new(NOTHING);
    let kept = bench
        .project
        .layout
        .state_dir()
        .join("runs/900-demo-branch/branch");
    fs::create_dir_all(kept.parent().unwrap()).unwrap();
    bench
        .machine
        .write(".ilchul/runs/900-demo-branch/branch", "feat/ralph-demo-900");
    bench.machine.git(&["branch", "feat/ralph-demo-900"]);
    assert_eq!(bench.prepare().0, "feat/ralph-demo");
    assert_eq!(fs::read_to_string(kept).unwrap(), "feat/ralph-demo");
}

#[test]
fn a_landing_tells_which_paths_the_task_changed() {
    let bench = Bench::new(NOTHING);
    bench.prepare();
    let base = bench.base();
    bench.machine.git(&["checkout", "--quiet", "-b", "aside"]);
    bench.machine.write("answer.txt", "right\n");
    bench.machine.write("docs/a b.md", "new\n");
    bench.machine.commit("task");
    let commit = bench.machine.git(&["rev-parse", "HEAD"]);
    bench.machine.git(&["checkout", "--quiet", "main"]);
    for _ in 0..2 {
        let outcome = bench.perform(&bench.landing("T-001", (&commit, &base, &base)));
        let Outcome::Landed { changed, .. } = outcome else {
            panic!("it did not land: {outcome:?}");
        };
        assert_eq!(changed.paths, ["answer.txt", "docs/a b.md"]);
        assert_eq!(changed.n_more, 0);
    }
}

#[test]
fn a_branch_that_was_moved_before_any_work_is_told_and_left() {
    let bench = Bench::new(NOTHING);
    let (branch, _) = bench.prepare();
    let other = bench
        .machine
        .git(&["commit-tree", "HEAD^{tree}", "-p", "HEAD", "-m", "mine"]);
    bench
        .machine
        .git(&["update-ref", &format!("refs/heads/{branch}"), &other]);
    let (message, may_pass) = failed(&bench.perform(&bench.prepare_effect("feat/ralph-demo")));
    assert!(message.contains(&other) && !may_pass, "{message}");
    let base = bench.base();
    let commit = bench
        .machine
        .git(&["commit-tree", "HEAD^{tree}", "-p", "HEAD", "-m", "task"]);
    let (message, may_pass) =
        failed(&bench.perform(&bench.landing("T-001", (&commit, &base, &base))));
    assert!(message.contains(&other) && !may_pass, "{message}");
    assert_eq!(bench.machine.git(&["rev-parse", &branch]), other);
}

#[test]
fn what_brings_a_moved_branch_back_is_said_and_does_it() {
    let bench = Bench::new(NOTHING);
    let (branch, worktree) = bench.prepare();
    let commit_on = |text: &str, head: &str| {
        let args = ["commit-tree", "HEAD^{tree}", "-p", head, "-m", text];
        bench.machine.git(&args)
    };
    let base = bench.base();
    let (mine, task) = (commit_on("mine", "HEAD"), commit_on("task", "HEAD"));
    bench
        .machine
        .git(&["-C", &worktree, "reset", "--hard", &mine]);
    let landing = bench.landing("T-001", (&task, &base, &base));
    let Outcome::Failed { failure, .. } = bench.perform(&landing) else {
        panic!("somebody moved the branch");
    };
    let hint = failure.hint.unwrap();
    let commands: Vec<&str> = hint.split('`').skip(1).step_by(2).collect();
    assert_eq!(commands.len(), 2, "{hint}");
    for command in commands {
        let words = command.replace('\'', "");
        let args: Vec<&str> = words.split(' ').skip(1).collect();
        bench.machine.git(&args);
    }
    assert_eq!(landed(&bench.perform(&landing)).0, task);
    let kept = bench
        .machine
        .git(&["rev-parse", &format!("kept-{}", &mine[..10])]);
    assert_eq!(kept, mine);
    bench
        .machine
        .git(&["worktree", "remove", "--force", &worktree]);
    bench.machine.git(&["branch", "-D", &branch]);
    let Outcome::Failed { failure, .. } = bench.perform(&landing) else {
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
    let bench = Bench::new(NOTHING);
    let (_, worktree) = bench.prepare();
    let base = bench.base();
    let commit = |name: &str, parent: &str| {
        bench
            .machine
            .git(&["checkout", "--quiet", "--detach", parent]);
        bench.machine.write(name, "x\n");
        bench.machine.commit(name);
        let made = bench.machine.git(&["rev-parse", "HEAD"]);
        bench.machine.git(&["checkout", "--quiet", "main"]);
        made
    };
    let first = commit("one.txt", &base);
    let effect = bench.landing("T-001", (&first, &base, &base));
    for _ in 0..2 {
        assert_eq!(landed(&bench.perform(&effect)), (first.clone(), false));
    }
    assert!(fs::exists(format!("{worktree}/one.txt")).unwrap());
    assert_eq!(bench.notes(), "");
    // Another, with something of a person's in the worktree.
    let mine = format!("{worktree}/mine.txt");
    fs::copy(format!("{worktree}/one.txt"), &mine).unwrap();
    let second = commit("two.txt", &base);
    let effect = bench.landing("T-002", (&second, &base, &first));
    let (head, merged) = landed(&bench.perform(&effect));
    assert!(merged && head != second);
    assert!(bench.notes().contains("uncommitted changes"));
    assert!(!fs::exists(format!("{worktree}/two.txt")).unwrap());
    // Repeated after they took it away, it is brought into step; and a worktree that is gone comes
    // back with what the branch holds.
    fs::remove_file(mine).unwrap();
    assert_eq!(landed(&bench.perform(&effect)), (head.clone(), true));
    assert!(fs::exists(format!("{worktree}/two.txt")).unwrap());
    fs::remove_dir_all(&worktree).unwrap();
    assert_eq!(landed(&bench.perform(&effect)), (head, true));
    assert!(fs::exists(format!("{worktree}/two.txt")).unwrap());
}

#[test]
fn the_branch_is_verified_as_a_whole_on_a_clean_checkout() {
    let bench = Bench::new(NOTHING);
    let (_, worktree) = bench.prepare();
    let base = bench.base();
    // What lies in the worktree is not what is verified.
    fs::copy(
        format!("{worktree}/answer.txt"),
        format!("{worktree}/stray.txt"),
    )
    .unwrap();
    let verify = |commands: &[&str], commit: &str| {
        effect(
            "verify",
            Action::Verify(Box::new(Verification {
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
        let Outcome::Verified(report) = bench.perform(&verify(&commands, &base)) else {
            panic!("it was not verified");
        };
        assert_eq!(report.commit, base);
        assert_eq!(
            report.tree,
            bench.machine.git(&["rev-parse", "main^{tree}"])
        );
        let codes: Vec<_> = report.runs.iter().map(|run| run.exit_code).collect();
        assert_eq!(codes, [Some(0), Some(0), Some(3), Some(0)]);
    }
    bench
        .machine
        .git(&["checkout", "--quiet", "--detach", "main"]);
    bench.machine.write("notes/keep.md", "tampered\n");
    bench.machine.commit("tampered");
    let tampered = bench.machine.git(&["rev-parse", "HEAD"]);
    let check = ["grep -q 'as it is' notes/keep.md"];
    let Outcome::Verified(report) = bench.perform(&verify(&check, &tampered)) else {
        panic!("it was not verified");
    };
    assert_eq!(report.tampered, ["notes/keep.md"]);
    assert_eq!(report.runs[0].exit_code, Some(0));
}
