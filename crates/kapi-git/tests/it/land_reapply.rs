//! Applying a commit to another head than its own, without moving any branch.

use std::path::PathBuf;

use kapi_git::id::{CommitId, RefPart};
use kapi_git::land::reapply::ReapplyOutcome;
use kapi_git::land::{Carries, LandPlan};

use crate::fixture::{AT, author};
use crate::land::{LandingRig, WORKFLOW};

fn reapply(
    rig: &LandingRig,
    commit: &CommitId,
    base: &CommitId,
    head: &CommitId,
) -> ReapplyOutcome {
    let plan = LandPlan {
        owner: &RefPart::parse("005-demo").expect("owner"),
        branch: WORKFLOW,
        head,
        base,
        commit,
        carries: Carries::One,
        message: "Proposal 2, applied\n",
        author: &author(),
        at_unix_seconds: AT,
        scratch: &rig.fixture.root().join("kapi home/reapply"),
    };
    let name = RefPart::parse("proposal-2-reapplied").expect("name");
    let repository = rig.fixture.open();
    repository.reapply(&plan, &name).expect("reapplied")
}

#[test]
fn a_change_is_applied_beside_the_branch_and_named() {
    let rig = LandingRig::new();
    let base = rig.head();
    let kept = rig.task(1, &base, "echo one > one.txt");
    let other = rig.task(2, &base, "echo two > two.txt");
    let found = reapply(&rig, &other, &base, &kept);
    let ReapplyOutcome::Applied { commit, tree } = &found else {
        panic!("{found:?}");
    };
    assert_eq!(rig.head(), base, "no branch moves");
    let of = |words: &[&str]| rig.fixture.git(words);
    assert_eq!(of(&["rev-parse", &format!("{commit}^")]), kept.as_str());
    assert_eq!(
        of(&["rev-parse", &format!("{commit}^{{tree}}")]),
        tree.as_str()
    );
    let named = "refs/kapi/005-demo/proposal-2-reapplied";
    assert_eq!(of(&["rev-parse", named]), commit.as_str());
    let changed = of(&["diff", "--name-only", base.as_str(), commit.as_str()]);
    assert_eq!(changed.lines().collect::<Vec<_>>(), ["one.txt", "two.txt"]);
    assert_eq!(reapply(&rig, &other, &base, &kept), found, "and again");
}

#[test]
fn what_does_not_fit_is_a_conflict_and_changes_nothing() {
    let rig = LandingRig::new();
    let base = rig.head();
    let kept = rig.task(1, &base, "echo one > same.txt");
    let other = rig.task(2, &base, "echo two > same.txt");
    assert_eq!(
        reapply(&rig, &other, &base, &kept),
        ReapplyOutcome::Conflicted {
            paths: vec![PathBuf::from("same.txt")]
        }
    );
    let refs = rig.fixture.git(&["for-each-ref", "refs/kapi/005-demo"]);
    assert!(!refs.contains("reapplied"), "{refs}");
}
