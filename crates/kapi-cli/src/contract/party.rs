//! The parties of a contract: who works, who judges, and whether both could begin.
//!
//! Agents are only looked for here. A model that judges is asked whether it is there.

use kapi_agent::agent::Kind;
use kapi_core::goal::contract::Contract;
use kapi_world::{asking, gate};

use crate::commands::run::Args;
use crate::config::{Config, GoalTable};
use crate::context::Context;
use crate::contract::judge::JudgeName;
use crate::error::Error;
use crate::exit_code::Exit;

/// Reads the name of an agent.
pub(crate) fn kind(agent: &str) -> Result<Kind, Error> {
    Kind::parse(agent).map_err(|error| {
        let mut wrapped = Error::usage(error.to_string());
        wrapped.hint = error.hint();
        wrapped
    })
}

/// Returns the agent that works, as it stands in the contract.
pub(super) fn agent(context: &Context, args: &Args, table: &GoalTable) -> Result<String, Error> {
    let reference = args
        .agent
        .as_ref()
        .or(table.agent.as_ref())
        .ok_or_else(|| {
            Error::usage("no agent was named")
                .with_hint("add `--agent claude` (or codex, gemini, pi, 'command:<shell>').")
        })?;
    absolute(context, reference)
}

/// Makes a script's path absolute, so that the goal can be resumed from anywhere.
pub(crate) fn absolute(context: &Context, reference: &str) -> Result<String, Error> {
    Ok(match kind(reference)? {
        Kind::Script(path) if path.is_relative() => {
            Kind::Script(context.cwd.join(path)).to_string()
        }
        other => other.to_string(),
    })
}

/// Refuses parties that could not even begin, and limits that nobody could measure for them.
pub(crate) fn check(context: &Context, config: &Config, contract: &Contract) -> Result<(), Error> {
    check_agent(context, config, contract, &contract.agent)?;
    let judge = contract.judge_agent();
    let Some(judge) = judge.filter(|judge| *judge != contract.agent) else {
        return Ok(());
    };
    match JudgeName::parse(judge)? {
        JudgeName::Model { .. } => check_model(context, config, judge),
        JudgeName::Agent(_) => check_agent(context, config, contract, judge),
        // The contract names neither by an agent's name.
        JudgeName::None | JudgeName::Same => Ok(()),
    }
}

/// Asks a provider whether the model that judges is there, before anything depends on it.
fn check_model(context: &Context, config: &Config, judge: &str) -> Result<(), Error> {
    match kapi_world::judge::probe(&context.book(config), judge) {
        Ok(_) => Ok(()),
        Err(failure) => {
            let mut error = Error::new(
                Exit::Failed,
                format!(
                    "judge_unavailable: {judge} cannot judge: failed to {}",
                    failure.message
                ),
            );
            error.hint = failure
                .hint
                .or_else(|| Some("name another judge with `--judge`.".to_owned()));
            Err(error)
        }
    }
}

fn check_agent(
    context: &Context,
    config: &Config,
    contract: &Contract,
    agent: &str,
) -> Result<(), Error> {
    let kind = kind(agent)?;
    gate::check(&kind, &contract.working.ask_before).map_err(|failure| Error::world(&failure))?;
    let checked = asking::check_agent(&context.book(config), agent, contract.sandbox)
        .map_err(|failure| Error::world(&failure))?;
    if contract.budget.usd_micros.is_some() && !checked.reports_usd {
        return Err(
            Error::usage(format!("{} does not report what it costs", kind.name()))
                .with_hint("limit it with `--tokens` or `--turns` instead of `--usd`."),
        );
    }
    if contract.budget.tokens.is_some() && matches!(kind, Kind::Command(_)) {
        return Err(Error::usage("a command agent does not report its tokens")
            .with_hint("limit it with `--turns` or `--wall` instead of `--tokens`."));
    }
    Ok(())
}
