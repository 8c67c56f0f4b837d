//! The fold of an interview's events: total, without rules.

use crate::rules::modes::interview::event::InterviewEvent;
use crate::rules::modes::interview::round::{
    InterviewAnswer, InterviewQuestion, Perspective, Provenance, QuestionReply, Round,
};
use crate::rules::modes::interview::score::Dimension;
use crate::rules::modes::interview::state::{GoalRestatement, Interview, InterviewPhase};

/// What a person's remark is recorded as the answer to.
pub const REMARK: &str = "What should be different?";

pub(crate) fn approved(interview: &mut Interview) {
    interview.phase = InterviewPhase::Branch;
}

pub(crate) fn evolve(interview: &mut Interview, event: &InterviewEvent) {
    match event {
        InterviewEvent::QuestionAsked {
            round,
            question,
            settles,
        } => {
            stepped(interview, InterviewPhase::Awaiting);
            push(interview, *round, question.clone(), QuestionReply::Open);
            settles_by(interview, settles);
        }
        InterviewEvent::GoalRestated { round, goal } => restated(interview, *round, goal),
        InterviewEvent::FactFound {
            round,
            question,
            answer,
        } => {
            let reply = QuestionReply::Answered(answer.clone());
            push(interview, *round, question.clone(), reply);
            interview.score = None;
        }
        InterviewEvent::AnswerRecorded { round, answer } => answered(interview, *round, answer),
        InterviewEvent::Remarked { round, text, at_ms } => {
            let answer = said_unasked(text, *at_ms);
            push(interview, *round, remark(), QuestionReply::Answered(answer));
            interview.score = None;
        }
        InterviewEvent::GoalConfirmed { goal, .. } => {
            if let Some(restated) = &mut interview.restated {
                restated.goal.clone_from(goal);
                restated.is_confirmed = true;
            }
        }
        InterviewEvent::QuestionDeferred { round, reason } => {
            let reason = reason.clone();
            close(interview, *round, QuestionReply::Deferred { reason });
        }
        InterviewEvent::QuestionWithdrawn { round, reason } => {
            let reason = reason.clone();
            close(interview, *round, QuestionReply::Withdrawn { reason });
        }
        InterviewEvent::ScoreRecorded { score } => {
            interview.streak = if score.is_good_enough() {
                interview.streak.saturating_add(1)
            } else {
                0
            };
            interview.score = Some(score.clone());
        }
        InterviewEvent::ContradictionNamed { contradiction } => {
            interview.contradictions.push(contradiction.clone());
        }
        InterviewEvent::EnoughSaid {} => {
            interview.is_enough = true;
            interview.restarts = interview.restarts.saturating_add(1);
        }
        InterviewEvent::StepRefused { why } => {
            interview.steps = interview.steps.saturating_add(1);
            interview.refused.push(why.clone());
        }
        InterviewEvent::SpecDrafted { spec } => {
            stepped(interview, InterviewPhase::Spec);
            interview.spec = Some(spec.clone());
        }
        InterviewEvent::Branched { .. } => interview.phase = InterviewPhase::Linked,
        InterviewEvent::Reopened { .. } => reopened(interview),
    }
}

fn stepped(interview: &mut Interview, phase: InterviewPhase) {
    interview.steps = interview.steps.saturating_add(1);
    interview.refused.clear();
    interview.phase = phase;
}

/// What was approved or drafted stands as the draft so far; everything that rested on it is open.
fn reopened(interview: &mut Interview) {
    interview.phase = InterviewPhase::Asking;
    interview.restarts = interview.restarts.saturating_add(1);
    interview.score = None;
    interview.streak = 0;
    interview.is_enough = false;
    interview.refused.clear();
    if let Some(restated) = &mut interview.restated {
        restated.times = 0;
    }
}

fn restated(interview: &mut Interview, round: u32, goal: &str) {
    stepped(interview, InterviewPhase::Restating);
    let times = interview.restated.as_ref().map_or(0, |last| last.times);
    interview.restated = Some(GoalRestatement {
        goal: goal.to_owned(),
        round,
        is_confirmed: false,
        times: times.saturating_add(1),
    });
    let question = InterviewQuestion {
        text: format!("Is this what you want? {goal}"),
        dimension: Dimension::Goal,
        perspective: Perspective::Closer,
        proposed: Some(goal.to_owned()),
    };
    push(interview, round, question, QuestionReply::Open);
}

fn answered(interview: &mut Interview, round: u32, answer: &InterviewAnswer) {
    close(interview, round, QuestionReply::Answered(answer.clone()));
    interview.score = None;
    let settles = interview
        .round(round)
        .map_or_else(Vec::new, |round| round.settles.clone());
    for number in settles {
        let location = usize::try_from(number)
            .unwrap_or(usize::MAX)
            .wrapping_sub(1);
        if let Some(contradiction) = interview.contradictions.get_mut(location) {
            contradiction.settled_by = Some(round);
        }
    }
}

fn close(interview: &mut Interview, round: u32, reply: QuestionReply) {
    let found = interview.rounds.iter_mut().find(|r| r.number == round);
    if let Some(found) = found {
        found.reply = reply;
    }
    interview.phase = InterviewPhase::Asking;
}

fn push(interview: &mut Interview, number: u32, question: InterviewQuestion, reply: QuestionReply) {
    interview.rounds.push(Round {
        number,
        question,
        reply,
        settles: Vec::new(),
    });
}

/// The open question settles these contradictions once it is answered.
fn settles_by(interview: &mut Interview, settles: &[u32]) {
    if let Some(last) = interview.rounds.last_mut() {
        last.settles = settles.to_vec();
    }
}

fn said_unasked(text: &str, at_ms: i64) -> InterviewAnswer {
    InterviewAnswer {
        text: text.to_owned(),
        provenance: Provenance::Person,
        refs: Vec::new(),
        at_ms,
    }
}

fn remark() -> InterviewQuestion {
    InterviewQuestion {
        text: REMARK.to_owned(),
        dimension: Dimension::Goal,
        perspective: Perspective::Breadth,
        proposed: None,
    }
}
