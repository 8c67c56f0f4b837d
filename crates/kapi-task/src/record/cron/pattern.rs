//! Which local times a schedule names, as sets that are quick to search.
//!
//! Knows the calendar, and nothing of zones: whether a local time comes once, twice or never is
//! not its question.

use jiff::ToSpan as _;
use jiff::civil::{Date, DateTime, Time};

use super::error::CronField;
use crate::record::cron::field::CronFieldPart;

/// The local times of a schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SchedulePattern {
    seconds: u64,
    minutes: u64,
    hours: u64,
    months: u64,
    days: Days,
    hour_has_star: bool,
    is_interval: bool,
}

/// The dates within a month.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Days {
    of_month: u64,
    of_week: u64,
    /// The parts that depend on the month.
    special: Vec<CronFieldPart>,
    joined: DayRule,
}

/// How day of month and weekday go together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DayRule {
    /// Both are restricted: a date in one of them is enough.
    Either,
    /// One begins with `*`: a date must be in both.
    Both,
}

impl SchedulePattern {
    /// Puts the fields together, which are in the order of [`CronField::ALL`].
    pub(crate) fn new(fields: &[Vec<CronFieldPart>; 6]) -> Self {
        let [seconds, minutes, hours, days, months, weekdays] = fields;
        let joined = if has_star(days) || has_star(weekdays) {
            DayRule::Both
        } else {
            DayRule::Either
        };
        let mut special = days.clone();
        special.extend(weekdays);
        special.retain(|part| {
            !matches!(
                part,
                CronFieldPart::Star | CronFieldPart::Every(_) | CronFieldPart::Span { .. }
            )
        });
        Self {
            seconds: set_of(CronField::Second, seconds),
            minutes: set_of(CronField::Minute, minutes),
            hours: set_of(CronField::Hour, hours),
            months: set_of(CronField::Month, months),
            days: Days {
                of_month: set_of(CronField::Day, days),
                of_week: set_of(CronField::Weekday, weekdays),
                special,
                joined,
            },
            hour_has_star: has_star(hours),
            is_interval: has_star(seconds) || has_star(minutes) || has_star(hours),
        }
    }

    /// Whether its hours were chosen, so that the clock must not skip them.
    pub(crate) const fn keeps_hours(&self) -> bool {
        !self.hour_has_star
    }

    /// Whether it fires at intervals, which go on while the clock repeats itself.
    pub(crate) const fn is_interval(&self) -> bool {
        self.is_interval
    }

    /// Returns the first of its local times from `from` on and before `until`.
    pub(crate) fn first_in(&self, from: DateTime, until: DateTime) -> Option<DateTime> {
        let mut date = from.date();
        let mut earliest = from.time();
        while date.to_datetime(earliest) < until {
            if !has(self.months, date.month()) {
                date = date.first_of_month().checked_add(1.month()).ok()?;
            } else if self.days.has(date)
                && let Some(time) = self.first_time(earliest)
            {
                return Some(date.to_datetime(time)).filter(|found| *found < until);
            } else {
                date = date.tomorrow().ok()?;
            }
            earliest = Time::midnight();
        }
        None
    }

    /// Returns the first time of a day that is not before `earliest`.
    fn first_time(&self, earliest: Time) -> Option<Time> {
        let (hour, minute) = (earliest.hour(), earliest.minute());
        if has(self.hours, hour) {
            let in_minute = first_from(self.seconds, earliest.second());
            if has(self.minutes, minute)
                && let Some(second) = in_minute
            {
                return Time::new(hour, minute, second, 0).ok();
            }
            if let Some(minute) = first_from(self.minutes, minute + 1) {
                return Time::new(hour, minute, first_from(self.seconds, 0)?, 0).ok();
            }
        }
        let hour = first_from(self.hours, hour + 1)?;
        let minute = first_from(self.minutes, 0)?;
        Time::new(hour, minute, first_from(self.seconds, 0)?, 0).ok()
    }
}

impl Days {
    fn has(&self, date: Date) -> bool {
        let special = |is_weekday: bool| {
            self.special.iter().any(|part| {
                let of_week = matches!(
                    part,
                    CronFieldPart::NthWeekday { .. } | CronFieldPart::LastWeekday(_)
                );
                of_week == is_weekday && fits(*part, date)
            })
        };
        let in_month = has(self.of_month, date.day()) || special(false);
        let weekday = date.weekday().to_sunday_zero_offset();
        let in_week = has(self.of_week, weekday) || special(true);
        match self.joined {
            DayRule::Either => in_month || in_week,
            DayRule::Both => in_month && in_week,
        }
    }
}

/// Whether a date is what a part means in the date's own month.
fn fits(part: CronFieldPart, date: Date) -> bool {
    let (day, length) = (date.day(), date.days_in_month());
    match part {
        CronFieldPart::LastDay { before } => day == length - before,
        CronFieldPart::LastWorkday => nearest_workday(date, length) == Some(day),
        CronFieldPart::NearestWorkday(wanted) => {
            wanted <= length && nearest_workday(date, wanted) == Some(day)
        }
        CronFieldPart::NthWeekday { weekday, nth } => {
            date.weekday().to_sunday_zero_offset() == weekday && (day - 1) / 7 + 1 == nth
        }
        CronFieldPart::LastWeekday(weekday) => {
            date.weekday().to_sunday_zero_offset() == weekday && day + 7 > length
        }
        CronFieldPart::Star | CronFieldPart::Every(_) | CronFieldPart::Span { .. } => false,
    }
}

/// Returns the day from Monday to Friday that is nearest to `wanted` in the month of `date`.
fn nearest_workday(date: Date, wanted: i8) -> Option<i8> {
    let length = date.days_in_month();
    let at = Date::new(date.year(), date.month(), wanted).ok()?;
    // Monday is 1.
    Some(match at.weekday().to_monday_one_offset() {
        6 if wanted == 1 => 3,
        6 => wanted - 1,
        7 if wanted == length => wanted - 2,
        7 => wanted + 1,
        _ => wanted,
    })
}

fn has_star(parts: &[CronFieldPart]) -> bool {
    parts.iter().any(|part| part.has_star())
}

/// Returns the values that do not depend on the month, one bit each.
fn set_of(field: CronField, parts: &[CronFieldPart]) -> u64 {
    let (least, greatest) = field.bounds();
    let mut set = 0;
    for part in parts {
        let (first, last, step) = match *part {
            CronFieldPart::Star => (least, greatest, 1),
            // A week of stars has seven days: 7 would be Sunday a second time, out of step.
            CronFieldPart::Every(step) => (
                least,
                greatest.min(if field == CronField::Weekday { 6 } else { 59 }),
                step,
            ),
            CronFieldPart::Span { first, last, step } => (first, last, step),
            CronFieldPart::LastDay { .. }
            | CronFieldPart::LastWorkday
            | CronFieldPart::NearestWorkday(_)
            | CronFieldPart::NthWeekday { .. }
            | CronFieldPart::LastWeekday(_) => continue,
        };
        let mut value = first;
        while value <= last {
            let bit = if field == CronField::Weekday {
                value % 7
            } else {
                value
            };
            set |= 1_u64 << bit;
            value += step;
        }
    }
    set
}

fn has(set: u64, value: i8) -> bool {
    first_from(set, value) == Some(value)
}

/// Returns the least value of a set that is not less than `from`.
fn first_from(set: u64, from: i8) -> Option<i8> {
    let rest = set.checked_shr(u32::try_from(from).ok()?)?;
    let ahead = i8::try_from(rest.trailing_zeros()).ok()?;
    (rest != 0).then_some(from + ahead)
}
