//! Runs as numbers in a row: what is drawn of a metric, and within what range.

use kapi_check::rules::measure::number::Number;
use kapi_check::rules::measure::statistics::scatter;
use kapi_workflow::rules::modes::autoresearch::contract::{Direction, Metric};
use kapi_workflow::rules::modes::autoresearch::run::{Run, RunStatus};
use kapi_workflow::rules::modes::autoresearch::state::Autoresearch;

/// How many times the extent of what was kept a result may be away and still be within the range.
const AWAY_MAX: f64 = 1.5;
/// The least extent, as a share of the number.
const EXTENT_MIN: f64 = 0.1;

/// A metric over runs.
pub(super) struct Series<'a> {
    /// Its name.
    pub(super) name: &'a str,
    /// Its unit; empty where it has none.
    pub(super) unit: &'a str,
    /// Which way is better; `None` of what decides nothing.
    pub(super) direction: Option<Direction>,
    /// The runs, oldest first.
    pub(super) points: Vec<Point<'a>>,
}

/// A run and its number.
pub(super) struct Point<'a> {
    /// The run.
    pub(super) run: &'a Run,
    /// Its number; `None` where there is none to be believed.
    pub(super) value: Option<Number>,
}

/// How far what a segment is compared with scatters.
pub(super) struct Band {
    /// The place of the segment's first run.
    pub(super) first: usize,
    /// The place of its last.
    pub(super) last: usize,
    /// The lower edge.
    pub(super) least: f64,
    /// The upper edge.
    pub(super) most: f64,
}

/// Where the best so far became another one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Step {
    /// The place of the run.
    pub(super) at: usize,
    /// The best from there on.
    pub(super) best: f64,
    /// Whether a segment begins with it.
    pub(super) is_first: bool,
}

/// Returns the metrics that decided, each over the segments in a row that measured it.
pub(super) fn primary(search: &Autoresearch) -> Vec<Series<'_>> {
    let mut all: Vec<(&Metric, Series<'_>)> = Vec::new();
    for segment in search.segments() {
        let Some(metric) = search.metric_of(segment) else {
            continue;
        };
        let points = search.of_segment(segment).map(|run| Point {
            run,
            value: run.metric,
        });
        match all.last_mut() {
            Some((before, series)) if *before == metric => series.points.extend(points),
            Some(_) | None => all.push((
                metric,
                Series {
                    name: &metric.name,
                    unit: &metric.unit,
                    direction: Some(metric.direction),
                    points: points.collect(),
                },
            )),
        }
    }
    all.into_iter().map(|(_, series)| series).collect()
}

/// Returns the metrics that were recorded beside, in the order of first mention.
pub(super) fn secondary(search: &Autoresearch) -> Vec<Series<'_>> {
    let contract = search.contract.as_deref();
    let unit = |name: &str| {
        let known = contract.and_then(|it| it.secondary.iter().find(|one| one.name == name));
        known.map_or("", |known| known.unit.as_str())
    };
    let mut all: Vec<Series<'_>> = Vec::new();
    for run in &search.runs {
        for reading in &run.metrics {
            let point = Point {
                run,
                value: Some(reading.value),
            };
            match all.iter_mut().find(|it| it.name == reading.name) {
                Some(series) => series.points.push(point),
                None => all.push(Series {
                    name: &reading.name,
                    unit: unit(&reading.name),
                    direction: None,
                    points: vec![point],
                }),
            }
        }
    }
    all
}

impl Series<'_> {
    /// Returns the range that is drawn: everything that was kept, and what is not too far from it.
    pub(super) fn range(&self) -> Option<[f64; 2]> {
        let numbers = |is_wanted: &dyn Fn(&Point<'_>) -> bool| {
            let points = self.points.iter().filter(|point| is_wanted(point));
            let numbers = points.filter_map(|point| point.value);
            extent(numbers.map(Number::get))
        };
        let [least, most] =
            numbers(&|point| point.run.status == RunStatus::Keep).or_else(|| numbers(&|_| true))?;
        let some = (most.abs().max(least.abs())) * EXTENT_MIN;
        let away = (most - least).max(some) * AWAY_MAX;
        let bands = self.bands().into_iter();
        let bands = bands.flat_map(|band| [band.least, band.most]);
        let near = self.points.iter().filter_map(|point| point.value);
        let near = near
            .map(Number::get)
            .filter(|it| *it >= least - away && *it <= most + away);
        extent(near.chain([least, most]).chain(bands))
    }

    /// Returns how far the baselines scatter.
    pub(super) fn bands(&self) -> Vec<Band> {
        if self.direction.is_none() {
            return Vec::new();
        }
        let baselines = self.points.iter().enumerate();
        let baselines = baselines.filter(|(_, point)| point.run.is_baseline);
        let bands = baselines.filter_map(|(first, point)| {
            let (middle, noise) = (point.value?.get(), scatter(&point.run.samples)?.get());
            let segment = point.run.segment;
            let last = self
                .points
                .iter()
                .rposition(|it| it.run.segment == segment)?;
            Some(Band {
                first,
                last,
                least: middle - noise,
                most: middle + noise,
            })
        });
        bands.collect()
    }

    /// Returns the best so far, segment by segment.
    pub(super) fn steps(&self) -> Vec<Step> {
        if self.direction.is_none() {
            return Vec::new();
        }
        let kept = self.points.iter().enumerate();
        let kept = kept.filter(|(_, point)| point.run.status == RunStatus::Keep);
        let mut segment = None;
        let steps = kept.filter_map(|(at, point)| {
            let best = point.value?.get();
            let is_first = segment.replace(point.run.segment) != Some(point.run.segment);
            Some(Step { at, best, is_first })
        });
        steps.collect()
    }

    /// Returns the places where another segment begins.
    pub(super) fn dividers(&self) -> Vec<usize> {
        let pairs = self.points.iter().zip(self.points.iter().skip(1));
        let pairs = (1_usize..).zip(pairs);
        let other = pairs.filter(|(_, (a, b))| a.run.segment != b.run.segment);
        other.map(|(place, _)| place).collect()
    }
}

fn extent(numbers: impl Iterator<Item = f64>) -> Option<[f64; 2]> {
    numbers.fold(None, |range: Option<[f64; 2]>, number| {
        let [least, most] = range.unwrap_or([number, number]);
        Some([least.min(number), most.max(number)])
    })
}
