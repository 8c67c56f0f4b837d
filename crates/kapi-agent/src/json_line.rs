//! One line of JSON from an agent, whole or cut off.
//!
//! Agents print lines of any length and the harness caps them, so the end of a long line may be
//! missing. What is left is completed to valid JSON: fields before the cut are worth more than
//! none. Knows nothing of what the fields mean.

use serde_json::Value;

/// Returns the value of a top-level `type` that comes first, without parsing the line.
pub(crate) fn leading_type(line: &[u8]) -> Option<&str> {
    let rest = line.trim_ascii_start().strip_prefix(b"{")?;
    let rest = rest.trim_ascii_start().strip_prefix(b"\"type\"")?;
    let rest = rest.trim_ascii_start().strip_prefix(b":")?;
    let rest = rest.trim_ascii_start().strip_prefix(b"\"")?;
    let end = rest.iter().position(|byte| *byte == b'"')?;
    std::str::from_utf8(rest.get(..end)?).ok()
}

/// A line that was read.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct JsonLine {
    /// The object, or what is left of it.
    pub(crate) value: Value,
    /// Whether its end is missing.
    pub(crate) is_cut: bool,
}

/// Reads a line as a JSON object; `None` when it is not even the beginning of one.
pub(crate) fn parse(line: &[u8]) -> Option<JsonLine> {
    let line = line.trim_ascii();
    if line.first() != Some(&b'{') {
        return None;
    }
    let (value, is_cut) = match serde_json::from_slice(line) {
        Ok(value) => (value, false),
        Err(_) => {
            let completed = completed(&String::from_utf8_lossy(line))?;
            (serde_json::from_str(&completed).ok()?, true)
        }
    };
    Value::is_object(&value).then_some(JsonLine { value, is_cut })
}

/// Returns the text at a pointer, empty when there is none.
pub(crate) fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// Returns the number at a pointer, 0 when there is none.
pub(crate) fn count(value: &Value, pointer: &str) -> u64 {
    value.pointer(pointer).and_then(Value::as_u64).unwrap_or(0)
}

/// Returns the list at a pointer, empty when there is none.
pub(crate) fn list<'a>(value: &'a Value, pointer: &str) -> &'a [Value] {
    value
        .pointer(pointer)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

/// Completes the beginning of a JSON document so that it ends where it was cut.
///
/// A string value that was cut is closed; any other unfinished value is left out.
fn completed(text: &str) -> Option<String> {
    let mut scan = Scan::default();
    for (at, byte) in text.bytes().enumerate() {
        // What closes more than it opened is not cut but broken.
        scan.feed(at, byte)?;
    }
    let (kept, suffix, open) = scan.end(text)?;
    let closers: String = open.iter().rev().map(|open| open.closer()).collect();
    Some(format!("{kept}{suffix}{closers}"))
}

/// An object or array that was opened and not closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OpenBracket {
    Object,
    Array,
}

impl OpenBracket {
    const fn closer(self) -> char {
        match self {
            Self::Object => '}',
            Self::Array => ']',
        }
    }
}

/// Where a scan of a document stands.
#[derive(Debug, Default)]
struct Scan {
    open: Vec<OpenBracket>,
    /// Where the string under way has its last whole character's end, and whether it is a value.
    string: Option<OpenString>,
    /// Whether the next string is a value: after a colon, or in an array.
    value_is_next: bool,
    /// The end of what is complete, and how many containers were open there.
    complete_to: usize,
    n_open_there: usize,
}

#[derive(Debug)]
struct OpenString {
    is_value: bool,
    /// The bytes before this index are whole characters and whole escapes.
    whole_to: usize,
    escape: Escape,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Escape {
    None,
    /// The backslash was read.
    Begun,
    /// Hexadecimal digits of `\u` that are still to come.
    Unicode(u8),
}

impl Scan {
    fn feed(&mut self, at: usize, byte: u8) -> Option<()> {
        if let Some(string) = &mut self.string {
            let (has_ended, is_value) = (string.feed(at, byte), string.is_value);
            if has_ended {
                self.string = None;
            }
            if has_ended && is_value {
                self.complete(at + 1);
            }
            return Some(());
        }
        match byte {
            b'"' => {
                let is_value = self.value_is_next || self.open.last() == Some(&OpenBracket::Array);
                let (whole_to, escape) = (at + 1, Escape::None);
                self.string = Some(OpenString {
                    is_value,
                    whole_to,
                    escape,
                });
                self.value_is_next = false;
            }
            b'{' | b'[' => {
                self.open.push(if byte == b'{' {
                    OpenBracket::Object
                } else {
                    OpenBracket::Array
                });
                self.value_is_next = false;
                self.complete(at + 1);
            }
            b'}' | b']' => {
                self.open.pop()?;
                self.complete(at + 1);
            }
            b':' => self.value_is_next = true,
            b',' => {
                // A number or literal before the comma is complete as well.
                self.value_is_next = false;
                self.complete(at);
            }
            _ => {}
        }
        Some(())
    }

    fn complete(&mut self, to: usize) {
        self.complete_to = to;
        self.n_open_there = self.open.len();
    }

    /// Returns what to keep, what closes the string under way, and what else is to be closed.
    fn end<'a>(&'a self, text: &'a str) -> Option<(&'a str, &'static str, &'a [OpenBracket])> {
        match &self.string {
            Some(string) if string.is_value => {
                Some((text.get(..string.whole_to)?, "\"", &self.open))
            }
            Some(_) | None => Some((
                text.get(..self.complete_to)?,
                "",
                self.open.get(..self.n_open_there)?,
            )),
        }
    }
}

impl OpenString {
    /// Takes one byte and tells whether it ends the string.
    fn feed(&mut self, at: usize, byte: u8) -> bool {
        match (self.escape, byte) {
            (Escape::None, b'"') => return true,
            (Escape::None, b'\\') => self.escape = Escape::Begun,
            (Escape::Begun, b'u') => self.escape = Escape::Unicode(4),
            (Escape::Unicode(n), _) if n > 1 => self.escape = Escape::Unicode(n - 1),
            (Escape::None | Escape::Begun | Escape::Unicode(_), _) => {
                self.escape = Escape::None;
                self.whole_to = at + 1;
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{
        Strategy as _, any, prop_assert, prop_assert_eq, prop_oneof, proptest,
    };
    use serde_json::{Value, json};

    use super::{JsonLine, leading_type, parse};

    #[test]
    fn the_type_is_read_without_parsing() {
        let cases: [(&str, Option<&str>); 6] = [
            (
                r#"{"type":"message_update","message":"#,
                Some("message_update"),
            ),
            (r#" { "type" : "a" }"#, Some("a")),
            (r#"{"x":1,"type":"a"}"#, None),
            (r#"{"type":7}"#, None),
            ("", None),
            ("noise", None),
        ];
        for (line, expected) in cases {
            assert_eq!(leading_type(line.as_bytes()), expected, "{line}");
        }
    }

    #[test]
    fn a_cut_line_keeps_what_came_before_the_cut() {
        let cases = [
            (r#"{"a":1,"b":"tex"#, json!({"a":1,"b":"tex"})),
            (r#"{"a":1,"b":"te\"#, json!({"a":1,"b":"te"})),
            (r#"{"a":1,"b":"te\u00"#, json!({"a":1,"b":"te"})),
            (r#"{"a":1,"b":"te\n"#, json!({"a":1,"b":"te\n"})),
            (r#"{"a":1,"ke"#, json!({"a":1})),
            (r#"{"a":1,"key":"#, json!({"a":1})),
            (r#"{"a":1,"key":12"#, json!({"a":1})),
            (r#"{"a":1,"key":tru"#, json!({"a":1})),
            (r#"{"a":{"b":[1,{"c":"d"#, json!({"a":{"b":[1,{"c":"d"}]}})),
            (r#"{"a":["x","y"#, json!({"a":["x","y"]})),
            (r#"{"a":["x",3"#, json!({"a":["x"]})),
            (r#"{"a":{"b":1},"c":[]"#, json!({"a":{"b":1},"c":[]})),
            ("{", json!({})),
            (r#"{"a"#, json!({})),
        ];
        for (line, expected) in cases {
            assert_eq!(
                parse(line.as_bytes()),
                Some(JsonLine {
                    value: expected,
                    is_cut: true
                }),
                "{line}"
            );
        }
    }

    #[test]
    fn a_cut_in_the_middle_of_a_character_loses_only_the_character() {
        let line = "{\"a\":\"grün".as_bytes();
        let value = parse(&line[..line.len() - 2]).unwrap().value;
        assert_eq!(value, json!({"a":"gr\u{fffd}"}));
    }

    #[test]
    fn what_is_no_object_is_nothing() {
        for line in [
            "",
            "noise",
            "[1]",
            "\"text\"",
            "{]}",
            "{\"a\":1}}",
            "{nope}",
            "\u{0}",
        ] {
            assert_eq!(parse(line.as_bytes()), None, "{line}");
        }
    }

    proptest! {
        #[test]
        fn any_cut_of_any_object_is_read(value in object(), cut in any::<u16>()) {
            let line = value.to_string();
            let cut = 1 + usize::from(cut) % line.len();
            let bytes = &line.as_bytes()[..cut];
            let read = parse(bytes);
            prop_assert!(read.is_some(), "{}", String::from_utf8_lossy(bytes));
            if cut == line.len() {
                let whole = JsonLine { value, is_cut: false };
                prop_assert_eq!(read, Some(whole));
            }
        }

        #[test]
        fn no_bytes_make_it_crash(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut line = b"{\"a\":".to_vec();
            line.extend(bytes);
            // Only the absence of a panic is the claim here.
            drop(parse(&line));
        }
    }

    fn object() -> impl proptest::strategy::Strategy<Value = Value> {
        let leaf = prop_oneof![
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            "[a-z\"\\\\\n\u{1}ü☃]{0,6}".prop_map(Value::from),
        ];
        let value = leaf.prop_recursive(3, 16, 4, |inner| {
            let list = proptest::collection::vec(inner.clone(), 0..4);
            let map = proptest::collection::btree_map("[a-z\"]{0,4}", inner, 0..4);
            prop_oneof![list.prop_map(Value::from), map.prop_map(Value::from_iter),]
        });
        let fields = proptest::collection::btree_map("[a-z]{0,4}", value, 0..4);
        fields.prop_map(Value::from_iter)
    }
}
