//! The decision report of an interview: what was decided about the spec, on what grounds.
//!
//! Generated from state alone; the interviewer's reasons are marked as its own.

use kapi_core::link::WorkflowRelation;

use crate::rules::modes::interview::draft;
use crate::rules::modes::interview::round::{Provenance, QuestionReply};
use crate::rules::modes::interview::state::Interview;
use crate::rules::next_command::next_commands;
use crate::rules::report::{DecisionReport, approval_line, one_line};
use crate::rules::state::Workflow;

pub(super) fn report(workflow: &Workflow, interview: &Interview) -> DecisionReport {
    DecisionReport {
        scope: vec![
            format!("Purpose: {}", one_line(&workflow.purpose)),
            "Decision: whether spec.md describes what is wanted, and how to continue.".to_owned(),
        ],
        inputs: inputs(interview),
        conditions: conditions(interview),
        options: options(workflow, interview),
        chosen: chosen(workflow),
        rationale: rationale(workflow, interview),
        verification: verification(workflow, interview),
        risks: risks(workflow, interview),
        follow_up: follow_up(workflow, interview),
    }
}

fn inputs(interview: &Interview) -> Vec<String> {
    let count = |wanted: fn(Provenance) -> bool| {
        interview
            .answered()
            .filter(|(_, answer)| wanted(answer.provenance))
            .count()
    };
    let persons = count(Provenance::is_persons);
    let accepted = count(|provenance| provenance == Provenance::PersonAccepted);
    let facts = count(|provenance| provenance == Provenance::Repository);
    let mut lines = vec![format!(
        "{} rounds: {persons} answered by the user ({accepted} by accepting the proposal), \
         {facts} by the repository; all of them in interview.md",
        interview.rounds.len()
    )];
    lines.extend(
        interview
            .commit
            .as_ref()
            .map(|commit| format!("The repository at commit {}", one_line(commit))),
    );
    let mut files: Vec<String> = interview
        .answered()
        .flat_map(|(_, answer)| answer.refs.iter().map(|path| one_line(path)))
        .collect();
    files.sort();
    files.dedup();
    if !files.is_empty() {
        lines.push(format!(
            "Files that answered a question: {}",
            files.join(", ")
        ));
    }
    lines
}

fn conditions(interview: &Interview) -> Vec<String> {
    let check = |holds: bool, text: &str| {
        let mark = if holds { "met" } else { "not met" };
        format!("{mark}: {text}")
    };
    let unsettled = interview.unsettled().count();
    let mut lines = vec![
        check(interview.open().is_none(), "no question is open"),
        check(
            interview.confirmed_goal().is_some(),
            "the user confirmed the restated goal",
        ),
        check(unsettled == 0, "no contradiction is open"),
    ];
    if let Some(spec) = &interview.spec {
        let sound = draft::check(interview, spec);
        let text = "every requirement comes from the user, every section and proof is present, \
            and nothing blocking is open";
        lines.push(check(sound.is_ok(), text));
    }
    lines.push(interview.score.as_ref().map_or_else(
        || "for information: clarity was not scored since the last answer".to_owned(),
        |score| format!("for information: {}", score.words()),
    ));
    if interview.is_enough {
        lines.push("the user ended the questions".to_owned());
    }
    lines
}

fn options(workflow: &Workflow, interview: &Interview) -> Vec<String> {
    let mut lines = vec![
        "approve the spec; have it revised; continue the interview; abandon it".to_owned(),
        "continue in Ralph (a build) or Autoresearch (a metric)".to_owned(),
    ];
    for round in &interview.rounds {
        if let (Some(proposed), QuestionReply::Answered(answer)) =
            (&round.question.proposed, &round.reply)
            && answer.provenance != Provenance::PersonAccepted
        {
            lines.push(format!(
                "round {}: {} was proposed; the answer was {}",
                round.number,
                one_line(proposed),
                one_line(&answer.text)
            ));
        }
    }
    lines.extend(
        interview
            .contradictions
            .iter()
            .map(|known| format!("these exclude each other: {}", one_line(&known.text))),
    );
    lines.extend(workflow.revisions.iter().map(|revision| {
        format!(
            "changed in {}: {}",
            revision.phase,
            one_line(&revision.text)
        )
    }));
    lines
}

fn chosen(workflow: &Workflow) -> Vec<String> {
    let mut lines: Vec<String> = workflow.approvals.iter().map(approval_line).collect();
    lines.extend(
        workflow
            .links
            .iter()
            .filter_map(|link| match link.relation {
                WorkflowRelation::Successor => {
                    Some(format!("continues in {} {}", link.mode, link.workflow))
                }
                WorkflowRelation::Context
                | WorkflowRelation::Integrates
                | WorkflowRelation::IntegratedBy => None,
            }),
    );
    if workflow.approvals.is_empty() {
        lines.push("Nothing was approved yet.".to_owned());
    }
    lines
}

fn rationale(workflow: &Workflow, interview: &Interview) -> Vec<String> {
    let intent = interview.spec.iter().flat_map(|spec| &spec.intent);
    let mut lines: Vec<String> = intent
        .map(|item| format!("the user's intent: {}", one_line(&item.text)))
        .collect();
    if lines.is_empty() {
        lines.push(format!(
            "the user's purpose: {}",
            one_line(&workflow.purpose)
        ));
    }
    let reasons = interview.score.iter().flat_map(|score| &score.reasons);
    lines.extend(reasons.map(|reason| format!("the interviewer's words: {}", one_line(reason))));
    lines
}

fn verification(workflow: &Workflow, interview: &Interview) -> Vec<String> {
    let mut lines = vec!["file:interview.md".to_owned()];
    if let Some(pending) = &workflow.pending {
        lines.push(format!("file:spec.md, sha256 {} (pending)", pending.sha256));
    }
    lines.extend(
        workflow
            .approvals
            .iter()
            .map(|approval| format!("file:spec.md, sha256 {}", approval.sha256)),
    );
    lines.extend(workflow.evidence.iter().map(|evidence| {
        format!(
            "{}: {}",
            one_line(&evidence.reference),
            one_line(&evidence.summary)
        )
    }));
    let criteria = interview
        .spec
        .iter()
        .flat_map(|spec| &spec.success_criteria);
    let commands = criteria.filter_map(|criterion| criterion.verify.as_ref());
    lines.extend(commands.map(|command| format!("will be verified by `{}`", one_line(command))));
    lines
}

fn risks(workflow: &Workflow, interview: &Interview) -> Vec<String> {
    let accepted = workflow
        .approvals
        .iter()
        .flat_map(|approval| &approval.accepted);
    let mut lines: Vec<String> = accepted
        .map(|risk| format!("accepted by the user: {}", one_line(risk)))
        .collect();
    let pending = workflow.pending.iter().flat_map(|pending| &pending.risks);
    lines.extend(pending.map(|risk| one_line(risk)));
    let assumptions = interview.spec.iter().flat_map(|spec| &spec.context);
    lines.extend(
        assumptions
            .filter(|item| item.rounds.is_empty())
            .map(|item| format!("assumed: {}", one_line(&item.text))),
    );
    lines
}

fn follow_up(workflow: &Workflow, interview: &Interview) -> Vec<String> {
    let left: Vec<String> = interview
        .rounds
        .iter()
        .filter_map(draft::left_for_later)
        .collect();
    let open = interview.spec.iter().flat_map(|spec| &spec.open_questions);
    let open = open.filter(|question| !left.contains(&question.text));
    let mut lines: Vec<String> = open
        .map(|question| format!("open: {}", one_line(&question.text)))
        .collect();
    let deferred = interview
        .rounds
        .iter()
        .filter(|round| matches!(round.reply, QuestionReply::Deferred { .. }));
    lines.extend(
        deferred.map(|round| format!("left for later: {}", one_line(&round.question.text))),
    );
    lines.extend(
        next_commands(workflow)
            .first()
            .map(|command| format!("next: `{}`", one_line(command))),
    );
    lines
}
