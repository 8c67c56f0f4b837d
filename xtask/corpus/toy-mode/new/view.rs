//! A scale as others see it.

use kapi_workflow::rules::branch::Branch;
use kapi_workflow::rules::modes::scales::state::Scales;
use serde::Serialize;

/// A scale.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ScalesView {
    /// The commit that it began at.
    pub base: String,
    /// The branch, once it is there.
    pub branch: Option<Branch>,
    /// What it weighed.
    pub carried: Option<String>,
}

impl ScalesView {
    /// Shows it.
    #[must_use]
    pub fn of(scales: &Scales) -> Self {
        Self {
            base: scales.base.clone(),
            branch: scales.branch.clone(),
            carried: scales.carried.clone(),
        }
    }
}
