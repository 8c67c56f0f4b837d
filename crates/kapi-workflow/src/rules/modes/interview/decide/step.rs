//! A proposed step, checked whole: what of it becomes events, or the rule that it breaks.
//!
//! The rule's words go back to the interviewer.

use crate::rules::decide::{asked, folded};
use crate::rules::decision_context::DecisionContext;
use crate::rules::event::WorkflowEvent;
use crate::rules::modes::Body;
use crate::rules::modes::interview::decide::interview_event;
use crate::rules::modes::interview::draft;
use crate::rules::modes::interview::draft::RESTATEMENTS_MAX;
use crate::rules::modes::interview::event::InterviewEvent;
use crate::rules::modes::interview::round::{
    Contradiction, InterviewAnswer, InterviewQuestion, Provenance,
};
use crate::rules::modes::interview::score::{ANSWERED_MIN, Clarity, Score};
use crate::rules::modes::interview::spec::APPROVE_SPEC;
use crate::rules::modes::interview::state::Interview;
use crate::rules::modes::interview::step::{Contradictions, Fact, InterviewIntent, InterviewStep};
use crate::rules::state::Workflow;

/// The most rounds of an interview.
pub(super) const ROUNDS_MAX: usize = 200;
/// The most answers in a row that are nobody's own.
pub(super) const WITHOUT_A_PERSON_MAX: usize = 3;
/// The most bytes of a question, a goal, a contradiction.
const QUESTION_BYTES_MAX: usize = 1_000;
/// The most bytes of a fact, or of a reason.
const FACT_BYTES_MAX: usize = 8_000;
/// The most files that a fact names, and reasons that a score has.
const LIST_MAX: usize = 20;
/// The most contradictions of an interview.
const CONTRADICTIONS_MAX: usize = 100;

/// Returns the events of a step.
///
/// # Errors
/// The rule that it breaks.
pub(super) fn step(
    workflow: &Workflow,
    interview: &Interview,
    step: &InterviewStep,
    given: &DecisionContext,
) -> Result<Vec<WorkflowEvent>, String> {
    let mut events = facts(interview, &step.facts, given)?;
    let now = after(workflow, interview, &events);
    events.extend(contradictions(&now, &step.contradictions)?);
    if let Some(clarity) = &step.clarity {
        events.extend(score(&now, *clarity, &step.reasons)?);
    }
    let now = after(workflow, interview, &events);
    match &step.next {
        InterviewIntent::Ask { question, settles } => events.push(ask(&now, question, settles)?),
        InterviewIntent::Restate { goal } => events.push(restate(&now, goal)?),
        InterviewIntent::Draft { spec } => {
            draft::check(&now, spec)?;
            let risks = draft::risks(&now, spec);
            let spec = Box::new(draft::with_record(&now, spec));
            events.push(interview_event(InterviewEvent::SpecDrafted { spec }));
            let decision = APPROVE_SPEC;
            events.push(asked(workflow, &events, decision, risks, given));
        }
    }
    Ok(events)
}

/// Returns the interview as it will stand after some events.
fn after(workflow: &Workflow, interview: &Interview, events: &[WorkflowEvent]) -> Interview {
    if let Body::Interview(after) = folded(workflow, events).body {
        *after
    } else {
        interview.clone()
    }
}

fn facts(
    interview: &Interview,
    facts: &[Fact],
    given: &DecisionContext,
) -> Result<Vec<WorkflowEvent>, String> {
    if facts.is_empty() {
        return Ok(Vec::new());
    }
    if interview.commit.is_none() {
        return Err("find no facts: there is no repository to look them up in".to_owned());
    }
    let in_a_row = interview.without_a_person() + facts.len();
    if in_a_row > WITHOUT_A_PERSON_MAX {
        return Err(format!(
            "ask the user: with these facts, {in_a_row} answers in a row would not be theirs; \
             the maximum is {WITHOUT_A_PERSON_MAX}"
        ));
    }
    let mut events = Vec::new();
    for (round, fact) in (interview.next_round()..).zip(facts) {
        text(
            "the question of a fact",
            &fact.question.text,
            QUESTION_BYTES_MAX,
        )?;
        text("a fact", &fact.answer, FACT_BYTES_MAX)?;
        if fact.refs.is_empty() || fact.refs.len() > LIST_MAX {
            return Err(format!("name 1 to {LIST_MAX} files for each fact"));
        }
        if let Some(wrong) = fact.refs.iter().find(|path| !is_inside(path)) {
            return Err(format!(
                "name files of the repository, relative to it, not {wrong:?}"
            ));
        }
        events.push(interview_event(InterviewEvent::FactFound {
            round,
            question: fact.question.clone(),
            answer: InterviewAnswer {
                text: fact.answer.clone(),
                provenance: Provenance::Repository,
                refs: fact.refs.clone(),
                at_ms: given.now_ms,
            },
        }));
    }
    Ok(events)
}

/// Tells whether a path names something below where it starts.
fn is_inside(path: &str) -> bool {
    !path.trim().is_empty()
        && path.len() <= QUESTION_BYTES_MAX
        && !path.starts_with('/')
        && !path.contains(char::is_control)
        && path.split('/').all(|part| part != "..")
}

fn contradictions(
    interview: &Interview,
    found: &[Contradictions],
) -> Result<Vec<WorkflowEvent>, String> {
    let mut events = Vec::new();
    for found in found {
        text("a contradiction", &found.text, QUESTION_BYTES_MAX)?;
        let mut rounds = found.rounds.clone();
        rounds.sort_unstable();
        rounds.dedup();
        let is_answered = |number: &u32| interview.answered().any(|(r, _)| r.number == *number);
        if rounds.len() < 2 || !rounds.iter().all(is_answered) {
            return Err(format!(
                "name at least two answered rounds for each contradiction, not {:?}",
                found.rounds
            ));
        }
        if interview
            .unsettled()
            .any(|(_, known)| known.rounds == rounds)
        {
            continue;
        }
        let contradiction = Contradiction {
            rounds,
            text: found.text.clone(),
            settled_by: None,
        };
        events.push(interview_event(InterviewEvent::ContradictionNamed {
            contradiction,
        }));
    }
    if interview.contradictions.len() + events.len() > CONTRADICTIONS_MAX {
        return Err(format!("name at most {CONTRADICTIONS_MAX} contradictions"));
    }
    Ok(events)
}

/// A score before enough is answered says nothing and is left out.
fn score(
    interview: &Interview,
    clarity: Clarity,
    reasons: &[String],
) -> Result<Option<WorkflowEvent>, String> {
    if !clarity.is_sound() {
        return Err("give clarity in thousandths, 0 to 1000".to_owned());
    }
    if reasons.len() > LIST_MAX || reasons.iter().any(|reason| reason.len() > FACT_BYTES_MAX) {
        return Err(format!("give at most {LIST_MAX} short reasons"));
    }
    let answered = u32::try_from(interview.answered().count()).unwrap_or(u32::MAX);
    if answered < ANSWERED_MIN {
        return Ok(None);
    }
    let score = Score {
        clarity,
        reasons: reasons.to_vec(),
        answered,
    };
    Ok(Some(interview_event(InterviewEvent::ScoreRecorded {
        score,
    })))
}

fn ask(
    interview: &Interview,
    question: &InterviewQuestion,
    settles: &[u32],
) -> Result<WorkflowEvent, String> {
    if interview.is_enough {
        return Err("ask nothing more: the user ended the questions; restate or draft".into());
    }
    if interview.rounds.len() >= ROUNDS_MAX {
        return Err(format!(
            "ask nothing more after {ROUNDS_MAX} rounds; restate or draft"
        ));
    }
    text("a question", &question.text, QUESTION_BYTES_MAX)?;
    if questions(&question.text) > 1 {
        return Err("ask one question at a time: this one has several question marks".to_owned());
    }
    if let Some(proposed) = &question.proposed {
        text("a proposed answer", proposed, FACT_BYTES_MAX)?;
    }
    let same = |text: &str| text.trim().eq_ignore_ascii_case(question.text.trim());
    if let Some((round, _)) = interview.answered().find(|(r, _)| same(&r.question.text)) {
        let number = round.number;
        return Err(format!(
            "ask something else: round {number} asked the same and was answered"
        ));
    }
    let unsettled: Vec<u32> = interview.unsettled().map(|(number, _)| number).collect();
    if let Some(unknown) = settles.iter().find(|number| !unsettled.contains(number)) {
        return Err(format!(
            "settle only contradictions that stand, which {unknown} does not"
        ));
    }
    if !unsettled.is_empty() && settles.is_empty() {
        return Err(format!(
            "ask about a contradiction first, and say in `settles` which: {unsettled:?} stand"
        ));
    }
    Ok(interview_event(InterviewEvent::QuestionAsked {
        round: interview.next_round(),
        question: question.clone(),
        settles: settles.to_vec(),
    }))
}

/// Counts the question marks that end something.
fn questions(text: &str) -> usize {
    let ends = |(location, _): &(usize, &str)| {
        let after = text.get(location + 1..).unwrap_or_default();
        after.chars().next().is_none_or(char::is_whitespace)
    };
    text.match_indices('?').filter(ends).count()
}

fn restate(interview: &Interview, goal: &str) -> Result<WorkflowEvent, String> {
    text("a goal", goal, QUESTION_BYTES_MAX)?;
    if goal.trim().contains('\n') {
        return Err("say the goal in one line".to_owned());
    }
    if interview.rounds.len() >= ROUNDS_MAX {
        return Err(format!("draft now: there are {ROUNDS_MAX} rounds already"));
    }
    if !interview.is_enough && interview.unsettled().next().is_some() {
        return Err("ask about the contradictions before you restate the goal".to_owned());
    }
    if interview.confirmed_goal() == Some(goal.trim()) {
        return Err("draft now: the user already confirmed this goal".to_owned());
    }
    let times = interview.restated.as_ref().map_or(0, |last| last.times);
    if times >= RESTATEMENTS_MAX {
        return Err(format!(
            "restate the goal no more than {RESTATEMENTS_MAX} times; draft with the user's answers"
        ));
    }
    Ok(interview_event(InterviewEvent::GoalRestated {
        round: interview.next_round(),
        goal: goal.trim().to_owned(),
    }))
}

fn text(what: &str, text: &str, bytes_max: usize) -> Result<(), String> {
    if text.trim().is_empty() || text.len() > bytes_max {
        return Err(format!(
            "give {what} 1 to {bytes_max} bytes, not {}",
            text.trim().len()
        ));
    }
    Ok(())
}
