//! Reading a text as commands, more than a shell would: twice, once with its quotes and once as if
//! there were none, and again inside every word that could be a script.
//!
//! What a shell would not run is then read, too; nothing it would run is hidden by how it is quoted.
//! Knows no program.

/// Scripts within words that are read.
const DEPTH_MAX: usize = 8;
/// Characters that are read, all scripts within words together.
const READ_MAX: usize = 8 << 20;
/// Characters that end a command.
const ENDS: &[char] = &[';', '&', '|', '<', '>', '(', ')', '`', '\n', '\r'];

/// Returns the words of everything in a text that could be a command, in lower case; `None` where
/// that is more than is read.
pub(super) fn commands(text: &str) -> Option<Vec<Vec<String>>> {
    let mut reader = RuleReader {
        found: Vec::new(),
        left: READ_MAX,
    };
    reader.read(&joined(text), DEPTH_MAX)?;
    Some(reader.found)
}

/// Returns a text in lower case with one blank where it has some, and no quotes or escapes.
pub(super) fn squeezed(text: &str) -> String {
    let text = joined(text);
    let plain = text.chars().filter(|c| !matches!(c, '\'' | '"' | '\\'));
    let plain: String = plain.flat_map(char::to_lowercase).collect();
    let words: Vec<&str> = plain.split_whitespace().collect();
    words.join(" ")
}

/// Joins lines that a backslash continues, and puts blanks where a shell's own blank is named.
fn joined(text: &str) -> String {
    let joined = text.replace("\\\r\n", "").replace("\\\n", "");
    joined.replace("${IFS}", " ").replace("$IFS", " ")
}

struct RuleReader {
    found: Vec<Vec<String>>,
    left: usize,
}

impl RuleReader {
    fn read(&mut self, text: &str, depth: usize) -> Option<()> {
        self.left = self.left.checked_sub(text.len())?;
        for command in text.split(ENDS) {
            let words: Vec<String> = command.split_whitespace().map(unquoted).collect();
            self.take(&words);
        }
        for command in quoted_commands(text) {
            // A word that is the whole text would be read for ever.
            let is_inner = |word: &&String| word.len() < text.len() && may_be_script(word);
            for script in command.iter().filter(is_inner) {
                self.read(script, depth.checked_sub(1)?)?;
            }
            self.take(&command);
        }
        Some(())
    }

    /// Keeps a command, and what its words in braces expand to.
    fn take(&mut self, words: &[String]) {
        let lower = |word: &String| without_expansions(word).to_lowercase();
        let plain: Vec<String> = words.iter().map(lower).collect();
        let is_list = |word: &String| word.starts_with('{') && word.contains(',');
        if words.iter().any(is_list) {
            let expanded = words.iter().flat_map(|word| {
                let inner = word.trim_matches(['{', '}']);
                let parts: Vec<String> = inner.split(',').map(str::to_lowercase).collect();
                parts
            });
            self.found.push(expanded.collect());
        }
        if !plain.is_empty() {
            self.found.push(plain);
        }
    }
}

fn may_be_script(word: &str) -> bool {
    word.contains(|c: char| c.is_whitespace() || c == '$' || ENDS.contains(&c))
}

/// Returns a word without quotes, wherever they stand in it.
fn unquoted(word: &str) -> String {
    word.replace("$'", "'")
        .chars()
        .filter(|c| !matches!(c, '\'' | '"' | '\\'))
        .collect()
}

/// Returns a word without `$name`, `${…}` and the like, unless it is nothing else: what they stand
/// for may be nothing.
fn without_expansions(word: &str) -> String {
    let mut plain = String::with_capacity(word.len());
    let mut chars = word.chars().peekable();
    while let Some(c) = chars.next() {
        match (c, chars.peek()) {
            ('$', Some('{')) => while chars.next_if(|c| *c != '}').is_some() {},
            ('$', Some('@' | '*' | '#' | '?' | '0'..='9')) => {
                chars.next();
            }
            ('$', Some(next)) if next.is_alphabetic() || *next == '_' => {
                while chars
                    .next_if(|c| c.is_alphanumeric() || *c == '_')
                    .is_some()
                {}
            }
            ('}', _) if word.contains("${") => {}
            _ => plain.push(c),
        }
    }
    if plain.is_empty() {
        word.to_owned()
    } else {
        plain
    }
}

/// Cuts a text as a shell does: what is quoted is part of its word, whatever it holds.
fn quoted_commands(text: &str) -> Vec<Vec<String>> {
    let mut all: Vec<Vec<String>> = vec![Vec::new()];
    let mut word: Option<String> = None;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '$' if chars.peek() == Some(&'\'') => {
                chars.next();
                escaped_text(&mut chars, word.get_or_insert_default());
            }
            '\'' => {
                let rest = chars.by_ref().take_while(|c| *c != '\'');
                word.get_or_insert_default().extend(rest);
            }
            '"' => double_quoted(&mut chars, word.get_or_insert_default()),
            '\\' => word.get_or_insert_default().extend(chars.next()),
            c if c.is_whitespace() && c != '\n' && c != '\r' => end_word(&mut all, &mut word),
            c if ENDS.contains(&c) => {
                end_word(&mut all, &mut word);
                all.push(Vec::new());
            }
            _ => word.get_or_insert_default().push(c),
        }
    }
    end_word(&mut all, &mut word);
    all.retain(|command| !command.is_empty());
    all
}

fn end_word(all: &mut [Vec<String>], word: &mut Option<String>) {
    if let (Some(word), Some(command)) = (word.take(), all.last_mut()) {
        command.push(word);
    }
}

type Chars<'a> = std::iter::Peekable<std::str::Chars<'a>>;

fn double_quoted(chars: &mut Chars<'_>, word: &mut String) {
    while let Some(c) = chars.next().filter(|c| *c != '"') {
        let is_escape = c == '\\' && matches!(chars.peek(), Some('"' | '\\' | '$' | '`'));
        word.extend(if is_escape { chars.next() } else { Some(c) });
    }
}

/// Reads the rest of `$'…'`, where characters may be given by their numbers.
fn escaped_text(chars: &mut Chars<'_>, word: &mut String) {
    while let Some(c) = chars.next().filter(|c| *c != '\'') {
        if c != '\\' {
            word.push(c);
            continue;
        }
        match chars.next() {
            Some('n' | 't' | 'r') => word.push(' '),
            Some('x') => word.extend(numbered(chars, 16, 2)),
            Some('u') => word.extend(numbered(chars, 16, 4)),
            Some('U') => word.extend(numbered(chars, 16, 8)),
            Some(digit @ '0'..='7') => {
                let first = digit.to_digit(8).unwrap_or_default();
                word.extend(number(chars, 8, 2, first).and_then(char::from_u32));
            }
            other => word.extend(other),
        }
    }
}

fn numbered(chars: &mut Chars<'_>, radix: u32, digits_max: usize) -> Option<char> {
    number(chars, radix, digits_max, 0).and_then(char::from_u32)
}

/// Reads at most so many digits more of a number.
fn number(chars: &mut Chars<'_>, radix: u32, digits_max: usize, first: u32) -> Option<u32> {
    let mut value = first;
    for _ in 0..digits_max {
        let Some(digit) = chars.peek().and_then(|c| c.to_digit(radix)) else {
            break;
        };
        chars.next();
        value = value.checked_mul(radix)?.checked_add(digit)?;
    }
    Some(value)
}
