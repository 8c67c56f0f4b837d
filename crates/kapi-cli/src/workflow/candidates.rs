//! Which workflow gives a new one its context: none, the one that fits, or a row of a list.
//!
//! What fits is the core's rule. A number typed here is a row of the list that was just shown, and
//! where nobody is there to type one, it has to be named.

use kapi_core::id::GoalId;
use kapi_core::mode::Mode;
use kapi_core::workflow_key::WorkflowKey;
use kapi_goal::record::project::Project;
use kapi_workflow::record::workflows::Workflows;
use kapi_workflow::rules::candidate::HandoverCandidate;
use kapi_workflow::rules::mode_spec::ModeSpec;

use crate::context::Context;
use crate::error::Error;
use crate::event_words::first_line;
use crate::exit_code::Exit;

/// Workflows that are listed at most.
const LISTED_MAX: usize = 9;

/// What was chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum HandoverChoice {
    /// This one gives the context.
    Giver(GoalId),
    /// None.
    Nothing,
}

/// Chooses the workflow that gives the context.
pub(crate) fn choose(
    context: &Context,
    project: &Project<'_>,
    mode: Mode,
    purpose: &str,
) -> Result<HandoverChoice, Error> {
    let mut fitting = Workflows::of(project)
        .interviews_for(purpose, mode)
        .map_err(|error| Error::workflow(&error))?;
    fitting.truncate(LISTED_MAX);
    if fitting.is_empty() {
        return Ok(HandoverChoice::Nothing);
    }
    let ui = context.ui;
    let noun = ModeSpec::noun_of(Mode::CONTEXT);
    ui.say(&match fitting.len() {
        1 => format!("An approved {noun} matches this purpose:"),
        _ => format!("Approved {noun}s match this purpose:"),
    });
    for (row, candidate) in (1..).zip(&fitting) {
        ui.say(&line(project, row, candidate));
    }
    ui.say("  0  none of them: start without one");
    let Some(typed) = ui.ask("Which one should it build on? [1] ") else {
        return Err(unanswered(&fitting));
    };
    match picked(&typed, &fitting) {
        Some(chosen) => Ok(chosen),
        None => Err(Error::usage(format!(
            "{:?} is not in the list; nothing was started",
            typed.trim()
        ))),
    }
}

/// Reads a row of the list; an empty line is the first one.
fn picked(typed: &str, fitting: &[HandoverCandidate]) -> Option<HandoverChoice> {
    let typed = typed.trim();
    let row: usize = if typed.is_empty() {
        1
    } else {
        typed.parse().ok()?
    };
    let Some(location) = row.checked_sub(1) else {
        return Some(HandoverChoice::Nothing);
    };
    let candidate = fitting.get(location)?;
    Some(HandoverChoice::Giver(candidate.id.clone()))
}

fn line(project: &Project<'_>, row: usize, candidate: &HandoverCandidate) -> String {
    let key = WorkflowKey {
        mode: Mode::CONTEXT,
        id: candidate.id.clone(),
    };
    // The list is only shown; what cannot be read is told when it is chosen.
    let purpose = Workflows::of(project)
        .workflow(&key)
        .map_or_else(|_| String::new(), |workflow| first_line(&workflow.purpose));
    format!(
        "  {row}  {} {}: {purpose} ({} % of the words: {})",
        ModeSpec::noun_of(Mode::CONTEXT),
        candidate.id,
        candidate.score,
        candidate.shared.join(", ")
    )
}

/// Nobody is there to choose, and a guess would tie it for good.
fn unanswered(fitting: &[HandoverCandidate]) -> Error {
    let names: Vec<String> = fitting
        .iter()
        .map(|candidate| format!("`--from {:03}`", candidate.id.index()))
        .collect();
    let noun = ModeSpec::noun_of(Mode::CONTEXT);
    let text = match fitting.len() {
        1 => {
            format!("an approved {noun} matches, and there is no terminal to ask whether to use it")
        }
        _ => format!("several approved {noun}s match, and there is no terminal to choose on"),
    };
    Error::new(Exit::Usage, text).with_hint(format!(
        "choose with {}, or `--unlinked` to start without one.",
        names.join(" or ")
    ))
}

#[cfg(test)]
mod tests {
    use kapi_core::id::GoalId;
    use kapi_workflow::rules::candidate::HandoverCandidate;

    use super::{HandoverChoice, picked};

    #[test]
    fn a_number_is_a_row_of_the_list_and_never_an_index() {
        let candidate = |name: &str| HandoverCandidate {
            id: GoalId::parse(name).unwrap(),
            score: 50,
            shared: Vec::new(),
        };
        let fitting = [candidate("007-a"), candidate("001-b")];
        let chosen = |name: &str| Some(HandoverChoice::Giver(GoalId::parse(name).unwrap()));
        for (typed, expected) in [
            ("1\n", chosen("007-a")),
            ("\n", chosen("007-a")),
            (" 2 ", chosen("001-b")),
            ("0", Some(HandoverChoice::Nothing)),
            ("7", None),
            ("001", chosen("007-a")),
            ("no", None),
            ("-1", None),
        ] {
            assert_eq!(picked(typed, &fitting), expected, "{typed:?}");
        }
    }
}
