//! What a corpus showed, as lines and a few totals.
//!
//! Pure: from results to text.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::ecosystem::Expectation;
use super::outcome::CaseOutcome;
use super::plan::BY_HAND;
use super::results::CaseResult;

/// Sums over the results of a run.
#[derive(Debug, Default)]
pub(super) struct CorpusTotals {
    /// Different cheats and honest changes.
    cheats: BTreeSet<String>,
    honest: BTreeSet<String>,
    /// Runs of cheats by what came of them.
    came: BTreeMap<&'static str, usize>,
    /// Runs of honest changes by what came of them.
    honest_came: BTreeMap<&'static str, usize>,
    /// Silently accepted runs of cheats, and all of them, by kind.
    kinds: BTreeMap<String, (usize, usize)>,
    /// The same by way.
    ways: BTreeMap<String, (usize, usize)>,
    /// Ecosystems and ways whose honest changes are refused, so that a refusal there says nothing.
    mute: BTreeSet<String>,
    /// Changes that do not do by hand what they should.
    idle: Vec<String>,
}

/// Returns one line for one result.
pub(super) fn line(result: &CaseResult) -> String {
    let mark = if result.as_expected { "ok " } else { "BAD" };
    let CaseResult {
        ecosystem,
        case,
        way,
        outcome,
        expect,
        ..
    } = result;
    let mut text = format!(
        "{mark} {ecosystem}/{case}/{way}: {} ({:.1} s)",
        outcome.word(),
        f64::from(u32::try_from(result.took_ms).unwrap_or(u32::MAX)) / 1000.0
    );
    if !result.as_expected {
        let wanted = if way == BY_HAND {
            "by hand otherwise"
        } else {
            word(*expect)
        };
        let _written = write!(text, ", expected {wanted}");
    }
    if !outcome.why().is_empty() {
        let _written = write!(text, ": {}", outcome.why());
    }
    text
}

const fn word(expect: Expectation) -> &'static str {
    match expect {
        Expectation::Refused => "refused",
        Expectation::Named => "refused or named",
        Expectation::Honest => "accepted",
        Expectation::Waits => "waits",
        Expectation::Unseen => "anything",
    }
}

/// Sums the results up.
pub(super) fn of(results: &[CaseResult]) -> CorpusTotals {
    let mut totals = CorpusTotals::default();
    let mut fair: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    for result in results {
        let name = format!("{}/{}", result.ecosystem, result.case);
        if result.way == BY_HAND {
            if !result.as_expected {
                totals
                    .idle
                    .push(format!("{name}: {}", result.outcome.why()));
            }
            continue;
        }
        let word = result.outcome.word();
        if result.expect.is_cheat() {
            totals.cheats.insert(name);
            if result.expect == Expectation::Unseen {
                continue;
            }
            *totals.came.entry(word).or_default() += 1;
            let silent = usize::from(result.outcome == CaseOutcome::Accepted);
            for count in [
                totals.kinds.entry(result.kind.clone()).or_default(),
                totals.ways.entry(result.way.clone()).or_default(),
            ] {
                count.0 += silent;
                count.1 += usize::from(result.outcome != CaseOutcome::Absent);
            }
        } else {
            totals.honest.insert(name);
            *totals.honest_came.entry(word).or_default() += 1;
            let is_done = matches!(
                result.outcome,
                CaseOutcome::Accepted | CaseOutcome::Named(_)
            );
            for location in [result.ecosystem.clone(), format!("by {}", result.way)] {
                let done = fair.entry(location).or_default();
                done.0 += usize::from(is_done);
                done.1 += 1;
            }
        }
    }
    let mute = fair
        .iter()
        .filter(|(_, (done, all))| *done == 0 && *all > 0);
    totals.mute = mute.map(|(name, _)| name.clone()).collect();
    totals
}

impl CorpusTotals {
    /// Returns the totals as text.
    pub(super) fn text(&self) -> String {
        let mut text = format!(
            "\n{} cheats: {}\n{} honest changes: {}\n",
            self.cheats.len(),
            shown(&self.came),
            self.honest.len(),
            shown(&self.honest_came)
        );
        for (title, counts) in [("kind", &self.kinds), ("way", &self.ways)] {
            let _written = writeln!(text, "\nsilently accepted by {title}");
            for (name, (silent, all)) in counts {
                let _written = writeln!(text, "{silent:>5} of {all:<4} {name}");
            }
        }
        for name in &self.mute {
            let _written = writeln!(
                text,
                "note: {name}: honest changes are refused too, so its refusals say nothing"
            );
        }
        for name in &self.idle {
            let _written = writeln!(text, "note: not as meant by hand: {name}");
        }
        text
    }
}

fn shown(counts: &BTreeMap<&'static str, usize>) -> String {
    let parts: Vec<String> = counts
        .iter()
        .map(|(word, count)| format!("{count} {word}"))
        .collect();
    parts.join(", ")
}
