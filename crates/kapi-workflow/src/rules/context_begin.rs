//! How a mode begins that works from a commit, with or without what an interview found out.

use kapi_core::id::GoalId;
use kapi_core::link::{Link, WorkflowRelation};
use kapi_core::mode::Mode;
use serde::{Deserialize, Serialize};

use crate::rules::handover::Spec;

/// A beginning at a commit, perhaps with an interview as its context.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ContextBegin {
    /// The commit it starts from.
    pub base: String,
    /// The interview that gives it its context.
    pub interview: Option<GoalId>,
    /// That interview's approved spec.
    pub spec: Option<Box<Spec>>,
}

impl ContextBegin {
    /// Returns what is wrong with it.
    pub(crate) const fn fault(&self) -> Option<&'static str> {
        if self.base.is_empty() {
            Some("start without a commit")
        } else if self.interview.is_some() != self.spec.is_some() {
            Some("start from an interview without its approved spec")
        } else {
            None
        }
    }

    /// Returns the workflow that gives it its context.
    pub(crate) const fn context(&self) -> Option<&GoalId> {
        self.interview.as_ref()
    }

    /// Returns what that workflow handed over.
    pub(crate) fn handover(&self) -> Option<&Spec> {
        self.spec.as_deref()
    }

    /// Takes what that workflow handed over.
    pub(crate) fn with_handover(self, spec: Option<Box<Spec>>) -> Self {
        Self { spec, ..self }
    }

    /// Returns the links that the workflow begins with.
    pub(crate) fn links(&self, at_ms: i64) -> Vec<Link> {
        let link = |interview: &GoalId| Link {
            relation: WorkflowRelation::Context,
            mode: Mode::CONTEXT,
            workflow: interview.clone(),
            at_ms,
        };
        self.interview.iter().map(link).collect()
    }
}
