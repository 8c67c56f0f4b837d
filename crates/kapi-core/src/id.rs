//! Names that cannot be wrong: goals, effects, commits, branches.
//!
//! Each is checked once, where it enters, and is then trusted everywhere.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The longest slug in words (spec: "one to five English keywords").
pub const SLUG_WORDS_MAX: usize = 5;
/// The longest slug in bytes, so that paths and branch names stay short.
pub const SLUG_BYTES_MAX: usize = 48;

/// A name that breaks its rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("read {text:?} as {what}: {rule}")]
pub struct IdError {
    /// What was expected ("a goal id").
    pub what: &'static str,
    /// What was given.
    pub text: String,
    /// The rule it breaks.
    pub rule: &'static str,
}

/// A goal or workflow of one project: a stable index and a slug, written `007-fix-login`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct GoalId {
    index: u32,
    slug: Slug,
}

impl GoalId {
    /// Builds the id of the goal with this project-local index.
    #[must_use]
    pub const fn new(index: u32, slug: Slug) -> Self {
        Self { index, slug }
    }

    /// Reads `NNN-slug`.
    ///
    /// # Errors
    /// When the text is not at least three digits, a dash and a slug.
    pub fn parse(text: &str) -> Result<Self, IdError> {
        let rule = "it must be three or more digits, a dash and a slug";
        let error = || IdError {
            what: "a goal id",
            text: text.to_owned(),
            rule,
        };
        let (digits, slug) = text.split_once('-').ok_or_else(error)?;
        let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
        // Every index is written in one way: with more than three digits only where it needs them.
        let is_short = digits.len() == 3 || (digits.len() > 3 && !digits.starts_with('0'));
        if !is_number || !is_short {
            return Err(error());
        }
        let index = digits.parse().map_err(|_| error())?;
        let slug = Slug::parse(slug)?;
        Ok(Self { index, slug })
    }

    /// Returns the project-local index.
    #[must_use]
    pub const fn index(&self) -> u32 {
        self.index
    }

    /// Returns the slug.
    #[must_use]
    pub const fn slug(&self) -> &Slug {
        &self.slug
    }
}

impl fmt::Display for GoalId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:03}-{}", self.index, self.slug)
    }
}

impl TryFrom<String> for GoalId {
    type Error = IdError;
    fn try_from(text: String) -> Result<Self, IdError> {
        Self::parse(&text)
    }
}

impl From<GoalId> for String {
    fn from(id: GoalId) -> Self {
        id.to_string()
    }
}

/// One to five lower-case keywords joined by dashes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Slug(String);

impl Slug {
    /// Reads a slug.
    ///
    /// # Errors
    /// When it is not one to five words of `a-z0-9` joined by single dashes.
    pub fn parse(text: &str) -> Result<Self, IdError> {
        let words = || text.split('-');
        let is_word = |word: &str| {
            !word.is_empty()
                && word
                    .bytes()
                    .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
        };
        let is_short = text.len() <= SLUG_BYTES_MAX && words().count() <= SLUG_WORDS_MAX;
        if !is_short || !words().all(is_word) {
            return Err(IdError {
                what: "a slug",
                text: text.to_owned(),
                rule: "it must be one to five words of a-z and 0-9 joined by dashes",
            });
        }
        Ok(Self(text.to_owned()))
    }

    /// Makes a slug from the telling words of a sentence, or `goal` when it has none.
    #[must_use]
    pub fn from_sentence(sentence: &str) -> Self {
        const STOP_WORDS: &[&str] = &[
            "a", "an", "and", "are", "as", "at", "be", "by", "for", "from", "in", "into", "is",
            "it", "its", "of", "on", "or", "our", "please", "so", "that", "the", "then", "this",
            "to", "up", "we", "with", "you",
        ];
        let lower = sentence.to_lowercase();
        let words = lower
            .split(|c: char| !c.is_ascii_alphanumeric())
            .filter(|word| !word.is_empty() && !STOP_WORDS.contains(word));
        let mut slug = String::new();
        for word in words.take(SLUG_WORDS_MAX) {
            let dash = usize::from(!slug.is_empty());
            if slug.len() + dash + word.len() > SLUG_BYTES_MAX {
                break;
            }
            if dash == 1 {
                slug.push('-');
            }
            slug.push_str(word);
        }
        if slug.is_empty() {
            slug.push_str("goal");
        }
        Self(slug)
    }

    /// Returns the text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Slug {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl TryFrom<String> for Slug {
    type Error = IdError;
    fn try_from(text: String) -> Result<Self, IdError> {
        Self::parse(&text)
    }
}

impl From<Slug> for String {
    fn from(slug: Slug) -> Self {
        slug.0
    }
}

/// The name of one effect within its stream; performing it twice under one id is safe.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EffectId(String);

impl EffectId {
    /// Names the effect of one stage of a turn; attempts are counted from 1.
    #[must_use]
    pub fn new(turn: u32, stage: &str, attempt: u32) -> Self {
        Self(format!("t{turn:03}-{stage}-a{attempt}"))
    }

    /// Returns the text, which is safe as a file name and as a part of a git ref.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for EffectId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::{GoalId, Slug};

    #[test]
    fn goal_ids_read_back_as_written() {
        for text in ["001-fix-login", "042-a", "1000-one-two-three-four-five"] {
            assert_eq!(GoalId::parse(text).unwrap().to_string(), text);
        }
    }

    #[test]
    fn malformed_goal_ids_are_refused() {
        for text in [
            "",
            "1-a",
            "001",
            "001-",
            "001-A",
            "001-a--b",
            "0001-a",
            "001-a-b-c-d-e-f",
        ] {
            assert!(GoalId::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn slugs_keep_the_telling_words() {
        let slug = |text| Slug::from_sentence(text).to_string();
        assert_eq!(slug("make the tests pass"), "make-tests-pass");
        assert_eq!(
            slug("Fix: the Login (OAuth) of the API, please!"),
            "fix-login-oauth-api"
        );
        assert_eq!(slug("…"), "goal");
        assert!(slug(&"word ".repeat(40)).len() < 48);
    }
}
