//! Driving a workflow while a person looks on: effects, then whatever it asks of its person, and on.
//!
//! What happens is the engine's business; here it is shown, and the person is asked. Without anybody
//! at a terminal it ends where it waits for one.

use kapi_core::mode::Mode;
use kapi_machine::pace::Pace;
use kapi_machine::watch::EffectWatch;
use kapi_sys::clock::monotonic_ms;
use kapi_sys::signal::Interrupts;
use kapi_workflow::record::delay::Delays;
use kapi_workflow::record::drive::{WorkflowDriveControl, WorkflowObservation, drive};
use kapi_workflow::record::requests::Approving;
use kapi_workflow::record::workflows::Workflows;
use kapi_workflow::rules::command::WorkflowCommand;
use kapi_workflow::rules::effect::WorkflowEffect;
use kapi_workflow::rules::pending::Means;

use crate::context::Context;
use crate::delivering::others::{self, DeliverySite};
use crate::error::Error;
use crate::exit_code::Exit;
use crate::live_view::open_view::ViewSource;
use crate::live_view::source::workflow_facts;
use crate::workflow::keyboard::{Keyboard, KeyboardInput};
use crate::workflow::located::LocatedWorkflow;
use crate::workflow::progress::WorkflowProgressLine;
use crate::workflow::watching::{Watching, WorkerWatch};
use crate::workflow::world::WorkflowSetup;
use crate::workflow::{approving, report};
use crate::{amount, live_view, notification};

/// What became of what a workflow asks its person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DecisionOutcome {
    /// There was a reply: it goes on.
    Replied,
    /// It waits; the person goes on another day.
    Left,
}

/// Settles what a workflow asks its person, decisions apart; the keyboard where they are at one.
pub(crate) type Settle = dyn Fn(
        &Context,
        &mut LocatedWorkflow<'_>,
        Option<&mut Keyboard<'_>>,
    ) -> Result<DecisionOutcome, Error>
    + Sync;

/// Settles nothing, for a mode that asks for decisions only.
pub(crate) const NOTHING_ASKED: &Settle = &|_, _, _| Ok(DecisionOutcome::Left);

/// Returns the same, made when a command begins.
pub(crate) fn nothing_asked(_: &Context) -> Result<Box<Settle>, Error> {
    Ok(Box::new(NOTHING_ASKED))
}

/// What a mode does for its workflows besides what every mode does.
pub(crate) struct Conduct {
    /// The mode.
    pub(crate) mode: Mode,
    /// Refuses to go on to what could not be done.
    pub(crate) check: fn(&Context, &LocatedWorkflow<'_>) -> Result<(), Error>,
    /// Settles what it asks its person at the keyboard.
    pub(crate) settle: &'static Settle,
}

/// What a workflow is driven with.
#[derive(Clone, Copy)]
pub(crate) struct DriveInputs<'a> {
    /// Settles what it asks its person.
    pub(crate) settle: &'a Settle,
    /// Where its workers are watched.
    pub(crate) watch: Option<WorkerWatch>,
}

/// Drives a workflow, asking its person where they are there, until it ends or rests; reports it.
pub(crate) fn go_on(
    context: &Context,
    found: &mut LocatedWorkflow<'_>,
    with: DriveInputs<'_>,
    interrupts: &Interrupts,
) -> Result<Exit, Error> {
    let mut keyboard = Keyboard::at_terminal(context.ui, interrupts);
    loop {
        until_rest(context, found, with.watch, interrupts)?;
        if interrupts.is_raised() || found.workflow.status.is_terminal() {
            break;
        }
        let settled = if found.workflow.pending.is_some() {
            match &mut keyboard {
                Some(keyboard) => decision(context, found, keyboard)?,
                None => DecisionOutcome::Left,
            }
        } else {
            (with.settle)(context, found, keyboard.as_mut())?
        };
        if settled == DecisionOutcome::Left {
            break;
        }
    }
    let exit = report::outcome(context.ui, &found.dir(), &found.workflow);
    let mut delivered = Ok(());
    if !interrupts.is_raised() {
        let root = found.project.layout.root();
        let config = context.config(Some(root))?;
        let site = DeliverySite {
            context,
            config: &config,
            root,
        };
        delivered = others::of_workflow(site, &found.workflow);
        notification::of_workflow(context, &config, &found.workflow, root.to_path_buf());
    }
    delivered?;
    let is_left = interrupts.is_raised() && !found.workflow.status.is_terminal();
    Ok(if is_left { Exit::Interrupted } else { exit })
}

fn until_rest(
    context: &Context,
    found: &mut LocatedWorkflow<'_>,
    watch: Option<WorkerWatch>,
    interrupts: &Interrupts,
) -> Result<(), Error> {
    let mut progress = WorkflowProgressLine::new(context.ui, &found.workflow);
    let mut watching = match watch {
        None => None,
        Some(WorkerWatch::Tmux) => Some(Watching::new(context, found)?),
    };
    let control = WorkflowDriveControl {
        interrupted: &|| interrupts.is_raised(),
        monotonic_ms: &monotonic_ms,
        pace: Pace::STANDARD,
        delays: Delays::STANDARD,
    };
    let config = context.config(Some(found.project.layout.root()))?;
    let world = WorkflowSetup {
        context,
        project: &found.project,
        key: &found.key,
        started_by: &found.workflow.started_by,
        config: &config,
    };
    let mut observe = |seen: WorkflowObservation| {
        let unseen = watching.as_mut().and_then(|it| it.observe(&seen));
        show(&mut progress, seen);
        if let Some(text) = unseen {
            progress.note(&text);
        }
    };
    let perform = |effect: &WorkflowEffect, watch: &EffectWatch<'_>| world.perform(effect, watch);
    let workflows = Workflows::of(&found.project);
    let source = ViewSource {
        subjects: &|| workflow_facts(&workflows, &found.key).into_iter().collect(),
        overview: None,
    };
    let driven = live_view::during(context, source, interrupts, || {
        drive(&found.project, &found.key, &perform, &control, &mut observe)
    });
    let workflow = driven.map_err(|error| Error::workflow_drive(&error))?;
    if let Some(watching) = watching.filter(|_| workflow.status.is_terminal())
        && let Some(text) = watching.end()
    {
        context.ui.say(&format!("note: {text}"));
    }
    found.workflow = workflow;
    Ok(())
}

fn show(progress: &mut WorkflowProgressLine, seen: WorkflowObservation) {
    match seen {
        WorkflowObservation::Recorded(logged) => progress.recorded(&logged),
        WorkflowObservation::Performing(effect) => progress.performing(&effect),
        WorkflowObservation::Activity { effect, activity } => progress.activity(&effect, &activity),
        WorkflowObservation::Delayed { effect, ms } => {
            progress.note(&format!("retrying {effect} in {}", amount::duration(ms)));
        }
    }
}

/// Shows what waits and asks the person at the terminal for it.
fn decision(
    context: &Context,
    found: &mut LocatedWorkflow<'_>,
    keyboard: &mut Keyboard<'_>,
) -> Result<DecisionOutcome, Error> {
    let Some(pending) = found.workflow.pending.clone() else {
        return Ok(DecisionOutcome::Left);
    };
    let ui = context.ui;
    approving::check_unedited(found, &pending)?;
    keyboard.drop_typed_ahead();
    approving::show(context, found, &pending)?;
    let artifact = pending.decision.words();
    let accepting = if pending.risks.is_empty() {
        ""
    } else {
        ", accepting the risks above"
    };
    loop {
        ui.prompt(&format!(
            "Approve {artifact}{accepting}? [yes/later/or type what should change] "
        ));
        let KeyboardInput::Text(text) = keyboard.answer() else {
            ui.say("");
            return Ok(DecisionOutcome::Left);
        };
        let text = text.trim().to_owned();
        match text.to_lowercase().as_str() {
            "y" | "yes" => {
                let approving = Approving {
                    shown: pending.sha256,
                    means: Means::Terminal,
                    accepts_risks: true,
                };
                approving::approve(context, found, &approving)?;
            }
            "" | "n" | "no" | "l" | "later" | "/later" | "/quit" => {
                return Ok(DecisionOutcome::Left);
            }
            // A word that was mistyped asks for no change.
            _ if !text.contains(char::is_whitespace) => {
                keyboard.drop_typed_ahead();
                ui.say("Nothing changed. Type yes, later, or what should change in a few words.");
                continue;
            }
            _ => {
                found.submit(context, &WorkflowCommand::Revise { text })?;
            }
        }
        return Ok(DecisionOutcome::Replied);
    }
}
