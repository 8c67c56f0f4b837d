//! How Ralph begins: from a commit, with or without what an interview found out.

use std::collections::BTreeMap;

use kapi_core::id::GoalId;
use kapi_core::link::{Link, WorkflowRelation};
use kapi_core::mode::Mode;
use serde::{Deserialize, Serialize};

use crate::rules::handover::Spec;
use crate::rules::modes::ralph::state::{Ralph, RalphPhase};

/// A Ralph workflow's beginning.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RalphBegin {
    /// The commit it starts from.
    pub base: String,
    /// The interview that gives it its context.
    pub interview: Option<GoalId>,
    /// That interview's approved spec.
    pub spec: Option<Box<Spec>>,
}

impl RalphBegin {
    /// Returns what is wrong with it.
    pub(crate) const fn fault(&self) -> Option<&'static str> {
        if self.base.is_empty() {
            Some("start a build without a commit")
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

    /// Returns the mode's part of the workflow, and the links that it begins with.
    pub(crate) fn body(&self, at_ms: i64) -> (Ralph, Vec<Link>) {
        let ralph = Ralph {
            base: self.base.clone(),
            spec: self.spec.clone(),
            phase: RalphPhase::Thesis,
            cycle: 1,
            attempts: Vec::new(),
            plan: None,
            baseline: None,
            reopened: None,
            branch: None,
            tasks: BTreeMap::new(),
            landed: Vec::new(),
            changes: Vec::new(),
            earlier: Vec::new(),
            unverified: None,
            verified: None,
            verifications: 0,
            reviews: Vec::new(),
            refused: BTreeMap::new(),
            answers: BTreeMap::new(),
            mends: 0,
            must_ask: false,
            account: None,
        };
        let link = |interview: &GoalId| Link {
            relation: WorkflowRelation::Context,
            mode: Mode::CONTEXT,
            workflow: interview.clone(),
            at_ms,
        };
        (ralph, self.interview.iter().map(link).collect())
    }
}
