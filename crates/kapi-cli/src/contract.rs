//! Drawing up a contract from flags, configuration and the repository, and showing it.
//!
//! Nothing is created here: a contract that is not approved leaves no trace.

pub(crate) mod isolation;

use std::path::{Path, PathBuf};

use kapi_agent::agent::Kind;
use kapi_core::goal::budget::Budget;
use kapi_core::goal::contract::{
    Base, CONTRACT_VERSION, Contract, Hidden, Judge, JudgeUnavailable, TURNS_DEFAULT,
};
use kapi_core::id::Slug;
use kapi_world::survey::Survey;
use kapi_world::{asking, hidden};

use crate::commands::run::{Args, Openness};
use crate::config::{Config, GoalTable};
use crate::context::Context;
use crate::error::Error;
use crate::{amount, container, naming};

/// Milliseconds one agent turn may take when nothing else was said.
const TURN_TIMEOUT_MS: u64 = 60 * 60 * 1000;
/// Milliseconds one verify command may take when nothing else was said.
const VERIFY_TIMEOUT_MS: u64 = 30 * 60 * 1000;
/// Turns without progress before a goal is stalled when nothing else was said.
const STALL_AFTER: u32 = 3;

/// A contract that waits for approval, and what a person should know beside it.
#[derive(Debug)]
pub(crate) struct Draft {
    /// The project: the repository's top level.
    pub(crate) root: PathBuf,
    /// The goal's slug.
    pub(crate) slug: Slug,
    /// The contract.
    pub(crate) contract: Contract,
    /// The configuration it was drawn up with.
    pub(crate) config: Config,
    /// What the person should know before approving.
    pub(crate) notes: Vec<String>,
    /// The repository it was drawn up for.
    pub(crate) survey: Survey,
}

/// Draws up the contract of `kapi run`.
pub(crate) fn draft(context: &Context, args: &Args) -> Result<Draft, Error> {
    let outside = context.book(&Config::unconfigured());
    let survey = Survey::of(&outside, &context.cwd).map_err(|failure| Error::world(&failure))?;
    let root = survey.root();
    let config = context.config(Some(&root))?;
    let table = &config.goal;
    let mut notes = Vec::new();
    let revision = args.base.clone().or_else(|| table.base.clone());
    let base = survey
        .base(revision.as_deref().unwrap_or("HEAD"))
        .map_err(|failure| Error {
            exit: crate::exit_code::Exit::Usage,
            ..Error::world(&failure)
        })?;
    let verify = verify_commands(args, table, &mut notes);
    let protect = protected(args, table, &survey, (&base, &verify), &mut notes)?;
    let reserved = naming::reserved(&context.project(&root, "kapi run"))?;
    let (slug, branch) = naming::choose(args, table, &survey, &reserved)?;
    let agent = agent(context, args, table)?;
    let judge = judge(context, args, table, &agent, &mut notes)?;
    note_dirt(&survey, &base, &mut notes)?;
    let hidden = args
        .hidden
        .as_deref()
        .map(|dir| hidden_checks(context, dir, &survey, &base))
        .transpose()?;
    let (level, network) = isolation::level_and_network(args, &config)?;
    isolation::note_ignored(
        context,
        &config,
        level,
        (&survey, hidden.as_ref()),
        &mut notes,
    )?;
    let contract = Contract {
        version: CONTRACT_VERSION,
        intent: args.intent.trim().to_owned(),
        done_criteria: criteria(args, &verify),
        verify,
        verify_timeout_ms: time(args.verify_timeout, table.verify_timeout.as_deref())?
            .unwrap_or(VERIFY_TIMEOUT_MS),
        verify_network: args.verify_network,
        protect,
        hidden,
        budget: budget(args, table)?,
        stall_after: args
            .stall_after
            .or(table.stall_after)
            .unwrap_or(STALL_AFTER),
        turn_timeout_ms: time(args.turn_timeout, table.turn_timeout.as_deref())?
            .unwrap_or(TURN_TIMEOUT_MS),
        agent,
        judge,
        judge_unavailable: match args.judge_unavailable {
            Some(Openness::Open) => JudgeUnavailable::Open,
            Some(Openness::Closed) | None => JudgeUnavailable::Closed,
        },
        base,
        branch,
        sandbox: level,
        network,
    };
    check(context, &config, &contract, &mut notes)?;
    Ok(Draft {
        root,
        slug,
        contract,
        config,
        notes,
        survey,
    })
}

/// Refuses what the rules would refuse, and what could not even begin.
fn check(
    context: &Context,
    config: &Config,
    contract: &Contract,
    notes: &mut Vec<String>,
) -> Result<(), Error> {
    if let Some((field, rule)) = contract.fault() {
        return Err(Error::usage(format!(
            "the contract's {field} is not valid: {rule}"
        )));
    }
    let book = context.book(config);
    let judge = contract
        .judge_agent()
        .filter(|judge| *judge != contract.agent);
    for agent in [Some(contract.agent.as_str()), judge].into_iter().flatten() {
        let kind = kind(agent)?;
        let checked = asking::check_agent(&book, agent, contract.sandbox)
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
    }
    container::check(&book, contract.sandbox)?;
    notes.extend(isolation::isolation_note(contract));
    Ok(())
}

fn kind(agent: &str) -> Result<Kind, Error> {
    Kind::parse(agent).map_err(|error| {
        let mut wrapped = Error::usage(error.to_string());
        wrapped.hint = error.hint();
        wrapped
    })
}

fn verify_commands(args: &Args, table: &GoalTable, notes: &mut Vec<String>) -> Vec<String> {
    let configured = table.verify.clone().unwrap_or_default();
    let commands = match (args.unverified, args.verify.is_empty()) {
        (true, _) => Vec::new(),
        (false, true) => configured,
        (false, false) => args.verify.clone(),
    };
    if commands.is_empty() {
        notes.push(
            "NO PROOF: there is no verify command, so the result will be \"done (unverified)\": the \
             agent's work, on your word. Add `--verify \"<command>\"` to have it proved."
                .to_owned(),
        );
    }
    commands
}

fn protected(
    args: &Args,
    table: &GoalTable,
    survey: &Survey,
    (base, verify): (&Base, &[String]),
    notes: &mut Vec<String>,
) -> Result<Vec<String>, Error> {
    let failed = |failure| Error::world(&failure);
    let mut protect = args.protect.clone();
    protect.extend(table.protect.iter().flatten().cloned());
    for glob in &protect {
        let files = survey
            .protected_files(base, std::slice::from_ref(glob))
            .map_err(failed)?;
        if files == 0 {
            notes.push(format!("--protect {glob} matches no file at the base."));
        }
    }
    let commands = if args.no_auto_protect { &[] } else { verify };
    for command in commands {
        for file in survey.files_named_in(base, command).map_err(failed)? {
            if !is_check(&file) || args.intent.contains(&file) || protect.contains(&file) {
                continue;
            }
            notes.push(format!(
                "{file} is protected because a verify command names it; `--no-auto-protect` if the \
                 task is to change it."
            ));
            protect.push(file);
        }
    }
    if protect.is_empty() && !verify.is_empty() {
        notes.push(
            "Nothing is protected: the agent may change whatever the verify commands run. Name it \
             with `--protect`."
                .to_owned(),
        );
    }
    Ok(protect)
}

/// Tells whether a file that a command names is a check, and not what is checked: code whose name
/// says so.
fn is_check(path: &str) -> bool {
    const DATA: &[&str] = &[
        "txt", "md", "json", "yaml", "yml", "toml", "csv", "log", "html",
    ];
    const SIGNS: &[&str] = &["test", "spec", "check", "verify"];
    let name = path.rsplit('/').next().unwrap_or(path).to_lowercase();
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    !DATA.contains(&extension) && SIGNS.iter().any(|sign| name.contains(sign))
}

fn agent(context: &Context, args: &Args, table: &GoalTable) -> Result<String, Error> {
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
fn absolute(context: &Context, reference: &str) -> Result<String, Error> {
    Ok(match kind(reference)? {
        Kind::Script(path) if path.is_relative() => {
            Kind::Script(context.cwd.join(path)).to_string()
        }
        other => other.to_string(),
    })
}

fn judge(
    context: &Context,
    args: &Args,
    table: &GoalTable,
    agent: &str,
    notes: &mut Vec<String>,
) -> Result<Judge, Error> {
    let judge = match args.judge.as_deref().or(table.judge.as_deref()) {
        Some("none") => Judge::None,
        Some("same") => Judge::Same,
        Some(reference) => match absolute(context, reference)? {
            judge if judge == agent => Judge::Same,
            judge => Judge::Agent(judge),
        },
        None => match kind(agent)? {
            Kind::Claude | Kind::Codex | Kind::Gemini | Kind::Pi => Judge::Same,
            Kind::Command(_) | Kind::Script(_) => Judge::None,
        },
    };
    match judge {
        Judge::Same => notes.push(
            "The judge is the executor's own model in a fresh session; one of another vendor \
             (`--judge codex`) is stronger."
                .to_owned(),
        ),
        Judge::None => notes.push("No judge: no model looks at the result.".to_owned()),
        Judge::Agent(_) => {}
    }
    Ok(judge)
}

fn note_dirt(survey: &Survey, base: &Base, notes: &mut Vec<String>) -> Result<(), Error> {
    let dirt = survey.dirt().map_err(|failure| Error::world(&failure))?;
    if dirt.is_clean() {
        return Ok(());
    }
    let names: Vec<String> = dirt
        .names
        .iter()
        .map(|name| name.display().to_string())
        .collect();
    let total = dirt.staged + dirt.modified + dirt.untracked;
    let more = if total > names.len() { ", …" } else { "" };
    notes.push(format!(
        "Not included: {} staged, {} modified, {} untracked in your checkout ({}{more}). The work \
         starts from commit {}.",
        dirt.staged,
        dirt.modified,
        dirt.untracked,
        names.join(", "),
        short(&base.commit)
    ));
    Ok(())
}

fn hidden_checks(
    context: &Context,
    dir: &Path,
    survey: &Survey,
    base: &Base,
) -> Result<Hidden, Error> {
    let absolute = context.cwd.join(dir);
    let seen = survey
        .hidden_in_plain_sight(base, &absolute)
        .map_err(|failure| Error {
            exit: crate::exit_code::Exit::Usage,
            ..Error::world(&failure)
        })?;
    if let Some(path) = seen {
        return Err(Error::usage(format!(
            "{} is in the repository, so the agent would see this hidden check",
            path.display()
        ))
        .with_hint("keep hidden checks outside of what git tracks."));
    }
    hidden::describe(&absolute).map_err(|failure| Error {
        exit: crate::exit_code::Exit::Usage,
        ..Error::world(&failure)
    })
}

fn criteria(args: &Args, verify: &[String]) -> String {
    args.criteria.clone().unwrap_or_else(|| {
        if verify.is_empty() {
            "The task above is done in full.".to_owned()
        } else {
            "The task above is done in full, and every verify command exits 0.".to_owned()
        }
    })
}

fn budget(args: &Args, table: &GoalTable) -> Result<Budget, Error> {
    let table_usd = table
        .usd
        .map(|usd| amount::parse_usd_micros(&usd.to_string()).map_err(Error::usage))
        .transpose()?;
    Ok(Budget {
        turns: args.turns.or(table.turns).unwrap_or(TURNS_DEFAULT),
        tokens: args.tokens.or(table.tokens),
        usd_micros: args.usd.or(table_usd),
        wall_ms: time(args.wall, table.wall.as_deref())?,
    })
}

fn time(flag: Option<u64>, configured: Option<&str>) -> Result<Option<u64>, Error> {
    match (flag, configured) {
        (Some(ms), _) => Ok(Some(ms)),
        (None, Some(text)) => amount::parse_duration_ms(text)
            .map(Some)
            .map_err(Error::usage),
        (None, None) => Ok(None),
    }
}

/// Shows a contract and what to know beside it.
pub(crate) fn show(context: &Context, contract: &Contract, notes: &[String]) {
    let ui = context.ui;
    ui.say("Contract");
    for (name, value) in rows(contract) {
        let mut lines = value.lines();
        ui.say(&format!("  {name:<9} {}", lines.next().unwrap_or_default()));
        for line in lines {
            ui.say(&format!("  {:<9} {line}", ""));
        }
    }
    for note in notes {
        ui.say(&format!("note: {note}"));
    }
}

/// Returns a contract as names and values for people.
pub(crate) fn rows(contract: &Contract) -> Vec<(&'static str, String)> {
    let list = |items: &[String]| {
        if items.is_empty() {
            "–".to_owned()
        } else {
            items.join("\n")
        }
    };
    let verify = if contract.verify.is_empty() {
        "nothing: the result will be \"done (unverified)\"".to_owned()
    } else {
        list(&contract.verify)
    };
    let mut rows = vec![
        ("task", contract.intent.clone()),
        ("done when", contract.done_criteria.clone()),
        ("verify", verify),
        ("protect", list(&contract.protect)),
    ];
    if let Some(hidden) = &contract.hidden {
        rows.push((
            "hidden",
            format!("{} files from {}", hidden.files, hidden.source),
        ));
    }
    rows.push(("agent", contract.agent.clone()));
    rows.push(("judge", contract.judge.to_string()));
    rows.push((
        "base",
        format!(
            "{} ({})",
            contract.base.revision,
            short(&contract.base.commit)
        ),
    ));
    rows.push(("branch", contract.branch.clone()));
    rows.push(("budget", budget_words(&contract.budget)));
    rows.push(("sandbox", contract.sandbox.to_string()));
    rows.push(("network", contract.network.to_string()));
    rows
}

fn budget_words(budget: &Budget) -> String {
    let mut parts = vec![format!("{} turns", budget.turns)];
    parts.extend(
        budget
            .tokens
            .map(|count| format!("{} tokens", amount::tokens(count))),
    );
    parts.extend(budget.usd_micros.map(amount::usd));
    parts.extend(budget.wall_ms.map(amount::duration));
    parts.join(", ")
}

/// Returns the first digits of an object id.
pub(crate) fn short(id: &str) -> &str {
    id.get(..10).unwrap_or(id)
}

#[cfg(test)]
mod tests {
    use super::is_check;

    #[test]
    fn a_check_is_code_that_says_so() {
        for check in [
            "test.sh",
            "tests/test_api.py",
            "src/a.spec.ts",
            "ci/Verify.rb",
            "check",
        ] {
            assert!(is_check(check), "{check}");
        }
        for subject in [
            "answer.txt",
            "main.py",
            "test.txt",
            "src/lib.rs",
            "tests/data.json",
        ] {
            assert!(!is_check(subject), "{subject}");
        }
    }
}
