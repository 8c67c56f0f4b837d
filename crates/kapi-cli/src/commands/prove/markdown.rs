//! A proof as Markdown, for the description or a comment of a pull request.

use kapi_check::perform::prove::ChangeProof;
use kapi_check::rules::proof::conclusion::ProofStatus;
use kapi_check::rules::proof::verify_report::{VerifyReport, proof_lines, run_end};
use kapi_check::rules::proof::verify_run::VerifyRun;
use kapi_core::text::short_id;
use kapi_wire::result::JudgeView;

use super::view::headline;

/// Returns the proof as Markdown.
pub(super) fn text(proof: &ChangeProof) -> String {
    let mark = match proof.conclusion.state {
        ProofStatus::Proved => "✅",
        ProofStatus::Unverified => "⚠️",
        ProofStatus::Refused | ProofStatus::CannotRun => "❌",
    };
    let rows: Vec<String> = proof
        .baseline
        .runs
        .iter()
        .map(|run| row(proof.report.as_ref(), run))
        .collect();
    let judged = proof.judged.as_ref().map(JudgeView::from).map(|view| {
        let (by, reason) = (plain(&view.by), plain(&view.reason));
        format!("\nJudge {by}: **{}** – {reason}\n", view.verdict)
    });
    let not_covered = proof.not_covered.iter();
    let not_covered: String = not_covered
        .map(|sentence| format!("\n{}\n", plain(sentence)))
        .collect();
    let hint = proof.conclusion.hint.as_ref();
    let hint = hint.map(|hint| format!("\n{}\n", plain(hint)));
    [
        format!(
            "## {mark} {}\n\n`{}..{}`\n\n",
            plain(&headline(proof)),
            short_id(&proof.base),
            short_id(&proof.commit)
        ),
        "| checks | on the base | with the change |\n|---|---|---|\n".to_owned(),
        rows.concat(),
        seen(proof.report.as_ref()),
        judged.unwrap_or_default(),
        not_covered,
        hint.unwrap_or_default(),
    ]
    .concat()
}

/// Returns the row of a table for one check, on the base and with the change.
pub(crate) fn row(now: Option<&VerifyReport>, run: &VerifyRun) -> String {
    let same = |other: &&VerifyRun| other.command == run.command && other.checks == run.checks;
    let now = now.and_then(|report| report.runs.iter().find(same));
    let cell = |run: &VerifyRun| {
        let tally = run
            .tally
            .map_or_else(String::new, |tally| format!(" ({tally})"));
        format!("{}{tally}", run_end(run))
    };
    format!(
        "| `{}` | {} | {} |\n",
        run.command.replace('|', "\\|").replace('`', "'"),
        cell(run),
        now.map_or_else(|| "not run".to_owned(), cell)
    )
}

/// Returns what else a report says of its proof.
pub(crate) fn seen(report: Option<&VerifyReport>) -> String {
    let lines = report.map(proof_lines).unwrap_or_default();
    if lines.is_empty() {
        return String::new();
    }
    let lines: Vec<String> = lines.iter().map(|line| plain(line)).collect();
    format!("\n{}\n", lines.join("\n"))
}

/// Returns foreign text that no Markdown or HTML in it can act in.
pub(crate) fn plain(text: &str) -> String {
    let mut plain = String::new();
    for c in text.chars() {
        match c {
            '<' => plain.push_str("&lt;"),
            '>' => plain.push_str("&gt;"),
            '\n' | '\r' => plain.push(' '),
            '[' | ']' | '!' | '@' | '#' => {
                plain.push('\\');
                plain.push(c);
            }
            c => plain.push(c),
        }
    }
    plain
}
