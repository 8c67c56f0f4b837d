//! Why a text is not a schedule: the field, where it stands, and what is allowed there.
//!
//! Knows no file: whoever read the text adds its place.

use std::fmt;

use crate::kernel::cron::field::Field;

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
        field: Field,
        /// Which of the fields it is, from 1.
        number: usize,
        /// The part that is wrong.
        part: String,
        /// Where it begins, from 1.
        character: usize,
        /// What is wrong.
        fault: Fault,
    },
    /// No date fits, such as 31 February.
    #[error("read the schedule {text:?}: it never fires, as no date fits its day and month")]
    Never {
        /// The text.
        text: String,
    },
    /// The time zone is unknown.
    #[error("find the time zone {zone:?}; allowed are IANA names such as Europe/Berlin, and UTC")]
    Zone {
        /// The name.
        zone: String,
        /// What the zone database said.
        #[source]
        source: jiff::Error,
    },
    /// The time zone's name stands for an unknown zone.
    #[error(
        "find the time zone {zone:?}: it names no place; allowed are names such as Europe/Berlin"
    )]
    NoZone {
        /// The name.
        zone: String,
    },
}

/// What is wrong with a part of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// It is none of what the field allows.
    Unknown(Field),
    /// A range that ends before it begins.
    Backwards,
    /// A step that is no number from 1, or leads out of the field at once.
    Step {
        /// The largest step.
        max: i8,
    },
    /// A step after a single value.
    StepOfOne(Field),
    /// `*` or `?` as one of several parts.
    StarInList,
}

impl fmt::Display for Fault {
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
