//! Reservations that are asked for again or lose their process, and days long past.

use std::collections::BTreeSet;

use super::{Case, DAY_MS, NOW, caps, granted, request, used};
use crate::rules::caps::Caps;
use crate::rules::day::Day;
use crate::rules::decide::{OPEN_MS_MAX, meter, recover, reserve};
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
