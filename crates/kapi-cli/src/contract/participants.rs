//! The parties of a contract: who works, who judges, and whether both could begin.
//!
//! Agents are only looked for here. A model that judges is asked whether it is there.

use kapi_agent::agent::AgentKind;
use kapi_agent::manifest::{Manifest, manifest};
use kapi_agent::settings::AgentSettings;
use kapi_core::isolation::SandboxLevel;
use kapi_goal::rules::contract::Contract;
use kapi_run::asking::AgentCheck;
use kapi_run::gate::support;
use kapi_run::host_grants::HostGrants;
use kapi_run::{agent_start, asking};
use kapi_spend::rules::account::ModelProvider;
use kapi_spend::rules::day::Day;
use kapi_sys::cancel::Cancel;
use kapi_sys::clock::Clock as _;

use crate::command_line;
use crate::config::Config;
use crate::config::grant::LEVEL_DEFAULT;
use crate::context::Context;
use crate::contract::agent_name::{absolute, kind};
use crate::contract::judge::JudgeName;
use crate::contract::models::agents_of;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::ui::Ui;

/// Returns the agent that works, as it stands in the contract: the one that is named, or the only one
/// that can start here.
pub(crate) fn agent(
    context: &Context,
    config: &Config,
    named: Option<&String>,
    level: SandboxLevel,
    notes: &mut Vec<String>,
) -> Result<String, Error> {
    if let Some(reference) = named.or(config.goal.agent.as_ref()) {
        return absolute(context, reference);
    }
    let grants = context.grants(config);
    match asking::able(&grants, level).as_slice() {
        [only] => {
            notes.push(format!(
                "No agent was named, so {only} works: it is the only one that is installed and \
                 logged in. Choose another with `--agent`."
            ));
            Ok((*only).to_owned())
        }
        [] => Err(no_agent(&grants, config, level)),
        [first, ..] => Err(several_agents(
            context.ui,
            &asking::able(&grants, level),
            first,
        )),
    }
}

/// No agent was named, and none can start: why not, of each.
fn no_agent(grants: &HostGrants, config: &Config, level: SandboxLevel) -> Error {
    let reasons: Vec<String> = manifest()
        .iter()
        .filter_map(|agent| {
            let reason = if is_installed(grants, config, agent) {
                let failure = asking::check_agent(grants, agent.name, level).err()?;
                format!("failed to {}", failure.message)
            } else {
                format!("not installed: `{}`", agent.install)
            };
            Some(format!("\n  {:<7} {reason}", agent.name))
        })
        .collect();
    Error::usage(format!(
        "no agent was named, and none can start here:{}",
        reasons.concat()
    ))
    .with_hint(
        "run `kapi init`, which can lend your login to an agent, or set the key of one \
         (`kapi doctor --agents` shows what each needs); or name a program: \
         `--agent 'command:<shell>'`.",
    )
}

/// Tells whether the program of a built-in agent is here.
pub(crate) fn is_installed(grants: &HostGrants, config: &Config, agent: &Manifest) -> bool {
    let settings = config.agents.get(agent.name);
    let command = settings.and_then(|settings| settings.command.as_deref());
    let program = grants.find_program(command.unwrap_or(agent.binary));
    program.is_some()
}

/// No agent was named, and which one works is the person's choice.
fn several_agents(ui: Ui, able: &[&str], first: &str) -> Error {
    Error::usage(format!(
        "no agent was named, and several are ready: {}",
        able.join(", ")
    ))
    .with_hint(format!(
        "name one: `{}`. `agent = \"{first}\"` under `[goal]` in your configuration makes it the \
         default.",
        command_line::unattended(ui, &["--agent", first])
    ))
}

/// Refuses parties that could not even begin, and limits that nobody could measure for them.
pub(crate) fn check(context: &Context, config: &Config, contract: &Contract) -> Result<(), Error> {
    // The model of a session is at work already; Kapi starts it only where it judges, too.
    if !contract.is_session() {
        check_agent(context, config, contract, &contract.agent)?;
    }
    let judge = contract.judge_agent();
    let is_checked = |judge: &&str| contract.is_session() || *judge != contract.agent;
    let Some(judge) = judge.filter(is_checked) else {
        return Ok(());
    };
    match JudgeName::parse(judge)? {
        JudgeName::Model { .. } => check_model(context, config, judge),
        JudgeName::Agent(_) => check_agent(context, config, contract, judge),
        // The contract names neither by an agent's name.
        JudgeName::None | JudgeName::Same => Ok(()),
    }
}

/// Asks the providers of the agents whether they take their keys: one that refuses would stop the
/// work at its first turn. Returns what to know of those that do not answer.
pub(crate) fn check_providers(
    context: &Context,
    config: &Config,
    contract: &Contract,
) -> Result<Vec<String>, Error> {
    let grants = context.grants(config);
    let agents =
        agents_of(&contract.agent, &contract.judge).skip(usize::from(contract.is_session()));
    let known = agents.filter_map(|name| manifest().iter().find(|agent| agent.name == name));
    let mut notes = Vec::new();
    for agent in known {
        let note = agent_start::check_provider(&grants, agent, &Cancel::new());
        notes.extend(note.map_err(|failure| Error {
            message: format!("{} cannot work: failed to {}", agent.name, failure.message),
            ..Error::world(&failure)
        })?);
    }
    Ok(notes)
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
fn vendor(kind: &AgentKind) -> Option<&'static str> {
    match kind.vendor() {
        AgentKind::Codex => Some("openai"),
        AgentKind::Gemini => Some("gemini"),
        AgentKind::Claude
        | AgentKind::Pi
        | AgentKind::Acp(_)
        | AgentKind::Command(_)
        | AgentKind::Script(_) => None,
    }
}

/// Limits that only hold for an agent whose use is counted.
pub(crate) struct CountedLimits {
    /// Whether money is limited.
    pub(crate) money: bool,
    /// Whether tokens are.
    pub(crate) tokens: bool,
    /// Flags of limits that can be kept instead of one of money.
    pub(crate) instead_of_money: &'static str,
    /// The same for one of tokens.
    pub(crate) instead_of_tokens: &'static str,
}

fn no_price_hint(config: &Config, kind: &AgentKind, instead: &str) -> Option<String> {
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
                 {instead}."
            ),
            Some(model) => {
                format!("set the price of {model} in `[prices]`, or use {instead}.")
            }
        },
    )
}

/// Refuses limits that nobody could measure for an agent.
pub(crate) fn check_limits(
    context: &Context,
    config: &Config,
    kind: &AgentKind,
    checked: AgentCheck,
    limits: &CountedLimits,
) -> Result<(), Error> {
    let is_counted = checked.reports_usd || has_price(context, config, kind);
    if limits.money && !is_counted {
        let instead = limits.instead_of_money;
        return Err(
            Error::usage(format!("{} does not report its cost", kind.name())).with_hint(
                no_price_hint(config, kind, instead)
                    .unwrap_or_else(|| format!("use {instead} instead of `--usd`.")),
            ),
        );
    }
    if limits.tokens && matches!(kind, AgentKind::Command(_)) {
        let instead = limits.instead_of_tokens;
        return Err(Error::usage("a command agent does not report its tokens")
            .with_hint(format!("use {instead} instead of `--tokens`.")));
    }
    Ok(())
}

/// Does the same for an agent of which no gateway counts a call; of any other, each call of a model
/// without a price is refused when it is made.
pub(crate) fn check_uncounted(
    context: &Context,
    config: &Config,
    agent: &str,
    limits: &CountedLimits,
) -> Result<(), Error> {
    let kind = kind(agent)?;
    let has_login = |settings: &AgentSettings| settings.login;
    let passes_by =
        vendor(&kind).is_none() || config.agents.get(kind.name()).is_some_and(has_login);
    let level = config.level.unwrap_or(LEVEL_DEFAULT);
    // One that cannot start says so when it is started.
    let Ok(checked) = asking::check_agent(&context.grants(config), agent, level) else {
        return Ok(());
    };
    if !passes_by {
        return Ok(());
    }
    check_limits(context, config, &kind, checked, limits)
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
    let limits = CountedLimits {
        money: contract.budget.usd_micros.is_some(),
        tokens: contract.budget.tokens.is_some(),
        instead_of_money: "`--tokens` or `--turns`",
        instead_of_tokens: "`--turns` or `--wall`",
    };
    check_limits(context, config, &kind, checked, &limits)
}
