//! Driving a workflow while a person looks on: effects, then whatever it asks of its person, and on.
//!
//! What happens is the engine's business; here it is shown, and the person is asked. Without anybody
//! at a terminal it ends where it waits for one.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use kapi_core::workflow_key::WorkflowKey;
use kapi_machine::pace::Pace;
use kapi_machine::watch::Watch;
use kapi_store::hash::sha256_hex;
use kapi_sys::clock::monotonic_ms;
use kapi_sys::signal::Interrupts;
use kapi_workflow::record::delay::Delays;
use kapi_workflow::record::drive::{Control, Observed, drive};
use kapi_workflow::record::requests::Approving;
use kapi_workflow::record::workflows::Workflows;
use kapi_workflow::rules::command::Command;
use kapi_workflow::rules::documents::documents;
use kapi_workflow::rules::effect::Effect;
use kapi_workflow::rules::pending::{Means, Pending};

use crate::amount;
use crate::commands::workflow::approve;
use crate::context::Context;
use crate::contract::approval::{HASH_DIGITS_MIN, is_hash};
use crate::error::Error;
use crate::exit_code::Exit;
use crate::workflow::found::Found;
use crate::workflow::keyboard::{Keyboard, Typed};
use crate::workflow::progress::Progress;
use crate::workflow::report;
use crate::workflow::watching::{Watch as WatchedIn, Watching};
use crate::workflow::world::World;

/// Bytes of an artifact that are shown.
const ARTIFACT_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// What became of what a workflow asks its person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Settled {
    /// There was a reply: it goes on.
    Replied,
    /// It waits; the person goes on another day.
    Left,
}

/// Settles what a workflow asks its person, decisions apart; the keyboard where they are at one.
pub(crate) type Settle =
    dyn Fn(&Context, &mut Found<'_>, Option<&mut Keyboard<'_>>) -> Result<Settled, Error> + Sync;

/// Settles nothing, for a mode that asks for decisions only.
pub(crate) const NOTHING_ASKED: &Settle = &|_, _, _| Ok(Settled::Left);

/// Returns the same, made when a command begins.
pub(crate) fn nothing_asked(_: &Context) -> Result<Box<Settle>, Error> {
    Ok(Box::new(NOTHING_ASKED))
}

/// What a workflow is driven with.
#[derive(Clone, Copy)]
pub(crate) struct With<'a> {
    /// Settles what it asks its person.
    pub(crate) settle: &'a Settle,
    /// Where its workers are watched.
    pub(crate) watch: Option<WatchedIn>,
}

/// Drives a workflow, asking its person where they are there, until it ends or rests; reports it.
pub(crate) fn go_on(
    context: &Context,
    found: &mut Found<'_>,
    with: With<'_>,
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
                None => Settled::Left,
            }
        } else {
            (with.settle)(context, found, keyboard.as_mut())?
        };
        if settled == Settled::Left {
            break;
        }
    }
    let exit = report::outcome(context.ui, &found.dir(), &found.workflow);
    let is_left = interrupts.is_raised() && !found.workflow.status.is_terminal();
    Ok(if is_left { Exit::Interrupted } else { exit })
}

fn until_rest(
    context: &Context,
    found: &mut Found<'_>,
    watch: Option<WatchedIn>,
    interrupts: &Interrupts,
) -> Result<(), Error> {
    let mut progress = Progress::new(context.ui, &found.key.id);
    let mut watching = match watch {
        None => None,
        Some(WatchedIn::Tmux) => Some(Watching::new(context, found)?),
    };
    let control = Control {
        interrupted: &|| interrupts.is_raised(),
        monotonic_ms: &monotonic_ms,
        pace: Pace::STANDARD,
        delays: Delays::STANDARD,
    };
    let config = context.config(Some(found.project.layout.root()))?;
    let world = World {
        context,
        project: &found.project,
        key: &found.key,
        started_by: &found.workflow.started_by,
        config: &config,
    };
    let mut observe = |seen: Observed| {
        let unseen = watching.as_mut().and_then(|it| it.observe(&seen));
        show(&mut progress, seen);
        if let Some(text) = unseen {
            progress.note(&text);
        }
    };
    let perform = |effect: &Effect, watch: &Watch<'_>| world.perform(effect, watch);
    let driven = drive(&found.project, &found.key, &perform, &control, &mut observe);
    progress.end();
    let workflow = driven.map_err(|error| Error::workflow_drive(&error))?;
    if let Some(watching) = watching.filter(|_| workflow.status.is_terminal())
        && let Some(text) = watching.end()
    {
        context.ui.say(&format!("note: {text}"));
    }
    found.workflow = workflow;
    Ok(())
}

fn show(progress: &mut Progress, seen: Observed) {
    match seen {
        Observed::Recorded(logged) => progress.recorded(&logged),
        Observed::Performing(effect) => progress.performing(&effect),
        Observed::Activity { effect, activity } => progress.activity(&effect, &activity),
        Observed::Delayed { effect, ms } => {
            progress.note(&format!(
                "{effect} is tried again in {}",
                amount::duration(ms)
            ));
        }
    }
}

/// Shows what waits and asks the person at the terminal for it.
fn decision(
    context: &Context,
    found: &mut Found<'_>,
    keyboard: &mut Keyboard<'_>,
) -> Result<Settled, Error> {
    let Some(pending) = found.workflow.pending.clone() else {
        return Ok(Settled::Left);
    };
    let ui = context.ui;
    check_unedited(found, &pending)?;
    approve::show(context, found, &pending)?;
    let artifact = pending.decision.words();
    let accepting = if pending.risks.is_empty() {
        ""
    } else {
        ", accepting the risks above"
    };
    ui.prompt(&format!(
        "Approve this {artifact}{accepting}? [yes/later/or say what should change] "
    ));
    let Typed::Text(text) = keyboard.answer() else {
        ui.say("");
        return Ok(Settled::Left);
    };
    match text.trim().to_lowercase().as_str() {
        "y" | "yes" => {
            let approving = Approving {
                shown: pending.sha256,
                means: Means::Terminal,
                accepts_risks: true,
            };
            approve::approve(context, found, &approving)?;
        }
        "" | "n" | "no" | "l" | "later" | "/later" | "/quit" => return Ok(Settled::Left),
        _ => {
            let text = text.trim().to_owned();
            found.submit(context, &Command::Revise { text })?;
        }
    }
    Ok(Settled::Replied)
}

/// Checks that the file of what waits is what was drafted; one that a crash left unwritten is
/// written again. What somebody edited is not shown under the draft's hash: a person would approve
/// what nobody recorded.
pub(crate) fn check_unedited(found: &Found<'_>, pending: &Pending) -> Result<(), Error> {
    if subject(found, pending).is_ok_and(|sha256| sha256 == pending.sha256) {
        return Ok(());
    }
    let repaired = Workflows::of(&found.project).repair_workflow(&found.key);
    repaired.map_err(|error| Error::workflow(&error))?;
    let sha256 = subject(found, pending)?;
    if sha256 == pending.sha256 {
        return Ok(());
    }
    let text = format!(
        "subject_changed: failed to approve {}: somebody edited it; it was drafted as {}, and is \
         {sha256}",
        pending.decision.words(),
        pending.sha256
    );
    let drafted = documents(&found.workflow);
    let mut names = pending.decision.artifacts().iter();
    let edited = names.find(|name| {
        let draft = drafted.iter().find(|document| document.name == **name);
        let bytes = artifact_bytes(found, name);
        !bytes.is_ok_and(|bytes| draft.is_some_and(|draft| draft.text.as_bytes() == bytes))
    });
    let file = found
        .dir()
        .join(edited.copied().unwrap_or(pending.decision.artifact()));
    Err(Error::new(Exit::Denied, text).with_hint(edited_hint(&found.key, &file)))
}

/// Returns the hash of what waits, as its files stand.
fn subject(found: &Found<'_>, pending: &Pending) -> Result<String, Error> {
    let mut files = BTreeMap::new();
    for name in pending.decision.artifacts() {
        files.insert(*name, artifact_bytes(found, name)?);
    }
    let file = |name: &str| files.get(name).cloned();
    Ok(pending.decision.subject(&file, sha256_hex))
}

/// Returns what a person can do about an artifact that somebody edited; nothing of it is lost.
pub(crate) fn edited_hint(key: &WorkflowKey, file: &Path) -> String {
    let (mode, index) = (key.mode, key.id.index());
    format!(
        "say the change instead: `kapi {mode} resume {index:03} --revise '<what should change>'`; or \
         put the edited one aside with `mv '{file}' '{file}.edited'`, and `kapi {mode} approve \
         {index:03}` shows what was drafted.",
        file = file.display()
    )
}

/// Returns the artifacts that wait, as they stand in their files, one after another.
pub(crate) fn artifacts(found: &Found<'_>, pending: &Pending) -> Result<String, Error> {
    let names = pending.decision.artifacts();
    let mut texts = Vec::new();
    for name in names {
        let bytes = artifact_bytes(found, name)?;
        let text = String::from_utf8_lossy(&bytes);
        // Of several, each says which it is.
        texts.push(if names.len() > 1 {
            format!("----- {name} -----\n{text}")
        } else {
            text.into_owned()
        });
    }
    Ok(texts.join("\n"))
}

fn artifact_bytes(found: &Found<'_>, name: &str) -> Result<Vec<u8>, Error> {
    let path = found.dir().join(name);
    let failed = |error: std::io::Error| {
        Error::new(
            Exit::Failed,
            format!("failed to read {}: {error}", path.display()),
        )
        .with_hint("`kapi doctor --modes` tells what is missing, and writes nothing.")
    };
    let len = fs::metadata(&path).map_err(failed)?.len();
    if len > ARTIFACT_BYTES_MAX {
        let text = format!("{} is too large to be shown", path.display());
        return Err(Error::new(Exit::Failed, text));
    }
    fs::read(&path).map_err(failed)
}

/// Checks that what a person names is the hash of what waits, or its beginning.
pub(crate) fn check_hash(named: &str, pending: &Pending) -> Result<(), Error> {
    let artifact = pending.decision.words();
    if !is_hash(named) {
        return Err(Error::usage(format!(
            "{named:?} is no hash: it takes {HASH_DIGITS_MIN} to 64 hexadecimal digits"
        ))
        .with_hint(format!("{artifact} has the hash {}.", pending.sha256)));
    }
    if pending.sha256.starts_with(&named.to_ascii_lowercase()) {
        return Ok(());
    }
    let text = format!(
        "subject_changed: {artifact} has the hash {}, and {named} was approved",
        pending.sha256
    );
    Err(Error::new(Exit::Denied, text).with_hint("look at it again, and approve what it is now."))
}

/// Returns the line that approves what waits.
pub(crate) fn approve_line(found: &Found<'_>, pending: &Pending) -> String {
    let digits = pending
        .sha256
        .get(..HASH_DIGITS_MIN)
        .unwrap_or(&pending.sha256);
    let risks = if pending.risks.is_empty() {
        ""
    } else {
        " --accept-risks"
    };
    let (mode, index) = (found.key.mode, found.key.id.index());
    format!("kapi {mode} approve {index:03} --hash {digits}{risks}")
}
