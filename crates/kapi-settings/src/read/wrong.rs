//! An error of reading: what is wrong, what to do, and where, as soon as that is known.

use std::fmt;

use serde::de::{Error, Expected, Unexpected};

/// Which node has a fault, and where a person finds it.
#[derive(Debug)]
pub(super) struct Spot {
    pub(super) address: usize,
    pub(super) key: String,
    pub(super) line: usize,
}

/// What is wrong.
#[derive(Debug)]
pub(super) struct ReadProblem(pub(super) Box<Words>);

#[derive(Debug)]
pub(super) struct Words {
    pub(super) what: String,
    pub(super) remedy: String,
    /// Where, as soon as that is known.
    pub(super) spot: Option<Spot>,
    /// The field that is missing.
    pub(super) missing: Option<&'static str>,
    /// Whether two keys of one table are one field.
    pub(super) is_twice: bool,
    /// Whether it only follows from a fault that was noted already.
    pub(super) is_known: bool,
}

impl ReadProblem {
    pub(super) fn new(what: String, remedy: String) -> Self {
        Self(Box::new(Words {
            what,
            remedy,
            spot: None,
            missing: None,
            is_twice: false,
            is_known: false,
        }))
    }

    pub(super) fn at(mut self, spot: impl FnOnce() -> Spot) -> Self {
        self.0.spot.get_or_insert_with(spot);
        self
    }

    pub(super) fn known() -> Self {
        let mut wrong = Self::new(String::new(), String::new());
        wrong.0.is_known = true;
        wrong
    }
}

impl fmt::Display for ReadProblem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}; {}", self.0.what, self.0.remedy)
    }
}

impl std::error::Error for ReadProblem {}

impl Error for ReadProblem {
    /// What is wrong, and on a second line what to do.
    fn custom<T: fmt::Display>(message: T) -> Self {
        let text = message.to_string();
        let (what, remedy) = text.split_once('\n').unwrap_or((&text, "fix it"));
        Self::new(what.to_owned(), remedy.to_owned())
    }

    fn invalid_type(found: Unexpected<'_>, wanted: &dyn Expected) -> Self {
        let kind = match found {
            Unexpected::Bool(_) => "true or false",
            Unexpected::Unsigned(_) | Unexpected::Signed(_) => "a whole number",
            Unexpected::Float(_) => "a number with decimals",
            Unexpected::Unit | Unexpected::Option => "nothing",
            Unexpected::Seq => "a list",
            Unexpected::Map => "a table",
            _ => "text",
        };
        Self::new(format!("it is {kind}"), format!("give {wanted}"))
    }

    fn invalid_value(found: Unexpected<'_>, wanted: &dyn Expected) -> Self {
        let what = match found {
            Unexpected::Unsigned(number) => format!("{number} is out of range"),
            Unexpected::Signed(number) => format!("{number} is out of range"),
            found => format!("{found} is not allowed"),
        };
        Self::new(what, format!("give {wanted}"))
    }

    fn missing_field(field: &'static str) -> Self {
        let mut wrong = Self::new(format!("it has no `{field}`"), format!("add `{field}`"));
        wrong.0.missing = Some(field);
        wrong
    }

    fn duplicate_field(_field: &'static str) -> Self {
        let what = "it duplicates another key of this table";
        let mut wrong = Self::new(what.to_owned(), "keep one of them".to_owned());
        wrong.0.is_twice = true;
        wrong
    }
}
