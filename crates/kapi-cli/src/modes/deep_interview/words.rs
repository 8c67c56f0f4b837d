//! An interview in words: a line for each of its facts, and what it asks its person now.

use kapi_workflow::rules::modes::ModeEvent;
use kapi_workflow::rules::modes::interview::event::InterviewEvent;
use kapi_workflow::rules::modes::interview::round::Provenance;
use kapi_workflow::rules::state::Workflow;

use crate::event_words::first_line;
use crate::modes::deep_interview::question::{PersonPrompt, asked};
use crate::modes::{Front, WaitsFor};
use crate::workflow::page::ModePage;
use crate::workflow::words;

/// What the mode says.
pub(in crate::modes) static FRONT: Front = Front {
    describe,
    is_shown_next,
    summary: |_, _| {},
    details: |_, _| {},
    live: |_| None,
    page: |_| ModePage::default(),
    next: |_| Vec::new(),
    trusted: |_| Vec::new(),
    waits_for,
};

/// Returns a fact in words.
fn describe(event: &ModeEvent) -> Option<String> {
    if let ModeEvent::Interview(event) = event {
        Some(interview(event))
    } else {
        None
    }
}

/// Tells whether a fact is what a person at the keyboard is shown whole right after it: a question,
/// the goal said back, how clear it is.
const fn is_shown_next(event: &ModeEvent) -> bool {
    matches!(
        event,
        ModeEvent::Interview(
            InterviewEvent::QuestionAsked { .. }
                | InterviewEvent::GoalRestated { .. }
                | InterviewEvent::ScoreRecorded { .. }
        )
    )
}

/// Returns what an interview asks its person now.
fn waits_for(workflow: &Workflow) -> Option<WaitsFor> {
    let (_, asked) = asked(workflow)?;
    let (kind, what) = match asked {
        PersonPrompt::Question(round) => (
            "question",
            format!(
                "question {}: {}",
                round.number,
                first_line(&round.question.text)
            ),
        ),
        PersonPrompt::Goal { goal, .. } => (
            "restated_goal",
            format!("is this the goal: {}", first_line(goal)),
        ),
    };
    Some(WaitsFor {
        kind,
        what,
        on_yes: "you answer it, and the interview continues",
        change: &["--answer '<text>'", "--answer /later"],
    })
}

fn interview(event: &InterviewEvent) -> String {
    match event {
        InterviewEvent::QuestionAsked {
            round, question, ..
        } => {
            format!("question {round}: {}", first_line(&question.text))
        }
        InterviewEvent::GoalRestated { goal, .. } => {
            format!("the goal as understood: {}", first_line(goal))
        }
        InterviewEvent::FactFound {
            question, answer, ..
        } => format!(
            "looked up: {} {} ({})",
            first_line(&question.text),
            first_line(&answer.text),
            answer.refs.join(", ")
        ),
        InterviewEvent::AnswerRecorded { round, answer } => format!(
            "answer {round} ({}): {}",
            provenance(answer.provenance),
            first_line(&answer.text)
        ),
        InterviewEvent::Remarked { text, .. } => format!("said: {}", first_line(text)),
        InterviewEvent::GoalConfirmed { goal, .. } => {
            format!("the goal is confirmed: {}", first_line(goal))
        }
        InterviewEvent::QuestionDeferred { round, .. } => {
            format!("question {round} is left for later")
        }
        InterviewEvent::QuestionWithdrawn { round, .. } => {
            format!("question {round} is taken back")
        }
        InterviewEvent::ScoreRecorded { score } => format!("clarity: {}", score.words()),
        InterviewEvent::ContradictionNamed { contradiction } => format!(
            "answers {} contradict each other: {}",
            words::numbers(&contradiction.rounds),
            first_line(&contradiction.text)
        ),
        InterviewEvent::EnoughSaid {} => "that is enough: drafting comes next".to_owned(),
        InterviewEvent::StepRefused { why } => {
            format!("asking the interviewer again: {}", first_line(why))
        }
        InterviewEvent::SpecDrafted { spec } => {
            format!("a spec was drafted: {}", first_line(&spec.goal))
        }
        InterviewEvent::Branched { mode, workflow, .. } => {
            format!("it continues as {mode} {workflow}")
        }
        InterviewEvent::Reopened { reason } => {
            format!("the interview continues: {}", first_line(reason))
        }
    }
}

/// Returns where an answer came from, in words.
const fn provenance(provenance: Provenance) -> &'static str {
    match provenance {
        Provenance::Person => "you",
        Provenance::PersonAccepted => "you, accepting the proposal",
        Provenance::AnswersFile => "your answers file",
        Provenance::Repository => "the repository",
        Provenance::Assumption => "an assumption",
    }
}
