//! Which agents work here: each is started in the sandbox, and its provider greeted.
//!
//! A login that runs do not get yet counts, because it can be lent.

use kapi_agent::manifest::{Manifest, manifest};
use kapi_core::failure::Failure;
use kapi_core::isolation::SandboxLevel;
use kapi_run::agent_start;
use kapi_run::host_grants::HostGrants;
use kapi_sys::cancel::Cancel;

use crate::commands::doctor::credentials::credentials;
use crate::commands::doctor::starts;
use crate::config::Config;
use crate::context::Context;
use crate::contract::judge::JudgeName;
use crate::contract::participants::is_installed;
use crate::error::Error;
use crate::exit_code::Exit;

/// How an agent that works proves itself to its provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AgentAccess {
    /// As it is configured.
    Ready,
    /// With the person's own login, once it is lent.
    Login,
}

/// An agent that works.
#[derive(Debug)]
pub(super) struct FoundAgent {
    pub(super) name: &'static str,
    pub(super) access: AgentAccess,
}

/// The agents that work here, at least one.
#[derive(Debug)]
pub(super) struct FoundAgents {
    pub(super) usable: Vec<FoundAgent>,
    first: &'static str,
}

impl FoundAgents {
    /// Returns the only one, if there is only one.
    pub(super) fn only(&self) -> Option<&'static str> {
        match self.usable.as_slice() {
            [only] => Some(only.name),
            _ => None,
        }
    }

    /// Returns the one that is proposed: one that is ready before one that needs a login.
    pub(super) const fn first(&self) -> &'static str {
        self.first
    }

    /// Returns how an agent proves itself; `None` of one that does not work.
    pub(super) fn access(&self, name: &str) -> Option<AgentAccess> {
        let found = self.usable.iter().find(|agent| agent.name == name);
        found.map(|agent| agent.access)
    }

    /// Returns who is proposed to judge an agent's work: another one that is ready, or itself.
    pub(super) fn judge_of(&self, executor: &str) -> String {
        let ready = |agent: &&FoundAgent| agent.access == AgentAccess::Ready;
        let mut others = self.usable.iter().filter(ready);
        let other = others.find(|agent| agent.name != executor);
        other.map_or("same", |agent| agent.name).to_owned()
    }
}

/// Tries every built-in agent, and tells of each.
///
/// # Errors
/// When none works, with why of each.
pub(super) fn find(
    context: &Context,
    config: &Config,
    level: SandboxLevel,
) -> Result<FoundAgents, Error> {
    let mut usable = Vec::new();
    let mut reasons = Vec::new();
    context.ui.say("Agents, each started in the sandbox:");
    for agent in manifest() {
        let (name, say) = (agent.name, |words: &str| {
            context.ui.say(&format!("  {:<7} {words}", agent.name));
        });
        if !is_installed(&context.grants(config), config, agent) {
            say("not installed");
            reasons.push(format!("\n  {name:<7} not installed: `{}`", agent.install));
            continue;
        }
        context.ui.live(&format!("starting {name}"));
        let tried = try_agent(context, config, agent, level);
        context.ui.clear_live();
        match tried {
            Ok((access, words)) => {
                say(&words);
                usable.push(FoundAgent { name, access });
            }
            Err(failure) => {
                say(&format!("failed to {}", failure.message));
                let hint = failure
                    .hint
                    .map_or_else(String::new, |hint| format!(": {hint}"));
                reasons.push(format!("\n  {name:<7} failed to {}{hint}", failure.message));
            }
        }
    }
    let ready = |agent: &&FoundAgent| agent.access == AgentAccess::Ready;
    match usable.iter().find(ready).or_else(|| usable.first()) {
        Some(first) => Ok(FoundAgents {
            first: first.name,
            usable,
        }),
        None => Err(Error::new(
            Exit::Failed,
            format!("no agent works here:{}", reasons.concat()),
        )
        .with_hint("make one of them ready, then run `kapi init` again.")),
    }
}

fn try_agent(
    context: &Context,
    config: &Config,
    agent: &Manifest,
    level: SandboxLevel,
) -> Result<(AgentAccess, String), Failure> {
    let grants = context.grants(config);
    let start = starts::started(context, &grants, agent, level)?;
    let login = credentials(context, config, agent);
    if login.is_login_unshared {
        let words = format!("{}; your login can be lent to its runs", start.version);
        return Ok((AgentAccess::Login, words));
    }
    greeted(&grants, agent)?;
    Ok((
        AgentAccess::Ready,
        format!("{}; {}", start.version, login.detail),
    ))
}

fn greeted(grants: &HostGrants, agent: &Manifest) -> Result<(), Failure> {
    agent_start::greet(grants, agent, &Cancel::new()).map(drop)
}

/// Checks that an agent works with the configuration as it is going to be.
pub(super) fn check(
    context: &Context,
    config: &Config,
    name: &str,
    level: SandboxLevel,
) -> Result<(), Error> {
    let Some(agent) = manifest().iter().find(|agent| agent.name == name) else {
        // A program of the person's own has nothing to be tried before it has a task.
        return Ok(());
    };
    let grants = context.grants(config);
    starts::started(context, &grants, agent, level)
        .and_then(|_| greeted(&grants, agent))
        .map_err(|failure| Error::world(&failure))
}

/// Checks that somebody who judges could be asked.
pub(super) fn check_judge(
    context: &Context,
    config: &Config,
    name: &str,
    level: SandboxLevel,
) -> Result<(), Error> {
    match JudgeName::parse(name)? {
        JudgeName::None | JudgeName::Same => Ok(()),
        JudgeName::Agent(kind) => check(context, config, kind.name(), level),
        JudgeName::Model { .. } => kapi_check::perform::judge::check(&context.grants(config), name)
            .map_err(|failure| Error::world(&failure)),
    }
}
