//! Whose words a contract is made of: the person's own, what others added, and what they did not get.
//!
//! Only data; how it comes about is decided by [`crate::rules::proof::precedence`].

use std::fmt;

use serde::{Deserialize, Serialize};

/// Who says something, from the strongest to the weakest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Authority {
    /// A person, by a flag of the command they typed.
    Flag,
    /// A person, by a contract file that they named.
    ContractFile,
    /// A person, by their preferences, environment or configuration.
    Settings,
    /// An agent, by the contract that it drafts or proposes.
    Draft,
    /// The project's own files.
    Project,
}

impl Authority {
    /// Tells whether it is the person who decides.
    #[must_use]
    pub const fn is_person(self) -> bool {
        match self {
            Self::Flag | Self::ContractFile | Self::Settings => true,
            Self::Draft | Self::Project => false,
        }
    }

    /// Tells whether it was said for this one goal, so that nobody else narrows it.
    pub(crate) const fn is_about_this_goal(self) -> bool {
        match self {
            Self::Flag | Self::ContractFile => true,
            Self::Settings | Self::Draft | Self::Project => false,
        }
    }
}

impl fmt::Display for Authority {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Flag => "your flags",
            Self::ContractFile => "your contract file",
            Self::Settings => "your settings",
            Self::Draft => "the agent's draft",
            Self::Project => "the project's files",
        })
    }
}

/// A part of the checks and limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckPart {
    /// A verify command.
    Verify,
    /// A protected pathspec.
    Protect,
    /// The judge.
    Judge,
    /// What may happen to tests.
    Tests,
    /// Whether green on the base is enough.
    AlreadyGreen,
    /// Whether the proof may rest on changed scripts and settings.
    ChangedSteering,
    /// Whether the proof may rest on flagged code.
    FlaggedCode,
    /// Whether each hunk is taken back in turn.
    Strength,
    /// The turn budget.
    Turns,
    /// The token budget.
    Tokens,
    /// The money budget.
    UsdMicros,
    /// The time budget.
    WallMs,
}

impl fmt::Display for CheckPart {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Verify => "verify",
            Self::Protect => "protect",
            Self::Judge => "judge",
            Self::Tests => "tests",
            Self::AlreadyGreen => "already green",
            Self::ChangedSteering => "changed setup",
            Self::FlaggedCode => "flagged code",
            Self::Strength => "prove diff",
            Self::Turns => "turns",
            Self::Tokens => "tokens",
            Self::UsdMicros => "cost",
            Self::WallMs => "time",
        })
    }
}

/// Something that stands in a contract and is not the person's own word.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Addition {
    /// Who added it.
    pub by: Authority,
    /// To which part.
    pub part: CheckPart,
    /// What.
    pub value: String,
}

/// Something that the draft or the project asked for and did not get.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RefusedSetting {
    /// Who asked.
    pub by: Authority,
    /// For which part.
    pub part: CheckPart,
    /// What they wanted.
    pub value: String,
    /// What holds instead.
    pub kept: String,
}

/// Whose words a contract is made of. All of it is the person's where nothing stands here.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Attribution {
    /// Whether an agent worded task and criteria.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub drafted: bool,
    /// What the person said before an agent worded it, if they said anything.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub original: Option<OriginalWording>,
    /// What others added.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub additions: Vec<Addition>,
    /// What others asked for and did not get.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub refusals: Vec<RefusedSetting>,
}

/// A goal in the person's own words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OriginalWording {
    /// The task.
    pub task: String,
    /// The criteria, if they gave any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub done_criteria: Option<String>,
}

impl Attribution {
    /// Tells whether everything is the person's own word.
    #[must_use]
    pub fn is_all_persons(&self) -> bool {
        *self == Self::default()
    }

    /// Returns who added something to a part, if it was not the person.
    #[must_use]
    pub fn added_by(&self, part: CheckPart, value: &str) -> Option<Authority> {
        let is_it = |added: &&Addition| added.part == part && added.value == value;
        self.additions.iter().find(is_it).map(|added| added.by)
    }

    /// Forgets one party, before it speaks again.
    pub fn forget(&mut self, by: Authority) {
        self.additions.retain(|added| added.by != by);
        self.refusals.retain(|refused| refused.by != by);
    }
}
