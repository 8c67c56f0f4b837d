//! The document of all tables: a section for each, with where its numbers come from.
//!
//! A run that measures some tables replaces their sections and leaves the others as they are, so
//! that each section tells its own date.

use super::table::ComparisonTable;

/// What stands above the sections.
const HEAD: &str = "\
# Performance

Written by `cargo xtask bench --write`; do not edit.

Each line was measured by turns (ours, peer, ours, peer …) in one run, after warm-up rounds that do not count.
Numbers are p50 · p99 (min to max).
The ratio is the median (min to max) of the rounds' own ratios; below 1 we are faster.
Absolute times belong to the machine; compare ratios.
Each section says when it was measured, and where.

";
/// What a section begins with.
const HEADING: &str = "## ";

/// One table of the document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Section {
    title: String,
    /// From its heading to its end, with one empty line there.
    text: String,
}

/// What becomes of the sections that were not measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Others {
    Stay,
    Go,
}

/// Renders each table with where it comes from.
pub(super) fn sections(
    tables: &[ComparisonTable],
    origin: &str,
) -> Result<Vec<Section>, std::fmt::Error> {
    let render = |table: &ComparisonTable| {
        let mut text = String::new();
        table.render(&mut text)?;
        text.push_str(origin);
        text.push_str("\n\n");
        let title = table.title.to_owned();
        Ok(Section { title, text })
    };
    tables.iter().map(render).collect()
}

/// Returns a document of these sections alone.
pub(super) fn alone(sections: &[Section]) -> String {
    let mut text = HEAD.to_owned();
    for section in sections {
        text.push_str(&section.text);
    }
    text.truncate(text.trim_end().len());
    text.push('\n');
    text
}

/// Returns a document with these sections in it: in the place of those of the same title, a new one
/// after the one that was measured before it.
pub(super) fn with(document: &str, measured: &[Section], others: Others) -> String {
    if others == Others::Go {
        return alone(measured);
    }
    let mut sections = read(document);
    let mut next = sections.len();
    for section in measured {
        match sections.iter().position(|old| old.title == section.title) {
            Some(at) => {
                sections[at] = section.clone();
                next = at + 1;
            }
            None => {
                sections.insert(next, section.clone());
                next += 1;
            }
        }
    }
    alone(&sections)
}

/// Reads the sections of a document.
fn read(document: &str) -> Vec<Section> {
    let mut sections: Vec<Section> = Vec::new();
    for line in document.lines() {
        if let Some(title) = line.strip_prefix(HEADING) {
            sections.push(Section {
                title: title.to_owned(),
                text: String::new(),
            });
        }
        if let Some(section) = sections.last_mut() {
            section.text.push_str(line);
            section.text.push('\n');
        }
    }
    for section in &mut sections {
        section.text.truncate(section.text.trim_end().len());
        section.text.push_str("\n\n");
    }
    sections
}

#[cfg(test)]
mod tests {
    use super::{Others, Section, alone, read, with};

    fn section(title: &str, body: &str) -> Section {
        Section {
            title: title.to_owned(),
            text: format!("## {title}\n\n{body}\n\n"),
        }
    }

    #[test]
    fn a_part_replaces_its_sections_and_leaves_the_others() {
        let old = alone(&[
            section("One", "1"),
            section("Two", "2"),
            section("Three", "3"),
        ]);
        let measured = [section("Two", "new"), section("Fresh", "4")];
        let text = with(&old, &measured, Others::Stay);
        let expected = [
            section("One", "1"),
            section("Two", "new"),
            section("Fresh", "4"),
            section("Three", "3"),
        ];
        assert_eq!(text, alone(&expected));
        assert_eq!(read(&text), expected);
        assert_eq!(with(&text, &measured, Others::Go), alone(&measured));
    }

    #[test]
    fn a_table_that_nothing_was_measured_before_goes_to_the_end() {
        let old = alone(&[section("One", "1")]);
        let text = with(&old, &[section("Fresh", "2")], Others::Stay);
        assert_eq!(text, alone(&[section("One", "1"), section("Fresh", "2")]));
    }
}
