//! How a goal is worked on, from flags: type, surfaces, ask-before, style, phase, mise, distilling.
//!
//! Only the words a person types are known here; what they lead to is the core's affair.

use kapi_check::rules::checks::mise;
use kapi_goal::rules::contract::{Distillation, GoalType, Reminders, WorkPlace, Working};
use kapi_goal::rules::plan::task::TaskPhase;
use kapi_sys::process;

use crate::context::Context;
use crate::contract::flags::Args;
use crate::error::Error;
use crate::exit_code::Exit;

/// Returns how a goal is worked on.
pub(super) fn working(args: &Args, place: WorkPlace) -> Working {
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
        start_phase: args.start_phase.map(TaskPhase::from).unwrap_or_default(),
        mise: args.mise,
        distill: if args.no_distill {
            Distillation::Never
        } else {
            Distillation::WhenPlanned
        },
        reminders: args.reminders.map(Reminders::from).unwrap_or_default(),
        place,
        keep_commits: args.keep_commits,
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
            "failed to find mise on PATH, which the contract requires",
        )
        .with_hint("install it, or leave out `--mise`."));
    }
    Ok(verify.iter().map(|command| mise::route(command)).collect())
}
