//! `kapi run --explain` and `kapi launch --explain`: what would hold, value by value, and where each was said.
//!
//! Resolves exactly what a command would resolve. Nothing is started, created or written, and the
//! values of variables are never shown.

pub(crate) mod launch;
mod route;
pub(crate) mod run;

use serde::Serialize;

use crate::config::source::ValueSource;
use crate::context::Context;
use crate::ui::Format;

/// Characters of a key's column.
const KEY_WIDTH: usize = 20;
/// Characters of a value's column, when its source stands beside it.
const VALUE_WIDTH: usize = 44;

/// One value and where it was said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct ExplainRow {
    key: String,
    value: String,
    source: String,
}

/// The answer as a document.
#[derive(Debug, Serialize)]
struct ExplainView<'a> {
    kind: &'static str,
    command: &'a str,
    rows: &'a [ExplainRow],
    notes: &'a [String],
}

/// Rows as they are collected, in the order they are shown.
#[derive(Debug, Default)]
struct ExplainRows(Vec<ExplainRow>);

impl ExplainRows {
    fn add(&mut self, key: &str, value: impl Into<String>, source: &ValueSource) {
        self.add_all(key, value, std::slice::from_ref(source));
    }

    fn add_all(&mut self, key: &str, value: impl Into<String>, sources: &[ValueSource]) {
        let sources: Vec<String> = sources.iter().map(ToString::to_string).collect();
        self.0.push(ExplainRow {
            key: key.to_owned(),
            value: value.into(),
            source: sources.join(", "),
        });
    }

    fn show(&self, context: &Context, command: &str, notes: &[String]) {
        let ui = context.ui;
        match ui.format {
            Format::Json => ui.json(&ExplainView {
                kind: "policy",
                command,
                rows: &self.0,
                notes,
            }),
            Format::Human => {
                for row in &self.0 {
                    line(context, row);
                }
                for note in notes {
                    ui.say(&format!("note: {note}"));
                }
            }
        }
    }
}

/// Writes one row; a value of several lines has its source on a line of its own.
fn line(context: &Context, row: &ExplainRow) {
    let (key, source) = (&row.key, &row.source);
    let mut lines = row.value.lines();
    let first = lines.next().unwrap_or_default();
    let rest: Vec<&str> = lines.collect();
    if rest.is_empty() {
        context
            .ui
            .line(&format!("{key:<KEY_WIDTH$} {first:<VALUE_WIDTH$} {source}"));
        return;
    }
    context.ui.line(&format!("{key:<KEY_WIDTH$} {first}"));
    for line in rest {
        context.ui.line(&format!("{:<KEY_WIDTH$} {line}", ""));
    }
    let gap = " ".repeat(VALUE_WIDTH);
    context
        .ui
        .line(&format!("{:<KEY_WIDTH$} {gap} {source}", ""));
}
