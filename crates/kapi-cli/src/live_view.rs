//! The live view: what goes on, on one screen, while somebody looks on at a terminal.
//!
//! Whoever works tells it news; what stands on disk it reads itself. While it is open, whatever is
//! printed is kept, and comes out when it is closed: the terminal then looks as without a view.

pub(crate) mod facts;
mod in_place;
mod keys;
pub(crate) mod open_view;
pub(crate) mod overview;
pub(crate) mod pager;
pub(crate) mod source;
pub(crate) mod state;
pub(crate) mod terminal;
pub(crate) mod view;
pub(crate) mod watch;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use kapi_sys::clock::{Clock as _, SystemClock};
use kapi_sys::signal::Interrupts;
use rustix::event::{EventfdFlags, eventfd};

use crate::context::Context;
use crate::live_view::open_view::{OpenView, ViewSource};
use crate::live_view::state::{News, Prompt, SaidLine, ViewState};
use crate::live_view::watch::WatchEnd;
use crate::ui;
use crate::ui::screen::{LineStream, ScreenHooks};

/// How often whoever asked looks whether the answer is still wanted.
const LOOK: Duration = Duration::from_millis(200);

/// How often it is looked whether a view that somebody closed is closed.
const LEAVE_LOOKS_MAX: u32 = 25;

/// The view that is open; one process has one terminal.
static OPEN: Mutex<Option<Arc<OpenView>>> = Mutex::new(None);

/// Does some work, with a view of it where somebody looks on at a terminal that can show one.
pub(crate) fn during<T>(
    context: &Context,
    source: ViewSource<'_>,
    interrupts: &Interrupts,
    work: impl FnOnce() -> T,
) -> T {
    let Some(view) = open(context, &source) else {
        return work();
    };
    view.state().is_at_work = true;
    thread::scope(|scope| {
        let watching = scope.spawn(|| {
            while watch::watch(context, &view, source, interrupts) == WatchEnd::Inbox {
                in_place::inbox(context);
            }
            close(&view);
        });
        let closing = ClosingGuard(&view);
        let done = work();
        drop(closing);
        // A view that has panicked took nothing with it but the view.
        drop(watching.join());
        done
    })
}

/// Shows something until the person leaves it; `None` where no view can be shown.
pub(crate) fn until_left(
    context: &Context,
    source: ViewSource<'_>,
    interrupts: &Interrupts,
) -> Option<WatchEnd> {
    let view = open(context, &source)?;
    let end = watch::watch(context, &view, source, interrupts);
    close(&view);
    Some(end)
}

/// Ends the view with the work, even where the work panics.
struct ClosingGuard<'a>(&'a OpenView);

impl Drop for ClosingGuard<'_> {
    fn drop(&mut self) {
        self.0.is_closing.store(true, Ordering::SeqCst);
        self.0.ring();
    }
}

/// Tells the view that is open, if one is, what happened to a subject.
pub(crate) fn tell(id: &str, news: News) {
    let Some(view) = current() else { return };
    let is_recorded = matches!(news, News::Counted | News::Began { .. });
    view.state().hear(id, news, SystemClock.now_ms());
    if is_recorded {
        view.is_stale.store(true, Ordering::SeqCst);
    }
    view.ring();
}

/// Tells the view that is open, if one is, that something on disk has changed.
pub(crate) fn changed() {
    if let Some(view) = current() {
        view.is_stale.store(true, Ordering::SeqCst);
        view.ring();
    }
}

/// Tells whether a view is open.
pub(crate) fn is_open() -> bool {
    current().is_some()
}

/// Tells whether something is drawn that whoever asks would disturb.
fn is_in_the_way() -> bool {
    is_open() && !in_place::is_here()
}

/// Keeps what is printed, where a view is open; tells whether it did.
fn keeps(stream: LineStream, text: &str) -> bool {
    if in_place::is_here() {
        return false;
    }
    let Some(view) = current() else { return false };
    view.state().say(SaidLine {
        stream,
        text: text.to_owned(),
    });
    view.ring();
    true
}

/// Closes the view for good, where one is open: somebody wants the terminal.
fn leave() {
    if in_place::is_here() {
        return;
    }
    for _ in 0..LEAVE_LOOKS_MAX {
        let Some(view) = current() else { return };
        view.is_closing.store(true, Ordering::SeqCst);
        view.ring();
        let replied = view.reply.lock().unwrap_or_else(PoisonError::into_inner);
        drop(view.replied.wait_timeout(replied, LOOK));
    }
}

/// Asks a yes-or-no question on the view; silence is a no. `None` where none is open, or it was
/// closed without a reply.
pub(crate) fn ask(question: &str, within: Duration, is_over: &dyn Fn() -> bool) -> Option<bool> {
    let view = current()?;
    let began = Instant::now();
    let mut reply = view.reply.lock().unwrap_or_else(PoisonError::into_inner);
    *reply = None;
    let answer = loop {
        view.put_question(question);
        if let Some(answer) = reply.take() {
            break Some(answer);
        }
        if began.elapsed() >= within || is_over() {
            break Some(false);
        }
        if view.is_closing.load(Ordering::SeqCst) {
            break None;
        }
        let waited = view.replied.wait_timeout(reply, LOOK);
        reply = waited.unwrap_or_else(PoisonError::into_inner).0;
    };
    drop(reply);
    let mut state = view.state();
    if matches!(state.prompt, Prompt::Question { .. }) {
        state.prompt = Prompt::Keys;
    }
    drop(state);
    view.ring();
    answer
}

/// Opens a view, unless one is open already or there is no terminal for it.
fn open(context: &Context, source: &ViewSource<'_>) -> Option<Arc<OpenView>> {
    if !context.ui.has_screen() || !terminal::is_ours() {
        return None;
    }
    let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).ok()?;
    let mut state = ViewState::default();
    state.put((source.subjects)());
    state.overview = source.overview.map(|overview| overview());
    let view = Arc::new(OpenView {
        state: Mutex::new(state),
        is_stale: AtomicBool::new(false),
        is_closing: AtomicBool::new(false),
        reply: Mutex::new(None),
        replied: Condvar::new(),
        bell,
    });
    let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    if open.is_some() {
        return None;
    }
    ui::screen::set_hooks(ScreenHooks {
        keeps,
        is_open: is_in_the_way,
        leave,
    });
    *open = Some(Arc::clone(&view));
    Some(view)
}

/// Lets go of the terminal, and prints what was kept.
fn close(view: &OpenView) {
    terminal::restore();
    let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    let mut state = view.state();
    if state.n_dropped > 0 {
        let text = format!(
            "note: {} earlier lines are left out; see `kapi log`.\n",
            state.n_dropped
        );
        ui::pass_on(LineStream::Error, &text);
    }
    for line in std::mem::take(&mut state.lines) {
        ui::pass_on(line.stream, &line.text);
    }
    drop(state);
    *open = None;
    drop(open);
    view.is_closing.store(true, Ordering::SeqCst);
    view.replied.notify_all();
}

fn current() -> Option<Arc<OpenView>> {
    OPEN.lock().unwrap_or_else(PoisonError::into_inner).clone()
}
