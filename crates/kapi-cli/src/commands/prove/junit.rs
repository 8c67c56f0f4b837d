//! A proof as `JUnit` XML, for the reports of CI servers: one test case for each check, and one for the
//! verdict.

use kapi_check::perform::prove::ChangeProof;
use kapi_check::rules::proof::conclusion::ProofStatus;
use kapi_check::rules::proof::verify_report::run_end;
use kapi_check::rules::proof::verify_run::{Checks, VerifyRun};

use super::view::headline;

/// Returns the proof as XML.
pub(super) fn text(proof: &ChangeProof) -> String {
    let empty = Vec::new();
    let runs = proof.report.as_ref().map_or(&empty, |report| &report.runs);
    let mut cases: Vec<String> = runs.iter().map(case).collect();
    cases.push(verdict(proof));
    let n_failed = runs.iter().filter(|run| !run.passed()).count()
        + usize::from(proof.conclusion.state != ProofStatus::Proved);
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n<testsuite name=\"kapi prove\" \
         tests=\"{}\" failures=\"{n_failed}\">\n{}</testsuite>\n</testsuites>\n",
        cases.len(),
        cases.concat()
    )
}

fn case(run: &VerifyRun) -> String {
    let hidden = match run.checks {
        Checks::Visible => "",
        Checks::Hidden => " (hidden checks)",
    };
    let (name, ms) = (
        escaped(&format!("{}{hidden}", run.command)),
        run.duration_ms,
    );
    let body = if run.passed() {
        String::new()
    } else {
        format!(
            "<failure message=\"{}\">{}</failure>",
            escaped(&run_end(run)),
            escaped(&run.output_tail)
        )
    };
    format!(
        "<testcase classname=\"kapi.verify\" name=\"{name}\" time=\"{}.{:03}\">{body}</testcase>\n",
        ms / 1_000,
        ms % 1_000
    )
}

fn verdict(proof: &ChangeProof) -> String {
    let body = match proof.conclusion.state {
        ProofStatus::Proved => String::new(),
        ProofStatus::Unverified | ProofStatus::Refused | ProofStatus::CannotRun => {
            format!("<failure message=\"{}\"/>", escaped(&headline(proof)))
        }
    };
    format!("<testcase classname=\"kapi\" name=\"verdict\">{body}</testcase>\n")
}

/// Returns text as XML holds it; characters that XML has no place for are left out.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\t' | '\n' | '\r' => escaped.push(c),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => {}
            c => escaped.push(c),
        }
    }
    escaped
}
