//! The integration branch moves to what was proved, or the person is told what they can do.

use kapi_core::integration_branch::{CheckoutRule, IntegrationBranch};
use kapi_workflow::rules::effect::{Action, Advancing, Effect};
use kapi_workflow::rules::outcome::Outcome;

use super::{Bench, effect};

const NOTHING: &str = "turns: []\n";

/// Makes `dev` at the base and a commit that goes on from it, and returns that.
fn proved(bench: &Bench) -> String {
    bench.machine.git(&["branch", "dev"]);
    bench.machine.git(&["checkout", "--quiet", "-b", "aside"]);
    bench.machine.write("answer.txt", "right\n");
    bench.machine.commit("task");
    let commit = bench.machine.git(&["rev-parse", "HEAD"]);
    bench.machine.git(&["checkout", "--quiet", "main"]);
    commit
}

fn advance(from: &str, to: &str, checkout: CheckoutRule) -> Effect {
    let step = Advancing {
        target: IntegrationBranch::DEV,
        from: from.to_owned(),
        to: to.to_owned(),
        checkout,
    };
    effect("advance", Action::Advance(Box::new(step)))
}

#[test]
fn the_integration_branch_moves_once() {
    let bench = Bench::new(NOTHING);
    let (base, to) = (bench.base(), proved(&bench));
    for _ in 0..2 {
        let outcome = bench.perform(&advance(&base, &to, CheckoutRule::Refuse));
        let at = to.clone();
        let brought = None;
        assert_eq!(outcome, Outcome::Advanced { at, brought });
        assert_eq!(bench.machine.git(&["rev-parse", "dev"]), to);
    }
    let outcome = bench.perform(&advance(&base, &base, CheckoutRule::Refuse));
    assert_eq!(outcome, Outcome::Moved { found: Some(to) });
}

#[test]
fn a_checkout_of_it_is_brought_along_only_where_that_was_approved() {
    let bench = Bench::new(NOTHING);
    let (base, to) = (bench.base(), proved(&bench));
    bench.machine.git(&["checkout", "--quiet", "dev"]);
    let Outcome::Failed {
        failure, may_pass, ..
    } = bench.perform(&advance(&base, &to, CheckoutRule::Refuse))
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
    assert_eq!(bench.machine.git(&["rev-parse", "dev"]), base);
    bench.machine.write("answer.txt", "mine\n");
    let outcome = bench.perform(&advance(&base, &to, CheckoutRule::BringClean));
    let Outcome::Failed { failure, .. } = outcome else {
        panic!("it wrote over somebody's work: {outcome:?}");
    };
    assert!(
        failure.message.ends_with("not committed are answer.txt"),
        "{failure:?}"
    );
    bench.machine.write("answer.txt", "wrong\n");
    let outcome = bench.perform(&advance(&base, &to, CheckoutRule::BringClean));
    let Outcome::Advanced { brought, .. } = outcome else {
        panic!("it did not move: {outcome:?}");
    };
    assert!(brought.is_some());
    assert_eq!(bench.machine.git(&["status", "--porcelain"]), "");
    assert_eq!(bench.machine.git(&["rev-parse", "HEAD"]), to);
}
