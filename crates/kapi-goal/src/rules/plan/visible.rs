//! Which characters a person sees, so that a text is what it looks like.
//!
//! Knows nothing of where a text comes from or goes to.

/// Tells whether a character can stand as it is: it is seen, or a space, and turns no text around.
pub(crate) fn shows(char: char) -> bool {
    let is_hidden = matches!(
        char,
        '\u{ad}'
            | '\u{61c}'
            | '\u{180e}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{fdd0}'..='\u{fdef}'
            | '\u{feff}'
            | '\u{fff0}'..='\u{ffff}'
            | '\u{e0000}'..='\u{e0fff}'
    );
    let is_noncharacter = u32::from(char) & 0xfffe == 0xfffe;
    !char.is_control() && !is_hidden && !is_noncharacter
}

/// Tells whether a character is a variation of the one before, which two names may differ in
/// without looking different.
pub(crate) fn is_variation(char: char) -> bool {
    matches!(char, '\u{fe00}'..='\u{fe0f}')
}
