//! Where a workspace may be: swapped for a link, deleted, taken by others, moved with everything.

use std::fs;
use std::path::Path;

use kapi_git::candidate::CandidateError;
use kapi_git::id::RefPart;
use kapi_git::repository::Repository;
use kapi_git::workspace::{WorkspaceError, WorkspaceOrigin};

use crate::fixture::{
    BRANCH, Fixture, changed, commit, everything, git, git_in, read, shell, turn, write,
};

#[test]
fn a_workspace_swapped_for_a_link_is_never_written_to() {
    let fixture = Fixture::new();
    let (repository, workspace) = fixture.workspace();
    let victim = fixture.root().join("victim");
    write(&victim.join("precious"), "mine");
    write(&victim.join("src/main.txt"), "mine");
    let before = everything(&victim);
    let parent = workspace.path.parent().expect("parent").to_path_buf();
    let swaps = [
        format!("rm -rf 001-demo; ln -s '{}' 001-demo", victim.display()),
        "rm -rf 001-demo; mkfifo 001-demo".to_owned(),
        // The directory above it.
        format!(
            "rm 001-demo; mv '{v}' 001-demo; cd ..; mv worktrees '{v}'; ln -s '{v}' worktrees",
            v = victim.display()
        ),
    ];
    for (swap, n) in swaps.iter().zip(1..) {
        shell(&parent, swap);
        let is_occupied = |error: &WorkspaceError| {
            assert!(
                matches!(error, WorkspaceError::PathOccupied { .. }),
                "{swap}: {error}"
            );
        };
        if n < 3 {
            is_occupied(
                &repository
                    .create_workspace(&fixture.plan())
                    .expect_err(swap),
            );
        }
        is_occupied(
            &repository
                .reset_workspace(&workspace, &workspace.base)
                .expect_err(swap),
        );
        let tree = repository.tree_of(&workspace.base).expect("tree");
        for error in [
            repository
                .commit_candidate(&workspace, &turn(1))
                .map(drop)
                .expect_err(swap),
            repository
                .rescue(&workspace, &turn(1), &tree)
                .map(drop)
                .expect_err(swap),
        ] {
            match error {
                CandidateError::Workspace(error) => is_occupied(&error),
                other => panic!("{swap}: {other}"),
            }
        }
        repository
            .publish(&workspace, &workspace.base)
            .expect("only a ref");
        let now = if n < 3 {
            victim.clone()
        } else {
            victim.join("001-demo")
        };
        assert_eq!(everything(&now), before, "{swap}");
    }
    assert_eq!(
        fixture.git(&[
            "for-each-ref",
            "--format=%(refname)",
            "refs/kapi/001-demo/turn-1"
        ]),
        ""
    );
}

#[test]
fn a_place_taken_by_a_link_is_refused_before_anything_is_made() {
    let fixture = Fixture::new();
    let plan = fixture.plan();
    let empty = fixture.root().join("empty");
    fs::create_dir_all(&empty).expect("create");
    fs::create_dir_all(plan.path.parent().expect("parent")).expect("create");
    std::os::unix::fs::symlink(&empty, &plan.path).expect("link");
    let error = fixture.open().create_workspace(&plan).expect_err("a link");
    assert!(
        matches!(error, WorkspaceError::PathOccupied { .. }),
        "{error}"
    );
    assert_eq!(
        fixture.git(&["for-each-ref", "refs/kapi", "refs/heads/feat"]),
        ""
    );
    assert_eq!(fs::read_dir(&empty).expect("list").count(), 0);
}

#[test]
fn files_made_anew_are_the_work_so_far() {
    let fixture = Fixture::new();
    let (repository, workspace) = fixture.workspace();
    write(&workspace.path.join("src/main.txt"), "two\n");
    let first = commit(&repository, &workspace);
    let mut plan = fixture.plan();
    plan.content = first.commit.clone();
    let path = workspace.path.display().to_string();
    let deletions: [(&dyn Fn(), WorkspaceOrigin); 3] = [
        (
            &|| fs::remove_dir_all(&workspace.path).expect("remove"),
            WorkspaceOrigin::Rebuilt,
        ),
        (
            &|| {
                fs::remove_dir_all(&workspace.path).expect("remove");
                fs::create_dir(&workspace.path).expect("create");
            },
            WorkspaceOrigin::Rebuilt,
        ),
        (
            &|| drop(fixture.git(&["worktree", "remove", "--force", &path])),
            WorkspaceOrigin::Created,
        ),
    ];
    for (delete, expected) in deletions {
        write(&workspace.path.join("lost"), "x");
        delete();
        let again = repository.create_workspace(&plan).expect("again");
        assert_eq!(again.origin, expected);
        assert_eq!(read(&again.path.join("src/main.txt")), "two\n");
        assert_eq!(
            git_in(&again.path, &["status", "--porcelain"]),
            "M  src/main.txt"
        );
        let candidate = repository
            .commit_candidate(&again, &turn(2))
            .expect("candidate");
        assert_eq!(candidate.tree, first.tree);
        assert_eq!(fixture.git(&["rev-parse", BRANCH]), fixture.base().as_str());
    }
}

#[test]
fn a_deleted_directory_is_no_candidate() {
    let fixture = Fixture::new();
    let (repository, workspace) = fixture.workspace();
    fs::remove_dir_all(&workspace.path).expect("remove");
    let error = repository
        .commit_candidate(&workspace, &turn(1))
        .expect_err("gone");
    assert!(
        matches!(
            error,
            CandidateError::Workspace(WorkspaceError::Gone { .. })
        ),
        "{error}"
    );
    assert!(!workspace.path.exists());
    assert_eq!(
        fixture.git(&["for-each-ref", "--format=%(refname)", "refs/kapi"]),
        "refs/kapi/001-demo/base"
    );
}

#[test]
fn a_branch_that_git_could_not_make_is_named_before_anything_is_made() {
    for (other, by) in [
        ("feat", "feat"),
        ("feat/goal-demo/more", "feat/goal-demo/more"),
    ] {
        let fixture = Fixture::new();
        fixture.git(&["branch", other]);
        let error = fixture
            .open()
            .create_workspace(&fixture.plan())
            .expect_err(other);
        assert_eq!(
            error.to_string(),
            format!("create branch {BRANCH}: branch {by} prevents it")
        );
        assert!(error.hint().expect("a hint").contains(by));
        assert_eq!(fixture.git(&["for-each-ref", "refs/kapi"]), "");
        fixture.git(&["branch", "-D", other]);
        fixture
            .open()
            .create_workspace(&fixture.plan())
            .expect("free now");
    }
}

#[test]
fn the_worktree_of_another_repository_is_not_taken_over() {
    let fixture = Fixture::new();
    let (_, workspace) = fixture.workspace();
    write(&workspace.path.join("work"), "x");
    shell(
        fixture.root(),
        "cp -a 'my repo' copy; git init -q fresh; git -C fresh fetch -q '../my repo' main; git -C fresh checkout -q FETCH_HEAD",
    );
    // A copy knows the worktree from before; a repository of the same history does not.
    for name in ["copy", "fresh"] {
        let dir = fixture.root().join(name);
        let other = Repository::discover(&git(), &dir).expect("discover");
        let before = everything(&dir);
        let error = other.create_workspace(&fixture.plan()).expect_err(name);
        let WorkspaceError::OtherRepository { path, git_dir } = &error else {
            panic!("{name}: {error}")
        };
        assert_eq!(*path, workspace.path);
        assert!(git_dir.starts_with(fixture.repo().canonicalize().expect("repo")));
        let hint = error.hint().expect("a hint");
        assert!(hint.contains("git worktree remove"), "{hint}");
        assert_eq!(everything(&dir), before, "{name}");
    }
    let again = fixture
        .open()
        .create_workspace(&fixture.plan())
        .expect("its own");
    assert_eq!(again.origin, WorkspaceOrigin::Adopted);
    assert_eq!(read(&again.path.join("work")), "x");
}

#[test]
fn an_agent_cannot_make_its_workspace_look_like_anothers() {
    let fixture = Fixture::new();
    let (repository, workspace) = fixture.workspace();
    shell(
        &workspace.path,
        "rm .git; mkdir fake; echo \"gitdir: $PWD/fake\" > .git; echo \"$PWD/.git\" > fake/gitdir",
    );
    let again = repository
        .create_workspace(&fixture.plan())
        .expect("adopted");
    assert_eq!(again.origin, WorkspaceOrigin::Adopted);
    shell(&workspace.path, "rm .git; mkfifo .git");
    repository
        .create_workspace(&fixture.plan())
        .expect("adopted");
    git_in(&workspace.path, &["status"]);
}

#[test]
fn a_branch_checked_out_elsewhere_is_said_to_be() {
    let fixture = Fixture::new();
    fixture.git(&["update-ref", "refs/kapi/001-demo/base", "HEAD"]);
    fixture.git(&["worktree", "add", "-q", "-b", BRANCH, "../mine"]);
    let mine = fixture.root().join("mine").canonicalize().expect("mine");
    let error = fixture
        .open()
        .create_workspace(&fixture.plan())
        .expect_err("elsewhere");
    let WorkspaceError::CheckedOutElsewhere { branch, at } = &error else {
        panic!("{error}")
    };
    assert_eq!((branch.as_str(), at), (BRANCH, &mine));
    assert!(
        error
            .hint()
            .expect("a hint")
            .contains("git worktree remove")
    );
    fixture.git(&["worktree", "remove", "../mine"]);
    fixture
        .open()
        .create_workspace(&fixture.plan())
        .expect("free now");
}

#[test]
fn a_moved_repository_finds_its_workspace_or_says_how() {
    let fixture = Fixture::new();
    let (_, workspace) = fixture.workspace();
    write(&workspace.path.join("work"), "x");
    let moved = fixture.root().join("moved");
    fs::rename(fixture.repo(), &moved).expect("move");
    let repository = Repository::discover(&git(), &moved).expect("discover");
    let mut plan = workspace_plan(&workspace.base, &workspace.path);
    // Under its new name the repository may have other worktree directories.
    plan.path = fixture.root().join("new home/001-demo");
    let error = repository.create_workspace(&plan).expect_err("elsewhere");
    let WorkspaceError::MovedRepository { at, path, .. } = &error else {
        panic!("{error}")
    };
    assert_eq!(*at, workspace.path);
    let hint = error.hint().expect("a hint");
    let steps: Vec<&str> = hint
        .split('`')
        .filter(|part| part.starts_with("git "))
        .collect();
    assert_eq!(steps.len(), 2, "{hint}");
    // What the hint says works; spaces in these paths need the quotes a person would give.
    git_in(&moved, &["worktree", "repair", &at.display().to_string()]);
    git_in(
        &moved,
        &[
            "worktree",
            "move",
            &at.display().to_string(),
            &path.display().to_string(),
        ],
    );
    let again = repository.create_workspace(&plan).expect("again");
    assert_eq!(again.origin, WorkspaceOrigin::Adopted);
    assert_eq!(changed(&commit(&repository, &again)), ["work Added"]);
    // And where the directory's name stayed the same, nothing need be done.
    fs::rename(&moved, fixture.repo()).expect("move back");
    let again = fixture.open().create_workspace(&plan).expect("again");
    assert_eq!(again.origin, WorkspaceOrigin::Adopted);
    git_in(&again.path, &["status"]);
}

fn workspace_plan(
    base: &kapi_git::id::CommitId,
    path: &Path,
) -> kapi_git::workspace::WorkspacePlan {
    kapi_git::workspace::WorkspacePlan {
        goal: RefPart::parse("001-demo").expect("goal"),
        branch: BRANCH.to_owned(),
        base: base.clone(),
        content: base.clone(),
        path: path.to_path_buf(),
    }
}
