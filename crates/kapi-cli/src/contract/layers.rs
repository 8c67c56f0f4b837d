//! Who says what of a goal's checks: flags, a contract file, settings and the project, as layers.
//!
//! Only reads; whose word counts is decided by the core.

use kapi_check::rules::proof::attribution::{Addition, Authority, CheckPart};
use kapi_check::rules::proof::precedence::{CheckSettings, ResolvedChecks, SettingsLayer, resolve};
use kapi_core::judge::Judge;
use kapi_goal::rules::contract::TURNS_DEFAULT;

use crate::config::goal;
use crate::contract::flags::Args;
use crate::contract::judge::{self, JudgeParticipants};
use crate::contract::{ContractDrafter, working};
use crate::error::Error;

/// What a contract is drawn up from.
#[derive(Clone, Copy)]
pub(super) struct ContractSources<'a> {
    /// What the person typed.
    pub(super) flags: &'a Args,
    /// The same, filled with what their contract file says.
    pub(super) filled: &'a Args,
    /// Who else has a say.
    pub(super) parties: JudgeParticipants<'a>,
}

/// Returns what holds of everything that was said, and what became of the project's words.
pub(super) fn resolved(
    sources: ContractSources<'_>,
    drafted: ContractDrafter,
    notes: &mut Vec<String>,
) -> Result<ResolvedChecks, Error> {
    let config = sources.parties.config;
    let mut settings = goal::settings(&config.person_goal)?;
    settings.verify = commands(sources, config.person_goal.verify.as_deref())?;
    settings.turns = Some(settings.turns.unwrap_or(TURNS_DEFAULT));
    let mut project = goal::settings(&config.project_goal)?;
    project.verify = commands(sources, config.project_goal.verify.as_deref())?;
    let of_project = config.project_goal.judge.as_deref();
    project.judge = of_project
        .map(|text| judge::named(sources.parties, text))
        .transpose()?
        .filter(|judge| *judge != Judge::None);
    let flag = sources.filled.judge.as_deref();
    let chosen = judge::of_person(sources.parties, flag)?;
    let mut filled = asked(sources, sources.filled)?;
    if flag.is_some() {
        filled.judge = chosen;
    } else {
        settings.judge = match chosen {
            Some(judge) => Some(judge),
            // Which other models there are is the session's to say.
            None if drafted == ContractDrafter::Session => None,
            None => judge::unnamed(sources.parties, notes)?,
        };
    }
    let layers = [
        (Authority::Flag, asked(sources, sources.flags)?),
        (Authority::ContractFile, filled),
        (Authority::Settings, settings),
        (Authority::Project, project),
    ];
    let layers = layers.map(|(by, settings)| SettingsLayer { by, settings });
    let mut resolved = resolve(&layers);
    // The same model is the weakest judge, and who takes it says so.
    if resolved.settings.judge == Some(Judge::Same) && resolved.additions.iter().any(is_judge) {
        resolved.settings.judge = None;
        resolved.additions.retain(|added| !is_judge(added));
    }
    let judge = match resolved.settings.judge.clone() {
        Some(judge) => judge,
        // A proposal is refused where it becomes a contract, with its own code.
        None if drafted.names_judge_later() => Judge::None,
        None => judge::required(sources.parties)?,
    };
    if !drafted.names_judge_later() || judge != Judge::None {
        judge::note(sources.parties, &judge, notes);
    }
    resolved.settings.judge = Some(judge);
    Ok(resolved)
}

fn is_judge(added: &Addition) -> bool {
    added.part == CheckPart::Judge
}

/// Returns what flags, or a file in their place, say.
fn asked(sources: ContractSources<'_>, args: &Args) -> Result<CheckSettings, Error> {
    let verify = match (args.unverified, args.verify.is_empty()) {
        (true, _) => Some(Vec::new()),
        (false, true) => None,
        (false, false) => commands(sources, Some(&args.verify))?,
    };
    Ok(CheckSettings {
        verify,
        protect: args.protect.clone(),
        // Chosen together with what the person's settings say.
        judge: None,
        tests: args.checks.tests.map(Into::into),
        already_green: args.checks.already_green.then_some(true),
        changed_steering: args.checks.allow_changed_setup.then_some(true),
        flagged_code: args.checks.allow_flagged_code.then_some(true),
        strength: args.checks.prove_diff.then_some(true),
        turns: args.turns,
        tokens: args.tokens,
        usd_micros: args.usd,
        wall_ms: args.wall,
    })
}

/// Returns commands as they are run.
fn commands(
    sources: ContractSources<'_>,
    said: Option<&[String]>,
) -> Result<Option<Vec<String>>, Error> {
    let Some(commands) = said else {
        return Ok(None);
    };
    let context = sources.parties.context;
    working::through_mise(context, sources.filled, commands.to_vec()).map(Some)
}
