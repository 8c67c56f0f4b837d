//! The integration branch moves to what was proved, or the person is told what they can do.

use kapi_core::integration_branch::{CheckoutRule, IntegrationBranch};
use kapi_workflow::rules::effect::{Advancing, WorkflowAction, WorkflowEffect};
use kapi_workflow::rules::outcome::WorkflowOutcome;

use super::{WorkflowRig, effect};

const NOTHING: &str = "turns: []\n";

/// Makes `dev` at the base and a commit that goes on from it, and returns that.
fn proved(rig: &WorkflowRig) -> String {
    rig.machine.git(&["branch", "dev"]);
    rig.machine.git(&["checkout", "--quiet", "-b", "aside"]);
    rig.machine.write("answer.txt", "right\n");
    rig.machine.commit("task");
    let commit = rig.machine.git(&["rev-parse", "HEAD"]);
    rig.machine.git(&["checkout", "--quiet", "main"]);
    commit
}

fn advance(from: &str, to: &str, checkout: CheckoutRule) -> WorkflowEffect {
    let step = Advancing {
        target: IntegrationBranch::DEV,
        from: from.to_owned(),
        to: to.to_owned(),
        checkout,
    };
    effect("advance", WorkflowAction::Advance(Box::new(step)))
}

#[test]
fn the_integration_branch_moves_once() {
    let rig = WorkflowRig::new(NOTHING);
    let (base, to) = (rig.base(), proved(&rig));
    for _ in 0..2 {
        let outcome = rig.perform(&advance(&base, &to, CheckoutRule::Refuse));
        let at = to.clone();
        let brought = None;
        assert_eq!(outcome, WorkflowOutcome::Advanced { at, brought });
        assert_eq!(rig.machine.git(&["rev-parse", "dev"]), to);
    }
    let outcome = rig.perform(&advance(&base, &base, CheckoutRule::Refuse));
    assert_eq!(outcome, WorkflowOutcome::Moved { found: Some(to) });
}

#[test]
fn a_checkout_of_it_is_brought_along_only_where_that_was_approved() {
    let rig = WorkflowRig::new(NOTHING);
    let (base, to) = (rig.base(), proved(&rig));
    rig.machine.git(&["checkout", "--quiet", "dev"]);
    let WorkflowOutcome::Failed {
        failure, may_pass, ..
    } = rig.perform(&advance(&base, &to, CheckoutRule::Refuse))
    else {
        panic!("it moved under a checkout");
    };
    assert!(!may_pass);
    let says = failure
        .message
        .starts_with("move branch dev: it is checked out in ");
    assert!(says, "{failure:?}");
    let hint = failure.hint.unwrap_or_default();
    assert!(hint.contains("switch --detach"), "{hint}");
    assert_eq!(rig.machine.git(&["rev-parse", "dev"]), base);
    rig.machine.write("answer.txt", "mine\n");
    let outcome = rig.perform(&advance(&base, &to, CheckoutRule::BringClean));
    let WorkflowOutcome::Failed { failure, .. } = outcome else {
        panic!("it wrote over somebody's work: {outcome:?}");
    };
    assert!(
        failure.message.ends_with("not committed are answer.txt"),
        "{failure:?}"
    );
    rig.machine.write("answer.txt", "wrong\n");
    let outcome = rig.perform(&advance(&base, &to, CheckoutRule::BringClean));
    let WorkflowOutcome::Advanced { brought, .. } = outcome else {
        panic!("it did not move: {outcome:?}");
    };
    assert!(brought.is_some());
    assert_eq!(rig.machine.git(&["status", "--porcelain"]), "");
    assert_eq!(rig.machine.git(&["rev-parse", "HEAD"]), to);
}
