//! One field of a schedule and the parts it is written in.
//!
//! Knows one field at a time: neither the calendar nor what the fields mean together.

use super::error::Field;
use crate::record::cron::error::Fault;

/// One part of a field's list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
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

impl Part {
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
pub(crate) fn parse_part(field: Field, part: &str) -> Result<Part, Fault> {
    if part == "*" || (part == "?" && matches!(field, Field::Day | Field::Weekday)) {
        return Ok(Part::Star);
    }
    if let Some((base, step)) = part.split_once('/') {
        return parse_step(field, base, step);
    }
    let special = match field {
        Field::Day => parse_day(part),
        Field::Weekday => parse_weekday(part),
        Field::Second | Field::Minute | Field::Hour | Field::Month => None,
    };
    match special {
        Some(special) => Ok(special),
        None => parse_span(field, part, 1),
    }
}

fn parse_step(field: Field, base: &str, step: &str) -> Result<Part, Fault> {
    let max = field.step_max();
    let step = number(step)
        .filter(|step| (1..=max).contains(step))
        .ok_or(Fault::Step { max })?;
    if base == "*" {
        return Ok(Part::Every(step));
    }
    if base.contains('-') {
        return parse_span(field, base, step);
    }
    match value(field, base) {
        Some(_) => Err(Fault::StepOfOne(field)),
        None => Err(Fault::Unknown(field)),
    }
}

fn parse_span(field: Field, text: &str, step: i8) -> Result<Part, Fault> {
    let read = |text| value(field, text).ok_or(Fault::Unknown(field));
    let (mut first, mut last) = match text.split_once('-') {
        Some((first, last)) => (read(first)?, read(last)?),
        None => {
            let only = read(text)?;
            (only, only)
        }
    };
    if field == Field::Weekday && first > last {
        // Sunday both begins and ends a week: fri-sun, 7-2.
        if last == 0 {
            last = 7;
        } else if first == 7 {
            first = 0;
        }
    }
    if first > last {
        return Err(Fault::Backwards);
    }
    Ok(Part::Span { first, last, step })
}

fn parse_day(part: &str) -> Option<Part> {
    match part {
        "l" => return Some(Part::LastDay { before: 0 }),
        "lw" | "wl" => return Some(Part::LastWorkday),
        _ => {}
    }
    if let Some(before) = part.strip_prefix("l-") {
        let before = number(before).filter(|before| (1..=30).contains(before))?;
        return Some(Part::LastDay { before });
    }
    let day = value(Field::Day, part.strip_suffix('w')?)?;
    Some(Part::NearestWorkday(day))
}

fn parse_weekday(part: &str) -> Option<Part> {
    if let Some((weekday, nth)) = part.split_once('#') {
        let weekday = value(Field::Weekday, weekday)? % 7;
        let nth = number(nth).filter(|nth| (1..=5).contains(nth))?;
        return Some(Part::NthWeekday { weekday, nth });
    }
    let weekday = value(Field::Weekday, part.strip_suffix('l')?)?;
    Some(Part::LastWeekday(weekday % 7))
}

/// Reads one value of a field, a number or a name.
fn value(field: Field, text: &str) -> Option<i8> {
    let (least, greatest) = field.bounds();
    let named = field.names().iter().position(|name| *name == text);
    match named {
        Some(position) => i8::try_from(position).ok().map(|place| place + least),
        None => number(text).filter(|number| (least..=greatest).contains(number)),
    }
}

/// Reads digits; a sign, which Rust would take, is not one.
fn number(text: &str) -> Option<i8> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| is_plain)
}
