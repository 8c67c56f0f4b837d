//! A rule of a workflow said no: nothing changed, this is why, and this is what is allowed.

use kapi_core::id::GoalId;

use crate::rules::evidence::Weight;
use crate::rules::pending::WorkflowDecision;

/// A refusal by rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct WorkflowDenial {
    /// The rule.
    pub why: WorkflowRule,
    /// The phase and subphase the workflow is in, as in `snapshot.json`; `None` before it began.
    pub phase: Option<(&'static str, Option<&'static str>)>,
    /// What waits for a person.
    pub pending: Option<WorkflowDecision>,
    /// What could be asked instead, as commands to type, most useful first.
    pub next_commands: Vec<String>,
}

/// Which rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WorkflowRule {
    /// It exists already.
    #[error("start {workflow}, which already exists")]
    AlreadyStarted {
        /// Which.
        workflow: GoalId,
    },
    /// Nothing was started yet.
    #[error("use a workflow that has not started")]
    NotStarted,
    /// It has ended.
    #[error("{action}: the workflow has ended ({status})")]
    AlreadyTerminal {
        /// What was asked.
        action: &'static str,
        /// How it ended.
        status: &'static str,
    },
    /// Nothing waits.
    #[error("approve anything: no decision is pending")]
    NoPendingDecision,
    /// The subject is not what was shown, or not what was drafted.
    #[error("approve {artifact}: its hash is {found}, not the one shown ({shown})")]
    SubjectChanged {
        /// The artifacts, in words.
        artifact: String,
        /// The hash that was named.
        shown: Box<str>,
        /// The hash that holds or stands in the file.
        found: Box<str>,
    },
    /// Risks stand with the decision and were not accepted.
    #[error("approve {artifact} without accepting its risks: {risks}")]
    RisksNotAccepted {
        /// The artifacts, in words.
        artifact: String,
        /// The risks, in words.
        risks: String,
    },
    /// The phase does not allow it.
    #[error("{action} in phase {phase}")]
    WrongPhase {
        /// What was asked.
        action: &'static str,
        /// Where it stands.
        phase: String,
    },
    /// Another mode is asked for.
    #[error("{action}: the workflow is a {mode} workflow")]
    WrongMode {
        /// What was asked.
        action: &'static str,
        /// What it is.
        mode: &'static str,
    },
    /// A rule about what was handed over.
    #[error("{rule}")]
    Malformed {
        /// The rule, as a sentence that begins with what could not be done.
        rule: String,
    },
    /// Something is missing before it can go on.
    #[error("{action} yet: {}", .reasons.join("; "))]
    NotReady {
        /// What was asked.
        action: &'static str,
        /// What is missing.
        reasons: Vec<String>,
    },
    /// The evidence does not weigh enough.
    #[error("{action} on {}, which is not validation", match .weight { Weight::Narrative => "narrative", Weight::Validation => "validation" })]
    WeakEvidence {
        /// What was asked.
        action: &'static str,
        /// What it weighs.
        weight: Weight,
    },
    /// The effect is not under way.
    #[error("report on {effect}, which is not in progress")]
    NotInFlight {
        /// Which.
        effect: String,
    },
    /// An agent or the engine asked for what only a person may do.
    #[error("only the user may {action}, not {actor}")]
    OnlyHuman {
        /// What was asked.
        action: &'static str,
        /// Who asked.
        actor: String,
    },
    /// Somebody asked for what only the engine may do.
    #[error("only the engine may {action}, not {actor}")]
    OnlyEngine {
        /// What was asked.
        action: &'static str,
        /// Who asked.
        actor: String,
    },
}

impl WorkflowRule {
    /// Returns the code, for programs.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::AlreadyStarted { .. } => "already_started",
            Self::NotStarted => "unknown_workflow",
            Self::AlreadyTerminal { .. } => "already_terminal",
            Self::NoPendingDecision => "no_pending_decision",
            Self::SubjectChanged { .. } => "subject_changed",
            Self::RisksNotAccepted { .. } => "risks_not_accepted",
            Self::WrongPhase { .. } => "wrong_phase",
            Self::WrongMode { .. } => "wrong_mode",
            Self::Malformed { .. } => "malformed",
            Self::NotReady { .. } => "not_ready",
            Self::WeakEvidence { .. } => "evidence_missing",
            Self::NotInFlight { .. } => "not_in_flight",
            Self::OnlyHuman { .. } => "not_human",
            Self::OnlyEngine { .. } => "not_engine",
        }
    }
}
