//! The place a test works in: a directory of its own, the helper copied where everybody can run it,
//! and the users it runs as.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use kapi_sandbox::spec::{IsolationLevel, SandboxSpec};
use kapi_sys::process::{FinishedProcess, ProcessLimits, Program, find_in_path, run_quiet};
use rustix::fs::{Gid, Uid, chown};
use rustix::process::geteuid;
use tempfile::TempDir;

use crate::request::{Reply, Request};

/// `nobody`: an ordinary user that exists everywhere.
const ORDINARY: u32 = 65534;

/// One user's workplace.
pub(crate) struct Workplace {
    root: TempDir,
    user: u32,
}

/// Runs a check as the user who runs the tests and, if that is root, as an ordinary user too.
pub(crate) fn as_each_user(check: impl Fn(&Workplace)) {
    let own = geteuid().as_raw();
    check(&Workplace::new(own));
    if own == 0 {
        check(&Workplace::new(ORDINARY));
    }
}

impl Workplace {
    /// Makes directories `home` and `work`, owned by the user.
    pub(crate) fn new(user: u32) -> Self {
        let root = tempfile::Builder::new()
            .prefix("kapi-sandbox-it-")
            .tempdir_in("/tmp")
            .unwrap();
        fs::set_permissions(root.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let helper = root.path().join("helper");
        fs::copy(env!("CARGO_BIN_EXE_kapi-sandbox-helper"), &helper).unwrap();
        fs::set_permissions(&helper, fs::Permissions::from_mode(0o755)).unwrap();
        let location = Self { root, user };
        location.directory("home");
        location.directory("work");
        location
    }

    /// Tells whether this is the ordinary user's, and not that of whoever runs the tests.
    pub(crate) fn is_ordinary(&self) -> bool {
        self.user == ORDINARY
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    pub(crate) fn text(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }

    /// Makes a directory that belongs to the user.
    pub(crate) fn directory(&self, name: &str) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(&path).unwrap();
        self.give(&path);
        path
    }

    /// Makes a file that belongs to the user.
    pub(crate) fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        write(&path, text.as_bytes());
        self.give(&path);
        path
    }

    fn give(&self, path: &Path) {
        chown(
            path,
            Some(Uid::from_raw(self.user)),
            Some(Gid::from_raw(self.user)),
        )
        .unwrap();
    }

    /// Returns a request for a shell line in a native sandbox with the workspace at `/workspace` and
    /// the helper at `/helper`.
    pub(crate) fn shell(&self, line: &str) -> Request {
        Request {
            level: "native".to_owned(),
            name: "test".to_owned(),
            hostname: "kapi-test".to_owned(),
            network: "loopback".to_owned(),
            mounts: vec![
                (self.text("work"), "/workspace".to_owned(), "rw".to_owned()),
                (self.text("helper"), "/helper".to_owned(), "ro".to_owned()),
            ],
            aliases: Vec::new(),
            listeners: Vec::new(),
            home: self.text("home"),
            files: Vec::new(),
            argv: ["/bin/bash", "-c", line].map(str::to_owned).to_vec(),
            env: vec![
                ("HOME".to_owned(), "/home/agent".to_owned()),
                ("PATH".to_owned(), "/usr/bin:/bin:/usr/sbin".to_owned()),
            ],
            cwd: "/workspace".to_owned(),
            stdin: String::new(),
            deadline_ms: 60_000,
            resources: Vec::new(),
            processors: Vec::new(),
            counters: Vec::new(),
            nested: false,
            cancel_on: String::new(),
        }
    }

    /// Returns the same line for a run without isolation.
    pub(crate) fn bare(&self, line: &str) -> Request {
        Request {
            level: "none".to_owned(),
            mounts: Vec::new(),
            cwd: self.text("work"),
            ..self.shell(line)
        }
    }

    /// Performs a request as this place's user.
    pub(crate) fn run(&self, request: &Request) -> Reply {
        self.run_under(&[], request)
    }

    /// Performs a request below another program, which must end with executing its arguments.
    pub(crate) fn run_under(&self, wrapper: &[&str], request: &Request) -> Reply {
        let finished = run_quiet(self.driver(wrapper, &["run"], request)).unwrap();
        serde_json::from_slice(&finished.stdout.tail)
            .unwrap_or_else(|error| panic!("{error}: {finished:?}"))
    }

    /// Runs the helper with other arguments.
    pub(crate) fn helper(&self, wrapper: &[&str], args: &[&str]) -> FinishedProcess {
        run_quiet(self.driver(wrapper, args, &self.shell(""))).unwrap()
    }

    /// Returns the program that performs a request, as this place's user.
    pub(crate) fn driver(&self, wrapper: &[&str], args: &[&str], request: &Request) -> Program {
        let user = self.user.to_string();
        let mut words: Vec<String> = Vec::new();
        if geteuid().as_raw() != self.user {
            let change = [
                "setpriv",
                "--reuid",
                &user,
                "--regid",
                &user,
                "--clear-groups",
            ];
            words.extend(change.map(str::to_owned));
        }
        words.extend(wrapper.iter().map(|word| (*word).to_owned()));
        words.push(self.text("helper"));
        words.extend(args.iter().map(|word| (*word).to_owned()));
        let (first, rest) = words.split_first().unwrap();
        let path = find_in_path(first.as_ref(), "/usr/bin:/bin:/usr/sbin:/sbin".as_ref());
        Program {
            path: path.unwrap_or_else(|| PathBuf::from(first)),
            args: rest.iter().map(Into::into).collect(),
            env: BTreeMap::from([
                ("PATH".into(), "/usr/bin:/bin:/usr/sbin:/sbin".into()),
                (
                    "HOST_SECRET".into(),
                    "planted-in-the-host-environment".into(),
                ),
            ]),
            cwd: self.root.path().to_path_buf(),
            stdin: serde_json::to_vec(request).unwrap(),
            pass_fds: Vec::new(),
            limits: ProcessLimits {
                deadline: Duration::from_secs(120),
                idle: None,
                tail_bytes_max: 8 * 1024 * 1024,
                line_bytes_max: 1024,
            },
        }
    }
}

/// Returns a sandbox without mounts, to be run from the test's own process.
pub(crate) fn spec(level: IsolationLevel, home: &Path) -> SandboxSpec {
    let self_exe = PathBuf::from(env!("CARGO_BIN_EXE_kapi-sandbox-helper"));
    SandboxSpec::new(level, "test", home.to_path_buf(), self_exe)
}

/// Returns a shell line for it.
pub(crate) fn shell(line: &str) -> Program {
    Program {
        path: PathBuf::from("/bin/bash"),
        args: ["-c", line].map(Into::into).to_vec(),
        env: BTreeMap::from([("PATH".into(), "/usr/bin:/bin".into())]),
        cwd: PathBuf::from("/"),
        stdin: Vec::new(),
        pass_fds: Vec::new(),
        limits: ProcessLimits {
            deadline: Duration::from_secs(120),
            idle: None,
            tail_bytes_max: 1024,
            line_bytes_max: 1024,
        },
    }
}

/// Writes a file of a test.
#[expect(
    clippy::disallowed_methods,
    reason = "a test's own scratch file needs no durability"
)]
pub(crate) fn write(path: &Path, bytes: &[u8]) {
    fs::write(path, bytes).unwrap();
}

/// The longest that a condition is waited for, on a machine that does other things besides.
const PATIENCE: Duration = Duration::from_secs(60);

/// Waits until a condition holds.
pub(crate) fn await_condition(what: &str, condition: impl Fn() -> bool) {
    let began = Instant::now();
    while !condition() {
        assert!(began.elapsed() < PATIENCE, "never happened: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Counts the processes of the host whose command line holds a text.
pub(crate) fn count_processes(text: &str) -> usize {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let lines = entries.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    lines
        .filter(|line| {
            line.windows(text.len())
                .any(|window| window == text.as_bytes())
        })
        .count()
}
