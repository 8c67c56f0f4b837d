//! From a tree of settings to a type, by the type's own `Deserialize`, with every fault at once.
//!
//! Serde stops at the first error. Here what has a fault is noted, left out, and the rest is read
//! again, until nothing else is wrong. A key that a type does not have is always a fault; one that
//! is set to nothing is absent. The name of an enumeration may say how its variants are written:
//!
//! - `#[serde(rename = "by type")]`: a table whose key `type` names the variant; `"by type or x"`
//!   where it is `x` when nothing is said.
//! - `#[serde(rename = "text is x")]`: a text stands for a table with the one key `x`.
//!
//! The name of a struct may say what stands for a table of it:
//!
//! - `#[serde(rename = "alone is x")]`: anything but a table stands for a table with the one key `x`.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::{fmt, ptr};

use serde::de::value::StrDeserializer;
use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, EnumAccess, Error, IntoDeserializer as _,
    MapAccess, SeqAccess, Unexpected, VariantAccess, Visitor,
};

use crate::fault::{FAULTS_MAX, Faults, did_you_mean, short};
use crate::node::{Entry, Node, Value, below};
use crate::setting::{ONE_OR_MANY, SETTING, Setting};

/// Reads a tree into a type; `None` when what is wrong with it leaves nothing of the type.
///
/// What is wrong is added to the faults. What is returned may lack the parts with a fault.
pub fn read<'de, T: Deserialize<'de>>(root: &'de Node, faults: &mut Faults) -> Option<T> {
    let said = Setting {
        value: root,
        key: String::new(),
        line: root.line,
    };
    read_at(&said, faults)
}

/// Reads what stands below a key, as [`read`] reads a whole tree.
pub fn read_at<'de, T: Deserialize<'de>>(
    said: &Setting<&'de Node>,
    faults: &mut Faults,
) -> Option<T> {
    let reading = Reading {
        faults: RefCell::new(faults),
        left_out: RefCell::default(),
        last_key: RefCell::default(),
    };
    let reader = Reader {
        node: said.value,
        key: said.key.clone(),
        line: said.line,
        tag: None,
        reading: &reading,
    };
    for _ in 0..=FAULTS_MAX {
        let wrong = match T::deserialize(reader.clone()) {
            Ok(read) => return Some(read),
            Err(wrong) => *wrong.0,
        };
        let spot = wrong.spot.unwrap_or_else(|| reader.spot());
        if !wrong.is_known {
            let mut faults = reading.faults.borrow_mut();
            match spot.key.as_str() {
                "" => faults.at_line(spot.line, wrong.what, wrong.remedy),
                key => faults.at_key(spot.line, key, wrong.what, wrong.remedy),
            }
        }
        let is_new = reading.left_out.borrow_mut().insert(spot.address);
        if !is_new || spot.address == address(said.value) {
            return None;
        }
    }
    None
}

/// What is known of the tree so far.
struct Reading<'a> {
    faults: RefCell<&'a mut Faults>,
    /// The addresses of nodes that have a fault.
    left_out: RefCell<BTreeSet<usize>>,
    /// The key that was read last.
    last_key: RefCell<Option<Spot>>,
}

impl Reading<'_> {
    fn is_left_out(&self, node: &Node) -> bool {
        self.left_out.borrow().contains(&address(node))
    }
}

/// A node is known by where it is: the tree does not change while it is read.
fn address(node: &Node) -> usize {
    ptr::from_ref(node).addr()
}

/// Which node has a fault, and where a person finds it.
#[derive(Debug)]
struct Spot {
    address: usize,
    key: String,
    line: usize,
}

/// What is wrong.
#[derive(Debug)]
struct Wrong(Box<Words>);

#[derive(Debug)]
struct Words {
    what: String,
    remedy: String,
    /// Where, as soon as that is known.
    spot: Option<Spot>,
    /// The field that is missing.
    missing: Option<&'static str>,
    /// Whether two keys of one table are one field.
    is_twice: bool,
    /// Whether it only follows from a fault that was noted already.
    is_known: bool,
}

impl Wrong {
    fn new(what: String, remedy: String) -> Self {
        Self(Box::new(Words {
            what,
            remedy,
            spot: None,
            missing: None,
            is_twice: false,
            is_known: false,
        }))
    }

    fn at(mut self, spot: impl FnOnce() -> Spot) -> Self {
        self.0.spot.get_or_insert_with(spot);
        self
    }

    fn known() -> Self {
        let mut wrong = Self::new(String::new(), String::new());
        wrong.0.is_known = true;
        wrong
    }
}

impl fmt::Display for Wrong {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}; {}", self.0.what, self.0.remedy)
    }
}

impl std::error::Error for Wrong {}

impl Error for Wrong {
    /// What is wrong, and on a second line what to do.
    fn custom<T: fmt::Display>(message: T) -> Self {
        let text = message.to_string();
        let (what, remedy) = text.split_once('\n').unwrap_or((&text, "correct it"));
        Self::new(what.to_owned(), remedy.to_owned())
    }

    fn invalid_type(found: Unexpected<'_>, wanted: &dyn serde::de::Expected) -> Self {
        let kind = match found {
            Unexpected::Bool(_) => "true or false",
            Unexpected::Unsigned(_) | Unexpected::Signed(_) => "a whole number",
            Unexpected::Float(_) => "a number with decimals",
            Unexpected::Unit | Unexpected::Option => "nothing",
            Unexpected::Seq => "a list",
            Unexpected::Map => "a table",
            _ => "text",
        };
        Self::new(format!("it is {kind}"), format!("give {wanted}"))
    }

    fn invalid_value(found: Unexpected<'_>, wanted: &dyn serde::de::Expected) -> Self {
        let what = match found {
            Unexpected::Unsigned(number) => format!("{number} is out of range"),
            Unexpected::Signed(number) => format!("{number} is out of range"),
            found => format!("{found} is not possible"),
        };
        Self::new(what, format!("give {wanted}"))
    }

    fn missing_field(field: &'static str) -> Self {
        let mut wrong = Self::new(format!("it has no `{field}`"), format!("add `{field}`"));
        wrong.0.missing = Some(field);
        wrong
    }

    fn duplicate_field(_field: &'static str) -> Self {
        let what = "it says the same as another key of this table";
        let mut wrong = Self::new(what.to_owned(), "keep one of them".to_owned());
        wrong.0.is_twice = true;
        wrong
    }
}

/// Reads one node.
#[derive(Clone)]
struct Reader<'de, 'r> {
    node: &'de Node,
    key: String,
    line: usize,
    /// The key of a table that named its variant.
    tag: Option<&'static str>,
    reading: &'r Reading<'r>,
}

impl<'de, 'r> Reader<'de, 'r> {
    fn spot(&self) -> Spot {
        Spot {
            address: address(self.node),
            key: self.key.clone(),
            line: self.line,
        }
    }

    fn entry(&self, entry: &'de Entry) -> Self {
        Self {
            node: &entry.node,
            key: below(&self.key, &entry.key),
            line: entry.line,
            tag: None,
            reading: self.reading,
        }
    }

    fn is_not(&self, wanted: &str) -> Wrong {
        let what = format!("it is {}", self.node.value.kind());
        Wrong::new(what, format!("give {wanted}"))
    }

    fn items(&self) -> Result<Items<'de, 'r>, Wrong> {
        match &self.node.value {
            Value::List(list) => Ok(Items {
                list,
                next: 0,
                count: None,
                reader: self.clone(),
            }),
            _ => Err(self.is_not("a list")),
        }
    }

    fn table(&self) -> Result<&'de [Entry], Wrong> {
        match &self.node.value {
            Value::Map(entries) => Ok(entries),
            _ => Err(self.is_not("a table of settings")),
        }
    }

    const fn is_table(&self) -> bool {
        matches!(self.node.value, Value::Map(_))
    }

    fn entries(&self, keeps_nothing: bool) -> Result<Entries<'de, 'r>, Wrong> {
        Ok(Entries {
            left: self.table()?.iter(),
            value: None,
            keeps_nothing,
            reader: self.clone(),
        })
    }

    /// Notes every key that is none of these, once.
    fn check_keys(&self, fields: &[&'static str]) -> Result<(), Wrong> {
        for entry in self.table()? {
            let key = entry.key.as_str();
            if fields.contains(&key) || self.tag == Some(key) {
                continue;
            }
            let is_new = self
                .reading
                .left_out
                .borrow_mut()
                .insert(address(&entry.node));
            if is_new {
                let spot = self.entry(entry);
                let remedy = unknown(key, fields, &self.key);
                let mut faults = self.reading.faults.borrow_mut();
                faults.at_key(entry.line, &spot.key, "there is no such key", remedy);
            }
        }
        Ok(())
    }

    /// Returns the variant that the table names, and where its fields are.
    fn variant(
        &self,
        style: Style,
        variants: &'static [&'static str],
    ) -> Result<(&'de str, Self), Wrong> {
        match (style, &self.node.value) {
            (Style::Tagged { tag, otherwise }, Value::Map(entries)) => {
                let mut inner = self.clone();
                inner.tag = Some(tag);
                let named = entries.iter().find(|entry| entry.key == tag);
                let Some(entry) = named.filter(|entry| entry.node.value != Value::Null) else {
                    let missing = || Wrong::missing_field(tag);
                    return otherwise.map(|word| (word, inner)).ok_or_else(missing);
                };
                let at_tag = self.entry(entry);
                let spot = || Spot {
                    address: address(self.node),
                    key: at_tag.key.clone(),
                    line: at_tag.line,
                };
                let word = at_tag.word(variants).map_err(|wrong| wrong.at(spot))?;
                Ok((word, inner))
            }
            (Style::Tagged { .. }, _) => Err(self.is_not("a table of settings")),
            (Style::Text(variant), Value::Text(_)) => Ok((variant, self.clone())),
            (Style::Text(_) | Style::Plain, Value::Map(entries)) => {
                self.check_keys(variants)?;
                let is_whole = |entry: &&Entry| !self.reading.is_left_out(&entry.node);
                let mut known = entries.iter().filter(is_whole);
                match (known.next(), known.next()) {
                    (Some(only), None) => Ok((&only.key, self.entry(only))),
                    (Some(first), Some(second)) => {
                        let what =
                            format!("`{}` and `{}` stand in one table", first.key, second.key);
                        let remedy = "write each in a table of its own";
                        Err(Wrong::new(what, remedy.to_owned()))
                    }
                    (None, _) if entries.is_empty() => {
                        let remedy = format!("write one of {}", variants.join(", "));
                        Err(Wrong::new("it says nothing".to_owned(), remedy))
                    }
                    (None, _) => Err(Wrong::known()),
                }
            }
            (Style::Text(_), _) => {
                let variants = variants.join(", ");
                Err(self.is_not(&format!("text, or a table with one of {variants}")))
            }
            (Style::Plain, _) => Ok((self.word(variants)?, self.clone())),
        }
    }

    fn word(&self, variants: &[&'static str]) -> Result<&'de str, Wrong> {
        let Value::Text(text) = &self.node.value else {
            return Err(self.is_not(&format!("one of {}", variants.join(", "))));
        };
        if variants.contains(&text.trim()) {
            return Ok(text.trim());
        }
        let remedy = did_you_mean(text, variants, "use");
        Err(Wrong::new(format!("there is no {:?}", short(text)), remedy))
    }

    fn whole<T: TryFrom<i64>>(&self, max: &dyn fmt::Display) -> Result<T, Wrong> {
        let wanted = format!("a whole number from 0 to {max}");
        let Value::Whole(number) = self.node.value else {
            return Err(self.is_not(&wanted));
        };
        let what = format!("{number} is out of range");
        T::try_from(number).map_err(|_| Wrong::new(what, format!("give {wanted}")))
    }
}

fn unknown(key: &str, fields: &[&'static str], prefix: &str) -> String {
    match crate::fault::nearest(key, fields.iter().copied()) {
        Some(name) => format!("did you mean `{}`?", below(prefix, name)),
        None if fields.is_empty() => "leave it out".to_owned(),
        None => format!("there are {}", fields.join(", ")),
    }
}

/// How the variants of an enumeration are written.
#[derive(Clone, Copy)]
enum Style {
    /// A word, or a table with one key.
    Plain,
    /// A table with a key that names the variant.
    Tagged {
        tag: &'static str,
        otherwise: Option<&'static str>,
    },
    /// As [`Style::Plain`], or a text that stands for one variant.
    Text(&'static str),
}

impl Style {
    fn of(name: &'static str) -> Self {
        if let Some(variant) = name.strip_prefix("text is ") {
            return Self::Text(variant);
        }
        let Some(tag) = name.strip_prefix("by ") else {
            return Self::Plain;
        };
        match tag.split_once(" or ") {
            Some((tag, word)) => Self::Tagged {
                tag,
                otherwise: Some(word),
            },
            None => Self::Tagged {
                tag,
                otherwise: None,
            },
        }
    }
}

impl<'de> Deserializer<'de> for Reader<'de, '_> {
    type Error = Wrong;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        match &self.node.value {
            Value::Null => visitor.visit_unit(),
            Value::Bool(truth) => visitor.visit_bool(*truth),
            Value::Whole(number) => visitor.visit_i64(*number),
            Value::Real(number) => visitor.visit_f64(*number),
            Value::Text(text) => visitor.visit_borrowed_str(text),
            Value::List(_) => visitor.visit_seq(self.items()?),
            Value::Map(_) => visitor.visit_map(self.entries(true)?),
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        match self.node.value {
            Value::Bool(truth) => visitor.visit_bool(truth),
            _ => Err(self.is_not("true or false")),
        }
    }

    fn deserialize_u8<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        visitor.visit_u8(self.whole(&u8::MAX)?)
    }

    fn deserialize_u16<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        visitor.visit_u16(self.whole(&u16::MAX)?)
    }

    fn deserialize_u32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        visitor.visit_u32(self.whole(&u32::MAX)?)
    }

    fn deserialize_u64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        visitor.visit_u64(self.whole(&i64::MAX)?)
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        match self.node.value {
            Value::Whole(number) => visitor.visit_i64(number),
            Value::Real(number) => visitor.visit_f64(number),
            _ => Err(self.is_not("a number")),
        }
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        match &self.node.value {
            Value::Text(text) => visitor.visit_borrowed_str(text),
            _ => Err(self.is_not("text, in quotes where it looks like a number")),
        }
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        self.deserialize_str(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        match self.node.value {
            Value::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Wrong> {
        match (name, &self.node.value) {
            (SETTING, _) => visitor.visit_seq(Parts {
                part: 0,
                reader: self,
            }),
            (ONE_OR_MANY, Value::List(list)) => visitor.visit_seq(Items {
                count: Some(list.len()),
                ..self.items()?
            }),
            (ONE_OR_MANY, _) => visitor.visit_seq(One {
                count: Some(1),
                only: Some(self),
            }),
            _ => visitor.visit_newtype_struct(self),
        }
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        visitor.visit_seq(self.items()?)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        visitor.visit_map(self.entries(true)?)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Wrong> {
        if let (Some(key), false) = (name.strip_prefix("alone is "), self.is_table()) {
            return visitor.visit_map(Alone {
                key: Some(key),
                value: self,
            });
        }
        self.check_keys(fields)?;
        visitor
            .visit_map(self.entries(false)?)
            .map_err(|mut wrong| {
                if wrong.0.is_twice && wrong.0.spot.is_none() {
                    wrong.0.spot = self.reading.last_key.take();
                }
                let has_fault = |entry: &Entry| {
                    wrong.0.missing == Some(&entry.key) && self.reading.is_left_out(&entry.node)
                };
                match self.node.entries().iter().any(has_fault) && wrong.0.spot.is_none() {
                    true => Wrong::known(),
                    false => wrong,
                }
            })
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Wrong> {
        let style = Style::of(name);
        let (variant, inner) = self.variant(style, variants)?;
        let spot = || inner.spot();
        let access = Variant {
            variant,
            is_word: matches!(style, Style::Plain) && !self.is_table(),
            reader: inner.clone(),
        };
        visitor.visit_enum(access).map_err(|wrong| wrong.at(spot))
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        self.deserialize_str(visitor)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        visitor.visit_unit()
    }

    serde::forward_to_deserialize_any! {
        i8 i16 i32 i64 i128 u128 f32 char bytes byte_buf unit unit_struct tuple tuple_struct
    }
}

/// The items of a list, without those that have a fault.
struct Items<'de, 'r> {
    list: &'de [Node],
    next: usize,
    /// How many there are, for those who ask for it first.
    count: Option<usize>,
    reader: Reader<'de, 'r>,
}

impl<'de> SeqAccess<'de> for Items<'de, '_> {
    type Error = Wrong;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Wrong> {
        if let Some(count) = self.count.take() {
            return seed.deserialize(count.into_deserializer()).map(Some);
        }
        while let Some(node) = self.list.get(self.next) {
            let reader = Reader {
                node,
                key: format!("{}[{}]", self.reader.key, self.next),
                line: node.line,
                tag: None,
                reading: self.reader.reading,
            };
            self.next += 1;
            if !reader.reading.is_left_out(node) {
                let spot = reader.spot();
                let read = seed.deserialize(reader);
                return read.map(Some).map_err(|wrong| wrong.at(|| spot));
            }
        }
        Ok(None)
    }
}

/// A value that stands where a list could.
struct One<'de, 'r> {
    count: Option<usize>,
    only: Option<Reader<'de, 'r>>,
}

impl<'de> SeqAccess<'de> for One<'de, '_> {
    type Error = Wrong;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Wrong> {
        if let Some(count) = self.count.take() {
            return seed.deserialize(count.into_deserializer()).map(Some);
        }
        let only = self.only.take();
        only.map(|only| seed.deserialize(only)).transpose()
    }
}

/// The key, the line and the value of a setting.
struct Parts<'de, 'r> {
    part: usize,
    reader: Reader<'de, 'r>,
}

impl<'de> SeqAccess<'de> for Parts<'de, '_> {
    type Error = Wrong;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Wrong> {
        self.part += 1;
        let reader = &self.reader;
        match self.part {
            1 => seed.deserialize(reader.key.clone().into_deserializer()),
            2 => seed.deserialize(reader.line.into_deserializer()),
            3 => seed.deserialize(reader.clone()),
            _ => return Ok(None),
        }
        .map(Some)
    }
}

/// The entries of a table, without those that have a fault.
struct Entries<'de, 'r> {
    left: std::slice::Iter<'de, Entry>,
    value: Option<Reader<'de, 'r>>,
    /// Whether a key that is set to nothing is there.
    keeps_nothing: bool,
    reader: Reader<'de, 'r>,
}

impl<'de> MapAccess<'de> for Entries<'de, '_> {
    type Error = Wrong;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Wrong> {
        let reader = &self.reader;
        let next = self.left.find(|entry| {
            let is_there = self.keeps_nothing || entry.node.value != Value::Null;
            let is_tag = reader.tag == Some(entry.key.as_str());
            is_there && !is_tag && !reader.reading.is_left_out(&entry.node)
        });
        let Some(entry) = next else { return Ok(None) };
        let value = reader.entry(entry);
        let spot = value.spot();
        *reader.reading.last_key.borrow_mut() = Some(value.spot());
        self.value = Some(value);
        let key: StrDeserializer<'_, Wrong> = entry.key.as_str().into_deserializer();
        let key = seed.deserialize(key);
        key.map(Some).map_err(|wrong| wrong.at(|| spot))
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Wrong> {
        let Some(value) = self.value.take() else {
            return Err(Wrong::custom("a value was asked for before its key"));
        };
        let spot = value.spot();
        let read = seed.deserialize(value);
        read.map_err(|wrong| wrong.at(|| spot))
    }
}

/// A value that stands for a table with one key.
struct Alone<'de, 'r> {
    key: Option<&'static str>,
    value: Reader<'de, 'r>,
}

impl<'de> MapAccess<'de> for Alone<'de, '_> {
    type Error = Wrong;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Wrong> {
        let Some(key) = self.key.take() else {
            return Ok(None);
        };
        let key: StrDeserializer<'_, Wrong> = key.into_deserializer();
        seed.deserialize(key).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Wrong> {
        seed.deserialize(self.value.clone())
    }
}

/// One variant of an enumeration.
struct Variant<'de, 'r> {
    variant: &'de str,
    /// Whether the word is all there is.
    is_word: bool,
    reader: Reader<'de, 'r>,
}

impl<'de, 'r> EnumAccess<'de> for Variant<'de, 'r> {
    type Error = Wrong;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self), Wrong> {
        let name: StrDeserializer<'_, Wrong> = self.variant.into_deserializer();
        Ok((seed.deserialize(name)?, self))
    }
}

impl<'de> VariantAccess<'de> for Variant<'de, '_> {
    type Error = Wrong;

    fn unit_variant(self) -> Result<(), Wrong> {
        match (self.is_word, self.reader.tag) {
            (true, _) => Ok(()),
            (false, Some(_)) => self.reader.check_keys(&[]),
            (false, None) => {
                let what = format!("`{}` has no value", self.variant);
                Err(Wrong::new(what, "write the word alone".to_owned()))
            }
        }
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Wrong> {
        if self.is_word {
            let what = format!("`{}` needs a value", self.variant);
            let remedy = format!("write it as `{}: …`", self.variant);
            return Err(Wrong::new(what, remedy));
        }
        seed.deserialize(self.reader)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _len: usize, visitor: V) -> Result<V::Value, Wrong> {
        self.reader.deserialize_seq(visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Wrong> {
        self.reader.deserialize_struct("", fields, visitor)
    }
}

#[cfg(test)]
mod tests;
