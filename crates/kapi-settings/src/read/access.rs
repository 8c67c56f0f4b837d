//! The parts of lists, tables and enumerations, one after the other, as serde asks for them.
//!
//! What has a fault is passed over.

use serde::de::value::StrDeserializer;
use serde::de::{
    DeserializeSeed, Deserializer as _, EnumAccess, Error as _, IntoDeserializer as _, MapAccess,
    SeqAccess, VariantAccess, Visitor,
};

use crate::node::{SettingValue, TableEntry, ValueNode};
use crate::read::NodeReader;
use crate::read::wrong::ReadProblem;

/// The items of a list, without those that have a fault.
pub(super) struct ListItems<'de, 'r> {
    pub(super) list: &'de [ValueNode],
    pub(super) next: usize,
    /// How many there are, for those who ask for it first.
    pub(super) count: Option<usize>,
    pub(super) reader: NodeReader<'de, 'r>,
}

impl<'de> SeqAccess<'de> for ListItems<'de, '_> {
    type Error = ReadProblem;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, ReadProblem> {
        if let Some(count) = self.count.take() {
            return seed.deserialize(count.into_deserializer()).map(Some);
        }
        while let Some(node) = self.list.get(self.next) {
            let reader = NodeReader {
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
pub(super) struct One<'de, 'r> {
    pub(super) count: Option<usize>,
    pub(super) only: Option<NodeReader<'de, 'r>>,
}

impl<'de> SeqAccess<'de> for One<'de, '_> {
    type Error = ReadProblem;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, ReadProblem> {
        if let Some(count) = self.count.take() {
            return seed.deserialize(count.into_deserializer()).map(Some);
        }
        let only = self.only.take();
        only.map(|only| seed.deserialize(only)).transpose()
    }
}

/// The key, the line and the value of a setting.
pub(super) struct SettingParts<'de, 'r> {
    pub(super) part: usize,
    pub(super) reader: NodeReader<'de, 'r>,
}

impl<'de> SeqAccess<'de> for SettingParts<'de, '_> {
    type Error = ReadProblem;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, ReadProblem> {
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
pub(super) struct TableEntries<'de, 'r> {
    pub(super) left: std::slice::Iter<'de, TableEntry>,
    pub(super) value: Option<NodeReader<'de, 'r>>,
    /// Whether a key that is set to nothing is there.
    pub(super) keeps_nothing: bool,
    pub(super) reader: NodeReader<'de, 'r>,
}

impl<'de> MapAccess<'de> for TableEntries<'de, '_> {
    type Error = ReadProblem;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, ReadProblem> {
        let reader = &self.reader;
        let next = self.left.find(|entry| {
            let is_there = self.keeps_nothing || entry.node.value != SettingValue::Null;
            let is_tag = reader.tag == Some(entry.key.as_str());
            is_there && !is_tag && !reader.reading.is_left_out(&entry.node)
        });
        let Some(entry) = next else { return Ok(None) };
        let value = reader.entry(entry);
        let spot = value.spot();
        *reader.reading.last_key.borrow_mut() = Some(value.spot());
        self.value = Some(value);
        let key: StrDeserializer<'_, ReadProblem> = entry.key.as_str().into_deserializer();
        let key = seed.deserialize(key);
        key.map(Some).map_err(|wrong| wrong.at(|| spot))
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(
        &mut self,
        seed: V,
    ) -> Result<V::Value, ReadProblem> {
        let Some(value) = self.value.take() else {
            return Err(ReadProblem::custom("a value was asked for before its key"));
        };
        let spot = value.spot();
        let read = seed.deserialize(value);
        read.map_err(|wrong| wrong.at(|| spot))
    }
}

/// A value that stands for a table with one key.
pub(super) struct KeylessValue<'de, 'r> {
    pub(super) key: Option<&'static str>,
    pub(super) value: NodeReader<'de, 'r>,
}

impl<'de> MapAccess<'de> for KeylessValue<'de, '_> {
    type Error = ReadProblem;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, ReadProblem> {
        let Some(key) = self.key.take() else {
            return Ok(None);
        };
        let key: StrDeserializer<'_, ReadProblem> = key.into_deserializer();
        seed.deserialize(key).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(
        &mut self,
        seed: V,
    ) -> Result<V::Value, ReadProblem> {
        seed.deserialize(self.value.clone())
    }
}

/// One variant of an enumeration.
pub(super) struct Variant<'de, 'r> {
    pub(super) variant: &'de str,
    /// Whether the word is all there is.
    pub(super) is_word: bool,
    pub(super) reader: NodeReader<'de, 'r>,
}

impl<'de, 'r> EnumAccess<'de> for Variant<'de, 'r> {
    type Error = ReadProblem;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(
        self,
        seed: V,
    ) -> Result<(V::Value, Self), ReadProblem> {
        let name: StrDeserializer<'_, ReadProblem> = self.variant.into_deserializer();
        Ok((seed.deserialize(name)?, self))
    }
}

impl<'de> VariantAccess<'de> for Variant<'de, '_> {
    type Error = ReadProblem;

    fn unit_variant(self) -> Result<(), ReadProblem> {
        match (self.is_word, self.reader.tag) {
            (true, _) => Ok(()),
            (false, Some(_)) => self.reader.check_keys(&[]),
            (false, None) => {
                let what = format!("`{}` has no value", self.variant);
                Err(ReadProblem::new(what, "write the word alone".to_owned()))
            }
        }
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(
        self,
        seed: T,
    ) -> Result<T::Value, ReadProblem> {
        if self.is_word {
            let what = format!("`{}` needs a value", self.variant);
            let remedy = format!("write it as `{}: …`", self.variant);
            return Err(ReadProblem::new(what, remedy));
        }
        seed.deserialize(self.reader)
    }

    fn tuple_variant<V: Visitor<'de>>(
        self,
        _len: usize,
        visitor: V,
    ) -> Result<V::Value, ReadProblem> {
        self.reader.deserialize_seq(visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadProblem> {
        self.reader.deserialize_struct("", fields, visitor)
    }
}
