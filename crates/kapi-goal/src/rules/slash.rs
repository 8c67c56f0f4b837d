//! `/until-done`: which subcommand a line means, and when it is a new goal instead.
//!
//! A word of the table alone is a subcommand; with more behind it, it is the beginning of an
//! intent, so that a goal can be put into ordinary words. Knows no goal and allows nothing: what a
//! subcommand may do is decided where it is carried out.

pub mod subcommand;
#[cfg(test)]
mod tests;

use crate::rules::slash::subcommand::SUBCOMMANDS;

/// The command's name, with its slash.
pub const COMMAND: &str = "/until-done";

/// What a line asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Slash {
    /// Shows the list of subcommands.
    Help,
    /// Shows one line on where the goal stands.
    Status,
    /// Shows the whole contract.
    Detail,
    /// Shows the tasks.
    Tasks,
    /// Shows where `tasks.yaml` is.
    Plan,
    /// Shows the locked contract.
    Northstar,
    /// Shows every replan and its reason.
    ReplanLog,
    /// Stops the loop and keeps the goal.
    Pause,
    /// Lets the loop go on.
    Resume,
    /// Ends the goal.
    Cancel,
    /// Approves the contract that was shown.
    Approve,
    /// Turns the approval dialog of later goals off or on.
    Autopilot,
    /// Changes the turn budget.
    Budget {
        /// The turns; the largest number when there are too many digits. Whether it is within the
        /// limits is not decided here.
        turns: u64,
    },
    /// Asks a side question.
    Ask {
        /// The question.
        question: String,
    },
    /// Shows or sets who judges later goals.
    Judge(SlashJudgeForm),
    /// Starts a new goal.
    Intent(String),
}

/// What `/until-done judge` says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SlashJudgeForm {
    /// Shows the default.
    Show,
    /// The executor's own model judges.
    Same,
    /// There is no default.
    Clear,
    /// A model judges.
    Model {
        /// Up to the first slash.
        provider: String,
        /// What is behind it; it may hold further slashes.
        model: String,
    },
    /// It looks like a model and is none; nothing may change.
    Malformed(String),
}

/// Reads a whole line; nothing when it is not this command.
#[must_use]
pub fn parse(line: &str) -> Option<Slash> {
    let rest = line.trim().strip_prefix(COMMAND)?;
    if !rest.is_empty() && !rest.starts_with(char::is_whitespace) {
        return None;
    }
    Some(parse_arguments(rest))
}

/// Reads what is behind the command's name. Upper and lower case are different words.
#[must_use]
pub fn parse_arguments(arguments: &str) -> Slash {
    let whole = arguments.trim();
    let words: Vec<&str> = whole.split_whitespace().collect();
    let intent = || Slash::Intent(whole.to_owned());
    match words.as_slice() {
        [] => Slash::Help,
        [word] => alone(word).unwrap_or_else(intent),
        ["budget", turns] => budget(turns).unwrap_or_else(intent),
        ["ask", _, ..] => Slash::Ask {
            question: whole.trim_start_matches("ask").trim_start().to_owned(),
        },
        ["judge", rest @ ..] => judge(rest).map_or_else(intent, Slash::Judge),
        [_, ..] => intent(),
    }
}

/// Returns the subcommands that begin with what was typed, in the order of the table.
#[must_use]
pub fn completions(typed: &str) -> Vec<&'static str> {
    let lower = typed.to_lowercase();
    let names = SUBCOMMANDS.iter().filter_map(|subcommand| subcommand.name);
    names.filter(|name| name.starts_with(&lower)).collect()
}

/// Returns the subcommand that one word alone stands for.
fn alone(word: &str) -> Option<Slash> {
    match word {
        "help" => Some(Slash::Help),
        "status" => Some(Slash::Status),
        "detail" => Some(Slash::Detail),
        "tasks" => Some(Slash::Tasks),
        "plan" => Some(Slash::Plan),
        "northstar" => Some(Slash::Northstar),
        "replan-log" => Some(Slash::ReplanLog),
        "pause" => Some(Slash::Pause),
        "resume" => Some(Slash::Resume),
        "cancel" => Some(Slash::Cancel),
        "approve" => Some(Slash::Approve),
        "autopilot" => Some(Slash::Autopilot),
        "judge" => Some(Slash::Judge(SlashJudgeForm::Show)),
        _ => None,
    }
}

fn budget(word: &str) -> Option<Slash> {
    let is_number = word.bytes().all(|byte| byte.is_ascii_digit());
    // Digits that do not fit are more than any limit, and are refused as such.
    let turns = word.parse().unwrap_or(u64::MAX);
    is_number.then_some(Slash::Budget { turns })
}

/// Returns what is said about the judge, or nothing when the words are about something else.
fn judge(words: &[&str]) -> Option<SlashJudgeForm> {
    let first = words.first()?;
    let is_about_it = matches!(*first, "same" | "clear" | "off" | "none") || first.contains('/');
    is_about_it.then(|| match words {
        ["same"] => SlashJudgeForm::Same,
        ["clear" | "off" | "none"] => SlashJudgeForm::Clear,
        [one] => model(one),
        _ => SlashJudgeForm::Malformed(words.join(" ")),
    })
}

fn model(word: &str) -> SlashJudgeForm {
    match word.split_once('/') {
        Some((provider, model)) if !provider.is_empty() && !word.ends_with('/') => {
            SlashJudgeForm::Model {
                provider: provider.to_owned(),
                model: model.to_owned(),
            }
        }
        Some(_) | None => SlashJudgeForm::Malformed(word.to_owned()),
    }
}
