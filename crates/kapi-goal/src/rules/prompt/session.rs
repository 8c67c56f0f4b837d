//! What the agent of a session is told: a block that stands in its system prompt as long as the goal
//! does, and the message that begins each turn.
//!
//! The block is the same from turn to turn, so that a provider's cache holds it; whatever changes
//! stands in the message.

use crate::rules::prompt::{
    WHAT_TO_FIND_OUT, blocks, bullets, feedback, journey, proof_section, working_part,
};
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

fn contract_block(goal: &Goal) -> String {
    let contract = &goal.contract;
    let mut parts = vec![
        format!("# Goal {}\n\n{}", goal.id, contract.intent.trim()),
        format!("# Done when\n\n{}", contract.done_criteria.trim()),
        proof_section(contract),
    ];
    if !contract.protect.is_empty() {
        parts.push(format!(
            "# Protected files\n\nThese must stay exactly as they are:\n{}",
            bullets(&contract.protect)
        ));
    }
    parts.extend(working_part(&contract.working));
    parts.push(
        "# How this works\n\nThe user approved this contract, and it cannot change. You work in \
         their own checkout: do not commit, stash, push or switch branches for it. Each time you \
         end your turn Kapi decides whether you go on; only Kapi's own checks end the goal."
            .to_owned(),
    );
    parts.extend(blocks::reminder(goal));
    parts.join("\n\n")
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
        "Goal {}, turn {} of at most {}.",
        goal.id, goal.turn, goal.budget.turns
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
