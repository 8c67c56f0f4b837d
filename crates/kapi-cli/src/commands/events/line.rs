//! One event of the feed as it is printed: a JSON object, or a line for people.

use kapi_core::quote::visible;
use kapi_store::timestamp::format_ms;
use serde_json::{Map, Value, json};

use crate::commands::events::entry::FeedEntry;
use crate::ui::{Format, Ui};

/// Prints an event.
pub(super) fn print(ui: Ui, entry: &FeedEntry) {
    match ui.format {
        Format::Json => ui.json(&document(entry)),
        Format::Human => {
            let words = entry
                .words
                .as_deref()
                .map_or_else(|| entry.kind.replace('_', " "), visible);
            ui.line(&format!(
                "{}  {:<24}  {:<12}  {words}",
                format_ms(entry.at_ms),
                entry.stream,
                entry.actor.to_string(),
            ));
        }
    }
}

/// Returns the form in which `kapi log --json` has it, with the stream that it is of.
fn document(entry: &FeedEntry) -> Value {
    let mut object = Map::new();
    object.insert("stream".to_owned(), json!(entry.stream));
    object.insert("seq".to_owned(), json!(entry.seq));
    object.insert("at_ms".to_owned(), json!(entry.at_ms));
    object.insert("actor".to_owned(), json!(entry.actor));
    if let Some((kind, id)) = &entry.subject {
        object.insert((*kind).to_owned(), json!(id));
    }
    object.insert("type".to_owned(), json!(entry.kind));
    object.insert("data".to_owned(), entry.data.clone());
    Value::Object(object)
}
