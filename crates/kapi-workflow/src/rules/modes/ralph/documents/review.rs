//! `review.md`: every review, bound to the commit it looked at, correctness before simplicity.

use crate::rules::modes::ralph::documents::markdown::{code, list, quote};
use crate::rules::modes::ralph::review::{Review, ReviewFinding};
use crate::rules::modes::ralph::state::Ralph;
use crate::rules::report::one_line;
use crate::rules::state::Workflow;

/// Returns the document.
pub(in crate::rules::modes::ralph) fn text(workflow: &Workflow, ralph: &Ralph) -> String {
    let mut parts = vec![format!("# Reviews of {}", workflow.id)];
    let head = ralph.branch.as_ref().map(|branch| branch.head.as_str());
    for review in &ralph.reviews {
        parts.push(one(workflow, review, head == Some(review.commit.as_str())));
    }
    format!("{}\n", parts.join("\n\n"))
}

fn one(workflow: &Workflow, review: &Review, is_current: bool) -> String {
    let findings: Vec<String> = review.findings.findings.iter().map(finding).collect();
    let mut parts = vec![
        format!(
            "## Review {}: {}",
            review.cycle,
            review.findings.verdict().as_str()
        ),
        format!(
            "Of {}{}, by {}.",
            code(&review.commit),
            if is_current {
                ", which is the branch's head"
            } else {
                ""
            },
            one_line(&review.by.to_string())
        ),
    ];
    if review.by.agent == workflow.terms.agent {
        parts.push(
            "The reviewer is the agent that also does the work, in a separate run.".to_owned(),
        );
    }
    parts.push(quote(&review.findings.summary));
    if let Some(replan) = &review.findings.replan {
        parts.push(format!("The plan itself is wrong:\n\n{}", quote(replan)));
    }
    parts.push(format!("Findings:\n\n{}", list(&findings)));
    parts.join("\n\n")
}

fn finding(finding: &ReviewFinding) -> String {
    let location = match (&finding.file, finding.line) {
        (Some(file), Some(number)) => format!(" ({})", code(&format!("{file}:{number}"))),
        (Some(file), None) => format!(" ({})", code(file)),
        (None, _) => String::new(),
    };
    let weight = if finding.must_fix {
        "**must be fixed** "
    } else {
        ""
    };
    format!(
        "{weight}[{}] {}{location}\n  - {}",
        finding.category.words(),
        one_line(&finding.title),
        one_line(&finding.detail)
    )
}
