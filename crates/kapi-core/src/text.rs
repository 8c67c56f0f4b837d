//! Texts for people: one line of what somebody wrote, and a number with its noun.
//!
//! Changes white space alone: what is hidden in a text is shown by `goal::quote::visible`.

use std::fmt;

use crate::quote::head;

/// What an agent is asked whose own commits are kept, behind a word or two.
pub const COMMIT_EACH_STEP: &str = "commit each step with a message that says what it does and why: \
                                    your commits are kept. Do not push.";

/// Returns a text as one line: its words, with one space between them.
#[must_use]
pub fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns a text as one line of at most `chars_max` characters; where it was cut, `…` is the last.
#[must_use]
pub fn shortened(text: &str, chars_max: usize) -> String {
    let line = one_line(text);
    if line.chars().count() <= chars_max {
        return line;
    }
    let cut: String = line.chars().take(chars_max.saturating_sub(1)).collect();
    format!("{cut}…")
}

/// Returns the first digits of an object's id, enough to tell it from others.
#[must_use]
pub fn short_id(id: &str) -> &str {
    head(id, 12)
}

/// Returns a number with its noun, which takes an `s` or `es` unless the number is 1.
#[must_use]
pub fn counted(count: impl fmt::Display, noun: &str) -> String {
    let count = count.to_string();
    let hisses = ["ch", "sh", "s", "x"].iter().any(|end| noun.ends_with(end));
    let ending = match (count.as_str(), hisses) {
        ("1", _) => "",
        (_, true) => "es",
        (_, false) => "s",
    };
    format!("{count} {noun}{ending}")
}

/// Returns a time in UTC, to the second: `2026-11-22 04:30:00 UTC`.
#[must_use]
pub fn time_words(at_ms: i64) -> String {
    let seconds = at_ms.div_euclid(1000);
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let (year, month, day) = civil(days);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} UTC")
}

/// Returns the date of a day counted from 1970-01-01, in the proleptic Gregorian calendar.
///
/// Eras of 400 years begin on 1 March, so that the leap day is the last of its year.
const fn civil(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    let year = year_of_era + era * 400;
    (if month <= 2 { year + 1 } else { year }, month, day)
}

/// Tells whether an agent's reference holds a command line or a path, which may have any character.
#[must_use]
pub fn holds_command(reference: &str) -> bool {
    let schemes = ["acp:", "command:", "script:"];
    schemes.iter().any(|scheme| reference.starts_with(scheme))
}

/// Returns an agent's name for a line of text: a script by its file, a command by its beginning.
#[must_use]
pub fn agent_name(reference: &str) -> String {
    const CHARS_MAX: usize = 60;
    let short = match reference.strip_prefix("script:") {
        Some(path) => format!("script:{}", path.rsplit('/').next().unwrap_or(path)),
        None => reference.lines().next().unwrap_or_default().to_owned(),
    };
    if short.chars().count() > CHARS_MAX {
        let cut: String = short.chars().take(CHARS_MAX).collect();
        format!("{cut}…")
    } else {
        short
    }
}

/// Returns a limit of the machine as one amount: `300 MiB of memory`, `64 processes`.
#[must_use]
pub fn limit_text(resource: &str, limit: &str) -> String {
    match (resource, limit) {
        ("processes", "1") => "1 process".to_owned(),
        ("processes", _) => format!("{limit} processes"),
        ("disk", _) => format!("{limit} on disk"),
        ("file size", _) => format!("{limit} for one file"),
        (_, _) => format!("{limit} of {resource}"),
    }
}

/// Returns the key under `[sandbox]` in the configuration that sets a limit of the machine.
#[must_use]
pub fn limit_key(resource: &str) -> &str {
    match resource {
        "file size" => "file_size",
        same => same,
    }
}

/// Returns a sentence on a limit that something in an agent's run met while the run went on.
#[must_use]
pub fn limit_met(resource: &str, limit: &str) -> String {
    let what_then = match resource {
        "processes" => "could not start any more",
        _ => "was stopped",
    };
    format!(
        "a program in the sandbox reached the limit of {} and {what_then}; raise it with `[sandbox] {}`",
        limit_text(resource, limit),
        limit_key(resource)
    )
}

#[cfg(test)]
mod tests {
    use super::{counted, one_line, shortened};

    #[test]
    fn white_space_of_any_kind_becomes_one_space() {
        assert_eq!(one_line(" a\n\tb  c\u{a0}d "), "a b c d");
    }

    #[test]
    fn only_what_is_longer_is_cut() {
        assert_eq!(shortened("ä ö", 3), "ä ö");
        assert_eq!(shortened("ä ö ü", 4), "ä ö…");
    }

    #[test]
    fn one_thing_has_no_s() {
        assert_eq!(counted(2, "launch"), "2 launches");
        assert_eq!(counted(1, "branch"), "1 branch");
        let counts = [0, 1, 2].map(|n| counted(n, "turn"));
        assert_eq!(counts, ["0 turns", "1 turn", "2 turns"]);
    }
}
