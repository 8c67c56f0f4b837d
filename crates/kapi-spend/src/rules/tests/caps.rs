//! Reservations under caps: what is granted, refused and let go on.

use super::{Case, NOW, caps, granted, refusal, request, used};
use crate::rules::account::ReservationId;
use crate::rules::caps::{CapScope, Caps};
use crate::rules::day::Day;
use crate::rules::decide::{
    Amount, GoalBudget, SpendAnswer, SpendRequest, TurnAllowance, allowance, meter, release,
};

#[test]
fn without_caps_everything_is_granted_and_booked() {
    let mut case = Case::new();
    let wish = request("shop", "001-a", "t1", 5_000_000);
    assert_eq!(case.reserve(&wish, &Caps::none()), granted(5_000_000));
    case.settle(&wish.id, 1_200_000);
    let cap_status = case.totals.cap_status(None, Day::of_ms(NOW), 10);
    assert_eq!((cap_status.spent, cap_status.reserved), (1_200_000, 0));
    assert_eq!(case.totals.dearest_turn("claude", "m"), Some(1_200_000));
}

#[test]
fn a_reservation_counts_until_it_is_settled_or_released() {
    let mut case = Case::new();
    let caps = caps(Some(1_000), None);
    let (one, two) = (
        request("shop", "001-a", "t1", 600),
        request("shop", "002-b", "t1", 600),
    );
    assert_eq!(case.reserve(&one, &caps), granted(600));
    assert_eq!(case.reserve(&two, &caps), granted(400), "what is left");
    let three = request("shop", "003-c", "t1", 1);
    let refused = case.reserve(&three, &caps);
    assert_eq!(refusal(&refused), (CapScope::MachineDay, 0, 1_000, 1_000));
    let events = release(&case.totals, &two.id);
    case.take(&events);
    case.settle(&one.id, 100);
    assert_eq!(case.reserve(&three, &caps), granted(1));
}

#[test]
fn less_than_the_least_is_refused() {
    let mut case = Case::new();
    let caps = caps(Some(1_000), None);
    let mut wish = request("shop", "001-a", "t1", 5_000);
    wish.amount = Amount::Known {
        wanted: 5_000,
        least: 1_001,
    };
    assert_eq!(refusal(&case.reserve(&wish, &caps)).0, CapScope::MachineDay);
    wish.amount = Amount::Known {
        wanted: 5_000,
        least: 1_000,
    };
    assert_eq!(case.reserve(&wish, &caps), granted(1_000));
}

#[test]
fn the_tightest_cap_is_named_and_says_when_it_is_renewed() {
    let mut case = Case::new();
    let spent = request("shop", "001-a", "t1", 900);
    case.reserve(&spent, &Caps::none());
    case.settle(&spent.id, 900);
    let caps = caps(Some(10_000), Some(900));
    let refused = case.reserve(&request("shop", "001-a", "t2", 1), &caps);
    let midnight = Day::of_ms(NOW).end_ms();
    assert!(
        matches!(refused, SpendAnswer::Refused { renewed_at_ms: Some(at), .. } if at == midnight),
        "{refused:?}"
    );
    assert_eq!(refusal(&refused), (CapScope::ProjectDay, 900, 0, 900));
    // Another project has a cap of its own, and tomorrow is another day.
    assert_eq!(
        case.reserve(&request("other", "001-a", "t1", 9), &caps),
        granted(9)
    );
    case.now_ms = midnight;
    assert_eq!(
        case.reserve(&request("shop", "001-a", "t2", 1), &caps),
        granted(1)
    );
}

#[test]
fn attempts_at_one_goal_share_its_budget() {
    let mut case = Case::new();
    let attempt = |effect: &str| SpendRequest {
        goal: Some(GoalBudget {
            spent: 400,
            cap: 1_000,
        }),
        ..request("shop", "001-a", effect, 500)
    };
    assert_eq!(
        case.reserve(&attempt("t1-claude"), &Caps::none()),
        granted(500)
    );
    assert_eq!(
        case.reserve(&attempt("t1-codex"), &Caps::none()),
        granted(100)
    );
    let refused = case.reserve(&attempt("t1-gemini"), &Caps::none());
    assert_eq!(refusal(&refused), (CapScope::Goal, 400, 600, 1_000));
    assert!(matches!(
        refused,
        SpendAnswer::Refused {
            renewed_at_ms: None,
            ..
        }
    ));
}

#[test]
fn what_costs_nothing_is_granted_under_a_cap_that_is_used_up() {
    let mut case = Case::new();
    let caps = caps(Some(0), Some(0));
    assert_eq!(
        case.reserve(&request("shop", "001-a", "t1", 0), &caps),
        granted(0)
    );
    assert_eq!(
        refusal(&case.reserve(&request("shop", "001-a", "t2", 1), &caps)).3,
        0
    );
}

#[test]
fn a_turn_that_uses_more_than_granted_counts_and_is_stopped_at_a_cap() {
    let mut case = Case::new();
    let caps = caps(Some(1_000), None);
    let wish = request("shop", "001-a", "t1", 500);
    case.reserve(&wish, &caps);
    let say = |case: &mut Case, micros| {
        let events = meter(&case.totals, &wish.id, &used(micros));
        case.take(&events);
        allowance(&case.totals, &wish.id, &caps, NOW)
    };
    assert_eq!(say(&mut case, 200), TurnAllowance::Left(Some(800)));
    assert_eq!(say(&mut case, 900), TurnAllowance::Left(Some(100)));
    assert!(
        meter(&case.totals, &wish.id, &used(900)).is_empty(),
        "nothing new"
    );
    let other = request("shop", "002-b", "t1", 500);
    assert_eq!(
        case.reserve(&other, &caps),
        granted(100),
        "what is metered is claimed"
    );
    match say(&mut case, 901) {
        TurnAllowance::Over(cap_status) => assert_eq!(cap_status.committed(), 1_001),
        TurnAllowance::Left(left) => panic!("{left:?}"),
    }
    let gone = ReservationId::new("no", "such", "turn");
    assert_eq!(
        allowance(&case.totals, &gone, &caps, NOW),
        TurnAllowance::Left(None)
    );
}

#[test]
fn doing_it_again_changes_nothing() {
    let mut case = Case::new();
    let caps = caps(Some(1_000), None);
    let wish = request("shop", "001-a", "t1", 1_000);
    assert_eq!(case.reserve(&wish, &caps), granted(1_000));
    assert_eq!(
        case.reserve(&wish, &caps),
        granted(1_000),
        "its own place is free for it"
    );
    case.settle(&wish.id, 10);
    let before = case.totals.clone();
    case.settle(&wish.id, 10);
    let events = release(&case.totals, &wish.id);
    case.take(&events);
    let events = meter(&case.totals, &wish.id, &used(99));
    case.take(&events);
    assert_eq!(case.totals, before);
}
