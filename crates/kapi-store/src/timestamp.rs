//! Times as they stand in a log: RFC 3339, UTC, milliseconds.
//!
//! Also the serde form of such a field. Reads no clock.

use jiff::Timestamp;
use serde::de::Error as _;
use serde::{Deserialize as _, Deserializer, Serializer};

/// Returns milliseconds since the epoch as `2026-08-22T10:00:00.000Z`.
///
/// Times outside the years -9999 to 9999 are moved to the nearest that can be written.
#[must_use]
pub fn format_ms(at_ms: i64) -> String {
    let nearest = if at_ms < 0 {
        Timestamp::MIN
    } else {
        Timestamp::MAX
    };
    let timestamp = Timestamp::from_millisecond(at_ms).unwrap_or(nearest);
    format!("{timestamp:.3}")
}

/// Reads a time in exactly the form that [`format_ms`] writes.
#[must_use]
pub fn parse_ms(text: &str) -> Option<i64> {
    let at_ms = text.parse::<Timestamp>().ok()?.as_millisecond();
    (format_ms(at_ms) == text).then_some(at_ms)
}

/// Reads a time as a person writes it, with its offset: `2026-11-22T18:00Z`,
/// `2026-11-22 18:00:30+01:00`. Without an offset it names no instant and is refused.
#[must_use]
pub fn parse_instant_ms(text: &str) -> Option<i64> {
    let at = text.trim().parse::<Timestamp>().ok()?;
    Some(at.as_millisecond())
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "the signature serde asks for"
)]
pub(crate) fn serialize<S: Serializer>(at_ms: &i64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&format_ms(*at_ms))
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i64, D::Error> {
    let text = String::deserialize(deserializer)?;
    parse_ms(&text).ok_or_else(|| D::Error::custom("not a time in UTC with milliseconds"))
}

#[cfg(test)]
mod tests {
    use super::{format_ms, parse_instant_ms, parse_ms};

    #[test]
    fn a_person_writes_a_time_with_its_offset() {
        let six = parse_ms("2026-11-22T18:00:00.000Z");
        for text in [
            "2026-11-22T18:00Z",
            "2026-11-22 18:00:00Z",
            "2026-11-22T19:00+01:00",
            " 2026-11-22T12:30:00-05:30 ",
        ] {
            assert_eq!(parse_instant_ms(text), six, "{text}");
        }
        for text in ["", "18:00", "2026-11-22", "2026-11-22T18:00", "tomorrow"] {
            assert_eq!(parse_instant_ms(text), None, "{text}");
        }
    }

    #[test]
    fn times_read_back_as_written() {
        for at_ms in [0, 1, 999, -1, 1_787_392_800_123, 253_402_207_199_999] {
            assert_eq!(parse_ms(&format_ms(at_ms)), Some(at_ms));
        }
        assert_eq!(format_ms(1_787_392_800_123), "2026-08-22T10:00:00.123Z");
    }

    #[test]
    fn other_forms_are_refused() {
        for text in [
            "",
            "2026-08-22",
            "2026-08-22T10:00:00Z",
            "2026-08-22T12:00:00.000+02:00",
        ] {
            assert_eq!(parse_ms(text), None, "{text}");
        }
    }
}
