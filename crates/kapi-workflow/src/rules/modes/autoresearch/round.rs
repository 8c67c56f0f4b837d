//! Changes that several agents propose from the same parent at once.
//!
//! All of them are proposed before any is measured, and they are measured one at a time, so that
//! nothing disturbs a measurement. The best gain is kept; the others are applied to what was kept and
//! measured once more.

use kapi_check::rules::measure::MeasurementReport;
use serde::{Deserialize, Serialize};

use crate::rules::modes::autoresearch::event::Candidate;

/// A round.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Round {
    /// How many proposals there were before it.
    pub first: u32,
    /// The commit that all of them change.
    pub parent: String,
    /// What became of each.
    pub tries: Vec<Try>,
}

/// What became of one proposal of a round so far.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Try {
    /// An agent is at it.
    Asked {},
    /// It brought nothing that could be measured.
    Nothing {},
    /// Its agent has no idea left.
    Exhausted {},
    /// It waits to be measured.
    Waiting {
        /// The change.
        candidate: Box<Candidate>,
    },
    /// It is the change at hand.
    AtHand {
        /// Whether it was applied to what was kept of the round.
        again: bool,
    },
    /// It is better than the parent, and the others are not measured yet.
    Gain {
        /// The change.
        candidate: Box<Candidate>,
        /// What it showed.
        measured: Vec<MeasurementReport>,
    },
    /// It was better than the parent; another one was better still and is kept.
    Overtaken {
        /// The change, as it is on the parent.
        candidate: Box<Candidate>,
    },
    /// It is decided.
    Decided {},
}

impl Round {
    /// Returns the places of the tries of one kind.
    pub fn of<'a>(&'a self, is: impl Fn(&Try) -> bool + 'a) -> impl Iterator<Item = u32> + 'a {
        let tries = (0_u32..).zip(&self.tries);
        tries.filter_map(move |(place, found)| is(found).then_some(place))
    }

    /// Returns a try by its place.
    #[must_use]
    pub fn at(&self, place: u32) -> Option<&Try> {
        self.tries.get(usize::try_from(place).ok()?)
    }

    /// Puts a try in its place; what has none changes nothing.
    pub(crate) fn put(&mut self, place: u32, found: Try) {
        let place = usize::try_from(place).ok();
        if let Some(there) = place.and_then(|place| self.tries.get_mut(place)) {
            *there = found;
        }
    }

    /// Tells whether the change at hand was proposed on the parent, and not applied to what was kept.
    #[must_use]
    pub fn is_first_measured(&self) -> bool {
        self.of(|found| *found == Try::AtHand { again: false })
            .next()
            .is_some()
    }

    /// Tells whether nobody is at it any more.
    #[must_use]
    pub fn is_answered(&self) -> bool {
        self.of(|found| *found == Try::Asked {}).next().is_none()
    }

    /// Returns how many proposals there were with it.
    #[must_use]
    pub fn last(&self) -> u32 {
        let tries = u32::try_from(self.tries.len()).unwrap_or(u32::MAX);
        self.first.saturating_add(tries)
    }
}
