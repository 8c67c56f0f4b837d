//! The rules of spending, case by case and over random histories.

use std::collections::{BTreeMap, BTreeSet};

use kapi_core::actor::Actor;
use proptest::prelude::{Strategy, any, prop, prop_assert, prop_assert_eq, prop_oneof, proptest};

use crate::rules::account::{Account, ModelRole, ReservationId};
use crate::rules::caps::{CapScope, Caps};
use crate::rules::day::Day;
use crate::rules::decide::{
    Amount, GoalBudget, OPEN_MS_MAX, SpendAnswer, SpendDenied, SpendRequest, TurnAllowance, allow,
    allowance, meter, recover, release, reserve, settle,
};
use crate::rules::event::{EndedBy, SpendEvent, SpendPermit, TurnUsage};
use crate::rules::report::{SpendGrouping, SpendSelection, report};
use crate::rules::tokens::TokenCounts;
use crate::rules::totals::{DAYS_KEPT, LedgerTotals, Sum};

/// Noon of 2026-11-22.
const NOW: i64 = 1_795_348_800_000;
const DAY_MS: i64 = 86_400_000;

fn account(project: &str, goal: &str) -> Account {
    Account {
        project: project.to_owned(),
        goal: goal.to_owned(),
        agent: "claude".to_owned(),
        role: ModelRole::Executor,
        provider: "anthropic".to_owned(),
        model: "m".to_owned(),
    }
}

fn request(project: &str, goal: &str, effect: &str, wanted: u64) -> SpendRequest {
    SpendRequest {
        id: ReservationId::new(project, goal, effect),
        account: account(project, goal),
        amount: Amount::Known { wanted, least: 1 },
        goal: None,
    }
}

fn caps(machine: Option<u64>, project: Option<u64>) -> Caps {
    Caps {
        machine_per_day: machine,
        project_per_day: project,
        ask_at_percent: 100,
    }
}

fn used(micros: u64) -> TurnUsage {
    TurnUsage {
        tokens: TokenCounts {
            input: micros,
            output: 1,
            ..TokenCounts::default()
        },
        usd_micros: Some(micros),
    }
}

fn person() -> Actor {
    Actor::Human {
        user: "ada".to_owned(),
    }
}

/// Books, and the time.
struct Case {
    totals: LedgerTotals,
    now_ms: i64,
}

impl Case {
    fn new() -> Self {
        Self {
            totals: LedgerTotals::default(),
            now_ms: NOW,
        }
    }

    fn take(&mut self, events: &[SpendEvent]) {
        for event in events {
            self.totals.evolve(event, self.now_ms);
        }
    }

    fn reserve(&mut self, request: &SpendRequest, caps: &Caps) -> SpendAnswer {
        let (answer, events) = reserve(&self.totals, request, caps, 1, self.now_ms);
        let is_granted = matches!(answer, SpendAnswer::Granted { .. });
        assert_eq!(
            is_granted,
            !events.is_empty(),
            "only a grant changes anything"
        );
        self.take(&events);
        answer
    }

    fn settle(&mut self, id: &ReservationId, micros: u64) {
        let events = settle(&self.totals, id, &used(micros));
        self.take(&events);
    }
}

fn granted(micros: u64) -> SpendAnswer {
    SpendAnswer::Granted {
        usd_micros: Some(micros),
    }
}

/// Returns what a refusal is about: scope, spent, reserved, cap.
fn refusal(answer: &SpendAnswer) -> (CapScope, u64, u64, u64) {
    match answer {
        SpendAnswer::Refused { cap_status, .. } | SpendAnswer::AskPerson { cap_status, .. } => (
            cap_status.scope,
            cap_status.spent,
            cap_status.reserved,
            cap_status.cap,
        ),
        SpendAnswer::Granted { .. } => panic!("it was granted: {answer:?}"),
    }
}

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
fn near_a_cap_a_person_is_asked_once_a_day() {
    let mut case = Case::new();
    let caps = Caps {
        ask_at_percent: 80,
        ..caps(Some(1_000), None)
    };
    let first = request("shop", "001-a", "t1", 800);
    assert_eq!(case.reserve(&first, &caps), granted(800));
    case.settle(&first.id, 800);
    let next = request("shop", "001-a", "t2", 100);
    let asked = case.reserve(&next, &caps);
    assert!(
        matches!(
            asked,
            SpendAnswer::AskPerson {
                question: SpendPermit::Threshold,
                ..
            }
        ),
        "{asked:?}"
    );
    for actor in [
        Actor::Engine,
        Actor::Agent {
            run: "r".to_owned(),
        },
    ] {
        let refused = allow(&actor, &case.totals, SpendPermit::Threshold, NOW);
        assert_eq!(refused, Err(SpendDenied::OnlyHuman));
    }
    let events = allow(&person(), &case.totals, SpendPermit::Threshold, NOW).unwrap();
    case.take(&events);
    assert_eq!(
        allow(&person(), &case.totals, SpendPermit::Threshold, NOW),
        Ok(vec![])
    );
    assert_eq!(case.reserve(&next, &caps), granted(100));
    // The hard cap holds all the same.
    let refused = case.reserve(&request("shop", "001-a", "t3", 101), &caps);
    assert_eq!(refused, granted(100));
    assert_eq!(
        refusal(&case.reserve(&request("x", "1", "t", 1), &caps)).3,
        1_000
    );
    case.now_ms += DAY_MS;
    assert!(
        !case
            .totals
            .is_allowed(SpendPermit::Threshold, Day::of_ms(case.now_ms))
    );
}

#[test]
fn an_unknown_price_under_a_cap_is_a_question_and_never_nought() {
    let mut case = Case::new();
    let wish = SpendRequest {
        amount: Amount::Unknown,
        ..request("shop", "001-a", "t1", 0)
    };
    let unlimited = case.reserve(&wish, &Caps::none());
    assert_eq!(unlimited, SpendAnswer::Granted { usd_micros: None });
    let caps = caps(Some(1_000), None);
    let asked = case.reserve(&wish, &caps);
    assert!(matches!(
        asked,
        SpendAnswer::AskPerson {
            question: SpendPermit::UnknownPrice,
            ..
        }
    ));
    let events = allow(&person(), &case.totals, SpendPermit::UnknownPrice, NOW).unwrap();
    case.take(&events);
    assert_eq!(
        case.reserve(&wish, &caps),
        SpendAnswer::Granted { usd_micros: None }
    );
    let ended = TurnUsage {
        usd_micros: None,
        ..used(7)
    };
    let events = settle(&case.totals, &wish.id, &ended);
    case.take(&events);
    let selection = SpendSelection {
        project: None,
        since: None,
    };
    let found = report(&case.totals, SpendGrouping::Model, &selection);
    assert_eq!((found.total.usd_micros, found.total.unknown_turns), (0, 1));
    assert_eq!(found.total.tokens.input, 7);
    assert_eq!(found.unknown_models, ["anthropic/m"]);
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
fn a_report_answers_one_question_at_a_time() {
    let mut case = Case::new();
    let spend = |case: &mut Case, account: Account, micros: u64| {
        let wish = SpendRequest {
            id: ReservationId::new(&account.project, &account.goal, &account.agent),
            account,
            amount: Amount::Known {
                wanted: micros,
                least: 1,
            },
            goal: None,
        };
        case.reserve(&wish, &Caps::none());
        case.settle(&wish.id, micros);
    };
    spend(&mut case, account("shop", "001-a"), 10);
    let judge = Account {
        agent: "codex".to_owned(),
        role: ModelRole::Judge,
        provider: "openai".to_owned(),
        ..account("shop", "001-a")
    };
    spend(&mut case, judge, 3);
    case.now_ms += DAY_MS;
    spend(&mut case, account("other", "001-a"), 20);
    let keys = |by, project: Option<&str>, since| {
        let selection = SpendSelection {
            project: project.map(str::to_owned),
            since,
        };
        let found = report(&case.totals, by, &selection);
        let rows = found.rows.into_iter();
        rows.map(|row| format!("{} {}", row.key, row.sum.usd_micros))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        keys(SpendGrouping::Goal, None, None),
        ["other/001-a 20", "shop/001-a 13"]
    );
    assert_eq!(
        keys(SpendGrouping::Agent, None, None),
        ["claude 30", "codex (judge) 3"]
    );
    assert_eq!(
        keys(SpendGrouping::Agent, Some("shop"), None),
        ["claude 10", "codex (judge) 3"]
    );
    assert_eq!(
        keys(SpendGrouping::Model, None, None),
        ["anthropic/m 30", "openai/m 3"]
    );
    assert_eq!(
        keys(SpendGrouping::Day, None, None),
        ["2026-11-22 13", "2026-11-23 20"]
    );
    assert_eq!(
        keys(SpendGrouping::Project, None, None),
        ["other 20", "shop 13"]
    );
    let second = Some(Day::of_date(2026, 11, 23));
    assert_eq!(keys(SpendGrouping::Day, None, second), ["2026-11-23 20"]);
}

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
