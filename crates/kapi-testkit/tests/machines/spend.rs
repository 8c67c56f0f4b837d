//! The ledger with real processes: caps hold together, and the dead are settled.

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::{fs, thread};

use kapi_core::actor::Actor;
use kapi_spend::record::error::LedgerError;
use kapi_spend::record::{Ledger, LedgerHome};
use kapi_spend::rules::account::{Account, ModelRole, ReservationId};
use kapi_spend::rules::caps::Caps;
use kapi_spend::rules::day::Day;
use kapi_spend::rules::decide::{Amount, SpendAnswer, SpendDenied, SpendRequest, TurnAllowance};
use kapi_spend::rules::event::{SpendPermit, TurnUsage};
use kapi_spend::rules::tokens::TokenCounts;
use kapi_spend::rules::totals::LedgerTotals;
use kapi_sys::clock::{Clock, StepClock, SystemClock};
use kapi_sys::disk::Disk;
use kapi_sys::real_disk::RealDisk;

use crate::support::person;

const SPENDER: &str = env!("CARGO_BIN_EXE_kapi-testkit-spender");
const NOW: i64 = 1_795_348_800_000;

pub(crate) fn ledger_home<'a>(
    disk: &'a dyn Disk,
    clock: &'a dyn Clock,
    home: &Path,
) -> LedgerHome<'a> {
    LedgerHome {
        disk,
        clock,
        home: home.to_path_buf(),
        owner: "test".to_owned(),
    }
}

pub(crate) fn request(goal: &str, effect: &str, wanted: u64) -> SpendRequest {
    SpendRequest {
        id: ReservationId::new("shop", goal, effect),
        account: Account {
            project: "shop".to_owned(),
            goal: goal.to_owned(),
            agent: "claude".to_owned(),
            role: ModelRole::Executor,
            provider: "anthropic".to_owned(),
            model: "m".to_owned(),
        },
        amount: Amount::Known { wanted, least: 1 },
        goal: None,
    }
}

pub(crate) fn used(micros: u64) -> TurnUsage {
    TurnUsage {
        tokens: TokenCounts {
            input: micros,
            ..TokenCounts::default()
        },
        usd_micros: Some(micros),
        ..TurnUsage::default()
    }
}

pub(crate) fn capped(cap: u64) -> Caps {
    Caps {
        machine_per_day: Some(cap),
        ask_at_percent: 100,
        ..Caps::none()
    }
}

/// A process that spends; dropping it kills it.
struct Spender(Child);

impl Spender {
    #[expect(
        clippy::disallowed_methods,
        reason = "the door has no background processes to offer"
    )]
    fn start(home: &Path, args: &[&str]) -> Self {
        let mut command = Command::new(SPENDER);
        let (role, rest) = args.split_first().unwrap();
        command.arg(role).arg(home).args(rest);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        Self(command.spawn().unwrap())
    }

    fn first_line(&mut self) -> String {
        let mut line = String::new();
        let stdout = self.0.stdout.as_mut().unwrap();
        BufReader::new(stdout).read_line(&mut line).unwrap();
        line.trim().to_owned()
    }

    fn finish(mut self) -> u64 {
        let mut said = String::new();
        let stdout = self.0.stdout.as_mut().unwrap();
        stdout.read_to_string(&mut said).unwrap();
        assert!(self.0.wait().unwrap().success());
        said.trim().parse().unwrap()
    }
}

impl Drop for Spender {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

fn overwrite(path: &Path, text: &str) {
    RealDisk.write(path, text.as_bytes()).unwrap();
}

fn spent(totals: &LedgerTotals, now_ms: i64) -> (u64, u64) {
    let cap_status = totals.cap_status(None, Day::of_ms(now_ms), 0);
    (cap_status.spent, cap_status.reserved)
}

#[test]
fn processes_that_reserve_at_the_same_time_never_exceed_a_cap_together() {
    let dir = tempfile::tempdir().unwrap();
    let started_ms = SystemClock.now_ms();
    let spenders: Vec<Spender> = ["a", "b", "c", "d"]
        .map(|name| Spender::start(dir.path(), &["spend", name, "1000"]))
        .into();
    let shares: Vec<u64> = spenders.into_iter().map(Spender::finish).collect();
    let totals = ledger_home(&RealDisk, &SystemClock, dir.path())
        .totals()
        .unwrap();
    if Day::of_ms(started_ms) == Day::of_ms(SystemClock.now_ms()) {
        assert_eq!(
            shares.iter().sum::<u64>(),
            1_000,
            "to the last millionth: {shares:?}"
        );
        assert_eq!(spent(&totals, started_ms), (1_000, 0));
    }
    for day in totals.days.keys() {
        assert!(totals.cap_status(None, *day, 1_000).spent <= 1_000);
    }
}

#[test]
fn threads_that_reserve_at_the_same_time_never_exceed_a_cap_together() {
    let dir = tempfile::tempdir().unwrap();
    let clock = StepClock::new(NOW);
    let share = |number: usize| {
        let ledger = Ledger::open(ledger_home(&RealDisk, &clock, dir.path())).unwrap();
        let mut granted = 0;
        for turn in 0..5 {
            let wish = request(&number.to_string(), &turn.to_string(), 90);
            let answer = ledger.reserve(&wish, &capped(1_000)).unwrap();
            if let SpendAnswer::Granted { usd_micros } = answer {
                granted += usd_micros.unwrap();
            }
        }
        (ledger, granted)
    };
    let shares: Vec<(Ledger<'_>, u64)> = thread::scope(|scope| {
        let threads: Vec<_> = (0..6)
            .map(|number| scope.spawn(move || share(number)))
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    });
    let totals = ledger_home(&RealDisk, &clock, dir.path()).totals().unwrap();
    let sum: u64 = shares.iter().map(|(_, granted)| granted).sum();
    assert_eq!((sum, spent(&totals, NOW)), (1_000, (0, 1_000)));
}

#[test]
fn what_a_killed_process_reserved_is_settled_by_what_was_metered() {
    let dir = tempfile::tempdir().unwrap();
    let mut holder = Spender::start(dir.path(), &["hold", "held", "2000", "1000", "300"]);
    let mut silent = Spender::start(dir.path(), &["hold", "silent", "2000", "1000", "0"]);
    assert_eq!(
        (holder.first_line(), silent.first_line()),
        ("held".to_owned(), "held".to_owned())
    );
    let ledger = Ledger::open(ledger_home(&RealDisk, &SystemClock, dir.path())).unwrap();
    let wish = request("mine", "t1", 1_500);
    let now_ms = SystemClock.now_ms();
    let answer = ledger.reserve(&wish, &capped(2_000)).unwrap();
    let SpendAnswer::Refused { cap_status, .. } = answer else {
        panic!("the living keep what they reserved: {answer:?}")
    };
    assert_eq!((cap_status.spent, cap_status.reserved), (0, 2_000));
    drop(holder);
    drop(silent);
    let answer = ledger.reserve(&wish, &capped(2_000)).unwrap();
    assert_eq!(
        answer,
        SpendAnswer::Granted {
            usd_micros: Some(1_500)
        }
    );
    let totals = ledger.totals().unwrap();
    if Day::of_ms(now_ms) == Day::of_ms(SystemClock.now_ms()) {
        assert_eq!(spent(&totals, now_ms), (300, 1_500));
    }
    assert_eq!(totals.open.len(), 1);
}

#[test]
fn a_ledger_that_is_closed_leaves_nothing_reserved_to_the_next() {
    let dir = tempfile::tempdir().unwrap();
    let clock = StepClock::new(NOW);
    let open = || Ledger::open(ledger_home(&RealDisk, &clock, dir.path())).unwrap();
    let first = open();
    let wish = request("a", "t1", 100);
    first.reserve(&wish, &capped(100)).unwrap();
    let beside = open();
    assert!(matches!(
        beside
            .reserve(&request("b", "t1", 1), &capped(100))
            .unwrap(),
        SpendAnswer::Refused { .. }
    ));
    drop(first);
    // Its place is taken again, and what was reserved from there is nobody's.
    let next = open();
    assert!(next.totals().unwrap().open.is_empty());
    let answer = beside
        .reserve(&request("b", "t1", 100), &capped(100))
        .unwrap();
    assert_eq!(
        answer,
        SpendAnswer::Granted {
            usd_micros: Some(100)
        }
    );
    assert_eq!(
        fs::read_dir(dir.path().join(".ilchul/spend/holders"))
            .unwrap()
            .count(),
        2
    );
}

#[test]
fn a_turn_is_reserved_metered_and_settled() {
    let dir = tempfile::tempdir().unwrap();
    let clock = StepClock::new(NOW);
    let ledger = Ledger::open(ledger_home(&RealDisk, &clock, dir.path())).unwrap();
    let wish = request("a", "t1", 60);
    let caps = capped(100);
    ledger.reserve(&wish, &caps).unwrap();
    assert_eq!(
        ledger.meter(&wish.id, &used(20), &caps).unwrap(),
        TurnAllowance::Left(Some(80))
    );
    assert!(matches!(
        ledger.meter(&wish.id, &used(101), &caps).unwrap(),
        TurnAllowance::Over(_)
    ));
    ledger.settle(&wish.id, &used(101)).unwrap();
    ledger.settle(&wish.id, &used(101)).unwrap();
    assert_eq!(spent(&ledger.totals().unwrap(), NOW), (101, 0));
    let other = request("a", "t2", 60);
    ledger.reserve(&other, &Caps::none()).unwrap();
    ledger.release(&other.id).unwrap();
    ledger.release(&other.id).unwrap();
    assert_eq!(spent(&ledger.totals().unwrap(), NOW), (101, 0));
    let log = fs::read_to_string(dir.path().join(".ilchul/spend/events.jsonl")).unwrap();
    assert_eq!(
        log.lines().count(),
        6,
        "what was done already is not recorded again:\n{log}"
    );
}

#[test]
fn only_a_person_answers_and_the_answer_is_recorded() {
    let dir = tempfile::tempdir().unwrap();
    let clock = StepClock::new(NOW);
    let home = ledger_home(&RealDisk, &clock, dir.path());
    let agent = Actor::Agent {
        run: "r".to_owned(),
    };
    let refused = home.allow(&agent, SpendPermit::Threshold);
    assert!(matches!(
        refused,
        Err(LedgerError::Denied(SpendDenied::OnlyHuman))
    ));
    assert!(
        !home
            .totals()
            .unwrap()
            .is_allowed(SpendPermit::Threshold, Day::of_ms(NOW))
    );
    home.allow(&person(), SpendPermit::Threshold).unwrap();
    assert!(
        home.totals()
            .unwrap()
            .is_allowed(SpendPermit::Threshold, Day::of_ms(NOW))
    );
    let log = fs::read_to_string(dir.path().join(".ilchul/spend/events.jsonl")).unwrap();
    assert!(
        log.contains(r#""actor":{"kind":"human","user":"ada"}"#),
        "{log}"
    );
}

#[test]
fn the_fold_and_the_log_say_the_same_whatever_becomes_of_the_fold() {
    let dir = tempfile::tempdir().unwrap();
    let clock = StepClock::new(NOW);
    let ledger = Ledger::open(ledger_home(&RealDisk, &clock, dir.path())).unwrap();
    for turn in 0..60 {
        let wish = request("a", &turn.to_string(), 10);
        ledger.reserve(&wish, &Caps::none()).unwrap();
        ledger.settle(&wish.id, &used(turn)).unwrap();
    }
    let totals = ledger.totals().unwrap();
    assert_eq!(spent(&totals, NOW), ((0..60).sum(), 0));
    let state = dir.path().join(".ilchul/spend/state.json");
    let fold = fs::read_to_string(&state).unwrap();
    // Written anew now and then, and never far behind: 120 events were recorded.
    assert!(fold.contains(r#""seq":112"#), "{fold}");
    for bad in [fold.replace("shop", "shqp"), String::new(), "{}".to_owned()] {
        overwrite(&state, &bad);
        assert_eq!(ledger.totals().unwrap(), totals);
    }
}

#[test]
fn a_damaged_log_grants_nothing_and_is_not_touched() {
    let dir = tempfile::tempdir().unwrap();
    let clock = StepClock::new(NOW);
    let ledger = Ledger::open(ledger_home(&RealDisk, &clock, dir.path())).unwrap();
    for turn in 0..3 {
        ledger
            .reserve(&request("a", &turn.to_string(), 10), &Caps::none())
            .unwrap();
    }
    let log = dir.path().join(".ilchul/spend/events.jsonl");
    let damaged =
        fs::read_to_string(&log)
            .unwrap()
            .replacen(r#""usd_micros":10"#, r#""usd_micros":99"#, 1);
    overwrite(&log, &damaged);
    let refused = ledger.reserve(&request("a", "new", 10), &Caps::none());
    let Err(error) = refused else {
        panic!("granted from a damaged log")
    };
    assert!(
        error.to_string().contains("events.jsonl at line 1"),
        "{error}"
    );
    assert!(
        error
            .hint()
            .is_some_and(|hint| hint.contains("no spending is allowed"))
    );
    assert_eq!(fs::read_to_string(&log).unwrap(), damaged);
}
