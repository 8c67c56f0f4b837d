//! The loop of the view: looks at the disk, draws, and takes keys, until it is closed.
//!
//! It sleeps until there is something to show; while time runs on the screen, that is once a second.

use std::io;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use kapi_sys::clock::Clock as _;
use kapi_sys::signal::{Interrupts, Suspensions, suspensions};
use ratatui::crossterm::event::{self, Event};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::stdio::stdin;

use crate::context::Context;
use crate::live_view::keys::{KeyAction, press};
use crate::live_view::open_view::{OpenView, ViewSource};
use crate::live_view::pager;
use crate::live_view::terminal::{self, ViewTerminal};
use crate::live_view::view::draw;
use crate::live_view::view::theme::Theme;
use crate::run_line;

/// How long the screen stays as it is at least.
const FRAME: Duration = Duration::from_millis(250);
/// How long it stays at most: a clock runs on it.
const TICK: Duration = Duration::from_secs(1);
/// How often the disk is looked at where others may work as well.
const LOOK: Duration = Duration::from_secs(2);
/// How much longer than a look at everything alive the pause after it is at least: looking takes no
/// more than half a per cent of a core, as long as the pause is not too long for a person.
const LOOK_SHARE: u32 = 200;
const PAUSE_MAX: Duration = Duration::from_secs(10);

/// Why a view was closed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum WatchEnd {
    /// The work has ended, the person left, or the terminal is wanted or gone.
    Closed,
    /// The person wants to see what waits for them.
    Inbox,
    /// The person wants a command line to be run that shows itself.
    Run(Vec<String>),
}

/// What came of looking for keys.
enum Keys {
    /// None was pressed.
    None,
    /// What was pressed is carried out, or the size has changed.
    Pressed,
    /// The view is to be closed.
    Closing(WatchEnd),
}

/// Shows the view until it is closed.
pub(super) fn watch(
    context: &Context,
    view: &OpenView,
    source: ViewSource<'_>,
    interrupts: &Interrupts,
) -> WatchEnd {
    let opened = suspensions()
        .map_err(io::Error::other)
        .and_then(|suspensions| {
            let terminal = terminal::enter()?;
            Ok((suspensions, terminal))
        });
    // Without a screen there are lines.
    let Ok((suspensions, terminal)) = opened else {
        return WatchEnd::Closed;
    };
    let mut watcher = Watcher {
        context,
        view,
        source,
        terminal,
        suspensions,
        theme: Theme {
            has_colour: context.ui.has_colour(),
            charset: context.ui.charset,
        },
        look_from: Instant::now(),
        look_by: Instant::now() + LOOK,
    };
    // A terminal that is gone is closed, too.
    let end = watcher.watch(interrupts).unwrap_or(WatchEnd::Closed);
    terminal::leave(watcher.terminal);
    end
}

struct Watcher<'a> {
    context: &'a Context,
    view: &'a OpenView,
    source: ViewSource<'a>,
    terminal: ViewTerminal,
    suspensions: Suspensions,
    theme: Theme,
    /// When the disk may be looked at again, and when it is, should nobody tell of a change.
    look_from: Instant,
    look_by: Instant,
}

impl Watcher<'_> {
    fn watch(&mut self, interrupts: &Interrupts) -> io::Result<WatchEnd> {
        while !self.is_over(interrupts) {
            if self.suspensions.take() && !self.suspend()? {
                break;
            }
            self.look();
            self.draw()?;
            if let Some(end) = self.until_next(interrupts)? {
                return Ok(end);
            }
        }
        Ok(WatchEnd::Closed)
    }

    fn is_over(&self, interrupts: &Interrupts) -> bool {
        self.view.is_closing.load(Ordering::SeqCst) || interrupts.is_raised()
    }

    /// Takes keys until the next picture is due: at once after a key, soon after news, and in a
    /// second for the clock. Returns why the view is to be closed, if it is.
    fn until_next(&mut self, interrupts: &Interrupts) -> io::Result<Option<WatchEnd>> {
        let drawn = Instant::now();
        self.sleep(TICK)?;
        loop {
            let keys = self.keys()?;
            let left = FRAME.saturating_sub(drawn.elapsed());
            match keys {
                Keys::Closing(end) => return Ok(Some(end)),
                Keys::Pressed => return Ok(None),
                Keys::None if left.is_zero() || self.is_over(interrupts) => return Ok(None),
                // More news may come until then; they become one picture.
                Keys::None => self.rest(left)?,
            }
        }
    }

    /// Reads what stands on disk, where it may have changed.
    fn look(&mut self) {
        let began = Instant::now();
        let is_due = self.source.overview.is_some() && began >= self.look_by;
        let is_stale = self.view.is_stale.load(Ordering::SeqCst);
        if !(is_stale || is_due) || began < self.look_from {
            return;
        }
        self.view.is_stale.store(false, Ordering::SeqCst);
        let subjects = (self.source.subjects)();
        let overview = self.source.overview.map(|overview| overview());
        let mut state = self.view.state();
        state.put(subjects);
        state.overview = overview;
        drop(state);
        if self.source.overview.is_some() {
            let pause = began.elapsed().saturating_mul(LOOK_SHARE).min(PAUSE_MAX);
            self.look_from = began + pause;
            self.look_by = began + pause.max(LOOK);
        }
    }

    fn draw(&mut self) -> io::Result<()> {
        let now_ms = self.context.clock.now_ms();
        let mut state = self.view.state();
        let theme = self.theme;
        self.terminal
            .draw(|frame| draw(frame, &state, theme, now_ms))?;
        if std::mem::take(&mut state.is_unseen) {
            while is_pressed()? {
                drop(event::read()?);
            }
        }
        Ok(())
    }

    /// Sleeps until a key is pressed, somebody rings, or the time is over.
    fn sleep(&self, longest: Duration) -> io::Result<()> {
        let stdin = stdin();
        let mut polled = [
            PollFd::new(&stdin, PollFlags::IN),
            PollFd::new(&self.view.bell, PollFlags::IN),
        ];
        wait(&mut polled, longest)?;
        let mut rung = [0_u8; 8];
        // Nothing to read means that nobody rang.
        rustix::io::read(&self.view.bell, &mut rung).ok();
        Ok(())
    }

    /// Sleeps until a key is pressed or the time is over.
    fn rest(&self, longest: Duration) -> io::Result<()> {
        let stdin = stdin();
        wait(&mut [PollFd::new(&stdin, PollFlags::IN)], longest)
    }

    /// Carries out what was typed.
    fn keys(&mut self) -> io::Result<Keys> {
        let mut keys = Keys::None;
        while is_pressed()? {
            keys = Keys::Pressed;
            let Event::Key(key) = event::read()? else {
                continue;
            };
            let action = press(&mut self.view.state(), key);
            match action {
                KeyAction::Nothing => {}
                KeyAction::Reply(answer) => self.view.reply(answer),
                KeyAction::Run(words) => self.run(&words),
                KeyAction::Diff(reference) => self.diff(&reference)?,
                KeyAction::Leave => return Ok(Keys::Closing(WatchEnd::Closed)),
                KeyAction::Inbox => return Ok(Keys::Closing(WatchEnd::Inbox)),
                KeyAction::RunInstead(words) => return Ok(Keys::Closing(WatchEnd::Run(words))),
            }
        }
        Ok(keys)
    }

    /// Runs a command line; what it says stands in the log, and the last of it above the keys.
    fn run(&self, words: &[String]) {
        let ran = run_line(self.context, words);
        let mut state = self.view.state();
        state.note = match ran {
            Err(error) => Some(format!("error: {error}")),
            Ok(_) => state.lines.back().map(|line| line.text.trim().to_owned()),
        };
        drop(state);
        self.view.is_stale.store(true, Ordering::SeqCst);
    }

    fn diff(&mut self, reference: &str) -> io::Result<()> {
        terminal::restore();
        let shown = pager::show(self.context, reference);
        self.view.state().note = shown.err();
        terminal::enter_again(&mut self.terminal)
    }

    /// Gives the terminal back while this process is suspended; tells whether it may have it again.
    fn suspend(&mut self) -> io::Result<bool> {
        terminal::restore();
        self.suspensions.suspend().map_err(io::Error::other)?;
        if !terminal::is_ours() {
            return Ok(false);
        }
        terminal::enter_again(&mut self.terminal)?;
        Ok(true)
    }
}

/// Tells whether a key was pressed or the size changed; a terminal that has hung up is an error.
///
/// Looked at first, because crossterm reads the end of a terminal again and again.
fn is_pressed() -> io::Result<bool> {
    let stdin = stdin();
    let mut polled = [PollFd::new(&stdin, PollFlags::IN)];
    wait(&mut polled, Duration::ZERO)?;
    let [keys] = polled.each_ref().map(PollFd::revents);
    if keys.intersects(PollFlags::HUP | PollFlags::ERR) {
        return Err(io::ErrorKind::BrokenPipe.into());
    }
    event::poll(Duration::ZERO)
}

fn wait(polled: &mut [PollFd<'_>], longest: Duration) -> io::Result<()> {
    let longest = Timespec::try_from(longest).map_err(io::Error::other)?;
    match poll(polled, Some(&longest)) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
