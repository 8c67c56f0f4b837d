//! How a search begins: from a commit, with or without what an interview found out.

use std::collections::BTreeMap;

use kapi_core::id::GoalId;
use kapi_core::link::{Link, WorkflowRelation};
use kapi_core::mode::Mode;
use serde::{Deserialize, Serialize};

use crate::rules::handover::Spec;
use crate::rules::modes::autoresearch::state::{Autoresearch, AutoresearchPhase};

/// A search's beginning.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AutoresearchBegin {
    /// The commit it starts from.
    pub base: String,
    /// The interview that gives it its context.
    pub interview: Option<GoalId>,
    /// That interview's approved spec.
    pub spec: Option<Box<Spec>>,
}

impl AutoresearchBegin {
    /// Returns what is wrong with it.
    pub(crate) const fn fault(&self) -> Option<&'static str> {
        if self.base.is_empty() {
            Some("begin a search without a commit")
        } else if self.interview.is_some() != self.spec.is_some() {
            Some("begin from an interview without its approved spec")
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
    pub(crate) fn body(&self, at_ms: i64) -> (Autoresearch, Vec<Link>) {
        let state = Autoresearch {
            base: self.base.clone(),
            spec: self.spec.clone(),
            phase: AutoresearchPhase::Draft,
            contract: None,
            reopened: None,
            segment: 0,
            branch: None,
            imported: None,
            metrics: BTreeMap::new(),
            runs: Vec::new(),
            ideas: Vec::new(),
            candidate: None,
            measured: Vec::new(),
            round: None,
            settling: None,
            counters: Default::default(),
            refused: Vec::new(),
            ended: None,
            verified: None,
            groups: Vec::new(),
            branches: Vec::new(),
        };
        let link = |interview: &GoalId| Link {
            relation: WorkflowRelation::Context,
            mode: Mode::CONTEXT,
            workflow: interview.clone(),
            at_ms,
        };
        (state, self.interview.iter().map(link).collect())
    }
}
