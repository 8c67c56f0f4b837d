//! A value in any format that says of itself what it holds: JSON, YAML, TOML.
//!
//! A key may stand once. Knows nothing of what keys mean.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde::ser::{Error as _, Serialize, Serializer};

use crate::value::Value;
use crate::value::decimal::Decimal;

impl Serialize for Value {
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

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Value;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Integer(value))
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<Value, E> {
        if let Ok(number) = i64::try_from(value) {
            return Ok(Value::Integer(number));
        }
        let number = Decimal::from_plain(value.to_string()).map(Value::Decimal);
        number.ok_or_else(|| E::custom("the number cannot be kept"))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        Value::from_float(value).ok_or_else(|| E::custom(format!("{value} is not a number")))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::Text(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::Text(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Value::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut entries = BTreeMap::new();
        while let Some((key, value)) = items.next_entry::<String, Value>()? {
            if entries.contains_key(&key) {
                return Err(A::Error::custom(format!("`{key}` is set twice")));
            }
            entries.insert(key, value);
        }
        Ok(Value::Map(entries))
    }
}
