//! The person's terminal while a view is open: a screen of its own, keys one by one, and everything
//! as it was afterwards, however this process ends.
//!
//! Signals of the keyboard stay signals, so that Ctrl-C and Ctrl-Z mean what they mean without a
//! view.

use std::io::{self, BufWriter, Stderr, Write as _};
use std::mem;
use std::sync::{Mutex, PoisonError, TryLockError};

use kapi_sys::signal::with_terminal_of_others;
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen};
use rustix::process::getpgrp;
use rustix::stdio::stdin;
use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcgetpgrp, tcsetattr,
};

/// What the view is drawn on.
pub(super) type ViewTerminal = Terminal<CrosstermBackend<BufWriter<Stderr>>>;

/// How the terminal was before a view was opened; one process has one terminal.
static BEFORE: Mutex<Option<Termios>> = Mutex::new(None);

/// Tells whether this process may use the terminal: nothing in the background may.
pub(super) fn is_ours() -> bool {
    tcgetpgrp(stdin()).is_ok_and(|group| group == getpgrp())
}

/// Opens a screen of its own.
pub(super) fn enter() -> io::Result<ViewTerminal> {
    set_up()?;
    let opened = Terminal::new(CrosstermBackend::new(BufWriter::new(io::stderr())));
    let opened = opened.and_then(|mut terminal| terminal.clear().map(|()| terminal));
    if opened.is_err() {
        restore();
    }
    opened
}

/// Lets go of what the view was drawn on.
///
/// A terminal that is gone cannot show its cursor, and ratatui's would complain about that when it is
/// dropped, to the same terminal, which is a panic.
pub(super) fn leave(mut terminal: ViewTerminal) {
    if terminal.show_cursor().is_err() {
        mem::forget(terminal);
    }
}

/// Opens the screen again after [`restore`].
pub(super) fn enter_again(terminal: &mut ViewTerminal) -> io::Result<()> {
    set_up()?;
    terminal.clear().inspect_err(|_| restore())
}

fn set_up() -> io::Result<()> {
    let before = tcgetattr(stdin())?;
    let mut keys = before.clone();
    keys.local_modes
        .remove(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ECHONL);
    keys.special_codes[SpecialCodeIndex::VMIN] = 1;
    keys.special_codes[SpecialCodeIndex::VTIME] = 0;
    let mut kept = BEFORE.lock().unwrap_or_else(PoisonError::into_inner);
    tcsetattr(stdin(), OptionalActions::Drain, &keys)?;
    *kept = Some(before);
    drop(kept);
    execute!(io::stderr(), EnterAlternateScreen).inspect_err(|_| restore())
}

/// Puts the terminal back as it was; does nothing where no view is open.
pub(crate) fn restore() {
    let mut kept = match BEFORE.try_lock() {
        Ok(kept) => kept,
        Err(TryLockError::Poisoned(kept)) => kept.into_inner(),
        // Whoever holds it is changing it right now, and this is a defect's last breath.
        Err(TryLockError::WouldBlock) => return,
    };
    let Some(before) = kept.take() else { return };
    // A terminal that is gone needs no putting back.
    drop(execute!(io::stderr(), LeaveAlternateScreen, Show));
    drop(io::stderr().flush());
    // Whoever started us may have taken the terminal back already.
    match with_terminal_of_others(|| tcsetattr(stdin(), OptionalActions::Drain, &before)) {
        Ok(()) | Err(_) => {}
    }
}
