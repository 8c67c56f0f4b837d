//! What a person says in an interview.
//!
//! Only here does an answer become a person's.

use crate::rules::decide::{said, wrong_phase};
use crate::rules::decision_context::DecisionContext;
use crate::rules::denied::WorkflowRule;
use crate::rules::event::WorkflowEvent;
use crate::rules::modes::interview::command::InterviewCommand;
use crate::rules::modes::interview::decide::interview_event;
use crate::rules::modes::interview::event::InterviewEvent;
use crate::rules::modes::interview::round::{InterviewAnswer, Provenance, Round};
use crate::rules::modes::interview::state::{Interview, InterviewPhase};
use crate::rules::state::Workflow;

/// Words that confirm a goal that was said back.
const YES: [&str; 8] = [
    "y",
    "yes",
    "ok",
    "okay",
    "right",
    "correct",
    "confirm",
    "confirmed",
];

/// Returns the open round if it is this one.
pub(super) fn is_open<'interview>(
    workflow: &Workflow,
    interview: &'interview Interview,
    round: u32,
    action: &'static str,
) -> Result<&'interview Round, WorkflowRule> {
    let Some(open) = interview.open() else {
        return Err(wrong_phase(workflow, action));
    };
    if open.number != round {
        let rule = format!(
            "{action}: round {round} is not open, but round {}",
            open.number
        );
        return Err(WorkflowRule::Malformed { rule });
    }
    Ok(open)
}

pub(super) fn answer(
    workflow: &Workflow,
    interview: &Interview,
    command: &InterviewCommand,
    given: &DecisionContext,
) -> Result<Vec<WorkflowEvent>, WorkflowRule> {
    let action = "answer a question";
    let InterviewCommand::Answer {
        round,
        text,
        provenance,
    } = command
    else {
        return Err(wrong_phase(workflow, action));
    };
    let open = is_open(workflow, interview, *round, action)?;
    if !provenance.is_persons() {
        let rule = "answer for the user: the repository and assumptions cannot";
        return Err(WorkflowRule::Malformed {
            rule: rule.to_owned(),
        });
    }
    let is_yes = interview.phase == InterviewPhase::Restating && is_yes(text);
    let proposed = open.question.proposed.as_ref();
    let (text, accepts) = match proposed {
        Some(proposed) if text.trim().is_empty() || is_yes || text.trim() == proposed.trim() => {
            (proposed.clone(), true)
        }
        Some(_) | None => (
            said(text, "give an empty answer without a proposal")?,
            false,
        ),
    };
    let provenance = match (provenance, accepts) {
        (Provenance::Person, true) => Provenance::PersonAccepted,
        (provenance, _) => *provenance,
    };
    let answer = InterviewAnswer {
        text,
        provenance,
        refs: Vec::new(),
        at_ms: given.now_ms,
    };
    let goal = open.question.proposed.clone();
    let round = *round;
    let mut events = vec![interview_event(InterviewEvent::AnswerRecorded {
        round,
        answer,
    })];
    if let (InterviewPhase::Restating, true, Some(goal)) = (interview.phase, accepts, goal) {
        events.push(interview_event(InterviewEvent::GoalConfirmed {
            round,
            goal,
        }));
    }
    Ok(events)
}

fn is_yes(text: &str) -> bool {
    let word = text
        .trim()
        .trim_end_matches(['.', '!'])
        .to_ascii_lowercase();
    YES.contains(&word.as_str())
}

/// An open question is taken back by it: the next step restates or drafts.
pub(super) fn enough(
    workflow: &Workflow,
    interview: &Interview,
) -> Result<Vec<WorkflowEvent>, WorkflowRule> {
    match interview.phase {
        InterviewPhase::Asking | InterviewPhase::Awaiting | InterviewPhase::Restating => {}
        InterviewPhase::Spec | InterviewPhase::Branch | InterviewPhase::Linked => {
            return Err(wrong_phase(workflow, "end the questions"));
        }
    }
    let open = interview.open().map(|open| {
        interview_event(InterviewEvent::QuestionWithdrawn {
            round: open.number,
            reason: "the user ended the questions".to_owned(),
        })
    });
    let said = (!interview.is_enough).then(|| interview_event(InterviewEvent::EnoughSaid {}));
    Ok(open.into_iter().chain(said).collect())
}

/// Returns a person's words as a round of their own.
pub(super) fn remarked(
    interview: &Interview,
    text: &str,
    given: &DecisionContext,
) -> WorkflowEvent {
    interview_event(InterviewEvent::Remarked {
        round: interview.next_round(),
        text: text.to_owned(),
        at_ms: given.now_ms,
    })
}

/// Returns what lets the interview go on from what was drafted.
pub(super) fn reopened(
    interview: &Interview,
    reason: &str,
    given: &DecisionContext,
) -> Vec<WorkflowEvent> {
    let reopened = InterviewEvent::Reopened {
        reason: reason.to_owned(),
    };
    vec![
        remarked(interview, reason, given),
        interview_event(reopened),
    ]
}
