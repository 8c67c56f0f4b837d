//! Properties of schedules over arbitrary fields, against a walk minute by minute.
//!
//! The fields are drawn as sets and written as text, so that nothing here reads a schedule.

use std::collections::BTreeSet;

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use proptest::prelude::{Just, Strategy, any, prop_oneof, proptest};
use proptest::test_runner::Config;

use crate::record::cron::Cron;

const ZONES: [&str; 6] = [
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",
    "America/Havana",
    "Asia/Kathmandu",
];

/// The values of one field; none for `*`.
type Values = Option<BTreeSet<i8>>;

#[derive(Debug, Clone)]
struct Fields {
    minutes: Values,
    hours: Values,
    days: Values,
    months: Values,
    weekdays: Values,
}

impl Fields {
    fn text(&self) -> String {
        [
            &self.minutes,
            &self.hours,
            &self.days,
            &self.months,
            &self.weekdays,
        ]
        .map(|values| match values {
            None => "*".to_owned(),
            Some(values) => values
                .iter()
                .map(i8::to_string)
                .collect::<Vec<_>>()
                .join(","),
        })
        .join(" ")
    }

    fn fit(&self, at: DateTime) -> bool {
        let has =
            |values: &Values, value: i8| values.as_ref().is_none_or(|all| all.contains(&value));
        let day = has(&self.days, at.day());
        let weekday = has(&self.weekdays, at.weekday().to_sunday_zero_offset());
        let is_either = self.days.is_some() && self.weekdays.is_some();
        let date = if is_either {
            day || weekday
        } else {
            day && weekday
        };
        date && has(&self.minutes, at.minute())
            && has(&self.hours, at.hour())
            && has(&self.months, at.month())
    }
}

fn values(least: i8, greatest: i8) -> impl Strategy<Value = Values> {
    prop_oneof![
        Just(None),
        proptest::collection::btree_set(least..=greatest, 1..6).prop_map(Some)
    ]
}

fn fields() -> impl Strategy<Value = Fields> {
    let months = prop_oneof![3 => Just(None), 1 => values(1, 12)];
    (
        values(0, 59),
        values(0, 23),
        values(1, 31),
        months,
        values(0, 6),
    )
        .prop_map(|(minutes, hours, days, months, weekdays)| Fields {
            minutes,
            hours,
            days,
            months,
            weekdays,
        })
}

/// Some minute of the years 2000 to 2035, as seconds.
fn minute() -> impl Strategy<Value = i64> {
    (15_778_080_i64..34_712_640).prop_map(|minute| minute * 60)
}

proptest! {
    #![proptest_config(Config { cases: 150, failure_persistence: None, ..Config::default() })]

    #[test]
    fn what_comes_next_is_later_and_the_first_that_fits(
        fields in fields(),
        zone in 0..ZONES.len(),
        begin in minute(),
    ) {
        let name = ZONES[zone];
        // A date such as 31 February is refused, and has nothing to compare.
        if let Ok(cron) = Cron::parse(&fields.text(), name) {
            let zone = TimeZone::get(name).unwrap();
            walk(&cron, &fields, &zone, begin);
        }
    }

    #[test]
    fn the_last_one_before_an_instant_is_followed_by_none(
        fields in fields(),
        begin in minute(),
        length in 0_i64..20_000_000_000,
        offset in any::<u16>(),
    ) {
        if let Ok(cron) = Cron::parse(&fields.text(), "America/New_York") {
            let (after, until) = (begin * 1000 + i64::from(offset), begin * 1000 + length);
            match cron.last_between(after, until) {
                Some(last) => {
                    assert!(after < last && last <= until);
                    assert!(cron.next_after(last).is_none_or(|next| next > until));
                    assert_eq!(cron.next_after(last - 1), Some(last));
                }
                None => assert!(cron.next_after(after).is_none_or(|next| next > until)),
            }
        }
    }

    #[test]
    fn no_text_is_too_strange_to_be_read(text in "[0-9*/,#LWlw? @a-z-]{0,40}", zone in "\\PC{0,20}") {
        let _is_read = Cron::parse(&text, &zone).is_ok() | Cron::parse(&text, "UTC").is_ok();
    }
}

/// Walks four days minute by minute. Close to a change of the clock other rules hold, so there
/// only the order is looked at.
fn walk(cron: &Cron, fields: &Fields, zone: &TimeZone, begin: i64) {
    let mut next = cron.next_after(begin * 1000 - 1);
    for minute in 0..4 * 1440 {
        let second = begin + minute * 60;
        let at = Timestamp::from_second(second).unwrap();
        let is_next = next == Some(second * 1000);
        if !is_near_a_change(zone, second) {
            let fits = fields.fit(zone.to_datetime(at));
            assert_eq!(is_next, fits, "{} at {at}", cron.text());
        }
        if is_next {
            next = cron.next_after(second * 1000);
        }
        assert!(next.is_none_or(|next| next > second * 1000));
    }
}

fn is_near_a_change(zone: &TimeZone, second: i64) -> bool {
    let offset = |second| zone.to_offset(Timestamp::from_second(second).unwrap());
    offset(second - 4000) != offset(second + 60)
}
