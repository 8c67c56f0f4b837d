//! A proof as Markdown, for the description or a comment of a pull request.

use kapi_core::goal::outcome::VerifyReport;
use kapi_core::goal::words;
use kapi_core::proof::conclusion::Standing;
use kapi_core::proof::inspection::proof_lines;
use kapi_wire::result::JudgeView;
use kapi_world::prove::Proof;

use super::view::{grade, headline};
use crate::contract::short;

/// Returns the proof as Markdown.
pub(super) fn text(proof: &Proof) -> String {
    let mark = match proof.conclusion.standing {
        Standing::Proved => "✅",
        Standing::Unverified => "⚠️",
        Standing::Refused | Standing::CannotRun => "❌",
    };
    let mut text = format!(
        "## {mark} {}\n\n`{}..{}`",
        plain(&headline(proof)),
        short(&proof.base),
        short(&proof.commit)
    );
    if let Some(grade) = grade(proof) {
        text.push_str(&format!(" · {}", grade.words()));
    }
    text.push_str("\n\n| checks | on the base | with the change |\n|---|---|---|\n");
    for run in &proof.baseline.runs {
        let same = |other: &&kapi_core::goal::outcome::VerifyRun| {
            other.command == run.command && other.checks == run.checks
        };
        let now = proof.report.as_ref();
        let now = now.and_then(|report| report.runs.iter().find(same));
        let cell = |run: &kapi_core::goal::outcome::VerifyRun| {
            let tally = run
                .tally
                .map_or_else(String::new, |tally| format!(" ({tally})"));
            format!("{}{tally}", words::run_end(run))
        };
        text.push_str(&format!(
            "| `{}` | {} | {} |\n",
            run.command.replace('|', "\\|").replace('`', "'"),
            cell(run),
            now.map_or_else(|| "not run".to_owned(), cell)
        ));
    }
    text.push_str(&seen(proof.report.as_ref()));
    if let Some(run) = &proof.judged {
        let view = JudgeView::from(run);
        text.push_str(&format!(
            "\nJudge {}: **{}** – {}\n",
            plain(&view.by),
            view.verdict,
            plain(&view.reason)
        ));
    }
    if let Some(hint) = &proof.conclusion.hint {
        text.push_str(&format!("\n{}\n", plain(hint)));
    }
    text
}

fn seen(report: Option<&VerifyReport>) -> String {
    let lines = report.map(proof_lines).unwrap_or_default();
    if lines.is_empty() {
        return String::new();
    }
    let lines: Vec<String> = lines.iter().map(|line| plain(line)).collect();
    format!("\n{}\n", lines.join("\n"))
}

/// Returns foreign text that no Markdown or HTML in it can act in.
fn plain(text: &str) -> String {
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
