//! Golden screens: a goal at work, a question, everything alive; for several widths and terminals.

use kapi_core::usage::Usage;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::layout::Size;
use ratatui::style::Color;

use crate::live_view::facts::{
    Account, ChangeFacts, FileChange, Mood, RefusedFacts, SubjectFacts, SubjectVerbs, TaskFacts,
    TaskMark, TurnFacts, command_line,
};
use crate::live_view::overview::{Overview, Panel};
use crate::live_view::state::{News, Prompt, SaidLine, ViewState};
use crate::live_view::view::draw;
use crate::live_view::view::theme::Theme;
use crate::ui::charset::Charset;
use crate::ui::screen::LineStream;

const BEGAN_MS: i64 = 1_767_225_600_000;
const COLOUR: Theme = Theme {
    has_colour: true,
    charset: Charset::Unicode,
};
const PLAIN: Theme = Theme {
    has_colour: false,
    charset: Charset::Ascii,
};

fn drawn(state: &ViewState, size: Size, theme: Theme) -> Terminal<TestBackend> {
    let mut terminal = Terminal::new(TestBackend::new(size.width, size.height)).unwrap();
    let now_ms = BEGAN_MS + 72_000;
    let shown = terminal.draw(|frame| draw(frame, state, theme, now_ms));
    shown.unwrap();
    terminal
}

fn screen(state: &ViewState, size: Size, theme: Theme) -> String {
    let shown = drawn(state, size, theme).backend().to_string();
    let rows = shown.lines().map(|row| row.trim_matches('"').trim_end());
    rows.collect::<Vec<_>>().join("\n")
}

fn goal() -> SubjectFacts {
    let task = |mark, text: &str| TaskFacts {
        mark,
        text: text.to_owned(),
    };
    let file = |path: &str, added, removed| FileChange {
        path: path.to_owned(),
        added,
        removed,
    };
    SubjectFacts {
        id: "007-refuse-empty-passwords".to_owned(),
        reference: "007".to_owned(),
        kind: "goal",
        title: "Refuse empty passwords in the login form, and say so beside the field".to_owned(),
        status: "active".to_owned(),
        mood: Mood::Working,
        phase: "working".to_owned(),
        why: None,
        details: vec![
            ("agent", "claude".to_owned()),
            ("judge", "codex".to_owned()),
            ("branch", "feat/refuse-empty-passwords".to_owned()),
        ],
        account: Account {
            turn: Some(TurnFacts { at: 2, max: 10 }),
            used: Usage {
                input_tokens: 180_000,
                output_tokens: 12_000,
                usd_micros: Some(420_000),
                ..Usage::ZERO
            },
            tokens_max: Some(1_000_000),
            usd_micros_max: Some(500_000),
            worked_ms: 180_000,
            work_max_ms: Some(7_200_000),
        },
        tasks: vec![
            task(TaskMark::Done, "find the form"),
            task(
                TaskMark::Current,
                "check the password where the form is sent",
            ),
            task(TaskMark::Open, "test it"),
            task(TaskMark::Blocked, "ask for the wording of the message"),
        ],
        changes: Some(ChangeFacts {
            files: vec![file("src/login.rs", 30, 5), file("tests/login.rs", 112, 0)],
            n_files: 2,
        }),
        refused: vec![RefusedFacts {
            pattern: "git push".to_owned(),
            command: "git push origin main".to_owned(),
        }],
        verbs: SubjectVerbs {
            say: command_line(&["say", "007", "--"]),
            pause: command_line(&["pause", "007"]),
            cancel: command_line(&["cancel", "007", "--yes"]),
            diff: Some("007".to_owned()),
            ..SubjectVerbs::default()
        },
    }
}

/// Returns what a goal looks like in its second turn.
fn at_work() -> ViewState {
    let mut state = ViewState::default();
    let facts = goal();
    let id = facts.id.clone();
    state.put(vec![facts]);
    let call = |name: &str, detail: &str| News::Call {
        name: name.to_owned(),
        detail: detail.to_owned(),
    };
    for news in [
        News::Began {
            phase: "working".to_owned(),
        },
        News::Said {
            text: "I found the form in src/login.rs.\n\nNext I check the password where it is \
                   sent, and add a test for the empty one."
                .to_owned(),
        },
        call("Read", "src/login.rs"),
        call("Bash", "cargo test login"),
        call("Bash", "git push origin main"),
        News::Refused {
            command: "git push origin main".to_owned(),
        },
        call("Edit", "src/login.rs"),
        News::Used(Usage {
            input_tokens: 8_000,
            output_tokens: 500,
            usd_micros: Some(30_000),
            ..Usage::ZERO
        }),
    ] {
        state.hear(&id, news, BEGAN_MS);
    }
    for text in [
        "Turn 1: claude is working",
        "  the agent ended its turn",
        "  verify failed: `cargo test` exited with 101",
        "  turn 1 is not done: the checks fail",
        "Turn 2: claude is working",
    ] {
        state.say(SaidLine {
            stream: LineStream::Error,
            text: format!("{text}\n"),
        });
    }
    state
}

/// Returns a project with a goal, a task and something that waits.
fn alive() -> ViewState {
    let mut state = at_work();
    let mut facts = state.subjects.clone();
    facts.push(SubjectFacts {
        id: "task_3".to_owned(),
        reference: "task_3".to_owned(),
        kind: "task",
        title: "Update the changelog".to_owned(),
        status: "queued".to_owned(),
        mood: Mood::Waiting,
        why: Some("waiting for a worker".to_owned()),
        ..SubjectFacts::default()
    });
    state.put(facts);
    let panel = |heading: &str, line: &str| Panel {
        heading: heading.to_owned(),
        lines: vec![line.to_owned()],
    };
    state.overview = Some(Overview {
        title: "Kapi in ~/shop".to_owned(),
        panels: vec![
            panel("Waiting for you", "goal 004-dark-mode stalled: no progress"),
            panel("Spent today", "here $1.20, 540.0k tokens"),
            panel("Loops", ""),
            panel("Sandboxes", "fix-1  running  claude  fix/one"),
        ],
    });
    state.lines.clear();
    state
}

#[test]
fn a_goal_at_work_fits_40_columns() {
    insta::assert_snapshot!(screen(&at_work(), Size::new(40, 40), COLOUR));
}

#[test]
fn a_goal_at_work_fits_80_columns() {
    insta::assert_snapshot!(screen(&at_work(), Size::new(80, 36), COLOUR));
}

#[test]
fn a_goal_at_work_fits_200_columns() {
    insta::assert_snapshot!(screen(&at_work(), Size::new(200, 30), COLOUR));
}

#[test]
fn a_small_screen_shows_what_matters_first() {
    insta::assert_snapshot!(screen(&at_work(), Size::new(80, 20), COLOUR));
}

#[test]
fn a_plain_locale_has_plain_characters() {
    let shown = screen(&at_work(), Size::new(80, 36), PLAIN);
    assert!(shown.is_ascii(), "{shown}");
    insta::assert_snapshot!(shown);
}

#[test]
fn a_question_stands_above_its_keys() {
    let mut state = at_work();
    state.prompt = Prompt::Question {
        text: "The agent wants to run `git push origin main`. Allow it?".to_owned(),
    };
    let shown = screen(&state, Size::new(40, 30), COLOUR);
    let rows: Vec<&str> = shown.lines().collect();
    assert_eq!(
        rows[27..],
        [
            "The agent wants to run `git push origin",
            "main`. Allow it?",
            "y yes   n no"
        ]
    );
}

#[test]
fn everything_alive_is_a_list_with_one_in_full() {
    insta::assert_snapshot!(screen(&alive(), Size::new(100, 44), COLOUR));
    let mut state = alive();
    state.select_next();
    insta::assert_snapshot!(
        "the_other_one_in_full",
        screen(&state, Size::new(60, 30), COLOUR)
    );
}

#[test]
fn nothing_alive_is_said() {
    let state = ViewState {
        overview: alive().overview,
        ..ViewState::default()
    };
    insta::assert_snapshot!(screen(&state, Size::new(80, 16), COLOUR));
}

#[test]
fn colours_are_left_out_where_nobody_wants_them() {
    let colours = |theme| {
        let terminal = drawn(&at_work(), Size::new(80, 36), theme);
        let cells = terminal.backend().buffer().content().to_vec();
        cells
            .into_iter()
            .filter(|cell| cell.fg != Color::Reset)
            .count()
    };
    assert_eq!(colours(PLAIN), 0);
    assert!(colours(COLOUR) > 50);
}

#[test]
fn no_size_is_too_small() {
    for columns in [1, 2, 5, 13, 39] {
        for rows in [1, 2, 3, 7] {
            drawn(&at_work(), Size::new(columns, rows), COLOUR);
            drawn(&alive(), Size::new(columns, rows), PLAIN);
        }
    }
}
