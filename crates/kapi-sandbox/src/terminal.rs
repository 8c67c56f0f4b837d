//! A terminal for a program in a sandbox, and the relay between it and a person's own terminal.
//!
//! The program never gets a descriptor of the person's terminal, so it cannot type there. Does not know
//! what the program is.

use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::panic::resume_unwind;
use std::{io, thread};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::{Errno, ioctl_fionbio, read, write};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::stdio::{stdin, stdout};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr, tcsetwinsize};
use signal_hook::SigId;
use signal_hook::consts::SIGWINCH;
use signal_hook::low_level::{pipe, unregister};

/// Bytes passed on at once.
const CHUNK_BYTES: usize = 4096;
/// The character that means the end of the input to a terminal: Ctrl-D.
const END_OF_INPUT: u8 = 4;

/// A new terminal.
#[derive(Debug)]
pub(crate) struct PseudoTerminal {
    /// The side of whoever shows it.
    pub outer: OwnedFd,
    /// The side of the program.
    pub inner: OwnedFd,
}

impl PseudoTerminal {
    /// Makes one, of the size of the person's.
    pub(crate) fn open() -> Result<Self, Errno> {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let outer = openpt(flags)?;
        grantpt(&outer)?;
        unlockpt(&outer)?;
        let inner = ioctl_tiocgptpeer(&outer, flags)?;
        copy_size(outer.as_fd())?;
        Ok(Self { outer, inner })
    }
}

/// Gives a terminal the size of the person's, if standard input is one.
fn copy_size(outer: BorrowedFd<'_>) -> Result<(), Errno> {
    match tcgetwinsize(stdin()) {
        Ok(size) => tcsetwinsize(outer, size),
        Err(Errno::NOTTY) => Ok(()),
        Err(errno) => Err(errno),
    }
}

/// The person's terminal, passing on each key as it is; put back as it was when dropped.
#[derive(Debug)]
struct RawTerminal {
    before: Option<Termios>,
}

impl RawTerminal {
    fn enter() -> Result<Self, Errno> {
        let before = match tcgetattr(stdin()) {
            Ok(before) => before,
            Err(Errno::NOTTY) => return Ok(Self { before: None }),
            Err(errno) => return Err(errno),
        };
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(stdin(), OptionalActions::Drain, &raw)?;
        Ok(Self {
            before: Some(before),
        })
    }
}

impl Drop for RawTerminal {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            match tcsetattr(stdin(), OptionalActions::Drain, before) {
                // A terminal that is gone needs no setting back.
                Ok(()) | Err(_) => {}
            }
        }
    }
}

/// A word of the system whenever the person's terminal changes its size.
#[derive(Debug)]
struct Resizes {
    words: UnixStream,
    id: SigId,
}

impl Resizes {
    fn watch() -> io::Result<Self> {
        let (words, sender) = UnixStream::pair()?;
        words.set_nonblocking(true)?;
        let id = pipe::register(SIGWINCH, sender)?;
        Ok(Self { words, id })
    }

    fn drain(&self) {
        let mut bytes = [0_u8; 64];
        while read(&self.words, &mut bytes).is_ok_and(|n| n > 0) {}
    }
}

impl Drop for Resizes {
    fn drop(&mut self) {
        unregister(self.id);
    }
}

/// Passes on between the person's terminal and a program's.
#[derive(Debug)]
pub(crate) struct TerminalRelay {
    outer: OwnedFd,
    resizes: Resizes,
    _raw: RawTerminal,
    /// Typed and not yet taken by the program's terminal.
    typed: Vec<u8>,
    is_input_open: bool,
}

/// What a relay may read now.
struct ReadySources {
    input: bool,
    output: bool,
    capacity: bool,
    resized: bool,
    over: bool,
}

impl TerminalRelay {
    /// Makes the person's terminal raw.
    pub(crate) fn start(outer: OwnedFd) -> Result<Self, Errno> {
        ioctl_fionbio(&outer, true)?;
        let resizes =
            Resizes::watch().map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
        Ok(Self {
            outer,
            resizes,
            _raw: RawTerminal::enter()?,
            typed: Vec::new(),
            is_input_open: true,
        })
    }

    /// Passes on while a function runs on this thread, and then what is left of the output.
    pub(crate) fn during<T>(
        self,
        run: impl FnOnce() -> Result<T, crate::error::SandboxError>,
    ) -> Result<T, crate::error::SandboxError> {
        let failed = |errno| {
            let failure = crate::status::StepFailure::new("poll", "the terminal", errno);
            crate::error::SandboxError::setup(&failure)
        };
        let (over, hold) = pipe_with(PipeFlags::CLOEXEC).map_err(failed)?;
        thread::scope(|scope| {
            let relaying = scope.spawn(move || self.pass_on(&over));
            let result = run();
            drop(hold);
            match relaying.join() {
                // How the program ended matters more than a terminal that went away.
                Ok(relayed) => result.and_then(|value| relayed.map(|()| value).map_err(failed)),
                Err(panic) => resume_unwind(panic),
            }
        })
    }

    fn pass_on(mut self, over: &OwnedFd) -> Result<(), Errno> {
        loop {
            let ready = self.wait(over)?;
            if ready.resized {
                self.resizes.drain();
                copy_size(self.outer.as_fd())?;
            }
            if ready.output {
                self.show()?;
            }
            if ready.input {
                self.take_input()?;
            }
            if ready.capacity {
                self.type_on()?;
            }
            if ready.over {
                return self.show_rest();
            }
        }
    }

    /// Shows what is left; nobody writes any more.
    fn show_rest(&self) -> Result<(), Errno> {
        while self.show()? {}
        Ok(())
    }

    fn wait(&self, over: &OwnedFd) -> Result<ReadySources, Errno> {
        let input = stdin();
        // Typing is taken only as fast as the program reads it.
        let wants_input = self.is_input_open && self.typed.is_empty();
        let outer = if self.typed.is_empty() {
            PollFlags::IN
        } else {
            PollFlags::IN | PollFlags::OUT
        };
        let mut polled = [
            PollFd::new(over, PollFlags::IN),
            PollFd::new(&self.outer, outer),
            PollFd::new(&self.resizes.words, PollFlags::IN),
            PollFd::new(&input, PollFlags::IN),
        ];
        let n = if wants_input { 4 } else { 3 };
        let asked = polled.get_mut(..n).unwrap_or_default();
        match poll(asked, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
        let [over, outer, resizes, input] = polled.each_ref().map(PollFd::revents);
        Ok(ReadySources {
            input: wants_input && !input.is_empty(),
            output: !(outer & !PollFlags::OUT).is_empty(),
            capacity: outer.contains(PollFlags::OUT),
            resized: !resizes.is_empty(),
            over: !over.is_empty(),
        })
    }

    /// Shows what the program printed and tells whether there was something.
    fn show(&self) -> Result<bool, Errno> {
        let mut bytes = [0_u8; CHUNK_BYTES];
        let n = match read(&self.outer, &mut bytes) {
            Ok(n) => n,
            // Nobody holds the inner side: not yet, or not any more.
            Err(Errno::AGAIN | Errno::INTR | Errno::IO) => return Ok(false),
            Err(errno) => return Err(errno),
        };
        let mut rest = bytes.get(..n).unwrap_or_default();
        while !rest.is_empty() {
            match write(stdout(), rest) {
                Ok(n) => rest = rest.get(n..).unwrap_or_default(),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno),
            }
        }
        Ok(n > 0)
    }

    fn take_input(&mut self) -> Result<(), Errno> {
        let mut bytes = [0_u8; CHUNK_BYTES];
        match read(stdin(), &mut bytes) {
            Ok(0) | Err(Errno::IO) => {
                self.is_input_open = false;
                self.typed.push(END_OF_INPUT);
            }
            Ok(n) => self
                .typed
                .extend_from_slice(bytes.get(..n).unwrap_or_default()),
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
        Ok(())
    }

    fn type_on(&mut self) -> Result<(), Errno> {
        match write(&self.outer, &self.typed) {
            Ok(n) => {
                self.typed.drain(..n);
                Ok(())
            }
            Err(Errno::AGAIN | Errno::INTR) => Ok(()),
            Err(errno) => Err(errno),
        }
    }
}
