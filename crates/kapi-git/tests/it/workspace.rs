//! Making a workspace, finding it again after a crash, resetting and removing it.

use std::fs;
use std::path::{Path, PathBuf};

use kapi_git::id::RefPart;
use kapi_git::repository::Repository;
use kapi_git::workspace::{GitWorkspace, WorkspaceError, WorkspaceOrigin};

use crate::fixture::{BRANCH, Fixture, commit, git_in, read, shell, write};

fn check_fresh(fixture: &Fixture, workspace: &GitWorkspace) {
    assert_eq!(fixture.git(&["rev-parse", BRANCH]), fixture.base().as_str());
    assert_eq!(
        fixture.git(&["rev-parse", "refs/kapi/001-demo/base"]),
        fixture.base().as_str()
    );
    assert_eq!(read(&workspace.path.join("src/main.txt")), "one\n");
    assert_eq!(git_in(&workspace.path, &["status", "--porcelain"]), "");
    assert_eq!(
        git_in(&workspace.path, &["symbolic-ref", "HEAD"]),
        format!("refs/heads/{BRANCH}")
    );
    let worktrees = fixture.git(&["worktree", "list", "--porcelain"]);
    assert_eq!(worktrees.matches("worktree ").count(), 2, "{worktrees}");
}

#[test]
fn a_workspace_is_the_base_on_a_branch_of_its_own() {
    let fixture = Fixture::new();
    let (_, workspace) = fixture.workspace();
    assert_eq!(workspace.origin, WorkspaceOrigin::Created);
    check_fresh(&fixture, &workspace);
}

#[test]
fn making_it_again_touches_nothing_the_agent_did() {
    let fixture = Fixture::new();
    let (repository, workspace) = fixture.workspace();
    write(&workspace.path.join("src/main.txt"), "work\n");
    write(&workspace.path.join("new"), "work\n");
    let again = repository.create_workspace(&fixture.plan()).expect("again");
    assert_eq!(again.origin, WorkspaceOrigin::Adopted);
    assert_eq!(read(&workspace.path.join("src/main.txt")), "work\n");
    assert_eq!(read(&workspace.path.join("new")), "work\n");
}

#[test]
fn a_deleted_directory_is_rebuilt_and_said_to_be() {
    let fixture = Fixture::new();
    let (repository, workspace) = fixture.workspace();
    fs::remove_dir_all(&workspace.path).expect("remove");
    let again = repository.create_workspace(&fixture.plan()).expect("again");
    assert_eq!(again.origin, WorkspaceOrigin::Rebuilt);
    check_fresh(&fixture, &again);
}

#[test]
fn a_branch_of_the_persons_is_never_taken() {
    let fixture = Fixture::new();
    fixture.git(&["branch", BRANCH]);
    let error = fixture
        .open()
        .create_workspace(&fixture.plan())
        .expect_err("taken");
    assert!(
        matches!(error, WorkspaceError::BranchExists { .. }),
        "{error}"
    );
    assert_eq!(fixture.git(&["for-each-ref", "refs/kapi"]), "");
    assert!(!fixture.plan().path.exists());
}

#[test]
fn a_goal_keeps_its_base_and_its_place() {
    let fixture = Fixture::new();
    let repository = fixture.open();
    let mut plan = fixture.plan();
    write(&plan.path.join("precious"), "work");
    let error = repository.create_workspace(&plan).expect_err("occupied");
    assert!(
        matches!(error, WorkspaceError::PathOccupied { .. }),
        "{error}"
    );
    assert_eq!(read(&plan.path.join("precious")), "work");
    fs::remove_dir_all(&plan.path).expect("remove");
    repository.create_workspace(&plan).expect("workspace");
    write(&fixture.repo().join("later"), "x");
    fixture.commit("later");
    plan.base = fixture.base();
    let error = repository.create_workspace(&plan).expect_err("other base");
    assert!(matches!(error, WorkspaceError::OtherBase { .. }), "{error}");
    plan.branch = "-D".to_owned();
    let error = repository.create_workspace(&plan).expect_err("invalid");
    assert!(
        matches!(error, WorkspaceError::InvalidBranch { .. }),
        "{error}"
    );
}

/// Leaves the repository as a kill at one moment of the creation would, and creates again.
#[track_caller]
fn check_recovery(damage: impl Fn(&Fixture, &Repository)) {
    let fixture = Fixture::new();
    let repository = fixture.open();
    damage(&fixture, &repository);
    let workspace = repository
        .create_workspace(&fixture.plan())
        .expect("recovered");
    check_fresh(&fixture, &workspace);
    let candidate = commit(&repository, &workspace);
    assert_eq!(candidate.changed, []);
}

fn base_ref(fixture: &Fixture) {
    fixture.git(&["update-ref", "refs/kapi/001-demo/base", "HEAD"]);
}

fn refs(fixture: &Fixture) {
    base_ref(fixture);
    fixture.git(&["branch", BRANCH]);
}

fn admin(fixture: &Fixture) -> PathBuf {
    fixture.repo().join(".git/worktrees/001-demo")
}

fn bare_worktree(fixture: &Fixture) {
    refs(fixture);
    let path = fixture.plan().path;
    fs::create_dir_all(path.parent().expect("parent")).expect("create");
    let path = path.display().to_string();
    fixture.git(&["worktree", "add", "-q", "--no-checkout", &path, BRANCH]);
}

#[test]
fn creation_recovers_from_a_kill_between_the_refs() {
    check_recovery(|fixture, _| base_ref(fixture));
    check_recovery(|fixture, _| refs(fixture));
}

#[test]
fn creation_recovers_from_locks_a_killed_git_left() {
    check_recovery(|fixture, _| {
        write(
            &fixture.repo().join(".git/refs/kapi/001-demo/base.lock"),
            "",
        );
        write(
            &fixture
                .repo()
                .join(format!(".git/refs/heads/{BRANCH}.lock")),
            "",
        );
    });
}

#[test]
fn creation_recovers_from_every_stage_of_a_killed_worktree_add() {
    let path = |fixture: &Fixture| fixture.plan().path;
    check_recovery(|fixture, _| {
        refs(fixture);
        fs::create_dir_all(admin(fixture)).expect("create");
    });
    check_recovery(|fixture, _| {
        refs(fixture);
        write(&admin(fixture).join("locked"), "initializing\n");
        fs::create_dir_all(path(fixture)).expect("create");
    });
    check_recovery(|fixture, _| {
        refs(fixture);
        write(&admin(fixture).join("locked"), "initializing\n");
        write(&path(fixture).join(".git"), "gitdir: nonsense\n");
        let link = fs::canonicalize(path(fixture)).expect("path").join(".git");
        write(
            &admin(fixture).join("gitdir"),
            &format!("{}\n", link.display()),
        );
    });
    check_recovery(|fixture, _| {
        bare_worktree(fixture);
        write(&admin(fixture).join("locked"), "initializing\n");
    });
    check_recovery(|fixture, _| bare_worktree(fixture));
}

#[test]
fn creation_recovers_from_a_half_written_checkout() {
    check_recovery(|fixture, repository| {
        let workspace = repository
            .create_workspace(&fixture.plan())
            .expect("workspace");
        fs::remove_file(admin(fixture).join("kapi/filled")).expect("remove");
        fs::remove_file(admin(fixture).join("index")).expect("remove");
        write(&admin(fixture).join("kapi/index"), "torn");
        write(&admin(fixture).join("kapi/index.lock"), "torn");
        write(&admin(fixture).join("kapi/config"), "[core");
        write(&workspace.path.join("src/main.txt"), "o");
        fs::remove_file(workspace.path.join("README")).expect("remove");
    });
}

#[test]
fn reset_restores_the_commit_and_keeps_ignored_files() {
    let fixture = Fixture::new();
    let (repository, workspace) = fixture.workspace();
    let dir = &workspace.path;
    write(&dir.join("src/main.txt"), "two\n");
    let candidate = commit(&repository, &workspace);
    shell(
        dir,
        "rm -r tests; echo x > tests; rm README; ln -s /etc src/etc; echo y > src/main.txt
         mkdir -p build deep/er locked nested; echo cache > build/cache; echo new > deep/er/new
         mkfifo pipe deep/pipe; git init -q nested; echo n > nested/n; chmod 0 locked
         rm .git; mkdir .git; echo evil > .git/config",
    );
    repository
        .reset_workspace(&workspace, &candidate.commit)
        .expect("reset");
    assert_eq!(read(&dir.join("src/main.txt")), "two\n");
    assert_eq!(read(&dir.join("tests/check.sh")), "exit 1\n");
    assert_eq!(read(&dir.join("build/cache")), "cache\n");
    for gone in ["src/etc", "deep", "nested", "pipe", "locked"] {
        assert!(
            fs::symlink_metadata(dir.join(gone)).is_err(),
            "{gone} is still there"
        );
    }
    assert!(Path::new("/etc/passwd").exists());
    assert_eq!(git_in(dir, &["status", "--porcelain"]), "M  src/main.txt");
    repository
        .reset_workspace(&workspace, &fixture.base())
        .expect("reset to base");
    assert_eq!(git_in(dir, &["status", "--porcelain"]), "");
}

#[test]
fn two_goals_live_side_by_side() {
    let fixture = Fixture::new();
    let (repository, first) = fixture.workspace();
    let mut plan = fixture.plan();
    plan.goal = RefPart::parse("002-demo").expect("goal");
    plan.branch = "fix/goal-other".to_owned();
    // The same last component, so that git has to give the second another name.
    plan.path = fixture.root().join("elsewhere/001-demo");
    let second = repository.create_workspace(&plan).expect("second");
    write(&first.path.join("a"), "a");
    write(&second.path.join("b"), "b");
    let first = commit(&repository, &first);
    let second = commit(&repository, &second);
    assert_eq!(first.changed[0].path, PathBuf::from("a"));
    assert_eq!(second.changed[0].path, PathBuf::from("b"));
}
