//! The place a container test works in: a user, storage and an image of its own, all gone afterwards.
//!
//! Asks for root to make the ordinary user; without root it works as whoever runs the tests.

use std::collections::BTreeMap;
use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use kapi_sys::process::{
    FinishedProcess, ProcessEnd, ProcessLimits, Program, find_in_path, run_quiet,
};
use rustix::fs::{Gid, Uid, chown};
use rustix::process::{Pid, Signal, geteuid, kill_process};
use tempfile::TempDir;

use super::ask::{Ask, Told};
use crate::workplace::write;

/// The image of the tests.
pub(crate) const IMAGE: &str = "localhost/kapi-it:1";
/// How a test's payload starts the helper, which an image knows nothing of.
pub(crate) const HELPER: &str = "/run/.kapi/loader --library-path /run/.kapi/lib /run/.kapi/kapi";
/// Begins the names of the users that the tests make.
const USER_PREFIX: &str = "kapi-it-";
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// What the image's shell can call.
const TOOLS: &[&str] = &[
    "cat", "chmod", "cut", "dd", "echo", "env", "false", "grep", "head", "hostname", "id", "kill",
    "ln", "ls", "mkdir", "mv", "nc", "pgrep", "printf", "ps", "readlink", "rm", "seq", "setsid",
    "sh", "sleep", "sort", "stat", "stty", "tail", "test", "touch", "tr", "true", "umount", "wc",
    "yes",
];

/// One user's place.
pub(crate) struct Yard {
    root: TempDir,
    user: Uid,
    group: Gid,
    made_user: Option<String>,
}

/// Runs a check as the user who runs the tests and, if that is root, as an ordinary user too.
pub(crate) fn as_each_user(check: impl Fn(&Yard)) {
    check(&Yard::own());
    if geteuid().is_root() {
        check(&Yard::ordinary());
    }
}

impl Yard {
    fn own() -> Self {
        Self::new(geteuid(), rustix::process::getegid(), None)
    }

    /// Makes an ordinary user with subordinate ids; needs root.
    pub(crate) fn ordinary() -> Self {
        need("useradd", "passwd");
        need("newuidmap", "uidmap");
        remove_stale_users();
        let name = format!("{USER_PREFIX}{}", std::process::id());
        let made = tool(
            "useradd",
            &["--no-create-home", "--home-dir", "/nonexistent", &name],
        );
        assert_eq!(
            made.end,
            ProcessEnd::Exited(0),
            "make user {name}: {}",
            made.stderr.text()
        );
        let line = entry("/etc/passwd", &name).unwrap();
        let number = |index: usize| line.split(':').nth(index).unwrap().parse::<u32>().unwrap();
        assert!(
            entry("/etc/subuid", &name).is_some(),
            "useradd gives no subordinate ids here"
        );
        Self::new(
            Uid::from_raw(number(2)),
            Gid::from_raw(number(3)),
            Some(name),
        )
    }

    fn new(user: Uid, group: Gid, made_user: Option<String>) -> Self {
        need("podman", "podman");
        need("runc", "runc");
        need("busybox", "busybox-static");
        let root = tempfile::Builder::new()
            .prefix("kapi-podman-it-")
            .tempdir_in("/tmp")
            .unwrap();
        fs::set_permissions(root.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let yard = Self {
            root,
            user,
            group,
            made_user,
        };
        for name in ["home", "work", "own", "run", "storage", "storage-run"] {
            yard.directory(name);
        }
        fs::set_permissions(yard.path("run"), fs::Permissions::from_mode(0o700)).unwrap();
        let conf = format!(
            "[storage]\ndriver = \"overlay\"\ngraphroot = \"{}\"\nrunroot = \"{}\"\nrootless_storage_path = \"{}\"\n",
            yard.text("storage"),
            yard.text("storage-run"),
            yard.text("storage"),
        );
        yard.file("storage.conf", &conf);
        fs::copy(
            env!("CARGO_BIN_EXE_kapi-sandbox-podman-helper"),
            yard.path("helper"),
        )
        .unwrap();
        yard.import();
        yard
    }

    /// Makes the image from the static busybox of this machine.
    fn import(&self) {
        let files = self.directory("image");
        fs::create_dir(files.join("bin")).unwrap();
        fs::create_dir(files.join("etc")).unwrap();
        let busybox = find_in_path("busybox".as_ref(), PATH.as_ref()).unwrap();
        fs::copy(busybox, files.join("bin/busybox")).unwrap();
        for tool in TOOLS {
            std::os::unix::fs::symlink("busybox", files.join("bin").join(tool)).unwrap();
        }
        write(&files.join("etc/passwd"), b"root:x:0:0::/:/bin/sh\n");
        let archive = self.text("image.tar");
        let packed = tool(
            "tar",
            &["-C", &files.display().to_string(), "-cf", &archive, "."],
        );
        assert_eq!(
            packed.end,
            ProcessEnd::Exited(0),
            "{}",
            packed.stderr.text()
        );
        let done = self.podman(&["import", "--quiet", &archive, IMAGE]);
        assert_eq!(
            done.end,
            ProcessEnd::Exited(0),
            "import the image: {}",
            done.stderr.text()
        );
    }

    /// Tells whether root works here, whose container has no user namespace.
    pub(crate) fn is_root(&self) -> bool {
        self.user.is_root()
    }

    /// Returns the user's number.
    pub(crate) fn user(&self) -> u32 {
        self.user.as_raw()
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
        chown(&path, Some(self.user), Some(self.group)).unwrap();
        path
    }

    /// Makes a file that belongs to the user.
    pub(crate) fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        write(&path, text.as_bytes());
        chown(&path, Some(self.user), Some(self.group)).unwrap();
        path
    }

    /// Returns a request for a shell line with the workspace at `/workspace`.
    pub(crate) fn shell(&self, line: &str) -> Ask {
        Ask {
            image: IMAGE.to_owned(),
            name: format!("it-{}", self.root.path().file_name().unwrap().display()),
            hostname: "kapi-test".to_owned(),
            network: "loopback".to_owned(),
            mounts: vec![(self.text("work"), "/workspace".to_owned(), "rw".to_owned())],
            home: self.text("home"),
            argv: ["/bin/sh", "-c", line].map(str::to_owned).to_vec(),
            env: vec![
                ("HOME".to_owned(), "/home/agent".to_owned()),
                ("PATH".to_owned(), "/bin".to_owned()),
            ],
            cwd: "/workspace".to_owned(),
            deadline_ms: 60_000,
            ..Ask::default()
        }
    }

    /// Performs a request as this place's user.
    pub(crate) fn run(&self, ask: &Ask) -> Told {
        let finished = run_quiet(self.driver(ask)).unwrap();
        serde_json::from_slice(&finished.stdout.tail)
            .unwrap_or_else(|error| panic!("{error}: {finished:?}"))
    }

    /// Checks the output of a shell line; its errors come with it.
    pub(crate) fn check(&self, line: &str, expected: &str) {
        let reported = self.run(&self.shell(&format!("exec 2>&1; {line}")));
        assert_eq!(reported.stdout.trim_end(), expected, "{line}: {reported:?}");
    }

    /// Returns the program that performs a request, as this place's user.
    pub(crate) fn driver(&self, ask: &Ask) -> Program {
        let mut program = self.program(&self.text("helper"), &["run"]);
        program.stdin = serde_json::to_vec(ask).unwrap();
        program
    }

    /// Returns the same for a program at a terminal, which is to be the driver's own.
    pub(crate) fn driver_at(&self, ask: &Ask, terminal: OwnedFd) -> Program {
        let line = "exec setsid --ctty --wait \"$0\" interact <&3 >&3 2>&3";
        let mut program = self.program("/bin/sh", &["-c", line, &self.text("helper")]);
        let ask = serde_json::to_string(ask).unwrap();
        program.env.insert("KAPI_TEST_ASK".into(), ask.into());
        program.pass_fds = vec![terminal];
        program
    }

    /// Clears what dead host sides left, and returns what the helper says of it.
    pub(crate) fn sweep(&self) -> String {
        self.notify("sweep")
    }

    /// Returns what the helper answers to a word.
    pub(crate) fn notify(&self, word: &str) -> String {
        let program = self.program(&self.text("helper"), &[word]);
        run_quiet(program).unwrap().stdout.text()
    }

    /// Runs podman as this place's user.
    pub(crate) fn podman(&self, args: &[&str]) -> FinishedProcess {
        run_quiet(self.program("/usr/bin/podman", args)).unwrap()
    }

    /// Lists what podman and we still keep: containers, volumes, rooms.
    pub(crate) fn remains(&self) -> String {
        let containers = self.podman(&["ps", "--all", "--quiet"]).stdout.text();
        let volumes = self.podman(&["volume", "ls", "--quiet"]).stdout.text();
        let rooms = fs::read_dir(self.path("run/kapi-containers"));
        let rooms = rooms
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.file_name());
        let rooms: Vec<String> = rooms.map(|name| name.display().to_string()).collect();
        format!("{containers}{volumes}{}", rooms.join(" "))
    }

    fn program(&self, program: &str, args: &[&str]) -> Program {
        let (user, group) = (
            self.user.as_raw().to_string(),
            self.group.as_raw().to_string(),
        );
        let mut words: Vec<String> = Vec::new();
        if geteuid() != self.user {
            let change = [
                "setpriv",
                "--reuid",
                &user,
                "--regid",
                &group,
                "--clear-groups",
            ];
            words.extend(change.map(str::to_owned));
        }
        words.push(program.to_owned());
        words.extend(args.iter().map(|word| (*word).to_owned()));
        let (first, rest) = words.split_first().unwrap();
        let path = find_in_path(first.as_ref(), PATH.as_ref());
        let variables = [
            ("PATH", PATH.to_owned()),
            ("HOME", self.text("own")),
            ("XDG_RUNTIME_DIR", self.text("run")),
            ("CONTAINERS_STORAGE_CONF", self.text("storage.conf")),
            ("HOST_SECRET", "planted-in-the-host-environment".to_owned()),
        ];
        Program {
            path: path.unwrap_or_else(|| PathBuf::from(first)),
            args: rest.iter().map(Into::into).collect(),
            env: variables
                .into_iter()
                .map(|(name, value)| (name.into(), value.into()))
                .collect(),
            cwd: PathBuf::from("/"),
            stdin: Vec::new(),
            pass_fds: Vec::new(),
            limits: limits(),
        }
    }
}

impl Drop for Yard {
    fn drop(&mut self) {
        // Rootless podman keeps one process of the user's to hold its namespace.
        let pause = fs::read_to_string(self.path("run/libpod/tmp/pause.pid")).unwrap_or_default();
        if let Some(pid) = pause.trim().parse().ok().and_then(Pid::from_raw) {
            kill_process(pid, Signal::KILL).ok();
            wait_until_gone(pid);
        }
        // Podman leaves its storage mounted on itself.
        tool_if_root("umount", &["--lazy", &self.text("storage/overlay")]);
        if let Some(name) = &self.made_user {
            fs::remove_file(format!(
                "/dev/shm/libpod_rootless_lock_{}",
                self.user.as_raw()
            ))
            .ok();
            remove_user(name);
        } else if !self.is_root() {
            // Without root, only the user's own namespace may remove what others in it own.
            self.podman(&["unshare", "rm", "-rf", &self.text("storage")]);
        }
    }
}

fn wait_until_gone(pid: Pid) {
    let path = format!("/proc/{}", pid.as_raw_nonzero());
    for _ in 0..400 {
        if fs::metadata(&path).is_err() {
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Removes the users of tests that were killed before they could do so.
fn remove_stale_users() {
    let text = fs::read_to_string("/etc/passwd").unwrap();
    let names = text.lines().filter_map(|line| line.split(':').next());
    for name in names.filter(|name| name.starts_with(USER_PREFIX)) {
        let pid = name.trim_start_matches(USER_PREFIX);
        let is_alive = Path::new("/proc").join(pid).exists();
        if pid.parse::<u32>().is_ok() && !is_alive {
            remove_user(name);
        }
    }
}

fn remove_user(name: &str) {
    tool("userdel", &["--force", name]);
    // In a destructor that runs for a failed test, a second panic would hide the first.
    let is_left = entry("/etc/passwd", name).is_some();
    assert!(!is_left || std::thread::panicking(), "remove user {name}");
}

fn entry(file: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(file).ok()?;
    let mut lines = text.lines();
    lines
        .find(|line| line.split(':').next() == Some(name))
        .map(str::to_owned)
}

fn need(program: &str, package: &str) {
    let found = find_in_path(program.as_ref(), PATH.as_ref());
    assert!(
        found.is_some(),
        "{program} is missing: apt-get install podman runc uidmap busybox-static passwd ({package})"
    );
}

fn tool_if_root(name: &str, args: &[&str]) {
    if geteuid().is_root() {
        tool(name, args);
    }
}

/// Runs a program of this machine as whoever runs the tests.
pub(crate) fn tool(name: &str, args: &[&str]) -> FinishedProcess {
    let path = find_in_path(name.as_ref(), PATH.as_ref());
    let path = path.unwrap_or_else(|| panic!("{name} is missing"));
    run_quiet(Program {
        path,
        args: args.iter().map(Into::into).collect(),
        env: BTreeMap::from([("PATH".into(), PATH.into())]),
        cwd: PathBuf::from("/"),
        stdin: Vec::new(),
        pass_fds: Vec::new(),
        limits: limits(),
    })
    .unwrap()
}

fn limits() -> ProcessLimits {
    ProcessLimits {
        deadline: Duration::from_secs(120),
        idle: None,
        tail_bytes_max: 8 * 1024 * 1024,
        line_bytes_max: 1024,
    }
}

/// Returns who owns a file.
pub(crate) fn owner(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().uid()
}
