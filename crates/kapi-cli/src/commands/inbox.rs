//! `kapi inbox`: everything in this project that waits for a person, oldest first.
//!
//! At a terminal one thing after another is put to the person; everywhere else they are listed. A
//! yes runs the very command that is shown; not now changes nothing.

mod gather;
mod goals;
mod item;
mod kernel;
mod launches;
mod workflows;

use kapi_core::text::time_words;
use kapi_wire::workflow::inbox::{InboxItem, InboxView};

use crate::commands::inbox::item::WaitingItem;
use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::run_line;
use crate::ui::{Format, Ui};

/// Options of `kapi inbox`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// List pending items without prompting
    #[arg(long)]
    list: bool,
}

impl Args {
    /// Returns the options that put one thing after another to the person.
    pub(crate) const fn asking() -> Self {
        Self { list: false }
    }
}

/// Shows what waits for a person.
pub(crate) fn run(context: &Context, args: &Args) -> Result<Exit, Error> {
    let items = gather::gather(context)?;
    let ui = context.ui;
    if ui.format == Format::Json {
        let items = items.into_iter().map(|item| item.view).collect();
        ui.json(&InboxView { items });
        return Ok(Exit::Success);
    }
    if items.is_empty() {
        ui.line("Nothing is waiting for you here.");
        return Ok(Exit::Success);
    }
    let is_asked = !args.list && ui.is_at_keyboard() && context.require_human("decide").is_ok();
    for (number, item) in (1..).zip(&items) {
        show(ui, number, &item.view);
        if is_asked && put(context, item)? == InboxReply::Enough {
            break;
        }
    }
    Ok(Exit::Success)
}

/// Returns what waits for a person, as others see it.
pub(crate) fn views(context: &Context) -> Result<Vec<InboxItem>, Error> {
    let items = gather::gather(context)?;
    Ok(items.into_iter().map(|item| item.view).collect())
}

fn show(ui: Ui, number: usize, item: &InboxItem) {
    let since = item.since_ms.map_or_else(String::new, |at_ms| {
        format!(", since {}", time_words(at_ms))
    });
    ui.line(&format!("{number}. {}{since}", item.subject));
    ui.line(&format!("   {}", item.what));
    for risk in &item.risks {
        ui.line(&format!("   risk     {risk}"));
    }
    if let Some(yes) = &item.yes {
        ui.line(&format!("   yes      {yes}"));
    }
    ui.line(&format!("            {}", item.on_yes));
    for change in &item.change {
        ui.line(&format!("   or       {change}"));
    }
    if let Some(look) = &item.look {
        ui.line(&format!("   look     {look}"));
    }
    ui.line("   not now  nothing changes, and it stays here");
}

/// What a person said to one thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum InboxReply {
    /// Show the next one.
    More,
    /// Show no more.
    Enough,
}

/// Puts one thing to the person, and runs the command that is shown where they say yes.
fn put(context: &Context, item: &WaitingItem) -> Result<InboxReply, Error> {
    let ui = context.ui;
    let words = ["yes", "look", "quit", "not now"];
    loop {
        let said = ui.choose("   What about it?", &words);
        let line = match said.and_then(|location| words.get(location)) {
            Some(&"yes") => &item.yes,
            Some(&"look") => &item.look,
            Some(&"quit") => return Ok(InboxReply::Enough),
            Some(_) | None => return Ok(InboxReply::More),
        };
        let Some(line) = line else {
            ui.say("   there is no single command for that; see above.");
            continue;
        };
        ui.say(&format!("   $ {}", line.words.join(" ")));
        carry_out(context, &line.words)?;
        if said != words.iter().position(|word| *word == "look") {
            return Ok(InboxReply::More);
        }
    }
}

fn carry_out(context: &Context, words: &[String]) -> Result<(), Error> {
    match run_line(context, words) {
        Ok(_) => Ok(()),
        // One thing that cannot be settled does not keep the others from the person.
        Err(error) if error.exit != Exit::Interrupted => {
            context.ui.say(&format!("error: {error}"));
            if let Some(hint) = &error.hint {
                context.ui.say(&format!("hint: {hint}"));
            }
            Ok(())
        }
        Err(error) => Err(error),
    }
}
