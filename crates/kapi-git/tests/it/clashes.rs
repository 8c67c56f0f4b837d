//! Foreseeing conflicts: every pair of branches is really merged, and nothing of it stays.

use std::path::PathBuf;

use kapi_git::id::CommitId;

use crate::fixture::{Fixture, shell};

/// Commits what a command does to the base, and returns the commit.
fn side(fixture: &Fixture, base: &CommitId, command: &str) -> CommitId {
    fixture.git(&["checkout", "-q", "--detach", base.as_str()]);
    shell(&fixture.repo(), command);
    fixture.commit(command);
    fixture.base()
}

#[test]
fn each_pair_that_does_not_fit_is_named_with_its_paths() {
    let fixture = Fixture::new();
    let base = fixture.base();
    let sides = [
        side(&fixture, &base, "echo two > src/main.txt"),
        side(&fixture, &base, "echo three > src/main.txt; echo a > new"),
        side(&fixture, &base, "echo b > new"),
        side(&fixture, &base, "git rm -q src/main.txt"),
        side(&fixture, &base, "git mv README READ.me"),
        side(&fixture, &base, "echo more >> README"),
    ];
    fixture.git(&["checkout", "-q", "main"]);
    let scratch = fixture.root().join("scratch");
    let clashes = fixture.open().clashes(&sides, &scratch).expect("merges");
    let found: Vec<(usize, usize, Vec<PathBuf>)> = clashes
        .into_iter()
        .map(|clash| (clash.one, clash.other, clash.paths))
        .collect();
    let at = |paths: &[&str]| paths.iter().map(PathBuf::from).collect::<Vec<_>>();
    let expected = [
        (0, 1, at(&["src/main.txt"])),
        (0, 3, at(&["src/main.txt"])),
        (1, 2, at(&["new"])),
        (1, 3, at(&["src/main.txt"])),
    ];
    assert_eq!(found, expected, "a rename and an edit fit");
}

#[test]
fn nothing_is_left_of_the_merges() {
    let fixture = Fixture::new();
    let base = fixture.base();
    let sides = [
        base.clone(),
        side(&fixture, &base, "echo x > x"),
        side(&fixture, &base, "echo y > y"),
    ];
    fixture.git(&["checkout", "-q", "main"]);
    let state = || {
        let objects = fixture.git(&["count-objects", "-v"]);
        let refs = fixture.git(&["for-each-ref"]);
        let files = fixture.git(&["status", "--porcelain", "--ignored"]);
        (objects, refs, files)
    };
    let before = state();
    let scratch = fixture.root().join("scratch");
    let clashes = fixture.open().clashes(&sides, &scratch).expect("merges");
    assert_eq!(clashes, []);
    assert_eq!(state(), before);
    assert!(!scratch.exists());
}

#[test]
fn histories_with_nothing_in_common_are_an_error() {
    let fixture = Fixture::new();
    let base = fixture.base();
    fixture.git(&["checkout", "-q", "--orphan", "other"]);
    fixture.commit("other");
    let scratch = fixture.root().join("scratch");
    let error = fixture.open().clashes(&[base, fixture.base()], &scratch);
    let error = error.expect_err("unrelated").to_string();
    assert!(error.contains("merge-tree"), "{error}");
}
