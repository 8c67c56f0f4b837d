//! What a measurement means: keep, discard, crash, checks failed, or measure once more.
//!
//! The only place where a number decides. An agent's words are not among the arguments.

use kapi_check::rules::measure::number::Number;
use kapi_check::rules::measure::statistics::median;
use kapi_check::rules::measure::{MeasurementReport, Sample, ScriptRun};

use crate::rules::modes::autoresearch::contract::{Contract, Keep};
use crate::rules::modes::autoresearch::run::RunStatus;
use crate::rules::modes::autoresearch::verdict::pairs::PairVerdict;

pub(crate) mod pairs;

/// What a candidate is judged against.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reference {
    /// The metric of the run that the branch holds.
    pub best: Number,
    /// How many lines of one sample of the baseline said the metric, at most.
    pub lines: u32,
}

/// What a measurement means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It is decided.
    Decided(Ruling),
    /// The rule wants another measurement.
    Again(Inputs),
}

/// On which inputs something is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Inputs {
    /// Those that the agent knows.
    Visible,
    /// Those that no agent sees.
    HeldBack,
}

/// A decision about a measured commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ruling {
    /// What becomes of it.
    pub status: RunStatus,
    /// The primary metric; none where nothing can be believed.
    pub metric: Option<Number>,
    /// Why, in a sentence without a period.
    pub reason: String,
}

/// Returns on which inputs a candidate is measured next, after all its measurements so far.
#[must_use]
pub fn inputs(contract: &Contract, reference: &Reference, all: &[MeasurementReport]) -> Inputs {
    if all.is_empty() {
        return Inputs::Visible;
    }
    match candidate(contract, reference, all) {
        Verdict::Again(inputs) => inputs,
        Verdict::Decided(_) => Inputs::Visible,
    }
}

/// Judges a candidate by all its measurements.
#[must_use]
pub fn candidate(contract: &Contract, reference: &Reference, all: &[MeasurementReport]) -> Verdict {
    let metric = match sound(contract, Some(reference.lines), all) {
        Ok(metric) => metric,
        Err(judged) => return Verdict::Decided(judged),
    };
    let decided = |status, reason| {
        Verdict::Decided(Ruling {
            status,
            metric: Some(metric),
            reason,
        })
    };
    let rule = contract.rule.keep;
    let (held_back, seen): (Vec<_>, Vec<_>) = all.iter().partition(|it| it.held_back);
    let seen = match rule {
        Keep::Plain | Keep::Confirm => alone(contract, reference.best, &seen),
        Keep::Interleaved | Keep::Paired | Keep::Ranked => pairs::judged(contract, &seen),
    };
    let said = match seen {
        PairVerdict::Again => return Verdict::Again(Inputs::Visible),
        PairVerdict::Worse(said) => {
            return decided(RunStatus::Discard, format!("{}: {said}", rule.as_str()));
        }
        PairVerdict::Better(said) => format!("{}: {said}", rule.as_str()),
    };
    if contract.held_back.is_none() {
        return decided(RunStatus::Keep, said);
    }
    match pairs::judged(contract, &held_back) {
        PairVerdict::Again => Verdict::Again(Inputs::HeldBack),
        PairVerdict::Better(held_back) => decided(
            RunStatus::Keep,
            format!("{said}; on the held-back inputs {held_back}"),
        ),
        PairVerdict::Worse(held_back) => decided(
            RunStatus::Discard,
            format!("{said}, but on the held-back inputs {held_back}"),
        ),
    }
}

/// Judges by what was measured of the candidate alone.
fn alone(contract: &Contract, best: Number, seen: &[&MeasurementReport]) -> PairVerdict {
    let name = &contract.metric.name;
    let worse = seen
        .iter()
        .filter_map(|it| it.median(name))
        .find(|it| !is_better(contract, best, *it));
    if let Some(worse) = worse {
        return PairVerdict::Worse(compared(contract, worse, best));
    }
    let wanted = if contract.rule.keep == Keep::Confirm {
        2
    } else {
        1
    };
    match metric(contract, seen) {
        Some(metric) if seen.len() >= wanted => {
            PairVerdict::Better(compared(contract, metric, best))
        }
        Some(_) | None => PairVerdict::Again,
    }
}

/// Judges what a segment is to be compared with: it holds, or why it does not.
///
/// # Errors
/// With what became of it.
pub fn baseline(contract: &Contract, measured: &MeasurementReport) -> Result<Ruling, Ruling> {
    let metric = sound(contract, None, std::slice::from_ref(measured))?;
    Ok(Ruling {
        status: RunStatus::Keep,
        metric: Some(metric),
        reason: "what the others of its segment are compared with".to_owned(),
    })
}

/// Returns by which part of what it was compared with a candidate is better on the visible inputs.
#[must_use]
pub fn relative_gain(
    contract: &Contract,
    reference: &Reference,
    all: &[MeasurementReport],
) -> Option<f64> {
    let reports: Vec<&MeasurementReport> = all.iter().collect();
    let found = metric(contract, &reports)?;
    let parents = all.iter().filter(|it| !it.held_back);
    let parents = parents.flat_map(|it| &it.against);
    let parents: Vec<Number> = parents
        .filter_map(|sample| sample.value(&contract.metric.name))
        .collect();
    let from = median(&parents).unwrap_or(reference.best);
    let gain = contract.metric.direction.gain(from, found);
    Some(match from.get().abs() {
        0.0 => gain,
        size => gain / size,
    })
}

/// Returns the median of the primary metric over every sample on the visible inputs.
fn metric(contract: &Contract, all: &[&MeasurementReport]) -> Option<Number> {
    let samples = all.iter().filter(|it| !it.held_back);
    let samples = samples.flat_map(|it| &it.samples);
    let values: Option<Vec<Number>> = samples
        .map(|sample| sample.value(&contract.metric.name))
        .collect();
    median(&values?)
}

/// Returns the primary metric over every sample, if everything ended as it must.
fn sound(
    contract: &Contract,
    lines: Option<u32>,
    all: &[MeasurementReport],
) -> Result<Number, Ruling> {
    let crash = |reason: String| Ruling {
        status: RunStatus::Crash,
        metric: None,
        reason,
    };
    let tampered: Vec<&str> = all
        .iter()
        .flat_map(|it| &it.tampered)
        .map(String::as_str)
        .collect();
    if !tampered.is_empty() {
        let names = tampered.join(", ");
        return Err(crash(format!("{names} changed while it was measured")));
    }
    let mut samples = all.iter().flat_map(|it| &it.samples);
    if let Some(failed) = samples.clone().find(|sample| !sample.run.passed()) {
        return Err(crash(format!("benchmark.sh {}", failed.run.words())));
    }
    let mut parents = all.iter().flat_map(|it| &it.against);
    if let Some(failed) = parents.clone().find(|sample| !sample.run.passed()) {
        let ended = failed.run.words();
        return Err(crash(format!("benchmark.sh of its parent {ended}")));
    }
    let name = &contract.metric.name;
    let has_metric = |sample: &Sample| sample.value(name).is_some();
    let reports: Vec<&MeasurementReport> = all.iter().collect();
    let found = metric(contract, &reports);
    let is_whole = samples.clone().all(has_metric) && parents.all(has_metric);
    let Some(found) = found.filter(|_| is_whole) else {
        return Err(crash(format!("benchmark.sh printed no `METRIC {name}=…`")));
    };
    if let Some(lines) = lines
        && let Some(more) = samples.find(|sample| sample.lines(name) > lines)
    {
        return Err(crash(format!(
            "`METRIC {name}=…` was printed {} times in one run, at most {lines} by the baseline: \
             something else than benchmark.sh may print it",
            more.lines(name)
        )));
    }
    let checks: Vec<&ScriptRun> = all.iter().filter_map(|it| it.checks.as_ref()).collect();
    if let Some(failed) = checks.iter().find(|run| !run.passed()) {
        return Err(Ruling {
            status: RunStatus::ChecksFailed,
            metric: Some(found),
            reason: format!("checks.sh {}", failed.words()),
        });
    }
    if contract.checks.is_some() && checks.is_empty() {
        return Err(crash("checks.sh was not run".to_owned()));
    }
    Ok(found)
}

/// Tells whether a number is strictly better, and by as much as the contract demands.
fn is_better(contract: &Contract, from: Number, to: Number) -> bool {
    let gain = contract.metric.direction.gain(from, to);
    gain > 0.0 && gain >= least(contract, from)
}

/// Returns by how much another number has to be better than this one at least.
fn least(contract: &Contract, from: Number) -> f64 {
    f64::from(contract.rule.least_permille) / 1_000.0 * from.get().abs()
}

fn compared(contract: &Contract, found: Number, best: Number) -> String {
    let unit = &contract.metric.unit;
    let gain = contract.metric.direction.gain(best, found);
    let word = if is_better(contract, best, found) {
        "better than"
    } else if gain > 0.0 {
        "better by too little than"
    } else if gain < 0.0 {
        "worse than"
    } else {
        "equal to"
    };
    format!("{found}{unit} is {word} {best}{unit}")
}

#[cfg(test)]
mod tests;
