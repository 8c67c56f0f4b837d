//! The isolation of a contract: level, network, what is visible, and what a person must know of it.
//!
//! Nothing is made here.

use std::path::Path;

use kapi_core::hidden_checks::HiddenCheckSet;
use kapi_core::isolation::{NetworkMode, SandboxLevel};
use kapi_goal::perform::survey::RepositorySurvey;
use kapi_goal::rules::contract::Contract;

use crate::config::Config;
use crate::config::grant::LEVEL_DEFAULT;
use crate::context::Context;
use crate::contract::flags::{Args, Sandbox};
use crate::error::Error;

/// Returns how far a run is kept from the host, and what it can reach.
pub(crate) fn level_and_network(
    args: &Args,
    config: &Config,
) -> Result<(SandboxLevel, NetworkMode), Error> {
    let level = match (args.sandbox, config.level) {
        (Some(Sandbox::Native), _) => SandboxLevel::Native,
        (Some(Sandbox::Podman), _) => SandboxLevel::Podman,
        (Some(Sandbox::None), _) => SandboxLevel::None,
        (None, configured) => configured.unwrap_or(LEVEL_DEFAULT),
    };
    let network = config.network(args.network.map(NetworkMode::from), level)?;
    Ok((level, network))
}

/// Returns a note on the ignored directories that the agent will see and verify commands will not;
/// refuses hidden checks among all that the agent sees.
pub(super) fn ignored_note(
    context: &Context,
    config: &Config,
    level: SandboxLevel,
    survey: &RepositorySurvey,
    hidden: Option<&HiddenCheckSet>,
) -> Result<Option<String>, Error> {
    if level != SandboxLevel::Native {
        return Ok(None);
    }
    let shown = survey
        .ignored_shown(&context.grants(config))
        .map_err(|failure| Error::world(&failure))?;
    for relative in &shown {
        let visible = survey.root().join(relative);
        let overlaps = |source: &Path| source.starts_with(&visible) || visible.starts_with(source);
        if hidden.is_some_and(|hidden| overlaps(Path::new(&hidden.source))) {
            return Err(Error::usage(format!(
                "the hidden checks are in {}, which the agent can see",
                relative.display()
            ))
            .with_hint("keep hidden checks outside the project."));
        }
    }
    let only_shown = survey
        .not_lent(&context.grants(config), &shown)
        .map_err(|failure| Error::world(&failure))?;
    let names: Vec<String> = only_shown
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    let names = (!names.is_empty()).then(|| names.join(", "));
    Ok(names.map(|names| {
        format!(
            "The agent can see these ignored directories (copy-on-write), verify commands cannot: \
             {names}."
        )
    }))
}

/// Returns what a person must know before approving a contract without a sandbox.
pub(crate) fn isolation_note(contract: &Contract) -> Vec<String> {
    match contract.sandbox {
        SandboxLevel::Native | SandboxLevel::Podman => Vec::new(),
        SandboxLevel::None => {
            vec!["NO ISOLATION: the agent can read and change everything you can.".to_owned()]
        }
    }
}
