//! From what an agent drafts to a contract: a pure function.
//!
//! What the person said stays: agent, isolation, network, base, branch, every budget but the turns,
//! their own verify commands. The draft fills in the rest.

use kapi_core::checks::mise;
use kapi_core::goal::contract::{Contract, Judge, Surface, TURNS_MAX};

use crate::tools::Refused;
use crate::tools::input::{JudgeModelInput, SetInput};

/// Returns the contract that a draft makes of what was known before.
///
/// The judge of the draft wins over the person's default; there is no contract without either.
///
/// # Errors
/// With `judge_unspecified`, or `bad_input` and the field.
pub fn contract(
    provisional: &Contract,
    input: &SetInput,
    judge_default: Option<&Judge>,
) -> Result<Contract, Refused> {
    let mut contract = provisional.clone();
    input.goal.trim().clone_into(&mut contract.intent);
    input
        .done_criteria
        .trim()
        .clone_into(&mut contract.done_criteria);
    contract.verify = verify(provisional, input)?;
    contract.budget.turns = turns(provisional, input)?;
    contract.judge = judge(input, judge_default)?;
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
        let surface = Surface {
            kind: surface.kind.clone(),
            location: surface.location.clone(),
            notes: surface.notes.clone(),
        };
        if !working.surfaces.contains(&surface) {
            working.surfaces.push(surface);
        }
    }
    match contract.fault() {
        None => Ok(contract),
        Some((field, rule)) => Err(Refused::input(format!("{}: {rule}", as_given(field)))),
    }
}

/// The person's commands stay; the draft's comes after them, through mise where that is wanted.
fn verify(provisional: &Contract, input: &SetInput) -> Result<Vec<String>, Refused> {
    let mut commands = provisional.verify.clone();
    let Some(drafted) = &input.verify_command else {
        return Ok(commands);
    };
    if drafted.trim().is_empty() {
        let rule = "verifyCommand: it must not be empty; leave it out if there is none";
        return Err(Refused::input(rule.to_owned()));
    }
    let command = if provisional.working.mise {
        mise::route(drafted)
    } else {
        drafted.trim().to_owned()
    };
    if !commands.contains(&command) {
        commands.push(command);
    }
    Ok(commands)
}

fn turns(provisional: &Contract, input: &SetInput) -> Result<u32, Refused> {
    let Some(turns) = input.max_turns else {
        return Ok(provisional.budget.turns);
    };
    u32::try_from(turns)
        .ok()
        .filter(|turns| (1..=TURNS_MAX).contains(turns))
        .ok_or_else(|| Refused::input(format!("maxTurns: it must be 1 to {TURNS_MAX}")))
}

fn judge(input: &SetInput, judge_default: Option<&Judge>) -> Result<Judge, Refused> {
    if let Some(JudgeModelInput { provider, model_id }) = &input.judge_model {
        let (provider, model) = (provider.trim(), model_id.trim());
        // What an agent names is a model and never a program: `command:…` would judge for it.
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        let is_name = |c: char| is_plain(c) || matches!(c, '/' | ':' | '@' | '+');
        let is_provider = !provider.is_empty() && provider.chars().all(is_plain);
        if !is_provider || model.is_empty() || !model.chars().all(is_name) {
            return Err(Refused::input(
                "judgeModel: it needs a provider (letters, digits, - _ .) and a modelId".to_owned(),
            ));
        }
        return Ok(Judge::Agent(format!("{provider}/{model}")));
    }
    if input.same_model_judge == Some(true) {
        return Ok(Judge::Same);
    }
    judge_default.cloned().ok_or_else(|| {
        Refused::new(
            "judge_unspecified",
            "name a judgeModel {provider, modelId} other than your own model, or set \
             sameModelJudge to true; nothing is done without a judge being chosen"
                .to_owned(),
        )
    })
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
