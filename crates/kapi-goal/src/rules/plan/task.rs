//! One task of a plan, in the shape of the pi-until-done specification.
//!
//! Knows what a task may hold and how much of it; nothing of the other tasks of its plan.

use std::collections::BTreeSet;
use std::fmt;

use kapi_core::id::NameError;
use serde::{Deserialize, Serialize};

use crate::rules::plan::REPLANS_MAX;
use crate::rules::plan::visible::{is_variation, shows};

/// The longest task id, in characters.
pub const ID_CHARS_MAX: usize = 64;
/// The longest title, in bytes.
pub const TITLE_BYTES_MAX: usize = 500;
/// The longest entry of a list, in bytes.
pub const ITEM_BYTES_MAX: usize = 4 * 1024;
/// The longest notes, in bytes.
pub const NOTES_BYTES_MAX: usize = 16 * 1024;
/// The longest list of one task, not counting what replanning wrote into its learnings.
pub const ITEMS_MAX: usize = 200;
/// How a learning begins that replanning wrote.
pub const REPLAN_PREFIX: &str = "replan: ";

/// The name of a task within its plan, `T-001`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PlanTaskId(String);

/// One task: what is to be done, after what, and how it is checked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GoalPlanTask {
    /// Its name.
    pub id: PlanTaskId,
    /// What is to be done, in a few words.
    pub title: String,
    /// The phase the work is in while this task is the current one.
    pub phase: TaskPhase,
    /// Where it stands.
    #[serde(default)]
    pub status: TaskStatus,
    /// What must have ended before it can begin.
    #[serde(default)]
    pub dependencies: Vec<PlanTaskId>,
    /// What waits for it: the dependencies of the others, seen from here.
    ///
    /// In what comes in, an entry states that the other task depends on this one. In a plan it is
    /// always derived.
    #[serde(default)]
    pub blocks: Vec<PlanTaskId>,
    /// What must be cleared before work on it makes sense.
    #[serde(default)]
    pub prerequisites: Vec<Prerequisite>,
    /// How a person would check it.
    #[serde(default)]
    pub validation_steps: Vec<String>,
    /// The commands that must pass.
    #[serde(default)]
    pub ci_commands: Vec<String>,
    /// Rules of style that apply.
    #[serde(default)]
    pub styleguide_rules: Vec<String>,
    /// What must not happen.
    #[serde(default)]
    pub guardrails: Vec<String>,
    /// What was found out, and why it was replanned.
    #[serde(default)]
    pub learnings: Vec<String>,
    /// What went wrong and may again.
    #[serde(default)]
    pub gotchas: Vec<String>,
    /// What to read.
    #[serde(default)]
    pub context: Vec<ContextReference>,
    /// Anything else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notes: Option<String>,
}

/// Something that must be cleared before a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Prerequisite {
    /// What it is.
    pub description: String,
    /// Whether it is cleared.
    #[serde(default)]
    pub cleared: bool,
}

/// Something to read for a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ContextReference {
    /// A file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// An address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Why it is worth reading.
    pub why: String,
}

/// Where a task stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskStatus {
    /// Nobody has begun it.
    #[default]
    Pending,
    /// It is being worked on.
    InProgress,
    /// It is done, and nothing changes it any more.
    Done,
    /// Something keeps it from going on.
    Blocked,
    /// It was left out on purpose; what depends on it may go on.
    Skipped,
}

/// The phase of the work, test first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskPhase {
    /// Reading code.
    #[default]
    Analysis,
    /// Making sure that checks can run at all.
    Bootstrap,
    /// A test fails that should pass.
    Red,
    /// The test passes.
    Green,
    /// The structure is made better.
    Refactor,
    /// Scratch files and debugging output are removed.
    Cleanup,
    /// None of these: research, documents.
    None,
}

/// What is wrong with one task, whatever the others are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TaskFault {
    /// A text that says nothing.
    #[error("{field} is blank")]
    Blank {
        /// The field, as it stands in JSON.
        field: &'static str,
    },
    /// A text that is too long.
    #[error("{field} is longer than {bytes_max} bytes")]
    TooLong {
        /// The field, as it stands in JSON.
        field: &'static str,
        /// The most there may be.
        bytes_max: usize,
    },
    /// A list that is too long.
    #[error("{field} has more than {items_max} entries")]
    TooMany {
        /// The field, as it stands in JSON.
        field: &'static str,
        /// The most there may be.
        items_max: usize,
    },
}

impl PlanTaskId {
    /// Reads a task id.
    ///
    /// # Errors
    /// When it is empty, longer than 64 characters, or holds a character that cannot be seen.
    pub fn parse(text: &str) -> Result<Self, NameError> {
        let chars = text.chars().count();
        if chars == 0 || chars > ID_CHARS_MAX || !text.chars().all(is_visible) {
            return Err(NameError {
                what: "a task id",
                text: text.chars().take(ID_CHARS_MAX).collect(),
                rule: "it must be 1 to 64 visible characters without a space",
            });
        }
        Ok(Self(text.to_owned()))
    }

    /// Returns the text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Tells whether a character shows, so that two ids that look alike are alike.
fn is_visible(char: char) -> bool {
    shows(char) && !char.is_whitespace() && !is_variation(char)
}

impl fmt::Display for PlanTaskId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl TryFrom<String> for PlanTaskId {
    type Error = NameError;
    fn try_from(text: String) -> Result<Self, NameError> {
        Self::parse(&text)
    }
}

impl From<PlanTaskId> for String {
    fn from(id: PlanTaskId) -> Self {
        id.0
    }
}

impl TaskStatus {
    /// Tells whether what depends on the task may begin.
    #[must_use]
    pub const fn has_ended(self) -> bool {
        matches!(self, Self::Done | Self::Skipped)
    }

    /// Returns the status as it stands in JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::InProgress => "in_progress",
            Self::Done => "done",
            Self::Blocked => "blocked",
            Self::Skipped => "skipped",
        }
    }
}

impl fmt::Display for TaskStatus {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

impl TaskPhase {
    /// Every phase, in the order of the work.
    pub const ALL: [Self; 7] = [
        Self::Analysis,
        Self::Bootstrap,
        Self::Red,
        Self::Green,
        Self::Refactor,
        Self::Cleanup,
        Self::None,
    ];

    /// Returns the phase as it stands in JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Analysis => "analysis",
            Self::Bootstrap => "bootstrap",
            Self::Red => "red",
            Self::Green => "green",
            Self::Refactor => "refactor",
            Self::Cleanup => "cleanup",
            Self::None => "none",
        }
    }

    /// Returns the sign that stands for the phase on a status line.
    #[must_use]
    pub const fn glyph(self) -> char {
        match self {
            Self::Analysis => '◷',
            Self::Bootstrap => '⚙',
            Self::Red => '✗',
            Self::Green => '✓',
            Self::Refactor => '↺',
            Self::Cleanup => '⌫',
            Self::None => '·',
        }
    }
}

impl fmt::Display for TaskPhase {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

impl GoalPlanTask {
    /// Returns what is wrong with the task by itself.
    #[must_use]
    pub fn fault(&self) -> Option<TaskFault> {
        if self.title.trim().is_empty() {
            return Some(TaskFault::Blank { field: "title" });
        }
        let is_ours = |line: &&String| line.starts_with(REPLAN_PREFIX);
        let n_ours = self.learnings.iter().filter(is_ours).count();
        let lists = [
            ("prerequisites", self.prerequisites.len()),
            ("validationSteps", self.validation_steps.len()),
            ("ciCommands", self.ci_commands.len()),
            ("styleguideRules", self.styleguide_rules.len()),
            ("guardrails", self.guardrails.len()),
            ("learnings", self.learnings.len() - n_ours),
            ("learnings", n_ours.saturating_sub(REPLANS_MAX - ITEMS_MAX)),
            ("gotchas", self.gotchas.len()),
            ("context", self.context.len()),
        ];
        let too_many = lists.into_iter().find(|(_, items)| *items > ITEMS_MAX);
        if let Some((field, _)) = too_many {
            let items_max = ITEMS_MAX;
            return Some(TaskFault::TooMany { field, items_max });
        }
        self.texts()
            .into_iter()
            .find_map(|(field, text)| text_fault(field, text))
    }

    /// Returns how much text the task holds.
    #[must_use]
    pub fn text_bytes(&self) -> usize {
        let names = self.dependencies.iter().chain(&self.blocks);
        let texts = self.texts();
        names.map(|id| id.0.len()).sum::<usize>()
            + texts.iter().map(|(_, text)| text.len()).sum::<usize>()
            + self.id.0.len()
    }

    /// Returns every text of the task with the name of its field.
    fn texts(&self) -> Vec<(&'static str, &str)> {
        let lists = [
            ("validationSteps", &self.validation_steps),
            ("ciCommands", &self.ci_commands),
            ("styleguideRules", &self.styleguide_rules),
            ("guardrails", &self.guardrails),
            ("learnings", &self.learnings),
            ("gotchas", &self.gotchas),
        ];
        let mut texts = vec![("title", self.title.as_str())];
        for (field, items) in lists {
            texts.extend(items.iter().map(|item| (field, item.as_str())));
        }
        for prerequisite in &self.prerequisites {
            texts.push(("prerequisites", &prerequisite.description));
        }
        for reference in &self.context {
            texts.push(("context", &reference.why));
            let locations = [&reference.path, &reference.url];
            texts.extend(locations.into_iter().flatten().map(|at| ("context", &**at)));
        }
        texts.extend(self.notes.iter().map(|notes| ("notes", notes.as_str())));
        texts
    }
}

fn text_fault(field: &'static str, text: &str) -> Option<TaskFault> {
    let bytes_max = match field {
        "title" => TITLE_BYTES_MAX,
        "notes" => NOTES_BYTES_MAX,
        _ => ITEM_BYTES_MAX,
    };
    (text.len() > bytes_max).then_some(TaskFault::TooLong { field, bytes_max })
}

/// Returns the ids in their order, each once.
pub(crate) fn without_repeats(ids: &[PlanTaskId]) -> Vec<PlanTaskId> {
    let mut seen = BTreeSet::new();
    ids.iter().filter(|id| seen.insert(*id)).cloned().collect()
}
