//! The rules of an interview: one open question, a person behind every requirement, no draft before
//! the goal is agreed.
//!
//! What an interviewer proposes is recorded whole or refused whole; only a person answers.

use kapi_core::actor::Actor;
use kapi_core::id::EffectId;
use kapi_core::mode::Mode;

use crate::rules::decide::{human, is_free, said, wrong_phase};
use crate::rules::decision_context::DecisionContext;
use crate::rules::denied::WorkflowRule;
use crate::rules::event::WorkflowEvent;
use crate::rules::mode_spec::{ContextRule, ModeSpec};
use crate::rules::modes::interview::command::InterviewCommand;
use crate::rules::modes::interview::event::InterviewEvent;
use crate::rules::modes::interview::prompt::effect_id;
use crate::rules::modes::interview::state::{Interview, InterviewPhase};
use crate::rules::modes::{ModeAnswer, ModeEvent};
use crate::rules::outcome::WorkflowOutcome;
use crate::rules::state::Workflow;

mod person;
mod step;

/// Proposals in a row that may break a rule before a person is asked to look.
pub const REFUSED_MAX: usize = 3;

pub(crate) fn ask(
    workflow: &Workflow,
    interview: &Interview,
    actor: &Actor,
    command: &InterviewCommand,
    given: &DecisionContext,
) -> Result<Vec<WorkflowEvent>, WorkflowRule> {
    match command {
        InterviewCommand::Propose(step) => {
            if !is_free(workflow) || interview.phase != InterviewPhase::Asking {
                return Err(wrong_phase(workflow, "propose the next step"));
            }
            step::step(workflow, interview, step, given)
                .map_err(|rule| WorkflowRule::Malformed { rule })
        }
        InterviewCommand::Answer { .. } => {
            human(actor, "answer a question")?;
            person::answer(workflow, interview, command, given)
        }
        InterviewCommand::Defer { round, reason } => {
            human(actor, "leave a question for later")?;
            person::is_open(workflow, interview, *round, "leave a question for later")?;
            let (round, reason) = (*round, reason.clone());
            Ok(vec![interview_event(InterviewEvent::QuestionDeferred {
                round,
                reason,
            })])
        }
        InterviewCommand::Withdraw { round, reason } => {
            human(actor, "take a question back")?;
            person::is_open(workflow, interview, *round, "take a question back")?;
            let reason = said(reason, "take a question back without a reason")?;
            let round = *round;
            Ok(vec![interview_event(InterviewEvent::QuestionWithdrawn {
                round,
                reason,
            })])
        }
        InterviewCommand::Enough {} => {
            human(actor, "end the questions")?;
            person::enough(workflow, interview)
        }
        InterviewCommand::Branch {
            mode,
            workflow: successor,
        } => {
            let action = "continue in another workflow";
            match actor {
                Actor::Human { .. } | Actor::Engine => {}
                Actor::Agent { .. } => {
                    human(actor, action)?;
                }
            }
            if !is_free(workflow) || interview.phase != InterviewPhase::Branch {
                return Err(wrong_phase(workflow, action));
            }
            branches_into(*mode)?;
            Ok(vec![interview_event(InterviewEvent::Branched {
                mode: *mode,
                workflow: successor.clone(),
                at_ms: given.now_ms,
            })])
        }
        InterviewCommand::Reopen { reason } => {
            let action = "continue the interview";
            human(actor, action)?;
            if interview.phase != InterviewPhase::Branch {
                return Err(wrong_phase(workflow, action));
            }
            let reason = said(reason, "continue the interview without a reason")?;
            Ok(person::reopened(interview, &reason, given))
        }
    }
}

fn branches_into(mode: Mode) -> Result<(), WorkflowRule> {
    // A mode that there is only by name yet is taken at its word.
    let takes = ModeSpec::of(mode).is_none_or(|spec| spec.context == ContextRule::Takes);
    if takes && mode != Mode::INTEGRATOR {
        return Ok(());
    }
    Err(WorkflowRule::Malformed {
        rule: format!("continue in a {mode} workflow: an interview leads to ralph or autoresearch"),
    })
}

/// Records what the interviewer answered; an answer to what nobody asks any more is dropped.
pub(crate) fn report(
    workflow: &Workflow,
    interview: &Interview,
    effect: &EffectId,
    outcome: &WorkflowOutcome,
    given: &DecisionContext,
) -> Result<Vec<WorkflowEvent>, WorkflowRule> {
    let is_current = is_free(workflow)
        && interview.phase == InterviewPhase::Asking
        && *effect == effect_id(interview);
    let step = match outcome.answer() {
        None => {
            let rule = format!("report on {effect} something other than an answer");
            return Err(WorkflowRule::Malformed { rule });
        }
        Some(_) if !is_current => return Ok(Vec::new()),
        Some(Ok(ModeAnswer::Interview(proposed))) => {
            step::step(workflow, interview, proposed, given)
        }
        Some(Ok(_)) => Err("answer in the form of a step".to_owned()),
        Some(Err(why)) => Err(why.to_owned()),
    };
    Ok(step.unwrap_or_else(|why| refused(interview, why)))
}

/// Tells the interviewer next time; a person is asked to look when that does not help.
fn refused(interview: &Interview, why: String) -> Vec<WorkflowEvent> {
    let times = interview.refused.len() + 1;
    let reason =
        format!("the interviewer broke the rules {times} times in a row, most recently: {why}");
    let mut events = vec![interview_event(InterviewEvent::StepRefused { why })];
    if times >= REFUSED_MAX {
        let unblock = "resume to ask it again".to_owned();
        events.push(WorkflowEvent::Blocked { reason, unblock });
    }
    events
}

/// A change that a person wants is a round of its own; where something was drafted or is being
/// thought of, the interview goes on from there.
pub(crate) fn revised(
    workflow: &Workflow,
    interview: &Interview,
    text: &str,
    given: &DecisionContext,
) -> Result<Vec<WorkflowEvent>, WorkflowRule> {
    match interview.phase {
        InterviewPhase::Awaiting | InterviewPhase::Restating => {
            Ok(vec![person::remarked(interview, text, given)])
        }
        InterviewPhase::Asking | InterviewPhase::Spec | InterviewPhase::Branch => {
            Ok(person::reopened(interview, text, given))
        }
        InterviewPhase::Linked => Err(wrong_phase(workflow, "change")),
    }
}

/// Wraps an event of this mode.
const fn interview_event(event: InterviewEvent) -> WorkflowEvent {
    WorkflowEvent::Mode(ModeEvent::Interview(event))
}

#[cfg(test)]
mod tests;
