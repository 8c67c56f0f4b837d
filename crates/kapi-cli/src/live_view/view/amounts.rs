//! What was used of what may be used: turns, time, tokens and money, with a bar where there is a
//! limit and room.
//!
//! What is heard and not yet part of the account is added to it.

use kapi_core::usage::Usage;
use ratatui::text::{Line, Span};

use crate::amount;
use crate::live_view::facts::{Account, share};
use crate::live_view::state::LiveActivity;
use crate::live_view::view::sections::Canvas;
use crate::live_view::view::words::wrapped;

/// The columns of the name of an amount.
const NAME_COLUMNS: usize = 8;
/// The columns of a bar, and of a screen that has room for one.
const BAR_COLUMNS: usize = 20;
const BAR_ROOM: usize = 64;
/// Lines that one amount takes at most.
const LINES_MAX: usize = 3;

/// One amount.
struct UsedAmount {
    name: &'static str,
    /// How far it is used up, where there is a limit.
    percent: Option<u16>,
    text: String,
}

/// Returns the lines of an account.
pub(super) fn lines(account: &Account, heard: &LiveActivity, canvas: Canvas) -> Vec<Line<'static>> {
    let mut used = account.used;
    used.add(&heard.used);
    let turns = account.turn.map(|turn| UsedAmount {
        name: "turns",
        percent: share(u64::from(turn.at), Some(u64::from(turn.max))),
        text: format!("{} of {}", turn.at, turn.max),
    });
    let all = [
        turns,
        time(account, heard, canvas.now_ms),
        tokens(account, &used),
        money(account, &used),
    ];
    let all = all.into_iter().flatten();
    all.flat_map(|amount| amount.lines(canvas)).collect()
}

fn time(account: &Account, heard: &LiveActivity, now_ms: i64) -> Option<UsedAmount> {
    let limit_ms = account.work_max_ms;
    if account.worked_ms == 0 && heard.since_ms.is_none() && limit_ms.is_none() {
        return None;
    }
    let since_ms = heard.since_ms.unwrap_or(now_ms);
    let more_ms = u64::try_from(now_ms.saturating_sub(since_ms)).unwrap_or(0);
    let worked_ms = account.worked_ms.saturating_add(more_ms);
    let mut text = of(clock(worked_ms), limit_ms.map(clock));
    if let Some(limit_ms) = limit_ms {
        let left = clock(limit_ms.saturating_sub(worked_ms));
        text = format!("{text}, {left} left");
    }
    Some(UsedAmount {
        name: "time",
        percent: share(worked_ms, limit_ms),
        text,
    })
}

fn tokens(account: &Account, used: &Usage) -> Option<UsedAmount> {
    let (tokens, limit) = (used.tokens(), account.tokens_max);
    (tokens > 0 || limit.is_some()).then(|| UsedAmount {
        name: "tokens",
        percent: share(tokens, limit),
        text: of(amount::tokens(tokens), limit.map(amount::tokens)),
    })
}

fn money(account: &Account, used: &Usage) -> Option<UsedAmount> {
    let limit = account.usd_micros_max;
    let spent = amount::cost(used);
    if spent.is_none() && limit.is_none() {
        return None;
    }
    let spent = spent.unwrap_or_else(|| amount::usd(0));
    Some(UsedAmount {
        name: "money",
        percent: share(used.usd_micros.unwrap_or(0), limit),
        text: of(spent, limit.map(amount::usd)),
    })
}

fn of(used: String, limit: Option<String>) -> String {
    match limit {
        Some(limit) => format!("{used} of {limit}"),
        None => used,
    }
}

/// Writes milliseconds as a clock that runs: whole seconds.
fn clock(ms: u64) -> String {
    match ms / 1000 {
        seconds @ 0..60 => format!("{seconds}s"),
        seconds => amount::duration(seconds * 1000),
    }
}

impl UsedAmount {
    /// Returns it in lines, none of which begins below its name.
    fn lines(&self, canvas: Canvas) -> Vec<Line<'static>> {
        let Canvas { columns, theme, .. } = canvas;
        let name = format!("{:<NAME_COLUMNS$}", self.name);
        let mut begin = vec![Span::styled(name, theme.faint())];
        let mut used = NAME_COLUMNS;
        if columns >= BAR_ROOM {
            begin.extend(self.bar(canvas));
            used += BAR_COLUMNS + 2;
        }
        let room = columns.saturating_sub(used);
        let parts = wrapped(&self.text, room, LINES_MAX, theme.ellipsis());
        let parts = parts.into_iter().enumerate();
        parts
            .map(|(at, part)| {
                let mut spans = match at {
                    0 => std::mem::take(&mut begin),
                    _ => vec![Span::raw(" ".repeat(used))],
                };
                spans.push(Span::raw(part));
                Line::from(spans)
            })
            .collect()
    }

    fn bar(&self, canvas: Canvas) -> [Span<'static>; 3] {
        let theme = canvas.theme;
        let (full, empty) = theme.bar_marks();
        let percent = self.percent.unwrap_or(0);
        let n_full = (usize::from(percent) * BAR_COLUMNS).div_ceil(100);
        let empty = if self.percent.is_some() { empty } else { " " };
        let rest = empty.repeat(BAR_COLUMNS.saturating_sub(n_full));
        [
            Span::styled(full.repeat(n_full), theme.bar(percent)),
            Span::styled(rest, theme.faint()),
            Span::raw("  "),
        ]
    }
}
