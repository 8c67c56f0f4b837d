//! The one door to the terminal: data to standard output, talk to standard error.
//!
//! Foreign text is made harmless here before anyone sees it. A closed pipe is not an error of
//! ours: the reader has seen enough.

pub(crate) mod charset;
pub(crate) mod screen;

use std::io::{self, IsTerminal as _, Write as _};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use kapi_core::quote::visible;
use rustix::termios::{QueueSelector, tcflush};
use serde::Serialize;

use crate::ui::charset::Charset;
use crate::ui::screen::{LineStream, ScreenKind};

/// How results are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// For people.
    Human,
    /// One JSON document, or one a line for streams.
    Json,
}

/// What became of the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum OutputDisposition {
    /// It was written.
    Written = 0,
    /// The reader has gone; more of it is of no use to anybody.
    Closed = 1,
    /// It could not be written.
    Failed = 2,
}

/// The columns before the text of a field.
const FIELD_COLUMNS: usize = 11;

/// Data of a command that is run for a caller in this process, whichever thread writes it.
static CAPTURED: Mutex<Option<Vec<u8>>> = Mutex::new(None);

/// One process has one standard output.
static DISPOSITION: AtomicU8 = AtomicU8::new(OutputDisposition::Written as u8);

/// Writes to the terminal.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ui {
    /// How results are written.
    pub(crate) format: Format,
    /// Which characters the terminal can show.
    pub(crate) charset: Charset,
    /// What the terminal can show besides lines.
    pub(crate) screen: ScreenKind,
}

impl Ui {
    /// Writes one line of data for a person. Foreign text in it cannot make another line of ours.
    pub(crate) fn line(self, text: &str) {
        self.write_text(&format!("{}\n", as_one_line(text)));
    }

    /// Writes what something of a report is called and what it is; on a narrow terminal on several
    /// lines, none of which begins below the name.
    pub(crate) fn field(self, name: &str, text: &str) {
        let columns = output_columns().unwrap_or(usize::MAX);
        let room = columns.saturating_sub(FIELD_COLUMNS).max(FIELD_COLUMNS);
        let mut name = name;
        for part in wrapped(&harmless(text), room) {
            self.line(&format!("  {name:<8} {part}"));
            name = "";
        }
    }

    /// Returns how many columns are left for the text of a field, `columns_max` at most.
    pub(crate) fn field_columns(self, columns_max: usize) -> usize {
        let columns = output_columns().map(|it| it.saturating_sub(FIELD_COLUMNS));
        columns.map_or(columns_max, |it| it.clamp(1, columns_max))
    }

    /// Writes a text of our own that has several lines, for a person.
    pub(crate) fn page(self, text: &str) {
        self.write_text(&format!("{}\n", harmless(text)));
    }

    /// Writes one JSON document on one line.
    pub(crate) fn json<T: Serialize>(self, document: &T) {
        if let Ok(text) = serde_json::to_string(document) {
            write_out(format!("{text}\n").as_bytes());
        }
    }

    /// Writes bytes of data: as they are into a file or pipe, made harmless for a terminal.
    pub(crate) fn raw(self, bytes: &[u8]) {
        screen::leave();
        if io::stdout().is_terminal() {
            write_out(harmless(&String::from_utf8_lossy(bytes)).as_bytes());
        } else {
            write_out(bytes);
        }
    }

    /// Tells what became of the data that was written so far.
    pub(crate) fn disposition(self) -> OutputDisposition {
        match DISPOSITION.load(Ordering::SeqCst) {
            closed if closed == OutputDisposition::Closed as u8 => OutputDisposition::Closed,
            failed if failed == OutputDisposition::Failed as u8 => OutputDisposition::Failed,
            _ => OutputDisposition::Written,
        }
    }

    /// Says something to the person. Foreign text in it cannot make another line of ours.
    pub(crate) fn say(self, text: &str) {
        self.write_talk(format!("{}\n", as_one_line(text)));
    }

    /// Says a text of our own that has several lines.
    pub(crate) fn say_page(self, text: &str) {
        self.write_talk(format!("{}\n", harmless(text)));
    }

    /// Writes what an answer is typed behind.
    pub(crate) fn prompt(self, text: &str) {
        screen::leave();
        write_err(&harmless(text));
    }

    /// Replaces the live line, on a terminal only.
    pub(crate) fn live(self, text: &str) {
        if self.is_live() && !screen::is_open() {
            let (width, _) = terminal_size();
            let shown = self.charset.shown(harmless(text));
            let cut: String = shown.chars().take(width.saturating_sub(1)).collect();
            write_err(&format!("\r\x1b[K{}", cut.replace('\n', " ")));
        }
    }

    /// Removes the live line.
    pub(crate) fn clear_live(self) {
        if self.is_live() && !screen::is_open() {
            write_err("\r\x1b[K");
        }
    }

    fn write_text(self, text: &str) {
        let text = self.charset.shown(text.to_owned());
        let is_seen = self.screen != ScreenKind::Lines && io::stdout().is_terminal();
        if !is_seen || !screen::keeps(LineStream::Output, &text) {
            write_out(text.as_bytes());
        }
    }

    fn write_talk(self, text: String) {
        let text = self.charset.shown(text);
        if !screen::keeps(LineStream::Error, &text) {
            write_err(&text);
        }
    }

    /// Tells whether a live line is shown at all.
    pub(crate) fn is_live(self) -> bool {
        self.format == Format::Human
            && self.screen != ScreenKind::Lines
            && io::stderr().is_terminal()
    }

    /// Tells whether there is a terminal for a live view, with somebody at it.
    pub(crate) fn has_screen(self) -> bool {
        self.screen != ScreenKind::Lines && self.is_at_keyboard()
    }

    /// Tells whether the terminal has colours, and the person wants them.
    pub(crate) fn has_colour(self) -> bool {
        self.screen == ScreenKind::Colour
    }

    /// Tells whether somebody is there to read and to type.
    pub(crate) fn is_at_keyboard(self) -> bool {
        self.format == Format::Human && io::stdin().is_terminal() && io::stderr().is_terminal()
    }

    /// Asks for a line; `None` when nobody can type one.
    pub(crate) fn ask(self, question: &str) -> Option<String> {
        if !self.is_at_keyboard() {
            return None;
        }
        drop_typed_ahead();
        self.prompt(question);
        let mut answer = String::new();
        io::stdin().read_line(&mut answer).ok()?;
        Some(answer)
    }

    /// Asks a yes-or-no question; `None` when nobody can answer.
    pub(crate) fn confirm(self, question: &str) -> Option<bool> {
        if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
            return None;
        }
        screen::leave();
        drop_typed_ahead();
        write_err(&format!("{} [y/N] ", harmless(question)));
        let mut answer = String::new();
        io::stdin().read_line(&mut answer).ok()?;
        Some(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
    }

    /// Asks for one of some words, by it or its first letter, and returns its place; anything else
    /// means the last one. `None` when nobody can answer.
    pub(crate) fn choose(self, question: &str, words: &[&str]) -> Option<usize> {
        if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
            return None;
        }
        screen::leave();
        drop_typed_ahead();
        write_err(&format!("{} [{}] ", harmless(question), words.join("/")));
        let mut answer = String::new();
        io::stdin().read_line(&mut answer).ok()?;
        let answer = answer.trim().to_lowercase();
        let is_it = |word: &str| {
            word == answer || (answer.chars().count() == 1 && word.starts_with(answer.as_str()))
        };
        let location = words.iter().position(|word| is_it(word));
        location.or(words.len().checked_sub(1))
    }
}

/// Returns text in which everything is seen that is there: what could drive a terminal, turn the
/// direction of writing or hide is written out.
pub(crate) fn harmless(text: &str) -> String {
    visible(text).replace('\r', "")
}

/// Returns foreign text as one line of a report: lines of its own are marked, so that none can be
/// taken for one of ours.
fn as_one_line(text: &str) -> String {
    harmless(text.trim_end_matches('\n')).replace('\n', "\n  | ")
}

/// Returns the columns of standard output, where it is a terminal.
fn output_columns() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
    let columns = usize::from(size.ws_col);
    (columns > 0).then_some(columns)
}

/// Breaks a text between words into lines of so many columns, where words are short enough.
fn wrapped(text: &str, columns: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let Some(line) = lines.last_mut() else { break };
        let length = line.chars().count();
        if length > 0 && length + 1 + word.chars().count() > columns {
            lines.push(word.to_owned());
            continue;
        }
        if length > 0 {
            line.push(' ');
        }
        line.push_str(word);
    }
    lines
}

/// Returns columns and rows.
fn terminal_size() -> (usize, usize) {
    const USUAL: (usize, usize) = (100, 24);
    rustix::termios::tcgetwinsize(io::stderr()).map_or(USUAL, |size| {
        match (usize::from(size.ws_col), usize::from(size.ws_row)) {
            (0, _) | (_, 0) => USUAL,
            size => size,
        }
    })
}

/// Writes what was kept while the live view was open.
pub(crate) fn pass_on(stream: LineStream, text: &str) {
    match stream {
        LineStream::Output => write_out(text.as_bytes()),
        LineStream::Error => write_err(text),
    }
}

/// Returns what a function returns, and the data that would have gone to standard output meanwhile.
pub(crate) fn captured<T>(act: impl FnOnce() -> T) -> (T, Vec<u8>) {
    *captured_data() = Some(Vec::new());
    let done = act();
    let data = captured_data().take();
    (done, data.unwrap_or_default())
}

fn captured_data() -> MutexGuard<'static, Option<Vec<u8>>> {
    CAPTURED.lock().unwrap_or_else(PoisonError::into_inner)
}

fn write_out(bytes: &[u8]) {
    if let Some(data) = captured_data().as_mut() {
        data.extend_from_slice(bytes);
        return;
    }
    let mut out = io::stdout().lock();
    let written = out.write_all(bytes).and_then(|()| out.flush());
    let Err(error) = written else { return };
    let disposition = if error.kind() == io::ErrorKind::BrokenPipe {
        OutputDisposition::Closed
    } else {
        OutputDisposition::Failed
    };
    DISPOSITION.store(disposition as u8, Ordering::SeqCst);
}

fn write_err(text: &str) {
    let mut err = io::stderr().lock();
    // There is nowhere left to report a failure of this.
    drop(err.write_all(text.as_bytes()).and_then(|()| err.flush()));
}

/// Drops what was typed and not read: nobody answers a question before it is shown.
pub(crate) fn drop_typed_ahead() {
    // What is no terminal holds nothing that a person typed ahead.
    let _dropped = tcflush(rustix::stdio::stdin(), QueueSelector::IFlush);
}

#[cfg(test)]
mod tests {
    use super::{as_one_line, harmless, wrapped};

    #[test]
    fn a_text_is_broken_between_words() {
        assert_eq!(wrapped("", 5), [""]);
        assert_eq!(wrapped("one two three", 9), ["one two", "three"]);
        assert_eq!(wrapped("a-long-word b", 5), ["a-long-word", "b"]);
        assert_eq!(wrapped("a  b", usize::MAX), ["a  b"]);
    }

    #[test]
    fn a_name_cannot_forge_a_line_of_ours() {
        let name = "a\nGoal 001: done\u{1b}[2K\u{202e}\u{e0041}";
        assert_eq!(
            as_one_line(&format!("modified {name}")),
            "modified a\n  | Goal 001: done\\u{1b}[2K\\u{202e}\\u{e0041}"
        );
        assert_eq!(as_one_line("plain\n"), "plain");
        assert_eq!(harmless("a\r\nb\tc"), "a\nb\tc");
    }
}
