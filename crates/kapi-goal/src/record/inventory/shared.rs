//! The serde form of a list whose items are shared in memory.
//!
//! On disk nothing tells that they are: it is the list itself. Does not know what the items are.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub(super) fn serialize<T, S>(items: &[Arc<T>], serializer: S) -> Result<S::Ok, S::Error>
where
    T: Serialize,
    S: Serializer,
{
    serializer.collect_seq(items.iter().map(Arc::as_ref))
}

pub(super) fn deserialize<'de, T, D>(deserializer: D) -> Result<Vec<Arc<T>>, D::Error>
where
    T: Deserialize<'de>,
    D: Deserializer<'de>,
{
    deserializer.deserialize_seq(InventoryItems(PhantomData))
}

/// Puts each item in its place as soon as it is read, so that none is copied once more.
struct InventoryItems<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for InventoryItems<T> {
    type Value = Vec<Arc<T>>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element()? {
            items.push(Arc::new(item));
        }
        Ok(items)
    }
}
