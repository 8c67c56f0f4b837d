//! How far a search has come, in numbers: baseline, best, gain, noise, confidence.
//!
//! Shown to people and agents; nothing is decided by it.

use std::collections::BTreeMap;

use kapi_check::rules::measure::number::Number;
use kapi_check::rules::measure::results::Results;
use kapi_check::rules::measure::statistics::scatter;

use crate::rules::modes::autoresearch::run::{Run, RunStatus};
use crate::rules::modes::autoresearch::state::Autoresearch;

/// The columns of a sparkline.
const BARS: [char; 8] = [
    '\u{2581}', '\u{2582}', '\u{2583}', '\u{2584}', '\u{2585}', '\u{2586}', '\u{2587}', '\u{2588}',
];
/// What stands for a run without a metric.
const NOTHING: char = '\u{b7}';
/// The most runs of a sparkline.
pub const RUNS_SHOWN_MAX: usize = 60;

/// A segment in numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// What its runs are compared with.
    pub baseline: Number,
    /// The best that was kept.
    pub best: Number,
    /// The number of the run that it is of.
    pub best_run: u32,
    /// By how many percent it is better than the baseline; negative never. `None` where the baseline
    /// is nothing.
    pub gain_percent: Option<Number>,
    /// How far the baseline's samples scatter.
    pub noise: Option<Number>,
    /// The same in percent of the baseline: what the gain is uncertain by.
    pub noise_percent: Option<Number>,
    /// How many times the scatter of all results the gain is; advice only.
    pub confidence: Option<Number>,
}

/// Returns the segment under way in numbers, once it has a baseline.
#[must_use]
pub fn summary(search: &Autoresearch) -> Option<Summary> {
    summary_of(search, search.segment)
}

/// Returns a segment in numbers, once it has a baseline.
#[must_use]
pub fn summary_of(search: &Autoresearch, segment: u32) -> Option<Summary> {
    let metric = search.metric_of(segment)?;
    let runs = || search.of_segment(segment);
    let baseline = runs().find(|run| run.is_baseline)?;
    let best = runs().rfind(|run| run.status == RunStatus::Keep)?;
    let (from, to) = (baseline.metric?, best.metric?);
    let noise = scatter(&baseline.samples);
    let percent = |part: f64| Number::new(part / from.get().abs() * 100.0);
    let last = runs().next_back().map_or(0, |run| run.number);
    Some(Summary {
        baseline: from,
        best: to,
        best_run: best.number,
        gain_percent: percent(metric.direction.gain(from, to)),
        noise,
        noise_percent: noise.and_then(|noise| percent(noise.get())),
        confidence: confidences(search, segment).get(&last).copied(),
    })
}

/// Returns the reference's confidence as it stood after each run of a segment, by their numbers.
#[must_use]
pub fn confidences(search: &Autoresearch, segment: u32) -> BTreeMap<u32, Number> {
    let mut confidences = BTreeMap::new();
    let Some(metric) = search.metric_of(segment) else {
        return confidences;
    };
    let mut results = Results::default();
    let (mut baseline, mut best) = (None, None);
    for run in search.of_segment(segment) {
        if let Some(result) = run.metric {
            results.add(result);
            let baseline = *baseline.get_or_insert(result);
            let gain = metric.direction.gain(baseline, result);
            if run.status == RunStatus::Keep && best.is_none_or(|best| gain > best) {
                best = Some(gain);
            }
        }
        let gain = best.filter(|gain| *gain != 0.0);
        let confidence = gain.and_then(|gain| results.confidence(gain));
        confidences.extend(confidence.map(|confidence| (run.number, confidence)));
    }
    confidences
}

/// Draws the metric of a segment's last runs, `columns` at most and one each, higher where the number is
/// higher.
#[must_use]
pub fn sparkline_of(search: &Autoresearch, segment: u32, columns: usize) -> String {
    let runs: Vec<&Run> = search.of_segment(segment).collect();
    let surplus = runs.len().saturating_sub(columns.min(RUNS_SHOWN_MAX));
    let shown = runs.get(surplus..).unwrap_or_default();
    let numbers = shown.iter().filter_map(|run| run.metric);
    let (Some(least), Some(most)) = (numbers.clone().min(), numbers.max()) else {
        return shown.iter().map(|_| NOTHING).collect();
    };
    let column = |run: &&Run| run.metric.map_or(NOTHING, |it| bar(it, least, most));
    shown.iter().map(column).collect()
}

fn bar(number: Number, least: Number, most: Number) -> char {
    let (least, most) = (least.get(), most.get());
    let height = (number.get() - least) / (most - least);
    let steps = (0..7_u8).take_while(|step| height > f64::from(*step + 1) / 8.0);
    BARS.get(steps.count()).copied().unwrap_or(NOTHING)
}

/// Writes a number for people: as many digits as say something.
#[must_use]
pub fn shown(number: Number) -> String {
    let size = number.get().abs();
    let exact = number.to_string();
    let rounded = if size >= 1_000.0 {
        format!("{:.0}", number.get())
    } else if size >= 1.0 {
        format!("{:.2}", number.get())
    } else {
        format!("{:.4}", number.get())
    };
    // Rounding to nothing would say something else.
    let is_lost = rounded.trim_matches(['-', '0', '.']).is_empty() && size > 0.0;
    if exact.len() <= rounded.len() || is_lost {
        exact
    } else {
        rounded
    }
}

#[cfg(test)]
mod tests {
    use kapi_check::rules::measure::number::Number;

    use super::{RUNS_SHOWN_MAX, confidences, shown, sparkline_of, summary, summary_of};
    use crate::rules::modes::autoresearch::contract::Direction;
    use crate::rules::modes::autoresearch::fixture::{contract, run, searching};
    use crate::rules::modes::autoresearch::run::RunStatus;

    #[test]
    fn the_gain_is_over_the_baseline_of_the_segment() {
        let mut search = searching();
        search.runs = vec![run(1, 100.0), run(2, 120.0), run(3, 80.0), run(4, 0.0)];
        search.runs[0].is_baseline = true;
        search.runs[0].samples = [99.0, 100.0, 103.0]
            .into_iter()
            .filter_map(Number::new)
            .collect();
        search.runs[1].status = RunStatus::Discard;
        search.runs[3].status = RunStatus::Crash;
        search.runs[3].metric = None;
        let found = summary(&search).unwrap();
        assert_eq!(
            (found.baseline, found.best),
            (run(1, 100.0).metric.unwrap(), run(1, 80.0).metric.unwrap())
        );
        assert_eq!((found.best_run, found.gain_percent), (3, Number::new(20.0)));
        assert_eq!(
            (found.noise, found.confidence),
            (Number::new(1.0), Number::new(1.0))
        );
        let confidences = confidences(&search, 0);
        assert_eq!(confidences.get(&2), None);
        assert_eq!(confidences.get(&4), found.confidence.as_ref());
        let whole = sparkline_of(&search, 0, RUNS_SHOWN_MAX);
        assert_eq!(whole, "\u{2584}\u{2588}\u{2581}\u{b7}");
        assert_eq!(sparkline_of(&search, 0, 2), "\u{2581}\u{b7}");
        assert_eq!(found.noise_percent, Number::new(1.0));
    }

    #[test]
    fn a_segment_is_told_in_what_it_measured() {
        let mut search = searching();
        search.runs = vec![run(1, 100.0), run(2, 90.0), run(3, 5.0), run(4, 8.0)];
        for (location, segment) in [(0, 0), (1, 0), (2, 1), (3, 1)] {
            search.runs[location].segment = segment;
            search.runs[location].is_baseline = location % 2 == 0;
        }
        search.segment = 1;
        let mut higher = contract().metric;
        higher.direction = Direction::Higher;
        search.metrics = [(0, contract().metric), (1, higher)].into();
        let gain = |segment| summary_of(&search, segment).unwrap().gain_percent;
        assert_eq!(search.segments(), [0, 1]);
        assert_eq!((gain(0), gain(1)), (Number::new(10.0), Number::new(60.0)));
        assert_eq!(summary_of(&search, 2), None);
    }

    #[test]
    fn numbers_are_short_and_never_nothing() {
        for (number, expected) in [
            (15_586.25, "15586"),
            (12.0, "12"),
            (12.345, "12.35"),
            (0.1234567, "0.1235"),
            (0.000_001, "0.000001"),
            (-3.0, "-3"),
            (0.0, "0"),
        ] {
            assert_eq!(shown(Number::new(number).unwrap()), expected);
        }
    }
}
