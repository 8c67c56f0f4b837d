//! Names for workflows, from what they are for: a few keywords that a person recognises, in plain
//! letters.
//!
//! Any purpose has a name. It is assigned once and stays. Knows nothing of directories; what is taken
//! is an argument.

use kapi_core::id::{SLUG_BYTES_MAX, SLUG_WORDS_MAX, Slug};
use kapi_core::mode::Mode;

use crate::rules::transliterate::plain;

/// Names that are commands.
pub const RESERVED: [&str; 4] = ["status", "resume", "approve", "clear"];

/// Bytes of a word of another script that are kept.
const FOREIGN_BYTES_MAX: usize = 24;

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

/// What a workflow is called whose purpose gives no word; digits of its hash follow.
const NAMELESS: &str = "workflow";

/// Why there is no name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SlugError {
    /// Every name it could have is taken.
    #[error("name a workflow after {purpose:?}: every such name is taken; reword the purpose")]
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
        let mut written = plain(word);
        if !word.is_ascii() {
            // Some scripts put no spaces between words.
            written.truncate(FOREIGN_BYTES_MAX);
        }
        let word = written;
        let says_something = !word.is_empty()
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
/// A name that is taken gives way to a more telling one first; a number is the last resort. A
/// purpose without a word that could name it is called by a hash of itself.
///
/// # Errors
/// When every name it could have is taken.
pub fn derive(purpose: &str, mode: Mode, taken: &[Slug]) -> Result<Slug, SlugError> {
    let words = keywords(purpose, mode);
    let begins = |word: &String| word.starts_with(|c: char| c.is_ascii_lowercase());
    let first = words.iter().position(begins);
    let words = first
        .and_then(|first| words.get(first..))
        .unwrap_or_default();
    let is_command = |words: &[String]| match words {
        [word] => RESERVED.contains(&word.as_str()),
        _ => false,
    };
    let words = if words.is_empty() || is_command(words) {
        vec![NAMELESS.to_owned(), digits(purpose.trim())]
    } else {
        words.to_vec()
    };
    let words = words.as_slice();
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

/// Returns four hexadecimal digits that stand for a text: the same for the same, by FNV-1a.
fn digits(text: &str) -> String {
    let mix = |hash: u32, byte: u8| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    let hash = text.bytes().fold(0x811c_9dc5, mix);
    format!("{:04x}", (hash >> 16) ^ (hash & 0xffff))
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
    let location = fitting.iter().rposition(is_generic);
    let location = location.unwrap_or(fitting.len().saturating_sub(1));
    let with = |word: &String| {
        let mut words = fitting.to_vec();
        words.remove(location);
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
