//! How a toy begins: at a commit.

use kapi_core::id::GoalId;
use kapi_core::link::Link;
use serde::{Deserialize, Serialize};

use crate::rules::handover::Spec;
use crate::rules::modes::toy::state::Toy;

/// A toy's beginning.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToyBegin {
    /// The commit.
    pub base: String,
}

impl ToyBegin {
    /// Returns what is wrong with it.
    pub(crate) const fn fault(&self) -> Option<&'static str> {
        if self.base.is_empty() {
            return Some("begin without a commit");
        }
        None
    }

    /// It takes its context from nobody.
    pub(crate) const fn context(&self) -> Option<&GoalId> {
        None
    }

    /// Nobody hands it anything.
    pub(crate) const fn handover(&self) -> Option<&Spec> {
        None
    }

    /// Nobody hands it anything.
    pub(crate) fn with_handover(self, _: Option<Box<Spec>>) -> Self {
        self
    }

    /// It begins with no links.
    pub(crate) const fn links(&self, _: i64) -> Vec<Link> {
        Vec::new()
    }
}

impl Toy {
    /// Returns the state that a workflow begins with.
    pub(crate) fn begun(begin: &ToyBegin) -> Self {
        Self::new(&begin.base)
    }
}
