//! The person's own checkout as a commit: what is in it, and that nothing of theirs changes.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use kapi_git::candidate::Candidate;
use kapi_git::id::{CommitId, RefPart};
use kapi_git::in_place::CheckoutInPlace;

use crate::fixture::{Fixture, changed, everything, refused, shell, turn};

fn goal() -> RefPart {
    RefPart::parse("001-demo").expect("a name")
}

/// Commits the checkout as turn 1 of a goal that begins at `base`.
fn committed(fixture: &Fixture, base: &CommitId) -> Candidate {
    let checkout = CheckoutInPlace {
        base,
        index_dir: &fixture.root().join("kapi home/index"),
    };
    fixture
        .open()
        .commit_in_place(checkout, &goal(), &turn(1))
        .expect("a commit")
}

fn started(fixture: &Fixture) -> CommitId {
    let checkout = CheckoutInPlace {
        base: &fixture.base(),
        index_dir: &fixture.root().join("kapi home/index"),
    };
    let repository = fixture.open();
    repository
        .start_in_place(checkout, &turn(1))
        .expect("a start")
}

/// Returns all files but new objects and our refs, with their modes.
fn theirs(fixture: &Fixture) -> BTreeMap<PathBuf, (Vec<u8>, u32)> {
    let mut found = everything(&fixture.repo());
    let ours = [".git/objects", ".git/refs/kapi"];
    found.retain(|path, _| !ours.iter().any(|ours| path.starts_with(ours)));
    let with_mode = |(path, bytes): (PathBuf, Vec<u8>)| {
        let mode = fs::symlink_metadata(fixture.repo().join(&path)).map(|it| it.permissions());
        (path, (bytes, mode.map_or(0, |mode| mode.mode())))
    };
    found.into_iter().map(with_mode).collect()
}

#[test]
fn the_work_is_what_changed_since_the_start_and_nothing_of_the_persons_moves() {
    let fixture = Fixture::new();
    shell(
        &fixture.repo(),
        "echo stashed > s; git add s; git stash -q
         echo staged > staged; git add staged; echo mine >> README; echo new > new",
    );
    let head = fixture.base();
    let start = started(&fixture);
    assert_ne!(start, head, "what the person changed is where it begins");
    fixture.open().hold_base(&goal(), &start).expect("a ref");
    fixture.open().hold_base(&goal(), &start).expect("again");
    shell(
        &fixture.repo(),
        "echo two > src/main.txt; rm new; echo t > x.tmp; mkdir build inner; echo b > build/b
         git init -q inner; echo l > l; chmod 600 l",
    );
    let before = theirs(&fixture);
    let work = committed(&fixture, &start);
    assert_eq!(
        changed(&work),
        ["l Added", "new Deleted", "src/main.txt Modified"]
    );
    assert!(
        refused(&work).iter().any(|it| it.starts_with("inner")),
        "{work:?}"
    );
    assert_eq!(theirs(&fixture), before);
    assert_eq!(
        committed(&fixture, &start),
        work,
        "the same files give the same commit"
    );
    let named = |name: &str| fixture.git(&["rev-parse", &format!("refs/kapi/001-demo/{name}")]);
    assert_eq!(named("turn-1"), work.commit.as_str());
    assert_eq!(named("base"), start.as_str());
    assert_eq!(fixture.base(), head);
}

#[test]
fn a_checkout_without_changes_begins_at_its_commit() {
    let fixture = Fixture::new();
    assert_eq!(started(&fixture), fixture.base());
    let work = committed(&fixture, &fixture.base());
    assert_eq!((changed(&work).len(), refused(&work).len()), (0, 0));
}
