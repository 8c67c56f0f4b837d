//! Whose words a contract is made of: the person's own, what others added, and what they did not get.
//!
//! Only data; how it comes about is decided by [`crate::proof::precedence`].

use serde::{Deserialize, Serialize};

use crate::proof::precedence::{Addition, Authority, CheckPart, RefusedSetting};

/// Whose words a contract is made of. All of it is the person's where nothing stands here.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Attribution {
    /// Whether an agent worded task and criteria.
    #[serde(skip_serializing_if = "is_false")]
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

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde hands the field over by reference"
)]
const fn is_false(value: &bool) -> bool {
    !*value
}
