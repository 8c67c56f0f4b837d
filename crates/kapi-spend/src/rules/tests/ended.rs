//! Reservations that are asked for again or lose their process, and days long past.

use std::collections::BTreeSet;

use kapi_core::room::CallClaim;
use kapi_core::usage::Doubt;

use super::{Case, DAY_MS, NOW, caps, granted, request, used};
use crate::rules::caps::Caps;
use crate::rules::day::Day;
use crate::rules::decide::{OPEN_MS_MAX, TurnAllowance, allowance, claim, meter, recover, reserve};
use crate::rules::event::{EndedBy, SpendEvent};
use crate::rules::report::{SpendGrouping, SpendSelection, report};
use crate::rules::totals::DAYS_KEPT;

#[test]
fn a_grant_asked_for_again_does_not_forget_what_was_used() {
    let mut case = Case::new();
    let caps = caps(Some(1_000), None);
    let wish = request("shop", "001-a", "t1", 1_000);
    case.reserve(&wish, &caps);
    let events = meter(&case.totals, &wish.id, &used(300));
    case.take(&events);
    assert_eq!(case.reserve(&wish, &caps), granted(700));
    let cap_status = case.totals.cap_status(None, Day::of_ms(NOW), 1_000);
    assert_eq!((cap_status.spent, cap_status.reserved), (300, 700));
    case.settle(&wish.id, 700);
    let cap_status = case.totals.cap_status(None, Day::of_ms(NOW), 1_000);
    assert_eq!((cap_status.spent, cap_status.reserved), (1_000, 0));
}

#[test]
fn the_dead_are_settled_by_what_was_metered() {
    let mut case = Case::new();
    let metered = request("shop", "001-a", "t1", 500);
    let silent = request("shop", "002-b", "t1", 500);
    let alive = request("shop", "003-c", "t1", 500);
    for (wish, holder) in [(&metered, 1), (&silent, 1), (&alive, 2)] {
        let (_, events) = reserve(&case.totals, wish, &Caps::none(), holder, NOW);
        case.take(&events);
    }
    let events = meter(&case.totals, &metered.id, &used(70));
    case.take(&events);
    let living = BTreeSet::from([2]);
    let events = recover(&case.totals, &living, NOW + 1);
    assert_eq!(
        events,
        [
            SpendEvent::Settled {
                id: metered.id.clone(),
                used: used(70),
                by: EndedBy::Recovery
            },
            SpendEvent::Released {
                id: silent.id,
                by: EndedBy::Recovery
            },
        ]
    );
    case.take(&events);
    assert!(recover(&case.totals, &living, NOW + OPEN_MS_MAX).is_empty());
    let events = recover(&case.totals, &living, NOW + OPEN_MS_MAX + 1);
    assert!(matches!(&events[..], [SpendEvent::Released { id, .. }] if *id == alive.id));
}

#[test]
fn old_days_become_months_and_the_sum_stays() {
    let mut case = Case::new();
    let n_days = u64::from(DAYS_KEPT) * 3;
    for number in 0..n_days {
        let wish = request("shop", &format!("{number:03}-a"), "t1", 10);
        case.reserve(&wish, &Caps::none());
        case.settle(&wish.id, number + 1);
        case.now_ms += DAY_MS;
    }
    assert_eq!(case.totals.days.len(), DAYS_KEPT as usize);
    assert!(
        case.totals.months.len() <= 6,
        "{:?}",
        case.totals.months.keys()
    );
    for entries in case.totals.months.values() {
        assert_eq!(entries.len(), 1, "goals are no longer kept apart");
    }
    let all = SpendSelection {
        project: None,
        since: None,
    };
    let total = report(&case.totals, SpendGrouping::Day, &all).total;
    assert_eq!(total.usd_micros, n_days * (n_days + 1) / 2);
    assert_eq!((total.turns, total.dearest), (n_days, n_days));
}

#[test]
fn calls_of_the_dead_are_booked_at_their_most_and_said_to_be() {
    let mut case = Case::new();
    let wish = request("shop", "001-a", "t1", 100);
    case.reserve(&wish, &Caps::none());
    let open = CallClaim {
        tokens: 50,
        usd_micros: 70,
    };
    let events = claim(&case.totals, &wish.id, &used(40), &open);
    case.take(&events);
    assert_eq!(
        case.totals.open[&wish.id].claim(),
        110,
        "it is beyond its grant"
    );
    assert_eq!(claim(&case.totals, &wish.id, &used(40), &open), []);
    let events = recover(&case.totals, &BTreeSet::new(), NOW);
    case.take(&events);
    let by = SpendGrouping::Project;
    let selection = SpendSelection {
        project: None,
        since: None,
    };
    let total = report(&case.totals, by, &selection).total;
    assert_eq!(total.usd_micros, 110);
    let doubt = Doubt {
        calls: 1,
        tokens: 50,
        usd_micros: 70,
        unpriced_calls: 0,
    };
    assert_eq!(total.doubt, doubt);
}

#[test]
fn what_calls_under_way_may_use_is_kept_from_others() {
    let caps = caps(Some(1_000), None);
    let mut case = Case::new();
    let (one, two) = (
        request("shop", "001-a", "t1", 100),
        request("shop", "002-b", "t1", 100),
    );
    case.reserve(&one, &caps);
    case.reserve(&two, &caps);
    let all = CallClaim {
        tokens: 1,
        usd_micros: 900,
    };
    let events = claim(&case.totals, &one.id, &used(0), &all);
    case.take(&events);
    let left = |case: &Case, id| allowance(&case.totals, id, &caps, NOW);
    assert_eq!(left(&case, &one.id), TurnAllowance::Left(Some(900)));
    assert_eq!(left(&case, &two.id), TurnAllowance::Left(Some(100)));
    let events = claim(&case.totals, &one.id, &used(300), &CallClaim::default());
    case.take(&events);
    assert_eq!(left(&case, &two.id), TurnAllowance::Left(Some(700)));
}
