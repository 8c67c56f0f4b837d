//! Cron schedules: when a loop is due, read from one line of text and the name of a time zone.
//!
//! Everything is a function of the text, the zone and an instant: knows no clock, no loop and
//! nothing of what fired before. An instant is milliseconds since 1970; all are whole seconds.

pub mod error;
pub mod field;
mod line;
mod pattern;
#[cfg(test)]
mod props;
#[cfg(test)]
mod tests;
mod words;

use jiff::tz::{Offset, TimeZone};
use jiff::{Timestamp, civil};

use crate::record::cron::error::CronError;
use crate::record::cron::field::CronFieldPart;
use crate::record::cron::line::CronLine;
use crate::record::cron::pattern::SchedulePattern;
use crate::record::zone::{name_of, zone};

/// How far ahead an instant is searched. A 29 February of one weekday comes back after 40 years
/// at most (across 2100), so nothing that fires at all is missed.
const AHEAD_SECONDS_MAX: i64 = 50 * 366 * 86_400;
/// Instants are whole seconds.
const SECOND_MS: i64 = 1000;
/// Every expression that can fire fires within these years: they hold each date on each weekday.
const CYCLE: (civil::Date, civil::Date) = (civil::date(2000, 1, 1), civil::date(2040, 1, 1));

/// A schedule that fires: five or six fields and a time zone.
///
/// The fields are second (only when there are six), minute, hour, day of month, month and weekday.
/// If day and weekday are both restricted, a date that is in either fires; if one of them begins
/// with `*`, a date must be in both (`*/2` is in this sense not restricted, as cron has it).
///
/// Where the clock is changed, two rules hold. A chosen hour is never lost: if the hour does not
/// begin with `*` and the clock skips times that match, the first instant after the gap fires,
/// once for all of them. An interval is never broken: if second, minute or hour begins with `*`,
/// a time that comes twice fires twice; otherwise only its first occurrence fires. cronie does
/// the same, except that it loses a chosen hour whose minute begins with `*`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cron {
    // Invariant: the pattern fires, and was read from the text.
    text: String,
    zone: TimeZone,
    pattern: SchedulePattern,
    fields: [Vec<CronFieldPart>; 6],
}

impl Cron {
    /// Reads a schedule: five fields, six with the second first, or a name such as `@daily`; and
    /// the zone in which its times are meant (`Europe/Berlin`, `UTC`, `local`).
    ///
    /// The zone's rules come from this machine, or from this program where the machine has none.
    ///
    /// # Errors
    /// When a part of the text is not allowed in its field, when no date ever fits, or when the
    /// zone is unknown.
    pub fn parse(text: &str, zone: &str) -> Result<Self, CronError> {
        let line = CronLine::parse(text)?;
        let pattern = SchedulePattern::new(&line.fields);
        let (begin, end) = CYCLE;
        let midnight = civil::Time::midnight();
        if pattern
            .first_in(begin.to_datetime(midnight), end.to_datetime(midnight))
            .is_none()
        {
            return Err(CronError::Never { text: line.text });
        }
        Ok(Self {
            text: line.text,
            zone: zone_named(zone)?,
            pattern,
            fields: line.fields,
        })
    }

    /// Returns the text it was read from, with single spaces.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the name of its time zone.
    #[must_use]
    pub fn zone(&self) -> &str {
        name_of(&self.zone)
    }

    /// Returns the first instant that is strictly later; none only at the end of the calendar.
    #[must_use]
    pub fn next_after(&self, after_ms: i64) -> Option<i64> {
        let first = after_ms.div_euclid(SECOND_MS).saturating_add(1);
        let first = first.max(Timestamp::MIN.as_second());
        let limit = Timestamp::from_second(first.saturating_add(AHEAD_SECONDS_MAX))
            .unwrap_or(Timestamp::MAX);
        let mut from = Timestamp::from_second(first).ok()?;
        let mut change = self.change_at_or_before(from);
        loop {
            let next = self.zone.following(from).next();
            let stretch = Stretch {
                change,
                offset: self.zone.to_offset(from),
                until: next
                    .as_ref()
                    .map_or(limit, |next| next.timestamp().min(limit)),
            };
            if let Some(found) = stretch.first(&self.pattern, from) {
                return Some(found.as_millisecond());
            }
            let at = next?.timestamp();
            if at >= limit {
                return None;
            }
            from = at;
            change = self.change_at_or_before(at);
        }
    }

    /// Returns the last instant later than `after_ms` and not later than `until_ms`.
    ///
    /// It takes the same work however many instants lie between, so a clock that jumped by years
    /// does no harm.
    #[must_use]
    pub fn last_between(&self, after_ms: i64, until_ms: i64) -> Option<i64> {
        let within = |from_ms| self.next_after(from_ms).filter(|at| *at <= until_ms);
        within(after_ms)?;
        // There is one, so a wide enough reach back finds one.
        let mut width_ms = SECOND_MS;
        let mut found = loop {
            let from_ms = until_ms.saturating_sub(width_ms).max(after_ms);
            if let Some(found) = within(from_ms) {
                break found;
            }
            width_ms = width_ms.saturating_mul(2);
        };
        // No instant lies in (beyond, until], and `found` is none after the one that is sought.
        let mut beyond = until_ms;
        while beyond.saturating_sub(found) >= SECOND_MS {
            let middle = found.midpoint(beyond);
            match within(middle) {
                Some(later) => found = later,
                None => beyond = middle,
            }
        }
        Some(found)
    }

    fn change_at_or_before(&self, instant: Timestamp) -> Option<ClockChange> {
        let second = instant.as_second();
        // What precedes is strictly earlier, and a change at this very instant counts.
        let after = Timestamp::from_second(second.checked_add(1)?).ok()?;
        let at = self.zone.preceding(after).next()?.timestamp();
        let before = Timestamp::from_second(at.as_second().checked_sub(1)?).ok()?;
        Some(ClockChange {
            at,
            before: self.zone.to_offset(before),
        })
    }
}

/// Returns short words for people: "at 15:00, Monday to Friday, UTC".
#[must_use]
pub fn describe(cron: &Cron) -> String {
    format!("{}, {}", words::of(&cron.fields), cron.zone())
}

/// The instant a zone's clock was changed, and its offset until then.
#[derive(Debug, Clone, Copy)]
struct ClockChange {
    at: Timestamp,
    before: Offset,
}

/// Time between two changes of a zone's clock, in which local time runs evenly.
#[derive(Debug, Clone, Copy)]
struct Stretch {
    change: Option<ClockChange>,
    offset: Offset,
    until: Timestamp,
}

impl Stretch {
    /// Returns the first instant from `from` on that lies in this stretch and fires.
    fn first(&self, pattern: &SchedulePattern, from: Timestamp) -> Option<Timestamp> {
        let mut local = self.offset.to_datetime(from);
        if let Some(change) = self.change {
            let shown_before = change.before.to_datetime(change.at);
            let shown_after = self.offset.to_datetime(change.at);
            let is_catching_up = from == change.at && pattern.keeps_hours();
            if is_catching_up && pattern.first_in(shown_before, shown_after).is_some() {
                return Some(change.at);
            }
            if !pattern.is_interval() {
                local = local.max(shown_before);
            }
        }
        let found = pattern.first_in(local, self.offset.to_datetime(self.until))?;
        self.offset.to_timestamp(found).ok()
    }
}

fn zone_named(name: &str) -> Result<TimeZone, CronError> {
    let zone = zone(name).map_err(|source| CronError::Zone {
        zone: name.to_owned(),
        source,
    })?;
    if zone.is_unknown() {
        return Err(CronError::NoZone {
            zone: name.to_owned(),
        });
    }
    Ok(zone)
}
