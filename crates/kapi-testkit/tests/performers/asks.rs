//! What is asked of a machine, and who asks.

use kapi_core::actor::Actor;
use kapi_task::rules::request::TaskOrigin;
use kapi_task::rules::task::{AttemptFailure, End, KernelTask};
use kapi_task::rules::task_terms::{Retry, TaskBudget};

/// What every loop's agent is told.
pub(crate) const BODY: &str = "The number is {payload.n}; the last one was {last.status}.";

/// A task to submit.
pub(crate) struct Ask {
    pub(crate) agent: String,
    pub(crate) backend: Option<String>,
    pub(crate) prompt: String,
    pub(crate) timeout_ms: u64,
    pub(crate) budget: TaskBudget,
    pub(crate) verify: Vec<String>,
    pub(crate) retry: Retry,
    pub(crate) keep_commits: bool,
}

/// Returns a task of a shell agent.
pub(crate) fn shell(line: &str) -> Ask {
    Ask {
        agent: "sisyphus".to_owned(),
        backend: Some(format!("command:{line}")),
        prompt: "do it".to_owned(),
        timeout_ms: 60_000,
        budget: TaskBudget::default(),
        verify: Vec::new(),
        retry: Retry::default(),
        keep_commits: false,
    }
}

/// Returns why a task failed.
pub(crate) fn failure(task: &KernelTask) -> &AttemptFailure {
    match &task.report.as_ref().unwrap().end {
        End::Failed(failure) => failure,
        other => panic!("it did not fail: {other:?}"),
    }
}

pub(crate) fn human() -> Actor {
    Actor::Human {
        user: "test".to_owned(),
    }
}

pub(crate) fn person() -> TaskOrigin {
    TaskOrigin::Person {
        user: "test".to_owned(),
    }
}
