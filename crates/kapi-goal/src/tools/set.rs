//! From what an agent drafts to a contract: a pure function.
//!
//! What the person said stays: agent, judge, isolation, network, base, branch, their own verify
//! commands and limits. The draft words the goal anew, adds checks and narrows; whose word counts is
//! decided by the core.

use kapi_check::rules::checks::mise;
use kapi_check::rules::proof::attribution::{Authority, CheckPart};
use kapi_check::rules::proof::precedence::{CheckSettings, SettingsLayer, resolve};
use kapi_core::judge::Judge;

use crate::rules::contract::{AgentSurface, Contract, TURNS_MAX};
use crate::tools::ToolRefusal;
use crate::tools::input::{JudgeModelInput, SetInput};

/// Returns the contract that a draft makes of what was known before.
///
/// The judge of the person wins over the draft's; there is no contract without either. A draft takes
/// the place of an earlier one, and nothing of that stays.
///
/// # Errors
/// With `judge_unspecified`, or `bad_input` and the field.
pub fn contract(
    provisional: &Contract,
    input: &SetInput,
    judge_default: Option<&Judge>,
) -> Result<Contract, ToolRefusal> {
    let mut contract = undrafted(provisional);
    let mut known = checks_of(&contract);
    known.judge = known.judge.or_else(|| judge_default.cloned());
    let drafted = CheckSettings {
        verify: verify(&contract, input)?.map(|command| vec![command]),
        judge: judge(input)?,
        turns: turns(input)?,
        ..CheckSettings::default()
    };
    let layers = [(Authority::Settings, known), (Authority::Draft, drafted)];
    let layers = layers.map(|(by, settings)| SettingsLayer { by, settings });
    let resolved = resolve(&layers);
    let settings = resolved.settings;
    contract.judge = settings.judge.ok_or_else(judge_unspecified)?;
    contract.verify = settings.verify.unwrap_or_default();
    contract.budget.turns = settings.turns.unwrap_or(contract.budget.turns);
    let attribution = &mut contract.attribution;
    attribution.drafted = true;
    attribution.additions.extend(resolved.additions);
    attribution.refusals.extend(resolved.refusals);
    input.goal.trim().clone_into(&mut contract.intent);
    input
        .done_criteria
        .trim()
        .clone_into(&mut contract.done_criteria);
    work_as(&mut contract, input);
    match contract.fault() {
        None => Ok(contract),
        Some((field, rule)) => Err(ToolRefusal::input(format!("{}: {rule}", as_given(field)))),
    }
}

/// Returns what was known before an earlier draft added to it.
fn undrafted(provisional: &Contract) -> Contract {
    let mut contract = provisional.clone();
    let attribution = &provisional.attribution;
    let is_drafts = |part, value: &str| attribution.added_by(part, value) == Some(Authority::Draft);
    contract
        .verify
        .retain(|command| !is_drafts(CheckPart::Verify, command));
    if is_drafts(CheckPart::Judge, &contract.judge.to_string()) {
        contract.judge = Judge::None;
    }
    contract.attribution.forget(Authority::Draft);
    contract
}

/// Takes over how the goal is worked on.
fn work_as(contract: &mut Contract, input: &SetInput) {
    let working = &mut contract.working;
    working.goal_type = input.goal_type;
    working.decision_style = Some(input.decision_style.trim().to_owned());
    working.start_phase = input.start_phase.unwrap_or(working.start_phase);
    for pattern in &input.ask_before {
        if !working.ask_before.contains(pattern) {
            working.ask_before.push(pattern.clone());
        }
    }
    for surface in &input.surfaces {
        let surface = AgentSurface {
            kind: surface.kind.clone(),
            location: surface.location.clone(),
            notes: surface.notes.clone(),
        };
        if !working.surfaces.contains(&surface) {
            working.surfaces.push(surface);
        }
    }
}

/// Returns the draft's command, through mise where that is wanted.
fn verify(contract: &Contract, input: &SetInput) -> Result<Option<String>, ToolRefusal> {
    let Some(drafted) = &input.verify_command else {
        return Ok(None);
    };
    if drafted.trim().is_empty() {
        let rule = "verifyCommand: it must not be empty; omit it if there is none";
        return Err(ToolRefusal::input(rule.to_owned()));
    }
    Ok(Some(if contract.working.mise {
        mise::route(drafted)
    } else {
        drafted.trim().to_owned()
    }))
}

fn turns(input: &SetInput) -> Result<Option<u32>, ToolRefusal> {
    let Some(turns) = input.max_turns else {
        return Ok(None);
    };
    u32::try_from(turns)
        .ok()
        .filter(|turns| (1..=TURNS_MAX).contains(turns))
        .map(Some)
        .ok_or_else(|| ToolRefusal::input(format!("maxTurns: it must be 1 to {TURNS_MAX}")))
}

fn judge(input: &SetInput) -> Result<Option<Judge>, ToolRefusal> {
    if let Some(JudgeModelInput { provider, model_id }) = &input.judge_model {
        let (provider, model) = (provider.trim(), model_id.trim());
        // What an agent names is a model and never a program: `command:…` would judge for it.
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        let is_name = |c: char| is_plain(c) || matches!(c, '/' | ':' | '@' | '+');
        let is_provider = !provider.is_empty() && provider.chars().all(is_plain);
        if !is_provider || model.is_empty() || !model.chars().all(is_name) {
            return Err(ToolRefusal::input(
                "judgeModel: it needs a provider (letters, digits, - _ .) and a modelId".to_owned(),
            ));
        }
        return Ok(Some(Judge::Agent(format!("{provider}/{model}"))));
    }
    Ok((input.same_model_judge == Some(true)).then_some(Judge::Same))
}

fn judge_unspecified() -> ToolRefusal {
    ToolRefusal::new(
        "judge_unspecified",
        "name a judgeModel {provider, modelId} other than your own model, or set sameModelJudge \
         to true; a judge must be chosen first"
            .to_owned(),
    )
}

/// Returns the name that a field of the contract has in the input.
fn as_given(field: &'static str) -> &'static str {
    match field {
        "intent" => "goal",
        "done_criteria" => "doneCriteria",
        "verify" => "verifyCommand",
        "ask_before" => "askBefore",
        "decision_style" => "decisionStyle",
        "budget.turns" => "maxTurns",
        other => other,
    }
}

/// Returns what a contract says of checks, as far as others may add to it.
fn checks_of(contract: &Contract) -> CheckSettings {
    CheckSettings {
        verify: Some(contract.verify.clone()).filter(|commands| !commands.is_empty()),
        protect: contract.protect.clone(),
        judge: Some(contract.judge.clone()).filter(|judge| *judge != Judge::None),
        tests: Some(contract.checks.tests),
        already_green: Some(contract.checks.already_green),
        changed_steering: Some(contract.checks.changed_steering),
        flagged_code: Some(contract.checks.flagged_code),
        strength: Some(contract.checks.strength),
        turns: Some(contract.budget.turns),
        tokens: contract.budget.tokens,
        usd_micros: contract.budget.usd_micros,
        wall_ms: contract.budget.wall_ms,
    }
}
