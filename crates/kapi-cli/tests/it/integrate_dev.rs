//! An integration whose branch somebody else moved, or has checked out.

use std::fs;

use crate::integrate::Batch;

#[test]
fn dev_that_was_moved_meanwhile_is_noticed_and_nothing_is_lost() {
    let batch = Batch::new();
    let env = &batch.env;
    batch.writes("alpha");
    env.git(&["branch", "dev", "main"]);
    assert_eq!(batch.integrate(&["1"]).code, 5);
    batch.approve("2");
    // Somebody lands something else before it is carried out.
    let theirs = env.git(&["commit-tree", "main^{tree}", "-p", "main", "-m", "theirs"]);
    let theirs = theirs.trim();
    env.git(&["update-ref", "refs/heads/dev", theirs]);
    let stale = batch.resume("2", &[]);
    assert_eq!(stale.code, 5, "the plan is approved anew: {stale:?}");
    assert_eq!(env.commit_of("dev"), theirs);
    assert!(batch.document("merge-plan.md").contains(theirs));
    batch.approve("2");
    let done = batch.resume("2", &[]);
    assert_eq!(done.code, 0, "{done:?}");
    env.git(&["merge-base", "--is-ancestor", theirs, "dev"]);
    assert_eq!(batch.dev("alpha.txt"), "alpha");
}

#[test]
fn dev_that_is_checked_out_stays_unless_its_person_lets_it_be_brought_along() {
    let batch = Batch::new();
    let env = &batch.env;
    batch.writes("alpha");
    let checkout = env.root().join("shown");
    let shown = checkout.display().to_string();
    env.git(&["worktree", "add", "--quiet", "-b", "dev", &shown, "main"]);
    assert_eq!(batch.integrate(&["1"]).code, 5);
    batch.approve("2");
    let refused = batch.resume("2", &[]);
    assert_ne!(refused.code, 0, "{refused:?}");
    let text = format!("{}{}", refused.stdout, refused.stderr);
    assert!(text.contains("it is checked out in"), "{text}");
    assert_eq!(env.commit_of("dev"), env.commit_of("main"));
    assert!(!checkout.join("alpha.txt").exists());
    env.git(&["-C", &shown, "switch", "--quiet", "--detach"]);
    let done = batch.resume("2", &[]);
    assert_eq!(done.code, 0, "{done:?}");
    env.git(&["-C", &shown, "switch", "--quiet", "dev"]);
    batch.goal("write beta", "echo beta > beta.txt", &["test -s beta.txt"]);
    assert_eq!(batch.integrate(&["3", "--bring-checkout"]).code, 5);
    batch.approve("4");
    let brought = batch.resume("4", &[]);
    assert_eq!(brought.code, 0, "{brought:?}");
    assert_eq!(
        fs::read_to_string(checkout.join("beta.txt")).unwrap(),
        "beta\n"
    );
    assert_eq!(env.git(&["-C", &shown, "status", "--porcelain"]), "");
}
