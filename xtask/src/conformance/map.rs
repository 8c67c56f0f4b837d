//! The map as it is kept by hand, and the rules it has to keep.
//!
//! Knows neither the specification's text nor the disk.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Context as _;
use serde::Deserialize;

use super::sources::ConformanceSources;

/// The longest paraphrase, in words: the specification is pointed at and not retold.
const WORDS_MAX: usize = 16;

/// The whole map.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Map {
    /// Decisions that answer rows, by the name the rows use.
    pub(super) decisions: BTreeMap<String, RowDecision>,
    /// The specification's sections in their order.
    pub(super) section: Vec<Section>,
}

/// Why something is answered without a test.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RowDecision {
    /// The decision in a sentence.
    pub(super) says: String,
    /// The file of this repository that tells more.
    pub(super) see: Option<String>,
}

/// One section of the specification.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Section {
    /// The first part of its rows' ids.
    pub(super) id: String,
    /// Its heading.
    pub(super) title: String,
    /// Its sentences, list items and table rows in their order; the first is number 1.
    pub(super) rows: Vec<MapRow>,
}

/// One sentence, list item or table row.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MapRow {
    /// What it says, in our words.
    pub(super) says: String,
    /// Tests as `file.rs::name`, with as many directories before it as make it unique.
    #[serde(default)]
    pub(super) tests: Vec<String>,
    /// The decision that answers it, or stands beside its tests.
    pub(super) decision: Option<String>,
    /// What to know about this row alone.
    pub(super) note: Option<String>,
    /// What is missing; tests that are named beside it cover the rest.
    pub(super) open: Option<String>,
}

/// How a row is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RowAnswer {
    /// By tests.
    Tested,
    /// By a decision alone.
    Decided,
    /// Not yet, or not wholly.
    Open,
}

/// How many rows are answered how.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct RowCounts {
    pub(super) tested: usize,
    pub(super) decided: usize,
    pub(super) open: usize,
}

impl RowCounts {
    pub(super) const fn rows(self) -> usize {
        self.tested + self.decided + self.open
    }
}

impl MapRow {
    pub(super) const fn answer(&self) -> RowAnswer {
        if self.open.is_some() {
            RowAnswer::Open
        } else if self.tests.is_empty() {
            RowAnswer::Decided
        } else {
            RowAnswer::Tested
        }
    }
}

impl Section {
    /// Returns the section's rows with their ids.
    pub(super) fn named_rows(&self) -> impl Iterator<Item = (String, &MapRow)> {
        let numbered = self.rows.iter().zip(1_usize..);
        numbered.map(|(row, number)| (format!("{}.{number}", self.id), row))
    }
}

impl Map {
    /// Reads a map.
    ///
    /// # Errors
    /// When the text has another shape, naming the line.
    pub(super) fn parse(text: &str) -> anyhow::Result<Self> {
        toml::from_str(text).context("read it as a conformance map")
    }

    /// Counts the rows by how they are answered.
    pub(super) fn counts(&self) -> RowCounts {
        let mut counts = RowCounts::default();
        for row in self.section.iter().flat_map(|section| &section.rows) {
            match row.answer() {
                RowAnswer::Tested => counts.tested += 1,
                RowAnswer::Decided => counts.decided += 1,
                RowAnswer::Open => counts.open += 1,
            }
        }
        counts
    }

    /// Returns every place that breaks a rule.
    pub(super) fn faults(&self, sources: &ConformanceSources) -> Vec<String> {
        let mut faults = Vec::new();
        let mut ids = BTreeSet::new();
        let mut used = BTreeSet::new();
        for section in &self.section {
            if !ids.insert(&section.id) {
                faults.push(format!("section {}: there are two of that id", section.id));
            }
            for (id, row) in section.named_rows() {
                used.extend(&row.decision);
                let of_row = self.row_faults(row, sources);
                faults.extend(of_row.into_iter().map(|fault| format!("{id}: {fault}")));
            }
        }
        for (name, decision) in &self.decisions {
            if !used.contains(name) {
                faults.push(format!("decision {name}: no row uses it"));
            }
            if let Some(see) = &decision.see
                && !sources.has_document(see)
            {
                faults.push(format!("decision {name}: there is no {see}"));
            }
        }
        faults
    }

    fn row_faults(&self, row: &MapRow, sources: &ConformanceSources) -> Vec<String> {
        let mut faults = Vec::new();
        let words = row.says.split_whitespace().count();
        if words == 0 || words > WORDS_MAX {
            faults.push(format!(
                "say it in 1 to {WORDS_MAX} words of ours, not {words}"
            ));
        }
        if row.tests.is_empty() && row.decision.is_none() && row.open.is_none() {
            faults.push("name a test or a decision, or say what is open".to_owned());
        }
        if let Some(name) = &row.decision
            && !self.decisions.contains_key(name)
        {
            faults.push(format!("there is no decision {name}"));
        }
        if row
            .open
            .as_ref()
            .is_some_and(|missing| missing.trim().is_empty())
        {
            faults.push("say what is open".to_owned());
        }
        let tests = row.tests.iter().filter_map(|test| sources.find(test).err());
        faults.extend(tests);
        faults
    }
}

#[cfg(test)]
mod tests {
    use super::{Map, RowCounts};
    use crate::conformance::sources::ConformanceSources;

    const HEAD: &str = "[decisions]\npi = { says = \"Pi only\" }\n[[section]]\nid = \"use\"\n\
                        title = \"Use\"\nrows = [{ says = \"one\", decision = \"pi\" },\n";

    fn map(rows: &str) -> Map {
        Map::parse(&format!("{HEAD}{rows}]\n")).unwrap()
    }

    fn check_fault(rows: &str, wanted: &str) {
        let sources =
            ConformanceSources::of(&[("kapi-a/src/b.rs", "#[test]\nfn it_holds() {}\n")], &[]);
        assert_eq!(map(rows).faults(&sources), [wanted]);
    }

    #[test]
    fn a_map_without_a_fault_is_counted() {
        let map = map(
            "{ says = \"two\", tests = [\"b.rs::it_holds\"] }, { says = \"three\", open = \"all\" },",
        );
        let sources =
            ConformanceSources::of(&[("kapi-a/src/b.rs", "#[test]\nfn it_holds() {}\n")], &[]);
        assert_eq!(map.faults(&sources), [""; 0]);
        let counts = RowCounts {
            tested: 1,
            decided: 1,
            open: 1,
        };
        assert_eq!(map.counts(), counts);
    }

    #[test]
    fn every_row_needs_an_answer_that_exists() {
        check_fault(
            "{ says = \"two\" }",
            "use.2: name a test or a decision, or say what is open",
        );
        check_fault(
            "{ says = \"two\", tests = [\"b.rs::it_breaks\"] }",
            "use.2: there is no test b.rs::it_breaks",
        );
        check_fault(
            "{ says = \"two\", decision = \"no\" }",
            "use.2: there is no decision no",
        );
        check_fault(
            "{ says = \"two\", open = \" \" }",
            "use.2: say what is open",
        );
        let long = "a ".repeat(17);
        check_fault(
            &format!("{{ says = \"{long}\", decision = \"pi\" }}"),
            "use.2: say it in 1 to 16 words of ours, not 17",
        );
    }

    #[test]
    fn decisions_are_used_and_point_at_something() {
        let text = "[decisions]\na = { says = \"a\" }\nb = { says = \"b\", see = \"docs/x.md\" }\n\
                    [[section]]\nid = \"s\"\ntitle = \"S\"\nrows = [{ says = \"r\", decision = \"b\" }]\n";
        let faults = Map::parse(text)
            .unwrap()
            .faults(&ConformanceSources::of(&[], &[]));
        assert_eq!(
            faults,
            [
                "decision a: no row uses it",
                "decision b: there is no docs/x.md"
            ]
        );
        assert!(Map::parse("[decisions]\n[[section]]\nid = \"s\"\n").is_err());
    }
}
