//! Every git command of a goal is killed, before and after it does its work, and fails for want of disk.
//!
//! A stand-in for git counts the commands that change something and kills itself, or fails, at the
//! chosen one and the next, so that running one again is not enough; then everything is done again with
//! the real git and must come out the same.

use std::fs;
use std::path::Path;

use kapi_git::checkout::CheckoutPlan;
use kapi_git::command::Git;
use kapi_git::id::CommitId;
use kapi_git::repository::Repository;
use kapi_sys::cancel::Cancel;

use crate::fixture::{BRANCH, Fixture, git_binary, git_in, shell, turn, write};

/// The most commands a goal may need; reaching it means that the count does not end.
const COMMANDS_MAX: u32 = 60;

#[derive(Clone, Copy)]
enum Kill {
    Before,
    After,
    DiskIsFull,
}

fn stand_in(fixture: &Fixture, kill: Kill, at: u32) -> Git {
    let real = git_binary().display().to_string();
    let root = fixture.root().display().to_string();
    let (before, after) = match kill {
        Kill::Before => ("kill -9 $$", ""),
        Kill::After => ("", "kill -9 $$"),
        Kill::DiskIsFull => (
            "echo 'fatal: unable to write file: No space left on device' >&2; exit 128",
            "",
        ),
    };
    let next = at + 1;
    let script = format!(
        "#!/bin/sh
         case $2 in update-ref|worktree|read-tree|update-index|write-tree|commit-tree|clean)
           echo x >> '{root}/count'
           N=$(wc -l < '{root}/count')
           if [ $N -eq {at} ] || [ $N -eq {next} ]; then
             {before}
             '{real}' \"$@\"
             {after}
           fi;;
         esac
         exec '{real}' \"$@\"\n"
    );
    write(&fixture.root().join("git"), &script);
    shell(fixture.root(), "chmod +x git; rm -f count");
    Git::open(&fixture.root().join("git"), &Cancel::new()).expect("stand-in")
}

/// Does all of a goal, in an order of its own; the agent's part comes between.
fn goal(fixture: &Fixture, git: &Git) -> Result<CommitId, String> {
    fn text(error: impl std::fmt::Display) -> String {
        error.to_string()
    }
    let repository = Repository::discover(git, &fixture.repo()).map_err(text)?;
    let plan = fixture.plan();
    let workspace = repository.create_workspace(&plan).map_err(text)?;
    shell(&workspace.path, "rm -f README; echo junk > junk");
    repository
        .reset_workspace(&workspace, &plan.base)
        .map_err(text)?;
    shell(
        &workspace.path,
        "echo two > src/main.txt; rm README; echo n > new; rm -r tests",
    );
    let candidate = repository
        .commit_candidate(&workspace, &turn(1))
        .map_err(text)?;
    let to = fixture.root().join("clean");
    let protect = ["tests/**".to_owned()];
    let (commit, base) = (&candidate.commit, &plan.base);
    let checkout = CheckoutPlan {
        commit,
        base,
        protect: &protect,
        to: &to,
    };
    repository.checkout(&checkout).map_err(text)?;
    shell(&to, "rm -rf tests; echo x > tests");
    repository.restore_protected(&checkout).map_err(text)?;
    repository.publish(&workspace, commit).map_err(text)?;
    Ok(candidate.commit)
}

fn check_every_kill(kill: Kill) {
    let mut expected = None;
    for at in 1..COMMANDS_MAX {
        let fixture = Fixture::new();
        // The same commit id in every fixture, so that results can be compared.
        fixture.git(&["commit", "-q", "--amend", "--no-edit", "--date=@1 +0000"]);
        let killed = goal(&fixture, &stand_in(&fixture, kill, at));
        let commit = goal(&fixture, &crate::fixture::git())
            .unwrap_or_else(|error| panic!("after a kill at command {at} ({killed:?}): {error}"));
        let tree = fixture.git(&["rev-parse", &format!("{commit}^{{tree}}")]);
        assert_eq!(*expected.get_or_insert(tree.clone()), tree, "kill at {at}");
        check_end(&fixture, &commit, at);
        if killed.is_ok() {
            let counted = fs::read_to_string(fixture.root().join("count")).unwrap_or_default();
            let n_counted = counted.lines().count();
            assert!(
                n_counted > 10 && n_counted < at as usize,
                "{n_counted}, {at}"
            );
            return;
        }
    }
    panic!("more than {COMMANDS_MAX} commands");
}

fn check_end(fixture: &Fixture, commit: &CommitId, at: u32) {
    let path = fixture.plan().path;
    assert_eq!(
        fixture.git(&["rev-parse", BRANCH]),
        commit.as_str(),
        "kill at {at}"
    );
    assert_eq!(
        fixture.git(&["rev-list", "--count", &format!("HEAD..{BRANCH}")]),
        "1"
    );
    assert_eq!(
        git_in(&path, &["status", "--porcelain"]),
        "",
        "kill at {at}"
    );
    assert_eq!(
        shell(&path, "cat src/main.txt new; ls"),
        "two\nn\nnew\nsrc",
        "kill at {at}"
    );
    assert_eq!(
        shell(&fixture.root().join("clean"), "cat tests/check.sh"),
        "exit 1"
    );
    let refs = fixture.git(&["for-each-ref", "--format=%(refname)"]);
    let expected = format!(
        "refs/heads/{BRANCH}\nrefs/heads/main\nrefs/kapi/001-demo/base\nrefs/kapi/001-demo/turn-1"
    );
    assert_eq!(refs, expected, "kill at {at}");
    assert_eq!(
        n_entries(&fixture.repo().join(".git/worktrees")),
        1,
        "kill at {at}"
    );
    assert_eq!(fixture.git(&["fsck", "--no-dangling"]), "", "kill at {at}");
}

fn n_entries(dir: &Path) -> usize {
    fs::read_dir(dir).expect("list").count()
}

#[test]
fn a_kill_before_any_command_is_repaired_by_doing_it_again() {
    check_every_kill(Kill::Before);
}

#[test]
fn a_full_disk_at_any_command_loses_nothing() {
    check_every_kill(Kill::DiskIsFull);
}

#[test]
fn a_kill_after_any_command_is_repaired_by_doing_it_again() {
    check_every_kill(Kill::After);
}
