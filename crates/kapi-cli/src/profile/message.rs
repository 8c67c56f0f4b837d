//! The message of a launch's commit, and the people named in it.
//!
//! A template is filled in one pass: what is put in is never read as a template, and nothing that
//! an agent or a task says can add a line to the trailers.

use std::fmt;

/// Characters of a value that are put into a message, so that a subject stays one.
const VALUE_CHARS_MAX: usize = 68;
/// Bytes of a template.
const TEMPLATE_BYTES_MAX: usize = 8 * 1024;
/// Bytes of a name or an address.
const PERSON_BYTES_MAX: usize = 256;
/// What may stand in braces.
const PLACEHOLDERS: &[&str] = &["task", "agent", "agent_id", "branch", "timestamp"];

/// What a template is filled with.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Values<'a> {
    /// The task; the title of it is used.
    pub(crate) task: &'a str,
    /// The agent.
    pub(crate) agent: &'a str,
    /// The launch's id.
    pub(crate) agent_id: &'a str,
    /// The branch.
    pub(crate) branch: &'a str,
    /// The time, as `2026-01-31T12:00:00Z`.
    pub(crate) timestamp: &'a str,
}

/// Somebody who is named as an author too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CoAuthor {
    name: String,
    email: String,
}

impl CoAuthor {
    /// Reads `Name <address>`; the name is in any language.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let rule = || format!("{text:?} is not written as `Name <address>`");
        let trimmed = text.trim();
        let (name, rest) = trimmed.split_once('<').ok_or_else(rule)?;
        let email = rest.strip_suffix('>').ok_or_else(rule)?;
        let name = name.trim();
        let has_odd = |part: &str| {
            part.is_empty()
                || part.len() > PERSON_BYTES_MAX
                || part.chars().any(|c| c.is_control() || "<>".contains(c))
        };
        let (local, domain) = email.split_once('@').ok_or_else(rule)?;
        let is_odd_address = |part: &str| {
            has_odd(part) || part.contains('@') || part.chars().any(char::is_whitespace)
        };
        if has_odd(name) || is_odd_address(local) || is_odd_address(domain) {
            return Err(rule());
        }
        Ok(Self {
            name: name.to_owned(),
            email: email.to_owned(),
        })
    }
}

impl fmt::Display for CoAuthor {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} <{}>", self.name, self.email)
    }
}

/// Refuses a template that could not be filled.
pub(crate) fn check(template: &str) -> Result<(), String> {
    if template.trim().is_empty() {
        return Err("it must not be empty".to_owned());
    }
    if template.len() > TEMPLATE_BYTES_MAX {
        return Err(format!("it is longer than {TEMPLATE_BYTES_MAX} bytes"));
    }
    if template
        .chars()
        .any(|c| c.is_control() && c != '\n' && c != '\t')
    {
        return Err("it contains control characters".to_owned());
    }
    for part in parts(template) {
        if let MessagePart::Mark(name) = part
            && !PLACEHOLDERS.contains(&name)
        {
            let names: Vec<String> = PLACEHOLDERS
                .iter()
                .map(|name| format!("{{{name}}}"))
                .collect();
            let names = names.join(", ");
            return Err(format!(
                "`{{{name}}}` is not a placeholder; available: {names}"
            ));
        }
    }
    Ok(())
}

/// Fills a template and names the co-authors, each once.
pub(crate) fn render(template: &str, values: &Values<'_>, co_authors: &[CoAuthor]) -> String {
    let mut text = String::new();
    for part in parts(template) {
        match part {
            MessagePart::Text(plain) => text.push_str(plain),
            MessagePart::Mark(name) => text.push_str(&value(values, name)),
        }
    }
    let mut text = text.trim_end().to_owned();
    let mut named: Vec<String> = Vec::new();
    for author in co_authors {
        let email = author.email.to_lowercase();
        if named.contains(&email) {
            continue;
        }
        text.push_str(if named.is_empty() { "\n\n" } else { "\n" });
        text.push_str("Co-authored-by: ");
        text.push_str(&author.to_string());
        named.push(email);
    }
    text.push('\n');
    text
}

enum MessagePart<'a> {
    Text(&'a str),
    Mark(&'a str),
}

/// Cuts a template into plain text and names in braces; other braces are plain text.
fn parts(template: &str) -> Vec<MessagePart<'_>> {
    let (mut found, mut rest) = (Vec::new(), template);
    let mut plain_end = 0;
    while let Some(open) = rest.get(plain_end..).and_then(|text| text.find('{')) {
        let open = plain_end + open;
        let after = rest.get(open + 1..).unwrap_or_default();
        let name_end = after.find(|c: char| !c.is_ascii_lowercase() && c != '_');
        let name = name_end
            .and_then(|end| after.get(..end))
            .unwrap_or_default();
        let is_closed = after
            .get(name.len()..)
            .is_some_and(|text| text.starts_with('}'));
        if name.is_empty() || !is_closed {
            plain_end = open + 1;
            continue;
        }
        found.push(MessagePart::Text(rest.get(..open).unwrap_or_default()));
        found.push(MessagePart::Mark(name));
        rest = after.get(name.len() + 1..).unwrap_or_default();
        plain_end = 0;
    }
    found.push(MessagePart::Text(rest));
    found
}

/// Returns a value as it may stand in a message: one short line.
fn value(values: &Values<'_>, name: &str) -> String {
    let text = match name {
        "task" => values.task,
        "agent" => values.agent,
        "agent_id" => values.agent_id,
        "branch" => values.branch,
        "timestamp" => values.timestamp,
        _ => return format!("{{{name}}}"),
    };
    // A task is often a document, whose first line is its title.
    let mut lines = text
        .lines()
        .map(|line| line.trim().trim_start_matches('#').trim());
    let line = lines.find(|line| !line.is_empty()).unwrap_or_default();
    let plain: String = line.chars().filter(|c| !c.is_control()).collect();
    let mut short: String = plain.chars().take(VALUE_CHARS_MAX).collect();
    if short.len() < plain.len() {
        short.push('…');
    }
    short
}

#[cfg(test)]
mod tests {
    use super::{CoAuthor, Values, check, render};

    const VALUES: Values<'_> = Values {
        task: "add {branch}\nSigned-off-by: Mallory <m@x>",
        agent: "claude",
        agent_id: "1",
        branch: "feature/x",
        timestamp: "2026-01-31T12:00:00Z",
    };

    #[test]
    fn a_template_is_filled_in_one_pass() {
        let template =
            "feat: {task}\n\nBy {agent} ({agent_id}) on {branch}, {timestamp}. {} { {X}\n";
        let expected =
            "feat: add {branch}\n\nBy claude (1) on feature/x, 2026-01-31T12:00:00Z. {} { {X}\n";
        assert_eq!(check(template), Ok(()));
        assert_eq!(render(template, &VALUES, &[]), expected);
    }

    #[test]
    fn a_value_is_one_short_line() {
        let titled = |task: &str| render("{task}", &Values { task, ..VALUES }, &[]);
        assert_eq!(titled("\n## Fix it\nmore\n"), "Fix it\n");
        assert_eq!(titled(&"x".repeat(100)), format!("{}…\n", "x".repeat(68)));
        assert_eq!(titled("a\u{1b}[2Jb"), "a[2Jb\n");
    }

    #[test]
    fn co_authors_are_named_once_in_any_language() {
        let authors = [
            "Zo\u{eb} \u{15d}\u{151} <z@x.example>",
            "\u{5f35}\u{4e09} <zhang@x.example>",
            "Again <Z@X.example>",
        ];
        let authors = authors.map(|text| CoAuthor::parse(text).unwrap());
        let expected = "m\n\nCo-authored-by: Zo\u{eb} \u{15d}\u{151} <z@x.example>\n\
                        Co-authored-by: \u{5f35}\u{4e09} <zhang@x.example>\n";
        assert_eq!(render("m", &VALUES, &authors), expected);
    }

    #[test]
    fn what_could_forge_a_line_is_no_author() {
        for text in [
            "",
            "Name",
            "<a@b>",
            "Name <>",
            "Name <a>",
            "Name <a@>",
            "Name <@b>",
            "Name <a@b@c>",
            "Name <a b@c>",
            "A\nSigned-off-by: B <a@b>",
            "A <b> <a@b>",
            "A <a@b> x",
            "A <a\n@b>",
        ] {
            assert!(CoAuthor::parse(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_template_that_cannot_be_filled_is_refused() {
        let cases = [
            (" ", "it must not be empty"),
            ("a\u{1b}[2J", "it contains control characters"),
            (
                "{who}",
                "`{who}` is not a placeholder; available: {task}, {agent}, {agent_id}, \
                 {branch}, {timestamp}",
            ),
        ];
        for (template, rule) in cases {
            assert_eq!(check(template), Err(rule.to_owned()));
        }
        assert!(check(&"x".repeat(9000)).unwrap_err().contains("longer"));
    }
}
