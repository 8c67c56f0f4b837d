//! What fires, what is given up and what comes next, for each policy and each way a clock jumps.

use insta::assert_snapshot;
use jiff::Timestamp;
use kapi_core::task_id::LoopName;
use proptest::prelude::{Strategy, prop_oneof, proptest};
use proptest::test_runner::Config;

use crate::record::cron::Cron;
use crate::record::schedule::{Due, Firing, GRACE_MS, SKIPPED_MAX, Schedule, due};
use crate::rules::definition::trigger::{LoopTrigger, MISFIRES_MAX, Misfire};

const HOUR_MS: i64 = 3_600_000;
/// 14 November 2023, 22:00 UTC.
const BEGIN_MS: i64 = 1_699_999_200_000;
const YEARS_MS: i64 = 20 * 365 * 24 * HOUR_MS;

fn schedule(text: &str, misfire: Misfire, jitter_ms: u64) -> Schedule {
    Schedule {
        name: LoopName::parse("refactor").unwrap(),
        cron: Cron::parse(text, "UTC").unwrap(),
        misfire,
        jitter_ms,
    }
}

fn instants(firings: &[Firing]) -> Vec<i64> {
    firings.iter().map(|firing| firing.instant_ms).collect()
}

/// Tells in words what is done, with hours and minutes after `BEGIN_MS`.
fn reported(due: &Due) -> String {
    let hours = |firings: &[Firing]| {
        let times: Vec<String> = instants(firings)
            .into_iter()
            .map(|at| {
                let minutes = (at - BEGIN_MS) / 60_000;
                format!("{}:{:02}", minutes / 60, minutes % 60)
            })
            .collect();
        times.join(" ")
    };
    format!(
        "fire [{}] skip [{}] next [{}]",
        hours(&due.fire),
        hours(&due.skipped),
        hours(due.next.as_slice()),
    )
}

fn check(misfire: Misfire, last_handled: Option<i64>, now_minutes: i64) -> String {
    let hourly = schedule("@hourly", misfire, 0);
    let last = last_handled.map(|hours| BEGIN_MS + hours * HOUR_MS);
    reported(&due(
        &hourly,
        last,
        BEGIN_MS,
        BEGIN_MS + now_minutes * 60_000,
    ))
}

#[test]
fn what_is_on_time_fires_under_every_policy() {
    for misfire in [Misfire::Skip, Misfire::Once, Misfire::All { max: 3 }] {
        assert_eq!(check(misfire, None, 59), "fire [] skip [] next [1:00]");
        assert_eq!(check(misfire, None, 60), "fire [1:00] skip [] next [2:00]");
        assert_eq!(check(misfire, Some(1), 60), "fire [] skip [] next [2:00]");
        assert_eq!(
            check(misfire, Some(1), 121),
            "fire [2:00] skip [] next [3:00]"
        );
        // The instant at which it was enabled is not after it.
        assert_eq!(check(misfire, None, 0), "fire [] skip [] next [1:00]");
    }
}

#[test]
fn what_was_missed_is_given_up_made_up_once_or_all() {
    assert_snapshot!(check(Misfire::Skip, None, 330), @"fire [] skip [1:00 2:00 3:00 4:00 5:00] next [6:00]");
    assert_snapshot!(check(Misfire::Once, None, 330), @"fire [5:00] skip [1:00 2:00 3:00 4:00] next [6:00]");
    assert_snapshot!(check(Misfire::All { max: 3 }, None, 330), @"fire [3:00 4:00 5:00] skip [1:00 2:00] next [6:00]");
    assert_snapshot!(check(Misfire::All { max: 0 }, None, 330), @"fire [] skip [1:00 2:00 3:00 4:00 5:00] next [6:00]");
    // One that is on time makes up for those before it, unless all are wanted.
    assert_snapshot!(check(Misfire::Skip, Some(2), 300), @"fire [5:00] skip [3:00 4:00] next [6:00]");
    assert_snapshot!(check(Misfire::Once, Some(2), 300), @"fire [5:00] skip [3:00 4:00] next [6:00]");
    assert_snapshot!(check(Misfire::All { max: 1 }, Some(2), 300), @"fire [4:00 5:00] skip [3:00] next [6:00]");
}

#[test]
fn the_grace_is_a_minute() {
    let hourly = schedule("@hourly", Misfire::Skip, 0);
    let at = BEGIN_MS + HOUR_MS;
    let fired = |now| !due(&hourly, None, BEGIN_MS, now).fire.is_empty();
    assert!(!fired(at - 1) && fired(at) && fired(at + GRACE_MS));
    assert!(!fired(at + GRACE_MS + 1));
}

#[test]
fn what_was_handled_never_fires_again() {
    let policies = [Misfire::Skip, Misfire::Once, Misfire::All { max: 9 }];
    for misfire in policies {
        // The clock showed a time four hours later when the last one fired.
        assert_eq!(check(misfire, Some(5), 60), "fire [] skip [] next [6:00]");
        assert_eq!(
            check(misfire, Some(5), -9000),
            "fire [] skip [] next [6:00]"
        );
    }
}

#[test]
fn a_jump_of_years_is_little_work() {
    let every_second = |misfire| {
        let schedule = schedule("* * * * * *", misfire, 0);
        due(&schedule, Some(BEGIN_MS), BEGIN_MS, BEGIN_MS + YEARS_MS)
    };
    let until = |count: i64, end: i64| -> Vec<i64> {
        (0..count).rev().map(|ago| end - ago * 1000).collect()
    };
    let now = BEGIN_MS + YEARS_MS;
    let skip = every_second(Misfire::Skip);
    // The last minute is on time, both its ends included.
    assert_eq!(instants(&skip.fire), until(61, now));
    let skipped = i64::try_from(SKIPPED_MAX).unwrap();
    assert_eq!(instants(&skip.skipped), until(skipped, now - 61_000));
    assert!(skip.skipped_earlier);
    assert_eq!(skip.next.map(|next| next.instant_ms), Some(now + 1000));
    let all = every_second(Misfire::All { max: u32::MAX });
    assert_eq!(
        instants(&all.fire),
        until(61 + i64::from(MISFIRES_MAX), now)
    );
    let rare = schedule("0 0 29 2 *", Misfire::Once, 0);
    let once = due(&rare, None, BEGIN_MS, now);
    assert_eq!((once.fire.len(), once.skipped.len()), (1, 4));
    assert!(!once.skipped_earlier);
}

#[test]
fn jitter_delays_and_never_reorders() {
    let quarter = schedule("*/15 * * * *", Misfire::Skip, 600_000);
    let mut delays = Vec::new();
    let mut last = BEGIN_MS;
    for _ in 0..200 {
        let next = due(&quarter, Some(last), BEGIN_MS, last).next.unwrap();
        assert_eq!(next.instant_ms, last + 900_000);
        let before = due(&quarter, Some(last), BEGIN_MS, next.at_ms - 1);
        assert_eq!((before.fire, before.next), (vec![], Some(next)));
        assert_eq!(due(&quarter, Some(last), BEGIN_MS, next.at_ms).fire, [next]);
        delays.push(next.at_ms - next.instant_ms);
        last = next.instant_ms;
    }
    assert!(delays.iter().all(|delay| (0..=600_000).contains(delay)));
    let (low, high) = (delays.iter().min().unwrap(), delays.iter().max().unwrap());
    assert!(*low < 60_000 && *high > 540_000, "{low} to {high}");
    // A jitter of a day cannot push an instant past the next.
    let wide = schedule("*/15 * * * *", Misfire::Skip, 86_400_000);
    let mut earlier = BEGIN_MS;
    for minutes in 0..600 {
        let next = due(&wide, None, BEGIN_MS, BEGIN_MS + minutes * 60_000)
            .next
            .unwrap();
        assert!(next.at_ms < next.instant_ms + 900_000);
        assert!(earlier <= next.at_ms);
        earlier = next.at_ms;
    }
}

#[test]
fn the_delays_of_one_name_are_always_the_same() {
    // Schedulers of different versions must agree, so these values never change.
    let delays: Vec<i64> = ["refactor", "fix-bug"]
        .into_iter()
        .flat_map(|name| {
            let mut schedule = schedule("@hourly", Misfire::Skip, 600_000);
            schedule.name = LoopName::parse(name).unwrap();
            [0, 1, 2].map(|hours| {
                let last = BEGIN_MS + hours * HOUR_MS;
                let next = due(&schedule, Some(last), BEGIN_MS, last).next.unwrap();
                next.at_ms - next.instant_ms
            })
        })
        .collect();
    assert_snapshot!(format!("{delays:?}"), @"[265660, 517275, 285643, 363731, 151794, 239147]");
}

#[test]
fn a_loop_that_the_clock_sets_off_has_a_schedule() {
    let expected = schedule("@hourly", Misfire::Once, 5000);
    let cron = |text: &str| LoopTrigger::Cron {
        schedule: text.to_owned(),
        zone: "UTC".to_owned(),
        misfire: Misfire::Once,
        jitter_ms: 5000,
    };
    let read = |trigger| Schedule::of(&expected.name, &trigger);
    assert_eq!(read(cron("@hourly")).unwrap().as_ref(), Some(&expected));
    assert_eq!(read(LoopTrigger::Manual).unwrap(), None);
    assert_snapshot!(read(cron("0 0 31 4 *")).unwrap_err(), @r#"read the schedule "0 0 31 4 *": it never fires, as no date fits its day and month"#);
}

fn misfire() -> impl Strategy<Value = Misfire> {
    prop_oneof![
        proptest::strategy::Just(Misfire::Skip),
        proptest::strategy::Just(Misfire::Once),
        (0_u32..5).prop_map(|max| Misfire::All { max }),
    ]
}

proptest! {
    #![proptest_config(Config { cases: 200, failure_persistence: None, ..Config::default() })]

    /// A scheduler that looks at any times, on a clock that jumps both ways, fires or skips each
    /// instant once, in order, and none early; and all of them when it waits for `next`.
    #[test]
    fn each_instant_is_handled_once(
        misfire in misfire(),
        jitter_ms in 0_u64..1_200_000,
        steps in proptest::collection::vec(-3_000_i64..9_000, 1..40),
    ) {
        let schedule = schedule("*/10 * * * *", misfire, jitter_ms);
        let mut now = BEGIN_MS;
        let mut last = None;
        let mut handled = Vec::new();
        for step in steps {
            now += step * 1000;
            let due = due(&schedule, last, BEGIN_MS, now);
            assert!(due.fire.iter().all(|firing| firing.at_ms <= now));
            assert!(due.next.is_some_and(|next| next.at_ms > now));
            let mut both = [instants(&due.fire), instants(&due.skipped)].concat();
            both.sort_unstable();
            last = both.last().copied().or(last);
            handled.extend(both);
            if let (Some(last), Some(next)) = (last, due.next) {
                assert_eq!(next.instant_ms, last + 600_000);
            }
        }
        let expected: Vec<i64> = (1..).map(|tens| BEGIN_MS + tens * 600_000).take(handled.len()).collect();
        assert_eq!(handled, expected, "from {}", Timestamp::from_millisecond(BEGIN_MS).unwrap());
    }
}
