//! From the text of the file to typed values, each with its place; all problems are found at once.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use jsonc_parser::ast::{Object, ObjectProp, Value};
use jsonc_parser::common::Ranged as _;
use jsonc_parser::errors::ParseError;
use jsonc_parser::{
    CollectOptions, CommentCollectionStrategy, ParseOptions, ParseResult, parse_to_ast,
};

use crate::kernel::creampi_file::directory::inside;
use crate::kernel::creampi_file::nearest::nearest;
use crate::kernel::creampi_file::{Backend, CreampiConfig, Place, Problem, Set, root_of};

/// Every key of the file.
const KEYS: &[&str] = &[
    "defaultAgent",
    "defaultBackend",
    "defaultModel",
    "maxConcurrency",
    "defaultTimeoutSec",
    "guardrailsDir",
    "idempotencyDir",
    "idempotencyTtlSec",
    "checkpointsDir",
    "backends",
];
/// Every key of a backend.
const BACKEND_KEYS: &[&str] = &["provider", "model"];

/// The longest day, in seconds.
const DAY_S: u32 = 86_400;
/// How many tasks may run at once.
const CONCURRENCY: RangeInclusive<u32> = 1..=32;

/// Parses JSON with comments and trailing commas, and nothing looser.
pub(super) fn parse_json(text: &str) -> Result<ParseResult<'_>, ParseError> {
    let options = ParseOptions {
        allow_comments: true,
        allow_trailing_commas: true,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    };
    let collect = CollectOptions {
        comments: CommentCollectionStrategy::AsTokens,
        tokens: true,
    };
    parse_to_ast(text, &collect, &options)
}

/// Reads the whole file.
pub(super) fn read(text: &str, file: &Path) -> Result<CreampiConfig, Vec<Problem>> {
    let text = text.trim_start_matches('\u{feff}');
    let mut reader = Reader {
        text,
        file,
        problems: Vec::new(),
    };
    let parsed = match parse_json(text) {
        Ok(parsed) => parsed,
        Err(error) => {
            let message = lowercase(&error.kind().to_string());
            let remedy = "write JSON; comments and trailing commas are fine";
            reader.complain(error.range().start, message, remedy.to_owned());
            return Err(reader.problems);
        }
    };
    let mut config = empty(file);
    match &parsed.value {
        Some(Value::Object(object)) => reader.top(object, &mut config),
        Some(other) => reader.wrong(other, "the file", "an object in braces"),
        None => reader.complain(
            0,
            "there is nothing in it".to_owned(),
            "write {} or remove the file".to_owned(),
        ),
    }
    if reader.problems.is_empty() {
        Ok(config)
    } else {
        Err(reader.problems)
    }
}

fn empty(file: &Path) -> CreampiConfig {
    CreampiConfig {
        file: file.to_path_buf(),
        root: root_of(file),
        default_agent: None,
        default_backend: None,
        default_model: None,
        max_concurrency: None,
        default_timeout_s: None,
        guardrails_dir: None,
        idempotency_dir: None,
        idempotency_ttl_s: None,
        checkpoints_dir: None,
        backends: std::collections::BTreeMap::new(),
    }
}

struct Reader<'a> {
    text: &'a str,
    file: &'a Path,
    problems: Vec<Problem>,
}

impl Reader<'_> {
    fn top(&mut self, object: &Object<'_>, config: &mut CreampiConfig) {
        self.once_each(object);
        for property in &object.properties {
            match property.name.as_str() {
                "defaultAgent" => config.default_agent = self.text_of(property),
                "defaultBackend" => config.default_backend = self.text_of(property),
                "defaultModel" => config.default_model = self.text_of(property),
                "maxConcurrency" => config.max_concurrency = self.number(property, CONCURRENCY),
                "defaultTimeoutSec" => {
                    config.default_timeout_s = self.number(property, 0..=DAY_S);
                }
                "guardrailsDir" => config.guardrails_dir = self.directory(property),
                "idempotencyDir" => config.idempotency_dir = self.directory(property),
                "idempotencyTtlSec" => {
                    config.idempotency_ttl_s = self.number(property, 1..=DAY_S);
                }
                "checkpointsDir" => config.checkpoints_dir = self.directory(property),
                "backends" => self.backends(property, config),
                unknown => self.unknown(property, unknown, KEYS),
            }
        }
    }

    fn backends(&mut self, property: &ObjectProp<'_>, config: &mut CreampiConfig) {
        let Value::Object(object) = &property.value else {
            let what = "an object with one object for each backend";
            return self.wrong(&property.value, "backends", what);
        };
        self.once_each(object);
        for backend in &object.properties {
            let name = backend.name.as_str();
            if name.trim().is_empty() {
                let remedy = "name the backend, such as \"pi\"".to_owned();
                self.complain(backend.start(), "a backend has no name".to_owned(), remedy);
            }
            if let Some(set) = self.backend(backend) {
                config.backends.insert(name.to_owned(), set);
            }
        }
    }

    fn backend(&mut self, property: &ObjectProp<'_>) -> Option<Set<Backend>> {
        let name = format!("backends.{}", property.name.as_str());
        let Value::Object(object) = &property.value else {
            self.wrong(&property.value, &name, "an object with provider and model");
            return None;
        };
        self.once_each(object);
        let (mut provider, mut model) = (None, None);
        for inner in &object.properties {
            match inner.name.as_str() {
                "provider" => provider = self.text_of(inner),
                "model" => model = self.text_of(inner),
                unknown => self.unknown(inner, unknown, BACKEND_KEYS),
            }
        }
        for key in BACKEND_KEYS {
            if object.get(key).is_none() {
                let message = format!("{name} has no {key}");
                let remedy = format!("write \"{key}\" too: a backend needs provider and model");
                self.complain(property.start(), message, remedy);
            }
        }
        let place = self.place(property.value.start());
        let (provider, model) = (provider?.value, model?.value);
        Some(Set {
            value: Backend { provider, model },
            place,
        })
    }

    fn text_of(&mut self, property: &ObjectProp<'_>) -> Option<Set<String>> {
        match &property.value {
            Value::StringLit(text) if !text.value.trim().is_empty() => Some(Set {
                value: text.value.trim().to_owned(),
                place: self.place(property.value.start()),
            }),
            other => {
                self.wrong(
                    other,
                    property.name.as_str(),
                    "a text in quotes that is not empty",
                );
                None
            }
        }
    }

    /// Reads a whole number, also in quotes: oh-my-creampi takes both.
    fn number(
        &mut self,
        property: &ObjectProp<'_>,
        range: RangeInclusive<u32>,
    ) -> Option<Set<u32>> {
        let written = match &property.value {
            Value::NumberLit(number) => Some(number.value),
            Value::StringLit(text) => Some(text.value.trim()),
            Value::BooleanLit(_) | Value::Object(_) | Value::Array(_) | Value::NullKeyword(_) => {
                None
            }
        };
        let number = written.and_then(|written| written.parse().ok());
        match number.filter(|number| range.contains(number)) {
            Some(value) => Some(Set {
                value,
                place: self.place(property.value.start()),
            }),
            None => {
                let what = format!("a whole number from {} to {}", range.start(), range.end());
                self.wrong(&property.value, property.name.as_str(), &what);
                None
            }
        }
    }

    fn directory(&mut self, property: &ObjectProp<'_>) -> Option<Set<PathBuf>> {
        let written = self.text_of(property)?;
        match inside(&root_of(self.file), &written.value) {
            Ok(value) => Some(Set {
                value,
                place: written.place,
            }),
            Err(why) => {
                let name = property.name.as_str();
                let message = format!("{name} {:?} {why}", written.value);
                let remedy = "name a directory inside the project".to_owned();
                self.complain(property.value.start(), message, remedy);
                None
            }
        }
    }

    fn once_each(&mut self, object: &Object<'_>) {
        let mut seen = BTreeSet::new();
        for property in &object.properties {
            let name = property.name.as_str();
            if !seen.insert(name) {
                let message = format!("{name} is there twice");
                self.complain(property.start(), message, "remove one of them".to_owned());
            }
        }
    }

    fn unknown(&mut self, property: &ObjectProp<'_>, name: &str, known: &[&str]) {
        let remedy = match nearest(name, known) {
            Some(nearest) => format!("did you mean {nearest}?"),
            None => format!("remove it; the keys are {}", known.join(", ")),
        };
        self.complain(
            property.start(),
            format!("{name} is not a known key"),
            remedy,
        );
    }

    fn wrong(&mut self, value: &Value<'_>, name: &str, expected: &str) {
        let written = self.text.get(value.start()..value.end());
        let written: String = written.unwrap_or_default().chars().take(40).collect();
        let message = format!("{name} must be {expected}, not {written}");
        self.complain(value.start(), message, format!("write {expected}"));
    }

    fn complain(&mut self, at: usize, message: String, remedy: String) {
        let place = self.place(at);
        self.problems.push(Problem {
            place,
            message,
            remedy,
        });
    }

    fn place(&self, at: usize) -> Place {
        let before = self.text.get(..at).unwrap_or(self.text);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Place {
            file: self.file.to_path_buf(),
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
        }
    }
}

/// Makes a sentence of the parser a fragment of ours.
fn lowercase(text: &str) -> String {
    let mut chars = text.chars();
    match chars.next() {
        Some(first) => first.to_lowercase().chain(chars).collect(),
        None => String::new(),
    }
}
