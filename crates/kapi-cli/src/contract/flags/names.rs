//! Names that a person writes for how a goal is worked on: its type, its phase, its reminders, and
//! what the agent can look at.
//!
//! Flags and contract files take the same ones.

use kapi_goal::rules::contract::{AgentSurface, GoalType, Reminders};
use kapi_goal::rules::plan::task::TaskPhase;

/// What a goal ends with, by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum GoalTypeName {
    /// A change to ship
    Ticket,
    /// An answer to a question
    Exploratory,
}

/// A phase, by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum PhaseName {
    /// Read the code
    Analysis,
    /// Make the checks runnable
    Bootstrap,
    /// Write a failing test
    Red,
    /// Make the test pass
    Green,
    /// Improve the structure
    Refactor,
    /// Remove scratch files and debugging output
    Cleanup,
    /// No phases: research, documents
    None,
}

/// How much an agent is reminded of, by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RemindersName {
    /// All guidance that fits the goal (the default)
    All,
    /// Only proof and tools
    Essential,
}

impl From<RemindersName> for Reminders {
    fn from(name: RemindersName) -> Self {
        match name {
            RemindersName::All => Self::All,
            RemindersName::Essential => Self::Essential,
        }
    }
}

impl From<GoalTypeName> for GoalType {
    fn from(name: GoalTypeName) -> Self {
        match name {
            GoalTypeName::Ticket => Self::Ticket,
            GoalTypeName::Exploratory => Self::Exploratory,
        }
    }
}

impl From<PhaseName> for TaskPhase {
    fn from(name: PhaseName) -> Self {
        match name {
            PhaseName::Analysis => Self::Analysis,
            PhaseName::Bootstrap => Self::Bootstrap,
            PhaseName::Red => Self::Red,
            PhaseName::Green => Self::Green,
            PhaseName::Refactor => Self::Refactor,
            PhaseName::Cleanup => Self::Cleanup,
            PhaseName::None => Self::None,
        }
    }
}

/// Reads `KIND=LOCATION` or `KIND=LOCATION;NOTES`.
pub(crate) fn parse_surface(text: &str) -> Result<AgentSurface, String> {
    let rule = || format!("{text:?} is not of the form KIND=LOCATION or KIND=LOCATION;NOTES");
    let (kind, rest) = text.split_once('=').ok_or_else(rule)?;
    let (location, notes) = match rest.split_once(';') {
        Some((location, notes)) => (location, Some(notes.trim())),
        None => (rest, None),
    };
    if kind.trim().is_empty() || location.trim().is_empty() {
        return Err(rule());
    }
    Ok(AgentSurface {
        kind: kind.trim().to_owned(),
        location: location.trim().to_owned(),
        notes: notes.filter(|notes| !notes.is_empty()).map(str::to_owned),
    })
}

#[cfg(test)]
mod tests {
    use super::parse_surface;

    #[test]
    fn surfaces_have_a_kind_a_place_and_perhaps_notes() {
        let read = |text| parse_surface(text).map(|it| (it.kind, it.location, it.notes));
        let owned = |text: &str| text.to_owned();
        assert_eq!(
            read("logs=journalctl -u shop; ask Ada"),
            Ok((
                owned("logs"),
                owned("journalctl -u shop"),
                Some(owned("ask Ada"))
            ))
        );
        assert_eq!(
            read("staging=https://staging.example/?a=b"),
            Ok((
                owned("staging"),
                owned("https://staging.example/?a=b"),
                None
            ))
        );
        for bad in ["", "logs", "=x", "logs=", "logs= ;notes"] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
