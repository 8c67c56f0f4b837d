//! What a person set for the kernel of a project: how many, how long, by whom.
//!
//! Resolved before it arrives here; nothing is read or defaulted from files.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::rules::command::{Admission, Capacity, Overflow};
use crate::rules::definition;

/// Where lessons are kept when nobody says, below the state directory.
pub const GUARDRAILS: &str = "guardrails";
/// How long a task may take when nobody says, in milliseconds (specification: Config Format).
pub const DEFAULT_TIMEOUT_MS: u64 = 300_000;
/// How long an idempotency key holds when nobody says, in milliseconds (specification).
pub const KEY_TTL_MS: u64 = 600_000;
/// Tasks that run at once when nobody says (specification: Config Format).
pub const PROJECT_MAX: u32 = 3;
/// Tasks that have not ended, at most, when nobody says.
pub const TASKS_MAX: u32 = 20_000;
/// Tokens of a prompt that guardrails may take when nobody says.
pub const GUARDRAIL_TOKENS_MAX: u32 = 600;

/// What holds for the kernel of one project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelTerms {
    /// The agent profile when a request names none.
    pub default_agent: String,
    /// The agent program when neither request nor profile names one; the first that can start here
    /// if this does not either.
    pub default_backend: Option<String>,
    /// The model when neither request nor profile names one.
    pub default_model: Option<String>,
    /// What each agent program is told of provider and model, by its name.
    pub backends: BTreeMap<String, BackendTerms>,
    /// How long a task may take when the request does not say, in milliseconds; 0 for no limit.
    pub default_timeout_ms: u64,
    /// Tasks that run at once in the project.
    pub project_max: u32,
    /// Tasks that run at once of one agent profile, by its name.
    pub per_agent: BTreeMap<String, u32>,
    /// Tasks of all projects that run at once on this machine; `None` for as many as it bears.
    pub machine_max: Option<u32>,
    /// Tasks that have not ended, at most.
    pub tasks_max: u32,
    /// Millionths of a US dollar that a day of the project may cost, UTC; `None` for no limit.
    pub usd_micros_per_day: Option<u64>,
    /// What becomes of a task that finds every place taken.
    pub overflow: Overflow,
    /// How long an idempotency key holds, in milliseconds.
    pub key_ttl_ms: u64,
    /// Where guardrails are kept.
    pub guardrails_dir: PathBuf,
    /// Tokens of a prompt that guardrails may take.
    pub guardrail_tokens_max: u32,
    /// After how many times a learnt lesson is accepted without a person; `None` for never.
    pub accept_learnt_after: Option<u32>,
}

/// What an agent program is told of provider and model.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BackendTerms {
    /// The provider.
    pub provider: Option<String>,
    /// The model.
    pub model: Option<String>,
}

impl KernelTerms {
    /// Returns what holds when nobody set anything; lessons are kept in this directory.
    #[must_use]
    pub fn standard(guardrails_dir: PathBuf) -> Self {
        Self {
            default_agent: definition::AGENT_DEFAULT.to_owned(),
            default_backend: None,
            default_model: None,
            backends: BTreeMap::new(),
            default_timeout_ms: DEFAULT_TIMEOUT_MS,
            project_max: PROJECT_MAX,
            per_agent: BTreeMap::new(),
            machine_max: None,
            tasks_max: TASKS_MAX,
            usd_micros_per_day: None,
            overflow: Overflow::Queue,
            key_ttl_ms: KEY_TTL_MS,
            guardrails_dir,
            guardrail_tokens_max: GUARDRAIL_TOKENS_MAX,
            accept_learnt_after: None,
        }
    }

    /// Returns how many tasks there may be.
    #[must_use]
    pub const fn admission(&self) -> Admission {
        Admission {
            tasks_max: self.tasks_max,
            overflow: self.overflow,
            running_max: self.project_max,
        }
    }

    /// Returns how many tasks may run at once.
    #[must_use]
    pub fn capacity(&self) -> Capacity {
        Capacity {
            project: self.project_max,
            per_agent: self.per_agent.clone(),
            usd_micros_per_day: self.usd_micros_per_day,
        }
    }
}
