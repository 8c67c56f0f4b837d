//! `kapi loop list`: the loops of the project a line each, and what is wrong with their files.
//!
//! A file that is wrong is named with its line and hides no other loop.

use kapi_core::text::one_line;
use kapi_settings::fault::SettingsFault;
use kapi_sys::clock::Clock as _;
use kapi_task::rules::state::LastSkip;
use kapi_wire::loops::LoopView;
use serde::Serialize;

use crate::commands::loops::loop_state;
use crate::commands::loops::wall::Wall;
use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::ui::Format;
use crate::{amount, kernel};

#[derive(Debug, Serialize)]
struct LoopListView {
    loops: Vec<LoopView>,
    faults: Vec<LoopFaultView>,
}

/// One thing that is wrong with a file.
#[derive(Debug, Serialize)]
struct LoopFaultView {
    file: String,
    /// From 1; 0 for the file as a whole.
    line: usize,
    key: Option<String>,
    what: String,
    remedy: String,
}

/// Lists the loops.
pub(super) fn run(context: &Context) -> Result<Exit, Error> {
    kernel::with(context, "kapi loop list", |kernel| {
        let mut found = kernel.loops();
        let missing = kernel.missing_agents(&found);
        found.faults.extend(missing);
        let unmeasured = kernel.unmeasured_loops(&found).into_iter();
        found.faults.extend(unmeasured.map(|(_, fault)| fault));
        let queue = kernel.queue()?;
        let now_ms = context.clock.now_ms();
        let view = |definition| loop_state::view(queue.kernel(), definition, now_ms);
        let loops: Vec<LoopView> = found.definitions.iter().map(view).collect();
        if context.ui.format == Format::Json {
            let faults = found.faults.iter().map(fault_view).collect();
            context.ui.json(&LoopListView { loops, faults });
            return Ok(Exit::Success);
        }
        let wall = Wall::new();
        let width = |text: fn(&LoopView) -> &str| {
            let widths = loops.iter().map(|view| text(view).chars().count());
            widths.max().unwrap_or(0)
        };
        let (names, triggers) = (width(|view| &view.name), width(|view| &view.trigger_words));
        for view in &loops {
            let line = format!(
                "{} {:names$}  {:triggers$}  {}",
                glyph(view),
                view.name,
                view.trigger_words,
                stands(view, &wall, now_ms)
            );
            context.ui.line(line.trim_end());
        }
        for fault in &found.faults {
            context.ui.line(&format!("! {fault}"));
        }
        if loops.is_empty() && found.faults.is_empty() {
            context
                .ui
                .say("There are no loops; copy some examples with `kapi loop init`.");
        }
        Ok(Exit::Success)
    })
}

fn glyph(view: &LoopView) -> char {
    match (view.is_enabled, view.status) {
        (false, _) => '-',
        (true, "running" | "queued") => '▶',
        (true, "completed") => '✓',
        (true, "error" | "denied") => '✗',
        (true, "cancelled") => '×',
        (true, _) => '○',
    }
}

fn stands(view: &LoopView, wall: &Wall, now_ms: i64) -> String {
    let mut parts = Vec::new();
    if !view.is_enabled {
        let next = format!(
            "off; turn its triggers on with `kapi loop enable {}`",
            view.name
        );
        parts.push(next);
    }
    parts.extend(match view.next_at_ms {
        Some(at_ms) if at_ms <= now_ms => Some("due now".to_owned()),
        Some(at_ms) => Some(format!("next {}", wall.show(at_ms, now_ms))),
        None => None,
    });
    if let [first, ..] = view.live.as_slice() {
        parts.push(format!("{first} {}", view.status));
    } else if let Some(skip) = latest_skip(view) {
        let ago = ago(skip.at_ms, now_ms);
        parts.push(format!("did not run {ago}: {}", one_line(&skip.reason)));
    } else if let Some(ended_ms) = view.last_run_at_ms {
        parts.push(format!("last {} {}", view.status, ago(ended_ms, now_ms)));
    }
    parts.join(", ")
}

/// Returns how it did not run, if that came after its last run.
pub(super) fn latest_skip(view: &LoopView) -> Option<&LastSkip> {
    let skip = view.last_skip.as_ref()?;
    let is_newer = view.last_run_at_ms.is_none_or(|ended| ended <= skip.at_ms);
    is_newer.then_some(skip)
}

fn ago(at_ms: i64, now_ms: i64) -> String {
    let ago_ms = u64::try_from(now_ms.saturating_sub(at_ms)).unwrap_or(0);
    format!("{} ago", amount::duration(ago_ms))
}

fn fault_view(fault: &SettingsFault) -> LoopFaultView {
    LoopFaultView {
        file: fault.file.clone(),
        line: fault.line,
        key: fault.key.clone(),
        what: fault.what.clone(),
        remedy: fault.remedy.clone(),
    }
}
