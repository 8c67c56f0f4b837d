//! Programs to run and conditions to wait for.
//!
//! Every wait has an end and says what it waited for. Knows nothing of what is tested.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use kapi_sys::cancel::Cancel;
use kapi_sys::process::{FinishedProcess, OutputLine, ProcessLimits, Program, run};
use rustix::process::{Pid, Signal, kill_process};

/// Longer than anything takes that is not broken.
const PATIENCE: Duration = Duration::from_secs(60);

/// The second process, built from `tests/peer`.
pub(crate) const PEER: &str = env!("CARGO_BIN_EXE_kapi-sys-peer");

/// Returns limits that end nothing in a test that works.
pub(crate) fn generous() -> ProcessLimits {
    ProcessLimits {
        deadline: PATIENCE,
        idle: None,
        tail_bytes_max: 64 * 1024,
        line_bytes_max: 8 * 1024,
    }
}

/// Returns a program with a search path and nothing else in its environment.
pub(crate) fn program(path: &str, args: &[&str]) -> Program {
    Program {
        path: PathBuf::from(path),
        args: args.iter().map(OsString::from).collect(),
        env: BTreeMap::from([("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into())]),
        cwd: PathBuf::from("/"),
        stdin: Vec::new(),
        pass_fds: Vec::new(),
        limits: generous(),
    }
}

/// Returns a shell script as a program.
pub(crate) fn script(text: &str) -> Program {
    program("/bin/sh", &["-c", text])
}

/// Runs a program that must start, ignoring its lines.
pub(crate) fn finish(program: Program) -> FinishedProcess {
    run(program, &Cancel::new(), &mut |_| {}).unwrap()
}

/// Runs a program that must start, and returns its lines marked with their stream.
pub(crate) fn finish_with_lines(program: Program) -> (FinishedProcess, Vec<String>) {
    let mut lines = Vec::new();
    let finished = run(program, &Cancel::new(), &mut |line| {
        lines.push(match line {
            OutputLine::Stdout(bytes) => format!("out: {}", String::from_utf8_lossy(bytes)),
            OutputLine::Stderr(bytes) => format!("err: {}", String::from_utf8_lossy(bytes)),
        });
    });
    (finished.unwrap(), lines)
}

/// Waits until the condition holds, looking at it every few milliseconds.
pub(crate) fn await_that(what: &str, mut condition: impl FnMut() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < until, "waited in vain: {what}");
        thread::sleep(Duration::from_millis(2));
    }
}

/// Waits for a file to have a whole line in it, and returns the line.
pub(crate) fn await_line(path: &Path) -> String {
    let mut line = None;
    await_that(&format!("a line in {}", path.display()), || {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        line = text.split_once('\n').map(|(first, _)| first.to_owned());
        line.is_some()
    });
    line.unwrap()
}

/// Tells whether a process is alive; one that waits to be reaped is not.
pub(crate) fn is_alive(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ")
        .is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

/// A process in the background; dropping it kills it.
pub(crate) struct Background(pub(crate) std::process::Child);

impl Background {
    /// Starts the peer in the given role.
    #[expect(
        clippy::disallowed_methods,
        reason = "the door has no background processes to offer"
    )]
    pub(crate) fn peer(args: &[&str]) -> Self {
        let mut command = std::process::Command::new(PEER);
        Self(command.args(args).spawn().unwrap())
    }

    pub(crate) fn pid(&self) -> Pid {
        Pid::from_child(&self.0)
    }

    /// Kills it the hard way and waits until it is gone.
    pub(crate) fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// Kills a process by the number it wrote down; it must be there.
pub(crate) fn kill_by_pid(pid: &str) {
    let pid = Pid::from_raw(pid.parse().unwrap()).unwrap();
    kill_process(pid, Signal::KILL).unwrap();
}

/// Writes a file whole, for a test to find.
pub(crate) fn put(path: &Path, bytes: &[u8]) {
    use std::io::Write as _;
    std::fs::File::create(path)
        .unwrap()
        .write_all(bytes)
        .unwrap();
}
