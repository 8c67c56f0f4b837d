//! What a person gave leave for in one goal, and whether a goal keeps within it.
//!
//! Pure: where it is kept is not known here. A goal's log is only what it says of itself; this is
//! what it is held against.

use std::collections::BTreeSet;

use kapi_core::actor::Actor;
use kapi_core::id::GoalId;
use serde::{Deserialize, Serialize};

use crate::record::contract_hash::contract_hash;
use crate::record::error::EngineError;
use crate::rules::budget::{Budget, BudgetLimit};
use crate::rules::state::{Goal, GoalStage};

/// The layout of the record.
const VERSION: u32 = 1;

/// What a person gave leave for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GoalGrant {
    /// An agent drafts the contract; nothing else.
    Setup,
    /// The contract.
    Contract,
}

/// What one person gave leave for in one goal: the most of it, ever.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Approval {
    v: u32,
    /// The goal.
    pub goal: GoalId,
    /// SHA-256 of the canonical JSON of the contract that was approved.
    pub contract_hash: String,
    /// What it was approved for.
    pub given: GoalGrant,
    /// The widest limits, raises included.
    pub budget: Budget,
    /// Everything that was allowed of what the contract asks about first.
    pub allowed: BTreeSet<String>,
    /// Every judge that was named in place of the contract's.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub judges: BTreeSet<String>,
    /// Who approved it.
    pub person: String,
    /// When it was last widened, in milliseconds since the epoch.
    pub at_ms: i64,
}

/// What a goal says of itself that nobody here gave leave for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GoalLack {
    /// Nothing is recorded.
    #[error("your home directory has no approval of this contract for this project")]
    Nothing,
    /// Something else is recorded.
    #[error("your home directory has an approval of another contract ({approved})")]
    OtherContract {
        /// The hash of that one.
        approved: String,
    },
    /// Only the setup was begun.
    #[error(
        "your home directory shows that its contract was being drafted, not that you approved it"
    )]
    OnlySetup,
    /// A limit is wider.
    #[error("its {limit} budget is larger than any you set")]
    Budget {
        /// Which one.
        limit: BudgetLimit,
    },
    /// Another judge was named.
    #[error("it names {judge:?} in place of the contract's judge, which you never chose")]
    Judge {
        /// Who.
        judge: String,
    },
    /// A consent is not there.
    #[error("it lists {what:?} as allowed, which you never allowed")]
    Allowed {
        /// What.
        what: String,
    },
}

impl Approval {
    /// Returns leave for everything that a goal says of itself. Whoever calls has shown it.
    ///
    /// # Errors
    /// When the contract cannot be written as JSON.
    pub fn of(goal: &Goal, person: &Actor, at_ms: i64) -> Result<Self, EngineError> {
        let given = if goal.stage == GoalStage::Setup {
            GoalGrant::Setup
        } else {
            GoalGrant::Contract
        };
        Ok(Self {
            v: VERSION,
            goal: goal.id.clone(),
            contract_hash: contract_hash(&goal.contract)?,
            given,
            budget: goal.budget,
            allowed: goal.consent.allowed.clone(),
            judges: goal.changed_judge.iter().cloned().collect(),
            person: person.to_string(),
            at_ms,
        })
    }

    /// Reads a record; one that is damaged or of another goal gives leave for nothing.
    #[must_use]
    pub fn parse(bytes: &[u8], goal: &GoalId) -> Option<Self> {
        let read: Option<Self> = serde_json::from_slice(bytes).ok();
        read.filter(|approval| approval.v == VERSION && approval.goal == *goal)
    }

    /// Returns both together where they are of one contract, and `newer` alone otherwise.
    #[must_use]
    pub fn widened(&self, newer: Self) -> Self {
        if self.contract_hash != newer.contract_hash || self.given != newer.given {
            return newer;
        }
        let (old, new) = (&self.budget, &newer.budget);
        Self {
            budget: Budget {
                turns: old.turns.max(new.turns),
                tokens: wider(old.tokens, new.tokens),
                usd_micros: wider(old.usd_micros, new.usd_micros),
                wall_ms: wider(old.wall_ms, new.wall_ms),
            },
            allowed: self.allowed.union(&newer.allowed).cloned().collect(),
            judges: self.judges.union(&newer.judges).cloned().collect(),
            ..newer
        }
    }

    /// Tells what a goal says of itself that this gives no leave for.
    ///
    /// # Errors
    /// When the contract cannot be written as JSON.
    pub fn lack(&self, goal: &Goal) -> Result<Option<GoalLack>, EngineError> {
        // Hashed again: the hash that the goal's files name may be of another contract.
        if contract_hash(&goal.contract)? != self.contract_hash {
            return Ok(Some(GoalLack::OtherContract {
                approved: self.contract_hash.clone(),
            }));
        }
        if self.given == GoalGrant::Setup && goal.stage != GoalStage::Setup {
            return Ok(Some(GoalLack::OnlySetup));
        }
        if let Some(limit) = larger(&goal.budget, &self.budget) {
            return Ok(Some(GoalLack::Budget { limit }));
        }
        if let Some(judge) = &goal.changed_judge
            && !self.judges.contains(judge)
        {
            let judge = judge.clone();
            return Ok(Some(GoalLack::Judge { judge }));
        }
        let more = goal.consent.allowed.difference(&self.allowed).next();
        Ok(more.map(|what| GoalLack::Allowed { what: what.clone() }))
    }
}

/// Returns the wider of two limits; none is the widest.
fn wider(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    Some(one?.max(other?))
}

/// Returns the first limit that is wider than it may be.
fn larger(budget: &Budget, most: &Budget) -> Option<BudgetLimit> {
    let is_larger = |limit: Option<u64>, most: Option<u64>| {
        most.is_some_and(|most| limit.is_none_or(|limit| limit > most))
    };
    if budget.turns > most.turns {
        return Some(BudgetLimit::Turns);
    }
    if is_larger(budget.tokens, most.tokens) {
        return Some(BudgetLimit::Tokens);
    }
    if is_larger(budget.usd_micros, most.usd_micros) {
        return Some(BudgetLimit::Usd);
    }
    is_larger(budget.wall_ms, most.wall_ms).then_some(BudgetLimit::Wall)
}
