//! The fold of the spend ledger: what is reserved, and what was spent where.
//!
//! Sums by day, project, goal, agent and model; days long past become months that no longer keep
//! goals apart, so the fold stays small. Total: what was recorded is true, and no rule is applied.

use std::collections::BTreeMap;

use kapi_core::room::CallClaim;
use kapi_core::usage::Doubt;
use serde::{Deserialize, Serialize};

use crate::rules::account::{Account, ReservationId};
use crate::rules::caps::{CapScope, CapStatus};
use crate::rules::day::{Day, Month};
use crate::rules::event::{SpendEvent, SpendPermit, TurnUsage};
use crate::rules::tokens::TokenCounts;

/// Days that are kept one by one; older ones are kept as months.
pub const DAYS_KEPT: u32 = 62;

/// A turn that may spend, or has not said yet what it spent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OpenTurn {
    /// Where it will be booked.
    pub account: Account,
    /// Millionths of a US dollar it may spend; `None` where nobody knows the price.
    pub usd_micros: Option<u64>,
    /// The place of the process that holds it.
    pub holder: u32,
    /// When it was made, in milliseconds since the epoch.
    pub since_ms: i64,
    /// What it has used so far.
    pub metered: TurnUsage,
    /// What its model calls under way may use more.
    #[serde(default, skip_serializing_if = "CallClaim::is_zero")]
    pub claimed: CallClaim,
}

/// What was used in one account.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sum {
    /// Tokens.
    pub tokens: TokenCounts,
    /// Millionths of a US dollar, of the turns whose cost is known.
    pub usd_micros: u64,
    /// Turns.
    pub turns: u64,
    /// Turns whose cost nobody knows.
    pub unknown_turns: u64,
    /// The dearest turn, in millionths of a US dollar.
    pub dearest: u64,
    /// What of the sum is not certain.
    #[serde(default, skip_serializing_if = "Doubt::is_none")]
    pub doubt: Doubt,
}

/// One account's sum.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AccountSum {
    /// The account.
    pub account: Account,
    /// Its sum.
    pub sum: Sum,
}

/// Everything that the ledger knows.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LedgerTotals {
    /// Turns under way.
    pub open: BTreeMap<ReservationId, OpenTurn>,
    /// Sums by day, each sorted by account.
    pub days: BTreeMap<Day, Vec<AccountSum>>,
    /// Sums of the days before those, sorted by account.
    pub months: BTreeMap<Month, Vec<AccountSum>>,
    /// For each question, the last day that a person answered it for.
    pub allowed: BTreeMap<SpendPermit, Day>,
}

impl OpenTurn {
    /// Returns what stands against a cap: what it may spend, or what it has spent and may spend for
    /// calls under way if that is more.
    #[must_use]
    pub fn claim(&self) -> u64 {
        let metered = self.metered.usd_micros.unwrap_or(0);
        let with_calls = metered.saturating_add(self.claimed.usd_micros);
        self.usd_micros.unwrap_or(0).max(with_calls)
    }
}

impl Sum {
    /// Adds a turn.
    pub fn add_turn(&mut self, used: &TurnUsage) {
        self.tokens.add(&used.tokens);
        self.doubt.add(&used.doubt);
        self.turns = self.turns.saturating_add(1);
        match used.usd_micros {
            Some(micros) => {
                self.usd_micros = self.usd_micros.saturating_add(micros);
                self.dearest = self.dearest.max(micros);
            }
            None => self.unknown_turns = self.unknown_turns.saturating_add(1),
        }
    }

    /// Adds another sum.
    pub fn add(&mut self, other: &Self) {
        self.tokens.add(&other.tokens);
        self.doubt.add(&other.doubt);
        self.usd_micros = self.usd_micros.saturating_add(other.usd_micros);
        self.turns = self.turns.saturating_add(other.turns);
        self.unknown_turns = self.unknown_turns.saturating_add(other.unknown_turns);
        self.dearest = self.dearest.max(other.dearest);
    }
}

impl LedgerTotals {
    /// Returns the state after an event that was recorded at `at_ms`.
    pub fn evolve(&mut self, event: &SpendEvent, at_ms: i64) {
        match event {
            SpendEvent::Reserved {
                id,
                account,
                usd_micros,
                holder,
            } => {
                let open = OpenTurn {
                    account: account.clone(),
                    usd_micros: *usd_micros,
                    holder: *holder,
                    since_ms: at_ms,
                    metered: TurnUsage {
                        tokens: TokenCounts::default(),
                        usd_micros: Some(0),
                        doubt: Doubt::NONE,
                    },
                    claimed: CallClaim::default(),
                };
                self.open.insert(id.clone(), open);
            }
            SpendEvent::Metered { id, used } => {
                if let Some(open) = self.open.get_mut(id) {
                    open.metered = *used;
                }
            }
            SpendEvent::Claimed { id, claim } => {
                if let Some(open) = self.open.get_mut(id) {
                    open.claimed = *claim;
                }
            }
            SpendEvent::Settled { id, used, by: _ } => {
                if let Some(open) = self.open.remove(id) {
                    self.book(Day::of_ms(at_ms), &open.account, used);
                }
            }
            SpendEvent::Released { id, by: _ } => {
                self.open.remove(id);
            }
            SpendEvent::Allowed { question, day } => {
                self.allowed.insert(*question, *day);
            }
        }
    }

    /// Returns what stands against a day's cap of one project, or of the machine for `None`.
    #[must_use]
    pub fn cap_status(&self, project: Option<&str>, day: Day, cap: u64) -> CapStatus {
        let is_in = |account: &Account| project.is_none_or(|project| account.project == project);
        let entries = self.days.get(&day).map(Vec::as_slice).unwrap_or_default();
        let spent = entries.iter().filter(|entry| is_in(&entry.account));
        let spent = spent.fold(0_u64, |sum, entry| sum.saturating_add(entry.sum.usd_micros));
        let scope = match project {
            Some(_) => CapScope::ProjectDay,
            None => CapScope::MachineDay,
        };
        CapStatus {
            scope,
            spent,
            reserved: self.reserved(None, is_in),
            cap,
        }
    }

    /// Returns what turns under way may still spend, leaving out one of them.
    pub(crate) fn reserved(
        &self,
        without: Option<&ReservationId>,
        is_in: impl Fn(&Account) -> bool,
    ) -> u64 {
        let open = self.open.iter();
        let counted = open.filter(|(id, open)| Some(*id) != without && is_in(&open.account));
        counted.fold(0, |sum, (_, open)| sum.saturating_add(open.claim()))
    }

    /// Returns what was used for one goal of a project since a day, by turns that have ended or not.
    #[must_use]
    pub fn used_for(&self, project: &str, goal: &str, since: Day) -> TurnUsage {
        let is_its = |account: &Account| account.project == project && account.goal == goal;
        let days = self.days.range(since..).flat_map(|(_, entries)| entries);
        let ended = days.filter(|entry| is_its(&entry.account)).map(|entry| {
            let Sum {
                tokens,
                usd_micros,
                doubt,
                ..
            } = entry.sum;
            TurnUsage {
                tokens,
                usd_micros: Some(usd_micros),
                doubt,
            }
        });
        let open = self.open.values().filter(|open| is_its(&open.account));
        let open = open.map(|open| open.metered);
        let mut used = TurnUsage {
            usd_micros: Some(0),
            ..TurnUsage::default()
        };
        for more in ended.chain(open) {
            used.tokens.add(&more.tokens);
            used.doubt.add(&more.doubt);
            let micros = used.usd_micros.unwrap_or(0);
            used.usd_micros = Some(micros.saturating_add(more.usd_micros.unwrap_or(0)));
        }
        used
    }

    /// Tells whether a person has said for this day that turns may go on.
    #[must_use]
    pub fn is_allowed(&self, question: SpendPermit, day: Day) -> bool {
        self.allowed.get(&question) == Some(&day)
    }

    /// Returns the dearest turn of an agent with a model so far, as a guess for the next.
    #[must_use]
    pub fn dearest_turn(&self, agent: &str, model: &str) -> Option<u64> {
        let of_days = self.days.values().flatten();
        let entries = of_days.chain(self.months.values().flatten());
        let fitting =
            entries.filter(|entry| entry.account.agent == agent && entry.account.model == model);
        fitting.map(|entry| entry.sum.dearest).max()
    }

    fn book(&mut self, day: Day, account: &Account, used: &TurnUsage) {
        let entries = self.days.entry(day).or_default();
        entry_of(entries, account).add_turn(used);
        self.roll();
    }

    /// Makes months of the days that are too long past.
    fn roll(&mut self) {
        let Some((newest, _)) = self.days.last_key_value() else {
            return;
        };
        let oldest_kept = newest.days_before(DAYS_KEPT - 1);
        let kept = self.days.split_off(&oldest_kept);
        for (day, entries) in std::mem::replace(&mut self.days, kept) {
            let month = self.months.entry(day.month()).or_default();
            for entry in entries {
                let account = Account {
                    goal: String::new(),
                    ..entry.account
                };
                entry_of(month, &account).add(&entry.sum);
            }
        }
    }
}

/// Returns an account's sum, made if it is missing, at its place.
fn entry_of<'a>(entries: &'a mut Vec<AccountSum>, account: &Account) -> &'a mut Sum {
    let found = entries.binary_search_by(|entry| entry.account.cmp(account));
    let idx = found.unwrap_or_else(|idx| {
        let sum = Sum::default();
        let account = account.clone();
        entries.insert(idx, AccountSum { account, sum });
        idx
    });
    assert!(
        idx < entries.len(),
        "an entry was found or made at this place"
    );
    &mut entries[idx].sum
}
