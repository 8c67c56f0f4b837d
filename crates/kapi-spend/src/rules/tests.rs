//! The rules of spending, case by case and over random histories.
//!
//! Here is what every theme stands on: books, and the time.

mod caps;
mod ended;
mod histories;
mod questions;
mod reports;

use kapi_core::actor::Actor;

use crate::rules::account::{Account, ModelRole, ReservationId};
use crate::rules::caps::{CapScope, Caps};
use crate::rules::decide::{Amount, SpendAnswer, SpendRequest, reserve, settle};
use crate::rules::event::{SpendEvent, TurnUsage};
use crate::rules::tokens::TokenCounts;
use crate::rules::totals::LedgerTotals;

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
        allows_unpriced: false,
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
        ..TurnUsage::default()
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
