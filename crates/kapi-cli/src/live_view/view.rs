//! The live view as it is drawn: a state becomes a screen, for any width.
//!
//! Pure: it reads no file and no clock, and decides nothing.

mod amounts;
mod list;
mod sections;
#[cfg(test)]
mod tests;
pub(crate) mod theme;
mod words;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Margin, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use crate::live_view::facts::SubjectFacts;
use crate::live_view::state::{LiveActivity, Prompt, ViewState};
use crate::live_view::view::sections::{Canvas, Keep, Section};
use crate::live_view::view::theme::Theme;
use crate::live_view::view::words::{width, wrapped};

/// The columns from which the sections stand in two columns.
const TWO_COLUMNS: u16 = 110;
/// Rows that a section takes besides its lines: one that is empty, and its heading.
const SECTION_ROWS: usize = 2;
/// Lines of the log that are looked at: there are never more rows.
const LOG_LINES_MAX: usize = 200;

/// Draws everything.
pub(crate) fn draw(frame: &mut Frame<'_>, state: &ViewState, theme: Theme, now_ms: i64) {
    let margin = if frame.area().width >= 60 { 1 } else { 0 };
    let area = frame.area().inner(Margin::new(margin, 0));
    let canvas = Canvas {
        columns: usize::from(area.width),
        theme,
        now_ms,
    };
    let foot = foot(state, canvas);
    let rows = |n: usize| Constraint::Length(u16::try_from(n).unwrap_or(u16::MAX));
    let list = list::lines(state, canvas);
    let list_rows = list.len().min(usize::from(area.height) / 3);
    let [top, middle, bottom] =
        Layout::vertical([rows(list_rows), Constraint::Min(1), rows(foot.len())]).areas(area);
    frame.render_widget(
        Paragraph::new(list::window(list, list_rows, state.selected)),
        top,
    );
    frame.render_widget(Paragraph::new(foot), bottom);
    if let Some(facts) = state.selected() {
        let nothing = LiveActivity::default();
        let heard = state.heard.get(&facts.id).unwrap_or(&nothing);
        subject(
            frame,
            middle,
            state,
            SubjectOnScreen { facts, heard },
            canvas,
        );
    } else {
        sections(frame, middle, &panels(state, canvas));
    }
}

/// What is known and heard of the one that is shown in full.
#[derive(Clone, Copy)]
struct SubjectOnScreen<'a> {
    facts: &'a SubjectFacts,
    heard: &'a LiveActivity,
}

fn subject(
    frame: &mut Frame<'_>,
    area: Rect,
    state: &ViewState,
    shown: SubjectOnScreen<'_>,
    canvas: Canvas,
) {
    let SubjectOnScreen { facts, heard } = shown;
    let mut head = sections::head(facts, heard, canvas);
    head.push(Line::default());
    head.extend(amounts::lines(&facts.account, heard, canvas));
    let n_head = u16::try_from(head.len()).unwrap_or(u16::MAX);
    let [top, rest] =
        Layout::vertical([Constraint::Length(n_head), Constraint::Min(0)]).areas(area);
    frame.render_widget(Paragraph::new(head), top);
    if area.width < TWO_COLUMNS {
        let mut all = agent(shown, canvas);
        all.extend(work(facts, canvas));
        all.extend(panels(state, canvas));
        all.extend(log(state, canvas));
        sections(frame, rest, &all);
        return;
    }
    let [left, _, right] = Layout::horizontal([
        Constraint::Fill(3),
        Constraint::Length(3),
        Constraint::Fill(2),
    ])
    .areas(rest);
    let within = |area: Rect| Canvas {
        columns: usize::from(area.width),
        ..canvas
    };
    let mut of_agent = agent(shown, within(left));
    of_agent.extend(log(state, within(left)));
    sections(frame, left, &of_agent);
    let mut of_work = work(facts, within(right));
    of_work.extend(panels(state, within(right)));
    sections(frame, right, &of_work);
}

fn agent(shown: SubjectOnScreen<'_>, canvas: Canvas) -> Vec<Section> {
    let said = sections::said(shown.heard, canvas);
    let calls = sections::calls(shown.heard, canvas);
    [said, calls].into_iter().flatten().collect()
}

fn work(facts: &SubjectFacts, canvas: Canvas) -> Vec<Section> {
    let tasks = sections::tasks(facts, canvas);
    let changes = sections::changes(facts, canvas);
    [tasks, changes].into_iter().flatten().collect()
}

fn panels(state: &ViewState, canvas: Canvas) -> Vec<Section> {
    let panels = state.overview.iter().flat_map(|overview| &overview.panels);
    let panels = panels.filter(|panel| !panel.lines.is_empty());
    panels
        .map(|panel| sections::plain(&panel.heading, &panel.lines, Keep::First, canvas))
        .collect()
}

fn log(state: &ViewState, canvas: Canvas) -> Option<Section> {
    let from = state.lines.len().saturating_sub(LOG_LINES_MAX);
    let lines: Vec<String> = state
        .lines
        .range(from..)
        .flat_map(|line| line.text.lines())
        .map(|line| line.trim().to_owned())
        .filter(|line| !line.is_empty())
        .collect();
    (!lines.is_empty()).then(|| sections::plain("Log", &lines, Keep::Last, canvas))
}

/// Draws sections below each other, as much of each as there is room for.
fn sections(frame: &mut Frame<'_>, area: Rect, all: &[Section]) {
    let wanted: Vec<usize> = all.iter().map(|section| section.lines.len()).collect();
    let granted = fit(&wanted, usize::from(area.height));
    let mut lines: Vec<Line<'static>> = Vec::new();
    for (section, n) in all.iter().zip(granted) {
        if n == 0 {
            continue;
        }
        lines.push(Line::default());
        lines.push(section.heading.clone());
        let from = match section.keep {
            Keep::First => 0,
            Keep::Last => section.lines.len().saturating_sub(n),
        };
        lines.extend(section.lines.iter().skip(from).take(n).cloned());
    }
    frame.render_widget(Paragraph::new(lines), area);
}

/// Returns how many lines of each section are shown: a few of every one first, then more of all; the
/// last ones go without where there is no room at all.
fn fit(wanted: &[usize], rows: usize) -> Vec<usize> {
    const FEW: usize = 3;
    let mut left = rows;
    let mut granted: Vec<usize> = wanted
        .iter()
        .map(|&n| {
            let lines = n.min(FEW).min(left.saturating_sub(SECTION_ROWS));
            if lines > 0 {
                left -= lines + SECTION_ROWS;
            }
            lines
        })
        .collect();
    while left > 0 {
        let before = left;
        for (have, &want) in granted.iter_mut().zip(wanted) {
            if *have > 0 && *have < want && left > 0 {
                *have += 1;
                left -= 1;
            }
        }
        if left == before {
            break;
        }
    }
    granted
}

/// Returns the last rows: what came of the last key, and what can be typed.
fn foot(state: &ViewState, canvas: Canvas) -> Vec<Line<'static>> {
    let Canvas { columns, theme, .. } = canvas;
    let wrap = |text: &str, lines| wrapped(text, columns, lines, theme.ellipsis());
    let mut lines = vec![Line::default()];
    if let Some(note) = &state.note {
        lines.extend(wrap(note, 2).into_iter().map(Line::from));
    }
    let (asked, keys) = match &state.prompt {
        Prompt::Keys => (None, keys(state)),
        Prompt::Message { text } => (
            Some(format!("Message to the agent: {text}_")),
            vec![("Enter", "send"), ("Esc", "cancel")],
        ),
        Prompt::Question { text } => (Some(text.clone()), vec![("y", "yes"), ("n", "no")]),
        Prompt::Leaving => (
            Some(
                "Leave this view? The work continues, and its progress is printed as lines."
                    .to_owned(),
            ),
            vec![("q", "leave"), ("Esc", "stay")],
        ),
    };
    if let Some(asked) = asked {
        let asked = wrap(&asked, 6).into_iter();
        lines.extend(asked.map(|line| Line::styled(line, theme.caution())));
    }
    lines.extend(key_lines(&keys, canvas));
    lines
}

fn keys(state: &ViewState) -> Vec<(&'static str, &'static str)> {
    let facts = state.selected();
    let mut keys = Vec::new();
    if state.subjects.len() > 1 {
        keys.push(("\u{2191}\u{2193}", "select"));
    }
    if facts.is_some_and(|facts| facts.verbs.say.is_some()) {
        keys.push(("s", "say"));
    }
    if facts.is_some_and(|facts| facts.verbs.pause.is_some()) {
        keys.push(("p", "pause"));
    } else if facts.is_some_and(|facts| state.resume(facts).is_some()) {
        keys.push(("p", "resume"));
    }
    if facts.is_some_and(|facts| !facts.refused.is_empty()) || state.overview.is_some() {
        keys.push(("a", "approve"));
    }
    if facts.is_some_and(|facts| facts.verbs.diff.is_some()) {
        keys.push(("d", "diff"));
    }
    if facts.is_some_and(|facts| facts.verbs.cancel.is_some()) {
        keys.push(("c", "cancel"));
    }
    keys.push(("q", "leave"));
    keys
}

/// Sets keys beside each other, on as many lines as they need.
fn key_lines(keys: &[(&'static str, &'static str)], canvas: Canvas) -> Vec<Line<'static>> {
    let mut lines = vec![Vec::new()];
    let mut used = 0;
    for (key, what) in keys {
        let needed = width(key) + 1 + width(what);
        if used > 0 && used + 3 + needed > canvas.columns {
            lines.push(Vec::new());
            used = 0;
        }
        let Some(line) = lines.last_mut() else { break };
        if used > 0 {
            line.push(Span::raw("   "));
            used += 3;
        }
        line.push(Span::styled(*key, canvas.theme.heading()));
        line.push(Span::styled(format!(" {what}"), canvas.theme.faint()));
        used += needed;
    }
    lines.into_iter().map(Line::from).collect()
}
