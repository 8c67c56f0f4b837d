//! Every durable mode there is, in one list: what the lifecycle keeps of each, and whose rules are
//! asked.
//!
//! Knows no mode but by its types; what they mean stands in the mode's own folder.

use serde::{Deserialize, Serialize};

use crate::id::GoalId;
use crate::workflow::handover::Spec;
use crate::workflow::interview::begin::InterviewBegin;
use crate::workflow::link::Link;
use crate::workflow::mode::Mode;
use crate::workflow::ralph::begin::RalphBegin;
use crate::workflow::state::Body;

/// How a mode begins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Begin {
    /// A Deep Interview.
    Interview(InterviewBegin),
    /// A Ralph workflow.
    Ralph(RalphBegin),
}

impl Begin {
    /// Returns which mode begins.
    #[must_use]
    pub const fn mode(&self) -> Mode {
        match self {
            Self::Interview(_) => Mode::DeepInterview,
            Self::Ralph(_) => Mode::Ralph,
        }
    }

    /// Returns what is wrong with it.
    #[must_use]
    pub const fn fault(&self) -> Option<&'static str> {
        match self {
            Self::Interview(begin) => begin.fault(),
            Self::Ralph(begin) => begin.fault(),
        }
    }

    /// Returns the workflow that gives it its context.
    #[must_use]
    pub const fn context(&self) -> Option<&GoalId> {
        match self {
            Self::Interview(begin) => begin.context(),
            Self::Ralph(begin) => begin.context(),
        }
    }

    /// Returns what that workflow handed over.
    #[must_use]
    pub fn handover(&self) -> Option<&Spec> {
        match self {
            Self::Interview(begin) => begin.handover(),
            Self::Ralph(begin) => begin.handover(),
        }
    }

    /// Takes what that workflow handed over.
    #[must_use]
    pub fn with_handover(self, handover: Option<Box<Spec>>) -> Self {
        match self {
            Self::Interview(begin) => Self::Interview(begin.with_handover(handover)),
            Self::Ralph(begin) => Self::Ralph(begin.with_handover(handover)),
        }
    }

    /// Returns the mode's part of the workflow, and the links that it begins with.
    pub(crate) fn body(&self, at_ms: i64) -> (Body, Vec<Link>) {
        match self {
            Self::Interview(begin) => {
                let (state, links) = begin.body(at_ms);
                (Body::Interview(Box::new(state)), links)
            }
            Self::Ralph(begin) => {
                let (state, links) = begin.body(at_ms);
                (Body::Ralph(Box::new(state)), links)
            }
        }
    }
}
