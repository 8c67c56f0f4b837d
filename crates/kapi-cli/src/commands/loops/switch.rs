//! `kapi loop enable` and `kapi loop disable`: whether anything but a person sets a loop off.
//!
//! What happens while a loop is off is not made up for; a person may always run it.

use kapi_core::actor::Actor;
use kapi_core::task_id::LoopName;
use kapi_sys::clock::Clock as _;
use kapi_task::perform::events::EventWatcher;
use kapi_task::record::events;
use kapi_task::record::events::Sight;
use kapi_task::record::queue::Queue;
use kapi_task::rules::command::KernelCommand;
use kapi_task::rules::definition::Definition;
use kapi_task::rules::definition::trigger::{EventSource, LoopTrigger};
use kapi_task::rules::state::KernelState;
use serde_json::json;

use crate::commands::loops::{LoopArg, loop_state};
use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::kernel::{self, ProjectKernel, failed};
use crate::ui::Format;

/// What a loop is switched to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LoopSwitch {
    On,
    Off,
}

/// Switches a loop.
pub(super) fn run(context: &Context, args: &LoopArg, to: LoopSwitch) -> Result<Exit, Error> {
    kernel::with(context, "kapi loop", |kernel| {
        let found = kernel.loops();
        let definition = loop_state::find(&found, &args.name)?;
        context.require_human("enable and disable loops")?;
        kernel.prepare()?;
        let mut queue = kernel.queue()?;
        switch(kernel, &mut queue, definition, to)?;
        let view = loop_state::view(queue.kernel(), definition, context.clock.now_ms());
        match context.ui.format {
            Format::Json => context.ui.json(&json!({
                "type": "loop_switched",
                "name": view.name,
                "is_enabled": view.is_enabled,
                "next_at_ms": view.next_at_ms,
            })),
            Format::Human => {
                let name = &view.name;
                let words = &view.trigger_words;
                context.ui.line(&match (to, view.trigger) {
                    (LoopSwitch::On, "manual") => {
                        format!("{name} is on; it has no triggers, so only you can run it.")
                    }
                    (LoopSwitch::On, _) => format!("{name} is on: {words}, while `kapi up` runs."),
                    (LoopSwitch::Off, _) => format!(
                        "{name} is off; you can still run it with `kapi \
                        loop run {name}`."
                    ),
                });
            }
        }
        Ok(Exit::Success)
    })
}

/// Enables the loops with these names; those that are enabled stay as they are.
pub(crate) fn enable(kernel: &ProjectKernel<'_>, names: &[LoopName]) -> Result<(), Error> {
    let found = kernel.loops();
    let mut queue = kernel.queue()?;
    for name in names {
        let definition = loop_state::find(&found, name)?;
        switch(kernel, &mut queue, definition, LoopSwitch::On)?;
    }
    Ok(())
}

fn switch(
    kernel: &ProjectKernel<'_>,
    queue: &mut Queue<'_>,
    definition: &Definition,
    to: LoopSwitch,
) -> Result<(), Error> {
    let is_enabled = to == LoopSwitch::On;
    let known = queue.kernel().loops.get(&definition.name);
    if known.and_then(|known| known.is_enabled) == Some(is_enabled) {
        return Ok(());
    }
    if is_enabled && let Some(mark) = mark(kernel, queue.kernel(), definition) {
        // What happened while it was off is not made up for. Noted first: in between it is off.
        let name = definition.name.clone();
        let mark = Some(mark);
        let seen = queue.submit(&Actor::Engine, &KernelCommand::See { name, mark });
        seen.map_err(|error| failed(&error))?;
    }
    let command = KernelCommand::Switch {
        name: definition.name.clone(),
        is_enabled,
    };
    let switched = queue.submit(&kernel.context.actor, &command);
    switched.map(drop).map_err(|error| failed(&error))
}

/// Returns what a loop's event watches, as it is now.
fn mark(kernel: &ProjectKernel<'_>, fold: &KernelState, definition: &Definition) -> Option<String> {
    let LoopTrigger::Event { source } = &definition.trigger else {
        return None;
    };
    let sight = match source {
        EventSource::LoopResult { loop_name, on } => events::look_at_loop(fold, loop_name, *on),
        EventSource::Files { .. } | EventSource::GitRef { .. } => {
            let grants = kernel.context.grants(kernel.config);
            let mut lookout = EventWatcher::new(kernel.project.layout.root());
            let sources = std::iter::once((&definition.name, source));
            lookout.look(&grants, sources, 0).remove(&definition.name)?
        }
        EventSource::Webhook { .. } => return None,
    };
    match sight {
        Sight::Is { state, .. } => Some(events::mark(source, &state)),
        Sight::Nothing => Some(events::mark(source, "")),
        Sight::Unsettled { .. } | Sight::Failed { .. } => None,
    }
}
