//! What a loop's event watches, as a mark: a text that is another one after each occurrence.
//!
//! A mark names its source too, so that a definition that watches something else now is seen for
//! the first time instead of being triggered. Looks at no file and no repository.

use std::collections::BTreeMap;

use kapi_core::task_id::{KernelTaskId, LoopName};
use kapi_core::value::KernelValue;
use kapi_store::canonical::canonical_hash;

use crate::rules::definition::trigger::{Ending, EventSource};
use crate::rules::state::KernelState;

/// Hexadecimal digits of the source's hash that a mark begins with.
const SOURCE_DIGITS: usize = 12;

/// What somebody saw who looked at what an event watches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sight {
    /// It is like this now.
    Is {
        /// How: the same text means that nothing happened.
        state: String,
        /// What a run is told of it.
        payload: KernelValue,
    },
    /// It is not there, which triggers nothing.
    Nothing,
    /// It changes right now.
    Unsettled {
        /// When it is worth another look, in milliseconds since the epoch.
        again_at_ms: i64,
    },
    /// It cannot be looked at.
    Failed {
        /// Why, as a fragment after "failed to".
        why: String,
    },
}

/// Returns the mark of what an event watches when it is like this.
#[must_use]
pub fn mark(source: &EventSource, state: &str) -> String {
    format!("{}:{state}", source_hash(source))
}

/// Tells whether a mark is of this source.
#[must_use]
pub fn is_mark_of(source: &EventSource, mark: &str) -> bool {
    let rest = mark.strip_prefix(source_hash(source).as_str());
    rest.is_some_and(|rest| rest.starts_with(':'))
}

/// Returns a source in words: "files src/**", "loop nightly".
#[must_use]
pub fn words(source: &EventSource) -> String {
    match source {
        EventSource::Files { globs } => format!("files {}", globs.join(" ")),
        EventSource::GitRef { name } => format!("ref {name}"),
        EventSource::LoopResult { loop_name, on } => {
            let end = match on {
                Ending::Completed => "completed",
                Ending::Failed => "failed",
                Ending::Any => "ended",
            };
            format!("loop {loop_name} {end}")
        }
        EventSource::Webhook { name } => format!("webhook {name}"),
    }
}

/// Returns the last run of a loop that ended as it is waited for. One that found nothing to do
/// counts as none.
#[must_use]
pub fn result_of(kernel: &KernelState, name: &LoopName, on: Ending) -> Option<KernelTaskId> {
    let last = kernel.loops.get(name)?.last_run.as_ref()?;
    (!last.was_skipped && on.is_met_by(last.state)).then_some(last.task)
}

/// Looks at another loop's last result.
#[must_use]
pub fn look_at_loop(kernel: &KernelState, name: &LoopName, on: Ending) -> Sight {
    let Some(task) = result_of(kernel, name, on) else {
        return Sight::Nothing;
    };
    let payload = [("loop", name.to_string()), ("task", task.to_string())];
    Sight::Is {
        state: task.to_string(),
        payload: table(payload),
    }
}

/// Returns a table of texts.
pub fn table<const N: usize>(entries: [(&str, String); N]) -> KernelValue {
    let entries = entries.map(|(key, text)| (key.to_owned(), KernelValue::Text(text)));
    KernelValue::Map(BTreeMap::from(entries))
}

fn source_hash(source: &EventSource) -> String {
    // A source is text and words, which can always be written; and an empty hash fits none.
    let mut hash = canonical_hash(source).unwrap_or_default();
    hash.truncate(SOURCE_DIGITS);
    hash
}

#[cfg(test)]
mod tests {
    use kapi_core::task_id::{KernelTaskId, LoopName};

    use super::{is_mark_of, mark, result_of, words};
    use crate::rules::definition::trigger::{Ending, EventSource};
    use crate::rules::state::{KernelState, LastRun, LoopState};
    use crate::rules::task_state::KernelTaskState;

    fn files(glob: &str) -> EventSource {
        let globs = vec![glob.to_owned()];
        EventSource::Files { globs }
    }

    #[test]
    fn a_mark_is_of_one_source() {
        let source = files("src/**");
        let first = mark(&source, "a");
        assert!(is_mark_of(&source, &first));
        assert!(!is_mark_of(&files("lib/**"), &first));
        assert!(!is_mark_of(&source, "a") && !is_mark_of(&source, ""));
        assert_ne!(first, mark(&source, "b"));
        assert_eq!(words(&source), "files src/**");
    }

    #[test]
    fn only_a_run_that_ended_as_meant_and_did_something_is_a_result() {
        let name = LoopName::parse("nightly").unwrap();
        let with = |state, was_skipped| {
            let mut kernel = KernelState::default();
            let last_run = LastRun {
                task: KernelTaskId::new(7),
                started_at_ms: 1,
                ended_at_ms: 2,
                state,
                was_skipped,
                commit: None,
                start: None,
            };
            let known = LoopState {
                last_run: Some(last_run),
                ..LoopState::default()
            };
            kernel.loops.insert(name.clone(), known);
            kernel
        };
        let seven = Some(KernelTaskId::new(7));
        let check = |kernel: &KernelState, on| result_of(kernel, &name, on);
        assert_eq!(
            check(&with(KernelTaskState::Completed, false), Ending::Completed),
            seven
        );
        assert_eq!(
            check(&with(KernelTaskState::Failed, false), Ending::Any),
            seven
        );
        assert_eq!(
            check(&with(KernelTaskState::Failed, false), Ending::Completed),
            None
        );
        assert_eq!(
            check(&with(KernelTaskState::Cancelled, false), Ending::Any),
            None
        );
        assert_eq!(
            check(&with(KernelTaskState::Completed, true), Ending::Any),
            None
        );
        assert_eq!(check(&KernelState::default(), Ending::Any), None);
    }
}
