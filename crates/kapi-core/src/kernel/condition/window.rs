//! Times of day on days of the week, in a zone.
//!
//! Knows no calendar: somebody else says which day and minute it is there.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::kernel::value::place::{Place, PlaceFault};

/// Minutes of a day.
const DAY_MINUTES: u16 = 24 * 60;
const TEXT_BYTES_MAX: usize = 64;

/// A day of the week.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Weekday {
    /// Monday.
    Mon,
    /// Tuesday.
    Tue,
    /// Wednesday.
    Wed,
    /// Thursday.
    Thu,
    /// Friday.
    Fri,
    /// Saturday.
    Sat,
    /// Sunday.
    Sun,
}

const WEEK: [(Weekday, &str, &str); 7] = [
    (Weekday::Mon, "mon", "monday"),
    (Weekday::Tue, "tue", "tuesday"),
    (Weekday::Wed, "wed", "wednesday"),
    (Weekday::Thu, "thu", "thursday"),
    (Weekday::Fri, "fri", "friday"),
    (Weekday::Sat, "sat", "saturday"),
    (Weekday::Sun, "sun", "sunday"),
];

/// A moment as the clocks of a zone show it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LocalTime {
    /// The day of the week.
    pub day: Weekday,
    /// Minutes since midnight by the clock, from 0 to 1439.
    pub minute: u16,
}

/// Times of day on days of the week. A window that ends before it begins goes on after midnight,
/// and belongs to the day on which it began.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Window {
    /// The days, in the order of the week, each once.
    pub days: Vec<Weekday>,
    /// The first minute of the day that is in it.
    pub from: u16,
    /// The first minute of the day that is not in it any more; 1440 is midnight.
    pub to: u16,
    /// The zone's name in the IANA database.
    pub zone: String,
}

impl Weekday {
    /// Returns the day at a place of the week, 0 for Monday.
    #[must_use]
    pub fn at(place: usize) -> Option<Self> {
        WEEK.get(place).map(|(day, _, _)| *day)
    }

    fn place(self) -> usize {
        WEEK.iter()
            .position(|(day, _, _)| *day == self)
            .unwrap_or_default()
    }

    fn after(self, days: usize) -> Self {
        Self::at((self.place() + days) % WEEK.len()).unwrap_or(self)
    }

    fn parse(text: &str) -> Option<Self> {
        let text = text.trim().to_lowercase();
        let is_it = |(_, short, long): &&(Self, &str, &str)| text == *short || text == *long;
        WEEK.iter().find(is_it).map(|(day, _, _)| *day)
    }
}

impl Window {
    /// Tells whether a moment is in it.
    #[must_use]
    pub fn holds(&self, time: LocalTime) -> bool {
        let is_day = |day: Weekday| self.days.contains(&day);
        if self.from < self.to {
            return is_day(time.day) && (self.from..self.to).contains(&time.minute);
        }
        let yesterday = time.day.after(WEEK.len() - 1);
        (is_day(time.day) && time.minute >= self.from)
            || (is_day(yesterday) && time.minute < self.to)
    }

    /// Reads a window: `days`, `from`, `to` and `zone`, of which the zone must stand.
    ///
    /// # Errors
    /// With the place, what is wrong and what to do.
    pub fn read(place: &Place<'_>) -> Result<Self, PlaceFault> {
        let entries = place.table(&["days", "from", "to", "zone"])?;
        let get = |key: &str| entries.get(key);
        let Some(zone) = get("zone") else {
            return Err(no_zone(place));
        };
        let (from, to) = match (get("from"), get("to")) {
            (None, None) => (0, DAY_MINUTES),
            (from, to) => {
                let from = from.map_or(Ok(0), minute)?;
                (from, to.map_or(Ok(DAY_MINUTES), minute)?)
            }
        };
        let days = get("days").map_or_else(|| Ok(week()), days)?;
        Self::checked(place, (from, to), days, zone_name(zone)?)
    }

    fn checked(
        place: &Place<'_>,
        (from, to): (u16, u16),
        days: Vec<Weekday>,
        zone: String,
    ) -> Result<Self, PlaceFault> {
        if from == to || from == DAY_MINUTES {
            let what = "the window begins when it ends";
            return Err(place.fault(what, "leave both times out for the whole day"));
        }
        Ok(Self {
            days,
            from,
            to,
            zone,
        })
    }

    /// Builds a window from places of a larger table: days, `22:00-06:00` and a zone.
    ///
    /// # Errors
    /// With the place, what is wrong and what to do.
    pub fn from_hours(
        place: &Place<'_>,
        day_list: Option<&Place<'_>>,
        hours: Option<&Place<'_>>,
        zone: Option<&Place<'_>>,
    ) -> Result<Self, PlaceFault> {
        let Some(zone) = zone else {
            return Err(no_zone(place));
        };
        let span = match hours {
            None => (0, DAY_MINUTES),
            Some(hours) => {
                let text = hours.text(TEXT_BYTES_MAX)?;
                let parts = text.split_once('-');
                let span = parts.and_then(|(from, to)| Some((clock(from)?, clock(to)?)));
                span.ok_or_else(|| {
                    let what = format!("{text:?} is no span of a day");
                    hours.fault(what, "write it as \"22:00-06:00\"")
                })?
            }
        };
        let days = day_list.map_or_else(|| Ok(week()), days)?;
        Self::checked(hours.unwrap_or(place), span, days, zone_name(zone)?)
    }
}

fn no_zone(place: &Place<'_>) -> PlaceFault {
    let what = "a time needs its zone";
    place.fault(
        what,
        "add `zone: Europe/Berlin` with your own, or `zone: UTC`",
    )
}

fn week() -> Vec<Weekday> {
    WEEK.iter().map(|(day, _, _)| *day).collect()
}

fn zone_name(place: &Place<'_>) -> Result<String, PlaceFault> {
    let text = place.text(TEXT_BYTES_MAX)?;
    let is_part = |part: &str| {
        let begins_well = part.starts_with(|c: char| c.is_ascii_alphabetic());
        let is_name = |c: char| c.is_ascii_alphanumeric() || "_+-".contains(c);
        begins_well && part.chars().all(is_name)
    };
    if text.split('/').all(is_part) {
        return Ok(text.to_owned());
    }
    let what = format!("{text:?} is no name of a time zone");
    Err(place.fault(what, "write a name like Europe/Berlin or UTC"))
}

/// Reads `mon-fri`, `sat, sun` or a list of such.
fn days(place: &Place<'_>) -> Result<Vec<Weekday>, PlaceFault> {
    let mut found = Vec::new();
    for item in place.one_or_list(WEEK.len())? {
        let text = item.text(TEXT_BYTES_MAX)?;
        for part in text.split(',') {
            let span = match part.split_once('-') {
                Some((first, last)) => (Weekday::parse(first), Weekday::parse(last)),
                None => (Weekday::parse(part), Weekday::parse(part)),
            };
            let (Some(first), Some(last)) = span else {
                let what = format!("{:?} is no day of the week", part.trim());
                return Err(item.fault(what, "write days as mon-fri or sat, sun"));
            };
            let length = (last.place() + WEEK.len() - first.place()) % WEEK.len();
            found.extend((0..=length).map(|days| first.after(days)));
        }
    }
    found.sort();
    found.dedup();
    Ok(found)
}

fn minute(place: &Place<'_>) -> Result<u16, PlaceFault> {
    let text = place.text(TEXT_BYTES_MAX)?;
    clock(text).ok_or_else(|| {
        let what = format!("{text:?} is no time of day");
        place.fault(what, "write it in quotes, from \"00:00\" to \"24:00\"")
    })
}

/// Reads `9:05`; `24:00` is the end of a day.
fn clock(text: &str) -> Option<u16> {
    let (hours, minutes) = text.trim().split_once(':')?;
    let number = |text: &str| {
        let is_plain = (1..=2).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
        text.parse::<u16>().ok().filter(|_| is_plain)
    };
    let (hours, minutes) = (
        number(hours)?,
        number(minutes).filter(|_| minutes.len() == 2)?,
    );
    let total = hours * 60 + minutes;
    (minutes < 60 && total <= DAY_MINUTES).then_some(total)
}

impl fmt::Display for Weekday {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = WEEK.get(self.place()).map_or("", |(_, short, _)| *short);
        out.write_str(name)
    }
}

impl fmt::Display for LocalTime {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} {}", self.day, Clock(self.minute))
    }
}

struct Clock(u16);

impl fmt::Display for Clock {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:02}:{:02}", self.0 / 60, self.0 % 60)
    }
}

impl fmt::Display for Window {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let days: Vec<String> = self.days.iter().map(Weekday::to_string).collect();
        let (from, to) = (Clock(self.from), Clock(self.to));
        write!(out, "{} {from}-{to} {}", days.join(","), self.zone)
    }
}
