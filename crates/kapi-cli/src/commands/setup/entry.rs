//! One entry in a client's settings, put in or taken out with everything else left as it is written:
//! comments, order, indentation.
//!
//! Knows the two formats and no client. What comes out is read again: it must say what was there and
//! the entry, nothing less and nothing more.

use jsonc_parser::{ParseOptions, parse_to_serde_value};
use kapi_settings::jsonc::edit::{self, JsoncEditError};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// How a file of settings is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum SettingsFormat {
    /// JSON, with comments where the client allows them.
    Json,
    /// TOML.
    Toml,
}

/// A place in a file of settings and what stands there.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SettingsEntry {
    /// How the file is written.
    pub(super) format: SettingsFormat,
    /// The names from the outside in; the last is the entry's own.
    pub(super) keys: Vec<String>,
    /// What stands there.
    pub(super) value: Value,
}

/// Why an entry cannot be put in or taken out.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum EntryError {
    /// The file cannot be read as what it should be.
    #[error("it cannot be read: {what}")]
    Broken {
        /// What is wrong, and where.
        what: String,
    },
    /// A name on the way to the entry is something else than a group of entries.
    #[error("`{key}` is not a group of entries there")]
    NotGroup {
        /// The name.
        key: String,
    },
    /// Somebody else's entry has this name.
    #[error("it already has an entry `{keys}` that Kapi did not write")]
    Foreign {
        /// The names from the outside in.
        keys: String,
    },
    /// The format has no way to add the entry to what is there.
    #[error("`{keys}` cannot be added to the way it is written there")]
    NoRoom {
        /// The names from the outside in.
        keys: String,
    },
}

impl SettingsEntry {
    /// Returns its names for people.
    pub(super) fn dotted(&self) -> String {
        self.keys.join(".")
    }

    /// Returns the file with the entry in it; the very same where it is there already.
    pub(super) fn put_into(&self, text: &str) -> Result<String, EntryError> {
        let before = self.read(text)?;
        match self.find(&before)? {
            Some(found) if *found == self.value => return Ok(text.to_owned()),
            Some(_) => {
                return Err(EntryError::Foreign {
                    keys: self.dotted(),
                });
            }
            None => {}
        }
        let after = match self.format {
            SettingsFormat::Json => self.put_into_json(text)?,
            SettingsFormat::Toml => self.put_into_toml(text)?,
        };
        let mut wanted = before;
        self.insert(&mut wanted);
        if self.read(&after).ok().as_ref() != Some(&wanted) {
            return Err(EntryError::NoRoom {
                keys: self.dotted(),
            });
        }
        Ok(after)
    }

    /// Returns the file without the entry, where it is there as it was put in and the format lets it
    /// be taken out. A group that came with it, as `inserted` says, goes when nothing else is in it.
    pub(super) fn take_out_of(&self, text: &str, inserted: &str) -> Option<String> {
        let before = self.read(text).ok()?;
        if self.find(&before).ok()?? != &self.value || self.format == SettingsFormat::Toml {
            return None;
        }
        let came_along = |key: &str| inserted.contains(&format!("{key:?}"));
        edit::remove(text, &self.path(), &came_along)
    }

    /// Tells whether the entry is not there, or something else is.
    pub(super) fn is_absent(&self, text: &str) -> bool {
        let read = self.read(text);
        read.is_ok_and(|read| matches!(self.find(&read), Ok(None) | Err(_)))
    }

    fn read(&self, text: &str) -> Result<Value, EntryError> {
        let broken = |what: String| EntryError::Broken { what };
        if text.trim().is_empty() {
            return Ok(Value::Object(Map::new()));
        }
        match self.format {
            SettingsFormat::Json => parse_to_serde_value(text, &ParseOptions::default())
                .map_err(|error| broken(error.to_string())),
            SettingsFormat::Toml => toml::from_str::<Value>(text)
                .map_err(|error| broken(error.to_string().trim_end().to_owned())),
        }
    }

    fn find<'v>(&self, whole: &'v Value) -> Result<Option<&'v Value>, EntryError> {
        let mut found = whole;
        for (at, key) in self.keys.iter().enumerate() {
            let Some(group) = found.as_object() else {
                let key = at.checked_sub(1).and_then(|at| self.keys.get(at));
                return Err(EntryError::NotGroup {
                    key: key.map_or_else(|| "the whole file".to_owned(), Clone::clone),
                });
            };
            match group.get(key) {
                Some(inner) => found = inner,
                None => return Ok(None),
            }
        }
        Ok(Some(found))
    }

    fn insert(&self, whole: &mut Value) {
        let mut place = whole;
        for key in &self.keys {
            if !place.is_object() {
                *place = Value::Object(Map::new());
            }
            place = &mut place[key.as_str()];
        }
        *place = self.value.clone();
    }

    fn path(&self) -> Vec<&str> {
        self.keys.iter().map(String::as_str).collect()
    }

    fn put_into_json(&self, text: &str) -> Result<String, EntryError> {
        edit::set(text, &self.path(), &self.value).map_err(|error| match error {
            JsoncEditError::Broken { what } => EntryError::Broken { what },
            JsoncEditError::NotGroup { key } => EntryError::NotGroup {
                key: key.unwrap_or_else(|| "the whole file".to_owned()),
            },
        })
    }

    /// A table at the end of a file is one wherever other tables stand.
    fn put_into_toml(&self, text: &str) -> Result<String, EntryError> {
        let mut table = Value::Object(Map::new());
        self.insert(&mut table);
        let table = toml::to_string(&table).map_err(|error| EntryError::Broken {
            what: error.to_string(),
        })?;
        let gap = match text {
            "" => "",
            text if text.ends_with('\n') => "\n",
            _ => "\n\n",
        };
        Ok(format!("{text}{gap}{table}"))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{EntryError, SettingsEntry, SettingsFormat};

    fn entry(format: SettingsFormat, group: &str) -> SettingsEntry {
        SettingsEntry {
            format,
            keys: vec![group.to_owned(), "kapi".to_owned()],
            value: json!({"command": "/bin/kapi", "args": ["mcp"]}),
        }
    }

    fn check_json(before: &str, after: &str) {
        let entry = entry(SettingsFormat::Json, "mcpServers");
        let put = entry.put_into(before).unwrap();
        assert_eq!(put, after);
        assert_eq!(entry.put_into(&put).unwrap(), put, "a second time");
    }

    #[test]
    fn json_keeps_comments_order_and_indentation() {
        check_json(
            "",
            "{\n  \"mcpServers\": {\n    \"kapi\": {\n      \"args\": [\"mcp\"],\n      \
             \"command\": \"/bin/kapi\"\n    }\n  }\n}\n",
        );
        check_json(
            "{\n    // mine\n    \"z\": 1, // last\n    \"mcpServers\": {\n        \
             \"other\": {\"command\": \"x\"}, // keep\n    },\n    \"a\": [1, 2]\n}\n",
            "{\n    // mine\n    \"z\": 1, // last\n    \"mcpServers\": {\n        \
             \"other\": {\"command\": \"x\"}, // keep\n        \"kapi\": {\n            \
             \"args\": [\"mcp\"],\n            \"command\": \"/bin/kapi\",\n        },\n    },\n    \
             \"a\": [1, 2]\n}\n",
        );
    }

    #[test]
    fn toml_keeps_everything_and_gets_a_table() {
        let entry = entry(SettingsFormat::Toml, "mcp_servers");
        let table = "[mcp_servers.kapi]\nargs = [\"mcp\"]\ncommand = \"/bin/kapi\"\n";
        for before in [
            "",
            "model = \"m\" # mine\n\n[mcp_servers.other]\ncommand = \"x\"\n",
            "[a]\nb = 1",
        ] {
            let put = entry.put_into(before).unwrap();
            assert!(put.starts_with(before) && put.ends_with(table), "{put}");
            assert_eq!(entry.put_into(&put).unwrap(), put, "a second time");
        }
    }

    #[test]
    fn what_is_broken_or_somebody_elses_stays() {
        let json = entry(SettingsFormat::Json, "mcpServers");
        let toml = entry(SettingsFormat::Toml, "mcp_servers");
        for (entry, text, words) in [
            (&json, "{", "cannot be read"),
            (&json, "[]", "`the whole file` is not a group"),
            (&json, "{\"mcpServers\": 7}", "`mcpServers` is not a group"),
            (
                &json,
                "{\"mcpServers\": {\"kapi\": {\"command\": \"mine\"}}}",
                "an entry `mcpServers.kapi` that Kapi did not write",
            ),
            (&toml, "a = ", "cannot be read"),
            (&toml, "mcp_servers = 1", "`mcp_servers` is not a group"),
            (
                &toml,
                "mcp_servers = { other = { command = \"x\" } }",
                "`mcp_servers.kapi` cannot be added",
            ),
            (
                &toml,
                "[mcp_servers.kapi]\ncommand = \"mine\"",
                "that Kapi did not write",
            ),
        ] {
            let error: EntryError = entry.put_into(text).unwrap_err();
            assert!(error.to_string().contains(words), "{text}: {error}");
        }
    }

    #[test]
    fn an_entry_is_taken_out_as_it_was_put_in_and_not_otherwise() {
        let entry = entry(SettingsFormat::Json, "mcpServers");
        let with = "{\"a\": 1, \"mcpServers\": {\"kapi\": {\"args\": [\"mcp\"], \"command\": \
                    \"/bin/kapi\"}, \"mine\": {}}}";
        let without = entry.take_out_of(with, "\"kapi\": {}").unwrap();
        let read: Value = serde_json::from_str(&without).unwrap();
        assert_eq!(read, json!({"a": 1, "mcpServers": {"mine": {}}}));
        assert!(entry.is_absent(&without) && !entry.is_absent(with));
        let changed = with.replace("/bin/kapi", "/opt/kapi");
        assert_eq!(entry.take_out_of(&changed, ""), None);
        let alone = "{\"a\": 1, \"mcpServers\": {\"kapi\": {\"args\": [\"mcp\"], \"command\": \
                     \"/bin/kapi\"}}}";
        for (inserted, wanted) in [
            ("\"mcpServers\": {\"kapi\": {}}", json!({"a": 1})),
            ("\"kapi\": {}", json!({"a": 1, "mcpServers": {}})),
        ] {
            let without = entry.take_out_of(alone, inserted).unwrap();
            let read: Value = serde_json::from_str(&without).unwrap();
            assert_eq!(read, wanted, "{inserted}");
        }
    }
}
