//! The clarity score: shown and explained, never a lock (ouroboros 3.1).
//!
//! Integers throughout: thousandths, so that every machine agrees.

use serde::{Deserialize, Serialize};

/// What can be clear or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Dimension {
    /// What is wanted, and why.
    Goal,
    /// What must hold or must not happen.
    Constraints,
    /// How one sees that it is reached.
    Success,
    /// What is there already; only where there is something.
    Context,
}

/// How clear each dimension is, in thousandths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Clarity {
    /// Of the goal.
    pub goal: u32,
    /// Of the constraints.
    pub constraints: u32,
    /// Of the success criteria.
    pub success: u32,
    /// Of the context; `None` where nothing is there yet.
    pub context: Option<u32>,
}

/// A score, bound to the answers it was made from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Score {
    /// How clear it is.
    pub clarity: Clarity,
    /// Why, a line for each dimension that is not clear.
    pub reasons: Vec<String>,
    /// How many rounds had been answered.
    pub answered: u32,
}

/// Answered rounds before the first score.
pub const ANSWERED_MIN: u32 = 3;
/// Good scores in a row after which it counts as clear.
pub const STREAK: u32 = 2;
/// The most ambiguity that is good enough, in ten-thousandths.
pub const AMBIGUITY_MAX: u32 = 2_000;
/// The ambiguity from which on questions are put to bring it to an end, in ten-thousandths.
pub const CLOSING_FROM: u32 = 2_500;

impl Dimension {
    /// Returns the name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Goal => "goal",
            Self::Constraints => "constraints",
            Self::Success => "success",
            Self::Context => "context",
        }
    }

    /// Returns the clarity below which it is not clear enough whatever the rest, in thousandths.
    #[must_use]
    pub const fn floor(self) -> u32 {
        match self {
            Self::Goal => 750,
            Self::Constraints => 650,
            Self::Success => 700,
            Self::Context => 600,
        }
    }

    /// Returns the weight, in hundredths: another one where something is there already.
    const fn weight(self, has_context: bool) -> u32 {
        match (self, has_context) {
            (Self::Goal, false) => 40,
            (Self::Goal, true) => 35,
            (Self::Constraints | Self::Success, false) => 30,
            (Self::Constraints | Self::Success, true) => 25,
            (Self::Context, true) => 15,
            (Self::Context, false) => 0,
        }
    }
}

impl Clarity {
    /// Returns each dimension that applies with how clear it is.
    #[must_use]
    pub fn dimensions(&self) -> Vec<(Dimension, u32)> {
        let mut all = vec![
            (Dimension::Goal, self.goal),
            (Dimension::Constraints, self.constraints),
            (Dimension::Success, self.success),
        ];
        all.extend(self.context.map(|context| (Dimension::Context, context)));
        all
    }

    /// Tells whether every value is one.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.dimensions()
            .iter()
            .all(|(_, clarity)| *clarity <= 1_000)
    }

    /// Returns what is not clear, in ten-thousandths, rounded.
    #[must_use]
    pub fn ambiguity(&self) -> u32 {
        let has_context = self.context.is_some();
        let weighed = self
            .dimensions()
            .into_iter()
            .map(|(dimension, clarity)| clarity.min(1_000) * dimension.weight(has_context));
        let clear: u32 = weighed.sum();
        (100_000_u32.saturating_sub(clear) + 5) / 10
    }

    /// Returns how clear it is altogether, from 0 to 1, as it is shown: high is good, as for each
    /// dimension.
    #[must_use]
    pub fn overall(&self) -> String {
        let clear = 10_000_u32.saturating_sub(self.ambiguity());
        format!("{}.{:04}", clear / 10_000, clear % 10_000)
            .trim_end_matches('0')
            .trim_end_matches('.')
            .to_owned()
    }

    /// Returns the dimensions below their floor.
    #[must_use]
    pub fn below_floor(&self) -> Vec<(Dimension, u32)> {
        let mut all = self.dimensions();
        all.retain(|(dimension, clarity)| *clarity < dimension.floor());
        all
    }

    /// Returns the dimension that is furthest from clear; the first of several.
    #[must_use]
    pub fn weakest(&self) -> Dimension {
        let weakest = self
            .dimensions()
            .into_iter()
            .min_by_key(|(_, clarity)| *clarity);
        weakest.map_or(Dimension::Goal, |(dimension, _)| dimension)
    }
}

impl Score {
    /// Tells whether it is clear enough: little ambiguity, and every dimension above its floor.
    #[must_use]
    pub fn is_good_enough(&self) -> bool {
        self.clarity.ambiguity() <= AMBIGUITY_MAX && self.clarity.below_floor().is_empty()
    }

    /// Returns how far it has come, in a word.
    #[must_use]
    pub fn milestone(&self) -> &'static str {
        match self.clarity.ambiguity() {
            0..=2_000 => "ready",
            2_001..=3_000 => "refined",
            3_001..=4_000 => "progress",
            4_001.. => "initial",
        }
    }

    /// Returns the score with what it is made of, in a line.
    #[must_use]
    pub fn words(&self) -> String {
        let parts: Vec<String> = self
            .clarity
            .dimensions()
            .into_iter()
            .map(|(dimension, clarity)| {
                let floor = dimension.floor();
                let name = dimension.as_str();
                format!(
                    "{name} {} (needs {})",
                    thousandths(clarity),
                    thousandths(floor)
                )
            })
            .collect();
        format!(
            "{} of 1 ({}; at least 0.8 is good): {}",
            self.clarity.overall(),
            self.milestone(),
            parts.join(", ")
        )
    }
}

/// Writes thousandths as a decimal fraction.
#[must_use]
pub fn thousandths(value: u32) -> String {
    format!("{}.{:03}", value / 1_000, value % 1_000)
        .trim_end_matches('0')
        .trim_end_matches('.')
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::{Clarity, Score, thousandths};

    fn clarity(goal: u32, constraints: u32, success: u32, context: Option<u32>) -> Clarity {
        Clarity {
            goal,
            constraints,
            success,
            context,
        }
    }

    /// The worked cases of the reference.
    #[test]
    fn scores_are_the_references() {
        for (clarity, ambiguity, is_good) in [
            (clarity(900, 900, 900, None), 1_000, true),
            (clarity(750, 650, 700, None), 2_950, false),
            (clarity(1_000, 1_000, 650, None), 1_050, false),
            (clarity(800, 800, 800, Some(800)), 2_000, true),
            (clarity(1_000, 1_000, 1_000, Some(500)), 750, false),
            (clarity(0, 0, 0, Some(0)), 10_000, false),
            (clarity(1_000, 1_000, 1_000, Some(1_000)), 0, true),
        ] {
            assert_eq!(clarity.ambiguity(), ambiguity, "{clarity:?}");
            let score = Score {
                clarity,
                reasons: Vec::new(),
                answered: 3,
            };
            assert_eq!(score.is_good_enough(), is_good, "{clarity:?}");
        }
    }

    #[test]
    fn a_score_is_explained() {
        let score = Score {
            clarity: clarity(750, 650, 700, None),
            reasons: Vec::new(),
            answered: 3,
        };
        assert_eq!(
            score.words(),
            "0.705 of 1 (refined; at least 0.8 is good): goal 0.75 (needs 0.75), \
             constraints 0.65 (needs 0.65), success 0.7 (needs 0.7)"
        );
        assert_eq!(thousandths(1_000), "1");
    }

    #[test]
    fn values_outside_are_not_sound() {
        assert!(clarity(1_000, 0, 1, None).is_sound());
        assert!(!clarity(1_001, 0, 0, None).is_sound());
    }
}
