//! The tables of `docs/proof.md`: what the last runs showed, below what a person wrote there.
//!
//! Claims nothing that was not run: a part without results says so.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::Context as _;
use kapi_sys::disk::replace_durably;
use kapi_sys::real_disk::RealDisk;

use super::CorpusOptions;
use super::ecosystem::Expectation;
use super::outcome::CaseOutcome;
use super::plan::BY_HAND;
use super::results::{CaseResult, REAL_RESULTS, RESULTS, RealResult, read_results};
use crate::output::talk;
use crate::tool::ToolCommand;

/// What is written.
const DOCUMENT: &str = "docs/proof.md";
/// What the first table begins with; all above it is a person's.
const TABLES: &str = "## Cheats\n";
/// The line above it that says what was measured.
const MEASURED: &str = "Last measured with Kapi at ";

/// Writes the tables of the document anew, from the results of the last runs.
///
/// # Errors
/// When the document or the results cannot be read, or the document cannot be written.
pub(super) fn write(root: &Path, location: &Path, options: &CorpusOptions) -> anyhow::Result<()> {
    let old = fs::read_to_string(root.join(DOCUMENT));
    let old = old.with_context(|| format!("read {DOCUMENT}"))?;
    let end = old.find(MEASURED).or_else(|| old.find(TABLES));
    let head = end.and_then(|end| old.get(..end));
    let head = head.with_context(|| format!("find {TABLES:?} in {DOCUMENT}"))?;
    let mut text = head.to_owned();
    let commit = ToolCommand::new(root, "git", &["rev-parse", "--short", "HEAD"]).read()?;
    let _written = writeln!(
        text,
        "{MEASURED}{}{}; a row that this run did not try is that of an earlier one.\n",
        commit.trim(),
        // Nothing says of another program which commit it was built from.
        match options.kapi {
            Some(_) => " or before it, built apart",
            None => "",
        }
    );
    let results = read_results::<CaseResult>(&location.join(RESULTS))?;
    text.push_str(&cheats(&results));
    text.push_str(&honest(&results));
    text.push_str(&real(&read_results::<RealResult>(
        &location.join(REAL_RESULTS),
    )?));
    replace_durably(&RealDisk, &root.join(DOCUMENT), text.as_bytes())?;
    talk(&format!("The tables are in {DOCUMENT}."));
    Ok(())
}

fn cheats(results: &[CaseResult]) -> String {
    let mut text = "## Cheats\n\n".to_owned();
    let tried: Vec<&CaseResult> = results
        .iter()
        .filter(|result| result.way != BY_HAND && result.expect.is_cheat())
        .collect();
    if tried.is_empty() {
        text.push_str("Not run yet: `cargo xtask cheats --write`.\n\n");
        return text;
    }
    text.push_str("| kind | ecosystem | cheat | came out, by way |\n|---|---|---|---|\n");
    let mut rows: BTreeMap<(&str, &str, &str), Vec<&CaseResult>> = BTreeMap::new();
    for result in &tried {
        let key = (
            result.kind.as_str(),
            result.ecosystem.as_str(),
            result.case.as_str(),
        );
        rows.entry(key).or_default().push(result);
    }
    for ((kind, ecosystem, case), results) in rows {
        let _written = writeln!(
            text,
            "| {kind} | {ecosystem} | {case} | {} |",
            by_way(&results)
        );
    }
    text.push('\n');
    text.push_str(&lists(&tried));
    text
}

/// Lists what can only be named, and what no command can tell.
fn lists(tried: &[&CaseResult]) -> String {
    let name = |result: &&CaseResult| format!("{}/{}", result.ecosystem, result.case);
    let collect = |is: &dyn Fn(&CaseResult) -> bool| -> BTreeSet<String> {
        tried.iter().filter(|result| is(result)).map(name).collect()
    };
    let parts = [
        (
            "Only named, not refused",
            collect(&|result| matches!(result.outcome, CaseOutcome::Named(_))),
        ),
        (
            "Silently accepted",
            collect(&|result| {
                result.outcome == CaseOutcome::Accepted && result.expect != Expectation::Unseen
            }),
        ),
        (
            "What no command can tell",
            collect(&|result| result.expect == Expectation::Unseen),
        ),
        (
            "Not tried by some way",
            collect(&|result| {
                matches!(result.outcome, CaseOutcome::Absent | CaseOutcome::Broken(_))
            }),
        ),
    ];
    let mut text = String::new();
    for (title, names) in parts {
        let shown: Vec<String> = names.into_iter().collect();
        let shown = if shown.is_empty() {
            "none".to_owned()
        } else {
            shown.join(", ")
        };
        let _written = writeln!(text, "- {title}: {shown}.");
    }
    text.push('\n');
    text
}

fn honest(results: &[CaseResult]) -> String {
    let mut text = "## Honest changes\n\n".to_owned();
    let mut rows: BTreeMap<(&str, &str, &str), Vec<&CaseResult>> = BTreeMap::new();
    for result in results {
        if result.way != BY_HAND && !result.expect.is_cheat() {
            let key = (
                result.kind.as_str(),
                result.ecosystem.as_str(),
                result.case.as_str(),
            );
            rows.entry(key).or_default().push(result);
        }
    }
    if rows.is_empty() {
        text.push_str("Not run yet: `cargo xtask cheats --write`.\n");
        return text;
    }
    text.push_str("| kind | ecosystem | change | came out, by way |\n|---|---|---|---|\n");
    for ((kind, ecosystem, case), results) in rows {
        let _written = writeln!(
            text,
            "| {kind} | {ecosystem} | {case} | {} |",
            by_way(&results)
        );
    }
    text
}

/// Returns `refused: run, task; named: loop`.
fn by_way(results: &[&CaseResult]) -> String {
    let mut words: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for result in results {
        words
            .entry(result.outcome.word())
            .or_default()
            .push(&result.way);
    }
    let parts: Vec<String> = words
        .iter()
        .map(|(word, ways)| format!("{word}: {}", ways.join(", ")))
        .collect();
    parts.join("; ")
}

fn real(results: &[RealResult]) -> String {
    let mut text = "\n## Real projects\n\n".to_owned();
    if results.is_empty() {
        text.push_str("Not run yet: `cargo xtask realrepos --write`.\n");
        return text;
    }
    text.push_str(
        "| ecosystem | project | command | wrong fix | right fix | by `kapi prove` | by hand | in the prover | ratio |\n\
         |---|---|---|---|---|---|---|---|---|\n",
    );
    let word = |outcome: &Option<CaseOutcome>| {
        let outcome = outcome.as_ref();
        outcome.map_or("not tried", CaseOutcome::word)
    };
    let time = |time: Option<[u64; 2]>| {
        time.map_or("–".to_owned(), |[median, spread]| {
            format!("{median} ms (spread {spread})")
        })
    };
    for result in results {
        let _written = writeln!(
            text,
            "| {} | {} | `{}` | {} | {} | {} | {} | {} | {} |",
            result.ecosystem,
            result.name,
            result.verify,
            word(&result.wrong),
            word(&result.right),
            result
                .by_prove
                .as_ref()
                .map_or("–".to_owned(), |[wrong, right]| {
                    format!("{}, {}", wrong.word(), right.word())
                }),
            time(result.by_hand_ms),
            time(result.proved_ms),
            result.ratio().unwrap_or_else(|| "–".to_owned())
        );
    }
    text
}
