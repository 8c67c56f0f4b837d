//! What rules and conditions in files need of time zones: whether one exists, and the time there.
//!
//! The rules of the zones come from the machine, or from this program where it has none. Knows no
//! clock, and nothing of what a time decides.

use jiff::Timestamp;

use crate::record::zone::zone;
use crate::rules::condition::window::{LocalTime, Weekday};
use crate::rules::condition::{Condition, ConditionQuestion, Facts, ProbeAnswer, needs};

/// Tells whether there is a time zone of this name.
#[must_use]
pub fn is_zone(name: &str) -> bool {
    zone(name).is_ok()
}

/// Returns what the clocks of a zone show at an instant; `None` when there is no such zone or the
/// instant lies thousands of years away.
#[must_use]
pub fn local_time(name: &str, now_ms: i64) -> Option<LocalTime> {
    let zone = zone(name).ok()?;
    let local = Timestamp::from_millisecond(now_ms).ok()?.to_zoned(zone);
    let location = usize::try_from(local.weekday().to_monday_zero_offset()).ok()?;
    let minutes = u16::try_from(i16::from(local.hour()) * 60 + i16::from(local.minute())).ok()?;
    Some(LocalTime {
        day: Weekday::at(location)?,
        minute: minutes,
    })
}

/// Returns the first time zone that a condition names and that does not exist.
#[must_use]
pub fn unknown_zone(condition: &Condition) -> Option<String> {
    needs(condition).into_iter().find_map(|question| {
        let zone = zone_of(&question)?;
        (!is_zone(zone)).then(|| zone.to_owned())
    })
}

/// Answers those questions of a condition that are about the time.
#[must_use]
pub fn times(condition: &Condition, now_ms: i64) -> Facts {
    let questions = needs(condition).into_iter();
    let answered = questions.filter_map(|question| {
        let zone = zone_of(&question)?;
        let answer = match local_time(zone, now_ms) {
            Some(time) => ProbeAnswer::LocalTime(time),
            None => ProbeAnswer::Unknown {
                why: format!("there is no time zone {zone:?}"),
            },
        };
        Some((question, answer))
    });
    answered.collect()
}

fn zone_of(question: &ConditionQuestion) -> Option<&str> {
    match question {
        ConditionQuestion::LocalTime { zone } => Some(zone),
        ConditionQuestion::Files { .. }
        | ConditionQuestion::FilesChanged { .. }
        | ConditionQuestion::Command { .. }
        | ConditionQuestion::Branch
        | ConditionQuestion::Uncommitted
        | ConditionQuestion::AheadOf { .. }
        | ConditionQuestion::RefChanged { .. }
        | ConditionQuestion::LastResult { .. }
        | ConditionQuestion::Changed { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use kapi_settings::fault::Faults;
    use kapi_settings::{read as settings, yaml};

    use super::{is_zone, local_time, times, unknown_zone};
    use crate::rules::condition::expression::ExpressionContext;
    use crate::rules::condition::{Condition, ConditionForm, ConditionResult, evaluate};

    /// Monday, 26 October 2026, 08:30 UTC.
    const MONDAY_MS: i64 = 1_793_003_400_000;

    fn condition(text: &str) -> Condition {
        let mut faults = Faults::of("f".to_owned());
        let root = yaml::parse(&format!("c: {{{text}}}"), &mut faults).unwrap();
        let mut read: BTreeMap<String, ConditionForm> = settings::read(&root, &mut faults).unwrap();
        read.remove("c").unwrap().0
    }

    #[test]
    fn clocks_differ_by_zone_and_season() {
        let shown = |zone: &str, now_ms: i64| local_time(zone, now_ms).unwrap().to_string();
        assert_eq!(shown("UTC", MONDAY_MS), "mon 08:30");
        // One day before, the clocks of Berlin were put back.
        assert_eq!(shown("Europe/Berlin", MONDAY_MS), "mon 09:30");
        assert_eq!(
            shown("Europe/Berlin", MONDAY_MS - 3 * 86_400_000),
            "fri 10:30"
        );
        assert_eq!(shown("Pacific/Kiritimati", MONDAY_MS), "mon 22:30");
        assert_eq!(shown("America/Los_Angeles", MONDAY_MS), "mon 01:30");
        assert_eq!(
            shown("Asia/Kathmandu", MONDAY_MS - 10 * 3_600_000),
            "mon 04:15"
        );
        assert_eq!(local_time("Europe/Atlantis", MONDAY_MS), None);
        assert_eq!(local_time("UTC", i64::MAX), None);
        assert!(is_zone("Australia/Lord_Howe") && !is_zone("Mars/Olympus"));
    }

    #[test]
    fn times_are_answered_and_a_zone_that_is_none_never_holds() {
        let window = "time: {days: mon, from: \"09:00\", to: \"10:00\", zone: Europe/Berlin}";
        let open = condition(window);
        assert_eq!(unknown_zone(&open), None);
        let facts = times(&open, MONDAY_MS);
        assert!(evaluate(&open, &ExpressionContext::default(), &facts).holds);
        let facts = times(&open, MONDAY_MS + 30 * 60_000);
        assert!(!evaluate(&open, &ExpressionContext::default(), &facts).holds);

        let nowhere = condition("not: {time: {zone: Europe/Atlantis}}");
        assert_eq!(unknown_zone(&nowhere).as_deref(), Some("Europe/Atlantis"));
        let verdict = evaluate(
            &nowhere,
            &ExpressionContext::default(),
            &times(&nowhere, MONDAY_MS),
        );
        assert!(!verdict.holds);
        assert_eq!(verdict.reasons[0].held, ConditionResult::Unknown);
        assert_eq!(
            verdict.reasons[0].found,
            "there is no time zone \"Europe/Atlantis\""
        );
    }
}
