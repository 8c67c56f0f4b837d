//! JSON with comments and trailing commas, and nothing looser, as a tree of settings.

pub mod edit;

use jsonc_parser::ast::{Object, Value as Ast};
use jsonc_parser::common::Ranged as _;
use jsonc_parser::errors::ParseError;
use jsonc_parser::{
    CollectOptions, CommentCollectionStrategy, ParseOptions, ParseResult, parse_to_ast,
};

use crate::fault::Faults;
use crate::node::{SettingValue, TableEntry, ValueNode, line_at};

fn layout(text: &str) -> Result<ParseResult<'_>, ParseError> {
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
        comments: CommentCollectionStrategy::Off,
        tokens: false,
    };
    parse_to_ast(text, &collect, &options)
}

/// Parses one document, which is an object. `None`, and a fault, when it is none; a key that stands
/// twice is a fault, and its first value counts.
pub fn parse(text: &str, faults: &mut Faults) -> Option<ValueNode> {
    let text = text.trim_start_matches('\u{feff}');
    let parsed = match layout(text) {
        Ok(parsed) => parsed,
        Err(error) => {
            let what = lowercase(&error.kind().to_string());
            let remedy = "write JSON; comments and trailing commas are allowed";
            faults.at_line(line_at(text, error.range().start), what, remedy);
            return None;
        }
    };
    let mut reader = JsoncReader { text, faults };
    match &parsed.value {
        Some(root @ Ast::Object(_)) => Some(reader.node(root)),
        Some(other) => {
            let found = reader.node(other);
            let what = format!("it is {}", found.value.kind());
            reader
                .faults
                .at_line(found.line, what, "write an object in braces");
            None
        }
        None => {
            let what = "it is empty";
            reader
                .faults
                .at_line(1, what, "write {} or remove the file");
            None
        }
    }
}

struct JsoncReader<'a> {
    text: &'a str,
    faults: &'a mut Faults,
}

impl JsoncReader<'_> {
    fn node(&mut self, value: &Ast<'_>) -> ValueNode {
        let line = line_at(self.text, value.start());
        let value = match value {
            Ast::NullKeyword(_) => SettingValue::Null,
            Ast::BooleanLit(truth) => SettingValue::Bool(truth.value),
            Ast::NumberLit(number) => number_of(number.value),
            Ast::StringLit(text) => SettingValue::Text(text.value.to_string()),
            Ast::Array(list) => {
                SettingValue::List(list.elements.iter().map(|item| self.node(item)).collect())
            }
            Ast::Object(object) => SettingValue::Map(self.entries(object)),
        };
        ValueNode { line, value }
    }

    fn entries(&mut self, object: &Object<'_>) -> Vec<TableEntry> {
        let mut entries: Vec<TableEntry> = Vec::new();
        for property in &object.properties {
            let entry = TableEntry {
                key: property.name.as_str().to_owned(),
                line: line_at(self.text, property.start()),
                node: self.node(&property.value),
            };
            if entries.iter().any(|other| other.key == entry.key) {
                let what = format!("`{}` is set twice", entry.key);
                self.faults.at_line(entry.line, what, "remove one of them");
            } else {
                entries.push(entry);
            }
        }
        entries
    }
}

fn number_of(text: &str) -> SettingValue {
    match (text.parse(), text.parse()) {
        (Ok(whole), _) => SettingValue::Whole(whole),
        (Err(_), Ok(real)) => SettingValue::Real(real),
        (Err(_), Err(_)) => SettingValue::Text(text.to_owned()),
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
