//! What must hold before a loop runs: conditions as data, what the world is asked, what they come to.
//!
//! Nothing is looked up here: [`needs`] says what to ask, the answers come back as facts, and
//! [`evaluate()`] decides. What nobody could answer does not hold, not even when it stands under `not`.

mod evaluate;
pub mod expression;
mod read;
pub mod window;

use std::collections::BTreeMap;
use std::fmt;

use kapi_core::task_id::LoopName;
use serde::{Deserialize, Serialize};

use crate::rules::condition::expression::{Expression, ExpressionContext};
use crate::rules::condition::window::{LocalTime, Window};

/// How deep conditions may lie in each other.
pub const CONDITION_DEPTH_MAX: usize = 8;
/// The most conditions that are no `all`, `any` or `not`.
pub const LEAVES_MAX: usize = 64;
/// The longest time a command may take, in milliseconds.
pub const COMMAND_MS_MAX: u64 = 10 * 60 * 1_000;
/// The time a command may take when nothing is said, in milliseconds.
pub const COMMAND_MS: u64 = 60 * 1_000;

/// One condition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Condition {
    /// Every one holds.
    All {
        /// Which.
        of: Vec<Self>,
    },
    /// At least one holds.
    Any {
        /// Which.
        of: Vec<Self>,
    },
    /// It is known, and does not hold.
    Not {
        /// Which.
        of: Box<Self>,
    },
    /// An expression over inputs, payload and state.
    Expr {
        /// The expression.
        expr: Expression,
    },
    /// Files of the project.
    File {
        /// A pattern, relative to the project.
        glob: String,
        /// How they must be.
        is: FileIs,
    },
    /// A command in the sandbox ends with exit code 0.
    Command {
        /// What a shell in the sandbox is given.
        run: String,
        /// How long it may take.
        timeout_ms: u64,
    },
    /// The project's repository.
    Git {
        /// How it must be.
        is: GitIs,
    },
    /// A time of day on some days of the week.
    Time {
        /// When.
        window: Window,
    },
    /// How the last run of a loop came out.
    LastResult {
        /// Which loop; without a name the one that asks.
        #[serde(rename = "loop", default, skip_serializing_if = "Option::is_none")]
        loop_name: Option<LoopName>,
        /// Any of these.
        is: Vec<RunResult>,
    },
    /// Files that changed since the commit of the loop's last run.
    Changed {
        /// Patterns, relative to the project; any of them.
        globs: Vec<String>,
    },
}

/// A condition as a person writes it: an expression as text, or a table with one key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConditionForm(pub Condition);

/// How files must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileIs {
    /// At least one is there.
    Exists,
    /// None is there.
    Gone,
    /// At least one is not as it was when the loop last ran, or is new, or gone since.
    Changed,
}

/// How a repository must be.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum GitIs {
    /// On a branch whose name a pattern matches.
    Branch {
        /// The pattern.
        name: String,
    },
    /// Without changes that are not committed.
    Clean,
    /// With such changes.
    Dirty,
    /// With commits that something else does not have.
    AheadOf {
        /// A branch, tag or commit.
        reference: String,
    },
    /// With a ref that is elsewhere than when the loop last ran.
    RefChanged {
        /// The ref.
        reference: String,
    },
}

/// How a run came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunResult {
    /// It completed.
    Completed,
    /// It failed.
    Failed,
    /// A condition was not met.
    Skipped,
    /// There was no run.
    None,
}

/// What the world is asked.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum ConditionQuestion {
    /// How many files does a pattern match? [`ProbeAnswer::Files`].
    Files {
        /// The pattern.
        glob: String,
    },
    /// Which of the files that a pattern matches have another content than when the loop last ran,
    /// are new or gone? [`ProbeAnswer::Changed`] or [`ProbeAnswer::NoRunBefore`].
    FilesChanged {
        /// The pattern.
        glob: String,
    },
    /// How does a command in the sandbox end? [`ProbeAnswer::Exit`] or [`ProbeAnswer::TimedOut`].
    Command {
        /// What a shell in the sandbox is given.
        run: String,
        /// How long it may take.
        timeout_ms: u64,
    },
    /// Which branch is checked out? [`ProbeAnswer::Branch`].
    Branch,
    /// How many paths have changes that are not committed? [`ProbeAnswer::Uncommitted`].
    Uncommitted,
    /// How many commits are not in something else? [`ProbeAnswer::Ahead`].
    AheadOf {
        /// A branch, tag or commit.
        reference: String,
    },
    /// Where was a ref when the loop last ran, and where is it now? [`ProbeAnswer::Moved`] or
    /// [`ProbeAnswer::NoRunBefore`].
    RefChanged {
        /// The ref.
        reference: String,
    },
    /// What time is it in a zone? [`ProbeAnswer::LocalTime`].
    LocalTime {
        /// The zone's name in the IANA database, or `local`.
        zone: String,
    },
    /// How did the last run come out? [`ProbeAnswer::Result`].
    LastResult {
        /// Which loop's; without a name the one that asks.
        loop_name: Option<LoopName>,
    },
    /// Which paths that patterns match changed since the commit of the last run?
    /// [`ProbeAnswer::Changed`] or [`ProbeAnswer::NoRunBefore`].
    Changed {
        /// The patterns.
        globs: Vec<String>,
    },
}

/// What the world found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProbeAnswer {
    /// How many files were found.
    Files {
        /// The count.
        count: u64,
    },
    /// What changed; the first few are enough, and none means that nothing did.
    Changed {
        /// Paths.
        paths: Vec<String>,
    },
    /// There was no run before, so everything is new.
    NoRunBefore,
    /// How a command ended.
    Exit {
        /// Its exit code.
        code: i32,
    },
    /// A command took longer than it may.
    TimedOut,
    /// What is checked out.
    Branch {
        /// The branch without `refs/heads/`; none when a commit is.
        name: Option<String>,
    },
    /// What is not committed.
    Uncommitted {
        /// How many paths.
        count: u64,
    },
    /// How far ahead.
    Ahead {
        /// How many commits.
        commits: u64,
    },
    /// Where a ref was and is.
    Moved {
        /// The commit at the last run; none when the ref was not there.
        before: Option<String>,
        /// The commit now; none when the ref is not there.
        now: Option<String>,
    },
    /// What time it is.
    LocalTime(LocalTime),
    /// How a run came out.
    Result(RunResult),
    /// It could not be found out.
    Unknown {
        /// Why, in a few words.
        why: String,
    },
}

/// The answers to questions.
pub type Facts = BTreeMap<ConditionQuestion, ProbeAnswer>;

/// What a condition comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConditionVerdict {
    /// Whether it holds.
    pub holds: bool,
    /// One line for each condition that is no `all`, `any` or `not`.
    pub reasons: Vec<Reason>,
}

/// What one condition asked and found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reason {
    /// What was asked.
    pub asked: String,
    /// What was found.
    pub found: String,
    /// Whether it held.
    pub held: ConditionResult,
}

/// Whether a condition held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConditionResult {
    /// It did.
    Yes,
    /// It did not.
    No,
    /// Nobody could say, which counts as no.
    Unknown,
}

/// Returns the commands that are run to look things up.
#[must_use]
pub fn commands(condition: &Condition) -> Vec<String> {
    let mut commands = Vec::new();
    for question in needs(condition) {
        if let ConditionQuestion::Command { run, .. } = question {
            commands.push(run);
        }
    }
    commands
}

/// Returns what the world has to look up, each question once, in their order.
#[must_use]
pub fn needs(condition: &Condition) -> Vec<ConditionQuestion> {
    let mut questions = Vec::new();
    let mut left = vec![condition];
    while let Some(condition) = left.pop() {
        match condition {
            Condition::All { of } | Condition::Any { of } => left.extend(of.iter().rev()),
            Condition::Not { of } => left.push(of),
            leaf @ (Condition::Expr { .. }
            | Condition::File { .. }
            | Condition::Command { .. }
            | Condition::Git { .. }
            | Condition::Time { .. }
            | Condition::LastResult { .. }
            | Condition::Changed { .. }) => {
                let question = evaluate::question(leaf);
                questions.extend(question.filter(|question| !questions.contains(question)));
            }
        }
    }
    questions
}

/// Decides a condition.
#[must_use]
pub fn evaluate(
    condition: &Condition,
    context: &ExpressionContext,
    facts: &Facts,
) -> ConditionVerdict {
    evaluate::verdict(condition, context, facts)
}

impl ConditionVerdict {
    /// Returns the reasons as one text; for a lone expression in the words of the original.
    #[must_use]
    pub fn text(&self) -> String {
        match self.reasons.as_slice() {
            [only] if only.found.starts_with("condition ") => only.found.clone(),
            reasons => {
                let lines: Vec<String> = reasons.iter().map(ToString::to_string).collect();
                lines.join("; ")
            }
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let held = match self.held {
            ConditionResult::Yes => "holds",
            ConditionResult::No => "does not hold",
            ConditionResult::Unknown => "does not hold, because it is unknown",
        };
        write!(out, "{}: {}: {held}", self.asked, self.found)
    }
}

impl fmt::Display for RunResult {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
            Self::None => "none",
        })
    }
}

#[cfg(test)]
mod tests;
