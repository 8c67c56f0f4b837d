//! The part of JSON Schema that the shipped schemas use, read strictly: `type`, `const`, `enum`,
//! `properties`, `required`, `items`, `anyOf`, `$ref`. Any other word in them is a fault.

use std::fs;
use std::path::Path;

use serde_json::{Map, Value};

/// Words that say nothing about a value.
const WORDS_FOR_PEOPLE: [&str; 2] = ["description", "title"];
const WORDS: [&str; 8] = [
    "type",
    "const",
    "enum",
    "properties",
    "required",
    "items",
    "anyOf",
    "$ref",
];

/// The schemas, and which command prints which.
pub(super) struct Schemas {
    defs: Map<String, Value>,
    commands: Map<String, Value>,
}

impl Schemas {
    pub(super) fn load() -> Self {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schemas");
        let read = |name: &str| -> Value {
            serde_json::from_str(&fs::read_to_string(dir.join(name)).unwrap()).unwrap()
        };
        let object = |value: &Value| value.as_object().unwrap().clone();
        Self {
            defs: object(&read("kapi.schema.json")["$defs"]),
            commands: object(&read("commands.json")),
        }
    }

    /// Checks a line of a command.
    pub(super) fn check(&self, args: &[&str], line: &Value) {
        if let Some(fault) = self.fault(args, line) {
            panic!("{args:?}: {fault}\n{line:#}");
        }
    }

    /// Returns what is wrong with a line of a command.
    pub(super) fn fault(&self, args: &[&str], line: &Value) -> Option<String> {
        let mut keys = (1..=args.len())
            .rev()
            .map(|n_words| args[..n_words].join(" "));
        let printed = keys.find_map(|key| self.commands.get(&key));
        let printed = printed.unwrap_or_else(|| panic!("{args:?} is in no schema"));
        let names = printed.as_array().unwrap().iter();
        let names = names.map(|name| name.as_str().unwrap()).chain(["error"]);
        let mut faults = Vec::new();
        for name in names {
            match self.apply(&self.defs[name], line, name) {
                Ok(()) => return None,
                Err(fault) => faults.push(fault),
            }
        }
        Some(faults.join("; "))
    }

    fn apply(&self, schema: &Value, value: &Value, place: &str) -> Result<(), String> {
        let schema = self.resolved(schema);
        if let Some(several) = schema.get("anyOf") {
            let mut tried = several.as_array().unwrap().iter();
            let is_one = tried.any(|one| self.apply(one, value, place).is_ok());
            return if is_one {
                Ok(())
            } else {
                Err(format!("{place}: none of them"))
            };
        }
        if let Some(wanted) = schema.get("const").filter(|wanted| *wanted != value) {
            return Err(format!("{place}: {value} is not {wanted}"));
        }
        let words = schema.get("enum").and_then(Value::as_array);
        if words.is_some_and(|words| !words.contains(value)) {
            return Err(format!("{place}: {value} is not one of them"));
        }
        if schema
            .get("type")
            .is_some_and(|wanted| !is_of(value, wanted))
        {
            return Err(format!("{place}: {value} is no {}", schema["type"]));
        }
        if let (Some(known), Some(fields)) = (schema.get("properties"), value.as_object()) {
            let required = schema.get("required").and_then(Value::as_array);
            let mut required = required.into_iter().flatten().filter_map(Value::as_str);
            if let Some(name) = required.find(|name| !fields.contains_key(*name)) {
                return Err(format!("{place} has no {name}"));
            }
            for (name, field) in fields {
                let known = known.get(name);
                let known = known.ok_or_else(|| format!("{place} has {name}, which is unknown"))?;
                self.apply(known, field, &format!("{place}.{name}"))?;
            }
        }
        if let (Some(items), Some(list)) = (schema.get("items"), value.as_array()) {
            for item in list {
                self.apply(items, item, &format!("{place}[]"))?;
            }
        }
        Ok(())
    }

    /// Returns a schema with what it refers to; its own words add to that.
    fn resolved(&self, schema: &Value) -> Map<String, Value> {
        let mut own = schema.as_object().unwrap().clone();
        for word in own.keys() {
            let is_known =
                WORDS.contains(&word.as_str()) || WORDS_FOR_PEOPLE.contains(&word.as_str());
            assert!(is_known, "{word} in a schema");
        }
        let Some(reference) = own.remove("$ref") else {
            return own;
        };
        let name = reference
            .as_str()
            .unwrap()
            .strip_prefix("#/$defs/")
            .unwrap();
        let mut base = self.resolved(&self.defs[name]);
        for (word, value) in own {
            match (base.get_mut(&word), value) {
                (Some(Value::Object(known)), Value::Object(more)) => known.extend(more),
                (Some(Value::Array(known)), Value::Array(more)) => known.extend(more),
                (_, value) => drop(base.insert(word, value)),
            }
        }
        base
    }
}

fn is_of(value: &Value, wanted: &Value) -> bool {
    let is = |word: &str| match word {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("{other} is no type"),
    };
    match wanted {
        Value::Array(words) => words.iter().any(|word| is(word.as_str().unwrap())),
        word => is(word.as_str().unwrap()),
    }
}
