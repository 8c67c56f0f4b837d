//! Times of day on days of the week, in a zone.
//!
//! Knows no calendar: somebody else says which day and minute it is there.

use std::fmt;

use kapi_settings::scalar::word;
use kapi_settings::setting::OneOrMany;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

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
    /// The zone's name in the IANA database, or `local` for the machine's.
    pub zone: String,
}

impl Weekday {
    /// Returns the day at a place of the week, 0 for Monday.
    #[must_use]
    pub fn at(location: usize) -> Option<Self> {
        WEEK.get(location).map(|(day, _, _)| *day)
    }

    fn location(self) -> usize {
        WEEK.iter()
            .position(|(day, _, _)| *day == self)
            .unwrap_or_default()
    }

    fn after(self, days: usize) -> Self {
        Self::at((self.location() + days) % WEEK.len()).unwrap_or(self)
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

    /// Builds a window; `None` for the days means all of them, for a time the end of the day.
    ///
    /// # Errors
    /// When it begins when it ends: what is wrong and, on a second line, what to do.
    pub fn checked(
        days: Option<DaysForm>,
        from: u16,
        to: u16,
        zone: ZoneForm,
    ) -> Result<Self, String> {
        if from == to || from == DAY_MINUTES {
            let what = "the window starts when it ends";
            return Err(format!("{what}\nomit both times for the whole day"));
        }
        let mut days: Vec<Weekday> = match days {
            Some(days) => days.0.into_iter().flat_map(|part| part.0).collect(),
            None => WEEK.iter().map(|(day, _, _)| *day).collect(),
        };
        days.sort();
        days.dedup();
        Ok(Self {
            days,
            from,
            to,
            zone: zone.0,
        })
    }
}

/// A window as a person writes it: `days`, `from`, `to` and `zone`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WindowForm(pub Window);

#[derive(Deserialize)]
struct TimesForm {
    days: Option<DaysForm>,
    from: Option<ClockForm>,
    to: Option<ClockForm>,
    zone: ZoneForm,
}

impl<'de> Deserialize<'de> for WindowForm {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let form = TimesForm::deserialize(deserializer)?;
        let from = form.from.map_or(0, |time| time.0);
        let to = form.to.map_or(DAY_MINUTES, |time| time.0);
        let window = Window::checked(form.days, from, to, form.zone);
        window.map(Self).map_err(D::Error::custom)
    }
}

/// Days as a person writes them: `mon-fri`, `sat, sun` or a list of such.
pub type DaysForm = OneOrMany<DayForm, 1, 7>;

/// One or several days in one text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DayForm(Vec<Weekday>);

impl<'de> Deserialize<'de> for DayForm {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        word(deserializer, TEXT_BYTES_MAX, |text| days(text).map(Self))
    }
}

fn days(text: &str) -> Result<Vec<Weekday>, String> {
    let mut found = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (Some(first), Some(last)) = (Weekday::parse(first), Weekday::parse(last)) else {
            let day = part.trim();
            return Err(format!(
                "{day:?} is not a day of the week\nwrite days as mon-fri or sat, sun"
            ));
        };
        let length = (last.location() + WEEK.len() - first.location()) % WEEK.len();
        found.extend((0..=length).map(|days| first.after(days)));
    }
    Ok(found)
}

/// A span of a day as a person writes it: `22:00-06:00`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HoursForm {
    /// The first minute.
    pub from: u16,
    /// The first minute that is not in it any more.
    pub to: u16,
}

impl HoursForm {
    /// The whole day.
    pub const DAY: Self = Self {
        from: 0,
        to: DAY_MINUTES,
    };
}

impl<'de> Deserialize<'de> for HoursForm {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        word(deserializer, TEXT_BYTES_MAX, |text| {
            let parts = text.split_once('-');
            let span = parts.and_then(|(from, to)| Some((clock(from)?, clock(to)?)));
            let span = span.map(|(from, to)| Self { from, to });
            span.ok_or_else(|| {
                format!("{text:?} is not a time window\nwrite it as \"22:00-06:00\"")
            })
        })
    }
}

/// The name of a zone as a person writes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ZoneForm(pub String);

impl<'de> Deserialize<'de> for ZoneForm {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let is_part = |part: &str| {
            let begins_well = part.starts_with(|c: char| c.is_ascii_alphabetic());
            let is_name = |c: char| c.is_ascii_alphanumeric() || "_+-".contains(c);
            begins_well && part.chars().all(is_name)
        };
        word(deserializer, TEXT_BYTES_MAX, |text| {
            if text.split('/').all(is_part) {
                return Ok(Self(text.to_owned()));
            }
            Err(format!(
                "{text:?} is not a time zone name\nwrite a name like Europe/Berlin, UTC or local"
            ))
        })
    }
}

struct ClockForm(u16);

impl<'de> Deserialize<'de> for ClockForm {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        word(deserializer, TEXT_BYTES_MAX, |text| {
            clock(text).map(Self).ok_or_else(|| {
                format!(
                    "{text:?} is not a time of day\nwrite it in quotes, from \"00:00\" to \"24:00\""
                )
            })
        })
    }
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
        let name = WEEK.get(self.location()).map_or("", |(_, short, _)| *short);
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
