//! Names and ids that cannot be wrong once they exist.
//!
//! They check form only; whether the object or ref exists is for the repository to say.

use std::fmt;

/// Text that is not what it should be.
#[derive(Debug, thiserror::Error)]
pub enum ObjectIdError {
    /// Not the full hexadecimal id of an object.
    #[error("read {text:?} as a git object id")]
    Object {
        /// The text.
        text: String,
    },
    /// Not usable as one component of a ref name.
    #[error("use {text:?} in a ref name: letters, digits, dash and underscore only")]
    RefPart {
        /// The text.
        text: String,
    },
}

/// The id of a commit: 40 (SHA-1) or 64 (SHA-256) lowercase hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct CommitId(String);

/// The id of a tree: 40 (SHA-1) or 64 (SHA-256) lowercase hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct TreeId(String);

/// One component of a Kapi ref: a goal's name, or what follows it.
///
/// Starts with a letter or digit, then letters, digits, `-` and `_`; at most 100 bytes. So it can
/// never be an option, a path step or a lock file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct RefPart(String);

impl CommitId {
    /// Parses a full id.
    pub fn parse(text: &str) -> Result<Self, ObjectIdError> {
        object_id(text).map(Self)
    }

    /// Returns the id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TreeId {
    /// Parses a full id.
    pub fn parse(text: &str) -> Result<Self, ObjectIdError> {
        object_id(text).map(Self)
    }

    /// Returns the id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl RefPart {
    /// Parses one component.
    pub fn parse(text: &str) -> Result<Self, ObjectIdError> {
        let is_plain = text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
        let is_started = text
            .bytes()
            .next()
            .is_some_and(|b| b.is_ascii_alphanumeric());
        if is_plain && is_started && text.len() <= 100 {
            Ok(Self(text.to_owned()))
        } else {
            Err(ObjectIdError::RefPart {
                text: text.to_owned(),
            })
        }
    }

    /// Returns the component as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for CommitId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for TreeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for RefPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn object_id(text: &str) -> Result<String, ObjectIdError> {
    let is_hex = text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    if is_hex && matches!(text.len(), 40 | 64) {
        Ok(text.to_owned())
    } else {
        Err(ObjectIdError::Object {
            text: text.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{CommitId, RefPart};

    #[test]
    fn object_ids_are_full_and_lowercase() {
        assert!(CommitId::parse(&"a1".repeat(20)).is_ok());
        assert!(CommitId::parse(&"a1".repeat(32)).is_ok());
        for wrong in [
            "",
            "HEAD",
            "--all",
            &"A1".repeat(20),
            &"a1".repeat(19),
            &"g".repeat(40),
        ] {
            assert!(CommitId::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn ref_parts_cannot_be_options_paths_or_locks() {
        assert!(RefPart::parse("001-fix_it").is_ok());
        let long = "a".repeat(101);
        for wrong in [
            "",
            "-d",
            "..",
            "a/b",
            "a.lock",
            "a b",
            "a\n",
            "é",
            long.as_str(),
        ] {
            assert!(RefPart::parse(wrong).is_err(), "{wrong}");
        }
    }
}
