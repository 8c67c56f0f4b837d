//! Days and months in UTC, as limits and sums are counted by.
//!
//! The calendar is the proleptic Gregorian one. Reads no clock: a day is made from milliseconds.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Milliseconds of a day; UTC has no other days here.
const DAY_MS: i64 = 86_400_000;
/// Days of 400 years, after which the calendar repeats.
const ERA_DAYS: i64 = 146_097;
/// Days from the first of March of the year 0 to 1970-01-01.
const EPOCH_SHIFT: i64 = 719_468;
/// The years that can be written with four digits.
const YEARS: std::ops::RangeInclusive<i64> = 1..=9999;

/// A text that is no day.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("read {text:?} as a day: it must be a date such as 2026-11-22")]
pub struct DayError {
    /// What was given.
    pub text: String,
}

/// One day in UTC, written `2026-11-22`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Day(i64);

/// One month in UTC, written `2026-11`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Month {
    year: i64,
    month: i64,
}

impl Day {
    /// Returns the day of a moment in milliseconds since the epoch.
    #[must_use]
    pub const fn of_ms(at_ms: i64) -> Self {
        Self(at_ms.div_euclid(DAY_MS))
    }

    /// Returns the day of a date that is known to be one.
    #[must_use]
    pub const fn of_date(year: i64, month: i64, day: i64) -> Self {
        // Counted from March, so that the day that may be missing is the last of a year.
        let march_year = if month <= 2 { year - 1 } else { year };
        let era = march_year.div_euclid(400);
        let year_of_era = march_year.rem_euclid(400);
        let months = (month + 9) % 12;
        let day_of_year = (153 * months + 2) / 5 + day - 1;
        let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
        Self(era * ERA_DAYS + day_of_era - EPOCH_SHIFT)
    }

    /// Reads `2026-11-22`.
    ///
    /// # Errors
    /// When it is not written so, or no day of the calendar.
    pub fn parse(text: &str) -> Result<Self, DayError> {
        let error = || DayError {
            text: text.to_owned(),
        };
        let mut parts = text.split('-').map(|part| number(part).ok_or_else(error));
        let mut next = || parts.next().unwrap_or_else(|| Err(error()));
        let found = Self::of_date(next()?, next()?, next()?);
        // Only a real date, written in full, is written the same again.
        if found.to_string() == text {
            Ok(found)
        } else {
            Err(error())
        }
    }

    /// Returns the month it is in.
    #[must_use]
    pub const fn month(self) -> Month {
        let (year, month, _) = self.date();
        Month { year, month }
    }

    /// Returns the day so many days before.
    #[must_use]
    pub const fn days_before(self, days: u32) -> Self {
        Self(self.0.saturating_sub(days as i64))
    }

    /// Returns the first millisecond of the next day.
    #[must_use]
    pub const fn end_ms(self) -> i64 {
        self.0.saturating_add(1).saturating_mul(DAY_MS)
    }

    /// Returns year, month from 1 and day from 1.
    const fn date(self) -> (i64, i64, i64) {
        let shifted = self.0 + EPOCH_SHIFT;
        let era = shifted.div_euclid(ERA_DAYS);
        let day_of_era = shifted.rem_euclid(ERA_DAYS);
        let year_of_era =
            (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let months = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * months + 2) / 5 + 1;
        let month = if months < 10 { months + 3 } else { months - 9 };
        let year = year_of_era + era * 400;
        (if month <= 2 { year + 1 } else { year }, month, day)
    }
}

impl fmt::Display for Day {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = self.date();
        write!(out, "{year:04}-{month:02}-{day:02}")
    }
}

impl TryFrom<String> for Day {
    type Error = DayError;
    fn try_from(text: String) -> Result<Self, DayError> {
        Self::parse(&text)
    }
}

impl From<Day> for String {
    fn from(day: Day) -> Self {
        day.to_string()
    }
}

impl fmt::Display for Month {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:04}-{:02}", self.year, self.month)
    }
}

impl TryFrom<String> for Month {
    type Error = DayError;
    fn try_from(text: String) -> Result<Self, DayError> {
        match Day::parse(&format!("{text}-01")) {
            Ok(day) => Ok(day.month()),
            Err(_) => Err(DayError { text }),
        }
    }
}

impl From<Month> for String {
    fn from(month: Month) -> Self {
        month.to_string()
    }
}

fn number(text: &str) -> Option<i64> {
    let is_plain = text.len() <= 4 && text.bytes().all(|byte| byte.is_ascii_digit());
    let found = is_plain.then(|| text.parse().ok()).flatten()?;
    YEARS.contains(&found).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::Day;

    #[test]
    fn days_are_those_of_the_calendar() {
        let cases = [
            (0, "1970-01-01"),
            (-1, "1969-12-31"),
            (951_782_400_000, "2000-02-29"),
            (951_868_800_000, "2000-03-01"),
            (1_787_392_800_000, "2026-08-22"),
            (4_107_542_399_999, "2100-02-28"),
            (4_107_542_400_000, "2100-03-01"),
        ];
        for (at_ms, text) in cases {
            assert_eq!(Day::of_ms(at_ms).to_string(), text);
            assert_eq!(Day::parse(text), Ok(Day::of_ms(at_ms)));
        }
        // Every day is written as the one after the day before.
        let mut day = Day::of_date(1999, 12, 31);
        for _ in 0..200_000 {
            let next = Day::of_ms(day.end_ms());
            assert_eq!(Day::parse(&next.to_string()), Ok(next));
            assert!(next.to_string() > day.to_string());
            day = next;
        }
    }

    #[test]
    fn what_is_no_day_is_refused() {
        for text in [
            "",
            "2026-11",
            "2026-11-31",
            "2026-13-01",
            "2026-00-01",
            "2026-1-01",
            "2025-02-29",
            "26-11-01",
            "2026-11-22-1",
            "2026-11-+2",
            "yesterday",
        ] {
            assert!(Day::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_month_holds_its_days() {
        let month = Day::of_date(2026, 11, 30).month();
        assert_eq!(month, Day::of_date(2026, 11, 1).month());
        assert!(month < Day::of_date(2026, 12, 1).month());
        assert_eq!(month.to_string(), "2026-11");
        assert_eq!(
            Day::of_date(2026, 3, 1).days_before(1).to_string(),
            "2026-02-28"
        );
    }
}
