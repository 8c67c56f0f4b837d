//! One field of a schedule and the parts it is written in.
//!
//! Knows one field at a time: neither the calendar nor what the fields mean together.

use super::error::CronField;
use crate::record::cron::error::CronFault;

/// One part of a field's list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CronFieldPart {
    /// `*` or `?`: all values.
    Star,
    /// `*/n`: every n-th value from the least.
    Every(i8),
    /// `a`, `a-b` or `a-b/n`.
    Span {
        /// The first value.
        first: i8,
        /// The last value; the same as the first when it is one value.
        last: i8,
        /// The step, from 1.
        step: i8,
    },
    /// `L`, or `L-n`: so many days before the last of the month.
    LastDay {
        /// The days before it.
        before: i8,
    },
    /// `LW`: the last day of the month from Monday to Friday.
    LastWorkday,
    /// `15W`: the day from Monday to Friday that is nearest, in the same month.
    NearestWorkday(i8),
    /// `fri#2`: the second Friday of the month.
    NthWeekday {
        /// The weekday; Sunday is 0.
        weekday: i8,
        /// Which of the month, from 1.
        nth: i8,
    },
    /// `friL`: the last Friday of the month.
    LastWeekday(i8),
}

impl CronFieldPart {
    /// Whether it is written with a leading `*` (or as `?`), which cron counts as not restricted.
    pub(crate) const fn has_star(self) -> bool {
        match self {
            Self::Star | Self::Every(_) => true,
            Self::Span { .. }
            | Self::LastDay { .. }
            | Self::LastWorkday
            | Self::NearestWorkday(_)
            | Self::NthWeekday { .. }
            | Self::LastWeekday(_) => false,
        }
    }
}

/// Reads one part, which is in lower case.
pub(crate) fn parse_part(field: CronField, part: &str) -> Result<CronFieldPart, CronFault> {
    if part == "*" || (part == "?" && matches!(field, CronField::Day | CronField::Weekday)) {
        return Ok(CronFieldPart::Star);
    }
    if let Some((base, step)) = part.split_once('/') {
        return parse_step(field, base, step);
    }
    let special = match field {
        CronField::Day => parse_day(part),
        CronField::Weekday => parse_weekday(part),
        CronField::Second | CronField::Minute | CronField::Hour | CronField::Month => None,
    };
    match special {
        Some(special) => Ok(special),
        None => parse_span(field, part, 1),
    }
}

fn parse_step(field: CronField, base: &str, step: &str) -> Result<CronFieldPart, CronFault> {
    let max = field.step_max();
    let step = number(step)
        .filter(|step| (1..=max).contains(step))
        .ok_or(CronFault::Step { max })?;
    if base == "*" {
        return Ok(CronFieldPart::Every(step));
    }
    if base.contains('-') {
        return parse_span(field, base, step);
    }
    match value(field, base) {
        Some(_) => Err(CronFault::StepOfOne(field)),
        None => Err(CronFault::Unknown(field)),
    }
}

fn parse_span(field: CronField, text: &str, step: i8) -> Result<CronFieldPart, CronFault> {
    let read = |text| value(field, text).ok_or(CronFault::Unknown(field));
    let (mut first, mut last) = match text.split_once('-') {
        Some((first, last)) => (read(first)?, read(last)?),
        None => {
            let only = read(text)?;
            (only, only)
        }
    };
    if field == CronField::Weekday && first > last {
        // Sunday both begins and ends a week: fri-sun, 7-2.
        if last == 0 {
            last = 7;
        } else if first == 7 {
            first = 0;
        }
    }
    if first > last {
        return Err(CronFault::Backwards);
    }
    Ok(CronFieldPart::Span { first, last, step })
}

fn parse_day(part: &str) -> Option<CronFieldPart> {
    match part {
        "l" => return Some(CronFieldPart::LastDay { before: 0 }),
        "lw" | "wl" => return Some(CronFieldPart::LastWorkday),
        _ => {}
    }
    if let Some(before) = part.strip_prefix("l-") {
        let before = number(before).filter(|before| (1..=30).contains(before))?;
        return Some(CronFieldPart::LastDay { before });
    }
    let day = value(CronField::Day, part.strip_suffix('w')?)?;
    Some(CronFieldPart::NearestWorkday(day))
}

fn parse_weekday(part: &str) -> Option<CronFieldPart> {
    if let Some((weekday, nth)) = part.split_once('#') {
        let weekday = value(CronField::Weekday, weekday)? % 7;
        let nth = number(nth).filter(|nth| (1..=5).contains(nth))?;
        return Some(CronFieldPart::NthWeekday { weekday, nth });
    }
    let weekday = value(CronField::Weekday, part.strip_suffix('l')?)?;
    Some(CronFieldPart::LastWeekday(weekday % 7))
}

/// Reads one value of a field, a number or a name.
fn value(field: CronField, text: &str) -> Option<i8> {
    let (least, greatest) = field.bounds();
    let named = field.names().iter().position(|name| *name == text);
    match named {
        Some(position) => i8::try_from(position).ok().map(|location| location + least),
        None => number(text).filter(|number| (least..=greatest).contains(number)),
    }
}

/// Reads digits; a sign, which Rust would take, is not one.
fn number(text: &str) -> Option<i8> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| is_plain)
}
