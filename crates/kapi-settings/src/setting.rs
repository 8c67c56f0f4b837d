//! A value with the key and the line it stands at, and one value or a list of them.
//!
//! Both are asked for by name, because serde has no other way to ask for more than a value.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, Error as _, SeqAccess, Visitor};

/// By which a [`Setting`] is asked for.
pub(crate) const SETTING: &str = "kapi::Setting";
/// By which a [`OneOrMany`] is asked for.
pub(crate) const ONE_OR_MANY: &str = "kapi::OneOrMany";

/// A value, and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting<T> {
    /// The value.
    pub value: T,
    /// Its key, with those above it: `trigger.schedule`.
    pub key: String,
    /// The line of its key, from 1.
    pub line: usize,
}

impl<T> Setting<T> {
    /// Returns another value at the same location.
    pub fn with<U>(&self, value: U) -> Setting<U> {
        Setting {
            value,
            key: self.key.clone(),
            line: self.line,
        }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Setting<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_newtype_struct(SETTING, SettingVisitor(PhantomData))
    }
}

struct SettingVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for SettingVisitor<T> {
    type Value = Setting<T>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a setting of a tree of settings")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<Setting<T>, A::Error> {
        let short = || A::Error::custom("it is not a settings tree");
        Ok(Setting {
            key: parts.next_element()?.ok_or_else(short)?,
            line: parts.next_element()?.ok_or_else(short)?,
            value: parts.next_element()?.ok_or_else(short)?,
        })
    }
}

/// One value, or a list of `MIN` to `MAX` of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OneOrMany<T, const MIN: usize, const MAX: usize>(pub Vec<T>);

impl<T, const MIN: usize, const MAX: usize> Default for OneOrMany<T, MIN, MAX> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, T, const MIN: usize, const MAX: usize> Deserialize<'de> for OneOrMany<T, MIN, MAX>
where
    T: Deserialize<'de>,
{
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_newtype_struct(ONE_OR_MANY, Several::<T, MIN, MAX>(PhantomData))
    }
}

struct Several<T, const MIN: usize, const MAX: usize>(PhantomData<T>);

impl<'de, T: Deserialize<'de>, const MIN: usize, const MAX: usize> Visitor<'de>
    for Several<T, MIN, MAX>
{
    type Value = OneOrMany<T, MIN, MAX>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("one value or a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        // How many there are in the file; those with a fault do not follow.
        let count: usize = items.next_element()?.unwrap_or_default();
        if !(MIN..=MAX).contains(&count) {
            let what = format!("it has {count} entries\ngive {MIN} to {MAX}");
            return Err(A::Error::custom(what));
        }
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(OneOrMany(list))
    }
}
