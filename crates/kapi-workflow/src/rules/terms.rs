//! What a workflow may use: who works, who looks on, how isolated, how much.
//!
//! Set by a person at the start; an agent cannot change a word of it.

use kapi_core::agent_models::AgentModels;
use kapi_core::isolation::{NetworkMode, SandboxLevel};
use kapi_core::judge::Judge;
use kapi_goal::rules::budget::Budget;
use kapi_goal::rules::delivery::Delivery;
use serde::{Deserialize, Serialize};

/// What a workflow may use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkflowTerms {
    /// The agent that asks, plans and works.
    pub agent: String,
    /// The agent that objects and reviews; the same one where it is `None`, which is a risk that
    /// every report shows.
    pub reviewer: Option<String>,
    /// The models of the agents above and below, of those that may not ask any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub models: Vec<AgentModels>,
    /// Who judges each goal.
    pub judge: Judge,
    /// The isolation around every agent and every verify command.
    pub sandbox: SandboxLevel,
    /// What agents can reach besides their model.
    pub network: NetworkMode,
    /// The limits of each goal, which get narrower as less is left of those of the whole.
    pub budget: Budget,
    /// The most tokens for everything, questions and goals together; `None` is no limit.
    pub tokens: Option<u64>,
    /// The most micro-dollars for everything, questions and goals together; `None` is no limit.
    pub usd_micros: Option<u64>,
    /// The most milliseconds that somebody may be at work for it; `None` is no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wall_ms: Option<u64>,
    /// Goals that may be driven at once.
    pub jobs: u32,
    /// Milliseconds one verify command may take.
    pub verify_timeout_ms: u64,
    /// Milliseconds one question to an agent may take.
    pub question_timeout_ms: u64,
    /// Pathspecs that no goal may change.
    pub protect: Vec<String>,
    /// Shell commands that every goal and the closeout must pass, whatever a plan says.
    pub verify: Vec<String>,
    /// Where its branch goes once it is complete, if anywhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivery: Option<Delivery>,
    /// Whether the plan waits for its approval.
    pub plan_approval: PlanApproval,
}

/// Whether a plan waits for a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlanApproval {
    /// It does.
    Ask,
    /// The person approved in advance whatever reaches consensus, and that is recorded as such.
    InAdvance,
}

impl WorkflowTerms {
    /// Returns who objects and reviews.
    #[must_use]
    pub fn reviewer(&self) -> &str {
        self.reviewer.as_deref().unwrap_or(&self.agent)
    }
}
