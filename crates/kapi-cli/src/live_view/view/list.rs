//! The list of everything that is shown, one line each, above the one that is shown in full.
//!
//! Where there is only one and nothing is told besides, there is no list.

use ratatui::text::{Line, Span};

use crate::amount;
use crate::live_view::facts::SubjectFacts;
use crate::live_view::state::{LiveActivity, ViewState};
use crate::live_view::view::sections::Canvas;
use crate::live_view::view::words::{cut, width};

/// The columns of the screen from which money is shown, and what goes on.
const MONEY_FROM: usize = 60;
const PHASE_FROM: usize = 90;
/// The columns of what goes on at most.
const PHASE_COLUMNS_MAX: usize = 40;

/// Returns the list: a title where there is one, then a line each, and an empty one.
pub(super) fn lines(state: &ViewState, canvas: Canvas) -> Vec<Line<'static>> {
    let theme = canvas.theme;
    let mut lines = Vec::new();
    if let Some(overview) = &state.overview {
        let title = cut(&overview.title, canvas.columns, theme.ellipsis());
        lines.push(Line::styled(title, theme.strong()));
    } else if state.subjects.len() < 2 {
        return lines;
    }
    if state.subjects.is_empty() {
        lines.push(Line::styled("Nothing is running here.", theme.faint()));
    }
    let columns = ListColumns::of(state);
    for (at, facts) in state.subjects.iter().enumerate() {
        let heard = state.heard.get(&facts.id);
        lines.push(row(facts, heard, at == state.selected, &columns, canvas));
    }
    lines.push(Line::default());
    lines
}

/// Returns as many lines as there is room for, with the selected one among them.
pub(super) fn window(
    lines: Vec<Line<'static>>,
    rows: usize,
    selected: usize,
) -> Vec<Line<'static>> {
    let from = (selected + 2).saturating_sub(rows);
    lines.into_iter().skip(from).take(rows).collect()
}

/// How wide the columns of the list are.
struct ListColumns {
    id: usize,
    status: usize,
}

impl ListColumns {
    fn of(state: &ViewState) -> Self {
        let all = state.subjects.iter();
        Self {
            id: all.clone().map(|facts| width(&facts.id)).max().unwrap_or(0),
            status: all.map(|facts| width(&facts.status)).max().unwrap_or(0),
        }
    }
}

fn row(
    facts: &SubjectFacts,
    heard: Option<&LiveActivity>,
    is_selected: bool,
    widths: &ListColumns,
    canvas: Canvas,
) -> Line<'static> {
    let Canvas { columns, theme, .. } = canvas;
    let mark = if is_selected { theme.chosen() } else { "  " };
    let style = if is_selected {
        theme.strong()
    } else {
        ratatui::style::Style::new()
    };
    let ids = widths.id.min(columns / 3);
    let mut spans = vec![
        Span::styled(mark, style),
        Span::styled(padded(&facts.id, ids, canvas), style),
        Span::raw("  "),
        Span::styled(
            padded(&facts.status, widths.status, canvas),
            theme.mood(facts.mood),
        ),
    ];
    let mut used = 4 + ids + widths.status;
    if columns >= PHASE_FROM {
        let phase = heard
            .and_then(|heard| heard.phase.as_ref())
            .unwrap_or(&facts.phase);
        let turn = facts.account.turn.filter(|turn| turn.at > 0);
        let turn = turn.map(|turn| format!("turn {} of {}", turn.at, turn.max));
        let parts: Vec<&str> = [turn.as_deref(), Some(phase.as_str())]
            .into_iter()
            .flatten()
            .filter(|part| !part.is_empty())
            .collect();
        let text = padded(&parts.join(theme.between()), PHASE_COLUMNS_MAX, canvas);
        spans.push(Span::raw(format!("  {text}")));
        used += 2 + PHASE_COLUMNS_MAX;
    }
    if columns >= MONEY_FROM {
        let mut spent = facts.account.used;
        if let Some(heard) = heard {
            spent.add(&heard.used);
        }
        let spent = spent.usd_micros.map(amount::usd).unwrap_or_default();
        spans.push(Span::raw(format!("  {spent:>8}")));
        used += 10;
    }
    let room = columns.saturating_sub(used + 2);
    if room > 8 {
        let title = cut(&facts.title, room, theme.ellipsis());
        spans.push(Span::styled(format!("  {title}"), theme.faint()));
    }
    Line::from(spans)
}

fn padded(text: &str, columns: usize, canvas: Canvas) -> String {
    let text = cut(text, columns, canvas.theme.ellipsis());
    let gap = " ".repeat(columns.saturating_sub(width(&text)));
    format!("{text}{gap}")
}
