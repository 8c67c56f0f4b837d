//! Requests from outside to stop: Ctrl-C, a hang-up, a polite kill.
//!
//! A signal only raises a flag; whoever works looks at it and cleans up. A second Ctrl-C ends the
//! process on the spot, because recovery is the normal path and needs no clean-up.

use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::{io, ptr};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGTSTP};
use signal_hook::flag;
use signal_hook::low_level::emulate_default_handler;

use crate::cancel::Cancel;

/// The exit code of a process ended by a second Ctrl-C: 128 and the number of the signal.
const INTERRUPTED: i32 = 130;

/// The signals could not be taken over.
#[derive(Debug, thiserror::Error)]
#[error("watch for signal {signal}")]
pub struct SignalError {
    /// The number of the signal.
    pub signal: i32,
    /// What the system said.
    #[source]
    pub source: io::Error,
}

/// Whether this process has been asked to stop, and by which signal.
#[derive(Debug, Clone)]
pub struct Interrupts {
    cancel: Cancel,
    number: Arc<AtomicUsize>,
}

/// Takes over `SIGINT`, `SIGTERM` and `SIGHUP` for the rest of the process's life.
///
/// To be called once, by `main`. A signal that was ignored at the start (`nohup`) is taken over
/// as well. A `SIGINT` that arrives when any of the three has been seen ends the process at once
/// with exit code 130; its children die with it.
pub fn interrupts() -> Result<Interrupts, SignalError> {
    let is_raised = Arc::new(AtomicBool::new(false));
    let number = Arc::new(AtomicUsize::new(0));
    // Registered before the flag, so that the first signal finds it down. Actions run in order.
    flag::register_conditional_shutdown(SIGINT, INTERRUPTED, Arc::clone(&is_raised)).map_err(
        |source| SignalError {
            signal: SIGINT,
            source,
        },
    )?;
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        let failed = |source| SignalError { signal, source };
        let value = usize::try_from(signal).map_err(|error| failed(io::Error::other(error)))?;
        // The number first: whoever sees the flag also sees the number.
        flag::register_usize(signal, Arc::clone(&number), value).map_err(failed)?;
        flag::register(signal, Arc::clone(&is_raised)).map_err(failed)?;
    }
    Ok(Interrupts {
        cancel: Cancel(is_raised),
        number,
    })
}

impl Interrupts {
    /// Tells whether a signal has come.
    #[must_use]
    pub fn is_raised(&self) -> bool {
        self.cancel.is_raised()
    }

    /// Returns the number of the last signal that came.
    #[must_use]
    pub fn signal(&self) -> Option<i32> {
        match self.number.load(Ordering::SeqCst) {
            0 => None,
            number => i32::try_from(number).ok(),
        }
    }

    /// Returns the flag that a signal raises, to be handed to whatever shall stop then.
    ///
    /// Raising it by hand looks like a signal without a number.
    #[must_use]
    pub fn cancel(&self) -> Cancel {
        self.cancel.clone()
    }
}

/// Sets up the terminal where this process may be in the background: `SIGTTOU`, which would stop it
/// for that, is held off in this thread meanwhile.
#[expect(unsafe_code, reason = "the signal mask of a thread has no safe form")]
pub fn with_terminal_of_others<T>(set_up: impl FnOnce() -> T) -> T {
    let mut held = MaybeUninit::uninit();
    let mut before = MaybeUninit::uninit();
    // SAFETY: `sigemptyset` makes `held` a set before it is used as one, and `pthread_sigmask` only
    // reads it and writes `before`; both live on this stack.
    let is_held = unsafe {
        libc::sigemptyset(held.as_mut_ptr());
        libc::sigaddset(held.as_mut_ptr(), libc::SIGTTOU);
        libc::pthread_sigmask(libc::SIG_BLOCK, held.as_ptr(), before.as_mut_ptr()) == 0
    };
    let done = set_up();
    if is_held {
        // SAFETY: the call above has succeeded, so it has written `before`.
        unsafe {
            libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), ptr::null_mut());
        }
    }
    done
}

/// Requests to be suspended, such as Ctrl-Z, for whoever has to put the terminal back first.
///
/// While one of these lives, such a request only raises a flag; afterwards it suspends at once.
#[derive(Debug)]
pub struct Suspensions {
    flags: &'static SuspensionFlags,
}

/// One process is suspended as a whole.
#[derive(Debug)]
struct SuspensionFlags {
    is_asked: Arc<AtomicBool>,
    /// Whether the process is suspended at once.
    is_immediate: Arc<AtomicBool>,
}

/// Takes over `SIGTSTP` until what is returned is dropped.
pub fn suspensions() -> Result<Suspensions, SignalError> {
    static FLAGS: OnceLock<SuspensionFlags> = OnceLock::new();
    let failed = |source| SignalError {
        signal: SIGTSTP,
        source,
    };
    let flags = match FLAGS.get() {
        Some(flags) => flags,
        None => {
            let flags = SuspensionFlags {
                is_asked: Arc::new(AtomicBool::new(false)),
                is_immediate: Arc::new(AtomicBool::new(false)),
            };
            flag::register_conditional_default(SIGTSTP, Arc::clone(&flags.is_immediate))
                .map_err(failed)?;
            flag::register(SIGTSTP, Arc::clone(&flags.is_asked)).map_err(failed)?;
            FLAGS.get_or_init(|| flags)
        }
    };
    flags.is_asked.store(false, Ordering::SeqCst);
    flags.is_immediate.store(false, Ordering::SeqCst);
    Ok(Suspensions { flags })
}

impl Suspensions {
    /// Tells whether a request came since this was asked last.
    #[must_use]
    pub fn take(&self) -> bool {
        self.flags.is_asked.swap(false, Ordering::SeqCst)
    }

    /// Suspends this process, and returns when it is continued.
    pub fn suspend(&self) -> Result<(), SignalError> {
        emulate_default_handler(SIGTSTP).map_err(|source| SignalError {
            signal: SIGTSTP,
            source,
        })
    }
}

impl Drop for Suspensions {
    fn drop(&mut self) {
        self.flags.is_immediate.store(true, Ordering::SeqCst);
    }
}
