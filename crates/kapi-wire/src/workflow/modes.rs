//! The parts of the modes in a workflow's view, in one list: a field for each, null but for its own.

pub mod autoresearch;
pub mod integrate;
pub mod interview;
pub mod ralph;

use kapi_workflow::rules::modes::Body;
use schemars::JsonSchema;
use serde::Serialize;

use crate::workflow::asked::AskedView;
use crate::workflow::modes::autoresearch::AutoresearchView;
use crate::workflow::modes::integrate::IntegrateView;
use crate::workflow::modes::interview::InterviewView;
use crate::workflow::modes::ralph::RalphView;

/// The part of each mode.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct ModeParts {
    /// The interview, of such a workflow.
    pub interview: Option<InterviewView>,
    /// The plan, its tasks and its reviews, of such a workflow.
    pub ralph: Option<RalphView>,
    /// The contract and the runs, of such a workflow.
    pub autoresearch: Option<AutoresearchView>,
    /// The sources, the plan and the verdicts, of such a workflow.
    #[schemars(skip)]
    pub integrate: Option<IntegrateView>,
}

impl ModeParts {
    /// Shows the mode's own part.
    #[must_use]
    pub fn of(body: &Body) -> Self {
        let mut parts = Self::default();
        match body {
            Body::Interview(interview) => parts.interview = Some(InterviewView::of(interview)),
            Body::Ralph(ralph) => parts.ralph = Some(RalphView::of(ralph)),
            Body::Autoresearch(search) => {
                parts.autoresearch = Some(AutoresearchView::of(search));
            }
            Body::Integrate(state) => parts.integrate = Some(IntegrateView::of(state)),
        }
        parts
    }
}

/// Returns what a workflow asks its person now, with everything that helps them to answer.
#[must_use]
pub fn asked(body: &Body) -> Option<AskedView> {
    match body {
        Body::Interview(interview) => interview::asked(interview),
        Body::Ralph(_) => None,
        Body::Autoresearch(_) => None,
        Body::Integrate(_) => None,
    }
}

#[cfg(test)]
mod tests;
