//! Which known ways out are tried, and where: here, or by a test of another crate that is named and
//! must exist.
//!
//! The numbers are those of the collection the suite was made from: `E1` to `E78` are escape attempts,
//! `A1` to `A50` attacks on another sandbox.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::attempt::{self, own_directory};

#[test]
fn every_case_is_tried_here_or_named_elsewhere() {
    let known: BTreeSet<String> = (1..=78)
        .map(|n| format!("E{n}"))
        .chain((1..=50).map(|n| format!("A{n}")))
        .collect();
    let mut tried = BTreeSet::new();
    for attempt in attempt::all() {
        for case in attempt.cases {
            assert!(known.contains(&case), "{}: what is {case}", attempt.name);
            tried.insert(case);
        }
    }
    let text = fs::read_to_string(own_directory().join("elsewhere.txt")).unwrap();
    for line in text
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
    {
        let (cases, location) = line.split_once(": ").unwrap_or_else(|| panic!("{line}"));
        check_location(location, line);
        for case in cases.split_whitespace() {
            assert!(known.contains(case), "{line}");
            tried.insert(case.to_owned());
        }
    }
    let missing: Vec<&String> = known.difference(&tried).collect();
    assert!(missing.is_empty(), "nobody tries {missing:?}");
}

/// Checks that a place is `not ours: <why>` or a test that exists: `<file> <function>`.
fn check_location(location: &str, line: &str) {
    if let Some(why) = location.strip_prefix("not ours, ") {
        assert!(why.len() > 20, "say why: {line}");
        return;
    }
    let (file, function) = location.split_once(' ').unwrap_or_else(|| panic!("{line}"));
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let text =
        fs::read_to_string(crates.join(file)).unwrap_or_else(|error| panic!("{line}: {error}"));
    assert!(
        text.contains(&format!("fn {function}(")),
        "{line}: no such test"
    );
}
