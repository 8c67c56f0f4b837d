//! A schedule in short words for people.
//!
//! Knows how fields are written, not when they fire: common forms read like a sentence, the rest
//! names its fields.

use crate::record::cron::field::CronFieldPart;

/// As many times of day are named one by one; more are named by their fields.
const TIMES_MAX: usize = 6;

const WEEKDAYS: [&str; 7] = [
    "Sunday",
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
];
const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const ORDINALS: [&str; 5] = ["first", "second", "third", "fourth", "fifth"];

/// Returns the words for fields in the order in which they are written, the second first.
pub(crate) fn of(fields: &[Vec<CronFieldPart>; 6]) -> String {
    let [seconds, minutes, hours, days, months, weekdays] = fields;
    let time = interval(seconds, minutes, hours)
        .or_else(|| times_of_day(seconds, minutes, hours))
        .unwrap_or_else(|| by_field(seconds, minutes, hours));
    let mut words = vec![time];
    words.extend(dates(days, weekdays));
    if !is_star(months) {
        words.push(format!("in {}", list(months, month, "month")));
    }
    words.join(", ")
}

/// Names what fires in even steps: "every 15 minutes", "every hour at minute 30".
fn interval(
    seconds: &[CronFieldPart],
    minutes: &[CronFieldPart],
    hours: &[CronFieldPart],
) -> Option<String> {
    match (seconds, minutes, hours) {
        (_, [CronFieldPart::Star], [CronFieldPart::Star]) if zero(seconds) => {
            Some("every minute".to_owned())
        }
        ([CronFieldPart::Star], [CronFieldPart::Star], [CronFieldPart::Star]) => {
            Some("every second".to_owned())
        }
        ([CronFieldPart::Every(step)], [CronFieldPart::Star], [CronFieldPart::Star])
            if 60 % step == 0 =>
        {
            Some(each(*step, "second"))
        }
        (_, [CronFieldPart::Every(step)], [CronFieldPart::Star])
            if zero(seconds) && 60 % step == 0 =>
        {
            Some(each(*step, "minute"))
        }
        (
            _,
            [CronFieldPart::Star | CronFieldPart::Every(_)],
            [
                CronFieldPart::Span {
                    first,
                    last,
                    step: 1,
                },
            ],
        ) if zero(seconds) => {
            let every = interval(seconds, minutes, &[CronFieldPart::Star])?;
            Some(format!("{every} from {first:02}:00 to {last:02}:59"))
        }
        (_, _, [CronFieldPart::Star]) if zero(seconds) => {
            Some(format!("every hour{}", minute_of(single(minutes)?)))
        }
        (_, _, [CronFieldPart::Every(step)]) if zero(seconds) && 24 % step == 0 => {
            let every = each(*step, "hour");
            Some(format!("{every}{}", minute_of(single(minutes)?)))
        }
        _ => None,
    }
}

/// Names a few times one by one: "at 09:00 and 15:30".
fn times_of_day(
    seconds: &[CronFieldPart],
    minutes: &[CronFieldPart],
    hours: &[CronFieldPart],
) -> Option<String> {
    let second = single(seconds)?;
    let (minutes, hours) = (values(minutes)?, values(hours)?);
    if minutes.len() * hours.len() > TIMES_MAX {
        return None;
    }
    let mut times = Vec::new();
    for hour in hours {
        for minute in &minutes {
            times.push(match second {
                0 => format!("{hour:02}:{minute:02}"),
                second => format!("{hour:02}:{minute:02}:{second:02}"),
            });
        }
    }
    Some(format!("at {}", joined(&times, "and")))
}

fn by_field(
    seconds: &[CronFieldPart],
    minutes: &[CronFieldPart],
    hours: &[CronFieldPart],
) -> String {
    let mut words = vec![
        list(minutes, |minute| format!("minute {minute}"), "minute"),
        list(hours, |hour| format!("hour {hour}"), "hour"),
    ];
    if !zero(seconds) {
        words.insert(
            0,
            list(seconds, |second| format!("second {second}"), "second"),
        );
    }
    format!("at {}", words.join(" of "))
}

fn dates(days: &[CronFieldPart], weekdays: &[CronFieldPart]) -> Option<String> {
    let in_month = format!(
        "{} of the month",
        list(days, |day| format!("day {day}"), "day")
    );
    let in_week = list(weekdays, weekday, "weekday");
    let is_both = days.iter().chain(weekdays).any(|part| part.has_star());
    match (is_star(days), is_star(weekdays)) {
        (true, true) => None,
        (true, false) => Some(in_week),
        (false, true) => Some(in_month),
        (false, false) if is_both => Some(format!("{in_month} if it is {in_week}")),
        (false, false) => Some(format!("{in_month} or {in_week}")),
    }
}

/// Names the parts of one field.
fn list(parts: &[CronFieldPart], name: fn(i8) -> String, unit: &str) -> String {
    let words: Vec<String> = parts
        .iter()
        .map(|part| match *part {
            CronFieldPart::Star => format!("every {unit}"),
            CronFieldPart::Every(step) => format!("every {} {unit}", counted(step)),
            CronFieldPart::Span { first, last, .. } if first == last => name(first),
            CronFieldPart::Span { first, last, step } => {
                let span = format!("{} to {}", name(first), name(last));
                match step {
                    1 => span,
                    step => format!("every {} {unit} from {span}", counted(step)),
                }
            }
            CronFieldPart::LastDay { before: 0 } => "the last day".to_owned(),
            CronFieldPart::LastDay { before: 1 } => "the day before the last".to_owned(),
            CronFieldPart::LastDay { before } => format!("{before} days before the last"),
            CronFieldPart::LastWorkday => "the last working day".to_owned(),
            CronFieldPart::NearestWorkday(day) => format!("the working day nearest day {day}"),
            CronFieldPart::NthWeekday { weekday: day, nth } => {
                let ordinal = usize::try_from(nth - 1)
                    .ok()
                    .and_then(|at| ORDINALS.get(at));
                format!("the {} {}", ordinal.unwrap_or(&"last"), weekday(day))
            }
            CronFieldPart::LastWeekday(day) => format!("the last {}", weekday(day)),
        })
        .collect();
    joined(&words, "and")
}

fn each(step: i8, unit: &str) -> String {
    match step {
        1 => format!("every {unit}"),
        step => format!("every {step} {unit}s"),
    }
}

fn minute_of(minute: i8) -> String {
    match minute {
        0 => String::new(),
        minute => format!(" at minute {minute}"),
    }
}

fn counted(step: i8) -> String {
    let ending = match (step % 10, step / 10) {
        (1, tens) if tens != 1 => "st",
        (2, tens) if tens != 1 => "nd",
        (3, tens) if tens != 1 => "rd",
        _ => "th",
    };
    format!("{step}{ending}")
}

fn weekday(value: i8) -> String {
    let location = usize::try_from(value % 7).unwrap_or(0);
    WEEKDAYS
        .get(location)
        .copied()
        .unwrap_or_default()
        .to_owned()
}

fn month(value: i8) -> String {
    let location = usize::try_from(value - 1).unwrap_or(0);
    MONTHS.get(location).copied().unwrap_or_default().to_owned()
}

fn joined(words: &[String], last: &str) -> String {
    match words {
        [] => String::new(),
        [only] => only.clone(),
        [all @ .., end] => format!("{} {last} {end}", all.join(", ")),
    }
}

fn is_star(parts: &[CronFieldPart]) -> bool {
    matches!(parts, [CronFieldPart::Star | CronFieldPart::Every(1)])
}

fn zero(parts: &[CronFieldPart]) -> bool {
    single(parts) == Some(0)
}

fn single(parts: &[CronFieldPart]) -> Option<i8> {
    match parts {
        [CronFieldPart::Span { first, last, .. }] if first == last => Some(*first),
        _ => None,
    }
}

/// Returns the values when each was written by itself, in order.
fn values(parts: &[CronFieldPart]) -> Option<Vec<i8>> {
    let mut values = Vec::new();
    for part in parts {
        values.push(single(std::slice::from_ref(part))?);
    }
    values.sort_unstable();
    values.dedup();
    Some(values)
}
