//! A process that spends from a ledger, for tests that need several and kill some.
//!
//! `spend HOME NAME CAP` takes turns until the cap is used up; `hold HOME NAME CAP AMOUNT METERED`
//! makes one reservation, reports some use, and then waits to be killed.

#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a tool of tests that fails with them"
)]

use std::env;
use std::io::Read as _;
use std::path::PathBuf;

use kapi_spend::record::{Ledger, LedgerHome};
use kapi_spend::rules::account::{Account, ModelRole, ReservationId};
use kapi_spend::rules::caps::Caps;
use kapi_spend::rules::decide::{Amount, SpendAnswer, SpendRequest};
use kapi_spend::rules::event::TurnUsage;
use kapi_spend::rules::tokens::TokenCounts;
use kapi_sys::clock::SystemClock;
use kapi_sys::real_disk::RealDisk;

/// What each turn wishes for; no divisor of the caps in the tests.
const TURN_MICROS: u64 = 70;
/// Tries of one process, so that a mistake ends.
const TRIES_MAX: u32 = 10_000;

fn main() {
    let args: Vec<String> = env::args().collect();
    let text = |idx: usize| args.get(idx).unwrap().clone();
    let number = |idx: usize| text(idx).parse::<u64>().unwrap();
    let (name, cap) = (text(3), number(4));
    let home = LedgerHome {
        disk: &RealDisk,
        clock: &SystemClock,
        home: PathBuf::from(text(2)),
        owner: name.clone(),
    };
    let ledger = Ledger::open(home).unwrap();
    let caps = Caps {
        machine_per_day: Some(cap),
        ask_at_percent: 100,
        ..Caps::none()
    };
    match text(1).as_str() {
        "spend" => spend(&ledger, &name, &caps),
        "hold" => hold(&ledger, &name, &caps, (number(5), number(6))),
        other => panic!("no such role: {other}"),
    }
}

fn spend(ledger: &Ledger<'_>, name: &str, caps: &Caps) {
    let mut spent = 0;
    for turn in 0..TRIES_MAX {
        let wish = request(name, turn, TURN_MICROS);
        match ledger.reserve(&wish, caps).unwrap() {
            SpendAnswer::Granted { usd_micros } => {
                let micros = usd_micros.unwrap();
                ledger.meter(&wish.id, &used(micros / 2), caps).unwrap();
                ledger.settle(&wish.id, &used(micros)).unwrap();
                spent += micros;
            }
            // What others have reserved may come free again.
            SpendAnswer::Refused { cap_status, .. } if cap_status.spent < cap_status.cap => {}
            SpendAnswer::Refused { .. } => break,
            SpendAnswer::AskPerson { .. } => panic!("nobody is to be asked"),
        }
    }
    println!("{spent}");
}

fn hold(ledger: &Ledger<'_>, name: &str, caps: &Caps, (amount, metered): (u64, u64)) {
    let wish = request(name, 0, amount);
    let answer = ledger.reserve(&wish, caps).unwrap();
    assert!(matches!(answer, SpendAnswer::Granted { .. }), "{answer:?}");
    if metered > 0 {
        ledger.meter(&wish.id, &used(metered), caps).unwrap();
    }
    println!("held");
    let mut rest = Vec::new();
    std::io::stdin().read_to_end(&mut rest).unwrap();
}

fn request(name: &str, turn: u32, wanted: u64) -> SpendRequest {
    SpendRequest {
        id: ReservationId::new("shop", name, &format!("t{turn}")),
        account: Account {
            project: "shop".to_owned(),
            goal: name.to_owned(),
            agent: "claude".to_owned(),
            role: ModelRole::Executor,
            provider: "anthropic".to_owned(),
            model: "m".to_owned(),
        },
        amount: Amount::Known { wanted, least: 1 },
        goal: None,
    }
}

fn used(micros: u64) -> TurnUsage {
    TurnUsage {
        tokens: TokenCounts {
            input: micros,
            ..TokenCounts::default()
        },
        usd_micros: Some(micros),
        ..TurnUsage::default()
    }
}
