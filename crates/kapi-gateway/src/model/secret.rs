//! A provider's key, and keeping it out of everything that is shown.
//!
//! Knows neither where keys are kept nor who asks; scrubbing works on bytes in pieces, and does not
//! undo encodings.

use std::borrow::Cow;
use std::fmt;

/// Shorter keys are no secrets (`ollama`), and blanking them would spoil ordinary text.
const SCRUBBED_BYTES_MIN: usize = 8;
/// What a scrubbed byte becomes.
const BLANK: u8 = b'*';

/// A text that cannot be a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("parse the key: it must be printable ASCII without spaces, and not empty")]
pub struct SecretError;

/// A provider's key. Never shown: `Debug` tells nothing of it.
#[derive(Clone, PartialEq, Eq)]
pub struct ProviderKey(String);

impl ProviderKey {
    /// Parses a key, which may end with the line break of the file it was read from.
    pub fn parse(text: &str) -> Result<Self, SecretError> {
        let text = text.trim_end_matches(['\r', '\n']);
        if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(SecretError);
        }
        Ok(Self(text.to_owned()))
    }

    /// Returns the key, for the one header that needs it.
    pub(crate) fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for ProviderKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Secret(…)")
    }
}

/// Blanks a key in bytes that arrive in pieces, without changing their number.
pub(crate) struct Scrubber {
    secret: Vec<u8>,
    /// The end of the last piece, which may be the beginning of the key.
    held: Vec<u8>,
}

impl Scrubber {
    pub(crate) fn new(secret: Option<&ProviderKey>) -> Self {
        let secret = secret.map_or("", ProviderKey::expose);
        let is_scrubbed = secret.len() >= SCRUBBED_BYTES_MIN;
        Self {
            secret: if is_scrubbed {
                secret.into()
            } else {
                Vec::new()
            },
            held: Vec::new(),
        }
    }

    /// Returns what may be shown of everything fed so far and not returned yet.
    pub(crate) fn feed<'a>(&mut self, piece: &'a [u8]) -> Cow<'a, [u8]> {
        let Some(&first) = self.secret.first() else {
            return Cow::Borrowed(piece);
        };
        let mut shown = if self.held.is_empty() {
            Cow::Borrowed(piece)
        } else {
            self.held.extend_from_slice(piece);
            Cow::Owned(std::mem::take(&mut self.held))
        };
        let mut at = 0;
        while let Some((begin, candidate)) = self.candidate(&shown, at, first) {
            at = begin + candidate.len();
            match candidate {
                KeyMatch::Key(length) => blank(&mut shown, begin, length),
                KeyMatch::Other => {}
                KeyMatch::Beginning => {
                    self.held = shown.get(begin..).unwrap_or_default().to_vec();
                    return truncated(shown, begin);
                }
            }
        }
        shown
    }

    /// Returns the next place where the key may stand.
    fn candidate(&self, shown: &[u8], from: usize, first: u8) -> Option<(usize, KeyMatch)> {
        let rest = shown.get(from..)?;
        let skipped = rest.iter().position(|&byte| byte == first)?;
        let text = rest.get(skipped..)?;
        let candidate = if text.starts_with(&self.secret) {
            KeyMatch::Key(self.secret.len())
        } else if self.secret.starts_with(text) {
            KeyMatch::Beginning
        } else {
            KeyMatch::Other
        };
        Some((from + skipped, candidate))
    }

    /// Returns what was held back, once nothing more comes.
    pub(crate) fn finish(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.held)
    }

    /// Returns a whole text that may be shown.
    pub(crate) fn whole(&mut self, text: &[u8]) -> Vec<u8> {
        let mut shown = self.feed(text).into_owned();
        shown.extend(self.finish());
        shown
    }
}

/// What stands where the key's first byte stands.
#[derive(Debug, Clone, Copy)]
enum KeyMatch {
    /// The key, of so many bytes.
    Key(usize),
    /// All that is there yet, and the key begins like it.
    Beginning,
    Other,
}

impl KeyMatch {
    /// Returns how many bytes need not be looked at again.
    const fn len(self) -> usize {
        match self {
            Self::Key(length) => length,
            Self::Beginning | Self::Other => 1,
        }
    }
}

fn blank(bytes: &mut Cow<'_, [u8]>, begin: usize, length: usize) {
    if let Some(range) = bytes.to_mut().get_mut(begin..begin + length) {
        range.fill(BLANK);
    }
}

fn truncated(bytes: Cow<'_, [u8]>, length: usize) -> Cow<'_, [u8]> {
    match bytes {
        Cow::Borrowed(bytes) => Cow::Borrowed(bytes.get(..length).unwrap_or(bytes)),
        Cow::Owned(mut bytes) => {
            bytes.truncate(length);
            Cow::Owned(bytes)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{ProviderKey, Scrubber};

    #[test]
    fn a_key_is_blanked_wherever_the_pieces_end() {
        let secret = ProviderKey::parse("sk-sk-secret").expect("a key");
        let check = |text: &str, expected: &str| {
            for at in 0..=text.len() {
                let mut scrubber = Scrubber::new(Some(&secret));
                let (one, two) = text.as_bytes().split_at(at);
                let mut shown = scrubber.feed(one).into_owned();
                shown.extend_from_slice(&scrubber.feed(two));
                shown.extend(scrubber.finish());
                let shown = String::from_utf8(shown).expect("text");
                assert_eq!(shown, expected, "split at {at}");
            }
            let mut scrubber = Scrubber::new(Some(&secret));
            let mut shown = Vec::new();
            for byte in text.as_bytes() {
                shown.extend_from_slice(&scrubber.feed(std::slice::from_ref(byte)));
            }
            shown.extend(scrubber.finish());
            assert_eq!(shown, expected.as_bytes(), "single bytes");
        };
        check("no key here", "no key here");
        check("a sk-sk-secret b", "a ************ b");
        check("sk-sk-sk-secret", "sk-************");
        check("sk-sk-secretsk-sk-secret", "************************");
        check("sk-sk-secre", "sk-sk-secre");
        check("sss sk-sk-sk-", "sss sk-sk-sk-");
    }

    #[test]
    fn nothing_is_held_back_that_cannot_be_the_key() {
        let secret = ProviderKey::parse("sk-secret").expect("a key");
        let mut scrubber = Scrubber::new(Some(&secret));
        assert_eq!(&*scrubber.feed(b"data: 1\n\n"), b"data: 1\n\n");
        assert_eq!(&*scrubber.feed(b"x sk-"), b"x ");
        assert_eq!(&*scrubber.feed(b"other"), b"sk-other");
    }

    #[test]
    fn a_key_is_not_shown_and_must_fit_a_header() {
        let secret = ProviderKey::parse("sk-secret\n").expect("a key");
        assert_eq!(format!("{secret:?}"), "Secret(…)");
        assert_eq!(secret.expose(), "sk-secret");
        for text in ["", "\n", "two words", "line\r\nbreak: x", "ümlaut"] {
            assert!(ProviderKey::parse(text).is_err(), "{text:?}");
        }
        let mut short = Scrubber::new(Some(&ProviderKey::parse("ollama").expect("a key")));
        assert_eq!(short.whole(b"ask ollama"), b"ask ollama");
    }
}
