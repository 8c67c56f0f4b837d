//! The parts of the screen that tell of one subject: what it is, then a heading and lines each.
//!
//! Made for a width; which of them are shown and how much of each, their caller decides.

use ratatui::style::Style;
use ratatui::text::{Line, Span};

use crate::live_view::facts::{SubjectFacts, TaskFacts, TaskMark};
use crate::live_view::state::LiveActivity;
use crate::live_view::view::theme::Theme;
use crate::live_view::view::words::{cut, width, wrapped};

/// Lines of an agent's words.
const SAID_LINES_MAX: usize = 6;

/// Lines that one long line of text becomes at most.
const PLAIN_LINES_MAX: usize = 3;

/// Lines under a heading, of which the first or the last may be left out.
#[derive(Debug)]
pub(super) struct Section {
    /// The heading.
    pub(super) heading: Line<'static>,
    /// The lines.
    pub(super) lines: Vec<Line<'static>>,
    /// Which end is shown where there is no room for all.
    pub(super) keep: Keep,
}

/// Which end of a section is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keep {
    /// The first lines.
    First,
    /// The last lines.
    Last,
}

/// What sections are made with.
#[derive(Clone, Copy)]
pub(super) struct Canvas {
    /// The columns.
    pub(super) columns: usize,
    /// How things look.
    pub(super) theme: Theme,
    /// The time, in milliseconds since the epoch.
    pub(super) now_ms: i64,
}

impl Canvas {
    fn heading(self, text: &str, more: &str) -> Line<'static> {
        Line::from(vec![
            Span::styled(text.to_owned(), self.theme.heading()),
            Span::styled(format!("  {more}"), self.theme.faint()),
        ])
    }
}

/// Returns what it is and where it stands.
pub(super) fn head(
    facts: &SubjectFacts,
    heard: &LiveActivity,
    canvas: Canvas,
) -> Vec<Line<'static>> {
    let Canvas { columns, theme, .. } = canvas;
    let mut lines: Vec<Line<'static>> = wrapped(&facts.title, columns, 2, theme.ellipsis())
        .into_iter()
        .map(|line| Line::styled(line, theme.strong()))
        .collect();
    let phase = heard.phase.as_ref().unwrap_or(&facts.phase);
    let mut parts = Vec::new();
    if let Some(turn) = facts.account.turn.filter(|turn| turn.at > 0) {
        parts.push(format!("turn {} of {}", turn.at, turn.max));
    }
    if !phase.is_empty() {
        parts.push(phase.clone());
    }
    let status = format!("{} {}", theme.dot(), facts.status);
    let mut rest = parts.join(theme.between());
    if !rest.is_empty() {
        rest = format!("{}{rest}", theme.between());
    }
    let room = columns.saturating_sub(width(&status));
    let rest = cut(&rest, room, theme.ellipsis());
    let name = format!("{} {}", facts.kind, facts.id);
    let gap = room.saturating_sub(width(&rest));
    let mut line = vec![
        Span::styled(status, theme.mood(facts.mood).patch(theme.strong())),
        Span::raw(rest),
    ];
    let has_room = gap >= width(&name) + 2;
    if has_room {
        line.push(Span::raw(" ".repeat(gap - width(&name))));
        line.push(Span::styled(name.clone(), theme.faint()));
    }
    lines.push(Line::from(line));
    if !has_room {
        let name = cut(&name, columns, theme.ellipsis());
        lines.push(Line::styled(name, theme.faint()));
    }
    if let Some(why) = &facts.why {
        let why = wrapped(why, columns, 3, theme.ellipsis());
        lines.extend(why.into_iter().map(Line::from));
    }
    let details: Vec<String> = facts
        .details
        .iter()
        .map(|(name, value)| format!("{name} {value}"))
        .collect();
    let details = wrapped(&details.join(theme.between()), columns, 3, theme.ellipsis());
    lines.extend(
        details
            .into_iter()
            .map(|line| Line::styled(line, theme.faint())),
    );
    lines
}

/// Returns what the agent said last.
pub(super) fn said(heard: &LiveActivity, canvas: Canvas) -> Option<Section> {
    if heard.said.is_empty() {
        return None;
    }
    let columns = canvas.columns.saturating_sub(2).max(1);
    let lines = wrapped(
        &heard.said,
        columns,
        SAID_LINES_MAX,
        canvas.theme.ellipsis(),
    );
    Some(Section {
        heading: canvas.heading("Agent", ""),
        lines: lines.iter().map(|line| indented(line)).collect(),
        keep: Keep::First,
    })
}

/// Returns the tool calls, the last ones at the end.
pub(super) fn calls(heard: &LiveActivity, canvas: Canvas) -> Option<Section> {
    if heard.calls.is_empty() {
        return None;
    }
    let names = heard.calls.iter().map(|call| width(&call.name)).max();
    let names = names.unwrap_or(0).min(12);
    let theme = canvas.theme;
    let lines = heard.calls.iter().map(|call| {
        let refused = if call.is_refused { "refused  " } else { "" };
        let name = cut(&call.name, names, theme.ellipsis());
        let gap = " ".repeat(names.saturating_sub(width(&name)));
        let room = canvas.columns.saturating_sub(4 + names + width(refused));
        let detail = cut(&call.detail, room, theme.ellipsis());
        Line::from(vec![
            Span::raw("  "),
            Span::styled(name, theme.strong()),
            Span::raw(format!("{gap}  ")),
            Span::styled(refused, theme.bad().patch(theme.strong())),
            Span::styled(
                detail,
                if call.is_refused {
                    theme.bad()
                } else {
                    Style::new()
                },
            ),
        ])
    });
    let n_refused = heard.calls.iter().filter(|call| call.is_refused).count();
    let more = match n_refused {
        0 => String::new(),
        n => format!("{n} refused"),
    };
    Some(Section {
        heading: canvas.heading("Tool calls", &more),
        lines: lines.collect(),
        keep: Keep::Last,
    })
}

/// Returns the parts of the plan, beginning shortly before the one at hand.
pub(super) fn tasks(facts: &SubjectFacts, canvas: Canvas) -> Option<Section> {
    if facts.tasks.is_empty() {
        return None;
    }
    let is_over = |task: &&TaskFacts| matches!(task.mark, TaskMark::Done | TaskMark::Skipped);
    let n_over = facts.tasks.iter().filter(is_over).count();
    let current = facts.tasks.iter().position(|task| !is_over(&task));
    let from = current.unwrap_or(0).saturating_sub(2);
    let theme = canvas.theme;
    let lines = facts.tasks.iter().skip(from).map(|task| {
        let style = match task.mark {
            TaskMark::Current => theme.strong(),
            TaskMark::Blocked => theme.bad(),
            TaskMark::Done | TaskMark::Skipped => theme.faint(),
            TaskMark::Open => Style::new(),
        };
        let text = cut(
            &task.text,
            canvas.columns.saturating_sub(4),
            theme.ellipsis(),
        );
        Line::styled(format!("  {} {text}", theme.task(task.mark)), style)
    });
    let more = format!("{n_over} of {} done", facts.tasks.len());
    Some(Section {
        heading: canvas.heading(
            if facts.kind == "goal" {
                "Tasks"
            } else {
                "Parts"
            },
            &more,
        ),
        lines: lines.collect(),
        keep: Keep::First,
    })
}

/// Returns what changed so far.
pub(super) fn changes(facts: &SubjectFacts, canvas: Canvas) -> Option<Section> {
    let changes = facts.changes.as_ref()?;
    let theme = canvas.theme;
    let numbers: Vec<(String, String)> = changes
        .files
        .iter()
        .map(|file| {
            (
                format!("+{}", file.added),
                format!("{}{}", theme.minus(), file.removed),
            )
        })
        .collect();
    let room_for =
        |all: &dyn Fn(&(String, String)) -> usize| numbers.iter().map(all).max().unwrap_or(0);
    let (added, removed) = (room_for(&|it| width(&it.0)), room_for(&|it| width(&it.1)));
    let room = canvas.columns.saturating_sub(added + removed + 6);
    let lines = changes
        .files
        .iter()
        .zip(&numbers)
        .map(|(file, (more, less))| {
            let gap = " ".repeat(removed.saturating_sub(width(less)));
            Line::from(vec![
                Span::styled(format!("  {more:>added$}"), theme.good()),
                Span::styled(format!(" {gap}{less}"), theme.bad()),
                Span::raw(format!("  {}", cut(&file.path, room, theme.ellipsis()))),
            ])
        });
    let more = kapi_core::text::counted(changes.n_files, "file");
    Some(Section {
        heading: canvas.heading("Changes so far", &more),
        lines: lines.collect(),
        keep: Keep::First,
    })
}

/// Returns lines under a heading.
pub(super) fn plain(heading: &str, lines: &[String], keep: Keep, canvas: Canvas) -> Section {
    let room = canvas.columns.saturating_sub(4);
    let lines = lines.iter().flat_map(|line| {
        let parts = wrapped(line, room, PLAIN_LINES_MAX, canvas.theme.ellipsis());
        let parts = parts.into_iter().enumerate();
        parts.map(|(at, part)| match at {
            0 => indented(&part),
            _ => indented(&format!("  {part}")),
        })
    });
    Section {
        heading: canvas.heading(heading, ""),
        lines: lines.collect(),
        keep,
    }
}

fn indented(line: &str) -> Line<'static> {
    Line::from(format!("  {line}"))
}
