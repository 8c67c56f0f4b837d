//! `kapi setup`: makes Kapi known to another agent or editor, and takes that back.
//!
//! Shows what changes in which file, asks, and writes. Nothing that is not Kapi's own is replaced, and
//! what was put in is noted, so that undoing takes out exactly this.

mod change;
mod client;
mod entry;
mod files;
mod patch;
mod plugin;
mod receipt;

use std::cmp::Reverse;
use std::path::PathBuf;

use serde::Serialize;

use super::mcp::ToolGroup;
use crate::commands::setup::change::FileChange;
use crate::commands::setup::client::SetupClient;
use crate::commands::setup::receipt::SetupReceipt;
use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::ui::Format;

/// Options of `kapi setup`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The agent or editor
    #[arg(value_enum, value_name = "CLIENT")]
    client: SetupClient,
    /// Tools to offer its agents
    #[arg(long, value_enum, default_value_t = ToolGroup::All, value_name = "GROUP")]
    tools: ToolGroup,
    /// Add only the MCP server, without commands, stop gate and status line
    #[arg(long)]
    only_server: bool,
    /// Remove what setup added
    #[arg(long, conflicts_with_all = ["tools", "only_server"])]
    undo: bool,
    /// Show the change and write nothing
    #[arg(long, conflicts_with = "yes")]
    dry_run: bool,
    /// Write without asking
    #[arg(short, long)]
    yes: bool,
}

/// What was or would be done.
#[derive(Debug, Serialize)]
struct SetupView<'a> {
    client: &'static str,
    /// Whether it was written.
    applied: bool,
    files: Vec<FileView<'a>>,
}

#[derive(Debug, Serialize)]
struct FileView<'a> {
    path: &'a std::path::Path,
    /// `create`, `change` or `remove`.
    change: &'static str,
    diff: String,
}

/// Sets a client up, or undoes that.
pub(crate) fn run(context: &Context, args: &Args) -> Result<Exit, Error> {
    context.require_human("change the settings of agents and editors")?;
    let client = args.client;
    let known = receipt::read(context, client.word())?;
    let known = known.unwrap_or_default();
    let changes = if args.undo {
        change::undoing(&known)?
    } else {
        let mut wanted = client.files(context, args.tools.word());
        if !args.only_server {
            wanted.extend(client.plugin(context));
        }
        change::installing(&wanted, &known)?
    };
    let is_any = changes.iter().any(FileChange::is_one);
    if context.ui.format == Format::Human {
        show(context, &changes);
    }
    let applied = is_any && !args.dry_run;
    if applied {
        confirm(context, args)?;
    }
    if !args.dry_run {
        apply(context, args, &changes, &known)?;
    }
    match context.ui.format {
        Format::Json => context.ui.json(&view(client, &changes, applied)),
        Format::Human => say(context, args, is_any),
    }
    Ok(Exit::Success)
}

fn show(context: &Context, changes: &[FileChange]) {
    for change in changes {
        if change.is_one() {
            context.ui.page(&change.diff());
        }
        if let Some(note) = &change.note {
            context.ui.say(&format!("note: {note}"));
        }
    }
}

fn confirm(context: &Context, args: &Args) -> Result<(), Error> {
    if args.yes {
        return Ok(());
    }
    match context.ui.confirm("Write this?") {
        Some(true) => Ok(()),
        Some(false) => Err(Error::new(Exit::Denied, "nothing was changed")),
        None => Err(Error::usage(
            "the change needs your consent, and there is no terminal to ask on",
        )
        .with_hint("read it above, then add `--yes`.")),
    }
}

/// Notes first what is about to be put in: what is written is never without its receipt.
fn apply(
    context: &Context,
    args: &Args,
    changes: &[FileChange],
    known: &SetupReceipt,
) -> Result<(), Error> {
    let client = args.client.word();
    let files = changes.iter().filter_map(|change| change.receipt.clone());
    let mut receipt = SetupReceipt {
        files: files.collect(),
        directories: known.directories.clone(),
    };
    if !receipt.files.is_empty() {
        receipt::keep(context, client, &receipt)?;
    }
    for change in changes {
        let made = change.apply(context)?;
        receipt.directories.extend(made);
    }
    // The innermost first, whichever file they were made for.
    let depth = |dir: &PathBuf| Reverse(dir.components().count());
    receipt.directories.sort_by_key(depth);
    if receipt.files.is_empty() {
        for dir in &receipt.directories {
            files::remove_empty(dir)?;
        }
        return receipt::remove(context, client);
    }
    receipt::keep(context, client, &receipt)
}

fn view(client: SetupClient, changes: &[FileChange], applied: bool) -> SetupView<'_> {
    let files = changes.iter().filter(|change| change.is_one());
    let files = files.map(|change| FileView {
        path: &change.path,
        change: change.word(),
        diff: change.diff(),
    });
    SetupView {
        client: client.word(),
        applied,
        files: files.collect(),
    }
}

fn say(context: &Context, args: &Args, is_any: bool) {
    let (name, word) = (args.client.name(), args.client.word());
    let text = match (is_any, args.undo) {
        (_, _) if args.dry_run && is_any => {
            format!("Nothing was written. Run the same without `--dry-run` to change {name}.")
        }
        (true, true) => format!("Kapi is taken out of {name}."),
        (true, false) => format!(
            "{name} knows Kapi now: {}. Undo it with `kapi setup {word} --undo`.",
            args.client.check()
        ),
        (false, true) => format!("There is nothing of Kapi's in {name}: nothing to take out."),
        (false, false) => format!("{name} knows Kapi already: nothing to change."),
    };
    context.ui.say(&text);
}
