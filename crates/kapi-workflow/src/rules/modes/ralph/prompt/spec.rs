//! An approved spec as the agents of a build read it.

use kapi_core::text::one_line;

use crate::rules::handover::{HandoverItem, Spec};

/// Returns a spec as plain text.
pub(super) fn text(spec: &Spec) -> String {
    let mut parts = vec![format!("Goal: {}", spec.goal)];
    let criteria: Vec<String> = spec
        .success_criteria
        .iter()
        .enumerate()
        .map(|(at, criterion)| {
            let proof = match (&criterion.verify, &criterion.exempt) {
                (Some(verify), _) => format!(" [verify: {verify}]"),
                (None, Some(exempt)) => format!(" [no command: {exempt}]"),
                (None, None) => String::new(),
            };
            format!("AC-{}: {}{proof}", at + 1, criterion.text)
        })
        .collect();
    parts.push(section("Success criteria", &criteria));
    for (title, items) in [
        ("Intent", &spec.intent),
        ("Constraints", &spec.constraints),
        ("Preferences", &spec.preferences),
        ("Methods", &spec.methods),
        ("May be decided alone", &spec.boundaries.may),
        ("Must be asked first", &spec.boundaries.must_ask),
        ("Must never be done", &spec.boundaries.never),
        ("Not wanted", &spec.non_goals),
        ("There already", &spec.context),
    ] {
        parts.push(section(title, &texts(items)));
    }
    let open: Vec<String> = spec.open_questions.iter().map(|q| q.text.clone()).collect();
    parts.push(section("Not known", &open));
    let answers = spec.answers.iter();
    let answers = answers.map(|it| format!("{} {}", one_line(&it.question), one_line(&it.answer)));
    let answers: Vec<String> = answers.collect();
    parts.push(section(
        "Asked, and answered in the person's own words",
        &answers,
    ));
    parts.retain(|part| !part.is_empty());
    parts.join("\n\n")
}

fn texts(items: &[HandoverItem]) -> Vec<String> {
    items.iter().map(|item| item.text.clone()).collect()
}

fn section(title: &str, lines: &[String]) -> String {
    if lines.is_empty() {
        return String::new();
    }
    format!("{title}:\n- {}", lines.join("\n- "))
}
