//! `kapi loop history`: the last runs of a loop, phase by phase.
//!
//! Only looks; runs that have ended are read from the history.

use kapi_core::task_id::LoopName;
use kapi_sys::clock::Clock as _;
use kapi_task::rules::task::{KernelTask, PhaseStatus};
use kapi_wire::kernel::task::{KernelTaskView, duration_ms, status_word};
use kapi_wire::loops::live;
use serde_json::json;

use crate::amount;
use crate::commands::loops::wall::Wall;
use crate::commands::loops::{loop_state, parse};
use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::kernel::{self, failed};
use crate::ui::Format;

/// Options of `kapi loop history`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Loop name
    #[arg(value_name = "LOOP", value_parser = parse)]
    name: LoopName,
    /// Maximum number of runs to show
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    limit: u32,
}

/// Shows the runs.
pub(super) fn run(context: &Context, args: &Args) -> Result<Exit, Error> {
    kernel::with(context, "kapi loop history", |kernel| {
        let queue = kernel.queue()?;
        let limit = usize::try_from(args.limit).unwrap_or(usize::MAX);
        let mut runs: Vec<KernelTask> = live(queue.kernel(), &args.name).cloned().collect();
        let ended = queue.kernel().ended.values();
        let is_its =
            |task: &&KernelTask| task.loop_run().is_some_and(|run| *run.name() == args.name);
        runs.extend(ended.filter(is_its).cloned());
        let archived = queue.history().last(limit, Some(&args.name));
        for task in archived.map_err(|error| failed(&error))? {
            if !runs.iter().any(|known| known.id == task.id) {
                runs.push(task);
            }
        }
        runs.sort_by_key(|task| std::cmp::Reverse(task.id));
        runs.truncate(limit);
        let known = queue.kernel().loops.get(&args.name);
        if runs.is_empty() && known.is_none() {
            // A name that nothing was ever called by is a slip.
            loop_state::find(&kernel.loops(), &args.name)?;
        }
        let now_ms = context.clock.now_ms();
        let skip = known.and_then(|known| known.last_skip.as_ref());
        if context.ui.format == Format::Json {
            let views: Vec<KernelTaskView> = runs
                .iter()
                .map(|task| KernelTaskView::of(task, None, now_ms))
                .collect();
            context.ui.json(&json!({
                "name": args.name, "runs": views, "last_skip": skip,
                "handoff": known.and_then(|known| known.handoff.as_ref()),
            }));
            return Ok(Exit::Success);
        }
        let wall = Wall::new();
        for task in &runs {
            announce(context, task, &wall, now_ms);
        }
        if let Some(skip) = skip {
            let at = wall.show(skip.at_ms, now_ms);
            context
                .ui
                .line(&format!("- {at}  did not run: {}", skip.reason));
        }
        if runs.is_empty() {
            context.ui.say("It has not run yet.");
        }
        Ok(Exit::Success)
    })
}

fn announce(context: &Context, task: &KernelTask, wall: &Wall, now_ms: i64) {
    let run = task.loop_run();
    let trigger = run.map_or("manual", |run| run.trigger.kind());
    let source = run.and_then(|run| run.trigger.source());
    let source = source.map_or_else(String::new, |source| format!(" ({source})"));
    context.ui.line(&format!(
        "{}  {}  {}  {}, by {trigger}{source}",
        task.id,
        wall.show(task.submitted_at_ms, now_ms),
        status_word(task.state),
        amount::duration(duration_ms(task, now_ms)),
    ));
    for record in &task.phases {
        let glyph = match record.status {
            PhaseStatus::Ok => '✓',
            PhaseStatus::Skipped => '-',
            PhaseStatus::Error => '✗',
        };
        let detail = record.detail.as_deref().unwrap_or_default();
        let line = format!("  {glyph} {:9}  {detail}", record.phase.name());
        context.ui.line(line.trim_end());
    }
}
