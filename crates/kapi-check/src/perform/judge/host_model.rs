//! Models of a session's host, such as Pi: it asks them with its own keys, which Kapi never sees.
//!
//! The host carries question and answer. What the answer means is decided where every judge's is.

use std::time::Duration;

use kapi_run::host_grants::HostGrants;
use kapi_run::judge_provider::JudgeReference;
use kapi_spend::rules::tokens::TokenCounts;
use kapi_sys::cancel::Cancel;

/// What the host can ask.
#[derive(Clone, Copy)]
pub struct HostModels<'a> {
    /// Tells whether it has a model, written as provider/model.
    pub has: &'a (dyn Fn(&str) -> bool + Sync),
    /// Returns the model that works in the session itself.
    pub own: &'a (dyn Fn() -> Option<String> + Sync),
    /// Puts a question to a model and waits for the answer.
    pub ask: &'a (dyn Fn(&HostQuestion<'_>, &Cancel) -> HostAnswer + Sync),
}

/// A question to a model of the host's.
#[derive(Debug, Clone, Copy)]
pub struct HostQuestion<'a> {
    /// The model, written as provider/model.
    pub model: &'a str,
    /// What the model is told to be.
    pub system: &'a str,
    /// What it is asked.
    pub user: &'a str,
    /// The most tokens it may write.
    pub output_tokens_max: u32,
    /// How long it may take.
    pub deadline: Duration,
}

/// What became of the question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostAnswer {
    /// What came of it.
    pub outcome: HostOutcome,
    /// What was used; nothing where nobody told.
    pub counts: Option<TokenCounts>,
}

/// What came of a question to a model of the host's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostOutcome {
    /// The model said this.
    Said(String),
    /// It could not be asked, or did not answer.
    Failed(String),
    /// Nobody wanted the answer any more.
    Cancelled,
}

/// Tells whether the host asks this judge: it is one of its models, and the person's configuration of
/// Kapi does not say where that provider is asked.
#[must_use]
pub fn is_asked_by_host(grants: &HostGrants, judge: &str, has: &dyn Fn(&str) -> bool) -> bool {
    match JudgeReference::parse(judge) {
        JudgeReference::Model { provider, .. } => {
            !grants.judges.contains_key(provider) && has(judge)
        }
        JudgeReference::Agent(_) => false,
    }
}
