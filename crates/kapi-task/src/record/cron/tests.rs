//! Schedules against tables that Python computed minute by minute, and cases worked out by hand.

use insta::assert_snapshot;
use jiff::Timestamp;
use jiff::civil::{DateTime, date};
use jiff::tz::TimeZone;

use crate::record::cron::{Cron, describe};

const CHANGES: &str = include_str!("../../../tests/fixtures/cron/changes.txt");
const YEAR: &str = include_str!("../../../tests/fixtures/cron/year.txt");

fn cron(text: &str, zone: &str) -> Cron {
    Cron::parse(text, zone).unwrap()
}

/// Every instant in [begin, end), in seconds.
fn seconds_in(cron: &Cron, begin: i64, end: i64) -> Vec<i64> {
    let mut found = Vec::new();
    let mut at_ms = begin * 1000 - 1;
    while let Some(next_ms) = cron.next_after(at_ms).filter(|next| *next < end * 1000) {
        assert!(next_ms > at_ms && next_ms % 1000 == 0);
        found.push(next_ms / 1000);
        at_ms = next_ms;
    }
    found
}

/// The local times with their offsets at which it fires, from one UTC time to another.
fn fires(text: &str, zone: &str, begin: DateTime, end: DateTime) -> String {
    let second = |at: DateTime| at.to_zoned(TimeZone::UTC).unwrap().timestamp().as_second();
    let cron = cron(text, zone);
    let zone = TimeZone::get(zone).unwrap();
    let local = |at: i64| {
        let at = Timestamp::from_second(at).unwrap().to_zoned(zone.clone());
        format!("{} {}", at.datetime(), at.offset())
    };
    let times: Vec<String> = seconds_in(&cron, second(begin), second(end))
        .into_iter()
        .map(local)
        .collect();
    times.join("\n")
}

fn number(text: &str) -> i64 {
    text.parse().unwrap()
}

#[test]
fn both_changes_of_every_zone_agree_with_the_table() {
    let mut instants = 0;
    let mut rows = 0;
    for row in CHANGES.lines() {
        let [zone, text, begin, end, inside] = row
            .split('|')
            .collect::<Vec<_>>()
            .try_into()
            .unwrap_or_else(|_| panic!("five columns: {row}"));
        let begin = number(begin);
        let expected: Vec<i64> = inside
            .split_ascii_whitespace()
            .map(|after| begin + number(after))
            .collect();
        let found = seconds_in(&cron(text, zone), begin, number(end));
        assert_eq!(found, expected, "{text} in {zone}");
        instants += found.len();
        rows += 1;
    }
    // Four zones with two changes each, and 31 expressions.
    assert_eq!(rows, 4 * 2 * 31);
    assert!(instants > 2500, "{instants} instants");
}

#[test]
fn the_whole_year_agrees_with_the_table() {
    let start = date(2024, 1, 1)
        .at(0, 0, 0, 0)
        .to_zoned(TimeZone::UTC)
        .unwrap();
    let mut instants = 0;
    for row in YEAR.lines() {
        let [zone, text, sums] = row
            .split('|')
            .collect::<Vec<_>>()
            .try_into()
            .unwrap_or_else(|_| panic!("three columns: {row}"));
        let cron = cron(text, zone);
        let mut found = Vec::new();
        for month in 1..=12 {
            let first = start.with().month(month).build().unwrap();
            let begin = first.timestamp().as_second();
            let end = begin + i64::from(first.date().days_in_month()) * 86_400;
            let inside = seconds_in(&cron, begin, end);
            let sum: i64 = inside
                .iter()
                .map(|at| at - start.timestamp().as_second())
                .sum();
            instants += inside.len();
            found.push(format!("{}:{sum}", inside.len()));
        }
        assert_eq!(found.join(" "), sums, "{text} in {zone}");
    }
    assert!(instants > 400_000, "{instants} instants");
}

#[test]
fn a_time_in_the_gap_fires_at_its_end_and_only_once() {
    // In Berlin, 31 March 2024 had no time from 02:00 to 03:00.
    let (begin, end) = (
        date(2024, 3, 30).at(12, 0, 0, 0),
        date(2024, 4, 1).at(12, 0, 0, 0),
    );
    assert_snapshot!(fires("30 2 * * *", "Europe/Berlin", begin, end), @"
    2024-03-31T03:00:00 +02
    2024-04-01T02:30:00 +02
    ");
    assert_snapshot!(fires("0,20,40 2 * * *", "Europe/Berlin", begin, date(2024, 3, 31).at(12, 0, 0, 0)), @"2024-03-31T03:00:00 +02");
}

#[test]
fn a_time_that_comes_twice_fires_the_first_time() {
    // In Berlin, 02:00 to 03:00 of 27 October 2024 came twice.
    let (begin, end) = (
        date(2024, 10, 26).at(12, 0, 0, 0),
        date(2024, 10, 28).at(0, 0, 0, 0),
    );
    assert_snapshot!(fires("30 2 * * *", "Europe/Berlin", begin, end), @"2024-10-27T02:30:00 +02");
}

#[test]
fn an_interval_goes_on_through_a_repeated_hour() {
    let (begin, end) = (
        date(2024, 10, 26).at(23, 0, 0, 0),
        date(2024, 10, 27).at(2, 30, 0, 0),
    );
    assert_snapshot!(fires("*/30 * * * *", "Europe/Berlin", begin, end), @"
    2024-10-27T01:00:00 +02
    2024-10-27T01:30:00 +02
    2024-10-27T02:00:00 +02
    2024-10-27T02:30:00 +02
    2024-10-27T02:00:00 +01
    2024-10-27T02:30:00 +01
    2024-10-27T03:00:00 +01
    ");
}

#[test]
fn half_an_hour_is_shifted_too() {
    // Lord Howe Island moves by half an hour: no 02:00 to 02:30 on 6 October 2024, and 01:30 to
    // 02:00 twice on 7 April.
    let spring = (
        date(2024, 10, 5).at(13, 0, 0, 0),
        date(2024, 10, 5).at(17, 0, 0, 0),
    );
    assert_snapshot!(fires("15 2,3 * * *", "Australia/Lord_Howe", spring.0, spring.1), @"
    2024-10-06T02:30:00 +11
    2024-10-06T03:15:00 +11
    ");
    let autumn = (
        date(2024, 4, 6).at(14, 0, 0, 0),
        date(2024, 4, 6).at(16, 0, 0, 0),
    );
    assert_snapshot!(fires("45 1 * * *", "Australia/Lord_Howe", autumn.0, autumn.1), @"2024-04-07T01:45:00 +11");
    assert_snapshot!(fires("45 * * * *", "Australia/Lord_Howe", autumn.0, autumn.1), @"
    2024-04-07T01:45:00 +11
    2024-04-07T01:45:00 +10:30
    ");
}

#[test]
fn a_day_that_a_country_skipped_is_made_up_for_once() {
    // Samoa crossed the date line: after 29 December 2011 came the 31st.
    let (begin, end) = (
        date(2011, 12, 29).at(0, 0, 0, 0),
        date(2012, 1, 1).at(0, 0, 0, 0),
    );
    assert_snapshot!(fires("0 9,17 * * *", "Pacific/Apia", begin, end), @"
    2011-12-28T17:00:00 -10
    2011-12-29T09:00:00 -10
    2011-12-29T17:00:00 -10
    2011-12-31T00:00:00 +14
    2011-12-31T09:00:00 +14
    2011-12-31T17:00:00 +14
    2012-01-01T09:00:00 +14
    ");
}

#[test]
fn far_and_rare_dates_are_found() {
    let begin = date(2096, 1, 1).at(0, 0, 0, 0);
    // 2100 has no 29 February.
    let end = date(2110, 1, 1).at(0, 0, 0, 0);
    assert_snapshot!(fires("0 0 29 2 *", "UTC", begin, end), @"
    2096-02-29T00:00:00 +00
    2104-02-29T00:00:00 +00
    2108-02-29T00:00:00 +00
    ");
    let begin = date(2024, 1, 1).at(0, 0, 0, 0);
    assert_snapshot!(fires("0 0 * 2 mon#5", "UTC", begin, date(2120, 1, 1).at(0, 0, 0, 0)), @"
    2044-02-29T00:00:00 +00
    2072-02-29T00:00:00 +00
    2112-02-29T00:00:00 +00
    ");
}

#[test]
fn nothing_comes_after_the_end_of_the_calendar() {
    let daily = cron("@daily", "UTC");
    assert_eq!(daily.next_after(Timestamp::MAX.as_millisecond()), None);
    assert_eq!(daily.next_after(i64::MAX), None);
    assert!(daily.next_after(i64::MIN).is_some());
    assert_eq!(daily.last_between(i64::MAX - 5, i64::MAX), None);
}

#[test]
fn the_last_instant_is_found_however_long_the_time() {
    let cron = cron("*/15 9-17 * * 1-5", "America/New_York");
    let begin = 1_600_000_000;
    let all = seconds_in(&cron, begin, begin + 40 * 86_400);
    for until in (begin..begin + 30 * 86_400).step_by(7_013) {
        let expected = all
            .iter()
            .rev()
            .find(|at| **at <= until)
            .map(|at| at * 1000);
        let found = cron.last_between(begin * 1000 - 1, until * 1000);
        assert_eq!(found, expected, "until {until}");
    }
    let ages_ago = -60_000_000_000_000;
    let last = all.last().unwrap() * 1000;
    assert_eq!(cron.last_between(ages_ago, last), Some(last));
    assert_eq!(cron.last_between(last, last), None);
    assert_eq!(cron.last_between(last - 1, last), Some(last));
}

#[test]
fn forms_that_mean_the_same_fire_alike() {
    let same = |left: &str, right: &str| {
        let at = |text| {
            seconds_in(
                &cron(text, "UTC"),
                1_700_000_000,
                1_700_000_000 + 70 * 86_400,
            )
        };
        let found = at(left);
        assert!(!found.is_empty());
        assert_eq!(found, at(right), "{left} and {right}");
    };
    same("0 0 * * *", "0 0 0 ? * ?");
    same("0 12 * * MON-fri", "0  12 *\t* 1-5");
    same("0 12 * * 7", "0 12 * * sun");
    same("0 12 * * fri-sun", "0 12 * * 5,6,0");
    same("0 12 * * 7-2", "0 12 * * sun,mon,tue");
    same("0 12 * * */2", "0 12 * * 0,2,4,6");
    same("0 12 * jan-dec *", "0 12 * * *");
    same("5-59/10 8 * * *", "5,15,25,35,45,55 8 * * *");
    same("0 8 * * 5L", "0 8 * * FRIl");
    same("@hourly", "0 * * * *");
    same("@midnight", "@daily");
    same("@Weekly", "0 0 * * 0");
    same("@monthly", "0 0 1 * *");
    same("0 8 l * *", "0 8 L * *");
    assert_eq!(
        cron("@yearly", "UTC").next_after(0),
        cron("@annually", "UTC").next_after(0)
    );
}

#[test]
fn what_is_wrong_is_named_with_its_place() {
    let report = [
        "",
        "* * * *",
        "* * * * * * *",
        "@reboot",
        "61 * * * *",
        "0 24 * * *",
        "0 0 0 * *",
        "0 0 * 13 *",
        "0 0 * * 8",
        "0 0 1,2,x3 * *",
        "*/60 * * * *",
        "*/0 * * * *",
        "5/15 * * * *",
        "17-9 * * * *",
        "0 0 * * fri-mon",
        "1,* * * * *",
        ", * * * *",
        "0 ? * * *",
        "0 0 * * L",
        "0 0 L-31 * *",
        "0 0 * * mon#6",
        "+5 * * * *",
        "0 0 * ä *",
        "0 0 31 2 *",
        "0 0 30 2 ?",
        "0 0 31W feb,apr *",
        "0 0 31 */5 */7",
        "60 0 0 * * *",
    ]
    .map(|text| Cron::parse(text, "UTC").unwrap_err().to_string())
    .join("\n");
    assert_snapshot!(report, @r#"
    read the schedule "": it has 0 fields; allowed are five (minute, hour, day of month, month, weekday) or six (a second before them)
    read the schedule "* * * *": it has 4 fields; allowed are five (minute, hour, day of month, month, weekday) or six (a second before them)
    read the schedule "* * * * * * *": it has 7 fields; allowed are five (minute, hour, day of month, month, weekday) or six (a second before them)
    read the schedule "@reboot": allowed are @hourly, @daily, @midnight, @weekly, @monthly, @yearly and @annually
    read the schedule "61 * * * *": in field 1 (minute), "61" at character 1 is not allowed; allowed are 0 to 59, *, ranges, steps and lists of them
    read the schedule "0 24 * * *": in field 2 (hour), "24" at character 3 is not allowed; allowed are 0 to 23, *, ranges, steps and lists of them
    read the schedule "0 0 0 * *": in field 3 (day of month), "0" at character 5 is not allowed; allowed are 1 to 31, *, ?, L, L-1 to L-30, LW, 1W to 31W, ranges, steps and lists
    read the schedule "0 0 * 13 *": in field 4 (month), "13" at character 7 is not allowed; allowed are 1 to 12, jan to dec, *, ranges, steps and lists of them
    read the schedule "0 0 * * 8": in field 5 (weekday), "8" at character 9 is not allowed; allowed are 0 to 7 (0 and 7 are Sunday), sun to sat, *, ?, friL, fri#1 to fri#5, ranges, steps and lists
    read the schedule "0 0 1,2,x3 * *": in field 3 (day of month), "x3" at character 9 is not allowed; allowed are 1 to 31, *, ?, L, L-1 to L-30, LW, 1W to 31W, ranges, steps and lists
    read the schedule "*/60 * * * *": in field 1 (minute), "*/60" at character 1 is not allowed; allowed are steps from 1 to 59
    read the schedule "*/0 * * * *": in field 1 (minute), "*/0" at character 1 is not allowed; allowed are steps from 1 to 59
    read the schedule "5/15 * * * *": in field 1 (minute), "5/15" at character 1 is not allowed; allowed are steps after * or a range, such as 5-59/2
    read the schedule "17-9 * * * *": in field 1 (minute), "17-9" at character 1 is not allowed; allowed are ranges that run forwards, or two of them as a list
    read the schedule "0 0 * * fri-mon": in field 5 (weekday), "fri-mon" at character 9 is not allowed; allowed are ranges that run forwards, or two of them as a list
    read the schedule "1,* * * * *": in field 1 (minute), "*" at character 3 is not allowed; it is allowed only as the whole field
    read the schedule ", * * * *": in field 1 (minute), "" at character 1 is not allowed; allowed are 0 to 59, *, ranges, steps and lists of them
    read the schedule "0 ? * * *": in field 2 (hour), "?" at character 3 is not allowed; allowed are 0 to 23, *, ranges, steps and lists of them
    read the schedule "0 0 * * L": in field 5 (weekday), "L" at character 9 is not allowed; allowed are 0 to 7 (0 and 7 are Sunday), sun to sat, *, ?, friL, fri#1 to fri#5, ranges, steps and lists
    read the schedule "0 0 L-31 * *": in field 3 (day of month), "L-31" at character 5 is not allowed; allowed are 1 to 31, *, ?, L, L-1 to L-30, LW, 1W to 31W, ranges, steps and lists
    read the schedule "0 0 * * mon#6": in field 5 (weekday), "mon#6" at character 9 is not allowed; allowed are 0 to 7 (0 and 7 are Sunday), sun to sat, *, ?, friL, fri#1 to fri#5, ranges, steps and lists
    read the schedule "+5 * * * *": in field 1 (minute), "+5" at character 1 is not allowed; allowed are 0 to 59, *, ranges, steps and lists of them
    read the schedule "0 0 * ä *": in field 4 (month), "ä" at character 7 is not allowed; allowed are 1 to 12, jan to dec, *, ranges, steps and lists of them
    read the schedule "0 0 31 2 *": it never fires, as no date fits its day and month
    read the schedule "0 0 30 2 ?": it never fires, as no date fits its day and month
    read the schedule "0 0 31W feb,apr *": it never fires, as no date fits its day and month
    read the schedule "0 0 31 */5 */7": in field 5 (weekday), "*/7" at character 12 is not allowed; allowed are steps from 1 to 6
    read the schedule "60 0 0 * * *": in field 1 (second), "60" at character 1 is not allowed; allowed are 0 to 59, *, ranges, steps and lists of them
    "#);
    let long = "1,".repeat(400);
    assert_snapshot!(Cron::parse(&long, "UTC").unwrap_err(), @"read a schedule of 800 bytes: at most 512 are allowed");
}

#[test]
fn a_zone_is_known_by_its_name() {
    for zone in [
        "Berlin",
        "",
        "../../etc/passwd",
        "CEST",
        "Etc/Unknown",
        "+02:00",
    ] {
        let error = Cron::parse("@daily", zone).unwrap_err().to_string();
        assert!(
            error.contains("IANA") || error.contains("no location"),
            "{error}"
        );
        assert!(
            error.starts_with(&format!("find the time zone {zone:?}")),
            "{error}"
        );
    }
    assert_eq!(cron("@daily", "UTC").zone(), "UTC");
    assert_eq!(cron("@daily", "europe/berlin").zone(), "Europe/Berlin");
    assert_eq!(cron(" 0  0 * *  * ", "UTC").text(), "0 0 * * *");
}

#[test]
fn the_rules_of_zones_are_in_the_program() {
    // A bare machine has no zone files.
    let bundled = jiff::tz::TimeZoneDatabase::bundled();
    let of_machine = TimeZone::get("Europe/Berlin").unwrap();
    let own = bundled.get("Europe/Berlin").unwrap();
    let summer = Timestamp::from_second(1_720_000_000).unwrap();
    assert_eq!(own.to_offset(summer), of_machine.to_offset(summer));
}

/// The words of schedules that stand in one text.
fn words(texts: &str) -> String {
    let words: Vec<String> = texts
        .split('|')
        .map(|text| format!("{text} = {}", describe(&cron(text, "UTC"))))
        .collect();
    words.join("\n")
}

#[test]
fn times_are_put_in_short_words() {
    let texts = "0 15 * * 1-5|* * * * *|*/15 * * * *|*/7 * * * *|@hourly|30 * * * *|0 */2 * * *|\
         30 */6 * * *|0 */5 * * *|*/10 9-17 * * mon-fri|* 9 * * *|0 9,12,18 * * *|\
         0,30 8,20 * * *|0-30/7 3 * * *|* * * * * *|*/10 * * * * *|30 0 9 * * *|\
         */20 45 1,2 * * *";
    assert_snapshot!(words(texts), @"
    0 15 * * 1-5 = at 15:00, Monday to Friday, UTC
    * * * * * = every minute, UTC
    */15 * * * * = every 15 minutes, UTC
    */7 * * * * = at every 7th minute of every hour, UTC
    @hourly = every hour, UTC
    30 * * * * = every hour at minute 30, UTC
    0 */2 * * * = every 2 hours, UTC
    30 */6 * * * = every 6 hours at minute 30, UTC
    0 */5 * * * = at minute 0 of every 5th hour, UTC
    */10 9-17 * * mon-fri = every 10 minutes from 09:00 to 17:59, Monday to Friday, UTC
    * 9 * * * = every minute from 09:00 to 09:59, UTC
    0 9,12,18 * * * = at 09:00, 12:00 and 18:00, UTC
    0,30 8,20 * * * = at 08:00, 08:30, 20:00 and 20:30, UTC
    0-30/7 3 * * * = at every 7th minute from minute 0 to minute 30 of hour 3, UTC
    * * * * * * = every second, UTC
    */10 * * * * * = every 10 seconds, UTC
    30 0 9 * * * = at 09:00:30, UTC
    */20 45 1,2 * * * = at every 20th second of minute 45 of hour 1 and hour 2, UTC
    ");
}

#[test]
fn dates_are_put_in_short_words() {
    let texts = "0 0 13 * 5|0 0 */2 * mon|0 9 1,15 * *|0 9 L * *|0 9 L-1 * *|0 9 L-3 * *|\
         0 9 LW * *|0 9 15W * *|0 9 * * friL|0 9 * * mon#1,mon#3|@weekly|@yearly|\
         0 9 * */3 *|0 9 1-7 jan,mar sat|0 9 * jun-aug 0,6|0 9 1-31/2 * *";
    assert_snapshot!(words(texts), @"
    0 0 13 * 5 = at 00:00, day 13 of the month or Friday, UTC
    0 0 */2 * mon = at 00:00, every 2nd day of the month if it is Monday, UTC
    0 9 1,15 * * = at 09:00, day 1 and day 15 of the month, UTC
    0 9 L * * = at 09:00, the last day of the month, UTC
    0 9 L-1 * * = at 09:00, the day before the last of the month, UTC
    0 9 L-3 * * = at 09:00, 3 days before the last of the month, UTC
    0 9 LW * * = at 09:00, the last working day of the month, UTC
    0 9 15W * * = at 09:00, the working day nearest day 15 of the month, UTC
    0 9 * * friL = at 09:00, the last Friday, UTC
    0 9 * * mon#1,mon#3 = at 09:00, the first Monday and the third Monday, UTC
    @weekly = at 00:00, Sunday, UTC
    @yearly = at 00:00, day 1 of the month, in January, UTC
    0 9 * */3 * = at 09:00, in every 3rd month, UTC
    0 9 1-7 jan,mar sat = at 09:00, day 1 to day 7 of the month or Saturday, in January and March, UTC
    0 9 * jun-aug 0,6 = at 09:00, Sunday and Saturday, in June to August, UTC
    0 9 1-31/2 * * = at 09:00, every 2nd day from day 1 to day 31 of the month, UTC
    ");
    assert_eq!(
        describe(&cron("0 15 * * 1-5", "Europe/Berlin")),
        "at 15:00, Monday to Friday, Europe/Berlin"
    );
}
