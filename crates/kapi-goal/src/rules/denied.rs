//! A rule said no: nothing changed, and this is why.
//!
//! Failures of the world are not here; they come back as outcomes.

use kapi_core::id::EffectId;

use crate::rules::budget::BudgetLimit;
use crate::rules::state::GoalStatus;

/// The code of a refusal to go on with what the person's own home holds no approval of.
pub const NOT_APPROVED_HERE: &str = "not_approved_here";

/// A refusal by rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GoalDenial {
    /// The stream is empty.
    #[error("there is no such goal")]
    NoGoal,
    /// The stream already holds a goal.
    #[error("the goal already exists")]
    GoalExists,
    /// The contract breaks a rule.
    #[error("the contract's {field} is not valid: {rule}")]
    BadContract {
        /// The field.
        field: &'static str,
        /// The rule.
        rule: &'static str,
    },
    /// An agent or the engine asked for what only a person may do.
    #[error("only the user may {action}, not {actor}")]
    OnlyHuman {
        /// What was asked.
        action: &'static str,
        /// Who asked.
        actor: String,
    },
    /// Somebody asked for what only the engine may do.
    #[error("only the engine may report effects, not {actor}")]
    OnlyEngine {
        /// Who asked.
        actor: String,
    },
    /// Somebody else used an agent's tool.
    #[error("only the agent of the current turn may use its tools, not {actor}")]
    OnlyAgent {
        /// Who asked.
        actor: String,
    },
    /// The contract that was approved is not the one on record.
    #[error("the contract does not have the approved hash ({shown})")]
    WrongHash {
        /// The hash on record.
        shown: String,
    },
    /// The status does not allow it.
    #[error("the goal is {status}, so it cannot be {action}")]
    WrongStatus {
        /// The status.
        status: GoalStatus,
        /// What was asked, as a participle.
        action: &'static str,
    },
    /// A limit is used up.
    #[error("the {limit} budget is used up")]
    BudgetUsedUp {
        /// Which one.
        limit: BudgetLimit,
    },
    /// A raise that raises nothing or too much.
    #[error("the raise is not valid: {rule}")]
    BadRaise {
        /// The rule.
        rule: &'static str,
    },
    /// A raise of a limit that the contract does not set.
    #[error("the goal has no {limit} limit to raise")]
    NoLimit {
        /// Which one.
        limit: BudgetLimit,
    },
    /// A report of an effect that nobody intended.
    #[error("effect {effect} is not in progress")]
    NotUnderWay {
        /// The effect.
        effect: EffectId,
    },
    /// A tool's call is refused; the code is pi-until-done's.
    #[error("{code}: {message}")]
    Refused {
        /// The code.
        code: &'static str,
        /// What is wrong and what to do.
        message: String,
    },
    /// An outcome that does not belong to its effect.
    #[error("effect {effect} cannot end in {outcome}")]
    WrongOutcome {
        /// The effect.
        effect: EffectId,
        /// The outcome's kind.
        outcome: &'static str,
    },
}

impl GoalDenial {
    /// Returns what to do instead, for the goal with this reference.
    #[must_use]
    pub fn hint(&self, reference: &str) -> Option<String> {
        match self {
            Self::BudgetUsedUp { limit } => Some(format!(
                "raise it with `kapi budget {reference} {}`.",
                limit.option()
            )),
            Self::OnlyHuman { .. } => {
                Some("ask the user to run the command in their own terminal.".to_owned())
            }
            Self::WrongStatus {
                status: GoalStatus::Proposed,
                ..
            } => Some(format!(
                "approve its contract with `kapi goal approve {reference}`."
            )),
            Self::WrongStatus {
                status: GoalStatus::Setup,
                ..
            } => Some(format!(
                "its contract is still being drafted; see `kapi show {reference}`."
            )),
            Self::Refused { code, .. } if *code == NOT_APPROVED_HERE => Some(format!(
                "review it with `kapi show {reference}`; if it is yours, approve it here with \
                 `kapi goal approve {reference}`."
            )),
            Self::NoGoal
            | Self::GoalExists
            | Self::BadContract { .. }
            | Self::OnlyEngine { .. }
            | Self::OnlyAgent { .. }
            | Self::WrongHash { .. }
            | Self::WrongStatus { .. }
            | Self::BadRaise { .. }
            | Self::NoLimit { .. }
            | Self::NotUnderWay { .. }
            | Self::Refused { .. }
            | Self::WrongOutcome { .. } => None,
        }
    }
}
