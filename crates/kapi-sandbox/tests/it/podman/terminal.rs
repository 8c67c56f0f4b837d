//! A program at a terminal in a container: what is typed reaches it, what it prints comes back.

use std::os::fd::OwnedFd;

use kapi_sys::process::run_quiet;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{Winsize, tcgetattr, tcsetwinsize};

use super::yard::{Yard, as_each_user};

/// What runs inside, step by step, each told by a line.
const LINE: &str = "test -t 0 -a -t 1 -a -t 2 && : > /dev/tty && echo up; stty size; \
                    trap 'stty size; echo resized' WINCH; read word; echo \"got $word\"; \
                    until [ -n \"$more\" ]; do read -t 1 more; done; \
                    ls /proc/self/fd | tr '\\n' ' '; echo; \
                    trap 'echo interrupted; exit 7' INT; echo waiting; while :; do read -t 1 word; done";

/// A person's terminal, seen from the person's side.
struct Screen {
    outer: OwnedFd,
    inner: OwnedFd,
    shown: String,
}

impl Screen {
    fn new() -> Self {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let outer = openpt(flags).unwrap();
        grantpt(&outer).unwrap();
        unlockpt(&outer).unwrap();
        let inner = ioctl_tiocgptpeer(&outer, flags).unwrap();
        let screen = Self {
            outer,
            inner,
            shown: String::new(),
        };
        screen.resize(30, 90);
        screen
    }

    fn resize(&self, rows: u16, columns: u16) {
        let size = Winsize {
            ws_row: rows,
            ws_col: columns,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        tcsetwinsize(&self.outer, size).unwrap();
    }

    fn type_in(&self, text: &str) {
        rustix::io::write(&self.outer, text.as_bytes()).unwrap();
    }

    fn settings(&self) -> String {
        format!("{:?}", tcgetattr(&self.inner).unwrap())
    }

    /// Waits until a text has been shown that was not there when the last one was.
    fn await_text(&mut self, text: &str) {
        let limit = Timespec {
            tv_sec: 60,
            tv_nsec: 0,
        };
        while !self.shown.contains(text) {
            let mut polled = [PollFd::new(&self.outer, PollFlags::IN)];
            let n = poll(&mut polled, Some(&limit)).unwrap();
            assert_eq!(n, 1, "never shown: {text}; but: {}", self.shown);
            let mut bytes = [0_u8; 4096];
            let n = rustix::io::read(&self.outer, &mut bytes).unwrap();
            self.shown.push_str(&String::from_utf8_lossy(&bytes[..n]));
        }
        let at = self.shown.find(text).unwrap();
        self.shown.drain(..at + text.len());
    }
}

#[test]
fn a_person_works_with_a_program_in_a_container() {
    as_each_user(|yard| {
        work_with(yard);
        assert_eq!(yard.remains(), "");
    });
}

fn work_with(yard: &Yard) {
    let mut screen = Screen::new();
    let before = screen.settings();
    let inner = screen.inner.try_clone().unwrap();
    let program = yard.driver_at(&yard.shell(LINE), inner);
    std::thread::scope(|scope| {
        let running = scope.spawn(|| run_quiet(program));
        screen.await_text("up\r\n30 90\r\n");
        screen.type_in("hello\r");
        screen.await_text("got hello\r\n");
        screen.resize(41, 111);
        screen.await_text("41 111\r\nresized\r\n");
        screen.type_in("on\r");
        // The three streams and the directory that is listed: neither podman nor the relay left any.
        screen.await_text("0 1 2 3 \r\nwaiting\r\n");
        screen.type_in("\u{3}");
        screen.await_text("interrupted\r\n");
        screen.await_text("ended Exited(7)\r\n");
        running.join().unwrap().unwrap();
    });
    assert_eq!(screen.settings(), before, "the terminal is as it was");
}
