//! The reminder that stands in every prompt: six blocks, each a text of its own.
//!
//! Pi-until-done's "per-turn principle injection", in its order. Which of them a goal gets follows
//! from its contract alone.

use crate::rules::contract::{Contract, GoalType, Reminders};
use crate::rules::state::Goal;

/// One block.
#[derive(Debug, Clone, Copy)]
pub struct Block {
    /// Its name.
    pub name: &'static str,
    /// When it is given, for people.
    pub when: &'static str,
    /// Its text, with `{{verify}}` to be filled in, behind a line that says which version it is.
    text: &'static str,
    applies: fn(&Contract) -> bool,
}

/// All blocks, in the order in which they are given.
pub const BLOCKS: [Block; 6] = [
    Block {
        name: "test-first",
        when: "something is shipped (goal type ticket)",
        text: include_str!("blocks/test-first.md"),
        applies: |contract| is_full(contract) && contract.working.goal_type == GoalType::Ticket,
    },
    Block {
        name: "verifiability",
        when: "always",
        text: include_str!("blocks/verifiability.md"),
        applies: |_| true,
    },
    Block {
        name: "principles",
        when: "all reminders are wanted",
        text: include_str!("blocks/principles.md"),
        applies: is_full,
    },
    Block {
        name: "mise",
        when: "the contract requires mise for commands",
        text: include_str!("blocks/mise.md"),
        applies: |contract| contract.working.mise,
    },
    Block {
        name: "structure",
        when: "something is shipped and all reminders are wanted",
        text: include_str!("blocks/structure.md"),
        applies: |contract| is_full(contract) && contract.working.goal_type == GoalType::Ticket,
    },
    Block {
        name: "tools",
        when: "always",
        text: include_str!("blocks/tools.md"),
        applies: |_| true,
    },
];

fn is_full(contract: &Contract) -> bool {
    contract.working.reminders == Reminders::All
}

/// Returns the blocks that a goal's agent is given, filled in.
///
/// A command or a script is a program: it is told the goal and nothing about manners.
#[must_use]
pub fn reminder(goal: &Goal) -> Vec<String> {
    let contract = &goal.contract;
    if is_program(&contract.agent) {
        return Vec::new();
    }
    let wanted = BLOCKS.iter().filter(|block| (block.applies)(contract));
    wanted.map(|block| filled(block, goal)).collect()
}

fn is_program(agent: &str) -> bool {
    agent.starts_with("command:") || agent.starts_with("script:")
}

fn filled(block: &Block, goal: &Goal) -> String {
    let verify = goal.contract.verify.join(" && ");
    let verify = if verify.is_empty() {
        "your own checks"
    } else {
        &verify
    };
    let text = block.text.split_once('\n').map_or("", |(_, text)| text);
    text.trim_end().replace("{{verify}}", verify)
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::{BLOCKS, filled, reminder};
    use crate::rules::contract::{GoalType, Reminders};
    use crate::rules::scenario::{contract, goal_of};
    use crate::rules::state::Goal;

    fn goal(change: impl FnOnce(&mut crate::rules::contract::Contract)) -> Goal {
        let mut contract = contract();
        change(&mut contract);
        goal_of(contract)
    }

    #[test]
    fn the_six_blocks_and_their_conditions_are_these() {
        let mut table = String::new();
        for block in &BLOCKS {
            writeln!(table, "{}: {}", block.name, block.when).unwrap();
        }
        assert_eq!(
            table,
            "test-first: something is shipped (goal type ticket)\n\
             verifiability: always\n\
             principles: all reminders are wanted\n\
             mise: the contract requires mise for commands\n\
             structure: something is shipped and all reminders are wanted\n\
             tools: always\n"
        );
    }

    #[test]
    fn every_placeholder_is_known_and_every_block_is_small_and_owned() {
        let goal = goal(|_| {});
        for block in &BLOCKS {
            let text = filled(block, &goal);
            assert!(!text.contains("{{") && !text.contains("}}"), "{text}");
            assert!(block.text.len() < 1_500, "{} is too long", block.name);
            let mark = block.text.lines().next().unwrap();
            assert!(mark.starts_with("<!-- block "), "{}", block.name);
            assert!(
                mark.ends_with("; owner: goal prompts -->"),
                "{}",
                block.name
            );
            assert!(text.starts_with("# "), "{text}");
        }
    }

    #[test]
    fn what_a_goal_is_reminded_of_follows_from_its_contract() {
        let names = |goal: &Goal| -> Vec<String> {
            let first_words = |text: &String| text.lines().next().unwrap_or_default().to_owned();
            reminder(goal).iter().map(first_words).collect()
        };
        assert_eq!(names(&goal(|_| {})).len(), 5);
        assert_eq!(names(&goal(|it| it.working.mise = true)).len(), 6);
        let explores = goal(|it| it.working.goal_type = GoalType::Exploratory);
        assert_eq!(names(&explores).len(), 3);
        let essential = goal(|it| it.working.reminders = Reminders::Essential);
        assert_eq!(names(&essential).len(), 2);
        let program = goal(|it| it.agent = "command:true".to_owned());
        assert_eq!(names(&program).len(), 0);
    }

    #[test]
    fn a_verify_command_is_not_filled_in_again() {
        let odd = goal(|it| it.verify = vec!["echo {{verify}}".to_owned()]);
        assert!(reminder(&odd).join("\n").contains("echo {{verify}}"));
    }
}
