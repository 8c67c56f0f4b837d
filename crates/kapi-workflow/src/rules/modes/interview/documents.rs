//! The artifacts of an interview: its rounds, its spec, its decision report.
//!
//! The spec is a projection of what was drafted and the rounds it rests on, so that its bytes stay
//! the same from the moment it is shown.

use kapi_spend::rules::day::Day;

use crate::rules::documents::WorkflowDocument;
use crate::rules::handover::{HandoverItem, Spec, SuccessCriterion};
use crate::rules::modes::interview::draft::left_for_later;
use crate::rules::modes::interview::round::{
    InterviewAnswer, Perspective, Provenance, QuestionReply, Round,
};
use crate::rules::modes::interview::state::Interview;
use crate::rules::report::{bullet, bullets, one_line, quoted};
use crate::rules::state::Workflow;

mod decision;

pub(crate) fn documents(workflow: &Workflow, interview: &Interview) -> Vec<WorkflowDocument> {
    let document = |name: &str, text: String| WorkflowDocument {
        name: name.to_owned(),
        text,
    };
    let mut all = vec![document("interview.md", transcript(workflow, interview))];
    all.extend(
        interview
            .spec
            .as_ref()
            .map(|spec| document("spec.md", spec_text(workflow, interview, spec))),
    );
    let report = decision::report(workflow, interview).render(workflow);
    all.push(document("decision-report.md", report));
    all
}

fn transcript(workflow: &Workflow, interview: &Interview) -> String {
    let (phase, subphase) = workflow.phase();
    let mut text = format!(
        "# Interview {}\n\nStarted by {} on {}; {}, phase {phase}{}.\n\n## Purpose\n\n{}",
        workflow.id,
        one_line(&workflow.started_by),
        Day::of_ms(workflow.started_at_ms),
        workflow.status.as_str(),
        subphase.map_or_else(String::new, |name| format!("/{name}")),
        quoted(&workflow.purpose)
    );
    text.push_str("\n## Clarity\n\n");
    text.push_str(&clarity(interview));
    for round in &interview.rounds {
        text.push_str(&round_text(round));
    }
    if !interview.contradictions.is_empty() {
        text.push_str("\n## Contradictions\n\n");
    }
    for contradiction in &interview.contradictions {
        let settled = contradiction.settled_by.map_or_else(
            || "not settled".to_owned(),
            |round| format!("settled in round {round}"),
        );
        let rounds = numbers(&contradiction.rounds);
        text.push_str(&bullet(&format!(
            "{} (rounds {rounds}; {settled})",
            one_line(&contradiction.text)
        )));
    }
    text
}

fn clarity(interview: &Interview) -> String {
    let Some(score) = &interview.score else {
        return "Not scored since the last answer. A score is only advice.\n".to_owned();
    };
    let mut text = format!("{}.\n", score.words());
    for reason in &score.reasons {
        text.push_str(&bullet(&one_line(reason)));
    }
    text
}

fn round_text(round: &Round) -> String {
    let question = &round.question;
    let mut text = format!(
        "\n## Round {} ({}, {})\n\n{}",
        round.number,
        question.dimension.as_str(),
        side(question.perspective),
        quoted(&question.text)
    );
    if let Some(proposed) = &question.proposed {
        text.push_str("\nProposed:\n\n");
        text.push_str(&quoted(proposed));
    }
    let reply = match &round.reply {
        QuestionReply::Open => "\nWaiting for an answer.\n".to_owned(),
        QuestionReply::Answered(answer) => {
            format!("\n{}:\n\n{}", answered_by(answer), quoted(&answer.text))
        }
        QuestionReply::Deferred { reason: None } => "\nLeft for later.\n".to_owned(),
        QuestionReply::Deferred {
            reason: Some(reason),
        } => format!("\nLeft for later:\n\n{}", quoted(reason)),
        QuestionReply::Withdrawn { reason } => format!("\nTaken back:\n\n{}", quoted(reason)),
    };
    text.push_str(&reply);
    text
}

const fn side(perspective: Perspective) -> &'static str {
    match perspective {
        Perspective::Breadth => "breadth",
        Perspective::Researcher => "researcher",
        Perspective::Simplifier => "simplifier",
        Perspective::Architect => "architect",
        Perspective::Contrarian => "contrarian",
        Perspective::Closer => "closer",
    }
}

fn answered_by(answer: &InterviewAnswer) -> String {
    let who = match answer.provenance {
        Provenance::Person => "Answered by the user",
        Provenance::PersonAccepted => "Accepted by the user as proposed",
        Provenance::AnswersFile => "Answered from the user's answers file",
        Provenance::Repository => "Found in the repository",
        Provenance::Assumption => "Assumed",
    };
    let refs: Vec<String> = answer.refs.iter().map(|path| one_line(path)).collect();
    let refs = if refs.is_empty() {
        String::new()
    } else {
        format!(" ({})", refs.join(", "))
    };
    format!("{who}{refs} on {}", Day::of_ms(answer.at_ms))
}

fn spec_text(workflow: &Workflow, interview: &Interview, spec: &Spec) -> String {
    format!(
        "# Spec {}\n\n## Purpose\n\n{}\n{}",
        workflow.id,
        quoted(&workflow.purpose),
        sections(interview, spec)
    )
}

/// Returns every section of a spec.
pub(crate) fn sections(interview: &Interview, spec: &Spec) -> String {
    let mut text = format!("## Goal\n\n{}", quoted(&spec.goal));
    let boundaries = &spec.boundaries;
    section(&mut text, "## Intent", &entries(&spec.intent));
    section(&mut text, "## Constraints", &entries(&spec.constraints));
    section(&mut text, "## Preferences", &entries(&spec.preferences));
    let criteria: Vec<String> = spec.success_criteria.iter().map(criterion).collect();
    section(&mut text, "## Success criteria", &criteria);
    section(&mut text, "## Methods", &entries(&spec.methods));
    text.push_str("\n## Decision boundaries\n");
    section(
        &mut text,
        "### May be decided alone",
        &entries(&boundaries.may),
    );
    section(
        &mut text,
        "### Must be asked first",
        &entries(&boundaries.must_ask),
    );
    section(
        &mut text,
        "### Must never be done",
        &entries(&boundaries.never),
    );
    section(&mut text, "## Open questions", &open(interview, spec));
    section(&mut text, "## Non-goals", &entries(&spec.non_goals));
    let context = spec.context.iter().map(|item| context(interview, item));
    let context: Vec<String> = context.collect();
    section(&mut text, "## Context", &context);
    text
}

fn section(text: &mut String, title: &str, lines: &[String]) {
    text.push('\n');
    text.push_str(title);
    text.push_str("\n\n");
    text.push_str(&bullets(lines));
}

fn entries(items: &[HandoverItem]) -> Vec<String> {
    let entry = |item: &HandoverItem| format!("{} ({})", item.text.trim(), basis(&item.rounds));
    items.iter().map(entry).collect()
}

fn basis(rounds: &[u32]) -> String {
    match rounds {
        [0] => "the purpose".to_owned(),
        [0, rest @ ..] => format!("the purpose, {}", basis(rest)),
        [one] => format!("round {one}"),
        several => format!("rounds {}", numbers(several)),
    }
}

fn numbers(rounds: &[u32]) -> String {
    let numbers: Vec<String> = rounds.iter().map(u32::to_string).collect();
    numbers.join(", ")
}

fn criterion(criterion: &SuccessCriterion) -> String {
    let proof = match (&criterion.verify, &criterion.exempt) {
        (Some(verify), _) => format!("verify: `{}`", one_line(verify)),
        (None, Some(exempt)) => format!("no command: {}", one_line(exempt)),
        (None, None) => "no command".to_owned(),
    };
    let basis = basis(&criterion.rounds);
    format!("{} ({basis})\n{proof}", criterion.text.trim())
}

/// What is not known, what was left for later included.
fn open(interview: &Interview, spec: &Spec) -> Vec<String> {
    let drafted = spec.open_questions.iter().map(|question| {
        let mark = if question.blocking { "blocking: " } else { "" };
        format!("{mark}{}", question.text.trim())
    });
    let mut lines: Vec<String> = drafted.collect();
    // A draft of an older version holds only what the interviewer wrote.
    for left in interview.rounds.iter().filter_map(left_for_later) {
        if !lines.contains(&left) {
            lines.push(left);
        }
    }
    lines
}

/// What is there already, with where that is known from: an assumption is marked as one.
fn context(interview: &Interview, item: &HandoverItem) -> String {
    let text = item.text.trim();
    if item.rounds.is_empty() {
        return format!("{text} (assumption)");
    }
    let answers = interview
        .answered()
        .filter(|(round, _)| item.rounds.contains(&round.number));
    let refs: Vec<String> = answers
        .flat_map(|(_, answer)| answer.refs.iter().map(|path| one_line(path)))
        .collect();
    let basis = basis(&item.rounds);
    if refs.is_empty() {
        return format!("{text} ({basis})");
    }
    format!("{text} ({basis}: {})", refs.join(", "))
}

#[cfg(test)]
mod tests;
