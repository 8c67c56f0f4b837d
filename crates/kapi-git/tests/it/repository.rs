//! Finding a repository and reading from it.

use std::fs;
use std::path::PathBuf;

use kapi_git::command::{Git, GitError};
use kapi_git::repository::{ObjectFormat, Repository, RepositoryError};
use kapi_sys::cancel::Cancel;
use tempfile::TempDir;

use crate::fixture::{Fixture, git, git_in, shell, write};

#[test]
fn places_without_a_usable_repository_are_told_apart() {
    let temp = TempDir::new().expect("temp");
    let error = |dir: &str| {
        let dir = temp.path().join(dir);
        fs::create_dir_all(&dir).expect("create");
        Repository::discover(&git(), &dir).expect_err("no repository")
    };
    assert!(matches!(
        error("nothing"),
        RepositoryError::NotARepository { .. }
    ));
    git_in(temp.path(), &["init", "-q", "--bare", "bare.git"]);
    git_in(temp.path(), &["init", "-q", "unborn"]);
    assert!(matches!(error("unborn"), RepositoryError::NoCommit { .. }));
    assert!(matches!(error("unborn/.git"), RepositoryError::Bare { .. }));
    assert!(matches!(error("bare.git"), RepositoryError::Bare { .. }));
}

#[test]
fn a_git_that_is_missing_or_too_old_is_named() {
    let temp = TempDir::new().expect("temp");
    let missing = Git::open(&temp.path().join("git"), &Cancel::new()).expect_err("missing");
    assert!(matches!(missing, GitError::Process { .. }), "{missing}");
    let old = temp.path().join("old-git");
    write(&old, "#!/bin/sh\necho git version 2.20.1\n");
    shell(temp.path(), "chmod +x old-git");
    let old = Git::open(&old, &Cancel::new()).expect("there");
    let error = Repository::discover(&old, temp.path()).expect_err("too old");
    assert_eq!(error.to_string(), "use git 2.20.1: at least 2.34 is needed");
    // Nothing is done with it where a repository is found without it, either.
    let fixture = Fixture::new();
    let repository = Repository::discover(&old, &fixture.repo()).expect("discover");
    let error = repository.dirt().expect_err("too old");
    assert!(matches!(error, GitError::TooOld { .. }), "{error}");
}

#[test]
fn commits_and_branches_are_found_and_options_are_not_names() {
    let fixture = Fixture::new();
    let repository = fixture.open();
    let base = fixture.base();
    assert_eq!(repository.resolve_commit("main").expect("main"), base);
    assert_eq!(
        repository.head_branch().expect("branch").as_deref(),
        Some("main")
    );
    for wrong in [
        "nothing",
        "--all",
        "-h",
        "main:README",
        "HEAD^{tree}",
        "a\nb",
        "",
    ] {
        let error = repository.resolve_commit(wrong).expect_err(wrong);
        assert!(
            matches!(error, RepositoryError::NoSuchCommit { .. }),
            "{wrong}: {error}"
        );
    }
    for (name, expected) in [
        ("feat/goal-x", true),
        ("-d", false),
        ("a..b", false),
        ("a b", false),
        ("x.lock", false),
        ("HEAD", false),
        ("@{-1}", false),
        ("", false),
    ] {
        assert_eq!(
            repository.is_valid_branch(name).expect("checked"),
            expected,
            "{name}"
        );
    }
    fixture.git(&["checkout", "-q", "--detach"]);
    assert_eq!(repository.head_branch().expect("branch"), None);
    assert!(!repository.branch_is_free("main").expect("asked"));
    assert!(repository.branch_is_free("mai").expect("asked"));
}

#[test]
fn a_branch_is_free_only_if_git_could_make_it() {
    let fixture = Fixture::new();
    fixture.git(&["branch", "feat"]);
    fixture.git(&["branch", "fix/goal-x/y"]);
    fixture.git(&["branch", "docs/a"]);
    fixture.git(&["pack-refs", "--all"]);
    fixture.git(&["branch", "loose/b"]);
    let repository = fixture.open();
    for (name, expected) in [
        ("feat", false),
        ("feat/goal-x", false),
        ("feat/goal/x", false),
        ("fix/goal-x", false),
        ("fix/goal", true),
        ("fix/goal-x/z", true),
        ("docs", false),
        ("docs/b", true),
        ("loose", false),
        ("loose/b/c", false),
        ("features/x", true),
    ] {
        let is_free = repository.branch_is_free(name).expect("asked");
        assert_eq!(is_free, expected, "{name}");
        if expected {
            fixture.git(&["branch", name]);
            fixture.git(&["branch", "-d", name]);
        }
    }
}

#[test]
fn a_linked_worktree_and_sha256_work() {
    let fixture = Fixture::with_format("sha256");
    fixture.git(&["worktree", "add", "-q", "-b", "side", "../side tree"]);
    write(&fixture.root().join("side tree/new"), "x");
    git_in(&fixture.root().join("side tree"), &["add", "-A"]);
    git_in(
        &fixture.root().join("side tree"),
        &["commit", "-q", "-m", "side"],
    );
    let inside = fixture.root().join("side tree/src");
    let repository = Repository::discover(&git(), &inside).expect("discover");
    assert_eq!(repository.object_format(), ObjectFormat::Sha256);
    assert_eq!(
        repository.head_branch().expect("branch").as_deref(),
        Some("side")
    );
    assert_ne!(
        repository.resolve_commit("HEAD").expect("head"),
        fixture.base()
    );
    assert_eq!(
        repository.common_dir().canonicalize().expect("common"),
        fixture.repo().join(".git").canonicalize().expect("git dir")
    );
    let files = repository
        .tracked_files_matching(&fixture.base(), &["tests".to_owned(), "*".to_owned()])
        .expect("files");
    let expected = [".gitignore", "README", "tests/check.sh"].map(PathBuf::from);
    assert_eq!(files, expected);
}

#[test]
fn dirt_is_counted_without_touching_the_index_or_running_a_filter() {
    let fixture = Fixture::new();
    let trap = fixture.trap();
    fixture.git(&["config", "filter.evil=name.clean", &trap]);
    fixture.git(&["config", "filter.evil=name.required", "true"]);
    fixture.git(&["config", "core.fsmonitor", &trap]);
    write(
        &fixture.repo().join(".git/info/attributes"),
        "* filter=evil=name\n",
    );
    write(&fixture.repo().join("README"), "changed\n");
    write(&fixture.repo().join("new\nfile"), "new\n");
    write(&fixture.repo().join("staged"), "staged\n");
    let staged = "100644,ce013625030ba8dba906f756967f9e9ca394464a,staged";
    let quiet = "core.fsmonitor=false";
    fixture.git(&["-c", quiet, "update-index", "--add", "--cacheinfo", staged]);
    // Making the state above ran them too.
    shell(&fixture.repo(), "touch src/main.txt; rm -f ../sprung");
    let before = fs::read(fixture.repo().join(".git/index")).expect("index");
    let dirt = fixture.open().dirt().expect("dirt");
    assert_eq!(
        (dirt.staged, dirt.modified, dirt.untracked),
        (1, 2, 1),
        "{dirt:?}"
    );
    assert!(dirt.names.contains(&PathBuf::from("new\nfile")), "{dirt:?}");
    assert!(!dirt.is_clean());
    assert_eq!(
        fs::read(fixture.repo().join(".git/index")).expect("index"),
        before
    );
    fixture.assert_not_sprung();
    fixture.git(&["status"]);
    fixture.assert_sprung();
}

#[test]
fn files_and_patterns_are_matched_exactly() {
    let fixture = Fixture::new();
    write(&fixture.repo().join("deep/er/a.snap"), "x");
    write(&fixture.repo().join(":(top)odd"), "x");
    fixture.commit("more");
    let repository = fixture.open();
    let base = fixture.base();
    let matching = |glob: &str| {
        repository
            .tracked_files_matching(&base, &[glob.to_owned()])
            .expect("files")
    };
    assert_eq!(matching("**/*.snap"), [PathBuf::from("deep/er/a.snap")]);
    assert_eq!(matching("*.snap"), Vec::<PathBuf>::new());
    assert_eq!(matching("deep"), [PathBuf::from("deep/er/a.snap")]);
    // Magic in a pattern is not obeyed.
    assert_eq!(matching(":(top)odd"), [PathBuf::from(":(top)odd")]);
    assert_eq!(matching(":!README"), Vec::<PathBuf>::new());
    assert!(
        repository
            .tracked_files_matching(&base, &[String::new()])
            .is_err()
    );
    let is_tracked = |path: &str| {
        repository
            .is_tracked_file(&base, path.as_ref())
            .expect("asked")
    };
    assert!(is_tracked("tests/check.sh"));
    assert!(is_tracked(":(top)odd"));
    assert!(!is_tracked("tests"));
    assert!(!is_tracked("tests/*"));
}

#[test]
fn whole_ignored_directories_are_listed_and_nothing_a_person_keeps_back() {
    let fixture = Fixture::new();
    let repo = fixture.repo();
    write(
        &repo.join(".gitignore"),
        "node_modules/\n*.log\nsecrets/\n/deep/target/\n.ilchul/\ninner/\n",
    );
    fixture.commit("ignore");
    for file in [
        "node_modules/a/x.js",
        "deep/target/out.o",
        "deep/kept.log",
        "secrets/key",
        ".ilchul/goals/x",
    ] {
        write(&repo.join(file), "x");
    }
    git_in(&repo, &["init", "-q", "inner"]);
    std::os::unix::fs::symlink("/etc", repo.join("deep/link")).expect("link");
    let listed = fixture.open().ignored_directories().expect("list");
    assert_eq!(
        listed,
        ["deep/target", "node_modules", "secrets"].map(PathBuf::from)
    );
    write(&repo.join(".kapiexclude"), "secrets/\n");
    let listed = fixture.open().ignored_directories().expect("list");
    assert_eq!(listed, ["deep/target", "node_modules"].map(PathBuf::from));
}
