//! Drawing up a contract from flags, a file, configuration and the repository.
//!
//! Nothing is created here: a contract that is not approved leaves no trace.

pub(crate) mod agent_name;
pub(crate) mod approval;
pub(crate) mod file;
pub(crate) mod flags;
pub(crate) mod isolation;
pub(crate) mod judge;
mod layers;
pub(crate) mod models;
pub(crate) mod participants;
mod proof;
pub(crate) mod words;
pub(crate) mod working;

use std::path::PathBuf;

use kapi_check::rules::proof::attribution::{Attribution, OriginalWording};
use kapi_check::rules::proof::precedence::ResolvedChecks;
use kapi_core::id::Slug;
use kapi_core::isolation::{NetworkMode, SandboxLevel};
use kapi_core::judge::{Judge, JudgeUnavailable};
use kapi_core::text::short_id;
use kapi_goal::perform::survey::RepositorySurvey;
use kapi_goal::rules::budget::Budget;
use kapi_goal::rules::contract::{Base, CONTRACT_VERSION, Contract, TURNS_DEFAULT, WorkPlace};
use kapi_sys::clock::Clock as _;

use crate::config::Config;
use crate::config::goal::GoalTable;
use crate::context::Context;
use crate::contract::file::MergedFlags;
use crate::contract::flags::{Args, Openness, STALL_AFTER, TURN_TIMEOUT_MS, VERIFY_TIMEOUT_MS};
use crate::contract::judge::JudgeParticipants;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::subdirectory::Subdirectory;
use crate::{amount, container, delivery, naming};

/// Who says what a contract leaves open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ContractDrafter {
    /// The person: what they leave out has a default.
    Person,
    /// An agent that the person asked fills it in before they approve it.
    Setup,
    /// An agent says all of it, and a person only approves it.
    Proposal,
    /// The model of the person's own session fills it in and works on it, in their checkout.
    Session,
    /// The person, for sessions of their own agent in their checkout; says all of it from the top.
    Gate,
}

impl ContractDrafter {
    /// Returns where the goal is worked on.
    const fn place(self) -> WorkPlace {
        match self {
            Self::Session | Self::Gate => WorkPlace::Session,
            Self::Person | Self::Setup | Self::Proposal => WorkPlace::Workspace,
        }
    }

    /// Tells whether commands and patterns are meant where they were typed, and not from the top.
    const fn is_typed_here(self) -> bool {
        match self {
            Self::Person | Self::Setup | Self::Session => true,
            Self::Proposal | Self::Gate => false,
        }
    }

    /// Tells whether a judge is named later, by whoever drafts.
    const fn names_judge_later(self) -> bool {
        match self {
            Self::Proposal | Self::Session => true,
            Self::Person | Self::Setup | Self::Gate => false,
        }
    }
}

/// A contract that waits for approval, and what a person should know beside it.
#[derive(Debug)]
pub(crate) struct ContractDraft {
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
    pub(crate) survey: RepositorySurvey,
}

/// Draws up the contract that flags ask for; what they leave out has a default.
pub(crate) fn draft(context: &Context, flags: &Args) -> Result<ContractDraft, Error> {
    draw_up(context, flags, ContractDrafter::Person)
}

/// Draws up what is known of a contract that an agent fills in before a person approves it.
pub(crate) fn draft_for_agent(context: &Context, flags: &Args) -> Result<ContractDraft, Error> {
    draw_up(context, flags, ContractDrafter::Setup)
}

/// Draws up what holds of any goal that an agent proposes without having been asked for one.
pub(crate) fn draft_for_proposal(context: &Context, flags: &Args) -> Result<ContractDraft, Error> {
    draw_up(context, flags, ContractDrafter::Proposal)
}

/// Draws up what is known of a contract that the model of the person's session fills in.
pub(crate) fn draft_for_session(context: &Context, flags: &Args) -> Result<ContractDraft, Error> {
    draw_up(context, flags, ContractDrafter::Session)
}

/// Draws up a contract that a person gives their own agent's sessions in this checkout.
pub(crate) fn draft_for_gate(context: &Context, flags: &Args) -> Result<ContractDraft, Error> {
    draw_up(context, flags, ContractDrafter::Gate)
}

fn draw_up(
    context: &Context,
    flags: &Args,
    drafted: ContractDrafter,
) -> Result<ContractDraft, Error> {
    flags.race.check_no_race()?;
    let outside = context.grants(&Config::unconfigured());
    let survey =
        RepositorySurvey::of(&outside, &context.cwd).map_err(|failure| Error::world(&failure))?;
    let root = survey.root();
    let typed = drafted
        .is_typed_here()
        .then(|| flags.said_from_top(&Subdirectory::of(&context.cwd, &root)));
    let flags = typed.as_ref().unwrap_or(flags);
    let filled = file::filled(context, flags)?;
    let args = &filled.args;
    if args.intent.trim().is_empty() {
        return Err(Error::usage("no task was given")
            .with_hint("give one: `kapi run \"<task>\" --verify \"<command>\"`."));
    }
    let mut config = context.config(Some(&root))?;
    let mut notes = Vec::new();
    let base = if drafted.place() == WorkPlace::Session {
        base_in_place(context, &survey)?
    } else {
        let base = base(&filled, &config.goal, &survey)?;
        note_dirt(&survey, &base, &mut notes)?;
        base
    };
    let parties = parties(context, &mut config, &filled, &mut notes)?;
    let location = ContractSite {
        context,
        config: &config,
        survey: &survey,
        root: &root,
    };
    let (slug, branch) = branch(location, &filled)?;
    let input = DraftInput {
        flags,
        filled: &filled,
        parties: &parties,
        drafted,
    };
    let contract = contract(location, input, base, branch, &mut notes)?;
    if let Some((field, rule)) = contract.fault() {
        return Err(Error::usage(format!(
            "the contract's {field} is not valid: {rule}"
        )));
    }
    // Whether the host of a session asks its judge is known where the contract is approved.
    match drafted {
        ContractDrafter::Session => check_sandbox(context, &config, &contract)?,
        ContractDrafter::Person
        | ContractDrafter::Setup
        | ContractDrafter::Proposal
        | ContractDrafter::Gate => check(context, &config, &contract)?,
    }
    notes.extend(participants::check_providers(context, &config, &contract)?);
    if let Some(wanted) = &contract.delivery {
        let checked = delivery::check(context, &config, &root, wanted, &contract.branch)?;
        notes.extend(checked);
        let unconfined = delivery::note_without_isolation(contract.sandbox);
        notes.extend(unconfined.map(str::to_owned));
    }
    notes.extend(models::unseen_note(&config, &contract.models));
    notes.extend(isolation::isolation_note(&contract));
    Ok(ContractDraft {
        root,
        slug,
        contract,
        config,
        notes,
        survey,
    })
}

/// Refuses a contract whose parties or isolation could not even begin.
pub(crate) fn check(context: &Context, config: &Config, contract: &Contract) -> Result<(), Error> {
    participants::check(context, config, contract)?;
    check_sandbox(context, config, contract)
}

/// Refuses a contract whose checks could not even begin.
pub(crate) fn check_sandbox(
    context: &Context,
    config: &Config,
    contract: &Contract,
) -> Result<(), Error> {
    container::check(&context.grants(config), contract.sandbox)
}

/// Where a contract is drawn up.
#[derive(Clone, Copy)]
struct ContractSite<'a> {
    context: &'a Context,
    config: &'a Config,
    survey: &'a RepositorySurvey,
    root: &'a std::path::Path,
}

/// What a contract is drawn up from.
#[derive(Clone, Copy)]
struct DraftInput<'a> {
    /// What the person typed.
    flags: &'a Args,
    /// The same, filled with what their contract file says.
    filled: &'a MergedFlags,
    /// Who works, and how isolated.
    parties: &'a ContractParties,
    /// Who says what they leave open.
    drafted: ContractDrafter,
}

/// Who works on a contract, and how isolated.
struct ContractParties {
    agent: String,
    level: SandboxLevel,
    network: NetworkMode,
}

/// Finds out who works; the model that was asked for goes into the configuration.
fn parties(
    context: &Context,
    config: &mut Config,
    filled: &MergedFlags,
    notes: &mut Vec<String>,
) -> Result<ContractParties, Error> {
    let args = &filled.args;
    let (level, network) = isolation::level_and_network(args, config)?;
    let agent = participants::agent(context, config, args.agent.as_ref(), level, notes)?;
    models::choose(config, &agent, args.model.as_deref())?;
    filled.pinned.keep_models(config)?;
    Ok(ContractParties {
        agent,
        level,
        network,
    })
}

fn contract(
    location: ContractSite<'_>,
    input: DraftInput<'_>,
    base: Base,
    branch: String,
    notes: &mut Vec<String>,
) -> Result<Contract, Error> {
    let (context, config, survey) = (location.context, location.config, location.survey);
    let (filled, args, table) = (input.filled, &input.filled.args, &config.goal);
    let (agent, level) = (&input.parties.agent, input.parties.level);
    let parties = JudgeParticipants {
        context,
        config,
        root: location.root,
        preferred: &context.preferred(location.root)?,
        agent,
        level,
    };
    let sources = layers::ContractSources {
        flags: input.flags,
        filled: args,
        parties,
    };
    let resolved = layers::resolved(sources, input.drafted, notes)?;
    let checks = resolved.settings.policy();
    let attribution = attribution(args, input.drafted, &resolved);
    let settings = resolved.settings;
    let verify = settings.verify.unwrap_or_default();
    if input.drafted == ContractDrafter::Person {
        proof::note_no_proof(&verify, notes);
    }
    let hidden = args
        .hidden
        .as_deref()
        .map(|dir| proof::hidden_checks(context, dir, survey, &base))
        .transpose()?;
    filled.pinned.check_hidden(hidden.as_ref())?;
    let ignored = isolation::ignored_note(context, config, level, survey, hidden.as_ref())?;
    notes.extend(ignored);
    let judge = settings.judge.unwrap_or(Judge::None);
    let mut contract = Contract {
        version: CONTRACT_VERSION,
        intent: args.intent.trim().to_owned(),
        done_criteria: criteria(args, &verify),
        verify,
        verify_timeout_ms: time(args.verify_timeout, table.verify_timeout.as_deref())?
            .unwrap_or(VERIFY_TIMEOUT_MS),
        verify_network: args.verify_network,
        protect: settings.protect,
        hidden,
        budget: Budget {
            turns: settings.turns.unwrap_or(TURNS_DEFAULT),
            tokens: settings.tokens,
            usd_micros: settings.usd_micros,
            wall_ms: settings.wall_ms,
        },
        stall_after: stall_after(args, table),
        turn_timeout_ms: time(args.turn_timeout, table.turn_timeout.as_deref())?
            .unwrap_or(TURN_TIMEOUT_MS),
        agent: agent.clone(),
        models: models::approved(config, models::agents_of(agent, &judge)),
        judge,
        judge_unavailable: judge_unavailable(args),
        base,
        branch,
        sandbox: level,
        network: input.parties.network,
        working: working::working(args, input.drafted.place()),
        checks,
        attribution,
        race: None,
        delivery: delivery::asked(&args.deliver, config),
    };
    proof::protect_scripts(args, survey, &mut contract, notes)?;
    Ok(contract)
}

fn stall_after(args: &Args, table: &GoalTable) -> u32 {
    let said = args.stall_after.or(table.stall_after);
    said.unwrap_or(STALL_AFTER)
}

/// Returns whose words a contract is made of.
fn attribution(args: &Args, drafted: ContractDrafter, resolved: &ResolvedChecks) -> Attribution {
    Attribution {
        drafted: false,
        original: original(args, drafted),
        additions: resolved.additions.clone(),
        refusals: resolved.refusals.clone(),
    }
}

/// Returns the person's own words, which stay beside an agent's.
fn original(args: &Args, drafted: ContractDrafter) -> Option<OriginalWording> {
    match drafted {
        ContractDrafter::Setup | ContractDrafter::Session => Some(OriginalWording {
            task: args.intent.trim().to_owned(),
            done_criteria: args.criteria.clone(),
        }),
        ContractDrafter::Person | ContractDrafter::Proposal | ContractDrafter::Gate => None,
    }
}

/// Returns the checkout as it stands, the person's own changes included.
fn base_in_place(context: &Context, survey: &RepositorySurvey) -> Result<Base, Error> {
    let index_dir = context.checkout_index(&survey.root())?;
    survey
        .base_in_place(&index_dir, context.clock.now_ms().div_euclid(1000))
        .map_err(|failure| Error::world(&failure))
}

fn base(filled: &MergedFlags, table: &GoalTable, survey: &RepositorySurvey) -> Result<Base, Error> {
    let revision = filled.args.base.as_ref().or(table.base.as_ref());
    let base = survey
        .base(revision.map_or("HEAD", String::as_str))
        .map_err(|failure| Error {
            exit: Exit::Usage,
            ..Error::world(&failure)
        })?;
    filled.pinned.check_base(base)
}

/// Returns a slug, and the branch that the file names or the first that is free.
fn branch(location: ContractSite<'_>, filled: &MergedFlags) -> Result<(Slug, String), Error> {
    let reserved = naming::reserved(&location.context.project(location.root, "kapi run"))?;
    let (args, survey) = (&filled.args, location.survey);
    let (slug, branch) = naming::choose(args, &location.config.goal, survey, &reserved)?;
    let Some((at, named)) = &filled.pinned.branch else {
        return Ok((slug, branch));
    };
    if naming::is_free(named, survey, &reserved)? {
        return Ok((slug, named.clone()));
    }
    Err(Error::usage(format!(
        "{at}: the branch {named} is taken or is not a valid name"
    ))
    .with_hint("name another, or remove `branch` to let Kapi choose one."))
}

const fn judge_unavailable(args: &Args) -> JudgeUnavailable {
    match args.judge_unavailable {
        Some(Openness::Open) => JudgeUnavailable::Open,
        Some(Openness::Closed) | None => JudgeUnavailable::Closed,
    }
}

/// Changed files of the person's checkout that are named.
const DIRTY_NAMES_MAX: usize = 10;

fn note_dirt(survey: &RepositorySurvey, base: &Base, notes: &mut Vec<String>) -> Result<(), Error> {
    let dirt = survey.dirt().map_err(|failure| Error::world(&failure))?;
    if dirt.is_clean() {
        return Ok(());
    }
    let names: Vec<String> = dirt
        .names
        .iter()
        .take(DIRTY_NAMES_MAX)
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
        short_id(&base.commit)
    ));
    Ok(())
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

fn time(flag: Option<u64>, configured: Option<&str>) -> Result<Option<u64>, Error> {
    match (flag, configured) {
        (Some(ms), _) => Ok(Some(ms)),
        (None, Some(text)) => amount::parse_duration_ms(text)
            .map(Some)
            .map_err(Error::usage),
        (None, None) => Ok(None),
    }
}
