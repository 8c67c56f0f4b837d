//! `kapi loop init`: writes the loops that Kapi brings along to `.ilchul/loops`.
//!
//! They are ordinary files from then on, the person's own; none that is there is touched.

use kapi_core::state_directory::OWN_LOOPS;
use kapi_sys::disk::{create_dir_durably, replace_durably};
use kapi_task::record::shipped;
use serde_json::json;

use crate::commands::loops::parse;
use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::kernel;
use crate::ui::Format;

/// Options of `kapi loop init`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Loops to copy [default: all]
    #[arg(value_name = "LOOP")]
    names: Vec<String>,
}

/// Writes the files.
pub(super) fn run(context: &Context, args: &Args) -> Result<Exit, Error> {
    let all = shipped::loops();
    for name in &args.names {
        if !all.iter().any(|file| file.name == name) {
            let known: Vec<&str> = all.iter().map(|file| file.name).collect();
            let text = format!("there is no built-in loop {name:?}");
            return Err(Error::new(Exit::NotFound, text)
                .with_hint(format!("available: {}.", known.join(", "))));
        }
    }
    kernel::with(context, "kapi loop init", |kernel| {
        context.require_human("write loops")?;
        kernel.prepare()?;
        let root = kernel.project.layout.root();
        let disk = kernel.project.disk;
        let dir = root.join(OWN_LOOPS);
        create_dir_durably(disk, root, &dir).map_err(|error| Error::failed(&error))?;
        let found = kernel.loops();
        let (mut written, mut kept) = (Vec::new(), Vec::new());
        for file in all {
            if !args.names.is_empty() && !args.names.iter().any(|name| file.name == name) {
                continue;
            }
            let path = dir.join(format!("{}.md", file.name));
            let is_there = disk
                .len(&path)
                .map_err(|error| Error::failed(&error))?
                .is_some();
            let is_known = parse(file.name).is_ok_and(|name| found.find(&name).is_some());
            if is_there || is_known {
                kept.push(file.name);
                continue;
            }
            replace_durably(disk, &path, file.text.as_bytes())
                .map_err(|error| Error::failed(&error))?;
            written.push(file.name);
        }
        match context.ui.format {
            Format::Json => context.ui.json(&json!({
                "type": "loops_written", "dir": OWN_LOOPS, "written": written, "kept": kept,
            })),
            Format::Human => {
                for name in &written {
                    context.ui.line(&format!("wrote {OWN_LOOPS}/{name}.md"));
                }
                for name in &kept {
                    context
                        .ui
                        .line(&format!("kept  {name}, which already exists"));
                }
                context
                    .ui
                    .say("Edit them as you like; list them with `kapi loop list`.");
            }
        }
        Ok(Exit::Success)
    })
}
