//! The little Markdown that artifacts need; foreign text cannot break out of its place in it.

use kapi_core::quote::{fenced, visible};

use crate::rules::report::one_line;

/// Returns a text as one cell of a table.
pub(in crate::rules::modes) fn cell(text: &str) -> String {
    one_line(text).replace('|', "\\|")
}

/// Between the lines of a command that is shown in one: without it, two commands read as one.
const LINE_END: &str = " \u{21b5} ";

/// Returns a text as a command or a name, in a line.
pub(in crate::rules::modes) fn code(text: &str) -> String {
    let lines = text.lines().map(one_line).filter(|it| !it.is_empty());
    let text = lines.collect::<Vec<_>>().join(LINE_END);
    if text.contains('`') {
        format!("`` {text} ``")
    } else {
        format!("`{text}`")
    }
}

/// Returns a text of several lines as a quotation.
pub(in crate::rules::modes) fn quote(text: &str) -> String {
    let text = visible(text.trim());
    let lines: Vec<String> = text
        .lines()
        .map(|line| format!("> {line}").trim_end().to_owned())
        .collect();
    lines.join("\n")
}

/// Returns output as a block that it cannot end.
pub(in crate::rules::modes) fn block(text: &str) -> String {
    fenced(&visible(text), "")
}

/// Returns a list, or a word that says that there is nothing.
pub(in crate::rules::modes) fn list<S: AsRef<str>>(items: &[S]) -> String {
    if items.is_empty() {
        return "Nothing.".to_owned();
    }
    let lines: Vec<String> = items
        .iter()
        .map(|item| format!("- {}", item.as_ref()))
        .collect();
    lines.join("\n")
}

/// Returns a list of foreign texts, each as one line.
pub(in crate::rules::modes) fn lines(items: &[String]) -> String {
    let lines: Vec<String> = items.iter().map(|item| one_line(item)).collect();
    list(&lines)
}
