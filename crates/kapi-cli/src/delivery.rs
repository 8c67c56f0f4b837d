//! Where a proved branch is to go, and whether it could go there.
//!
//! Checked before the work, so that it is done or refused at once. What is done after it stands in
//! `delivering`.

pub(crate) mod forge;

use std::path::Path;

use kapi_core::isolation::SandboxLevel;
use kapi_goal::perform::deliver;
use kapi_goal::rules::delivery::Delivery;

use crate::config::Config;
use crate::config::deliver::DeliverArgs;
use crate::context::Context;
use crate::delivery::forge::Forge;
use crate::error::Error;

/// A branch that stands for one whose name is not known yet.
const ANY_BRANCH: &str = "kapi/result";
/// The remote where nobody says another.
const REMOTE_DEFAULT: &str = "origin";

/// Returns where options and the person's file want a proved branch to go.
pub(crate) fn asked(args: &DeliverArgs, config: &Config) -> Option<Delivery> {
    let table = &config.deliver;
    let pull_request = args.pr || (table.pull_request && !args.no_push);
    let is_pushed = args.push || pull_request || (table.push && !args.no_push);
    is_pushed.then(|| named(args, config, pull_request))
}

/// Returns a delivery to the remote that options or the person's file name.
pub(crate) fn named(args: &DeliverArgs, config: &Config, pull_request: bool) -> Delivery {
    let remote = args.remote.as_ref().or(config.deliver.remote.as_ref());
    Delivery {
        remote: remote.map_or(REMOTE_DEFAULT, String::as_str).to_owned(),
        pull_request,
        target: args.pr_base.clone(),
    }
}

/// Refuses what options ask for and could not happen, where the branch is not known yet; tells what
/// to know.
pub(crate) fn check_flags(
    context: &Context,
    config: &Config,
    root: &Path,
    args: &DeliverArgs,
) -> Result<(), Error> {
    if !(args.push || args.pr) {
        return Ok(());
    }
    let delivery = named(args, config, args.pr);
    let note = check(context, config, root, &delivery, ANY_BRANCH)?;
    if let Some(note) = note {
        context.ui.say(&format!("note: {note}"));
    }
    Ok(())
}

/// Refuses a delivery that could not happen: no such remote, nobody that it knows, no forge.
pub(crate) fn check(
    context: &Context,
    config: &Config,
    root: &Path,
    delivery: &Delivery,
    branch: &str,
) -> Result<Option<String>, Error> {
    let grants = context.grants(config);
    let address = deliver::check(&grants, root, delivery, branch);
    let address = address.map_err(|failure| Error::world(&failure))?;
    if !delivery.pull_request {
        return Ok(None);
    }
    let forge = Forge::find(context, root, &address)?;
    Ok(forge.note())
}

/// Tells whether a person's credentials would be used where an agent runs unconfined beside them.
pub(crate) const fn note_without_isolation(level: SandboxLevel) -> Option<&'static str> {
    match level {
        SandboxLevel::None => Some(
            "Without isolation, the agent could use the credentials with which the branch is pushed.",
        ),
        SandboxLevel::Native | SandboxLevel::Podman => None,
    }
}
