//! When a server says it will answer again.
//!
//! Each vendor says it in a place and a spelling of its own; what cannot be read is not guessed.

use serde_json::Value;

use crate::ask::line::RawAnswer;

/// The longest wait that is believed: a quota of a month.
const WAIT_MS_MAX: u64 = 31 * 86_400_000;

/// Returns the milliseconds after which to ask again, when the answer tells.
pub(crate) fn after_ms(raw: &RawAnswer, body: &Value) -> Option<u64> {
    let in_ms = || raw.header("retry-after-ms").and_then(millis);
    let in_seconds = || raw.header("retry-after").and_then(seconds);
    let found = in_ms()
        .or_else(in_seconds)
        .or_else(|| of_used_up(raw))
        .or_else(|| of_body(body));
    found.map(|wait_ms| wait_ms.min(WAIT_MS_MAX))
}

/// Reads the reset of whichever quota has nothing left.
fn of_used_up(raw: &RawAnswer) -> Option<u64> {
    let waits = ["requests", "tokens"].map(|what| {
        let left = raw.header(&format!("x-ratelimit-remaining-{what}"))?;
        let reset = raw.header(&format!("x-ratelimit-reset-{what}"))?;
        (left.trim() == "0").then(|| duration(reset)).flatten()
    });
    waits.into_iter().flatten().max()
}

/// Reads `retryDelay: "34s"` among an error's details.
fn of_body(body: &Value) -> Option<u64> {
    let first = body.get(0).unwrap_or(body);
    let details = first["error"]["details"].as_array()?;
    let delays = details
        .iter()
        .filter_map(|detail| detail["retryDelay"].as_str());
    delays.filter_map(duration).max()
}

fn millis(text: &str) -> Option<u64> {
    let whole = text.trim().split('.').next()?;
    whole.parse().ok()
}

fn seconds(text: &str) -> Option<u64> {
    duration(&format!("{}s", text.trim()))
}

/// Reads `1h2m3.5s`, `250ms` and their like.
fn duration(text: &str) -> Option<u64> {
    let mut rest = text.trim();
    let mut sum_ms: u64 = 0;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let is_number = |c: char| c.is_ascii_digit() || c == '.';
        let (number, after) = rest.split_at(rest.find(|c| !is_number(c))?);
        let is_unit = |c: char| c.is_ascii_alphabetic();
        let (unit, after) = after.split_at(after.find(|c| !is_unit(c)).unwrap_or(after.len()));
        let unit_ms = match unit {
            "ms" => 1,
            "s" => 1_000,
            "m" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            _ => return None,
        };
        sum_ms = sum_ms.saturating_add(scaled(number, unit_ms)?);
        rest = after;
    }
    Some(sum_ms)
}

/// Returns a decimal number of units in milliseconds, rounded up.
fn scaled(number: &str, unit_ms: u64) -> Option<u64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let digits: String = fraction.chars().take(9).collect();
    let scale = 10_u64.pow(u32::try_from(digits.len()).ok()?);
    let whole: u64 = whole.parse().ok()?;
    let part: u64 = digits.parse().ok()?;
    let part_ms = part.saturating_mul(unit_ms).div_ceil(scale);
    Some(whole.saturating_mul(unit_ms).saturating_add(part_ms))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{after_ms, duration};
    use crate::ask::line::RawAnswer;
    use crate::http::head::Headers;

    fn check(headers: &[(&str, &str)], body: &Value, expected: Option<u64>) {
        let mut lines = Headers::default();
        for (name, value) in headers {
            lines.add(name, value.as_bytes());
        }
        let raw = RawAnswer {
            status: 429,
            headers: lines,
            body: Vec::new(),
        };
        assert_eq!(after_ms(&raw, body), expected, "{headers:?} {body}");
    }

    #[test]
    fn each_vendors_way_to_say_when() {
        let none = Value::Null;
        check(&[], &none, None);
        check(&[("retry-after", "7")], &none, Some(7_000));
        check(&[("retry-after", "0.4")], &none, Some(400));
        check(
            &[("retry-after", "Sun, 22 Nov 2026 10:00:00 GMT")],
            &none,
            None,
        );
        check(
            &[("retry-after-ms", "1500.7"), ("retry-after", "2")],
            &none,
            Some(1_500),
        );
        let quota = [
            ("x-ratelimit-remaining-requests", "12"),
            ("x-ratelimit-reset-requests", "6h"),
            ("x-ratelimit-remaining-tokens", "0"),
            ("x-ratelimit-reset-tokens", "1m2.5s"),
        ];
        check(&quota, &none, Some(62_500));
        let details = json!({ "error": { "details": [{ "x": 1 }, { "retryDelay": "34.07s" }] } });
        check(&[], &details, Some(34_070));
        check(&[], &json!([details]), Some(34_070));
        check(
            &[("retry-after", "99999999999")],
            &none,
            Some(31 * 86_400_000),
        );
    }

    #[test]
    fn what_is_no_duration_is_not_guessed() {
        for text in ["", "s", "1", "1x", "1s2", "-1s", "1..2s", "soon"] {
            assert_eq!(duration(text), None, "{text}");
        }
        assert_eq!(duration("1h1m1s250ms"), Some(3_661_250));
    }
}
