//! A metric over runs as a picture: what became of each run by shape and colour, the best so far, and
//! how far the baseline scatters.

use kapi_check::rules::measure::number::Number;
use kapi_core::text::{counted, shortened};
use kapi_workflow::rules::modes::autoresearch::contract::Direction;
use kapi_workflow::rules::modes::autoresearch::run::{Run, RunStatus};
use kapi_workflow::rules::modes::autoresearch::summary::shown;
use maud::{Markup, html};

use crate::modes::autoresearch::page::series::{Point, Series};
use crate::modes::autoresearch::phrases::verdict;
use crate::workflow::page::axis::Axis;
use crate::workflow::page::drawing::{Drawing, Size};

/// What stands below a picture of a metric that decides.
pub(super) const CAPTION: &str = "Each mark is a run; point at one to read it. The line is the best so far. The band \
    is how far the samples of the baseline scatter: a gain within it may be luck. Marks at an edge are beyond it.";
/// Room at the left, for the numbers of the axis.
const LEFT: f64 = 62.0;
/// Room at the right.
const RIGHT: f64 = 16.0;
/// Room at the top, for the name.
const TOP: f64 = 34.0;
/// The height of a row of text.
const ROW: f64 = 20.0;
/// The most letters of a metric's name.
const NAME_MAX: usize = 24;
/// The most letters of a unit.
const UNIT_MAX: usize = 8;
/// Where the rows of the legend begin.
const LEGEND_LEFT: f64 = 16.0;
/// About how wide a letter is.
const LETTER: f64 = 6.6;
/// The largest and the smallest mark, from its middle.
const MARK: [f64; 2] = [1.6, 5.0];
/// Below this size marks are drawn with finer lines.
const FINE: f64 = 2.6;

/// Where everything of a picture is.
struct Layout {
    across: Axis,
    down: Axis,
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
    /// The middle of the row of runs without a number.
    nothing: Option<f64>,
    mark: f64,
}

/// Draws a metric that decides.
pub(super) fn draw(series: &Series<'_>, size: Size, description: String) -> Drawing {
    let legend = Legend::of(series, size);
    let has_nothing = series.points.iter().any(|point| point.value.is_none());
    let below = ROW.mul_add(f64::from(legend.rows), 2.0 * ROW);
    let layout = layout(series, size, below, has_nothing);
    let body = html! {
        text.strong x="12" y="21" { (heading(series)) }
        (grid(series, &layout))
        @for band in series.bands() { (shaded(&layout, band.first..=band.last, [band.least, band.most])) }
        (dividers(series, &layout))
        (marks(series, &layout, |run| run.status != RunStatus::Keep))
        path.best d=(best_line(series, &layout)) {}
        (marks(series, &layout, |run| run.status == RunStatus::Keep))
        (best_word(series, &layout))
        (legend.drawn(size))
    };
    Drawing {
        size,
        title: heading(series),
        description,
        body,
    }
}

/// Draws one that decides nothing.
pub(super) fn small(series: &Series<'_>, size: Size) -> Drawing {
    let layout = layout(series, size, 1.2 * ROW, false);
    let last = series.points.last().and_then(|point| point.value);
    let last = last.map_or_else(String::new, |last| {
        format!(" {}{} in the last.", shown(last), series.unit)
    });
    let body = html! {
        text.strong x="12" y="21" { (heading(series)) }
        (grid(series, &layout))
        (marks(series, &layout, |_| true))
    };
    Drawing {
        size,
        title: heading(series),
        description: format!(
            "{} with this metric.{last}",
            counted(series.points.len(), "run")
        ),
        body,
    }
}

fn heading(series: &Series<'_>) -> String {
    let name = shortened(series.name, NAME_MAX);
    let unit = shortened(series.unit, UNIT_MAX);
    let unit = match unit.as_str() {
        "" => String::new(),
        unit => format!(" in {unit}"),
    };
    let way = series.direction.map_or("", |direction| match direction {
        Direction::Lower => ", lower is better",
        Direction::Higher => ", higher is better",
    });
    format!("{name}{unit}{way}")
}

fn layout(series: &Series<'_>, size: Size, below: f64, has_nothing: bool) -> Layout {
    let (left, right) = (LEFT, size.width - RIGHT);
    let nothing = has_nothing.then_some(size.height - below - ROW / 2.0);
    let bottom = size.height - below - nothing.map_or(0.0, |_| ROW);
    let last = count(series.points.len().saturating_sub(1));
    // Half a place at each end, so that no mark touches the axis.
    let across = Axis::new([-0.5, last + 0.5], [left, right]);
    let [least, most] = series.range().unwrap_or([0.0, 1.0]);
    let air = (most - least) * 0.06;
    let down = Axis::new([least - air, most + air], [bottom, TOP]);
    let [smallest, largest] = MARK;
    let mark = ((right - left) / (last + 1.0) * 0.42).clamp(smallest, largest);
    Layout {
        across,
        down,
        left,
        right,
        top: TOP,
        bottom,
        nothing,
        mark,
    }
}

/// Returns a count as a place on an axis.
fn count(n: usize) -> f64 {
    f64::from(u32::try_from(n).unwrap_or(u32::MAX))
}

fn grid(series: &Series<'_>, layout: &Layout) -> Markup {
    let Layout {
        left,
        right,
        top,
        bottom,
        ..
    } = *layout;
    let rows = layout.down.ticks(4).into_iter();
    let rows =
        rows.filter_map(|tick| Some((layout.down.point(tick), tick_words(Number::new(tick)?))));
    let places = places(series, layout);
    html! {
        @for (y, number) in rows {
            path.grid d={ "M" (p(left)) " " (p(y)) "H" (p(right)) } {}
            text.end x=(p(left - 6.0)) y=(p(y + 4.0)) { (number) }
        }
        path.grid d={ "M" (p(left)) " " (p(top)) "V" (p(bottom)) } {}
        @let names = layout.nothing.map_or(bottom, |y| y + ROW / 2.0) + 15.0;
        text.end x=(p(left - 6.0)) y=(p(names)) { "run" }
        @for (x, run) in places {
            text.middle x=(p(x)) y=(p(names)) { (run) }
        }
        @if let Some(y) = layout.nothing {
            text.end x=(p(left - 6.0)) y=(p(y + 4.0)) { "no value" }
        }
    }
}

/// Writes a number beside an axis, where there is not much room.
fn tick_words(number: Number) -> String {
    /// What there is room for.
    const LETTERS_MAX: usize = 7;
    let text = shown(number);
    if text.len() <= LETTERS_MAX {
        return text;
    }
    format!("{:.1e}", number.get())
}

/// Returns where the numbers of runs are written: round ones, and none over another.
fn places(series: &Series<'_>, layout: &Layout) -> Vec<(f64, u32)> {
    let width = layout.right - layout.left;
    let last = series.points.last().map_or(1, |point| point.run.number);
    let letters = count(last.to_string().len() + 2) * LETTER;
    let room = (width / letters).max(1.0);
    let n_runs = count(series.points.len());
    let round = (0..9_u32).flat_map(|power| [1, 2, 5].map(|times| times * 10_u32.pow(power)));
    let mut round = round.filter(|every| n_runs / f64::from(*every) <= room);
    let every = round.next().unwrap_or(u32::MAX);
    let points = series.points.iter().enumerate();
    points
        .filter(|(_, point)| point.run.number.is_multiple_of(every))
        .map(|(place, point)| (layout.across.point(count(place)), point.run.number))
        .collect()
}

fn shaded(layout: &Layout, places: std::ops::RangeInclusive<usize>, range: [f64; 2]) -> Markup {
    let from = layout.across.point(count(*places.start()) - 0.5);
    let to = layout.across.point(count(*places.end()) + 0.5);
    let [least, most] = range.map(|number| layout.down.point(number));
    // What does not scatter has a band that can be seen all the same.
    let height = (least - most).max(1.0);
    html! {
        rect.band x=(p(from)) y=(p(most)) width=(p(to - from)) height=(p(height)) {}
    }
}

fn dividers(series: &Series<'_>, layout: &Layout) -> Markup {
    html! {
        @for place in series.dividers() {
            @let x = layout.across.point(count(place) - 0.5);
            path.divider d={ "M" (p(x)) " " (p(layout.top - 6.0)) "V" (p(layout.bottom)) } {}
            @if let Some(point) = series.points.get(place) {
                text x=(p(x + 4.0)) y=(p(layout.top + 4.0)) { "segment " (point.run.segment) }
            }
        }
    }
}

/// Returns the path of the best so far, which begins anew with every segment.
fn best_line(series: &Series<'_>, layout: &Layout) -> String {
    let steps = series.steps();
    let mut path = String::new();
    for (place, step) in steps.iter().enumerate() {
        let (x, y) = (
            layout.across.point(count(step.at)),
            layout.down.point(step.best),
        );
        if step.is_first {
            path.push_str(&["M", &p(x), " ", &p(y)].concat());
        } else {
            path.push_str(&["H", &p(x), "V", &p(y)].concat());
        }
        let next = steps.get(place + 1);
        if next.is_none_or(|next| next.is_first) {
            let end = next.map_or(series.points.len(), |next| next.at);
            let end = layout.across.point(count(end) - 0.5);
            path.push_str(&["H", &p(end)].concat());
        }
    }
    path
}

/// Writes what the best is at the end of its line, on the side where nothing better can be.
fn best_word(series: &Series<'_>, layout: &Layout) -> Markup {
    let best = series
        .steps()
        .last()
        .and_then(|step| Number::new(step.best));
    let Some(best) = best else {
        return html! {};
    };
    let y = layout.down.point(best.get());
    let y = match series.direction {
        Some(Direction::Lower) if y + 18.0 < layout.bottom => y + 16.0,
        Some(Direction::Lower) | None => y - 7.0,
        Some(Direction::Higher) if y - 16.0 > layout.top => y - 7.0,
        Some(Direction::Higher) => y + 16.0,
    };
    let unit = shortened(series.unit, UNIT_MAX);
    html! {
        text.strong.end.over x=(p(layout.right)) y=(p(y)) { "best " (shown(best)) (unit) }
    }
}

/// Draws the marks of some runs, finer where there are many.
fn marks(series: &Series<'_>, layout: &Layout, is_wanted: fn(&Run) -> bool) -> Markup {
    let is_fine = layout.mark < FINE;
    let points = series.points.iter().enumerate();
    html! {
        g.fine[is_fine] {
            @for (place, point) in points.filter(|(_, point)| is_wanted(point.run)) {
                (marked(series, layout, place, point))
            }
        }
    }
}

fn marked(series: &Series<'_>, layout: &Layout, place: usize, point: &Point<'_>) -> Markup {
    let x = layout.across.point(count(place));
    let y = match point.value {
        Some(value) => layout.down.point(value.get()),
        None => layout.nothing.unwrap_or(layout.bottom),
    };
    let number = point.value.map_or_else(
        || "no number".to_owned(),
        |value| format!("{}{}", shown(value), series.unit),
    );
    let run = point.run;
    html! {
        g {
            title { "run " (run.number) ", " (verdict(run)) ": " (number) }
            (mark(run, [x, y], layout.mark))
        }
    }
}

/// Returns the shape of what became of a run.
pub(super) fn mark(run: &Run, middle: [f64; 2], size: f64) -> Markup {
    let [x, y] = middle;
    match run.status {
        RunStatus::Keep if run.is_baseline => html! {
            rect.base x=(p(x - size)) y=(p(y - size)) width=(p(2.0 * size)) height=(p(2.0 * size)) {}
        },
        RunStatus::Keep => html! { circle.keep cx=(p(x)) cy=(p(y)) r=(p(size)) {} },
        RunStatus::Discard => html! { circle.discard cx=(p(x)) cy=(p(y)) r=(p(size * 0.84)) {} },
        RunStatus::Crash => {
            let s = size * 0.8;
            html! {
                path.crash d={
                    "M" (p(x - s)) " " (p(y - s)) "L" (p(x + s)) " " (p(y + s))
                    "M" (p(x - s)) " " (p(y + s)) "L" (p(x + s)) " " (p(y - s))
                } {}
            }
        }
        RunStatus::ChecksFailed => html! {
            path.checks d={
                "M" (p(x)) " " (p(y - size * 1.1)) "L" (p(x + size * 1.1)) " " (p(y + size * 0.9))
                "H" (p(x - size * 1.1)) "Z"
            } {}
        },
    }
}

/// What is drawn means, in rows.
struct Legend<'a> {
    entries: Vec<Entry<'a>>,
    rows: u8,
}

struct Entry<'a> {
    sign: Sign<'a>,
    words: &'static str,
    x: f64,
    row: u8,
}

/// What stands in front of an entry.
#[derive(Clone, Copy)]
enum Sign<'a> {
    Mark(&'a Run),
    Line,
    Band,
}

impl<'a> Legend<'a> {
    fn of(series: &Series<'a>, size: Size) -> Self {
        let mut signs: Vec<(Sign<'a>, &'static str)> = Vec::new();
        for run in series.points.iter().map(|point| point.run) {
            let words = verdict(run);
            if signs.iter().all(|(_, known)| *known != words) {
                signs.push((Sign::Mark(run), words));
            }
        }
        if !series.steps().is_empty() {
            signs.push((Sign::Line, "best so far"));
        }
        if !series.bands().is_empty() {
            signs.push((Sign::Band, "noise of the baseline"));
        }
        let mut entries = Vec::new();
        let (mut x, mut row) = (LEGEND_LEFT, 0);
        for (sign, words) in signs {
            let width = count(words.len()).mul_add(LETTER, 30.0);
            if x + width > size.width {
                (x, row) = (LEGEND_LEFT, row + 1);
            }
            entries.push(Entry {
                sign,
                words,
                x,
                row,
            });
            x += width;
        }
        Self {
            entries,
            rows: row + 1,
        }
    }

    fn drawn(&self, size: Size) -> Markup {
        let y = |row: u8| f64::from(self.rows - row).mul_add(-ROW, size.height) + 6.0;
        html! {
            @for entry in &self.entries {
                @let (x, y) = (entry.x, y(entry.row));
                @match entry.sign {
                    Sign::Mark(run) => (mark(run, [x + 5.0, y], 5.0)),
                    Sign::Line => path.best d={ "M" (p(x - 3.0)) " " (p(y)) "h14" } {},
                    Sign::Band => rect.band x=(p(x - 3.0)) y=(p(y - 5.0)) width="14" height="10" {},
                }
                text x=(p(x + 15.0)) y=(p(y + 4.0)) { (entry.words) }
            }
        }
    }
}

/// Writes a point: no more digits than can be seen.
fn p(point: f64) -> String {
    let text = format!("{point:.1}");
    text.strip_suffix(".0")
        .map_or_else(|| text.clone(), str::to_owned)
}
