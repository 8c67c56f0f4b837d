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
pub struct NameError {
    /// What was expected ("a goal id").
    pub what: &'static str,
    /// What was given.
    pub text: String,
    /// The rule it breaks.
    pub rule: &'static str,
}

/// The most goals that one task of a workflow may have.
pub const PART_NUMBERS_MAX: u32 = 999;

/// A goal or workflow of one project: a stable index and a slug, written `007-fix-login`.
///
/// The goals of a workflow's tasks stand under its own name, so that they leave no gaps in the
/// project's numbers: `007-fix-login_T-002`, and `007-fix-login_T-002_2` for the second one of that
/// task. A person types `7/T-002`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct GoalId {
    index: u32,
    slug: Slug,
    part: Option<Box<Part>>,
}

/// Which goal of a workflow: its task, and the how many-th of that task it is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Part {
    /// Capital letters, a dash, digits.
    task: String,
    /// From 1.
    number: u32,
}

impl GoalId {
    /// Builds the id of the goal with this project-local index.
    #[must_use]
    pub const fn new(index: u32, slug: Slug) -> Self {
        Self {
            index,
            slug,
            part: None,
        }
    }

    /// Names a goal of a workflow's task: the how many-th of that task, from 1.
    ///
    /// # Errors
    /// When the task has no name like `T-002`, the number is none, or what is named here is no
    /// workflow but such a goal.
    pub fn part_of(workflow: &Self, task: &str, number: u32) -> Result<Self, NameError> {
        let rule = "it must be a task like T-002 of a workflow, and a number from 1 to 999";
        let part = Part {
            task: task.to_owned(),
            number,
        };
        if workflow.part.is_some() || !part.is_sound() {
            return Err(NameError {
                what: "a workflow's goal",
                text: format!("{workflow}/{task}.{number}"),
                rule,
            });
        }
        Ok(Self {
            part: Some(Box::new(part)),
            ..workflow.clone()
        })
    }

    /// Reads `NNN-slug`, or `NNN-slug_T-NNN` and `NNN-slug_T-NNN_N`.
    ///
    /// # Errors
    /// When the text is not at least three digits, a dash and a slug.
    pub fn parse(text: &str) -> Result<Self, NameError> {
        let rule = "it must be three or more digits, a dash and a slug";
        let whole = text;
        let (text, part) = match text.split_once('_') {
            None => (text, None),
            Some((text, part)) => (text, Some(part)),
        };
        let error = || NameError {
            what: "a goal id",
            text: whole.to_owned(),
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
        let part = match part {
            None => None,
            Some(part) => Some(Box::new(Part::parse(part).ok_or_else(error)?)),
        };
        Ok(Self { index, slug, part })
    }

    /// Returns what a person types to name it: `007`, or `007/T-002` for a goal of a workflow.
    #[must_use]
    pub fn reference(&self) -> String {
        match &self.part {
            None => format!("{:03}", self.index),
            Some(part) => format!("{:03}/{}", self.index, part.typed()),
        }
    }

    /// Tells whether a name means this one: its reference with or without zeros in front, its slug
    /// or all of it.
    #[must_use]
    pub fn is_called(&self, name: &str) -> bool {
        let Some(part) = &self.part else {
            return self.slug.as_str() == name || self.to_string() == name;
        };
        let is_typed = |(workflow, typed): (&str, &str)| {
            let is_number = workflow.bytes().all(|byte| byte.is_ascii_digit());
            let is_of_it = if is_number {
                workflow.parse() == Ok(self.index)
            } else {
                workflow == self.slug.as_str()
                    || workflow == format!("{:03}-{}", self.index, self.slug)
            };
            is_of_it && typed == part.typed()
        };
        name.split_once('/').is_some_and(is_typed) || self.to_string() == name
    }

    /// Tells whether it is a goal of a workflow's task, named under the workflow.
    #[must_use]
    pub const fn is_part(&self) -> bool {
        self.part.is_some()
    }

    /// Returns the project-local index; of a goal of a workflow, that of the workflow.
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
        write!(out, "{:03}-{}", self.index, self.slug)?;
        match self.part.as_deref() {
            None => Ok(()),
            Some(Part { task, number: 1 }) => write!(out, "_{task}"),
            Some(Part { task, number }) => write!(out, "_{task}_{number}"),
        }
    }
}

impl Part {
    fn parse(text: &str) -> Option<Self> {
        let (task, number) = match text.split_once('_') {
            None => (text, 1),
            // The first one has no number, and no number has zeros in front.
            Some((task, digits)) if !digits.starts_with(['0', '+']) => {
                (task, digits.parse().ok().filter(|number| *number > 1)?)
            }
            Some(_) => return None,
        };
        let part = Self {
            task: task.to_owned(),
            number,
        };
        part.is_sound().then_some(part)
    }

    fn is_sound(&self) -> bool {
        let is_task = self.task.split_once('-').is_some_and(|(letters, digits)| {
            let is_short = letters.len() == 1 && (3..=6).contains(&digits.len());
            is_short
                && letters.bytes().all(|byte| byte.is_ascii_uppercase())
                && digits.bytes().all(|byte| byte.is_ascii_digit())
        });
        is_task && (1..=PART_NUMBERS_MAX).contains(&self.number)
    }

    fn typed(&self) -> String {
        match self.number {
            1 => self.task.clone(),
            number => format!("{}.{number}", self.task),
        }
    }
}

impl TryFrom<String> for GoalId {
    type Error = NameError;
    fn try_from(text: String) -> Result<Self, NameError> {
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
pub struct Slug(Box<str>);

impl Slug {
    /// Reads a slug.
    ///
    /// # Errors
    /// When it is not one to five words of `a-z0-9` joined by single dashes.
    pub fn parse(text: &str) -> Result<Self, NameError> {
        let words = || text.split('-');
        let is_word = |word: &str| {
            !word.is_empty()
                && word
                    .bytes()
                    .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
        };
        let is_short = text.len() <= SLUG_BYTES_MAX && words().count() <= SLUG_WORDS_MAX;
        if !is_short || !words().all(is_word) {
            return Err(NameError {
                what: "a slug",
                text: text.to_owned(),
                rule: "it must be one to five words of a-z and 0-9 joined by dashes",
            });
        }
        Ok(Self(text.into()))
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
        Self(slug.into_boxed_str())
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
    type Error = NameError;
    fn try_from(text: String) -> Result<Self, NameError> {
        Self::parse(&text)
    }
}

impl From<Slug> for String {
    fn from(slug: Slug) -> Self {
        slug.0.into_string()
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
    fn goals_of_a_workflow_stand_under_its_name() {
        let workflow = GoalId::parse("003-auth").unwrap();
        let first = GoalId::part_of(&workflow, "T-002", 1).unwrap();
        let second = GoalId::part_of(&workflow, "T-002", 2).unwrap();
        for (id, stored, typed) in [
            (&workflow, "003-auth", "003"),
            (&first, "003-auth_T-002", "003/T-002"),
            (&second, "003-auth_T-002_2", "003/T-002.2"),
        ] {
            assert_eq!(id.to_string(), stored);
            assert_eq!(&GoalId::parse(stored).unwrap(), id);
            assert_eq!(id.reference(), typed);
            assert_eq!(id.index(), 3);
        }
        assert!(workflow < first && first < second && second < GoalId::parse("004-a").unwrap());
        for name in [
            "3/T-002",
            "003/T-002",
            "auth/T-002",
            "003-auth/T-002",
            "003-auth_T-002",
        ] {
            assert!(first.is_called(name), "{name}");
            assert!(
                !second.is_called(name) && !workflow.is_called(name),
                "{name}"
            );
        }
        for name in [
            "3",
            "003",
            "auth",
            "003-auth",
            "T-002",
            "/T-002",
            "3/T-002.2",
            "4/T-002",
        ] {
            assert!(!first.is_called(name), "{name}");
        }
        for (of, task, number) in [
            (&first, "T-001", 1),
            (&workflow, "T-02", 1),
            (&workflow, "t-002", 1),
            (&workflow, "T-002", 0),
            (&workflow, "T-002_2", 1),
            (&workflow, "../..", 1),
        ] {
            assert!(
                GoalId::part_of(of, task, number).is_err(),
                "{task} {number}"
            );
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
            "001-a_",
            "001-a_T-1",
            "001-a_T-001_",
            "001-a_T-001_1",
            "001-a_T-001_02",
            "001-a_T-001_2_3",
            "001-a_T-001_1000",
            "001-a_x",
            "001_T-001",
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
