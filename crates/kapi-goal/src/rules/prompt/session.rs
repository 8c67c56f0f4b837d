//! What the agent of a session is told: a block that stands in its system prompt as long as the goal
//! does, and the message that begins each turn.
//!
//! The block is the same from turn to turn, so that a provider's cache holds it; whatever changes
//! stands in the message.

use crate::rules::prompt::{WHAT_TO_FIND_OUT, blocks, bullets, feedback, journey, surface_line};
use crate::rules::state::{Goal, GoalStage, GoalStatus};

/// Returns the block for the system prompt; nothing while the goal asks nothing of the session.
#[must_use]
pub fn block(goal: &Goal) -> Option<String> {
    match goal.status {
        GoalStatus::Setup | GoalStatus::Proposed => Some(format!(
            "# Goal {} is being set up\n\nIts contract is not approved: draft it with \
             until_done_set, and do not begin the work.",
            goal.id
        )),
        GoalStatus::Active => Some(contract_block(goal)),
        GoalStatus::Done | GoalStatus::Unverified if goal.stage == GoalStage::Distill => {
            Some(format!(
                "# Goal {} is done\n\nSummarize it with until_done_distill and change nothing.",
                goal.id
            ))
        }
        GoalStatus::Waiting | GoalStatus::Blocked | GoalStatus::Stalled | GoalStatus::Paused => {
            Some(format!(
                "# Goal {} is {}\n\nDo not work on it until the user resumes it. Answer what they ask.",
                goal.id, goal.status
            ))
        }
        GoalStatus::Impossible
        | GoalStatus::Cancelled
        | GoalStatus::Unverified
        | GoalStatus::Done => None,
    }
}

/// Every request carries it, so it is said in as few words as it can be.
fn contract_block(goal: &Goal) -> String {
    let contract = &goal.contract;
    let mut lines = vec![
        format!("# Goal {}\n\n{}\n", goal.id, contract.intent.trim()),
        format!("Done when: {}", contract.done_criteria.trim()),
    ];
    if contract.verify.is_empty() {
        lines.push("There is no verify command: check your own work.".to_owned());
    } else {
        let network = if contract.verify_network {
            ""
        } else {
            " without network"
        };
        let hidden = if contract.hidden.is_some() {
            ", and checks that you cannot see"
        } else {
            ""
        };
        lines.push(format!(
            "Kapi itself runs this on a clean checkout{network}{hidden}; all must exit 0:\n{}",
            bullets(&contract.verify)
        ));
    }
    if !contract.protect.is_empty() {
        lines.push(format!("Must stay as is:\n{}", bullets(&contract.protect)));
    }
    let working = &contract.working;
    if !working.ask_before.is_empty() {
        lines.push(format!(
            "Refused until the user allows it:\n{}",
            bullets(&working.ask_before)
        ));
    }
    if !working.surfaces.is_empty() {
        let surfaces: Vec<String> = working.surfaces.iter().map(surface_line).collect();
        lines.push(format!("You can look at:\n{}", bullets(&surfaces)));
    }
    let style = working.decision_style.as_ref();
    lines.extend(style.map(|style| format!("Where nothing was said: {style}")));
    lines.push(
        "The user approved this; it cannot change. Work in their checkout; do not commit, stash, \
         push or switch branches. Kapi decides at each turn's end whether you go on."
            .to_owned(),
    );
    let contract = lines.join("\n");
    let parts = [contract].into_iter().chain(blocks::reminder(goal));
    parts.collect::<Vec<String>>().join("\n\n")
}

/// Returns the message that begins a turn.
#[must_use]
pub fn message(goal: &Goal) -> String {
    let mut parts = Vec::new();
    parts.extend(
        goal.said
            .as_ref()
            .map(|said| format!("The user said, and it comes first:\n\n{said}")),
    );
    match feedback(goal) {
        Some(feedback) => parts.push(feedback),
        None if goal.turn <= 1 => parts.push(
            "The contract is approved. Make a plan with until_done_plan if the work has more than \
             one step, and begin."
                .to_owned(),
        ),
        None => parts.push("Go on with the goal.".to_owned()),
    }
    parts.extend(journey::section(goal));
    parts.push(format!(
        "Goal {}, turn {} of at most {}, phase {}.",
        goal.id,
        goal.turn,
        goal.budget.turns,
        goal.journey.phase.as_str()
    ));
    parts.join("\n\n")
}

/// Returns what the model has to know once more after its conversation was compacted.
#[must_use]
pub fn reminder_after_compaction(goal: &Goal) -> String {
    let contract = &goal.contract;
    let mut parts = vec![format!(
        "Goal {}: {}\n\nDone when: {}\n\nVerify: {}",
        goal.id,
        contract.intent.trim(),
        contract.done_criteria.trim(),
        contract.verify.join(" && ")
    )];
    parts.extend(journey::section(goal));
    parts.join("\n\n")
}

/// Returns the message that begins the setup.
#[must_use]
pub fn setup(goal: &Goal) -> String {
    format!(
        "Draft a contract for a goal that Kapi will hold you to. The user wants this:\n\n{}\n\nDo not \
         begin the work. Ask the user what only they can tell. Read this repository without \
         changing it, and find out:\n\n{WHAT_TO_FIND_OUT}",
        goal.contract.intent.trim()
    )
}

/// Returns a person's side question as it is put to the model.
#[must_use]
pub fn aside(question: &str) -> String {
    format!(
        "A side question, beside the goal: answer it, and neither work on the goal nor change \
         anything for it.\n\n{}",
        question.trim()
    )
}
