//! A rule of the kernel said no: nothing changed, and this is why.

use kapi_core::task_id::{Fence, KernelTaskId};

use super::task_state::KernelTaskState;
use crate::rules::task::LoopPhase;

/// A refusal by rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KernelDenial {
    /// The request breaks a rule of its own.
    #[error("{rule}")]
    BadRequest {
        /// The rule.
        rule: &'static str,
    },
    /// Every place is taken.
    #[error("over capacity ({running}/{max})")]
    OverCapacity {
        /// Places that are taken.
        running: u32,
        /// Places.
        max: u32,
    },
    /// Tasks submit tasks that submit tasks.
    #[error("self recursion depth {depth} exceeds maxDepth={max}")]
    TooDeep {
        /// How deep this one would be.
        depth: u32,
        /// How deep is allowed.
        max: u32,
    },
    /// There is none.
    #[error("task not found: {task}")]
    NoTask {
        /// Which.
        task: KernelTaskId,
    },
    /// It has ended.
    #[error("{task} is {state} and cannot be {action}")]
    WrongState {
        /// Which.
        task: KernelTaskId,
        /// Where it stands.
        state: KernelTaskState,
        /// What was asked, as a participle.
        action: &'static str,
    },
    /// Somebody who no longer holds the lease came back.
    #[error("the lease {fence} of {task} has expired{}", by(*.held))]
    Fenced {
        /// Which.
        task: KernelTaskId,
        /// The lease that was named.
        fence: Fence,
        /// The lease that holds.
        held: Option<Fence>,
    },
    /// A phase out of its turn.
    #[error("{task} is in phase {}, not {}", .now.map_or("none", LoopPhase::name), .asked.name())]
    WrongPhase {
        /// Which.
        task: KernelTaskId,
        /// Where it is.
        now: Option<LoopPhase>,
        /// What was reported.
        asked: LoopPhase,
    },
    /// Somebody else leads.
    #[error("{holder} leads")]
    Led {
        /// Who.
        holder: String,
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
    /// An agent asked for something of a task that it did not submit.
    #[error("{actor} cannot cancel {task}, because it did not submit it")]
    NotYours {
        /// Which.
        task: KernelTaskId,
        /// Who asked.
        actor: String,
    },
}

fn by(held: Option<Fence>) -> String {
    held.map_or_else(String::new, |held| format!(": {held} replaced it"))
}
