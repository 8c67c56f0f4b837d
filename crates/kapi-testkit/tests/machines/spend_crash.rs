//! The ledger under power failures at every write: nothing granted is forgotten, nothing is booked
//! twice, and every cap holds.

use std::path::Path;

use kapi_spend::record::error::LedgerError;
use kapi_spend::record::{Ledger, LedgerHome};
use kapi_spend::rules::caps::Caps;
use kapi_spend::rules::day::Day;
use kapi_spend::rules::decide::SpendAnswer;
use kapi_spend::rules::report::{SpendGrouping, SpendSelection, report};
use kapi_sys::clock::StepClock;
use kapi_sys::sim_disk::{Mutation, SimDisk, Survival};
use kapi_testkit::crash::survivals;

use crate::spend::{capped, ledger_home, request, used};

const HOME: &str = "/home";
const NOW: i64 = 1_795_348_800_000;
const CAP: u64 = 1_000;
/// Enough turns for the fold to be written in between.
const TURNS: u64 = 7;
/// What each turn wishes for and uses.
const WANTED: u64 = 60;

/// What was acknowledged before the power failed.
#[derive(Debug, Default, Clone, Copy)]
struct Acknowledged {
    /// Turns whose settlement was acknowledged.
    settled: u64,
    /// Whether the turn after them was granted and its use reported.
    metered: bool,
}

fn sim_disk() -> SimDisk {
    let disk = SimDisk::new();
    disk.provide_dir(Path::new(HOME));
    disk
}

/// Takes turns until all are settled or the power fails.
fn take_turns(ledger_home: LedgerHome<'_>, said: &mut Acknowledged) -> Result<(), LedgerError> {
    let caps = capped(CAP);
    let ledger = Ledger::open(ledger_home)?;
    for turn in said.settled..TURNS {
        let wish = request("a", &turn.to_string(), WANTED);
        match ledger.reserve(&wish, &caps)? {
            SpendAnswer::Granted { usd_micros } => assert_eq!(usd_micros, Some(WANTED)),
            answer => panic!("there is room for every turn: {answer:?}"),
        }
        ledger.meter(&wish.id, &used(1), &caps)?;
        said.metered = true;
        ledger.settle(&wish.id, &used(WANTED))?;
        *said = Acknowledged {
            settled: turn + 1,
            metered: false,
        };
    }
    Ok(())
}

/// Looks at the books after a restart.
fn check(ledger_home: LedgerHome<'_>, said: Acknowledged) -> Result<u64, String> {
    // Whoever comes next ends what was left open.
    let ledger = Ledger::open(ledger_home).map_err(|error| format!("open: {error}"))?;
    let totals = ledger.totals().map_err(|error| format!("read: {error}"))?;
    if !totals.open.is_empty() {
        return Err(format!("a dead process still holds {:?}", totals.open));
    }
    let cap_status = totals.cap_status(None, Day::of_ms(NOW), CAP);
    let least = said.settled * WANTED + u64::from(said.metered);
    // The turn under way may have been settled or metered without a word, but never twice.
    let most = (said.settled + 1) * WANTED;
    if cap_status.is_over() || !(least..=most).contains(&cap_status.spent) {
        return Err(format!("{cap_status:?} after {said:?}"));
    }
    let selection = SpendSelection {
        project: None,
        since: None,
    };
    let total = report(&totals, SpendGrouping::Goal, &selection).total;
    if total.usd_micros != cap_status.spent || total.tokens.input != cap_status.spent {
        return Err(format!("the sums differ: {total:?}"));
    }
    Ok(cap_status.spent)
}

fn crash(op: u64, survival: Survival, mutation: Option<&Mutation>) -> Result<(), String> {
    let disk = sim_disk();
    if let Some(mutation) = mutation {
        disk.set_mutation(mutation.clone());
    }
    let clock = StepClock::new(NOW);
    let here = || ledger_home(&disk, &clock, Path::new(HOME));
    disk.crash_at(op, survival);
    let mut said = Acknowledged::default();
    let ended = take_turns(here(), &mut said);
    disk.crash_now(survival);
    disk.reboot();
    let context = format!("crash at {op} with {survival:?}, {ended:?}");
    check(here(), said).map_err(|fault| format!("{context}: {fault}"))?;
    // The ledger is as good as before.
    let wish = request("b", "after", 1);
    let after = Ledger::open(here()).and_then(|ledger| {
        let answer = ledger.reserve(&wish, &Caps::none())?;
        ledger.settle(&wish.id, &used(1))?;
        Ok(answer)
    });
    match after {
        Ok(SpendAnswer::Granted { .. }) => Ok(()),
        other => Err(format!("{context}: afterwards {other:?}")),
    }
}

fn n_ops() -> u64 {
    let disk = sim_disk();
    let clock = StepClock::new(NOW);
    let mut said = Acknowledged::default();
    take_turns(ledger_home(&disk, &clock, Path::new(HOME)), &mut said).unwrap();
    assert_eq!(said.settled, TURNS);
    disk.ops()
}

fn first_fault(mutation: Option<&Mutation>) -> Result<(), String> {
    for op in 0..=n_ops() {
        for survival in survivals(op) {
            crash(op, survival, mutation)?;
        }
    }
    Ok(())
}

#[test]
fn no_power_failure_loses_or_doubles_an_acknowledged_amount() {
    assert_eq!(first_fault(None), Ok(()));
}

#[test]
fn a_ledger_that_does_not_sync_is_found_out() {
    for mutation in [
        Mutation::SkipFileSync,
        Mutation::SkipDirSync,
        Mutation::SkipTruncate,
    ] {
        assert!(first_fault(Some(&mutation)).is_err(), "{mutation:?}");
    }
}
