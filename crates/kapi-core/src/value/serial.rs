//! A value in any format that says of itself what it holds: JSON, YAML, TOML.
//!
//! A key may stand once. Knows nothing of what keys mean.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde::ser::{Error as _, Serialize, Serializer};

use crate::value::KernelValue;
use crate::value::decimal::Decimal;

impl Serialize for KernelValue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::Bool(is_true) => serializer.serialize_bool(*is_true),
            Self::Integer(number) => serializer.serialize_i64(*number),
            Self::Decimal(number) => match number.as_str().parse::<u64>() {
                Ok(whole) => serializer.serialize_u64(whole),
                Err(_) => {
                    let number: f64 = number.as_str().parse().map_err(S::Error::custom)?;
                    serializer.serialize_f64(number)
                }
            },
            Self::Text(text) => serializer.serialize_str(text),
            Self::List(items) => serializer.collect_seq(items),
            Self::Map(entries) => serializer.collect_map(entries),
        }
    }
}

impl<'de> Deserialize<'de> for KernelValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ValueReader)
    }
}

struct ValueReader;

impl<'de> Visitor<'de> for ValueReader {
    type Value = KernelValue;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<KernelValue, E> {
        Ok(KernelValue::Null)
    }

    fn visit_none<E>(self) -> Result<KernelValue, E> {
        Ok(KernelValue::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<KernelValue, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_bool<E>(self, value: bool) -> Result<KernelValue, E> {
        Ok(KernelValue::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<KernelValue, E> {
        Ok(KernelValue::Integer(value))
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<KernelValue, E> {
        if let Ok(number) = i64::try_from(value) {
            return Ok(KernelValue::Integer(number));
        }
        let number = Decimal::from_plain(value.to_string()).map(KernelValue::Decimal);
        number.ok_or_else(|| E::custom("the number cannot be kept"))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<KernelValue, E> {
        KernelValue::from_float(value).ok_or_else(|| E::custom(format!("{value} is not a number")))
    }

    fn visit_str<E>(self, value: &str) -> Result<KernelValue, E> {
        Ok(KernelValue::Text(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<KernelValue, E> {
        Ok(KernelValue::Text(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<KernelValue, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(KernelValue::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut items: A) -> Result<KernelValue, A::Error> {
        let mut entries = BTreeMap::new();
        while let Some((key, value)) = items.next_entry::<String, KernelValue>()? {
            if entries.contains_key(&key) {
                return Err(A::Error::custom(format!("`{key}` is set twice")));
            }
            entries.insert(key, value);
        }
        Ok(KernelValue::Map(entries))
    }
}
