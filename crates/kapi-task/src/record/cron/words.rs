//! A schedule in short words for people.
//!
//! Knows how fields are written, not when they fire: common forms read like a sentence, the rest
//! names its fields.

use crate::record::cron::field::Part;

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
pub(crate) fn of(fields: &[Vec<Part>; 6]) -> String {
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
fn interval(seconds: &[Part], minutes: &[Part], hours: &[Part]) -> Option<String> {
    match (seconds, minutes, hours) {
        (_, [Part::Star], [Part::Star]) if zero(seconds) => Some("every minute".to_owned()),
        ([Part::Star], [Part::Star], [Part::Star]) => Some("every second".to_owned()),
        ([Part::Every(step)], [Part::Star], [Part::Star]) if 60 % step == 0 => {
            Some(each(*step, "second"))
        }
        (_, [Part::Every(step)], [Part::Star]) if zero(seconds) && 60 % step == 0 => {
            Some(each(*step, "minute"))
        }
        (
            _,
            [Part::Star | Part::Every(_)],
            [
                Part::Span {
                    first,
                    last,
                    step: 1,
                },
            ],
        ) if zero(seconds) => {
            let every = interval(seconds, minutes, &[Part::Star])?;
            Some(format!("{every} from {first:02}:00 to {last:02}:59"))
        }
        (_, _, [Part::Star]) if zero(seconds) => {
            Some(format!("every hour{}", minute_of(single(minutes)?)))
        }
        (_, _, [Part::Every(step)]) if zero(seconds) && 24 % step == 0 => {
            let every = each(*step, "hour");
            Some(format!("{every}{}", minute_of(single(minutes)?)))
        }
        _ => None,
    }
}

/// Names a few times one by one: "at 09:00 and 15:30".
fn times_of_day(seconds: &[Part], minutes: &[Part], hours: &[Part]) -> Option<String> {
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

fn by_field(seconds: &[Part], minutes: &[Part], hours: &[Part]) -> String {
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

fn dates(days: &[Part], weekdays: &[Part]) -> Option<String> {
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
fn list(parts: &[Part], name: fn(i8) -> String, unit: &str) -> String {
    let words: Vec<String> = parts
        .iter()
        .map(|part| match *part {
            Part::Star => format!("every {unit}"),
            Part::Every(step) => format!("every {} {unit}", counted(step)),
            Part::Span { first, last, .. } if first == last => name(first),
            Part::Span { first, last, step } => {
                let span = format!("{} to {}", name(first), name(last));
                match step {
                    1 => span,
                    step => format!("every {} {unit} from {span}", counted(step)),
                }
            }
            Part::LastDay { before: 0 } => "the last day".to_owned(),
            Part::LastDay { before: 1 } => "the day before the last".to_owned(),
            Part::LastDay { before } => format!("{before} days before the last"),
            Part::LastWorkday => "the last working day".to_owned(),
            Part::NearestWorkday(day) => format!("the working day nearest day {day}"),
            Part::NthWeekday { weekday: day, nth } => {
                let ordinal = usize::try_from(nth - 1)
                    .ok()
                    .and_then(|at| ORDINALS.get(at));
                format!("the {} {}", ordinal.unwrap_or(&"last"), weekday(day))
            }
            Part::LastWeekday(day) => format!("the last {}", weekday(day)),
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
    let place = usize::try_from(value % 7).unwrap_or(0);
    WEEKDAYS.get(place).copied().unwrap_or_default().to_owned()
}

fn month(value: i8) -> String {
    let place = usize::try_from(value - 1).unwrap_or(0);
    MONTHS.get(place).copied().unwrap_or_default().to_owned()
}

fn joined(words: &[String], last: &str) -> String {
    match words {
        [] => String::new(),
        [only] => only.clone(),
        [all @ .., end] => format!("{} {last} {end}", all.join(", ")),
    }
}

fn is_star(parts: &[Part]) -> bool {
    matches!(parts, [Part::Star | Part::Every(1)])
}

fn zero(parts: &[Part]) -> bool {
    single(parts) == Some(0)
}

fn single(parts: &[Part]) -> Option<i8> {
    match parts {
        [Part::Span { first, last, .. }] if first == last => Some(*first),
        _ => None,
    }
}

/// Returns the values when each was written by itself, in order.
fn values(parts: &[Part]) -> Option<Vec<i8>> {
    let mut values = Vec::new();
    for part in parts {
        values.push(single(std::slice::from_ref(part))?);
    }
    values.sort_unstable();
    values.dedup();
    Some(values)
}
