//! One row of a table: two programs measured, or which of them cannot be run here and why.

use super::invocation::Invocation;
use super::sample::{Pair, by_turns};
use super::table::{ComparisonFinding, ComparisonRow, Gap};

/// Measures two programs, or says which of them cannot be run here.
pub(super) fn compare(
    rounds: usize,
    ours: &Invocation,
    peer: &Invocation,
) -> anyhow::Result<ComparisonRow> {
    if let Some(row) = gap(ours, peer) {
        return Ok(row);
    }
    let (mut first, mut second) = (ours.repeated(), peer.repeated());
    let pair = by_turns(rounds, &mut || first.time(), &mut || second.time())?;
    Ok(measured(&ours.shown, &peer.shown, pair))
}

/// Returns a row of what was measured.
pub(super) fn measured(ours: &str, peer: &str, pair: Pair) -> ComparisonRow {
    ComparisonRow {
        ours: ours.to_owned(),
        peer: peer.to_owned(),
        finding: ComparisonFinding::Measured(pair),
    }
}

/// Runs both once and returns the row that says which of them does not run, if one does not.
pub(super) fn gap(ours: &Invocation, peer: &Invocation) -> Option<ComparisonRow> {
    [(ours, Side::Ours), (peer, Side::Peer)]
        .into_iter()
        .find_map(|(invocation, side)| {
            let error = invocation.read().err()?;
            let reason = format!("{error:#}");
            Some(not_run(&ours.shown, &peer.shown, &reason, side))
        })
}

/// One side of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Ours,
    Peer,
}

/// Returns the row of a side that cannot be run.
pub(super) fn not_run(ours: &str, peer: &str, reason: &str, side: Side) -> ComparisonRow {
    let name = if side == Side::Ours { ours } else { peer };
    // One line, and none of the table's own marks.
    let reason = reason.replace(['\n', '|'], " ");
    let gap = Gap {
        name: name.to_owned(),
        reason,
        is_ours: side == Side::Ours,
    };
    ComparisonRow {
        ours: ours.to_owned(),
        peer: peer.to_owned(),
        finding: ComparisonFinding::NotRun(gap),
    }
}
