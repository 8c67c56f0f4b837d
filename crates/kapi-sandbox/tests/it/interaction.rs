//! A program at a terminal: what is typed reaches it, what it prints comes back, and no more than that.

use std::cell::RefCell;
use std::os::fd::OwnedFd;

use kapi_sys::process::{self, Program};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{Winsize, tcgetattr, tcsetwinsize};

use crate::request::Request;
use crate::workplace::{Workplace, as_each_user};

/// A person's terminal, seen from the person's side.
struct Screen {
    outer: OwnedFd,
    inner: OwnedFd,
    shown: RefCell<String>,
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
            shown: RefCell::default(),
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

    /// Waits until a text has been shown that was not there when the last one was.
    fn await_text(&self, text: &str) {
        let limit = Timespec {
            tv_sec: 20,
            tv_nsec: 0,
        };
        loop {
            let mut shown = self.shown.borrow_mut();
            if let Some(at) = shown.find(text) {
                shown.drain(..at + text.len());
                return;
            }
            let mut polled = [PollFd::new(&self.outer, PollFlags::IN)];
            let n = poll(&mut polled, Some(&limit)).unwrap();
            assert_eq!(n, 1, "never shown: {text}; but: {shown}");
            let mut bytes = [0_u8; 4096];
            let n = rustix::io::read(&self.outer, &mut bytes).unwrap();
            shown.push_str(&String::from_utf8_lossy(&bytes[..n]));
        }
    }
}

/// The driver, in a session of its own with the screen as its terminal.
fn at(screen: &Screen, location: &Workplace, request: &Request) -> Program {
    let wrapper = [
        "sh",
        "-c",
        "exec setsid --ctty --wait \"$0\" \"$@\" <&3 >&3 2>&3",
    ];
    let mut program = location.driver(&wrapper, &["interact"], request);
    program.env.insert(
        "KAPI_TEST_REQUEST".into(),
        serde_json::to_string(request).unwrap().into(),
    );
    program.pass_fds = vec![screen.inner.try_clone().unwrap()];
    program
}

fn settings(screen: &Screen) -> String {
    format!("{:?}", tcgetattr(&screen.inner).unwrap())
}

#[test]
fn a_person_works_with_a_program_inside() {
    as_each_user(|location| {
        let line = "test -t 0 -a -t 1 -a -t 2 && : > /dev/tty && echo up; stty size; read word; trap 'stty size; echo resized' WINCH; \
                    echo \"got $word\"; until read -t 0.05 word; do :; done; \
                    python3 -c 'import fcntl, termios; fcntl.ioctl(0, termios.TIOCSTI, b\"x\")' 2>&1 | tail -n 1; \
                    trap 'echo interrupted; exit 7' INT; echo waiting; while :; do read -t 0.05 word; done";
        work_with(location, &location.shell(line), "PermissionError");
        work_with(location, &location.bare(line), "");
    });
}

fn work_with(location: &Workplace, request: &Request, said_of_typing_for_another: &str) {
    let screen = Screen::new();
    let before = settings(&screen);
    let program = at(&screen, location, request);
    std::thread::scope(|scope| {
        let running = scope.spawn(|| process::run_quiet(program));
        screen.await_text("up\r\n30 90\r\n");
        screen.type_in("hello\r");
        screen.await_text("got hello\r\n");
        screen.resize(41, 111);
        screen.await_text("41 111\r\nresized\r\n");
        screen.type_in("\r");
        screen.await_text(said_of_typing_for_another);
        screen.await_text("waiting\r\n");
        screen.type_in("\u{3}");
        screen.await_text("interrupted\r\n");
        screen.await_text("ended Exited(7)\r\n");
        running.join().unwrap().unwrap();
    });
    assert_eq!(settings(&screen), before, "the terminal is as it was");
}

#[test]
fn input_that_is_no_terminal_ends_with_its_end() {
    as_each_user(|location| {
        let request = location.shell("cat; echo over");
        let mut program = location.driver(&[], &["interact"], &request);
        program.env.insert(
            "KAPI_TEST_REQUEST".into(),
            serde_json::to_string(&request).unwrap().into(),
        );
        program.stdin = b"piped\n".to_vec();
        let shown = process::run_quiet(program).unwrap().stdout.text();
        assert!(shown.ends_with("over\r\nended Exited(0)\n"), "{shown}");
        assert!(shown.contains("piped\r\n"), "{shown}");
    });
}
