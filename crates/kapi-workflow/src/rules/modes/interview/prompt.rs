//! What an interviewer is asked: the rules, what is known with where it comes from, the shape of the
//! answer.
//!
//! All that others wrote stands in fences as data. Knows no agent.

use kapi_core::id::EffectId;
use kapi_core::quote::{fenced, head, tail, visible};

use crate::rules::effect::{AgentQuestion, WorkflowAction, WorkflowEffect};
use crate::rules::guidance;
use crate::rules::modes::interview::round::{Perspective, Provenance, QuestionReply, Round};
use crate::rules::modes::interview::score::{ANSWERED_MIN, CLOSING_FROM, Dimension};
use crate::rules::modes::interview::spec::INTERVIEWER;
use crate::rules::modes::interview::state::{Interview, InterviewPhase};
use crate::rules::state::Workflow;

/// Bytes of the purpose that are shown.
const PURPOSE_BYTES_MAX: usize = 32 * 1024;
/// Bytes of the rounds that are shown: the newest.
const ROUNDS_BYTES_MAX: usize = 128 * 1024;
/// Bytes of one question or answer that are shown.
const ANSWER_BYTES_MAX: usize = 8 * 1024;
/// Bytes of the draft so far that are shown.
const DRAFT_BYTES_MAX: usize = 64 * 1024;

/// The rules that stand in every prompt.
const RULES: &str = include_str!("prompt/rules.md");
/// The shape of the answer, with an example.
const SHAPE: &str = include_str!("prompt/shape.md");

/// Returns what should be under way now: the next question to the interviewer, while it is its turn.
#[must_use]
pub fn next(workflow: &Workflow, interview: &Interview) -> Vec<WorkflowEffect> {
    match interview.phase {
        InterviewPhase::Asking => vec![question(workflow, interview)],
        InterviewPhase::Awaiting
        | InterviewPhase::Restating
        | InterviewPhase::Spec
        | InterviewPhase::Branch
        | InterviewPhase::Linked => Vec::new(),
    }
}

/// Returns the name of the step that is asked for now: another one after every step that was taken,
/// and after every word of a person that made it unwanted.
#[must_use]
pub fn effect_id(interview: &Interview) -> EffectId {
    let attempt = interview.restarts.saturating_add(1);
    EffectId::new(ordinal(interview), INTERVIEWER.name, attempt)
}

const fn ordinal(interview: &Interview) -> u32 {
    interview.steps.saturating_add(1)
}

fn question(workflow: &Workflow, interview: &Interview) -> WorkflowEffect {
    let terms = &workflow.terms;
    WorkflowEffect {
        id: effect_id(interview),
        workflow: workflow.id.clone(),
        action: WorkflowAction::Ask(Box::new(AgentQuestion {
            role: &INTERVIEWER,
            ordinal: ordinal(interview),
            agent: terms.agent.clone(),
            prompt: prompt(workflow, interview),
            guidance: guidance::documents(workflow).to_vec(),
            commit: interview.commit.clone(),
            since: None,
            deadline_ms: terms.question_timeout_ms,
            sandbox: terms.sandbox,
            network: terms.network,
        })),
    }
}

/// Returns what an interviewer is told; also for a host whose own session interviews.
#[must_use]
pub fn prompt(workflow: &Workflow, interview: &Interview) -> String {
    let mut parts = vec![RULES.trim_end().to_owned()];
    parts.push(now(interview));
    parts.push(data(
        "Purpose (round 0)",
        &workflow.purpose,
        PURPOSE_BYTES_MAX,
    ));
    parts.push(rounds(interview));
    parts.extend(contradictions(interview));
    parts.extend(draft(interview));
    parts.extend(refused(interview));
    parts.push(SHAPE.trim_end().to_owned());
    parts.join("\n\n")
}

/// Returns what holds for this step alone.
fn now(interview: &Interview) -> String {
    let mut lines = vec![format!("- The next round is {}.", interview.next_round())];
    let repository = if interview.commit.is_some() {
        "- A repository is checked out where you are, read-only. Look up what it can answer and give \
         it as `facts`, with the files that say it."
    } else {
        "- There is no repository: give no `facts`, and leave `context` out of the clarity."
    };
    lines.push(repository.to_owned());
    let without = interview.without_a_person();
    if without > 0 {
        lines.push(format!(
            "- The last {without} answers are not the person's; at most 3 in a row may be."
        ));
    }
    lines.push(scoring(interview));
    if interview.is_enough {
        lines.push(
            "- The person said that it is enough: ask nothing more. Say the goal back or draft; a \
             section of which nothing was said stays empty, and what is not known is an open question."
                .to_owned(),
        );
    } else {
        let sides: Vec<&str> = perspectives(interview)
            .iter()
            .map(|side| side_words(*side))
            .collect();
        lines.push(format!(
            "- Put the question from one of these sides: {}.",
            sides.join("; ")
        ));
    }
    lines.push(goal(interview));
    format!("## Now\n\n{}", lines.join("\n"))
}

fn scoring(interview: &Interview) -> String {
    let answered = interview.answered().count();
    if u32::try_from(answered).unwrap_or(u32::MAX) < ANSWERED_MIN {
        return format!(
            "- {answered} rounds are answered: give no `clarity` before {ANSWERED_MIN} are."
        );
    }
    match &interview.score {
        Some(score) => format!("- The last score: {}.", score.words()),
        None => "- Give `clarity` anew, from the answers alone; what was left for later counts \
                 neither for nor against."
            .to_owned(),
    }
}

fn goal(interview: &Interview) -> String {
    match &interview.restated {
        Some(restated) if restated.is_confirmed => format!(
            "- The person confirmed this goal; a draft repeats it word for word: {:?}.",
            restated.goal
        ),
        Some(restated) => format!(
            "- The goal was said back {} times and not confirmed, lastly as {:?}.",
            restated.times, restated.goal
        ),
        None => "- The goal was not said back yet.".to_owned(),
    }
}

/// Returns the sides from which the next question is put: few at first, and those that bring it to
/// an end once it is nearly clear.
#[must_use]
pub fn perspectives(interview: &Interview) -> &'static [Perspective] {
    let is_closing = interview
        .score
        .as_ref()
        .is_some_and(|score| score.clarity.ambiguity() <= CLOSING_FROM);
    if is_closing {
        return &[
            Perspective::Closer,
            Perspective::Breadth,
            Perspective::Architect,
        ];
    }
    match interview.next_round() {
        0..=2 => &[
            Perspective::Breadth,
            Perspective::Researcher,
            Perspective::Simplifier,
        ],
        3.. => &[
            Perspective::Breadth,
            Perspective::Researcher,
            Perspective::Simplifier,
            Perspective::Architect,
            Perspective::Contrarian,
        ],
    }
}

const fn side_words(side: Perspective) -> &'static str {
    match side {
        Perspective::Breadth => "`breadth` (what was not talked about yet)",
        Perspective::Researcher => "`researcher` (what is there already)",
        Perspective::Simplifier => "`simplifier` (what could be left out)",
        Perspective::Architect => "`architect` (what the parts are, and what must be first)",
        Perspective::Contrarian => "`contrarian` (what if the opposite holds; cause or symptom)",
        Perspective::Closer => "`closer` (what is missing before it is complete)",
    }
}

fn rounds(interview: &Interview) -> String {
    if interview.rounds.is_empty() {
        return "## Rounds so far\n\nNone.".to_owned();
    }
    let reported: Vec<String> = interview.rounds.iter().map(round).collect();
    let reported = reported.join("\n\n");
    let shown = tail(&reported, ROUNDS_BYTES_MAX);
    format!("## Rounds so far\n\n{}", fenced(shown, ""))
}

fn round(round: &Round) -> String {
    let question = clipped(&round.question.text);
    let dimension: Dimension = round.question.dimension;
    let reply = match &round.reply {
        QuestionReply::Open => "(waits for the person)".to_owned(),
        QuestionReply::Answered(answer) => {
            let refs = match answer.refs.as_slice() {
                [] => String::new(),
                refs => format!(" ({})", refs.join(", ")),
            };
            let source = source(answer.provenance);
            format!("{source}{refs}: {}", clipped(&answer.text))
        }
        QuestionReply::Deferred { reason } => {
            format!(
                "left for later: {}",
                clipped(reason.as_deref().unwrap_or("no reason given"))
            )
        }
        QuestionReply::Withdrawn { reason } => format!("taken back: {}", clipped(reason)),
    };
    let number = round.number;
    format!(
        "[{number}] ({}) {question}\n    {reply}",
        dimension.as_str()
    )
}

const fn source(provenance: Provenance) -> &'static str {
    match provenance {
        Provenance::Person => "the person",
        Provenance::PersonAccepted => "the person, accepting what was proposed",
        Provenance::AnswersFile => "the person's file",
        Provenance::Repository => "the repository",
        Provenance::Assumption => "an assumption",
    }
}

fn clipped(text: &str) -> String {
    visible(head(text.trim(), ANSWER_BYTES_MAX))
}

fn contradictions(interview: &Interview) -> Option<String> {
    let lines: Vec<String> = interview
        .unsettled()
        .map(|(number, known)| {
            let text = clipped(&known.text);
            format!("{number}. rounds {:?}: {text}", known.rounds)
        })
        .collect();
    if lines.is_empty() {
        return None;
    }
    Some(format!(
        "## Contradictions that stand\n\nAsk about them before anything else, with their numbers in \
         `settles`.\n\n{}",
        fenced(&lines.join("\n"), "")
    ))
}

/// Returns the draft so far, which a revision starts from.
fn draft(interview: &Interview) -> Option<String> {
    let spec = interview.spec.as_ref()?;
    let text = crate::rules::modes::interview::documents::sections(interview, spec);
    let title = "The draft so far: keep of it what the last remark leaves standing";
    Some(data(title, &text, DRAFT_BYTES_MAX))
}

fn refused(interview: &Interview) -> Option<String> {
    let lines: Vec<String> = interview
        .refused
        .iter()
        .map(|why| format!("- {}", clipped(why)))
        .collect();
    if lines.is_empty() {
        return None;
    }
    Some(format!(
        "## Your last answers were refused\n\nNothing of them was recorded. Mend this:\n\n{}",
        fenced(&lines.join("\n"), "")
    ))
}

fn data(title: &str, text: &str, bytes_max: usize) -> String {
    let shown = visible(head(text, bytes_max));
    format!("## {title}\n\n{}", fenced(&shown, ""))
}

#[cfg(test)]
mod tests;
