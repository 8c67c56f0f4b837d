//! A JSON object or array whose parts stay as they were written.
//!
//! Order and spelling matter to providers' caches, so only what is changed is written anew. A name
//! that stands twice is refused: two readers could read it differently.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// The members of an object, in their order.
#[derive(Debug, Default)]
pub(crate) struct Members<'a>(pub(crate) Vec<Member<'a>>);

/// One member of an object.
#[derive(Debug)]
pub(crate) struct Member<'a> {
    pub(crate) name: Cow<'a, str>,
    pub(crate) value: Cow<'a, str>,
}

impl<'a> Members<'a> {
    /// Reads an object.
    pub(crate) fn parse(text: &'a str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }

    /// Returns the text of a member's value.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|member| member.name == name)?;
        Some(&found.value)
    }

    /// Gives a member another value; a new one comes last.
    pub(crate) fn set(&mut self, name: &str, value: String) {
        let value = Cow::Owned(value);
        match self.0.iter_mut().find(|member| member.name == name) {
            Some(member) => member.value = value,
            None => self.0.push(Member {
                name: Cow::Owned(name.to_owned()),
                value,
            }),
        }
    }

    /// Takes a member out; tells whether it was there and not `null`.
    pub(crate) fn remove(&mut self, name: &str) -> bool {
        let found = self.0.iter().position(|member| member.name == name);
        found.is_some_and(|idx| self.0.remove(idx).value != "null")
    }

    /// Returns the object's text.
    pub(crate) fn text(&self) -> String {
        let parts: Vec<String> = self
            .0
            .iter()
            .map(|member| {
                let name = serde_json::Value::from(member.name.as_ref());
                format!("{name}:{}", member.value)
            })
            .collect();
        format!("{{{}}}", parts.join(","))
    }
}

/// Reads the elements of an array.
pub(crate) fn elements(text: &str) -> Result<Vec<&str>, serde_json::Error> {
    let raw: Vec<&RawValue> = serde_json::from_str(text)?;
    Ok(raw.into_iter().map(RawValue::get).collect())
}

/// Returns an array's text.
pub(crate) fn array(elements: &[Cow<'_, str>]) -> String {
    format!("[{}]", elements.join(","))
}

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(MembersVisitor)
    }
}

struct MembersVisitor;

impl<'de> Visitor<'de> for MembersVisitor {
    type Value = Members<'de>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Members::default();
        while let Some(name) = map.next_key::<MemberName<'de>>()? {
            let MemberName(name) = name;
            let value: &RawValue = map.next_value()?;
            if members.get(&name).is_some() {
                return Err(A::Error::custom(format!("`{name}` stands twice")));
            }
            members.0.push(Member {
                name,
                value: Cow::Borrowed(value.get()),
            });
        }
        Ok(members)
    }
}

/// A name, borrowed where it has no escapes.
#[derive(Deserialize)]
struct MemberName<'a>(#[serde(borrow)] Cow<'a, str>);

#[cfg(test)]
mod tests {
    use super::Members;

    #[test]
    fn what_is_not_changed_stays_as_it_was_written() {
        let mut members = Members::parse(r#"{ "b" : 1.50, "a\u0062" :[ 1 ], "c":null}"#).unwrap();
        assert_eq!(members.get("ab"), Some("[ 1 ]"));
        members.set("b", "2".to_owned());
        members.set("d", "{}".to_owned());
        assert!(!members.remove("c") && !members.remove("e"));
        assert_eq!(members.text(), r#"{"b":2,"ab":[ 1 ],"d":{}}"#);
    }

    #[test]
    fn a_name_that_stands_twice_is_refused_in_any_spelling() {
        assert!(Members::parse(r#"{"a":1,"\u0061":2}"#).is_err());
        assert!(Members::parse("[]").is_err());
    }
}
