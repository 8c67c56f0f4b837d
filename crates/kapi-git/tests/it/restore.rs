//! Workspaces that are put back to exactly a commit, whatever an agent left in them.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use kapi_git::candidate::CandidatePlan;
use kapi_git::id::RefPart;
use kapi_git::restore::Recommit;

use crate::fixture::{AT, BRANCH, Fixture, author, git_in, write};

fn plan(name: &str) -> CandidatePlan {
    CandidatePlan {
        name: RefPart::parse(name).expect("a name"),
        message: format!("{name}\n"),
        author: author(),
        at_unix_seconds: AT,
    }
}

#[test]
fn nothing_that_an_agent_left_outlasts_a_restoration() {
    let fixture = Fixture::new();
    let (repository, workspace) = fixture.workspace();
    let base = fixture.base();
    let at = &workspace.path;
    write(&at.join("src/main.txt"), "changed\n");
    fs::remove_file(at.join("README")).expect("as prepared");
    write(&at.join("new/deep/file"), "new\n");
    write(&at.join("build/cache/object"), "ignored\n");
    write(&at.join("note.tmp"), "ignored\n");
    fs::create_dir_all(at.join("empty/directory")).expect("as prepared");
    fs::set_permissions(at.join("tests/check.sh"), fs::Permissions::from_mode(0o755))
        .expect("as prepared");
    // It commits, stages and hides what it changed.
    git_in(at, &["add", "-A"]);
    git_in(
        at,
        &[
            "-c",
            "user.name=a",
            "-c",
            "user.email=a@b",
            "commit",
            "-q",
            "-m",
            "mine",
        ],
    );
    write(&at.join("staged"), "staged\n");
    git_in(at, &["add", "staged"]);
    git_in(
        at,
        &["update-index", "--assume-unchanged", "tests/check.sh"],
    );
    fs::create_dir_all(at.join("nested")).expect("as prepared");
    git_in(&at.join("nested"), &["init", "-q"]);
    let restored = repository
        .restore_workspace(&workspace, &base)
        .expect("restored");
    assert_eq!(restored.tree, repository.tree_of(&base).expect("its tree"));
    assert!(restored.n_removed >= 5, "{restored:?}");
    let mut left: Vec<String> = fs::read_dir(at)
        .expect("as prepared")
        .map(|entry| {
            entry
                .expect("as prepared")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    left.sort();
    assert_eq!(left, [".git", ".gitignore", "README", "src", "tests"]);
    let again = repository
        .restore_workspace(&workspace, &base)
        .expect("restored");
    assert_eq!(again.n_removed, 0);
}

#[test]
fn what_is_kept_is_one_commit_with_the_measured_files() {
    let fixture = Fixture::new();
    let (repository, workspace) = fixture.workspace();
    let base = fixture.base();
    write(&workspace.path.join("src/main.txt"), "better\n");
    let measured = repository
        .commit_candidate_on(&workspace, &base, &plan("propose-1"))
        .expect("as prepared");
    let commits = Recommit {
        files: &measured.commit,
        parent: &base,
    };
    let kept = repository
        .recommit(&workspace, commits, &plan("run-2"))
        .expect("a commit");
    assert_ne!(kept, measured.commit);
    assert_eq!(
        repository
            .recommit(&workspace, commits, &plan("run-2"))
            .expect("a commit"),
        kept
    );
    repository
        .publish_from(&workspace, &base, &kept)
        .expect("as prepared");
    let restored = repository
        .restore_workspace(&workspace, &kept)
        .expect("restored");
    assert_eq!(restored.tree, measured.tree);
    assert_eq!(fixture.git(&["rev-parse", BRANCH]), kept.as_str());
    assert_eq!(git_in(&workspace.path, &["status", "--porcelain"]), "");
    // The next change is one commit on that.
    write(&workspace.path.join("src/main.txt"), "best\n");
    let next = repository
        .commit_candidate_on(&workspace, &kept, &plan("propose-2"))
        .expect("as prepared");
    assert_eq!(next.changed.len(), 1);
    let parent = fixture.git(&["rev-parse", &format!("{}^", next.commit)]);
    assert_eq!(parent, kept.as_str());
}
