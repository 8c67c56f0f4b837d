//! SHA-256 as lower-case hexadecimal text.
//!
//! Knows nothing of what is hashed.

use sha2::{Digest as _, Sha256};

/// The hash that stands before the first line of a log.
pub const ZERO: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// Returns the SHA-256 of some bytes in lower-case hexadecimal.
#[must_use]
pub fn sha256_hex(bytes: &[u8]) -> String {
    const DIGITS: [char; 16] = [
        '0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f',
    ];
    let digit = |nibble: u8| DIGITS.get(usize::from(nibble)).copied().unwrap_or('0');
    Sha256::digest(bytes)
        .iter()
        .flat_map(|byte| [digit(byte >> 4), digit(byte & 15)])
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{ZERO, sha256_hex};

    #[test]
    fn the_empty_text_has_its_known_hash() {
        let known = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(sha256_hex(b""), known);
        assert_eq!(ZERO.len(), known.len());
    }
}
