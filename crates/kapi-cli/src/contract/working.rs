//! How a goal is worked on, from flags: type, surfaces, ask-before, style, phase, mise, distilling.
//!
//! Only the words a person types are known here; what they lead to is the core's affair.

use kapi_check::rules::checks::mise;
use kapi_goal::rules::contract::{Distill, GoalType, Reminders, Surface, Working};
use kapi_goal::rules::plan::task::Phase;
use kapi_sys::process;

use crate::commands::run::Args;
use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;

/// What a goal ends with, by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum GoalTypeName {
    /// Something is shipped
    Ticket,
    /// Something is found out
    Exploratory,
}

/// A phase, by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum PhaseName {
    /// Reading code
    Analysis,
    /// Making sure that checks can run at all
    Bootstrap,
    /// A test fails that should pass
    Red,
    /// The test passes
    Green,
    /// The structure is made better
    Refactor,
    /// Scratch files and debugging output are removed
    Cleanup,
    /// None of these: research, documents
    None,
}

/// How much an agent is reminded of, by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RemindersName {
    /// Everything that fits the goal
    All,
    /// Proof and tools; the shape of the work is the agent's
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

impl From<PhaseName> for Phase {
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
pub(crate) fn parse_surface(text: &str) -> Result<Surface, String> {
    let rule = || format!("{text:?} is not written as KIND=LOCATION or KIND=LOCATION;NOTES");
    let (kind, rest) = text.split_once('=').ok_or_else(rule)?;
    let (location, notes) = match rest.split_once(';') {
        Some((location, notes)) => (location, Some(notes.trim())),
        None => (rest, None),
    };
    if kind.trim().is_empty() || location.trim().is_empty() {
        return Err(rule());
    }
    Ok(Surface {
        kind: kind.trim().to_owned(),
        location: location.trim().to_owned(),
        notes: notes.filter(|notes| !notes.is_empty()).map(str::to_owned),
    })
}

/// Returns how a goal is worked on.
pub(super) fn working(args: &Args) -> Working {
    let mut ask_before: Vec<String> = Vec::new();
    for text in &args.ask_before {
        if !ask_before.contains(text) {
            ask_before.push(text.clone());
        }
    }
    Working {
        goal_type: args.goal_type.map(GoalType::from).unwrap_or_default(),
        surfaces: args.surface.clone(),
        ask_before,
        decision_style: args.decision_style.clone(),
        start_phase: args.start_phase.map(Phase::from).unwrap_or_default(),
        mise: args.mise,
        distill: if args.no_distill {
            Distill::Never
        } else {
            Distill::WhenPlanned
        },
        reminders: args.reminders.map(Reminders::from).unwrap_or_default(),
        workflow: None,
    }
}

/// Puts verify commands behind mise, where that was asked for and mise is there.
pub(super) fn through_mise(
    context: &Context,
    args: &Args,
    verify: Vec<String>,
) -> Result<Vec<String>, Error> {
    if !args.mise {
        return Ok(verify);
    }
    let path = context.variable("PATH").unwrap_or_default();
    if process::find_in_path("mise".as_ref(), path.as_ref()).is_none() {
        return Err(Error::new(
            Exit::Failed,
            "failed to find mise on PATH, and the contract asks for it",
        )
        .with_hint("install it, or leave out `--mise`."));
    }
    Ok(verify.iter().map(|command| mise::route(command)).collect())
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
