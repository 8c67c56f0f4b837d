//! The rules of spending over random histories.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::{Strategy, any, prop, prop_assert, prop_assert_eq, prop_oneof, proptest};

use super::{Case, DAY_MS, NOW, caps, request, used};
use crate::rules::account::ReservationId;
use crate::rules::caps::Caps;
use crate::rules::day::Day;
use crate::rules::decide::{
    Amount, SpendAnswer, SpendRequest, meter, recover, release, reserve, settle,
};
use crate::rules::event::{SpendEvent, TurnUsage};
use crate::rules::report::{SpendGrouping, SpendSelection, report};
use crate::rules::totals::Sum;

/// One step of a random history.
#[derive(Debug, Clone)]
enum Step {
    Reserve { goal: u8, holder: u32, wanted: u64 },
    Meter { goal: u8, micros: u64 },
    Settle { goal: u8, micros: u64 },
    Release { goal: u8 },
    Die { holder: u32 },
    Wait { ms: i64 },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let goal = || 0_u8..6;
    let step = prop_oneof![
        4 => (goal(), 1_u32..4, 0_u64..700)
            .prop_map(|(goal, holder, wanted)| Step::Reserve { goal, holder, wanted }),
        3 => (goal(), 0_u64..700).prop_map(|(goal, micros)| Step::Meter { goal, micros }),
        3 => (goal(), 0_u64..700).prop_map(|(goal, micros)| Step::Settle { goal, micros }),
        1 => goal().prop_map(|goal| Step::Release { goal }),
        1 => (1_u32..4).prop_map(|holder| Step::Die { holder }),
        1 => (0_i64..DAY_MS).prop_map(|ms| Step::Wait { ms }),
    ];
    prop::collection::vec(step, 1..60)
}

proptest! {
    /// Turns that use no more than they were granted never go over a cap together, on any day,
    /// and every millionth is in the books once.
    #[test]
    fn honest_turns_never_go_over_a_cap_together(
        steps in steps(),
        machine in 0_u64..2_000,
        project in 0_u64..2_000,
    ) {
        let caps = caps(Some(machine), Some(project));
        let mut case = Case::new();
        let mut grants: BTreeMap<ReservationId, u64> = BTreeMap::new();
        let mut booked: u64 = 0;
        for step in steps {
            let name = |goal: u8| {
                let project = if goal < 3 { "shop" } else { "other" };
                request(project, &goal.to_string(), "t", 0)
            };
            let cut = |grants: &BTreeMap<ReservationId, u64>, goal: u8, micros: u64| {
                let id = name(goal).id;
                (micros.min(grants.get(&id).copied().unwrap_or(0)), id)
            };
            match step {
                Step::Reserve { goal, holder, wanted } => {
                    let wish = SpendRequest {
                        amount: Amount::Known { wanted, least: 1 },
                        ..name(goal)
                    };
                    if case.totals.open.contains_key(&wish.id) {
                        continue;
                    }
                    let (answer, events) =
                        reserve(&case.totals, &wish, &caps, holder, case.now_ms);
                    case.take(&events);
                    if let SpendAnswer::Granted { usd_micros: Some(micros) } = answer {
                        grants.insert(wish.id, micros);
                    }
                }
                Step::Meter { goal, micros } => {
                    let (micros, id) = cut(&grants, goal, micros);
                    let events = meter(&case.totals, &id, &used(micros));
                    case.take(&events);
                }
                Step::Settle { goal, micros } => {
                    let (micros, id) = cut(&grants, goal, micros);
                    if case.totals.open.contains_key(&id) {
                        booked += micros;
                    }
                    case.settle(&id, micros);
                }
                Step::Release { goal } => {
                    let events = release(&case.totals, &name(goal).id);
                    case.take(&events);
                }
                Step::Die { holder } => {
                    let living: BTreeSet<u32> = (1..4).filter(|other| *other != holder).collect();
                    let events = recover(&case.totals, &living, case.now_ms);
                    for event in &events {
                        if let SpendEvent::Settled { used, .. } = event {
                            booked += used.usd_micros.unwrap_or(0);
                        }
                    }
                    case.take(&events);
                }
                Step::Wait { ms } => case.now_ms += ms,
            }
            let today = Day::of_ms(case.now_ms);
            for (project, cap) in [(None, machine), (Some("shop"), project), (Some("other"), project)] {
                prop_assert!(!case.totals.cap_status(project, today, cap).is_over());
                for day in case.totals.days.keys() {
                    prop_assert!(case.totals.cap_status(project, *day, cap).spent <= cap);
                }
            }
        }
        let selection = SpendSelection { project: None, since: None };
        for by in [SpendGrouping::Goal, SpendGrouping::Agent, SpendGrouping::Model, SpendGrouping::Day, SpendGrouping::Project] {
            let found = report(&case.totals, by, &selection);
            let mut sum = Sum::default();
            for row in &found.rows {
                sum.add(&row.sum);
            }
            prop_assert_eq!(sum, found.total);
            prop_assert_eq!(found.total.usd_micros, booked);
        }
    }

    #[test]
    fn no_event_breaks_the_fold(amounts in prop::collection::vec(any::<Option<u64>>(), 0..20)) {
        let mut case = Case::new();
        for (number, micros) in amounts.iter().enumerate() {
            let wish = request("shop", &number.to_string(), "t", 1);
            case.take(&reserve(&case.totals, &wish, &Caps::none(), 1, NOW).1);
            let used = TurnUsage { usd_micros: *micros, ..used(u64::MAX) };
            let events = settle(&case.totals, &wish.id, &used);
            case.take(&events);
        }
        let cap_status = case.totals.cap_status(None, Day::of_ms(NOW), 0);
        let known = amounts.iter().flatten().fold(0_u64, |sum, micros| sum.saturating_add(*micros));
        prop_assert_eq!(cap_status.spent, known);
    }
}
