//! Turns of a pretended agent against a real ledger in a directory.

use std::collections::BTreeMap;
use std::path::Path;

use kapi_agent::agent::AgentKind;
use kapi_core::agent_end::{AgentEnd, AgentRun};
use kapi_core::usage::Usage;
use kapi_machine::watch::{Activity, EffectWatch, unlimited};
use kapi_run::grant::Grant;
use kapi_run::host_grants::HostGrants;
use kapi_run::spending::turn::{BookedTurn, TurnKey};
use kapi_run::spending::{Spending, usd};
use kapi_spend::record::{Ledger, LedgerHome};
use kapi_spend::rules::account::ModelRole;
use kapi_spend::rules::caps::Caps;
use kapi_spend::rules::prices::Prices;
use kapi_sys::cancel::Cancel;
use kapi_sys::clock::{Clock, StepClock};
use kapi_sys::real_disk::RealDisk;

use super::within_caps;
use crate::rules::outcome::GoalOutcome;

fn spending<'a>(home: &Path, clock: &'a dyn Clock, machine_per_day: Option<u64>) -> Spending<'a> {
    let home = LedgerHome {
        disk: &RealDisk,
        clock,
        home: home.to_path_buf(),
        owner: "test".to_owned(),
    };
    Spending {
        ledger: Some(Ledger::open(home).unwrap()),
        caps: Caps {
            machine_per_day,
            ask_at_percent: 100,
            ..Caps::none()
        },
        project: "app".to_owned(),
        clock,
    }
}

fn turn(agent: &str, effect: &str) -> BookedTurn {
    let grants = HostGrants {
        agents: BTreeMap::new(),
        judges: BTreeMap::new(),
        prices: Prices::built_in(),
        grant: Grant::default(),
        env: BTreeMap::new(),
        home: "/home/user".into(),
        self_exe: "/usr/bin/kapi".into(),
    };
    let kind = AgentKind::parse(agent).unwrap();
    let key = TurnKey {
        goal: "001-a".to_owned(),
        effect: effect.to_owned(),
    };
    BookedTurn::of_agent(key, &kind, ModelRole::Executor, &grants)
}

const fn used(usd_micros: u64) -> Usage {
    Usage {
        input_tokens: 100,
        output_tokens: 10,
        usd_micros: Some(usd_micros),
        ..Usage::ZERO
    }
}

fn finished(usage: Usage) -> GoalOutcome {
    GoalOutcome::Agent(AgentRun {
        end: AgentEnd::Finished,
        claim: None,
        message: String::new(),
        session: None,
        usage,
        tools: 0,
        isolation: None,
        score: None,
    })
}

fn cancelled(usage: Usage) -> GoalOutcome {
    let session = None;
    GoalOutcome::Cancelled { usage, session }
}

/// Performs a turn that uses so much in each step, until it is cancelled; returns how many it did.
fn perform(spending: &Spending<'_>, turn: &BookedTurn, steps: &[u64]) -> (GoalOutcome, usize) {
    let cancel = Cancel::new();
    let mut n_done = 0;
    let watch = EffectWatch {
        cancel: &cancel,
        notice: &|_| {},
        room: &unlimited,
    };
    let outcome = within_caps(spending, turn, &watch, |watch| {
        for step in steps {
            n_done += 1;
            (watch.notice)(Activity::Used(used(*step)));
            if watch.cancel.is_raised() {
                return cancelled(Usage::default());
            }
        }
        finished(Usage::default())
    });
    (outcome, n_done)
}

fn spent(spending: &Spending<'_>) -> (u64, u64, u64) {
    let totals = spending.ledger.as_ref().unwrap().totals().unwrap();
    assert!(totals.open.is_empty(), "{:?}", totals.open);
    let sums = totals.days.values().flatten().map(|entry| entry.sum);
    sums.fold((0, 0, 0), |(micros, turns, unknown), sum| {
        (
            micros + sum.usd_micros,
            turns + sum.turns,
            unknown + sum.unknown_turns,
        )
    })
}

#[test]
fn without_caps_nothing_is_refused_and_everything_is_booked() {
    let home = tempfile::tempdir().unwrap();
    let clock = StepClock::new(1_000);
    let spending = spending(home.path(), &clock, None);
    let script = turn("script:a.yaml", "e1");
    let (outcome, n_done) = perform(&spending, &script, &[9_000_000, 8_000_000]);
    assert_eq!((outcome, n_done), (finished(Usage::default()), 2));
    assert_eq!(spent(&spending), (17_000_000, 1, 0));
    // What nobody counted is booked as a turn of unknown cost.
    perform(&spending, &turn("command:true", "e2"), &[]);
    assert_eq!(spent(&spending), (17_000_000, 2, 1));
    // An agent that was never asked is not booked.
    perform(&spending, &turn("codex", "e3"), &[]);
    assert_eq!(spent(&spending), (17_000_000, 2, 1));
}

#[test]
fn a_cap_ends_a_turn_in_the_middle_and_the_next_before_it_begins() {
    let home = tempfile::tempdir().unwrap();
    let clock = StepClock::new(1_000);
    let spending = spending(home.path(), &clock, Some(1_000_000));
    let script = |effect| turn("script:a.yaml", effect);
    let (outcome, n_done) = perform(&spending, &script("e1"), &[400_000, 500_000, 400_000, 1]);
    let GoalOutcome::CapReached { cap, .. } = outcome else {
        panic!("{outcome:?}")
    };
    assert_eq!(n_done, 3);
    assert!(cap.contains("of $1.00"), "{cap}");
    assert_eq!(spent(&spending), (1_300_000, 1, 0));
    let (outcome, n_done) = perform(&spending, &script("e2"), &[1]);
    let expected = "this machine today has spent $1.30 of $1.00";
    assert_eq!(n_done, 0, "it did not begin");
    assert_eq!(
        outcome,
        GoalOutcome::CapReached {
            cap: expected.to_owned(),
            session: None,
        }
    );
}

#[test]
fn two_at_once_share_a_cap() {
    let home = tempfile::tempdir().unwrap();
    let clock = StepClock::new(1_000);
    let one = spending(home.path(), &clock, Some(600_000));
    let other = spending(home.path(), &clock, Some(600_000));
    let cancel = Cancel::new();
    let watch = EffectWatch {
        cancel: &cancel,
        notice: &|_| {},
        room: &unlimited,
    };
    let outcome = within_caps(&one, &turn("script:a.yaml", "e1"), &watch, |watch| {
        (watch.notice)(Activity::Used(used(10_000)));
        // 0.5 are reserved, so the other may use 0.1 and not 0.2.
        let (outcome, n_done) = perform(&other, &turn("script:b.yaml", "e2"), &[90_000, 90_000]);
        assert!(
            matches!(outcome, GoalOutcome::CapReached { .. }),
            "{outcome:?}"
        );
        assert_eq!(n_done, 2);
        finished(Usage::default())
    });
    assert!(matches!(outcome, GoalOutcome::Agent(_)), "{outcome:?}");
    assert_eq!(spent(&one), (190_000, 2, 0));
}

#[test]
fn with_a_cap_a_person_is_asked_about_a_model_of_unknown_price() {
    let home = tempfile::tempdir().unwrap();
    let clock = StepClock::new(1_000);
    let capped = spending(home.path(), &clock, Some(600_000));
    let (outcome, n_done) = perform(&capped, &turn("codex", "e1"), &[]);
    let GoalOutcome::CapReached { cap, .. } = outcome else {
        panic!("{outcome:?}")
    };
    assert!(cap.contains("--go-on unknown-price"), "{cap}");
    assert_eq!(n_done, 0);
}

#[test]
fn amounts_are_written_with_the_decimals_they_have() {
    let written = [0, 1, 1_500_000, 20_000, 12_345_678].map(usd);
    assert_eq!(
        written,
        ["$0.00", "$0.000001", "$1.50", "$0.02", "$12.345678"]
    );
}
