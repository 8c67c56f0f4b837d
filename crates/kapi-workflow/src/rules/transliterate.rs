//! Other scripts in plain letters, so that a purpose in them gives a name that its person knows.
//!
//! Accents fall away, Greek, Cyrillic and Hangul are written as they sound, letter by letter; every
//! other script as its usual romanisation has it. What is no letter is left out.

/// Greek letters from alpha, and how each is written.
const GREEK: [&str; 25] = [
    "a", "v", "g", "d", "e", "z", "i", "th", "i", "k", "l", "m", "n", "x", "o", "p", "r", "s", "s",
    "t", "y", "f", "ch", "ps", "o",
];
/// Cyrillic letters from a, and how each is written.
const CYRILLIC: [&str; 32] = [
    "a", "b", "v", "g", "d", "e", "zh", "z", "i", "y", "k", "l", "m", "n", "o", "p", "r", "s", "t",
    "u", "f", "kh", "ts", "ch", "sh", "shch", "", "y", "", "e", "yu", "ya",
];
/// What a Hangul syllable begins with.
const INITIALS: [&str; 19] = [
    "g", "kk", "n", "d", "tt", "r", "m", "b", "pp", "s", "ss", "", "j", "jj", "ch", "k", "t", "p",
    "h",
];
/// Its vowel.
const VOWELS: [&str; 21] = [
    "a", "ae", "ya", "yae", "eo", "e", "yeo", "ye", "o", "wa", "wae", "oe", "yo", "u", "wo", "we",
    "wi", "yu", "eu", "ui", "i",
];
/// What it ends with.
const FINALS: [&str; 28] = [
    "", "k", "k", "k", "n", "n", "n", "t", "l", "k", "m", "l", "l", "l", "l", "l", "m", "p", "p",
    "t", "t", "ng", "t", "t", "k", "t", "p", "t",
];
/// The first Hangul syllable, and how many there are.
const HANGUL: (u32, u32) = (0xac00, 11_172);
/// Letters with accents and what is left of each without.
const ACCENTED: [(&str, &str); 21] = [
    ("a", "àáâãåāăąǎ"),
    ("ae", "äæ"),
    ("c", "çćĉċč"),
    ("d", "ďđð"),
    ("e", "èéêëēĕėęě"),
    ("g", "ĝğġģ"),
    ("h", "ĥħ"),
    ("i", "ìíîïĩīĭįı"),
    ("j", "ĵ"),
    ("k", "ķ"),
    ("l", "ĺļľŀł"),
    ("n", "ñńņňŋ"),
    ("o", "òóôõøōŏőǒ"),
    ("oe", "öœ"),
    ("r", "ŕŗř"),
    ("s", "śŝşšș"),
    ("ss", "ß"),
    ("t", "ţťŧțþ"),
    ("u", "ùúûũūŭůűųǔ"),
    ("ue", "ü"),
    ("w", "ŵ"),
];
/// Letters that stand outside the rows above.
const OTHERS: [(char, &str); 25] = [
    ('ý', "y"),
    ('ÿ', "y"),
    ('ŷ', "y"),
    ('ź', "z"),
    ('ż', "z"),
    ('ž', "z"),
    ('ё', "yo"),
    ('ђ', "dj"),
    ('ѓ', "gj"),
    ('є', "ye"),
    ('ѕ', "dz"),
    ('і', "i"),
    ('ї', "yi"),
    ('ј', "j"),
    ('љ', "lj"),
    ('њ', "nj"),
    ('ћ', "c"),
    ('ў', "u"),
    ('ґ', "g"),
    ('ά', "a"),
    ('έ', "e"),
    ('ή', "i"),
    ('ί', "i"),
    ('ό', "o"),
    ('ώ', "o"),
];

/// Returns a word in plain small letters and digits; what cannot be written so is left out.
#[must_use]
pub fn plain(word: &str) -> String {
    let mut text = String::new();
    for c in word.to_lowercase().chars() {
        if c.is_ascii_alphanumeric() {
            text.push(c);
        } else {
            text.push_str(&letter(c));
        }
    }
    text
}

fn letter(c: char) -> String {
    let code = u32::from(c);
    let at = |first: u32, letters: &[&str]| {
        let location = usize::try_from(code.checked_sub(first)?).ok()?;
        letters.get(location).map(|letter| (*letter).to_owned())
    };
    let row = || ACCENTED.iter().find(|(_, letters)| letters.contains(c));
    let other = || OTHERS.iter().find(|(letter, _)| *letter == c);
    other()
        .map(|(_, plain)| (*plain).to_owned())
        .or_else(|| row().map(|(plain, _)| (*plain).to_owned()))
        .or_else(|| at(u32::from('α'), &GREEK))
        .or_else(|| at(u32::from('а'), &CYRILLIC))
        .or_else(|| syllable(code))
        .unwrap_or_else(|| romanised(c))
}

/// Writes a letter of any other script.
fn romanised(c: char) -> String {
    let text = if c.is_alphanumeric() {
        any_ascii::any_ascii_char(c)
    } else {
        ""
    };
    let letters = text.chars().filter(char::is_ascii_alphanumeric);
    letters.map(|letter| letter.to_ascii_lowercase()).collect()
}

/// Writes a Hangul syllable, whose number tells its three parts.
fn syllable(code: u32) -> Option<String> {
    let (first, count) = HANGUL;
    let location = code
        .checked_sub(first)
        .filter(|location| *location < count)?;
    let part = |letters: &[&'static str], location: u32| {
        letters.get(usize::try_from(location).ok()?).copied()
    };
    let n_finals = 28;
    let n_both = 21 * n_finals;
    Some(format!(
        "{}{}{}",
        part(&INITIALS, location / n_both)?,
        part(&VOWELS, location % n_both / n_finals)?,
        part(&FINALS, location % n_finals)?
    ))
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn letters_of_other_alphabets_are_written_plainly() {
        for (word, expected) in [
            ("login2", "login2"),
            ("Ünïcode", "uenicode"),
            ("naïve", "naive"),
            ("Größe", "groesse"),
            ("déjà", "deja"),
            ("Łódź", "lodz"),
            ("λόγος", "logos"),
            ("Привет", "privet"),
            ("об'єднання", "obyednannya"),
            ("일출", "ilchul"),
            ("로그인", "rogeuin"),
            ("日本語", "ribenyu"),
            ("登录", "denglu"),
            ("שלום", "slvm"),
            ("🚀", ""),
        ] {
            assert_eq!(plain(word), expected, "{word}");
        }
    }
}
