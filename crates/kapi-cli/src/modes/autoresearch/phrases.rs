//! What is said of a search wherever it is shown: in the terminal, in its pictures, on its page.

use kapi_workflow::rules::modes::Body;
use kapi_workflow::rules::modes::autoresearch::run::{Run, RunStatus};
use kapi_workflow::rules::modes::autoresearch::state::Autoresearch;
use kapi_workflow::rules::modes::autoresearch::summary::{Summary, shown};
use kapi_workflow::rules::state::Workflow;

/// Returns the search of a workflow.
pub(super) const fn of(workflow: &Workflow) -> Option<&Autoresearch> {
    if let Body::Autoresearch(search) = &workflow.body {
        Some(search)
    } else {
        None
    }
}

/// Says by how much the best is better than the baseline, and how sure that is.
pub(super) fn gain(found: &Summary, unit: &str) -> String {
    let over = over(found, unit);
    match found.gain_percent {
        None => format!("not in percent, {over}"),
        Some(gain) if gain.get() <= 0.0 => format!("none {over}"),
        Some(gain) => format!("{} % {over}", shown(gain)),
    }
}

/// Says over what, and how far that scatters.
pub(super) fn over(found: &Summary, unit: &str) -> String {
    let baseline = shown(found.baseline);
    let sure = match (found.noise_percent, found.noise) {
        (Some(noise), _) => format!("\u{b1} {} % noise", shown(noise)),
        // Nothing is a part of a baseline of zero.
        (None, Some(noise)) => format!("\u{b1} {}{unit} noise", shown(noise)),
        (None, None) => "one sample, so its noise is unknown".to_owned(),
    };
    format!("over the baseline of {baseline}{unit} ({sure})")
}

/// Returns what became of a run, in a word or two.
pub(super) const fn verdict(run: &Run) -> &'static str {
    match run.status {
        RunStatus::Keep if run.is_baseline => "baseline",
        RunStatus::Keep => "kept",
        RunStatus::Discard => "discarded",
        RunStatus::Crash => "crashed",
        RunStatus::ChecksFailed => "checks failed",
    }
}

#[cfg(test)]
mod tests {
    use kapi_check::rules::measure::number::Number;
    use kapi_workflow::rules::modes::autoresearch::summary::Summary;

    use super::gain;

    #[test]
    fn noise_over_a_baseline_of_zero_has_no_percentage_and_is_known() {
        let number = |number| Number::new(number).unwrap();
        let mut found = Summary {
            baseline: number(0.0),
            best: number(2.0),
            best_run: 2,
            gain_percent: None,
            noise: Some(number(0.5)),
            noise_percent: None,
            confidence: None,
        };
        let said = gain(&found, "ms");
        assert_eq!(
            said,
            "not in percent, over the baseline of 0ms (\u{b1} 0.5ms noise)"
        );
        found.noise = None;
        assert!(gain(&found, "ms").ends_with("(one sample, so its noise is unknown)"));
    }
}
