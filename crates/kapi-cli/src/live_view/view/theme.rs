//! Colours and marks of the live view, by what the terminal has.
//!
//! Every mark is also a word or a shape: nothing is told by colour alone.

use ratatui::style::{Color, Modifier, Style};

use crate::live_view::facts::{Mood, TaskMark};
use crate::ui::charset::Charset;

/// How things look.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Theme {
    /// Whether there are colours.
    pub(crate) has_colour: bool,
    /// Which characters can be shown.
    pub(crate) charset: Charset,
}

impl Theme {
    /// Text that matters.
    pub(crate) const fn strong(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    /// Text that is there for whoever looks for it.
    pub(crate) fn faint(self) -> Style {
        self.coloured(Color::DarkGray)
    }

    /// A heading.
    pub(crate) fn heading(self) -> Style {
        self.coloured(Color::Cyan).add_modifier(Modifier::BOLD)
    }

    /// What was refused or has failed.
    pub(crate) fn bad(self) -> Style {
        self.coloured(Color::Red)
    }

    /// What is new.
    pub(crate) fn good(self) -> Style {
        self.coloured(Color::Green)
    }

    /// What somebody should look at.
    pub(crate) fn caution(self) -> Style {
        self.coloured(Color::Yellow)
    }

    /// A status.
    pub(crate) fn mood(self, mood: Mood) -> Style {
        match mood {
            Mood::Working | Mood::Good => self.good(),
            Mood::Person => self.caution(),
            Mood::Waiting => self.coloured(Color::Blue),
            Mood::Bad => self.bad(),
        }
    }

    /// A bar that is so full, in per cent.
    pub(crate) fn bar(self, percent: u16) -> Style {
        match percent {
            90.. => self.bad(),
            75.. => self.caution(),
            _ => self.good(),
        }
    }

    /// The mark of a status.
    pub(crate) const fn dot(self) -> &'static str {
        self.either("\u{25cf}", "*")
    }

    /// What stands between two parts of a line.
    pub(crate) const fn between(self) -> &'static str {
        self.either(" \u{b7} ", " - ")
    }

    /// The full and the empty part of a bar.
    pub(crate) const fn bar_marks(self) -> (&'static str, &'static str) {
        match self.charset {
            Charset::Unicode => ("\u{2588}", "\u{2591}"),
            Charset::Ascii => ("#", "."),
        }
    }

    /// The mark of the one that is chosen.
    pub(crate) const fn chosen(self) -> &'static str {
        self.either("\u{25b8} ", "> ")
    }

    /// What stands for text that is left out.
    pub(crate) const fn ellipsis(self) -> &'static str {
        self.either("\u{2026}", "...")
    }

    /// What stands before the lines that were removed.
    pub(crate) const fn minus(self) -> &'static str {
        self.either("\u{2212}", "-")
    }

    /// The mark of a part of a plan.
    pub(crate) const fn task(self, mark: TaskMark) -> &'static str {
        match mark {
            TaskMark::Done => self.either("\u{2713}", "x"),
            TaskMark::Current => self.either("\u{25b8}", ">"),
            TaskMark::Open => self.either("\u{b7}", "."),
            TaskMark::Blocked => self.either("\u{2717}", "!"),
            TaskMark::Skipped => self.either("\u{2212}", "-"),
        }
    }

    const fn either(self, unicode: &'static str, ascii: &'static str) -> &'static str {
        match self.charset {
            Charset::Unicode => unicode,
            Charset::Ascii => ascii,
        }
    }

    fn coloured(self, colour: Color) -> Style {
        match (self.has_colour, colour) {
            (true, colour) => Style::new().fg(colour),
            (false, Color::DarkGray) => Style::new().add_modifier(Modifier::DIM),
            (false, _) => Style::new(),
        }
    }
}
