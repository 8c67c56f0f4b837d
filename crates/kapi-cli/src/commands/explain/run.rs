//! `kapi run --explain`: what the contract of a run would hold, and what it may touch.
//!
//! The task and the repository play no part: only what flags and files say.

use std::path::Path;

use kapi_agent::agent::AgentKind;
use kapi_core::isolation::{NetworkMode, SandboxLevel};
use kapi_goal::rules::contract::TURNS_DEFAULT;

use super::ExplainRows;
use super::route::{self, ExplainSubject};
use crate::amount;
use crate::config::grant::{LEVEL_DEFAULT, NETWORK_DEFAULT};
use crate::config::source::ValueSource;
use crate::config::{AT_MOST, Config};
use crate::context::Context;
use crate::contract::agent_name::kind;
use crate::contract::flags::Args;
use crate::contract::judge::{is_model, usable};
use crate::contract::models;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::profile::flags;

/// Explains a run.
pub(crate) fn explain(context: &Context, args: &Args) -> Result<Exit, Error> {
    let mut locations = context.cwd.ancestors();
    let root = locations.find(|dir| dir.join(".git").exists());
    let root = root.unwrap_or(&context.cwd);
    let config = config(context, args, root)?;
    let mut notes = Vec::new();
    let mut rows = ExplainRows::default();
    let level = match (args.sandbox, config.level) {
        (Some(sandbox), _) => flags::level(sandbox),
        (None, configured) => configured.unwrap_or(LEVEL_DEFAULT),
    };
    let network = config.network(args.network.map(NetworkMode::from), level)?;
    let origin = |key: &str| config.origins.first(key);
    let agent = args.agent.as_ref().or(config.goal.agent.as_ref());
    let agent_source = args
        .agent
        .as_ref()
        .map_or_else(|| origin("goal.agent"), |_| ValueSource::Flag("--agent"));
    let kind = agent.map(|reference| kind(reference)).transpose()?;
    let name = agent.map_or("none: name one with `--agent`", String::as_str);
    rows.add("agent", name, &agent_source);
    let judge = default_judge(context, &config, kind.as_ref(), level);
    let preferred = context.preferred(root)?.judge;
    judged(&config, args, preferred, judge, &mut rows);
    asked(&config, args, &mut rows);
    let subject = kind
        .as_ref()
        .map(|kind| (kind, config.agents.get(kind.name())));
    let settings = subject
        .and_then(|(_, settings)| settings.cloned())
        .unwrap_or_default();
    let nobody = AgentKind::Command("true".to_owned());
    let subject = ExplainSubject {
        agent: kind.as_ref().unwrap_or(&nobody),
        agent_source: &agent_source,
        settings: &settings,
        level,
        network,
        grant: &config.grant,
        origins: &config.origins,
    };
    if kind.is_some() {
        route::model(context, &subject, &mut rows);
    } else {
        notes.push("Without an agent, a run does not start.".to_owned());
    }
    let level_source = match args.sandbox {
        Some(_) => ValueSource::Flag("--sandbox"),
        None => origin("sandbox.level"),
    };
    rows.add("sandbox", level.to_string(), &level_source);
    let source = network_source(&config, args, network, level);
    rows.add("network", network.to_string(), &source);
    if network == NetworkMode::Filtered {
        for rule in &config.grant.allow {
            rows.add_all("allow", rule.text(), &config.origins.of("network.allow"));
        }
    }
    route::reach(context, &subject, &mut rows);
    route::sight(context, &subject, &mut rows);
    for path in &config.grant.read_only {
        let sources = config.origins.of("sandbox.read_only");
        rows.add_all("read-only", path.display().to_string(), &sources);
    }
    route::variables(context, &mut rows);
    variables(&config, &subject, &mut rows);
    route::limits(&subject, &mut rows);
    route::cassettes(&subject, &mut rows);
    rows.show(context, "run", &notes);
    Ok(Exit::Success)
}

/// Returns the configuration with the model that was asked for.
fn config(context: &Context, args: &Args, root: &Path) -> Result<Config, Error> {
    let mut config = context.config(Some(root))?;
    let agent = args.agent.as_ref().or(config.goal.agent.as_ref()).cloned();
    if let Some(agent) = agent {
        models::choose(&mut config, &agent, args.model.as_deref())?;
    }
    Ok(config)
}

fn network_source(
    config: &Config,
    args: &Args,
    network: NetworkMode,
    level: SandboxLevel,
) -> ValueSource {
    if args.network.is_some() {
        return ValueSource::Flag("--network");
    }
    if level == SandboxLevel::None {
        return match args.sandbox {
            Some(_) => ValueSource::Flag("--sandbox"),
            None => config.origins.first("sandbox.level"),
        };
    }
    let wanted = config.network.unwrap_or(NETWORK_DEFAULT);
    let key = if wanted == network {
        "network.mode"
    } else {
        AT_MOST
    };
    match (key, config.network) {
        // The project named the same mode that holds anyway.
        ("network.mode", None) => ValueSource::Default,
        (key, _) => config.origins.first(key),
    }
}

/// One value of a contract: what the flag says, what the configuration says, and the default.
struct ContractValue<'a> {
    key: &'a str,
    flag: (&'static str, Option<String>),
    said: Option<String>,
    default: &'a str,
}

impl ContractValue<'_> {
    fn add(self, config: &Config, rows: &mut ExplainRows) {
        let key = format!("goal.{}", self.key.replace(' ', "_"));
        match (self.flag.1, self.said) {
            (Some(value), _) => rows.add(self.key, value, &ValueSource::Flag(self.flag.0)),
            (None, Some(value)) => rows.add_all(self.key, value, &config.origins.of(&key)),
            (None, None) => rows.add(self.key, self.default, &ValueSource::Default),
        }
    }
}

/// Returns who judges where nobody says it.
fn default_judge<'a>(
    context: &Context,
    config: &'a Config,
    agent: Option<&AgentKind>,
    level: SandboxLevel,
) -> &'a str {
    let of_project = config.judge().map(String::as_str);
    match agent {
        Some(executor) if is_model(executor) => usable(&context.grants(config), executor, level)
            .first()
            .copied()
            .or(of_project)
            .unwrap_or("none: the run is refused with judge_unspecified"),
        Some(_) | None => of_project.unwrap_or("none"),
    }
}

/// Adds who judges: the flag over the environment, over the preference, over files.
fn judged(
    config: &Config,
    args: &Args,
    preferred: Option<String>,
    default: &str,
    rows: &mut ExplainRows,
) {
    let is_heard = matches!(config.origins.first("goal.judge"), ValueSource::Variable(_));
    match preferred.filter(|_| args.judge.is_none() && !is_heard) {
        Some(judge) => rows.add("judge", judge, &ValueSource::Preference("kapi goal judge")),
        None => ContractValue {
            key: "judge",
            flag: ("--judge", args.judge.clone()),
            said: config.goal.judge.clone(),
            default,
        }
        .add(config, rows),
    }
}

/// Adds what the contract holds.
fn asked(config: &Config, args: &Args, rows: &mut ExplainRows) {
    let table = &config.goal;
    verified(config, args, rows);
    let network = args.verify_network.then(|| "that of the agent".to_owned());
    for (key, flag, said, default) in [
        (
            "verify network",
            ("--verify-network", network),
            None,
            "none",
        ),
        (
            "base",
            ("--base", args.base.clone()),
            table.base.clone(),
            "HEAD",
        ),
    ] {
        let asked = ContractValue {
            key,
            flag,
            said,
            default,
        };
        asked.add(config, rows);
    }
    protected(config, args, rows);
    limited(config, args, rows);
}

/// Adds what is verified: the person's commands, and those that the project adds to them.
fn verified(config: &Config, args: &Args, rows: &mut ExplainRows) {
    if args.unverified {
        rows.add("verify", "nothing", &ValueSource::Flag("--unverified"));
        return;
    }
    let of_person = config.person_goal.verify.as_deref().unwrap_or_default();
    let of_project = config.project_goal.verify.as_deref().unwrap_or_default();
    let list = |items: &[String]| items.join("\n");
    match (args.verify.as_slice(), of_person) {
        ([], []) => {
            if of_project.is_empty() {
                rows.add("verify", "nothing", &ValueSource::Default);
            }
        }
        ([], said) => rows.add_all("verify", list(said), &config.origins.of("goal.verify")),
        (said, _) => rows.add("verify", list(said), &ValueSource::Flag("--verify")),
    }
    if !of_project.is_empty() {
        let sources = config.origins.of("project.goal.verify");
        rows.add_all("verify", list(of_project), &sources);
    }
}

/// Adds what the agent must not change: what flags and files say adds up.
fn protected(config: &Config, args: &Args, rows: &mut ExplainRows) {
    for glob in &args.protect {
        rows.add("protect", glob, &ValueSource::Flag("--protect"));
    }
    for glob in config.goal.protect.iter().flatten() {
        rows.add_all("protect", glob, &config.origins.of("goal.protect"));
    }
}

/// Adds what may be spent.
fn limited(config: &Config, args: &Args, rows: &mut ExplainRows) {
    let table = &config.goal;
    let text = |count: u32| count.to_string();
    let time = |flag: Option<u64>| flag.map(amount::duration);
    let usd = table.usd.map(|usd| format!("${usd}"));
    let turns = TURNS_DEFAULT.to_string();
    let none = "no limit";
    for (key, flag, said, default) in [
        (
            "turns",
            ("--turns", args.turns.map(text)),
            table.turns.map(text),
            turns.as_str(),
        ),
        (
            "tokens",
            ("--tokens", args.tokens.map(amount::tokens)),
            table.tokens.map(amount::tokens),
            none,
        ),
        ("usd", ("--usd", args.usd.map(amount::usd)), usd, none),
        (
            "wall",
            ("--wall", time(args.wall)),
            table.wall.clone(),
            none,
        ),
        (
            "turn timeout",
            ("--turn-timeout", time(args.turn_timeout)),
            table.turn_timeout.clone(),
            "1h",
        ),
        (
            "verify timeout",
            ("--verify-timeout", time(args.verify_timeout)),
            table.verify_timeout.clone(),
            "30m",
        ),
        (
            "stall after",
            ("--stall-after", args.stall_after.map(text)),
            table.stall_after.map(text),
            "3",
        ),
    ] {
        let asked = ContractValue {
            key,
            flag,
            said,
            default,
        };
        asked.add(config, rows);
    }
}

/// Adds the names of an agent's variables; what they hold is nobody's business here.
fn variables(config: &Config, subject: &ExplainSubject<'_>, rows: &mut ExplainRows) {
    let name = subject.agent.name();
    for variable in &subject.settings.pass_env {
        let sources = config.origins.of(&format!("agents.{name}.pass_env"));
        rows.add_all("variable passed", variable, &sources);
    }
    for variable in subject.settings.env.keys() {
        let sources = config.origins.of(&format!("agents.{name}.env.{variable}"));
        rows.add_all("variable set", variable, &sources);
    }
}
