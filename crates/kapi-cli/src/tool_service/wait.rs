//! Waiting for a task's end on behalf of a client that asked for its status.
//!
//! Looks again and again, as the tool itself does, and tells the client that it is still there.

use std::time::Duration;

use kapi_mcp::call::{CallOutcome, Wait};
use kapi_wire::kernel_tools::answer::ToolAnswer;
use serde_json::Value;

/// The time between two looks.
const LOOK: Duration = Duration::from_secs(1);

/// Looks at a task.
pub(super) type Look<'a> = Box<dyn Fn() -> Value + Send + 'a>;

/// Returns the answer to a look once the task is over, or after so many seconds.
pub(super) fn until_over(look: Look<'_>, wait_s: u64) -> CallOutcome<'_> {
    let first = look();
    if wait_s == 0 || status(&first).is_none() {
        return CallOutcome::Answered(first);
    }
    let wait: Wait<'_> = Box::new(move |link| {
        let mut last = first;
        for passed_s in 1..=wait_s {
            if link.wait(LOOK) {
                return last;
            }
            last = look();
            let Some(status) = status(&last) else {
                return last;
            };
            link.report(passed_s, wait_s, &format!("the task is {status}"));
        }
        last
    });
    CallOutcome::Waiting(wait)
}

/// Returns the status of a task that is not over.
fn status(answer: &Value) -> Option<String> {
    let answer = ToolAnswer::from_value(answer);
    let status = answer.details["status"].as_str()?;
    matches!(status, "queued" | "running").then(|| status.to_owned())
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use kapi_mcp::call::{CallCancel, CallLink, CallOutcome};
    use serde_json::{Value, json};

    use super::until_over;

    fn answer(status: &str) -> Value {
        json!({"ok": true, "text": status, "details": {"status": status}})
    }

    #[test]
    fn what_is_over_is_not_waited_for() {
        for (status, wait_s) in [("completed", 60), ("running", 0)] {
            let outcome = until_over(Box::new(move || answer(status)), wait_s);
            assert!(
                matches!(outcome, CallOutcome::Answered(given) if given == answer(status)),
                "{status}"
            );
        }
    }

    #[test]
    fn a_wait_tells_how_far_it_is_and_ends_with_the_task() {
        let statuses = Mutex::new(vec!["completed", "running", "queued"]);
        let look = || answer(statuses.lock().unwrap().pop().unwrap());
        let CallOutcome::Waiting(wait) = until_over(Box::new(look), 600) else {
            panic!("it does not wait");
        };
        let written = Mutex::new(Vec::new());
        let write = |message: &Value| written.lock().unwrap().push(message.clone());
        let (cancel, token) = (CallCancel::default(), json!("t"));
        let given = wait(&CallLink::new(&cancel, Some(&token), &write));
        assert_eq!(given, answer("completed"));
        let written = written.into_inner().unwrap();
        let params = json!({
            "progressToken": "t", "progress": 1, "total": 600, "message": "the task is running",
        });
        assert_eq!(written.len(), 1);
        assert_eq!(written[0]["params"], params);
    }

    #[test]
    fn a_wait_that_is_given_up_looks_no_more() {
        let looked = Mutex::new(0);
        let look = || {
            *looked.lock().unwrap() += 1;
            answer("running")
        };
        let CallOutcome::Waiting(wait) = until_over(Box::new(look), 600) else {
            panic!("it does not wait");
        };
        let cancel = CallCancel::default();
        cancel.cancel();
        wait(&CallLink::new(&cancel, None, &|_| {}));
        assert_eq!(*looked.lock().unwrap(), 1);
    }
}
