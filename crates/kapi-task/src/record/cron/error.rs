//! Why a text is not a schedule: the field, where it stands, and what is allowed there.
//!
//! Knows no file: whoever read the text adds its place.

use std::fmt;

/// The names of the months, as they are written.
pub(crate) const MONTHS: [&str; 12] = [
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
];

/// The names of the weekdays; Sunday is 0.
pub(crate) const WEEKDAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

/// A field of a schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CronField {
    /// The second, only when there are six fields.
    Second,
    /// The minute.
    Minute,
    /// The hour.
    Hour,
    /// The day of the month.
    Day,
    /// The month.
    Month,
    /// The day of the week.
    Weekday,
}

impl CronField {
    /// All fields in the order in which they are written.
    pub(crate) const ALL: [Self; 6] = [
        Self::Second,
        Self::Minute,
        Self::Hour,
        Self::Day,
        Self::Month,
        Self::Weekday,
    ];

    /// Returns the least and the greatest number; 7 is Sunday once more.
    pub(crate) const fn bounds(self) -> (i8, i8) {
        match self {
            Self::Second | Self::Minute => (0, 59),
            Self::Hour => (0, 23),
            Self::Day => (1, 31),
            Self::Month => (1, 12),
            Self::Weekday => (0, 7),
        }
    }

    /// Returns what may stand in it.
    pub(crate) const fn allowed(self) -> &'static str {
        match self {
            Self::Second | Self::Minute => "0 to 59, *, ranges, steps and lists of them",
            Self::Hour => "0 to 23, *, ranges, steps and lists of them",
            Self::Day => "1 to 31, *, ?, L, L-1 to L-30, LW, 1W to 31W, ranges, steps and lists",
            Self::Month => "1 to 12, jan to dec, *, ranges, steps and lists of them",
            Self::Weekday => {
                "0 to 7 (0 and 7 are Sunday), sun to sat, *, ?, friL, fri#1 to fri#5, ranges, steps and lists"
            }
        }
    }

    /// Returns the largest step that still reaches a second value.
    pub(crate) const fn step_max(self) -> i8 {
        match self {
            Self::Second | Self::Minute => 59,
            Self::Hour => 23,
            Self::Day => 30,
            Self::Month => 11,
            Self::Weekday => 6,
        }
    }

    pub(crate) const fn names(self) -> &'static [&'static str] {
        match self {
            Self::Second | Self::Minute | Self::Hour | Self::Day => &[],
            Self::Month => &MONTHS,
            Self::Weekday => &WEEKDAYS,
        }
    }
}

impl fmt::Display for CronField {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Second => "second",
            Self::Minute => "minute",
            Self::Hour => "hour",
            Self::Day => "day of month",
            Self::Month => "month",
            Self::Weekday => "weekday",
        })
    }
}

/// Why a schedule cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum CronError {
    /// It is far longer than any schedule.
    #[error("read a schedule of {bytes} bytes: at most {max} are allowed")]
    TooLong {
        /// How long it is.
        bytes: usize,
        /// The limit.
        max: usize,
    },
    /// It has neither five nor six fields.
    #[error(
        "read the schedule {text:?}: it has {count} fields; allowed are five (minute, hour, day of month, month, weekday) or six (a second before them)"
    )]
    FieldCount {
        /// The text.
        text: String,
        /// How many it has.
        count: usize,
    },
    /// It begins with `@` and is no name of a schedule.
    #[error(
        "read the schedule {text:?}: allowed are @hourly, @daily, @midnight, @weekly, @monthly, @yearly and @annually"
    )]
    Name {
        /// The text.
        text: String,
    },
    /// A part of a field is wrong.
    #[error(
        "read the schedule {text:?}: in field {number} ({field}), {part:?} at character {character} {fault}"
    )]
    Part {
        /// The whole text.
        text: String,
        /// The field.
        field: CronField,
        /// Which of the fields it is, from 1.
        number: usize,
        /// The part that is wrong.
        part: String,
        /// Where it begins, from 1.
        character: usize,
        /// What is wrong.
        fault: CronFault,
    },
    /// No date fits, such as 31 February.
    #[error("read the schedule {text:?}: it never fires, as no date fits its day and month")]
    Never {
        /// The text.
        text: String,
    },
    /// The time zone is unknown.
    #[error("find the time zone {zone:?}; use an IANA name such as Europe/Berlin, or UTC")]
    Zone {
        /// The name.
        zone: String,
        /// What the zone database said.
        #[source]
        source: jiff::Error,
    },
    /// The time zone's name stands for an unknown zone.
    #[error("find the time zone {zone:?}: it has no location; use a name such as Europe/Berlin")]
    NoZone {
        /// The name.
        zone: String,
    },
}

/// What is wrong with a part of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CronFault {
    /// It is none of what the field allows.
    Unknown(CronField),
    /// A range that ends before it begins.
    Backwards,
    /// A step that is no number from 1, or leads out of the field at once.
    Step {
        /// The largest step.
        max: i8,
    },
    /// A step after a single value.
    StepOfOne(CronField),
    /// `*` or `?` as one of several parts.
    StarInList,
}

impl fmt::Display for CronFault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(field) => write!(out, "is not allowed; allowed are {}", field.allowed()),
            Self::Backwards => out.write_str(
                "is not allowed; allowed are ranges that run forwards, or two of them as a list",
            ),
            Self::Step { max } => write!(out, "is not allowed; allowed are steps from 1 to {max}"),
            Self::StepOfOne(field) => write!(
                out,
                "is not allowed; allowed are steps after * or a range, such as 5-{}/2",
                field.bounds().1
            ),
            Self::StarInList => {
                out.write_str("is not allowed; it is allowed only as the whole field")
            }
        }
    }
}
