//! The place a suite works in: a user, directories, the helper where everybody can run it and, for
//! containers, storage and an image of its own. All of it is gone afterwards.
//!
//! The image is empty but for a few links: both levels get their programs from the host's `/usr`.

use std::collections::BTreeMap;
use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use kapi_sys::process::{
    FinishedProcess, ProcessEnd, ProcessLimits, Program, find_in_path, run_quiet,
};
use rustix::fs::{Gid, Uid, chown};
use rustix::process::{Pid, Signal, geteuid, kill_process};
use tempfile::TempDir;

use crate::request::{Reply, Request};

/// The image of the suites.
const IMAGE: &str = "localhost/kapi-suite:1";
/// Begins the names of the users that the suites make.
const USER_PREFIX: &str = "kapi-suite-";
/// `nobody`: an ordinary user that exists everywhere.
const NOBODY: u32 = 65534;
/// Where programs are looked for, on the host and inside.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// A level with walls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Level {
    /// Namespaces of our own making.
    Native,
    /// A container.
    Podman,
}

impl Level {
    /// Returns the name that requests and attempts use.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Podman => "podman",
        }
    }
}

/// Who starts the sandboxes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Who {
    /// Whoever runs the tests.
    Own,
    /// Somebody without privileges.
    Ordinary,
}

/// One user's place for one level.
pub(crate) struct Place {
    root: TempDir,
    pub level: Level,
    user: u32,
    group: u32,
    made_user: Option<String>,
}

impl Place {
    /// Makes the place, or nothing where the tests themselves are run by an ordinary user, whose own
    /// place is already the ordinary one.
    pub(crate) fn new(level: Level, who: Who) -> Option<Self> {
        let own = geteuid();
        let (user, group, made_user) = match (who, own.is_root(), level) {
            (Who::Own, _, _) => (own.as_raw(), rustix::process::getegid().as_raw(), None),
            (Who::Ordinary, false, _) => return None,
            (Who::Ordinary, true, Level::Native) => (NOBODY, NOBODY, None),
            (Who::Ordinary, true, Level::Podman) => make_user(),
        };
        let root = tempfile::Builder::new()
            .prefix("kapi-suite-")
            .tempdir_in("/tmp")
            .unwrap();
        fs::set_permissions(root.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let location = Self {
            root,
            level,
            user,
            group,
            made_user,
        };
        fs::copy(
            env!("CARGO_BIN_EXE_kapi-sandbox-suite-helper"),
            location.path("helper"),
        )
        .unwrap();
        fs::set_permissions(location.path("helper"), fs::Permissions::from_mode(0o755)).unwrap();
        for name in ["home", "work", "own"] {
            location.directory(name);
        }
        if level == Level::Podman {
            location.prepare_containers();
        }
        Some(location)
    }

    fn prepare_containers(&self) {
        need("podman", "podman");
        need("runc", "runc");
        for name in ["run", "storage", "storage-run"] {
            self.directory(name);
        }
        fs::set_permissions(self.path("run"), fs::Permissions::from_mode(0o700)).unwrap();
        let storage = self.text("storage");
        let conf = format!(
            "[storage]\ndriver = \"overlay\"\ngraphroot = \"{storage}\"\nrunroot = \"{}\"\nrootless_storage_path = \"{storage}\"\n",
            self.text("storage-run"),
        );
        self.file("storage.conf", &conf);
        let files = self.directory("image");
        for name in ["bin", "sbin", "lib", "lib64"] {
            std::os::unix::fs::symlink(format!("usr/{name}"), files.join(name)).unwrap();
        }
        fs::create_dir(files.join("usr")).unwrap();
        fs::create_dir(files.join("etc")).unwrap();
        write(&files.join("etc/passwd"), b"root:x:0:0::/:/bin/sh\n");
        let archive = self.file("image.tar", "").display().to_string();
        let from = files.display().to_string();
        let packed = self.host("tar", &["-C", &from, "-cf", &archive, "."]);
        assert_eq!(
            packed.end,
            ProcessEnd::Exited(0),
            "{}",
            packed.stderr.text()
        );
        let made = self.host("podman", &["import", "--quiet", &archive, IMAGE]);
        assert_eq!(
            made.end,
            ProcessEnd::Exited(0),
            "import: {}",
            made.stderr.text()
        );
    }

    /// Tells whether root starts the sandboxes.
    pub(crate) fn is_root(&self) -> bool {
        self.user == 0
    }

    /// Returns the user's number.
    pub(crate) fn user(&self) -> u32 {
        self.user
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

    /// Gives a path to the user.
    pub(crate) fn give(&self, path: &Path) {
        let (user, group) = (Uid::from_raw(self.user), Gid::from_raw(self.group));
        chown(path, Some(user), Some(group)).unwrap();
    }

    /// Returns a request for a shell line at this place's level, with the workspace at `/workspace`.
    pub(crate) fn shell(&self, line: &str) -> Request {
        let mut mounts = vec![(self.text("work"), "/workspace".to_owned(), "rw".to_owned())];
        if self.level == Level::Podman {
            mounts.push(("/usr".to_owned(), "/usr".to_owned(), "ro".to_owned()));
        }
        Request {
            level: self.level.name().to_owned(),
            image: IMAGE.to_owned(),
            name: self.root.path().file_name().unwrap().display().to_string(),
            hostname: "kapi-suite".to_owned(),
            mounts,
            home: self.text("home"),
            argv: ["/bin/bash", "-c", line].map(str::to_owned).to_vec(),
            env: vec![
                ("HOME".to_owned(), "/home/agent".to_owned()),
                ("PATH".to_owned(), "/usr/bin:/bin:/usr/sbin".to_owned()),
            ],
            cwd: "/workspace".to_owned(),
            deadline_ms: 120_000,
            ..Request::default()
        }
    }

    /// Returns the program that performs a request as this place's user, below another program, which
    /// must end with executing its arguments.
    pub(crate) fn driver(&self, wrapper: &[&str], request: &Request) -> Program {
        let helper = self.text("helper");
        let words: Vec<&str> = wrapper.iter().copied().chain([&*helper, "run"]).collect();
        let mut program = self.program(&words);
        program.stdin = serde_json::to_vec(request).unwrap();
        program
    }

    /// Runs a program of the host as this place's user.
    pub(crate) fn host(&self, name: &str, args: &[&str]) -> FinishedProcess {
        let words: Vec<&str> = std::iter::once(name).chain(args.iter().copied()).collect();
        run_quiet(self.program(&words)).unwrap()
    }

    /// Returns a program of the host, to be run as this place's user.
    pub(crate) fn program(&self, words: &[&str]) -> Program {
        let (user, group) = (self.user.to_string(), self.group.to_string());
        let mut all: Vec<&str> = Vec::new();
        if geteuid().as_raw() != self.user {
            all.extend(["setpriv", "--reuid", &user, "--regid", &group]);
            all.push("--clear-groups");
        }
        all.extend(words);
        let (first, rest) = all.split_first().unwrap();
        let path = find_in_path(first.as_ref(), PATH.as_ref());
        let variables = [
            ("PATH", PATH.to_owned()),
            ("HOME", self.text("own")),
            ("XDG_RUNTIME_DIR", self.text("run")),
            ("CONTAINERS_STORAGE_CONF", self.text("storage.conf")),
        ];
        Program {
            path: path.unwrap_or_else(|| PathBuf::from(first)),
            args: rest.iter().map(Into::into).collect(),
            env: variables
                .into_iter()
                .map(|(name, value)| (name.into(), value.into()))
                .collect::<BTreeMap<_, _>>(),
            cwd: PathBuf::from("/"),
            stdin: Vec::new(),
            pass_fds: Vec::<OwnedFd>::new(),
            limits: ProcessLimits {
                deadline: Duration::from_secs(200),
                idle: None,
                tail_bytes_max: 8 * 1024 * 1024,
                line_bytes_max: 1024,
            },
        }
    }

    /// Lists what podman and we still keep: containers, volumes, rooms.
    pub(crate) fn remains(&self) -> String {
        if self.level == Level::Native {
            return String::new();
        }
        let containers = self.host("podman", &["ps", "--all", "--quiet"]);
        let volumes = self.host("podman", &["volume", "ls", "--quiet"]);
        let rooms = fs::read_dir(self.path("run/kapi-containers"));
        let rooms = rooms.into_iter().flatten().flatten();
        let rooms: Vec<String> = rooms
            .map(|entry| entry.file_name().display().to_string())
            .collect();
        let (containers, volumes) = (containers.stdout.text(), volumes.stdout.text());
        format!("{containers}{volumes}{}", rooms.join(" "))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if self.level == Level::Native {
            return;
        }
        // Rootless podman keeps one process of the user's to hold its namespace.
        let pause = fs::read_to_string(self.path("run/libpod/tmp/pause.pid")).unwrap_or_default();
        if let Some(pid) = pause.trim().parse().ok().and_then(Pid::from_raw) {
            kill_process(pid, Signal::KILL).ok();
            wait_until_gone(pid);
        }
        if geteuid().is_root() {
            // Podman leaves its storage mounted on itself.
            as_root(&["umount", "--lazy", &self.text("storage/overlay")]);
        } else {
            // Without root, only the user's own namespace may remove what others in it own.
            self.host("podman", &["unshare", "rm", "-rf", &self.text("storage")]);
        }
        if let Some(name) = &self.made_user {
            let lock = format!("/dev/shm/libpod_rootless_lock_{}", self.user);
            fs::remove_file(lock).ok();
            remove_user(name);
        }
    }
}

/// Reads what the helper answered.
pub(crate) fn read_reply(finished: &FinishedProcess) -> Reply {
    serde_json::from_slice(&finished.stdout.tail)
        .unwrap_or_else(|error| panic!("{error}: {finished:?}"))
}

/// Makes an ordinary user with subordinate ids.
fn make_user() -> (u32, u32, Option<String>) {
    need("useradd", "passwd");
    need("newuidmap", "uidmap");
    remove_stale_users();
    let name = format!("{USER_PREFIX}{}", std::process::id());
    let arguments = ["--no-create-home", "--home-dir", "/nonexistent"];
    let words: Vec<&str> = std::iter::once("useradd")
        .chain(arguments)
        .chain([&*name])
        .collect();
    let made = as_root(&words);
    assert_eq!(made.end, ProcessEnd::Exited(0), "{}", made.stderr.text());
    assert!(
        entry("/etc/subuid", &name).is_some(),
        "useradd gives no subordinate ids here"
    );
    let line = entry("/etc/passwd", &name).unwrap();
    let number = |index: usize| line.split(':').nth(index).unwrap().parse::<u32>().unwrap();
    (number(2), number(3), Some(name))
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
    as_root(&["userdel", "--force", name]);
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
        "{program} is missing: apt-get install podman runc uidmap passwd ({package})"
    );
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

fn as_root(words: &[&str]) -> FinishedProcess {
    let (name, args) = words.split_first().unwrap();
    let path = find_in_path(name.as_ref(), PATH.as_ref());
    run_quiet(Program {
        path: path.unwrap_or_else(|| panic!("{name} is missing")),
        args: args.iter().map(Into::into).collect(),
        env: BTreeMap::from([("PATH".into(), PATH.into())]),
        cwd: PathBuf::from("/"),
        stdin: Vec::new(),
        pass_fds: Vec::new(),
        limits: ProcessLimits {
            deadline: Duration::from_secs(60),
            idle: None,
            tail_bytes_max: 64 * 1024,
            line_bytes_max: 1024,
        },
    })
    .unwrap()
}

/// Writes a file of a test.
#[expect(
    clippy::disallowed_methods,
    reason = "a test's own scratch file needs no durability"
)]
pub(crate) fn write(path: &Path, bytes: &[u8]) {
    fs::write(path, bytes).unwrap();
}

/// Lists the processes of the host whose command line holds a text.
pub(crate) fn processes(text: &str) -> Vec<Pid> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let holds = |entry: &fs::DirEntry| {
        let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        line.windows(text.len())
            .any(|window| window == text.as_bytes())
    };
    let found = entries.filter(holds);
    found
        .filter_map(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?))
        .collect()
}
