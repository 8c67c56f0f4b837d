//! Names that cannot be wrong: tasks, loops, holders, fencing numbers.
//!
//! Each is checked once, where it enters, and is then trusted everywhere.

use std::fmt;

use kapi_settings::fault::short;
use kapi_settings::scalar::word;
use serde::{Deserialize, Deserializer, Serialize};

use crate::id::NameError;

/// The longest name of a loop in bytes.
const LOOP_NAME_BYTES_MAX: usize = 64;

/// A task of one project, counted from 1 and never used again; written `task_17`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct KernelTaskId(u64);

impl KernelTaskId {
    /// Names the task with this number.
    #[must_use]
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// Reads `task_17`, or `17` as a person may type it.
    ///
    /// # Errors
    /// When it is neither.
    pub fn parse(text: &str) -> Result<Self, NameError> {
        let digits = text.strip_prefix("task_").unwrap_or(text);
        let is_plain = !digits.is_empty()
            && digits.bytes().all(|byte| byte.is_ascii_digit())
            && !digits.starts_with('0');
        match digits.parse() {
            Ok(number) if is_plain => Ok(Self(number)),
            Ok(_) | Err(_) => Err(NameError {
                what: "a task",
                text: text.to_owned(),
                rule: "it must be task_ and a number from 1, or the number alone",
            }),
        }
    }

    /// Returns the number.
    #[must_use]
    pub const fn number(self) -> u64 {
        self.0
    }
}

impl fmt::Display for KernelTaskId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "task_{}", self.0)
    }
}

impl TryFrom<String> for KernelTaskId {
    type Error = NameError;
    fn try_from(text: String) -> Result<Self, NameError> {
        Self::parse(&text)
    }
}

impl From<KernelTaskId> for String {
    fn from(id: KernelTaskId) -> Self {
        id.to_string()
    }
}

/// The name of a loop: lower-case letters, digits, dots, dashes and underscores.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct LoopName(String);

impl LoopName {
    /// Reads a loop's name.
    ///
    /// # Errors
    /// When it is empty, longer than 64 bytes or has other characters.
    pub fn parse(text: &str) -> Result<Self, NameError> {
        let is_inner = |byte: u8| {
            byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'.' | b'-' | b'_')
        };
        let begins_well = text
            .bytes()
            .next()
            .is_some_and(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
        if text.len() > LOOP_NAME_BYTES_MAX || !begins_well || !text.bytes().all(is_inner) {
            return Err(NameError {
                what: "a loop's name",
                text: text.to_owned(),
                rule: "it must be 1 to 64 characters of a-z, 0-9, '.', '-' and '_', and start \
                    with a letter or digit",
            });
        }
        Ok(Self(text.to_owned()))
    }

    /// Returns the text, which is safe as a file name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for LoopName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl TryFrom<String> for LoopName {
    type Error = NameError;
    fn try_from(text: String) -> Result<Self, NameError> {
        Self::parse(&text)
    }
}

impl From<LoopName> for String {
    fn from(name: LoopName) -> Self {
        name.0
    }
}

/// The name of a loop as a person writes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoopNameForm(pub LoopName);

impl<'de> Deserialize<'de> for LoopNameForm {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        word(deserializer, usize::MAX, |text| {
            match LoopName::parse(text) {
                Ok(name) => Ok(Self(name)),
                Err(error) => Err(format!(
                    "{:?} is not a loop name\n{}",
                    short(text),
                    error.rule
                )),
            }
        })
    }
}

/// Who holds a lease: one process of one machine, never two.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Holder(pub String);

impl fmt::Display for Holder {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

/// A fencing number: each lease gets a higher one than all before it, so that a holder who
/// returns late can be told from the one who took over.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Fence(pub u64);

impl fmt::Display for Fence {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::{KernelTaskId, LoopName};

    #[test]
    fn tasks_read_back_as_written_and_as_typed() {
        for number in [1, 17, 10_000_000] {
            let id = KernelTaskId::new(number);
            assert_eq!(KernelTaskId::parse(&id.to_string()).unwrap(), id);
            assert_eq!(KernelTaskId::parse(&number.to_string()).unwrap(), id);
        }
        for text in [
            "",
            "task_",
            "task_0",
            "01",
            "task-1",
            "-1",
            "task_1x",
            "99999999999999999999",
        ] {
            assert!(KernelTaskId::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn names_of_loops_are_safe_file_names() {
        for text in ["a", "code-review", "v1.2_x", "0day"] {
            assert_eq!(LoopName::parse(text).unwrap().as_str(), text);
        }
        for text in ["", ".hidden", "-x", "A", "a/b", "a b", &"a".repeat(65)] {
            assert!(LoopName::parse(text).is_err(), "{text}");
        }
    }
}
