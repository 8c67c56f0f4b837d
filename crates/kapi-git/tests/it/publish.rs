//! Moving the branch, once, and only if it is where it was left.

use kapi_git::candidate::Candidate;
use kapi_git::publish::PublishError;

use crate::fixture::{BRANCH, Fixture, commit, git_in, shell, turn, write};

#[test]
fn publishing_moves_the_branch_and_leaves_a_clean_worktree() {
    let fixture = Fixture::new();
    let (repository, workspace) = fixture.workspace();
    shell(
        &workspace.path,
        "echo two > src/main.txt; rm README; echo n > new; mkdir build; echo b > build/b",
    );
    let candidate = commit(&repository, &workspace);
    for _ in 0..2 {
        repository
            .publish(&workspace, &candidate.commit)
            .expect("publish");
        assert_eq!(
            fixture.git(&["rev-parse", BRANCH]),
            candidate.commit.as_str()
        );
        assert_eq!(git_in(&workspace.path, &["status", "--porcelain"]), "");
        assert_eq!(
            git_in(&workspace.path, &["rev-parse", "HEAD"]),
            candidate.commit.as_str()
        );
    }
    // A person who goes on to another branch there keeps their index.
    git_in(&workspace.path, &["checkout", "-q", "-b", "mine"]);
    write(&workspace.path.join("staged"), "s");
    git_in(&workspace.path, &["add", "staged"]);
    repository
        .publish(&workspace, &candidate.commit)
        .expect("publish");
    assert_eq!(
        git_in(&workspace.path, &["status", "--porcelain"]),
        "A  staged"
    );
    git_in(&workspace.path, &["rm", "-q", "-f", "staged"]);
    // The workspace stays usable: what comes later still starts at the base.
    let again = commit(&repository, &workspace);
    assert_eq!(again, candidate);
}

#[test]
fn a_branch_that_somebody_moved_is_left_alone() {
    let fixture = Fixture::new();
    let (repository, workspace) = fixture.workspace();
    write(&workspace.path.join("new"), "n");
    let candidate = commit(&repository, &workspace);
    let other = fixture.git(&["commit-tree", "HEAD^{tree}", "-p", "HEAD", "-m", "mine"]);
    fixture.git(&["update-ref", &format!("refs/heads/{BRANCH}"), &other]);
    let error = repository
        .publish(&workspace, &candidate.commit)
        .expect_err("moved");
    assert!(
        matches!(
            error,
            PublishError::BranchMoved {
                actual: Some(_),
                ..
            }
        ),
        "{error}"
    );
    assert_eq!(fixture.git(&["rev-parse", BRANCH]), other);
    fixture.git(&["update-ref", "-d", &format!("refs/heads/{BRANCH}")]);
    let error = repository
        .publish(&workspace, &candidate.commit)
        .expect_err("gone");
    assert!(
        matches!(error, PublishError::BranchMoved { actual: None, .. }),
        "{error}"
    );
    assert!(repository.branch_is_free(BRANCH).expect("asked"));
}

#[test]
fn a_branch_without_the_goals_ref_is_not_ours() {
    let fixture = Fixture::new();
    let (repository, workspace) = fixture.workspace();
    write(&workspace.path.join("new"), "n");
    let candidate = commit(&repository, &workspace);
    fixture.git(&["update-ref", "-d", "refs/kapi/001-demo/base"]);
    let error = repository
        .publish(&workspace, &candidate.commit)
        .expect_err("not ours");
    assert!(matches!(error, PublishError::NotOurs { .. }), "{error}");
    assert_eq!(fixture.git(&["rev-parse", BRANCH]), fixture.base().as_str());
}

#[test]
fn publishing_recovers_from_a_kill_around_the_move() {
    let fixture = Fixture::new();
    let (repository, workspace) = fixture.workspace();
    write(&workspace.path.join("new"), "n");
    let candidate = commit(&repository, &workspace);
    // Killed with the lock taken.
    write(
        &fixture
            .repo()
            .join(format!(".git/refs/heads/{BRANCH}.lock")),
        "",
    );
    repository
        .publish(&workspace, &candidate.commit)
        .expect("publish");
    assert_eq!(
        fixture.git(&["rev-parse", BRANCH]),
        candidate.commit.as_str()
    );
    assert!(
        !fixture
            .repo()
            .join(format!(".git/refs/heads/{BRANCH}.lock"))
            .exists()
    );
    // Killed after the move and before the index followed.
    shell(
        &fixture.repo(),
        "rm .git/worktrees/001-demo/index .git/worktrees/001-demo/kapi/index",
    );
    repository
        .publish(&workspace, &candidate.commit)
        .expect("publish again");
    assert_eq!(git_in(&workspace.path, &["status", "--porcelain"]), "");
}

#[test]
fn a_branch_that_was_given_up_is_a_persons_to_check_out_and_is_not_moved_under_them() {
    let fixture = Fixture::new();
    let (repository, workspace) = fixture.workspace();
    shell(&workspace.path, "echo two > src/main.txt");
    let first = commit(&repository, &workspace).commit;
    repository.publish(&workspace, &first).expect("publish");
    for _ in 0..2 {
        workspace.free_branch(&repository, &first).expect("free");
    }
    assert_eq!(git_in(&workspace.path, &["status", "--porcelain"]), "");
    let home = fixture.git(&["branch", "--show-current"]);
    fixture.git(&["switch", "-q", BRANCH]);
    // Whose worktree it is, is still known.
    let found = repository.find_workspace(&workspace.goal, &workspace.path);
    let found = found.expect("look").expect("the workspace");
    assert_eq!(found.branch, workspace.branch);

    // The goal goes on, and its next result waits for the person to leave the branch.
    shell(&workspace.path, "echo three > src/main.txt");
    let second = repository
        .commit_candidate(&workspace, &turn(2))
        .expect("commit");
    let Candidate { commit: second, .. } = second;
    let refused = repository.publish_from(&workspace, &first, &second);
    assert!(
        matches!(refused, Err(PublishError::CheckedOut { .. })),
        "{refused:?}"
    );
    assert_eq!(fixture.git(&["rev-parse", BRANCH]), first.as_str());
    fixture.git(&["switch", "-q", &home]);
    repository
        .publish_from(&workspace, &first, &second)
        .expect("publish");
    workspace.free_branch(&repository, &second).expect("free");
    assert_eq!(fixture.git(&["rev-parse", BRANCH]), second.as_str());
    assert_eq!(git_in(&workspace.path, &["status", "--porcelain"]), "");
    repository
        .remove_worktree(&workspace.goal, &workspace.path)
        .expect("remove");
    assert!(!workspace.path.exists());
}
