//! From a tree of settings to a type, by the type's own `Deserialize`, with every fault at once.
//!
//! Serde stops at the first error. Here what has a fault is noted, left out, and the rest is read
//! again, until nothing else is wrong. A key that a type does not have is always a fault; one that
//! is set to nothing is absent.

mod access;
mod style;
mod wrong;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::{fmt, ptr};

use serde::de::{Deserialize, Deserializer, Error as _, Visitor};

use crate::fault::{FAULTS_MAX, Faults, did_you_mean, short};
use crate::node::{SettingValue, TableEntry, ValueNode, below};
use crate::read::access::{KeylessValue, ListItems, One, SettingParts, TableEntries, Variant};
use crate::read::style::Style;
use crate::read::wrong::{ReadProblem, Spot};
use crate::setting::{ONE_OR_MANY, SETTING, Setting};

/// Reads a tree into a type; `None` when what is wrong with it leaves nothing of the type.
///
/// What is wrong is added to the faults. What is returned may lack the parts with a fault.
///
/// The name of an enumeration may say how its variants are written:
///
/// - `#[serde(rename = "by type")]`: a table whose key `type` names the variant; `"by type or x"`
///   where it is `x` when nothing is said.
/// - `#[serde(rename = "text is x")]`: a text stands for a table with the one key `x`.
///
/// The name of a struct may say what stands for a table of it:
///
/// - `#[serde(rename = "alone is x")]`: anything but a table stands for a table with the one key `x`.
pub fn read<'de, T: Deserialize<'de>>(root: &'de ValueNode, faults: &mut Faults) -> Option<T> {
    let said = Setting {
        value: root,
        key: String::new(),
        line: root.line,
    };
    read_at(&said, faults)
}

/// Reads what stands below a key, as [`read`] reads a whole tree.
pub fn read_at<'de, T: Deserialize<'de>>(
    said: &Setting<&'de ValueNode>,
    faults: &mut Faults,
) -> Option<T> {
    let reading = TreeReading {
        faults: RefCell::new(faults),
        left_out: RefCell::default(),
        last_key: RefCell::default(),
    };
    let reader = NodeReader {
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
struct TreeReading<'a> {
    faults: RefCell<&'a mut Faults>,
    /// The addresses of nodes that have a fault.
    left_out: RefCell<BTreeSet<usize>>,
    /// The key that was read last.
    last_key: RefCell<Option<Spot>>,
}

impl TreeReading<'_> {
    fn is_left_out(&self, node: &ValueNode) -> bool {
        self.left_out.borrow().contains(&address(node))
    }
}

/// A node is known by where it is: the tree does not change while it is read.
fn address(node: &ValueNode) -> usize {
    ptr::from_ref(node).addr()
}

/// Reads one node.
#[derive(Clone)]
struct NodeReader<'de, 'r> {
    node: &'de ValueNode,
    key: String,
    line: usize,
    /// The key of a table that named its variant.
    tag: Option<&'static str>,
    reading: &'r TreeReading<'r>,
}

impl<'de, 'r> NodeReader<'de, 'r> {
    fn spot(&self) -> Spot {
        Spot {
            address: address(self.node),
            key: self.key.clone(),
            line: self.line,
        }
    }

    fn entry(&self, entry: &'de TableEntry) -> Self {
        Self {
            node: &entry.node,
            key: below(&self.key, &entry.key),
            line: entry.line,
            tag: None,
            reading: self.reading,
        }
    }

    fn is_not(&self, wanted: &str) -> ReadProblem {
        let what = format!("it is {}", self.node.value.kind());
        ReadProblem::new(what, format!("give {wanted}"))
    }

    fn items(&self) -> Result<ListItems<'de, 'r>, ReadProblem> {
        match &self.node.value {
            SettingValue::List(list) => Ok(ListItems {
                list,
                next: 0,
                count: None,
                reader: self.clone(),
            }),
            _ => Err(self.is_not("a list")),
        }
    }

    fn table(&self) -> Result<&'de [TableEntry], ReadProblem> {
        match &self.node.value {
            SettingValue::Map(entries) => Ok(entries),
            _ => Err(self.is_not("a table of settings")),
        }
    }

    const fn is_table(&self) -> bool {
        matches!(self.node.value, SettingValue::Map(_))
    }

    fn entries(&self, keeps_nothing: bool) -> Result<TableEntries<'de, 'r>, ReadProblem> {
        Ok(TableEntries {
            left: self.table()?.iter(),
            value: None,
            keeps_nothing,
            reader: self.clone(),
        })
    }

    /// Notes every key that is none of these, once.
    fn check_keys(&self, fields: &[&'static str]) -> Result<(), ReadProblem> {
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
                faults.at_key(entry.line, &spot.key, "unknown key", remedy);
            }
        }
        Ok(())
    }

    /// Returns the variant that the table names, and where its fields are.
    fn variant(
        &self,
        style: Style,
        variants: &'static [&'static str],
    ) -> Result<(&'de str, Self), ReadProblem> {
        match (style, &self.node.value) {
            (Style::Tagged { tag, otherwise }, SettingValue::Map(entries)) => {
                let mut inner = self.clone();
                inner.tag = Some(tag);
                let named = entries.iter().find(|entry| entry.key == tag);
                let Some(entry) = named.filter(|entry| entry.node.value != SettingValue::Null)
                else {
                    let missing = || ReadProblem::missing_field(tag);
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
            (Style::Text(variant), SettingValue::Text(_)) => Ok((variant, self.clone())),
            (Style::Text(_) | Style::Plain, SettingValue::Map(entries)) => {
                self.check_keys(variants)?;
                let is_whole = |entry: &&TableEntry| !self.reading.is_left_out(&entry.node);
                let mut known = entries.iter().filter(is_whole);
                match (known.next(), known.next()) {
                    (Some(only), None) => Ok((&only.key, self.entry(only))),
                    (Some(first), Some(second)) => {
                        let what = format!("`{}` and `{}` are in one table", first.key, second.key);
                        let remedy = "write each in a separate table";
                        Err(ReadProblem::new(what, remedy.to_owned()))
                    }
                    (None, _) if entries.is_empty() => {
                        let remedy = format!("write one of {}", variants.join(", "));
                        Err(ReadProblem::new("it is empty".to_owned(), remedy))
                    }
                    (None, _) => Err(ReadProblem::known()),
                }
            }
            (Style::Text(_), _) => {
                let variants = variants.join(", ");
                Err(self.is_not(&format!("text, or a table with one of {variants}")))
            }
            (Style::Plain, _) => Ok((self.word(variants)?, self.clone())),
        }
    }

    fn word(&self, variants: &[&'static str]) -> Result<&'de str, ReadProblem> {
        let SettingValue::Text(text) = &self.node.value else {
            return Err(self.is_not(&format!("one of {}", variants.join(", "))));
        };
        if variants.contains(&text.trim()) {
            return Ok(text.trim());
        }
        let remedy = did_you_mean(text, variants, "use");
        Err(ReadProblem::new(
            format!("unknown value {:?}", short(text)),
            remedy,
        ))
    }

    fn whole<T: TryFrom<i64>>(&self, max: &dyn fmt::Display) -> Result<T, ReadProblem> {
        let wanted = format!("a whole number from 0 to {max}");
        let SettingValue::Whole(number) = self.node.value else {
            return Err(self.is_not(&wanted));
        };
        let what = format!("{number} is out of range");
        T::try_from(number).map_err(|_| ReadProblem::new(what, format!("give {wanted}")))
    }
}

fn unknown(key: &str, fields: &[&'static str], prefix: &str) -> String {
    match crate::fault::nearest(key, fields.iter().copied()) {
        Some(name) => format!("did you mean `{}`?", below(prefix, name)),
        None if fields.is_empty() => "remove it".to_owned(),
        None => format!("use one of {}", fields.join(", ")),
    }
}

impl<'de> Deserializer<'de> for NodeReader<'de, '_> {
    type Error = ReadProblem;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadProblem> {
        match &self.node.value {
            SettingValue::Null => visitor.visit_unit(),
            SettingValue::Bool(truth) => visitor.visit_bool(*truth),
            SettingValue::Whole(number) => visitor.visit_i64(*number),
            SettingValue::Real(number) => visitor.visit_f64(*number),
            SettingValue::Text(text) => visitor.visit_borrowed_str(text),
            SettingValue::List(_) => visitor.visit_seq(self.items()?),
            SettingValue::Map(_) => visitor.visit_map(self.entries(true)?),
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadProblem> {
        match self.node.value {
            SettingValue::Bool(truth) => visitor.visit_bool(truth),
            _ => Err(self.is_not("true or false")),
        }
    }

    fn deserialize_u8<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadProblem> {
        visitor.visit_u8(self.whole(&u8::MAX)?)
    }

    fn deserialize_u16<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadProblem> {
        visitor.visit_u16(self.whole(&u16::MAX)?)
    }

    fn deserialize_u32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadProblem> {
        visitor.visit_u32(self.whole(&u32::MAX)?)
    }

    fn deserialize_u64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadProblem> {
        visitor.visit_u64(self.whole(&i64::MAX)?)
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadProblem> {
        match self.node.value {
            SettingValue::Whole(number) => visitor.visit_i64(number),
            SettingValue::Real(number) => visitor.visit_f64(number),
            _ => Err(self.is_not("a number")),
        }
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadProblem> {
        match &self.node.value {
            SettingValue::Text(text) => visitor.visit_borrowed_str(text),
            _ => Err(self.is_not("text (in quotes if it looks like a number)")),
        }
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadProblem> {
        self.deserialize_str(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadProblem> {
        match self.node.value {
            SettingValue::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, ReadProblem> {
        match (name, &self.node.value) {
            (SETTING, _) => visitor.visit_seq(SettingParts {
                part: 0,
                reader: self,
            }),
            (ONE_OR_MANY, SettingValue::List(list)) => visitor.visit_seq(ListItems {
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

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadProblem> {
        visitor.visit_seq(self.items()?)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadProblem> {
        visitor.visit_map(self.entries(true)?)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadProblem> {
        if let (Some(key), false) = (name.strip_prefix("alone is "), self.is_table()) {
            return visitor.visit_map(KeylessValue {
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
                let has_fault = |entry: &TableEntry| {
                    wrong.0.missing == Some(&entry.key) && self.reading.is_left_out(&entry.node)
                };
                match self.node.entries().iter().any(has_fault) && wrong.0.spot.is_none() {
                    true => ReadProblem::known(),
                    false => wrong,
                }
            })
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadProblem> {
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

    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadProblem> {
        self.deserialize_str(visitor)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadProblem> {
        visitor.visit_unit()
    }

    serde::forward_to_deserialize_any! {
        i8 i16 i32 i64 i128 u128 f32 char bytes byte_buf unit unit_struct tuple tuple_struct
    }
}

#[cfg(test)]
mod tests;
