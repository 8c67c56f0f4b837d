//! When a provider has had enough for now, and says for how long.
//!
//! An agent that is told to wait for an hour would sit in its sandbox for an hour. It is told to give
//! up instead, and whoever drives it learns how long the wait is.

use crate::http::head::Headers;

/// A longer wait than this, in milliseconds, is not for an agent to sit through.
pub const SHORT_WAIT_MS_MAX: u64 = 5 * 60 * 1000;
/// The longest wait that is believed, in milliseconds: a month.
const WAIT_MS_MAX: u64 = 31 * 24 * 60 * 60 * 1000;
/// The status that says so.
const TOO_MANY_REQUESTS: u16 = 429;

/// Tells whether an answer says that a quota is used up for longer than an agent should wait.
#[must_use]
pub fn is_used_up(status: u16, retry_after_ms: Option<u64>) -> bool {
    status == TOO_MANY_REQUESTS && retry_after_ms.is_some_and(|ms| ms > SHORT_WAIT_MS_MAX)
}

/// Reads when the provider wants to be asked again; a date is not read, but not guessed either.
pub(crate) fn retry_after_ms(headers: &Headers) -> Option<u64> {
    let number = |name| {
        let text = std::str::from_utf8(headers.first(name)?).ok()?;
        let whole = text.trim().split('.').next()?;
        whole.parse::<u64>().ok()
    };
    let in_ms = number("retry-after-ms");
    let in_seconds = || number("retry-after").map(|seconds| seconds.saturating_mul(1000));
    in_ms.or_else(in_seconds).map(|ms| ms.min(WAIT_MS_MAX))
}

/// Takes the wait out of an answer, and says in the words that clients know not to try again.
pub(crate) fn say_do_not_wait(headers: &mut Headers) {
    for name in ["retry-after", "retry-after-ms", "x-should-retry"] {
        headers.remove(name);
    }
    headers.add("x-should-retry", b"false");
}

#[cfg(test)]
mod tests {
    use super::{is_used_up, retry_after_ms, say_do_not_wait};
    use crate::http::head::Headers;

    fn headers(lines: &[(&str, &str)]) -> Headers {
        let mut headers = Headers::default();
        for (name, value) in lines {
            headers.add(name, value.as_bytes());
        }
        headers
    }

    fn check(lines: &[(&str, &str)], expected: Option<u64>) {
        assert_eq!(retry_after_ms(&headers(lines)), expected, "{lines:?}");
    }

    #[test]
    fn the_wait_stands_in_a_header() {
        check(&[], None);
        check(&[("retry-after", "600")], Some(600_000));
        check(&[("Retry-After", " 0.5 ")], Some(0));
        check(
            &[("retry-after", "9"), ("retry-after-ms", "250")],
            Some(250),
        );
        check(&[("retry-after", "Sun, 22 Nov 2026 10:00:00 GMT")], None);
        check(&[("retry-after", "99999999999999999")], Some(2_678_400_000));
    }

    #[test]
    fn only_a_long_wait_for_a_quota_is_not_sat_through() {
        assert!(is_used_up(429, Some(300_001)));
        assert!(!is_used_up(429, Some(300_000)));
        assert!(!is_used_up(429, None));
        assert!(!is_used_up(503, Some(3_600_000)), "it is only overloaded");
        let mut answer = headers(&[("retry-after", "600"), ("x-should-retry", "true")]);
        say_do_not_wait(&mut answer);
        assert_eq!(retry_after_ms(&answer), None);
        assert!(answer.all("x-should-retry").eq([b"false"]));
    }
}
