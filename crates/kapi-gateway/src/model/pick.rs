//! Picks a few objects out of JSON text that arrives in pieces.
//!
//! Memory is bounded whatever the text: only the picked objects and the keys of the outermost
//! levels are kept. It checks no syntax beyond what it needs, and knows nothing of models.

/// How many levels are compared with the wanted paths; deeper ones are only counted.
const LEVELS_MAX: usize = 4;
/// The longest key that can be part of a path.
const KEY_BYTES_MAX: usize = 64;
/// The longest object that is picked; the objects we want are a few hundred bytes.
const PICKED_BYTES_MAX: usize = 64 * 1024;

/// The name of an array's element in a path.
pub(crate) const ELEMENT: &str = "[]";

/// Where a wanted object is: keys from the outside in, [`ELEMENT`] for an array's element.
pub(crate) type Path = &'static [&'static str];

/// One object that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PickedObject {
    /// The place of its path in the list of wanted ones.
    pub(crate) wanted_idx: usize,
    /// Its text; `None` if it was longer than can be kept.
    pub(crate) text: Option<Vec<u8>>,
}

#[derive(Debug)]
enum JsonLevel {
    Object {
        key: Vec<u8>,
        expects: ExpectedToken,
    },
    Array,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ExpectedToken {
    Key,
    Value,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum JsonPosition {
    Between,
    InString,
    /// After a backslash in a string.
    Escaped,
}

#[derive(Debug)]
struct Capture {
    wanted_idx: usize,
    /// The depth outside the object.
    depth: usize,
    text: Vec<u8>,
}

/// Reads JSON text piece by piece and returns the wanted objects in it.
#[derive(Debug)]
pub(crate) struct Picker {
    wanted: &'static [Path],
    levels: Vec<JsonLevel>,
    depth: usize,
    location: JsonPosition,
    /// The string being read is a key of the innermost level.
    key: Option<Vec<u8>>,
    capture: Option<Capture>,
}

impl Picker {
    pub(crate) const fn new(wanted: &'static [Path]) -> Self {
        Self {
            wanted,
            levels: Vec::new(),
            depth: 0,
            location: JsonPosition::Between,
            key: None,
            capture: None,
        }
    }

    /// Forgets the document read so far; the next byte begins another.
    pub(crate) fn reset(&mut self) {
        *self = Self::new(self.wanted);
    }

    /// Reads on; returns the objects that ended in this piece, in order.
    pub(crate) fn feed(&mut self, mut bytes: &[u8]) -> Vec<PickedObject> {
        let mut found = Vec::new();
        while let Some((&byte, rest)) = bytes.split_first() {
            match self.location {
                JsonPosition::Between => self.between(byte, &mut found),
                JsonPosition::Escaped => {
                    self.keep(&[byte]);
                    self.location = JsonPosition::InString;
                }
                JsonPosition::InString if byte == b'"' || byte == b'\\' => self.string_stop(byte),
                JsonPosition::InString => {
                    let is_stop = |&byte: &u8| byte == b'"' || byte == b'\\';
                    let plain = bytes.iter().position(is_stop).unwrap_or(bytes.len());
                    let (text, after) = bytes.split_at(plain);
                    self.keep(text);
                    bytes = after;
                    continue;
                }
            }
            bytes = rest;
        }
        found
    }

    /// Reads the quote or backslash that interrupts a string.
    fn string_stop(&mut self, byte: u8) {
        if byte == b'\\' {
            self.keep(&[byte]);
            self.location = JsonPosition::Escaped;
            return;
        }
        if let Some(key) = self.key.take()
            && let Some(JsonLevel::Object { key: slot, .. }) = self.levels.last_mut()
        {
            *slot = plain_key(key);
        }
        self.keep(&[byte]);
        self.location = JsonPosition::Between;
    }

    fn between(&mut self, byte: u8, found: &mut Vec<PickedObject>) {
        match byte {
            b'"' => {
                self.keep(&[byte]);
                self.location = JsonPosition::InString;
                if let Some(JsonLevel::Object {
                    expects: ExpectedToken::Key,
                    ..
                }) = self.innermost()
                {
                    self.key = Some(Vec::new());
                }
            }
            b'{' => {
                self.begin_capture();
                self.keep(&[byte]);
                self.push(JsonLevel::Object {
                    key: Vec::new(),
                    expects: ExpectedToken::Key,
                });
            }
            b'[' => {
                self.keep(&[byte]);
                self.push(JsonLevel::Array);
            }
            b'}' | b']' => {
                self.keep(&[byte]);
                self.pop();
                found.extend(self.end_capture());
            }
            b',' | b':' => {
                self.keep(&[byte]);
                let now = if byte == b',' {
                    ExpectedToken::Key
                } else {
                    ExpectedToken::Value
                };
                if let Some(JsonLevel::Object { expects, .. }) = self.innermost() {
                    *expects = now;
                }
            }
            _ => self.keep(&[byte]),
        }
    }

    /// The level the text is in, unless that is too deep to matter.
    fn innermost(&mut self) -> Option<&mut JsonLevel> {
        if self.depth == self.levels.len() {
            self.levels.last_mut()
        } else {
            None
        }
    }

    fn push(&mut self, level: JsonLevel) {
        if self.depth == self.levels.len() && self.depth < LEVELS_MAX {
            self.levels.push(level);
        }
        self.depth = self.depth.saturating_add(1);
    }

    fn pop(&mut self) {
        if self.depth == self.levels.len() {
            self.levels.pop();
        }
        self.depth = self.depth.saturating_sub(1);
    }

    fn keep(&mut self, bytes: &[u8]) {
        if let Some(key) = &mut self.key
            && key.len() <= KEY_BYTES_MAX
        {
            key.extend_from_slice(bytes);
        }
        if let Some(capture) = &mut self.capture
            && capture.text.len() <= PICKED_BYTES_MAX
        {
            capture.text.extend_from_slice(bytes);
        }
    }

    fn begin_capture(&mut self) {
        if self.capture.is_some() || self.depth != self.levels.len() {
            return;
        }
        let wanted_idx = self.wanted.iter().position(|path| {
            path.len() == self.levels.len()
                && path
                    .iter()
                    .zip(&self.levels)
                    .all(|(name, level)| match level {
                        JsonLevel::Object { key, .. } => key.as_slice() == name.as_bytes(),
                        JsonLevel::Array => *name == ELEMENT,
                    })
        });
        self.capture = wanted_idx.map(|wanted_idx| Capture {
            wanted_idx,
            depth: self.depth,
            text: Vec::new(),
        });
    }

    fn end_capture(&mut self) -> Option<PickedObject> {
        let ended = self
            .capture
            .take_if(|capture| capture.depth == self.depth)?;
        Some(PickedObject {
            wanted_idx: ended.wanted_idx,
            text: (ended.text.len() <= PICKED_BYTES_MAX).then_some(ended.text),
        })
    }
}

/// Undoes the escapes of a key; a key that is too long or broken matches nothing.
fn plain_key(key: Vec<u8>) -> Vec<u8> {
    if !key.contains(&b'\\') {
        return key;
    }
    let quoted = [b"\"", key.as_slice(), b"\""].concat();
    serde_json::from_slice::<String>(&quoted).map_or_else(|_broken| Vec::new(), String::into_bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{Just, Strategy, any, prop, prop_assert_eq, prop_oneof, proptest};
    use serde_json::Value;

    use super::{PICKED_BYTES_MAX, Path, PickedObject, Picker};

    const WANTED: &[Path] = &[&["usage"], &["response", "usage"], &["[]", "usage"]];

    fn found(text: &str) -> Vec<(usize, String)> {
        let whole = Picker::new(WANTED).feed(text.as_bytes());
        for at in 0..=text.len() {
            let (one, two) = text.as_bytes().split_at(at);
            let mut picker = Picker::new(WANTED);
            let mut pieces = picker.feed(one);
            pieces.extend(picker.feed(two));
            assert_eq!(pieces, whole, "split at {at}: {text}");
        }
        let text_of = |picked: PickedObject| {
            let text = picked.text.expect("short enough");
            (picked.wanted_idx, String::from_utf8(text).expect("text"))
        };
        whole.into_iter().map(text_of).collect()
    }

    #[test]
    fn objects_at_wanted_paths() {
        let check = |text: &str, expected: &[(usize, &str)]| {
            let expected: Vec<(usize, String)> = expected
                .iter()
                .map(|(i, t)| (*i, (*t).to_owned()))
                .collect();
            assert_eq!(found(text), expected, "{text}");
        };
        check(r#"{"usage":{"a":1}}"#, &[(0, r#"{"a":1}"#)]);
        check(
            r#" { "usage" : { "a" : {"b":[1]} } } "#,
            &[(0, r#"{ "a" : {"b":[1]} }"#)],
        );
        check(r#"{"x":"\"usage\":{","usage":{}}"#, &[(0, "{}")]);
        check(r#"{"x":{"usage":{"a":1}},"y":[{"usage":{}}]}"#, &[]);
        check(
            r#"{"response":{"usage":{"a":"}{\\"}}}"#,
            &[(1, r#"{"a":"}{\\"}"#)],
        );
        check(
            r#"[{"usage":{"a":1}},{"usage":{"a":2}}]"#,
            &[(2, r#"{"a":1}"#), (2, r#"{"a":2}"#)],
        );
        check(r#"{"us\u0061ge":{"a":1}}"#, &[(0, r#"{"a":1}"#)]);
        check(r#"{"usage":null,"response":{"usage":null}}"#, &[]);
        check(
            r#"{"a":[[[[[[{"usage":{}}]]]]]],"usage":{"a":1}}"#,
            &[(0, r#"{"a":1}"#)],
        );
        check(
            r#"{"a":{"b":{"c":{"d":{"usage":{}}}}},"usage":{}}"#,
            &[(0, "{}")],
        );
        check(r#"{"usage":["usage",{"a":1}]}"#, &[]);
        check("}}]]{\"usage\":{}}", &[(0, "{}")]);
        check("", &[]);
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let text = prop_oneof![Just("usage".to_owned()), any::<String>()];
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<i64>().prop_map(Value::from),
            text.clone().prop_map(Value::from),
        ];
        let key = prop_oneof![Just("usage".to_owned()), Just("response".to_owned()), text];
        leaf.prop_recursive(6, 40, 5, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                prop::collection::btree_map(key.clone(), inner, 0..5)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    /// The wanted objects, found by a reader of whole documents.
    fn wanted_in(value: &Value) -> Vec<(usize, Value)> {
        let elements = value.as_array().into_iter().flatten();
        let mut found: Vec<(usize, &Value)> = elements.map(|each| (2, &each["usage"])).collect();
        found.push((0, &value["usage"]));
        found.push((1, &value["response"]["usage"]));
        found.retain(|(_, value)| value.is_object());
        let mut found: Vec<(usize, Value)> = found
            .into_iter()
            .map(|(i, value)| (i, value.clone()))
            .collect();
        found.sort_by_key(|(index, _)| *index);
        found
    }

    proptest! {
        #[test]
        fn the_same_is_found_as_by_a_reader_of_whole_documents(
            value in any_json(),
            is_pretty in any::<bool>(),
            piece_bytes in 1_usize..20,
        ) {
            let text = if is_pretty {
                serde_json::to_string_pretty(&value).expect("text")
            } else {
                value.to_string()
            };
            let mut picker = Picker::new(WANTED);
            let mut found = Vec::new();
            for piece in text.as_bytes().chunks(piece_bytes) {
                found.extend(picker.feed(piece));
            }
            let mut found: Vec<(usize, Value)> = found
                .into_iter()
                .map(|picked| {
                    let text = picked.text.expect("short enough");
                    (picked.wanted_idx, serde_json::from_slice(&text).expect("an object"))
                })
                .collect();
            found.sort_by_key(|(index, _)| *index);
            prop_assert_eq!(found, wanted_in(&value), "{}", text);
        }

        #[test]
        fn no_bytes_confuse_it_for_good(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let mut picker = Picker::new(WANTED);
            picker.feed(&bytes);
            picker.reset();
            let found = picker.feed(br#"{"usage":{"a":1}}"#);
            prop_assert_eq!(found.len(), 1);
        }
    }

    #[test]
    fn an_object_that_is_too_long_is_said_to_be_and_not_kept() {
        let text = format!(r#"{{"usage":{{"a":"{}"}}}}"#, "x".repeat(PICKED_BYTES_MAX));
        let picked = Picker::new(WANTED).feed(text.as_bytes());
        assert_eq!(
            picked,
            [PickedObject {
                wanted_idx: 0,
                text: None
            }]
        );
    }

    #[test]
    fn memory_is_bounded_whatever_the_depth_and_length() {
        let mut picker = Picker::new(WANTED);
        for _ in 0..1000 {
            assert_eq!(picker.feed(&[b'['; 1000]), []);
            assert_eq!(picker.feed(&[b'{'; 1000]), []);
        }
        assert!(picker.levels.len() <= super::LEVELS_MAX);
        picker.reset();
        picker.feed(b"{\"");
        for _ in 0..1000 {
            picker.feed(&[b'k'; 100]);
        }
        assert!(picker.key.as_ref().is_some_and(|key| key.len() < 1000));
    }
}
