//! How an integration begins: from the sources as they were found, and what its person allows.

use kapi_core::id::GoalId;
use kapi_core::link::{Link, WorkflowRelation};
use serde::{Deserialize, Serialize};

use crate::rules::batch::mechanical::ConflictRule;
use crate::rules::handover::Spec;
use crate::rules::modes::integrate::leave::IntegrateLeave;
use crate::rules::modes::integrate::source::{SOURCES_MAX, Source};
use crate::rules::modes::integrate::state::{Integrate, IntegratePhase};

/// An integration's beginning.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IntegrateBegin {
    /// Where the integration branch was.
    pub target: String,
    /// What is brought together.
    pub sources: Vec<Source>,
    /// What its person allows besides.
    pub leave: IntegrateLeave,
    /// The person's own rules for conflicts, the first that fits counts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<ConflictRule>,
}

impl IntegrateBegin {
    /// Returns what is wrong with it.
    pub(crate) const fn fault(&self) -> Option<&'static str> {
        if self.target.is_empty() {
            Some("begin an integration without an integration branch")
        } else if self.sources.is_empty() {
            Some("begin an integration of nothing")
        } else if self.sources.len() > SOURCES_MAX {
            Some("begin an integration of more than 32 sources")
        } else {
            None
        }
    }

    /// Returns the workflow that gives it its context: there is none.
    #[expect(clippy::unused_self, reason = "every mode's beginning is asked this")]
    pub(crate) const fn context(&self) -> Option<&GoalId> {
        None
    }

    /// Returns what that workflow handed over.
    #[expect(clippy::unused_self, reason = "every mode's beginning is asked this")]
    pub(crate) const fn handover(&self) -> Option<&Spec> {
        None
    }

    /// Takes what that workflow handed over: nothing.
    pub(crate) fn with_handover(self, _: Option<Box<Spec>>) -> Self {
        self
    }

    /// Returns the links that the workflow begins with.
    pub(crate) fn links(&self, at_ms: i64) -> Vec<Link> {
        let links = self.sources.iter().filter_map(|source| {
            Some(Link {
                relation: WorkflowRelation::Integrates,
                mode: source.mode?,
                workflow: source.id.clone(),
                at_ms,
            })
        });
        links.collect()
    }
}

impl Integrate {
    /// Returns the state that a workflow begins with.
    pub(crate) fn begun(begin: &IntegrateBegin) -> Self {
        Self {
            began: begin.target.clone(),
            target: begin.target.clone(),
            sources: begin.sources.clone(),
            leave: begin.leave,
            rules: begin.rules.clone(),
            phase: IntegratePhase::Inspect,
            cycle: 1,
            attempt: 1,
            wanted: None,
            unclear: None,
            clarified: Vec::new(),
            foresight: None,
            plan: None,
            branch: None,
            first: None,
            baseline: None,
            applied: Vec::new(),
            conflict: None,
            resolutions: Vec::new(),
            regenerations: Vec::new(),
            redo: Vec::new(),
            evicted: Vec::new(),
            verified: None,
            trials: Vec::new(),
            more_checks: Vec::new(),
            coverage: None,
            reviews: Vec::new(),
            statements: Vec::new(),
            stopped: None,
            refused: Default::default(),
            counts: Default::default(),
            landed: None,
        }
    }
}
