//! Knowing a change again: in another branch, after a rebase, or not at all.

use kapi_git::id::CommitId;
use kapi_git::patches::Maker;
use kapi_git::repository::range::CommitRange;

use crate::fixture::{Fixture, shell};

fn made(fixture: &Fixture, on: &CommitId, command: &str) -> CommitId {
    fixture.git(&["checkout", "-q", "--detach", on.as_str()]);
    shell(&fixture.repo(), command);
    fixture.commit(command);
    fixture.base()
}

fn range(base: &CommitId, commit: &CommitId) -> CommitRange {
    CommitRange {
        base: base.clone(),
        commit: commit.clone(),
    }
}

#[test]
fn a_change_that_two_branches_make_is_found_and_a_shared_commit_is_not() {
    let fixture = Fixture::new();
    let base = fixture.base();
    let shared = made(&fixture, &base, "echo s > shared");
    let one = made(&fixture, &shared, "echo same >> README");
    let before = made(&fixture, &shared, "echo other > other");
    let other = made(&fixture, &before, "echo same >> README");
    let repository = fixture.open();
    let ranges = [range(&base, &one), range(&base, &other)];
    let same = repository.same_changes(&ranges).expect("changes");
    let [found] = same.as_slice() else {
        panic!("one change is made twice: {same:?}");
    };
    let maker = |range, commit: &CommitId| Maker {
        range,
        commit: commit.clone(),
    };
    assert_eq!(found.made_by, [maker(0, &one), maker(1, &other)]);
    let patches = repository.patches(&ranges[1]).expect("patches");
    let commits: Vec<CommitId> = patches.into_iter().map(|patch| patch.commit).collect();
    assert_eq!(commits, [shared, before, other], "the oldest first");
}

#[test]
fn what_a_rebase_left_out_or_altered_is_named() {
    let fixture = Fixture::new();
    let base = fixture.base();
    let kept = made(&fixture, &base, "echo kept > kept");
    let lost = made(&fixture, &kept, "echo lost > lost");
    let altered = made(&fixture, &lost, "echo right > altered");
    let onto = made(&fixture, &base, "echo onto >> README");
    fixture.git(&["cherry-pick", kept.as_str()]);
    let result = made(&fixture, &fixture.base(), "echo wrong > altered");
    let repository = fixture.open();
    let (source, rebased) = (range(&base, &altered), range(&onto, &result));
    let gone = repository.altered_or_lost(&source, &rebased);
    assert_eq!(gone.expect("patches"), [lost, altered]);
    let gone = repository.altered_or_lost(&source, &source);
    assert_eq!(gone.expect("patches"), []);
}
