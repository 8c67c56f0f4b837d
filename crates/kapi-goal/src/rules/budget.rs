//! Limits and what was spent of them.
//!
//! A spent limit ends the run; only a person raises it. Judges' and providers' failures are
//! never turns, but their tokens are money like any other.

use std::fmt;

use kapi_core::usage::Usage;
use serde::{Deserialize, Serialize};

/// The limits of a goal; `None` means no limit of that kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    /// Agent turns.
    pub turns: u32,
    /// Tokens of executor and judge together.
    pub tokens: Option<u64>,
    /// Millionths of a US dollar, executor and judge together.
    pub usd_micros: Option<u64>,
    /// Milliseconds during which something was being performed.
    pub wall_ms: Option<u64>,
}

/// An addition to the limits; zero leaves a limit as it is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Raise {
    /// Turns to add.
    pub turns: u32,
    /// Tokens to add.
    pub tokens: u64,
    /// Millionths of a US dollar to add.
    pub usd_micros: u64,
    /// Milliseconds to add.
    pub wall_ms: u64,
}

/// What a goal has used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GoalUsage {
    /// Turns that came to a verdict.
    pub turns: u32,
    /// What the executor used.
    pub executor: Usage,
    /// What the judge used.
    pub judge: Usage,
    /// Milliseconds during which something was being performed.
    pub wall_ms: u64,
}

/// A limit that can be used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BudgetLimit {
    /// Agent turns.
    Turns,
    /// Tokens.
    Tokens,
    /// Money.
    Usd,
    /// Time.
    Wall,
}

impl BudgetLimit {
    /// Returns the option of `kapi budget` and `kapi resume` that raises this limit.
    #[must_use]
    pub const fn option(self) -> &'static str {
        match self {
            Self::Turns => "--turns +10",
            Self::Tokens => "--tokens +1000000",
            Self::Usd => "--usd +5",
            Self::Wall => "--wall +1h",
        }
    }
}

impl fmt::Display for BudgetLimit {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Turns => "turn",
            Self::Tokens => "token",
            Self::Usd => "money",
            Self::Wall => "time",
        })
    }
}

impl GoalUsage {
    /// Returns everything used by executor and judge.
    #[must_use]
    pub const fn total(&self) -> Usage {
        let mut total = self.executor;
        total.add(&self.judge);
        total
    }
}

impl Budget {
    /// Returns the first limit that is used up, if one is.
    #[must_use]
    pub fn used_up(&self, spent: &GoalUsage) -> Option<BudgetLimit> {
        if spent.turns >= self.turns {
            return Some(BudgetLimit::Turns);
        }
        self.used_up_within_turn(spent)
    }

    /// Returns the first limit that ends a turn in the middle, if one is used up.
    #[must_use]
    pub fn used_up_within_turn(&self, spent: &GoalUsage) -> Option<BudgetLimit> {
        let total = spent.total();
        if self.tokens.is_some_and(|limit| total.tokens() >= limit) {
            return Some(BudgetLimit::Tokens);
        }
        if self
            .usd_micros
            .is_some_and(|limit| total.usd_micros.unwrap_or(0) >= limit)
        {
            return Some(BudgetLimit::Usd);
        }
        if self.wall_ms.is_some_and(|limit| spent.wall_ms >= limit) {
            return Some(BudgetLimit::Wall);
        }
        None
    }

    /// Returns an addition with which a limit that is used up lets the goal go on for a while.
    #[must_use]
    pub fn raise_beyond(&self, spent: &GoalUsage, limit: BudgetLimit) -> Raise {
        let total = spent.total();
        let over = |used: u64, limit: Option<u64>| used.saturating_sub(limit.unwrap_or(used));
        let mut raise = Raise::default();
        match limit {
            BudgetLimit::Turns => {
                raise.turns = spent.turns.saturating_sub(self.turns).saturating_add(10);
            }
            BudgetLimit::Tokens => {
                raise.tokens = over(total.tokens(), self.tokens).saturating_add(1_000_000);
            }
            BudgetLimit::Usd => {
                let used = total.usd_micros.unwrap_or(0);
                raise.usd_micros = over(used, self.usd_micros).saturating_add(5_000_000);
            }
            BudgetLimit::Wall => {
                raise.wall_ms = over(spent.wall_ms, self.wall_ms).saturating_add(60 * 60 * 1000);
            }
        }
        raise
    }

    /// Returns the milliseconds left, where time is limited.
    #[must_use]
    pub fn wall_left_ms(&self, spent: &GoalUsage) -> Option<u64> {
        self.wall_ms
            .map(|limit| limit.saturating_sub(spent.wall_ms))
    }

    /// Returns a limit that cannot be raised because there is none of its kind.
    #[must_use]
    pub fn unlimited_in(&self, raise: &Raise) -> Option<BudgetLimit> {
        if raise.tokens > 0 && self.tokens.is_none() {
            return Some(BudgetLimit::Tokens);
        }
        if raise.usd_micros > 0 && self.usd_micros.is_none() {
            return Some(BudgetLimit::Usd);
        }
        (raise.wall_ms > 0 && self.wall_ms.is_none()).then_some(BudgetLimit::Wall)
    }

    /// Adds to the limits there are.
    pub fn raise(&mut self, raise: &Raise) {
        let add = |limit: Option<u64>, more: u64| limit.map(|limit| limit.saturating_add(more));
        self.turns = self.turns.saturating_add(raise.turns);
        self.tokens = add(self.tokens, raise.tokens);
        self.usd_micros = add(self.usd_micros, raise.usd_micros);
        self.wall_ms = add(self.wall_ms, raise.wall_ms);
    }
}

#[cfg(test)]
mod tests {
    use super::{Budget, BudgetLimit, GoalUsage};

    #[test]
    fn what_is_offered_lets_a_goal_go_on_however_far_it_is_over() {
        let mut budget = Budget {
            turns: 3,
            tokens: Some(1_500),
            usd_micros: Some(10),
            wall_ms: Some(5),
        };
        let mut spent = GoalUsage {
            turns: 3,
            wall_ms: 9_000_000,
            ..GoalUsage::default()
        };
        spent.executor.input_tokens = 66_050_000;
        spent.executor.usd_micros = Some(40_000_000);
        let mut raised = Vec::new();
        while let Some(limit) = budget.used_up(&spent) {
            raised.push(limit);
            let more = budget.raise_beyond(&spent, limit);
            budget.raise(&more);
        }
        let all = [
            BudgetLimit::Turns,
            BudgetLimit::Tokens,
            BudgetLimit::Usd,
            BudgetLimit::Wall,
        ];
        assert_eq!(raised, all);
        assert_eq!(budget.turns, 13);
    }
}
