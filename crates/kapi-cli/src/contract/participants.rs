//! The parties of a contract: who works, who judges, and whether both could begin.
//!
//! Agents are only looked for here. A model that judges is asked whether it is there.

use kapi_agent::agent::AgentKind;
use kapi_goal::rules::contract::Contract;
use kapi_run::asking;
use kapi_run::gate::support;
use kapi_spend::rules::account::ModelProvider;
use kapi_spend::rules::day::Day;
use kapi_sys::clock::Clock as _;

use crate::config::{Config, GoalTable};
use crate::context::Context;
use crate::contract::agent_name::{absolute, kind};
use crate::contract::flags::Args;
use crate::contract::judge::JudgeName;
use crate::error::Error;
use crate::exit_code::Exit;

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
    match kapi_check::perform::judge::probe(&context.grants(config), judge) {
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

/// Tells whether the gateway knows what an agent costs that does not say so itself: its model is
/// named in the configuration, and has a price.
fn has_price(context: &Context, config: &Config, kind: &AgentKind) -> bool {
    let Some(vendor) = vendor(kind) else {
        return false;
    };
    let settings = config.agents.get(kind.name());
    // A subscription is not asked through the gateway.
    let Some(settings) = settings.filter(|settings| !settings.login) else {
        return false;
    };
    let served = match &settings.base_url {
        Some(url) => ModelProvider::At(url),
        None => ModelProvider::ByVendor(vendor),
    };
    let today = Day::of_ms(context.clock.now_ms());
    let prices = &config.spending.prices;
    settings
        .model
        .as_ref()
        .is_some_and(|model| prices.find(&served.provider(), model, today).is_some())
}

/// Returns whose model an agent asks that is always counted at the gateway.
const fn vendor(kind: &AgentKind) -> Option<&'static str> {
    match kind {
        AgentKind::Codex => Some("openai"),
        AgentKind::Gemini => Some("gemini"),
        AgentKind::Claude | AgentKind::Pi | AgentKind::Command(_) | AgentKind::Script(_) => None,
    }
}

fn no_price_hint(config: &Config, kind: &AgentKind) -> Option<String> {
    vendor(kind)?;
    let name = kind.name();
    let settings = config.agents.get(name);
    if settings.is_some_and(|settings| settings.login) {
        return None;
    }
    Some(
        match settings.and_then(|settings| settings.model.as_ref()) {
            None => format!(
                "set its model with `[agents.{name}] model`, so that the price is known, or use \
                 `--tokens` or `--turns`."
            ),
            Some(model) => {
                format!("set the price of {model} in `[prices]`, or use `--tokens` or `--turns`.")
            }
        },
    )
}

fn check_agent(
    context: &Context,
    config: &Config,
    contract: &Contract,
    agent: &str,
) -> Result<(), Error> {
    let kind = kind(agent)?;
    support::check(&kind, &contract.working.ask_before)
        .map_err(|failure| Error::world(&failure))?;
    let checked = asking::check_agent(&context.grants(config), agent, contract.sandbox)
        .map_err(|failure| Error::world(&failure))?;
    let is_counted = checked.reports_usd || has_price(context, config, &kind);
    if contract.budget.usd_micros.is_some() && !is_counted {
        return Err(
            Error::usage(format!("{} does not report its cost", kind.name())).with_hint(
                no_price_hint(config, &kind).unwrap_or_else(|| {
                    "use `--tokens` or `--turns` instead of `--usd`.".to_owned()
                }),
            ),
        );
    }
    if contract.budget.tokens.is_some() && matches!(kind, AgentKind::Command(_)) {
        return Err(Error::usage("a command agent does not report its tokens")
            .with_hint("use `--turns` or `--wall` instead of `--tokens`."));
    }
    Ok(())
}
