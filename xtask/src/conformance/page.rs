//! The page that people read: counts, what is open, decisions, and a table for each section.
//!
//! The same map gives the same bytes.

use super::Specification;
use super::map::{Map, MapRow, RowAnswer, RowDecision, Section};
use super::sources::ConformanceSources;

/// Returns what stands above the tables.
fn head(specification: Specification) -> String {
    let Specification {
        file,
        name,
        version,
    } = specification;
    format!(
        "# {name}, sentence by sentence\n\n\
         Made by `cargo xtask conformance` from `{file}.map.toml`; change that file and not this one.\n\
         Each row is one sentence, list item or table row of the specification ({version}), named by\n\
         section and number and put into our own words.\n\
         It is answered by tests that the gate finds in the sources, or by a decision that is written \
         down.\n\
         A row is open as long as something of it is neither.\n"
    )
}

/// Returns the whole page.
pub(super) fn render(
    specification: Specification,
    map: &Map,
    sources: &ConformanceSources,
) -> String {
    let mut parts = vec![head(specification), counts(map), open(map), decisions(map)];
    for section in &map.section {
        let rows: Vec<String> = section
            .named_rows()
            .map(|(id, row)| {
                let answer = answer(row, sources);
                format!("| `{id}` | {} | {answer} |", cell(&row.says))
            })
            .collect();
        parts.push(format!(
            "## {}\n\n| | says | answered by |\n|---|---|---|\n{}\n",
            section.title,
            rows.join("\n")
        ));
    }
    parts.join("\n")
}

fn counts(map: &Map) -> String {
    let counts = map.counts();
    format!(
        "| rows | with a test | by decision | open |\n|---|---|---|---|\n| {} | {} | {} | {} |\n",
        counts.rows(),
        counts.tested,
        counts.decided,
        counts.open
    )
}

fn open(map: &Map) -> String {
    let rows = map
        .section
        .iter()
        .flat_map(Section::named_rows)
        .filter(|(_, row)| row.answer() == RowAnswer::Open);
    let lines: Vec<String> = rows
        .map(|(id, row)| {
            let missing = row.open.as_deref().unwrap_or_default();
            format!("- `{id}` {}: {missing}", row.says)
        })
        .collect();
    let lines = if lines.is_empty() {
        "Nothing.".to_owned()
    } else {
        lines.join("\n")
    };
    format!("## Open\n\n{lines}\n")
}

fn decisions(map: &Map) -> String {
    let lines: Vec<String> = map
        .decisions
        .iter()
        .map(|(name, decision)| format!("- **{name}**: {}{}", decision.says, see(decision)))
        .collect();
    format!("## Decisions\n\n{}\n", lines.join("\n"))
}

fn see(decision: &RowDecision) -> String {
    decision.see.as_ref().map_or_else(String::new, |path| {
        let address = path
            .strip_prefix("docs/")
            .map_or_else(|| format!("../../{path}"), |rest| format!("../{rest}"));
        format!(" See [{path}]({address}).")
    })
}

fn answer(row: &MapRow, sources: &ConformanceSources) -> String {
    let mut parts: Vec<String> = row.tests.iter().map(|test| link(test, sources)).collect();
    if let Some(missing) = &row.open {
        parts.push(format!("**open**: {}", cell(missing)));
    }
    match (&row.decision, &row.note) {
        (Some(name), Some(note)) => parts.push(format!("*{name}*: {}", cell(note))),
        (Some(name), None) => parts.push(format!("*{name}*")),
        (None, Some(note)) => parts.push(cell(note)),
        (None, None) => {}
    }
    parts.join("<br>")
}

/// A test that is not found is a fault of the map, which is reported before the page is made.
fn link(test: &str, sources: &ConformanceSources) -> String {
    let path = sources.find(test).unwrap_or_default();
    format!("[`{test}`](../../{path})")
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use super::{head, render};
    use crate::conformance::SPECIFICATIONS;
    use crate::conformance::map::Map;
    use crate::conformance::sources::ConformanceSources;

    #[test]
    fn a_page_has_counts_open_rows_decisions_and_tables() {
        let map = Map::parse(
            "[decisions]\npi = { says = \"Comes with the Pi package.\", see = \"docs/design/a.md\" }\n\
             [[section]]\nid = \"use\"\ntitle = \"Use\"\nrows = [\n\
             { says = \"one|two\", tests = [\"b.rs::it_holds\"], note = \"n\" },\n\
             { says = \"two\", decision = \"pi\" },\n\
             { says = \"three\", open = \"all of it\" },\n]\n",
        )
        .unwrap();
        let sources = ConformanceSources::of(
            &[("crates/a/src/b.rs", "#[test]\nfn it_holds() {}\n")],
            &["docs/design/a.md"],
        );
        let specification = SPECIFICATIONS[1];
        let page = render(specification, &map, &sources);
        assert!(
            page.starts_with("# oh-my-creampi, sentence by sentence\n"),
            "{page}"
        );
        assert_eq!(
            page.strip_prefix(&head(specification)).unwrap(),
            "\n| rows | with a test | by decision | open |\n|---|---|---|---|\n| 3 | 1 | 1 | 1 |\n\n\
             ## Open\n\n- `use.3` three: all of it\n\n\
             ## Decisions\n\n- **pi**: Comes with the Pi package. See \
             [docs/design/a.md](../design/a.md).\n\n\
             ## Use\n\n| | says | answered by |\n|---|---|---|\n\
             | `use.1` | one\\|two | [`b.rs::it_holds`](../../crates/a/src/b.rs)<br>n |\n\
             | `use.2` | two | *pi* |\n| `use.3` | three | **open**: all of it |\n"
        );
    }
}
