//! Names for workflows, from what they are for: a few English keywords that a person recognises.
//!
//! A name is assigned once and stays. Knows nothing of directories; what is taken is an argument.

use crate::id::{SLUG_BYTES_MAX, SLUG_WORDS_MAX, Slug};
use crate::workflow::mode::Mode;

/// Names that are commands.
pub const RESERVED: [&str; 4] = ["status", "resume", "approve", "clear"];

/// Words that say nothing about what is wanted.
const STOP_WORDS: &[&str] = &[
    "a", "about", "after", "again", "all", "also", "an", "and", "any", "are", "as", "at", "be",
    "because", "been", "before", "but", "by", "can", "could", "did", "didn", "don", "doesn", "isn",
    "shouldn", "won", "do", "does", "each", "for", "from", "had", "has", "have", "how", "i", "if",
    "in", "into", "is", "it", "its", "just", "let", "may", "me", "might", "more", "must", "my",
    "no", "not", "of", "on", "or", "our", "out", "please", "shall", "should", "so", "some", "than",
    "that", "the", "their", "them", "then", "there", "these", "they", "this", "those", "to", "too",
    "up", "us", "very", "want", "was", "we", "were", "what", "when", "where", "which", "while",
    "who", "why", "will", "with", "would", "you", "your",
];

/// Words that say little: the first to give way to a more telling one.
const GENERIC: &[&str] = &[
    "add",
    "build",
    "change",
    "code",
    "create",
    "do",
    "file",
    "files",
    "fix",
    "get",
    "implement",
    "improve",
    "make",
    "new",
    "project",
    "run",
    "set",
    "support",
    "thing",
    "things",
    "update",
    "use",
    "work",
];

/// Why there is no name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SlugError {
    /// Nothing in it can name it.
    #[error("name a workflow after {purpose:?}: it has no English keyword; say it with a few")]
    NoKeyword {
        /// What it is for.
        purpose: String,
    },
    /// The only name it has is a command.
    #[error("name a workflow {word:?}, which is a command; say with more words what it is for")]
    Reserved {
        /// The name.
        word: String,
    },
    /// Every name it could have is taken.
    #[error("name a workflow after {purpose:?}: every such name is taken; say it in other words")]
    Taken {
        /// What it is for.
        purpose: String,
    },
}

/// The most names of the kind `login-2` that are tried.
const COUNTED_MAX: u32 = 9_999;

/// Returns the words of a text that say what it is about, in order and each once.
#[must_use]
pub fn keywords(text: &str, mode: Mode) -> Vec<String> {
    let own: Vec<&str> = mode.as_str().split('-').collect();
    let mut found: Vec<String> = Vec::new();
    let is_apostrophe = |c: char| matches!(c, '\'' | '\u{2019}');
    for word in text.split(|c: char| !c.is_alphanumeric() && !is_apostrophe(c)) {
        // What follows an apostrophe is an ending: `login's`, `don't`.
        let word = word.trim_matches(is_apostrophe);
        let word = word.split(is_apostrophe).next().unwrap_or_default();
        let word = word.to_lowercase();
        let says_something = !word.is_empty()
            && word.is_ascii()
            && word.len() <= SLUG_BYTES_MAX
            && !STOP_WORDS.contains(&word.as_str())
            && !own.contains(&word.as_str());
        if says_something && !found.contains(&word) {
            found.push(word);
        }
    }
    found
}

/// Returns the name of a workflow for a purpose, where some names are taken.
///
/// A name that is taken gives way to a more telling one first; a number is the last resort.
///
/// # Errors
/// When the purpose has no keyword, is only a command, or leaves no name.
pub fn derive(purpose: &str, mode: Mode, taken: &[Slug]) -> Result<Slug, SlugError> {
    let words = keywords(purpose, mode);
    let begins = |word: &String| word.starts_with(|c: char| c.is_ascii_lowercase());
    let first = words.iter().position(begins);
    let words = first
        .and_then(|first| words.get(first..))
        .unwrap_or_default();
    if words.is_empty() {
        let purpose = purpose.trim().to_owned();
        return Err(SlugError::NoKeyword { purpose });
    }
    if let [word] = words
        && RESERVED.contains(&word.as_str())
    {
        let word = word.clone();
        return Err(SlugError::Reserved { word });
    }
    let is_free = |slug: &Slug| !taken.contains(slug) && !RESERVED.contains(&slug.as_str());
    let fitting = fitting(words);
    let more = words.get(fitting.len()..).unwrap_or_default();
    let own = std::iter::once(fitting.clone())
        .chain(swapped(&fitting, more))
        .chain(counted(&fitting));
    own.filter_map(|words| Slug::parse(&words.join("-")).ok())
        .find(is_free)
        .ok_or_else(|| SlugError::Taken {
            purpose: purpose.trim().to_owned(),
        })
}

/// Returns as many words from the beginning as fit.
fn fitting(words: &[String]) -> Vec<String> {
    let mut kept: Vec<String> = Vec::new();
    let mut bytes = 0;
    for word in words.iter().take(SLUG_WORDS_MAX) {
        bytes += word.len() + usize::from(!kept.is_empty());
        if bytes > SLUG_BYTES_MAX {
            break;
        }
        kept.push(word.clone());
    }
    kept
}

/// Returns names with one more word of the purpose, in the place of a generic one, else of the last.
fn swapped(fitting: &[String], more: &[String]) -> Vec<Vec<String>> {
    let is_generic = |word: &String| GENERIC.contains(&word.as_str());
    let place = fitting.iter().rposition(is_generic);
    let place = place.unwrap_or(fitting.len().saturating_sub(1));
    let with = |word: &String| {
        let mut words = fitting.to_vec();
        words.remove(place);
        words.push(word.clone());
        words
    };
    more.iter().map(with).collect()
}

/// Returns names with a number, which counts as a word.
fn counted(fitting: &[String]) -> impl Iterator<Item = Vec<String>> {
    let most = fitting.len().min(SLUG_WORDS_MAX - 1);
    let kept = fitting.get(..most).unwrap_or_default().to_vec();
    (2..=COUNTED_MAX).map(move |number| {
        let number = number.to_string();
        let mut words = kept.clone();
        while words.len() > 1 && words.join("-").len() + number.len() + 1 > SLUG_BYTES_MAX {
            words.pop();
        }
        words.push(number);
        words
    })
}

#[cfg(test)]
mod tests;
