//! Models of the host's: which there are, what they were asked, and what they answered.
//!
//! The thread that drives the goal asks and waits; the one that hears the host brings the answer.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use kapi_check::perform::judge::host_model::{HostAnswer, HostOutcome, HostQuestion};
use kapi_spend::rules::tokens::TokenCounts;
use kapi_sys::cancel::Cancel;
use kapi_wire::rpc::{HostModelList, ModelAnswer, ModelQuestion, QuestionNumber, RpcNotice};

/// How often is looked whether an answer is still wanted.
const LOOK: Duration = Duration::from_millis(50);

/// The models, and the questions that are open.
#[derive(Debug, Default)]
pub(super) struct HostModelDesk {
    state: Mutex<ModelState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct ModelState {
    names: BTreeSet<String>,
    own: Option<String>,
    last: u32,
    /// What is asked, with what was answered.
    open: BTreeMap<u32, Option<ModelAnswer>>,
}

/// How a wait for an answer ended.
enum AwaitedAnswer {
    Here(ModelAnswer),
    Late,
    Unwanted,
}

impl HostModelDesk {
    /// Takes note of the models that there are now.
    pub(super) fn know(&self, list: &HostModelList) {
        let mut state = self.lock();
        state.names = list.names.iter().cloned().collect();
        state.own.clone_from(&list.own);
    }

    /// Tells whether there is a model of this name.
    pub(super) fn has(&self, name: &str) -> bool {
        self.lock().names.contains(name)
    }

    /// Returns the model that works in the session, if it can be asked something else, too.
    pub(super) fn own(&self) -> Option<String> {
        let state = self.lock();
        let own = state.own.as_ref();
        own.filter(|own| state.names.contains(*own)).cloned()
    }

    /// Returns some of the names, for messages.
    pub(super) fn some_names(&self, max: usize) -> Vec<String> {
        self.lock().names.iter().take(max).cloned().collect()
    }

    /// Asks a model, and waits for the answer.
    pub(super) fn ask(
        &self,
        question: &HostQuestion<'_>,
        cancel: &Cancel,
        notify: &dyn Fn(&RpcNotice),
    ) -> HostAnswer {
        let id = self.open();
        notify(&RpcNotice::AskModel(ModelQuestion {
            id,
            model: question.model.to_owned(),
            system: question.system.to_owned(),
            user: question.user.to_owned(),
            output_tokens_max: question.output_tokens_max,
        }));
        let awaited = self.wait_for(id, question.deadline, cancel);
        let unanswered = |outcome| {
            notify(&RpcNotice::WithdrawQuestion(QuestionNumber {
                question: id,
            }));
            HostAnswer {
                outcome,
                counts: None,
            }
        };
        match awaited {
            AwaitedAnswer::Here(answer) => read(answer),
            AwaitedAnswer::Unwanted => unanswered(HostOutcome::Cancelled),
            AwaitedAnswer::Late => {
                let seconds = question.deadline.as_secs();
                let text = format!("{} timed out after {seconds} s", question.model);
                unanswered(HostOutcome::Failed(text))
            }
        }
    }

    /// Takes an answer; one to a question that is not open is late, and nobody's.
    pub(super) fn answered(&self, answer: ModelAnswer) {
        let mut state = self.lock();
        if let Some(place) = state.open.get_mut(&answer.question) {
            *place = Some(answer);
            self.changed.notify_all();
        }
    }

    fn open(&self) -> u32 {
        let mut state = self.lock();
        state.last = state.last.wrapping_add(1);
        let id = state.last;
        state.open.insert(id, None);
        id
    }

    /// Waits for an answer; the question is closed then, however it ends.
    fn wait_for(&self, id: u32, deadline: Duration, cancel: &Cancel) -> AwaitedAnswer {
        let end = Instant::now() + deadline;
        let mut state = self.lock();
        let awaited = loop {
            if let Some(Some(answer)) = state.open.get(&id) {
                break AwaitedAnswer::Here(answer.clone());
            }
            if cancel.is_raised() {
                break AwaitedAnswer::Unwanted;
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break AwaitedAnswer::Late;
            }
            let waited = self.changed.wait_timeout(state, left.min(LOOK));
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        };
        state.open.remove(&id);
        awaited
    }

    fn lock(&self) -> MutexGuard<'_, ModelState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn read(answer: ModelAnswer) -> HostAnswer {
    let counts = answer.usage.map(|usage| TokenCounts {
        input: usage.input,
        output: usage.output,
        cache_read: usage.cache_read,
        cache_write: usage.cache_write,
    });
    let said = answer.text.filter(|text| !text.trim().is_empty());
    let outcome = match (answer.failure, said) {
        (Some(failure), _) => HostOutcome::Failed(failure),
        (None, Some(text)) => HostOutcome::Said(text),
        (None, None) => HostOutcome::Failed("the answer is empty".to_owned()),
    };
    HostAnswer { outcome, counts }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use kapi_check::perform::judge::host_model::{HostAnswer, HostOutcome, HostQuestion};
    use kapi_sys::cancel::Cancel;
    use kapi_wire::rpc::{HostModelList, ModelAnswer, ModelUsage, RpcNotice};

    use super::HostModelDesk;

    fn question(deadline: Duration) -> HostQuestion<'static> {
        HostQuestion {
            model: "other/judge",
            system: "judge",
            user: "this",
            output_tokens_max: 7,
            deadline,
        }
    }

    fn answer(question: u32, text: Option<&str>, failure: Option<&str>) -> ModelAnswer {
        let usage = ModelUsage {
            input: 3,
            output: 2,
            cache_read: 1,
            cache_write: 0,
        };
        ModelAnswer {
            question,
            text: text.map(str::to_owned),
            failure: failure.map(str::to_owned),
            usage: Some(usage),
        }
    }

    /// Asks a host that answers at once.
    fn asked(text: Option<&str>, failure: Option<&str>) -> HostAnswer {
        let desk = HostModelDesk::default();
        let host = |notice: &RpcNotice| match notice {
            RpcNotice::AskModel(asked) => {
                desk.answered(answer(
                    asked.id.wrapping_add(1),
                    Some("of another one"),
                    None,
                ));
                desk.answered(answer(asked.id, text, failure));
            }
            other => panic!("{other:?}"),
        };
        desk.ask(&question(Duration::from_secs(60)), &Cancel::new(), &host)
    }

    #[test]
    fn an_answer_is_what_was_said_and_nothing_else_is_one() {
        let said = asked(Some("yes"), None);
        assert_eq!(said.outcome, HostOutcome::Said("yes".to_owned()));
        assert_eq!(said.counts.unwrap().cache_read, 1);
        let failed = |text: &str| HostOutcome::Failed(text.to_owned());
        assert_eq!(asked(Some("yes"), Some("no key")).outcome, failed("no key"));
        assert_eq!(
            asked(Some(" "), None).outcome,
            failed("the answer is empty")
        );
        assert_eq!(asked(None, None).outcome, failed("the answer is empty"));
    }

    #[test]
    fn what_nobody_wants_any_more_or_comes_too_late_is_withdrawn() {
        let cancelled = Cancel::new();
        cancelled.raise();
        let cases = [
            (Duration::from_secs(60), cancelled, HostOutcome::Cancelled),
            (
                Duration::ZERO,
                Cancel::new(),
                HostOutcome::Failed("other/judge timed out after 0 s".to_owned()),
            ),
        ];
        for (deadline, cancel, expected) in cases {
            let desk = HostModelDesk::default();
            let notices = std::sync::Mutex::new(Vec::new());
            let host = |notice: &RpcNotice| notices.lock().unwrap().push(notice.clone());
            let answered = desk.ask(&question(deadline), &cancel, &host);
            assert_eq!(answered.outcome, expected);
            assert_eq!(answered.counts, None);
            let notices = notices.into_inner().unwrap();
            assert!(
                matches!(
                    notices.as_slice(),
                    [RpcNotice::AskModel(asked), RpcNotice::WithdrawQuestion(withdrawn)]
                        if asked.id == withdrawn.question
                ),
                "{notices:?}"
            );
        }
    }

    #[test]
    fn the_model_of_the_session_is_one_only_where_it_can_be_asked() {
        let desk = HostModelDesk::default();
        let list = |names: &[&str]| HostModelList {
            names: names.iter().map(|name| (*name).to_owned()).collect(),
            own: Some("a/b".to_owned()),
        };
        assert_eq!(desk.own(), None);
        desk.know(&list(&["a/b", "c/d"]));
        assert_eq!(desk.own().as_deref(), Some("a/b"));
        assert!(desk.has("c/d") && !desk.has("d"));
        desk.know(&list(&["c/d"]));
        assert_eq!(desk.own(), None);
    }
}
