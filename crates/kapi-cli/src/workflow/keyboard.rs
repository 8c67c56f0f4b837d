//! What a person types at the terminal, a line or several, while an interrupt still counts.
//!
//! Reads the terminal itself. What was typed before a question is shown is no answer to it.

use std::time::Duration;

use kapi_sys::signal::Interrupts;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::AsFd as _;

use crate::ui::{Ui, drop_typed_ahead};

/// How often it is looked whether somebody interrupts.
const LOOK: Duration = Duration::from_millis(200);
/// Bytes of an answer.
const ANSWER_BYTES_MAX: usize = 64 * 1024;

/// What came from the terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum KeyboardInput {
    /// A text; lines that ended in a backslash were joined.
    Text(String),
    /// The end of the input.
    End,
    /// An interrupt.
    Interrupted,
}

/// The person's keyboard.
#[derive(Debug)]
pub(crate) struct Keyboard<'a> {
    interrupts: &'a Interrupts,
    ahead: Vec<u8>,
}

impl<'a> Keyboard<'a> {
    /// Returns the keyboard, where somebody is at a terminal and reads what is shown.
    pub(crate) fn at_terminal(ui: Ui, interrupts: &'a Interrupts) -> Option<Self> {
        ui.is_at_keyboard().then_some(Self {
            interrupts,
            ahead: Vec::new(),
        })
    }

    /// Drops what was typed so far, before something is asked.
    pub(crate) fn drop_typed_ahead(&mut self) {
        self.ahead.clear();
        drop_typed_ahead();
    }

    /// Reads an answer: one line, or several that end in a backslash but the last.
    pub(crate) fn answer(&mut self) -> KeyboardInput {
        let mut text = String::new();
        loop {
            let line = match self.line() {
                KeyboardInput::Text(line) => line,
                // What was begun and not ended is no answer.
                other @ (KeyboardInput::End | KeyboardInput::Interrupted) => return other,
            };
            match line.strip_suffix('\\') {
                Some(more) if text.len() < ANSWER_BYTES_MAX => {
                    text.push_str(more);
                    text.push('\n');
                }
                Some(_) | None => {
                    text.push_str(&line);
                    return KeyboardInput::Text(text);
                }
            }
        }
    }

    fn line(&mut self) -> KeyboardInput {
        let mut piece = [0_u8; 1024];
        loop {
            if let Some(at) = self.ahead.iter().position(|byte| *byte == b'\n') {
                let rest = self.ahead.split_off(at + 1);
                let line = std::mem::replace(&mut self.ahead, rest);
                let text = String::from_utf8_lossy(&line);
                return KeyboardInput::Text(text.trim_end_matches(['\n', '\r']).to_owned());
            }
            if self.interrupts.is_raised() {
                return KeyboardInput::Interrupted;
            }
            if self.ahead.len() > ANSWER_BYTES_MAX {
                let text = String::from_utf8_lossy(&self.ahead).into_owned();
                self.ahead.clear();
                return KeyboardInput::Text(text);
            }
            if !is_readable() {
                continue;
            }
            match rustix::io::read(rustix::stdio::stdin(), &mut piece) {
                Ok(0) => return KeyboardInput::End,
                Ok(count) => self
                    .ahead
                    .extend_from_slice(piece.get(..count).unwrap_or_default()),
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => return KeyboardInput::End,
            }
        }
    }
}

fn is_readable() -> bool {
    let Ok(limit) = Timespec::try_from(LOOK) else {
        return false;
    };
    let stdin = rustix::stdio::stdin();
    let stdin = stdin.as_fd();
    let mut waiting = [PollFd::new(&stdin, PollFlags::IN)];
    poll(&mut waiting, Some(&limit)).is_ok_and(|n_ready| n_ready > 0)
}
