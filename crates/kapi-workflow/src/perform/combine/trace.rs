//! Tracing a result to the sources that it was made of.
//!
//! What is not accounted for is numbered for whoever reviews it; nothing is judged here.

use std::collections::BTreeSet;
use std::path::PathBuf;

use kapi_core::failure::Failure;
use kapi_core::text::one_line;
use kapi_git::coverage::{self, CoveragePlan, FindingKind, IntegratedSource};
use kapi_run::repository_session;

use super::{StepWorld, range};
use crate::perform::EffectRefusal;
use crate::rules::effect::combine::{
    CombineReport, Coverage, CoverageFault, CoverageFinding, SourceCoverage, TracedStep,
};

/// The most findings that are kept: more than that nobody reviews one by one.
const FINDINGS_MAX: usize = 100;
/// The most bytes of a line that a finding shows.
const LINE_BYTES_MAX: usize = 160;
/// The most lines that a finding shows of each side.
const LINES_MAX: usize = 3;

pub(super) fn trace(
    at: &StepWorld<'_>,
    base: &str,
    head: &str,
    steps: &[TracedStep],
) -> Result<CombineReport, EffectRefusal> {
    let sources: Vec<IntegratedSource> = steps
        .iter()
        .map(|step| {
            Ok(IntegratedSource {
                range: range(&step.source)?,
                after: repository_session::commit_id(&step.after)?,
            })
        })
        .collect::<Result<_, Failure>>()?;
    let generated = steps.iter().flat_map(|step| &step.generated);
    let generated: BTreeSet<PathBuf> = generated.map(PathBuf::from).collect();
    let (dev, result) = (
        repository_session::commit_id(base)?,
        repository_session::commit_id(head)?,
    );
    let found = at.repo.repository.coverage(&CoveragePlan {
        dev: &dev,
        head: &result,
        sources: &sources,
        generated: &generated,
        scratch: &at.scratch.join("coverage"),
    });
    let found = found.map_err(|error| EffectRefusal {
        may_pass: error.may_pass(),
        ..EffectRefusal::lasting_error(&error)
    })?;
    let n_more = found.findings.len().saturating_sub(FINDINGS_MAX);
    let findings = found.findings.iter().take(FINDINGS_MAX);
    let covered = steps.iter().zip(&found.sources);
    Ok(CombineReport::Traced(Box::new(Coverage {
        head: head.to_owned(),
        n_hunks: found.result.total,
        n_traced: found.result.covered,
        sources: covered
            .map(|(step, count)| SourceCoverage {
                source: step.source.id.clone(),
                n_hunks: count.total,
                n_there: count.covered,
            })
            .collect(),
        findings: findings.map(|it| finding(it, steps)).collect(),
        n_more: u64::try_from(n_more).unwrap_or(u64::MAX),
    })))
}

const fn kind(kind: FindingKind) -> CoverageFault {
    match kind {
        FindingKind::Missed => CoverageFault::Missed,
        FindingKind::Altered => CoverageFault::Altered,
        FindingKind::Duplicated => CoverageFault::Duplicated,
        FindingKind::Shared => CoverageFault::Shared,
        FindingKind::Reverted => CoverageFault::Reverted,
        FindingKind::Unexpected => CoverageFault::Unexpected,
    }
}

fn finding(found: &coverage::CoverageFinding, steps: &[TracedStep]) -> CoverageFinding {
    let name = |place: Option<usize>| {
        let step = place.and_then(|place| steps.get(place));
        step.map(|step| step.source.id.clone())
    };
    let mut parts = Vec::new();
    for (word, side) in [("gone", &found.lost), ("there", &found.found)] {
        if !side.is_empty() {
            parts.push(format!("{word}: {}", lines(side)));
        }
    }
    if let Some(other) = name(found.other) {
        parts.push(format!("{other} makes it too"));
    }
    if let Some(merge) = &found.merge {
        parts.push(format!("by the merge {merge} within the source"));
    }
    if found.is_settled {
        parts.push("where a conflict was resolved".to_owned());
    }
    CoverageFinding {
        kind: kind(found.kind),
        source: name(found.source),
        path: found.path.display().to_string(),
        line: found.line,
        what: parts.join("; "),
    }
}

fn lines(side: &[Vec<u8>]) -> String {
    let shown = side.iter().take(LINES_MAX).map(|line| {
        let text = one_line(&String::from_utf8_lossy(line));
        format!("`{}`", kapi_core::quote::head(&text, LINE_BYTES_MAX))
    });
    let shown: Vec<String> = shown.collect();
    match side.len().saturating_sub(LINES_MAX) {
        0 => shown.join(" "),
        n => format!("{} and {n} more lines", shown.join(" ")),
    }
}
