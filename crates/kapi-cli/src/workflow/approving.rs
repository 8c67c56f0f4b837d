//! Approving what a workflow waits with: what is shown, and the hash that is approved with it.
//!
//! A person approves what stands in the files, and only while that is what was drafted.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use kapi_core::workflow_key::WorkflowKey;
use kapi_store::hash::sha256_hex;
use kapi_workflow::record::requests::Approving;
use kapi_workflow::record::workflows::Workflows;
use kapi_workflow::rules::documents::documents;
use kapi_workflow::rules::pending::WaitingDecision;

use crate::context::Context;
use crate::contract::approval::{HASH_DIGITS_MIN, is_hash};
use crate::error::Error;
use crate::exit_code::Exit;
use crate::ui::Format;
use crate::workflow::located::LocatedWorkflow;
use crate::workflow::redrafted;

/// Bytes of an artifact that are shown.
const ARTIFACT_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// Shows what waits, whole: the artifact as it stands in its file, its hash, and its risks.
pub(crate) fn show(
    context: &Context,
    found: &LocatedWorkflow<'_>,
    pending: &WaitingDecision,
) -> Result<(), Error> {
    if context.ui.format == Format::Json {
        return Ok(());
    }
    let ui = context.ui;
    ui.line(&artifacts(found, pending)?);
    if let Some(changes) = redrafted::changes(found, pending)? {
        ui.line(&changes);
    }
    ui.line(&format!(
        "{} of workflow {}",
        pending.decision.words(),
        found.key.id
    ));
    ui.line(&format!("  hash     {}", pending.sha256));
    for risk in &pending.risks {
        ui.line(&format!("  risk     {risk}"));
    }
    ui.line(&format!("  on yes   {}", pending.decision.spec().on_yes));
    Ok(())
}

/// Records an approval of what was shown.
pub(crate) fn approve(
    context: &Context,
    found: &mut LocatedWorkflow<'_>,
    approving: &Approving,
) -> Result<(), Error> {
    let submitted = Workflows::of(&found.project)
        .approve_workflow(&found.key, &context.actor, approving)
        .map_err(|error| Error::workflow(&error))?;
    found.workflow = submitted.workflow;
    Ok(())
}

/// Checks that the file of what waits is what was drafted; one that a crash left unwritten is
/// written again. What somebody edited is not shown under the draft's hash: a person would approve
/// what nobody recorded.
pub(crate) fn check_unedited(
    found: &LocatedWorkflow<'_>,
    pending: &WaitingDecision,
) -> Result<(), Error> {
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
        "subject_changed: failed to approve {}: it was edited; its hash was {} and is now {sha256}",
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
fn subject(found: &LocatedWorkflow<'_>, pending: &WaitingDecision) -> Result<String, Error> {
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
        "describe the change instead: `kapi {mode} resume {index:03} --revise '<what should \
         change>'`; or move the edited file away with `mv '{file}' '{file}.edited'` and run \
         `kapi {mode} approve {index:03}` for the original draft.",
        file = file.display()
    )
}

/// Returns the artifacts that wait, as they stand in their files, one after another.
pub(crate) fn artifacts(
    found: &LocatedWorkflow<'_>,
    pending: &WaitingDecision,
) -> Result<String, Error> {
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

fn artifact_bytes(found: &LocatedWorkflow<'_>, name: &str) -> Result<Vec<u8>, Error> {
    let path = found.dir().join(name);
    let failed = |error: std::io::Error| {
        Error::new(
            Exit::Failed,
            format!("failed to read {}: {error}", path.display()),
        )
        .with_hint("`kapi doctor --modes` shows what is missing and writes nothing.")
    };
    let len = fs::metadata(&path).map_err(failed)?.len();
    if len > ARTIFACT_BYTES_MAX {
        let text = format!("{} is too large to show", path.display());
        return Err(Error::new(Exit::Failed, text));
    }
    fs::read(&path).map_err(failed)
}

/// Checks that what a person names is the hash of what waits, or its beginning.
pub(crate) fn check_hash(named: &str, pending: &WaitingDecision) -> Result<(), Error> {
    let artifact = pending.decision.words();
    if !is_hash(named) {
        return Err(Error::usage(format!(
            "{named:?} is not a hash of {HASH_DIGITS_MIN} to 64 hexadecimal digits"
        ))
        .with_hint(format!("{artifact} has the hash {}.", pending.sha256)));
    }
    if pending.sha256.starts_with(&named.to_ascii_lowercase()) {
        return Ok(());
    }
    let text = format!(
        "subject_changed: the hash of {artifact} is {}, not {named}",
        pending.sha256
    );
    Err(Error::new(Exit::Denied, text).with_hint("review it again, then approve its current hash."))
}

/// Returns the line that approves what waits.
pub(crate) fn approve_line(found: &LocatedWorkflow<'_>, pending: &WaitingDecision) -> String {
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
