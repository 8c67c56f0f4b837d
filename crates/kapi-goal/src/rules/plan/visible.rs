//! Which characters a person sees, so that a text is what it looks like.
//!
//! Knows nothing of where a text comes from or goes to.

use kapi_core::quote::is_hidden;

/// Tells whether a character can stand as it is: it is seen, or a space, and turns no text around.
pub(crate) fn shows(char: char) -> bool {
    let is_special = matches!(char, '\u{fdd0}'..='\u{fdef}' | '\u{fff0}'..='\u{ffff}');
    let is_noncharacter = u32::from(char) & 0xfffe == 0xfffe;
    !is_hidden(char) && !is_special && !is_noncharacter
}

/// Tells whether a character is a variation of the one before, which two names may differ in
/// without looking different.
pub(crate) fn is_variation(char: char) -> bool {
    matches!(char, '\u{fe00}'..='\u{fe0f}')
}
