//! What a draft must hold before a person is asked about it, and what speaks against it all the same.
//!
//! Rules are refused with; risks are shown, and accepted with the approval.

use kapi_core::quote::head;

use crate::rules::handover::{
    HandoverAnswer, HandoverItem, HandoverQuestion, Spec, SuccessCriterion,
};
use crate::rules::modes::interview::round::{QuestionReply, Round};
use crate::rules::modes::interview::score::{STREAK, thousandths};
use crate::rules::modes::interview::state::Interview;

/// How often a goal is said back at most before it is drafted as it is.
pub const RESTATEMENTS_MAX: u32 = 2;

/// The most entries of a section.
const ITEMS_MAX: usize = 100;
/// The most bytes of one entry.
const ITEM_BYTES_MAX: usize = 4_000;

/// A section whose entries are requirements, by name.
type Section<'spec> = (&'static str, &'spec [HandoverItem]);

/// Checks every rule of a draft.
///
/// # Errors
/// The rules it breaks, as one text that tells the interviewer what to do.
pub(crate) fn check(interview: &Interview, spec: &Spec) -> Result<(), String> {
    let mut faults = readiness(interview, spec);
    if !interview.is_enough {
        faults.extend(missing(interview, spec).into_iter().map(|name| {
            format!("put something under {name}; if the user wants nothing, state that")
        }));
    }
    for (name, items) in requirements(spec) {
        for (location, item) in (1..).zip(items) {
            faults.extend(basis(
                interview,
                &format!("{name} {location}"),
                &item.rounds,
            ));
            faults.extend(text(&format!("{name} {location}"), &item.text));
        }
        faults.extend(length(name, items.len()));
    }
    for (location, item) in (1..).zip(&spec.context) {
        let name = format!("context {location}");
        faults.extend(answered(interview, &name, &item.rounds));
        faults.extend(text(&name, &item.text));
    }
    for (location, criterion) in (1..).zip(&spec.success_criteria) {
        let name = format!("success_criteria {location}");
        faults.extend(basis(interview, &name, &criterion.rounds));
        faults.extend(text(&name, &criterion.text));
        faults.extend(provable(&name, criterion));
    }
    for (location, question) in (1..).zip(&spec.open_questions) {
        faults.extend(text(&format!("open_questions {location}"), &question.text));
    }
    faults.extend(length("context", spec.context.len()));
    faults.extend(length("success_criteria", spec.success_criteria.len()));
    faults.extend(length("open_questions", spec.open_questions.len()));
    if faults.is_empty() {
        return Ok(());
    }
    Err(format!("fix the draft: {}", faults.join("; ")))
}

/// Returns what is not settled enough to be drafted.
fn readiness(interview: &Interview, spec: &Spec) -> Vec<String> {
    let mut faults = Vec::new();
    faults.extend(text("goal", &spec.goal));
    let times = interview.restated.as_ref().map_or(0, |last| last.times);
    match interview.confirmed_goal() {
        Some(goal) if goal != spec.goal.trim() => {
            faults.push(format!("give the goal as the user confirmed it: {goal:?}"));
        }
        None if !interview.is_enough && times < RESTATEMENTS_MAX => {
            faults.push("restate the goal to the user first".to_owned());
        }
        Some(_) | None => {}
    }
    if interview.is_enough {
        return faults;
    }
    if interview.unsettled().next().is_some() {
        faults.push("ask about the contradictions first".to_owned());
    }
    let blocking = spec
        .open_questions
        .iter()
        .filter(|question| question.blocking);
    faults.extend(
        blocking.map(|question| format!("ask the blocking question first: {:?}", question.text)),
    );
    faults
}

/// Returns the sections that say nothing.
fn missing(interview: &Interview, spec: &Spec) -> Vec<&'static str> {
    let boundaries = &spec.boundaries;
    let has_boundary = !boundaries.may.is_empty()
        || !boundaries.must_ask.is_empty()
        || !boundaries.never.is_empty();
    let has_context = !spec.context.is_empty() || interview.commit.is_none();
    let sections = [
        ("intent", !spec.intent.is_empty()),
        ("constraints", !spec.constraints.is_empty()),
        ("preferences", !spec.preferences.is_empty()),
        ("success_criteria", !spec.success_criteria.is_empty()),
        ("methods", !spec.methods.is_empty()),
        ("boundaries", has_boundary),
        ("non_goals", !spec.non_goals.is_empty()),
        ("context", has_context),
    ];
    let missing = sections.into_iter().filter(|(_, is_there)| !is_there);
    missing.map(|(name, _)| name).collect()
}

fn requirements(spec: &Spec) -> [Section<'_>; 8] {
    [
        ("intent", &spec.intent),
        ("constraints", &spec.constraints),
        ("preferences", &spec.preferences),
        ("methods", &spec.methods),
        ("boundaries.may", &spec.boundaries.may),
        ("boundaries.must_ask", &spec.boundaries.must_ask),
        ("boundaries.never", &spec.boundaries.never),
        ("non_goals", &spec.non_goals),
    ]
}

/// A requirement rests on answered rounds, and on a person's word among them.
fn basis(interview: &Interview, name: &str, rounds: &[u32]) -> Vec<String> {
    let mut faults = answered(interview, name, rounds);
    if faults.is_empty() && !rounds.iter().any(|round| is_persons(interview, *round)) {
        faults.push(format!(
            "cite in {name} a round that the user answered (0 is the purpose), or put it under \
             context: the user did not ask for it"
        ));
    }
    faults
}

/// Nothing rests on what was not answered.
fn answered(interview: &Interview, name: &str, rounds: &[u32]) -> Vec<String> {
    let is_answered = |number: &&u32| {
        **number == 0
            || interview
                .answered()
                .any(|(round, _)| round.number == **number)
    };
    let unanswered = rounds.iter().find(|number| !is_answered(number));
    let fault =
        unanswered.map(|number| format!("{name} relies on round {number}, which is unanswered"));
    fault.into_iter().collect()
}

/// Tells whether a round was answered by a person; the purpose, round 0, always was.
fn is_persons(interview: &Interview, number: u32) -> bool {
    match interview.round(number).map(|round| &round.reply) {
        Some(QuestionReply::Answered(answer)) => answer.provenance.is_persons(),
        Some(
            QuestionReply::Open | QuestionReply::Deferred { .. } | QuestionReply::Withdrawn { .. },
        ) => false,
        None => number == 0,
    }
}

/// A criterion has a command that shows it, or the reason why there is none.
fn provable(name: &str, criterion: &SuccessCriterion) -> Option<String> {
    let says = |text: &Option<String>| text.as_ref().is_some_and(|text| !text.trim().is_empty());
    match (says(&criterion.verify), says(&criterion.exempt)) {
        (false, false) => Some(format!(
            "give {name} a verify command, or explain why it has none"
        )),
        (true, true) => Some(format!(
            "give {name} a verify command or an exemption, not both"
        )),
        (true, false) => {
            let verify = criterion.verify.as_deref().unwrap_or_default();
            let is_line = !verify.trim().contains('\n') && verify.len() <= ITEM_BYTES_MAX;
            (!is_line).then(|| format!("give {name} a verify command of one line"))
        }
        (false, true) => None,
    }
}

fn text(name: &str, text: &str) -> Option<String> {
    let fits = !text.trim().is_empty() && text.len() <= ITEM_BYTES_MAX;
    (!fits).then(|| format!("give {name} 1 to {ITEM_BYTES_MAX} bytes"))
}

fn length(name: &str, items: usize) -> Option<String> {
    (items > ITEMS_MAX).then(|| format!("give {name} at most {ITEMS_MAX} entries"))
}

/// Returns a draft with what the interview's own record says: what was left for later, and what the
/// person answered, in their words.
pub(crate) fn with_record(interview: &Interview, spec: &Spec) -> Spec {
    let mut spec = spec.clone();
    let left = interview.rounds.iter().filter_map(left_for_later);
    spec.open_questions
        .extend(left.map(|text| HandoverQuestion {
            text,
            blocking: false,
        }));
    let answers = interview.answered();
    let persons = answers.filter(|(_, answer)| answer.provenance.is_persons());
    let recorded = persons.map(|(round, answer)| HandoverAnswer {
        question: round.question.text.clone(),
        answer: head(&answer.text, ITEM_BYTES_MAX).to_owned(),
    });
    spec.answers = recorded.collect();
    spec
}

/// Returns a question that the person left for later, as it stands in the spec.
pub(crate) fn left_for_later(round: &Round) -> Option<String> {
    let text = round.question.text.trim();
    let number = round.number;
    matches!(round.reply, QuestionReply::Deferred { .. })
        .then(|| format!("{text} (round {number}, left for later)"))
}

/// Returns what speaks against approving a draft: shown with it, and accepted with it or not.
pub(crate) fn risks(interview: &Interview, spec: &Spec) -> Vec<String> {
    let mut risks = clarity(interview);
    if interview.confirmed_goal().is_none() {
        risks.push("the restated goal was not confirmed".to_owned());
    }
    let unsettled = interview.unsettled();
    risks.extend(unsettled.map(|(_, known)| format!("not settled: {}", known.text)));
    let blocking = spec
        .open_questions
        .iter()
        .filter(|question| question.blocking);
    risks.extend(blocking.map(|question| format!("unknown: {}", question.text)));
    let missing = missing(interview, spec);
    if !missing.is_empty() {
        risks.push(format!("nothing is known about {}", missing.join(", ")));
    }
    risks
}

fn clarity(interview: &Interview) -> Vec<String> {
    let Some(score) = &interview.score else {
        return vec!["clarity was not scored since the last answer".to_owned()];
    };
    let mut risks = Vec::new();
    let ambiguity = score.clarity.ambiguity();
    if ambiguity > crate::rules::modes::interview::score::AMBIGUITY_MAX {
        let shown = score.clarity.overall();
        risks.push(format!("the overall clarity is {shown}, below 0.8"));
    }
    for (dimension, clarity) in score.clarity.below_floor() {
        risks.push(format!(
            "the clarity of {} is {}, below {}",
            dimension.as_str(),
            thousandths(clarity),
            thousandths(dimension.floor())
        ));
    }
    if risks.is_empty() && interview.streak < STREAK {
        let streak = interview.streak;
        risks.push(format!(
            "the last {STREAK} answers were not both clear: {streak} of them was"
        ));
    }
    risks
}
