//! Decision reports: the same nine sections for every decision of weight, generated from state.
//!
//! What an agent said stands in a report as what it is; nothing else in it is an agent's.

use kapi_core::quote::visible;
use kapi_core::text;
use kapi_spend::rules::day::Day;

use crate::rules::pending::{DecisionApproval, Means};
use crate::rules::state::Workflow;

/// A decision report. Every section is a list of lines; an empty one says so when it is written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DecisionReport {
    /// What was decided about.
    pub scope: Vec<String>,
    /// What was looked at.
    pub inputs: Vec<String>,
    /// What had to hold, and whether it did.
    pub conditions: Vec<String>,
    /// What could have been decided.
    pub options: Vec<String>,
    /// What was decided, by whom and how.
    pub chosen: Vec<String>,
    /// Why.
    pub rationale: Vec<String>,
    /// Where one can see for oneself.
    pub verification: Vec<String>,
    /// What may go wrong.
    pub risks: Vec<String>,
    /// What comes next.
    pub follow_up: Vec<String>,
}

impl DecisionReport {
    /// Writes the report of a workflow, every section of it.
    #[must_use]
    pub fn render(&self, workflow: &Workflow) -> String {
        let sections = [
            ("Scope", &self.scope),
            ("Inputs inspected", &self.inputs),
            ("Conditions checked", &self.conditions),
            ("Options considered", &self.options),
            ("Chosen decision", &self.chosen),
            ("Rationale", &self.rationale),
            ("Verification references", &self.verification),
            ("Risks", &self.risks),
            ("Follow-up", &self.follow_up),
        ];
        let mut text = format!("# Decision report {}\n", workflow.id);
        for (title, lines) in sections {
            text.push_str("\n## ");
            text.push_str(title);
            text.push_str("\n\n");
            text.push_str(&bullets(lines));
        }
        text
    }
}

/// Returns one line of a list for each entry, or one that says that there is nothing.
#[must_use]
pub fn bullets(lines: &[String]) -> String {
    if lines.is_empty() {
        return "- None recorded.\n".to_owned();
    }
    lines.iter().map(|line| bullet(line)).collect()
}

/// Returns an entry of a list; further lines are indented, and nothing in it is hidden.
#[must_use]
pub fn bullet(text: &str) -> String {
    let shown = visible(text.trim());
    let lines: Vec<&str> = shown.lines().map(str::trim_end).collect();
    format!("- {}\n", lines.join("\n  "))
}

/// Returns a text as a quotation, every line of it, with nothing hidden.
#[must_use]
pub fn quoted(text: &str) -> String {
    let shown = visible(text.trim());
    let lines = shown
        .lines()
        .map(|line| format!("> {line}").trim_end().to_owned());
    let lines: Vec<String> = lines.collect();
    lines.join("\n") + "\n"
}

/// Returns a text in one line, with nothing hidden.
#[must_use]
pub fn one_line(text: &str) -> String {
    visible(&text::one_line(text))
}

/// Returns an approval as a line: what, which bytes, by whom, how, when.
#[must_use]
pub fn approval_line(approval: &DecisionApproval) -> String {
    let means = match approval.means {
        Means::Terminal => "at a terminal after it was shown",
        Means::YesFlag => "with --yes",
        Means::NamedHash => "by naming its hash",
        Means::InAdvance => "in advance, with --approve-plan auto",
    };
    format!(
        "{} was approved by {} on {} {means}; sha256 {}",
        approval.decision.words(),
        one_line(&approval.by),
        Day::of_ms(approval.at_ms),
        approval.sha256
    )
}

#[cfg(test)]
mod tests {
    use super::{bullet, one_line, quoted};

    #[test]
    fn foreign_text_stays_in_its_place() {
        assert_eq!(bullet(" a\n# b\n\u{202e}c "), "- a\n  # b\n  \\u{202e}c\n");
        assert_eq!(quoted("a\n\n# b"), "> a\n>\n> # b\n");
        assert_eq!(one_line("a\n b\u{200b}"), "a b\\u{200b}");
    }
}
