//! Patterns of plans, what lies beside them, and whose checks are stale.

use kapi_core::glob::covers;

use crate::rules::changed::{LandedPaths, PATHS_MAX};
use crate::rules::modes::ralph::fixture::{Build, parallel, plan, task, task_id, terms};
use crate::rules::modes::ralph::touch::{is_stale, outside};

fn changed(paths: &[&str]) -> LandedPaths {
    LandedPaths::of(paths.iter().map(|&path| path.to_owned()).collect())
}

#[test]
fn a_pattern_names_what_git_would_take_it_for() {
    for (glob, path) in [
        ("src/a.rs", "src/a.rs"),
        ("src", "src/a/b.rs"),
        ("./src/", "src/a.rs"),
        ("src/**", "src/a/b.rs"),
        ("src/*.rs", "src/a.rs"),
        ("src/?.rs", "src/a.rs"),
        ("src/[a-c].rs", "src/b.rs"),
        ("src/[!a].rs", "src/b.rs"),
        ("**/*.rs", "a.rs"),
        ("**/*.rs", "x/y/a.rs"),
        ("src/**/x", "src/x"),
        ("src/{a,b}/*.rs", "src/b/x.rs"),
        ("{a,b}{c,d}", "bc"),
        (".", "anything/at/all"),
        ("ä*", "äb"),
    ] {
        assert!(covers(glob, path), "{glob} {path}");
    }
    for (glob, path) in [
        ("src/a.rs", "src/b.rs"),
        ("src/a", "src/ab"),
        ("src/*.rs", "src/a/b.rs"),
        ("src/*.rs", "src/a.py"),
        ("src/?.rs", "src/ab.rs"),
        ("src/[a-c].rs", "src/d.rs"),
        ("src/{a,b}.rs", "src/c.rs"),
        ("src/**/x", "src/y"),
        ("a/b", "a"),
    ] {
        assert!(!covers(glob, path), "{glob} {path}");
    }
    let hostile = format!("{}b", "*a".repeat(40));
    assert!(!covers(&hostile, &"a".repeat(200)), "it ends");
}

#[test]
fn what_lies_beside_the_plan_is_found() {
    let found = changed(&["src/a/x.rs", "docs/a.md", "Cargo.lock"]);
    let named = task("T-001", &[], &["src/a/**", "*.lock"]);
    assert_eq!(outside(&named, &found), ["docs/a.md"]);
    let alone = task("T-001", &[], &[]);
    assert!(outside(&alone, &found).is_empty(), "it lists no paths");
}

#[test]
fn many_paths_are_counted_and_not_kept() {
    let paths = (0..PATHS_MAX + 3).map(|n| format!("f{n}")).collect();
    let found = LandedPaths::of(paths);
    assert_eq!((found.paths.len(), found.n_more), (PATHS_MAX, 3));
    assert!(found.meets(&changed(&["other"])), "it may be among them");
}

#[test]
fn checks_are_stale_once_somebody_changed_the_same_paths() {
    let three = plan(vec![
        task("T-001", &[], &["src/a/**"]),
        task("T-002", &[], &["src/b/**"]),
        task("T-003", &[], &["src/c/**"]),
    ]);
    let mut own = terms();
    own.jobs = 3;
    let mut build = Build::run(own, &three);
    let stale = |build: &Build, id: &str| {
        let ralph = build.ralph();
        is_stale(ralph, &ralph.tasks[&task_id(id)])
    };
    for (id, commit) in [("T-001", "c1"), ("T-002", "c2"), ("T-003", "c3")] {
        build.prove(id, commit);
    }
    build.land_with("T-001", ("h1", false), &["src/a/x.rs"]);
    assert!(!stale(&build, "T-001"), "its goal proved that very tree");
    build.land_with("T-002", ("h2", true), &["src/b/x.rs"]);
    assert!(!stale(&build, "T-001"), "nothing of its own was changed");
    build.verify(&[]);
    assert_eq!(build.ralph().tasks[&task_id("T-002")].verified_with, 2);
    assert_eq!(build.ralph().tasks[&task_id("T-001")].verified_with, 1);
    build.land_with("T-003", ("h3", true), &["src/c/x.rs", "src/a/x.rs"]);
    assert!(stale(&build, "T-001") && !stale(&build, "T-002"));
}

#[test]
fn where_nobody_looked_everything_may_be_stale() {
    let mut build = Build::run(terms(), &parallel());
    build.prove("T-001", "c1");
    build.prove("T-002", "c2");
    build.land("T-001", "h1", false);
    build.land("T-002", "h2", true);
    let mut ralph = build.ralph().clone();
    assert!(!is_stale(&ralph, &ralph.tasks[&task_id("T-001")]));
    ralph.changes[1] = None;
    assert!(is_stale(&ralph, &ralph.tasks[&task_id("T-001")]));
    ralph.changes[0] = None;
    assert!(is_stale(&ralph, &ralph.tasks[&task_id("T-001")]));
}
