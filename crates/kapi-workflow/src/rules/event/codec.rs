//! How a fact is written and read: one of every mode by its own table, one of a single mode by that
//! mode's, both as `{"type": …, "data": …}`.
//!
//! The type stands first in every line that Kapi wrote, so nothing is read twice and nothing is put
//! aside. A line that begins with something else is refused.

use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeSeed, Error as _, IntoDeserializer as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::rules::event::WorkflowEvent;
use crate::rules::modes::ModeEvent;

const TYPE: &str = "type";
const DATA: &str = "data";

/// The facts that every mode shares, by name, in the order of their definition.
const SHARED: &[&str] = &[
    "started",
    "decision_asked",
    "approved",
    "revised",
    "blocked",
    "unblocked",
    "limits_raised",
    "abandoned",
    "failed",
    "completed",
    "integrated",
    "evidence_recorded",
    "conflict_found",
    "conflict_settled",
    "worker_prepared",
    "worker_dispatched",
    "worker_refreshed",
    "worker_closed",
    "effect_intended",
    "effect_used",
    "run_recorded",
    "goal_used",
    "time_used",
    "effect_ended",
];

impl Serialize for WorkflowEvent {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        if let Self::Mode(event) = self {
            event.serialize(to)
        } else {
            Self::serialize(self, to)
        }
    }
}

impl<'de> Deserialize<'de> for WorkflowEvent {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(TypeFirst)
    }
}

struct TypeFirst;

impl<'de> Visitor<'de> for TypeFirst {
    type Value = WorkflowEvent;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("adjacently tagged enum Event")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<WorkflowEvent, A::Error> {
        let key: Option<String> = map.next_key()?;
        match key.as_deref() {
            Some(TYPE) => {}
            Some(other) => return Err(A::Error::unknown_field(other, &[TYPE, DATA])),
            None => return Err(A::Error::missing_field(TYPE)),
        }
        let kind: String = map.next_value()?;
        let is_of_mode = ModeEvent::KINDS.contains(&kind.as_str());
        if !is_of_mode && !SHARED.contains(&kind.as_str()) {
            let known: Vec<String> = [SHARED, ModeEvent::KINDS]
                .concat()
                .iter()
                .map(|known| format!("`{known}`"))
                .collect();
            let known = known.join(", ");
            let message = format!("unknown variant `{kind}`, expected one of {known}");
            return Err(A::Error::custom(message));
        }
        let kind = Some(kind);
        let from = MapAccessDeserializer::new(TaggedMap { kind, map });
        if is_of_mode {
            ModeEvent::deserialize(from).map(WorkflowEvent::Mode)
        } else {
            WorkflowEvent::deserialize(from)
        }
    }
}

/// A map whose first entry was taken out, and is said again.
struct TaggedMap<A> {
    kind: Option<String>,
    map: A,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for TaggedMap<A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, A::Error> {
        if self.kind.is_some() {
            return seed.deserialize(TYPE.into_deserializer()).map(Some);
        }
        self.map.next_key_seed(seed)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, A::Error> {
        match self.kind.take() {
            Some(kind) => seed.deserialize(kind.into_deserializer()),
            None => self.map.next_value_seed(seed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::SHARED;
    use crate::rules::event::WorkflowEvent;
    use crate::rules::modes::ModeEvent;

    fn refusal(line: &str) -> String {
        serde_json::from_str::<WorkflowEvent>(line)
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn the_names_are_those_of_the_facts() {
        let mut from = serde_json::Deserializer::from_str(r#"{"type":"nothing"}"#);
        let derived = WorkflowEvent::deserialize(&mut from)
            .unwrap_err()
            .to_string();
        let shared = derived.split('`').skip(3).step_by(2);
        assert_eq!(shared.collect::<Vec<_>>(), SHARED);
        let derived = serde_json::from_str::<ModeEvent>(r#"{"type":"nothing"}"#);
        let derived = derived.unwrap_err().to_string();
        let of_modes = derived.split('`').skip(3).step_by(2);
        assert_eq!(of_modes.collect::<Vec<_>>(), ModeEvent::KINDS);
    }

    #[test]
    fn what_is_not_known_is_refused() {
        let unknown = refusal(r#"{"type":"danced","data":{}}"#);
        assert!(
            unknown.starts_with("unknown variant `danced`, expected one of `started`, "),
            "{unknown}"
        );
        let of_modes = ModeEvent::KINDS.join("`, `");
        assert!(
            unknown.contains(&format!("`effect_ended`, `{of_modes}` at line 1")),
            "{unknown}"
        );
        for line in [
            "{}",
            "[]",
            "7",
            r#"{"data":{},"type":"unblocked"}"#,
            r#"{"type":"unblocked","data":{},"more":1}"#,
            r#"{"type":"unblocked","data":{},"data":{}}"#,
            r#"{"type":"unblocked","type":"unblocked","data":{}}"#,
            r#"{"type":"unblocked","data":{"more":1}}"#,
            r#"{"type":"ralph","data":{"consensus_missed":{"cycle":2,"more":1}}}"#,
            r#"{"type":"ralph","data":{"consensus_missed":{"cycle":2}},"more":1}"#,
            r#"{"type":"ralph"}"#,
            r#"{"type":"mode","data":{}}"#,
        ] {
            assert!(
                serde_json::from_str::<WorkflowEvent>(line).is_err(),
                "{line}"
            );
        }
    }
}
