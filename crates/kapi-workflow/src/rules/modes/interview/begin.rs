//! How an interview begins: with the commit that facts are looked up in.

use kapi_core::link::Link;
use serde::{Deserialize, Serialize};

use crate::rules::handover::Spec;
use crate::rules::modes::interview::state::{Interview, InterviewPhase};

/// A Deep Interview's beginning.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InterviewBegin {
    /// The commit that facts are looked up in; `None` where there is no repository.
    pub commit: Option<String>,
}

impl InterviewBegin {
    /// Returns what is wrong with it.
    pub(crate) const fn fault(&self) -> Option<&'static str> {
        None
    }

    /// Returns the workflow that gives it its context: none.
    pub(crate) const fn context(&self) -> Option<&kapi_core::id::GoalId> {
        None
    }

    /// Returns what that workflow handed over.
    pub(crate) const fn handover(&self) -> Option<&Spec> {
        None
    }

    /// Takes what that workflow handed over: nothing.
    pub(crate) fn with_handover(self, _: Option<Box<Spec>>) -> Self {
        self
    }

    /// Returns the links that the workflow begins with: none.
    pub(crate) const fn links(&self, _: i64) -> Vec<Link> {
        Vec::new()
    }
}

impl Interview {
    /// Returns the state that a workflow begins with.
    pub(crate) fn begun(begin: &InterviewBegin) -> Self {
        Self {
            commit: begin.commit.clone(),
            phase: InterviewPhase::Asking,
            rounds: Vec::new(),
            restated: None,
            score: None,
            streak: 0,
            contradictions: Vec::new(),
            is_enough: false,
            refused: Vec::new(),
            spec: None,
            steps: 0,
            restarts: 0,
        }
    }
}
