//! What `kapi prove` prints: for people, and the same facts as JSON.
//!
//! The fields are documented in `docs/json.md`.

use kapi_check::perform::prove::ChangeProof;
use kapi_check::rules::proof::assess;
use kapi_check::rules::proof::assess::Grade;
use kapi_check::rules::proof::inspection::Inspection;
use kapi_check::rules::proof::verify_report::{VerifyReport, proof_lines, run_end};
use kapi_core::text::short_id;
use kapi_wire::result::{JudgeView, VerifyView};
use serde::Serialize;

use crate::ui::{Format, Ui};

#[derive(Debug, Serialize)]
struct ProveView<'a> {
    /// `proved`, `unverified`, `refused` or `cannot_run`.
    verdict: &'static str,
    reason: &'a str,
    hint: Option<&'a str>,
    base: &'a str,
    commit: &'a str,
    /// `red_to_green`, `own_tests` or `kept_green`; `null` where a check fails.
    grade: Option<Grade>,
    baseline: Vec<VerifyView>,
    verify: Vec<VerifyView>,
    tampered: &'a [String],
    inspection: Option<&'a Inspection>,
    judge: Option<JudgeView>,
    /// What the commands leave out, as sentences.
    not_covered: &'a [String],
}

/// Shows a proof.
pub(super) fn show(ui: Ui, proof: &ChangeProof) {
    match ui.format {
        Format::Json => ui.json(&view(proof)),
        Format::Human => {
            for line in lines(proof) {
                ui.line(&line);
            }
        }
    }
}

fn view(proof: &ChangeProof) -> ProveView<'_> {
    let report = proof.report.as_ref();
    let conclusion = &proof.conclusion;
    ProveView {
        verdict: conclusion.state.as_str(),
        reason: &conclusion.reason,
        hint: conclusion.hint.as_deref(),
        base: &proof.base,
        commit: &proof.commit,
        grade: grade(proof),
        baseline: VerifyView::all(&proof.baseline),
        verify: report.map(VerifyView::all).unwrap_or_default(),
        tampered: report.map_or(&[], |report| &report.tampered),
        inspection: report.map(|report| &*report.inspection),
        judge: proof.judged.as_ref().map(JudgeView::from),
        not_covered: &proof.not_covered,
    }
}

/// Returns how much the checks show, where they pass.
pub(super) fn grade(proof: &ChangeProof) -> Option<Grade> {
    let report = proof.report.as_ref().filter(|report| report.passed())?;
    Some(assess::grade(Some(&proof.baseline), report))
}

/// Returns the verdict as one line for people.
pub(super) fn headline(proof: &ChangeProof) -> String {
    let conclusion = &proof.conclusion;
    let state = conclusion.state.as_str().replace('_', " ");
    format!("{state}: {}", conclusion.reason)
}

fn lines(proof: &ChangeProof) -> Vec<String> {
    let mut lines = vec![
        headline(proof),
        format!(
            "  change    {}..{}",
            short_id(&proof.base),
            short_id(&proof.commit)
        ),
    ];
    lines.extend(runs("on the base", &proof.baseline));
    if let Some(report) = &proof.report {
        lines.extend(runs("with it", report));
        let seen = proof_lines(report);
        lines.extend(seen.iter().map(|line| format!("  {line}")));
    }
    if let Some(run) = &proof.judged {
        let view = JudgeView::from(run);
        lines.push(format!(
            "  judge     {}: {}: {}",
            view.by, view.verdict, view.reason
        ));
    }
    let not_covered = proof.not_covered.iter();
    lines.extend(not_covered.map(|sentence| format!("  note      {sentence}")));
    if let Some(hint) = &proof.conclusion.hint {
        lines.push(format!("hint: {hint}"));
    }
    lines
}

fn runs(name: &str, report: &VerifyReport) -> Vec<String> {
    let line = |run: &kapi_check::rules::proof::verify_run::VerifyRun| {
        let tally = run
            .tally
            .map_or_else(String::new, |tally| format!(" ({tally})"));
        format!("  {name:<9} `{}` {}{tally}", run.command, run_end(run))
    };
    report.runs.iter().map(line).collect()
}
