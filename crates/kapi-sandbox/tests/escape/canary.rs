//! What an escape would touch: a secret, a process, listeners, shared memory, names and facts of the
//! host, and the project under a layer. Each says what happened to it.
//!
//! Knows nothing of attempts.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::os::unix::net::{SocketAddr, UnixListener};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use kapi_sys::process::ProcessEnd;
use rustix::process::{Signal, kill_process};

use crate::place::{Place, processes};

/// Where an attempt would leave what it calls planted.
const PLANTED_IN: &[&str] = &[
    "/",
    "/etc",
    "/usr",
    "/usr/bin",
    "/usr/local",
    "/usr/lib",
    "/opt",
    "/dev",
    "/dev/shm",
    "/tmp",
    "/var/tmp",
    "/run",
    "/home",
    "/sys",
    "/mnt",
];
/// Facts of the host that nobody changes while the suite runs.
const FACTS: &[&str] = &[
    "/proc/sys/kernel/hostname",
    "/proc/sys/kernel/domainname",
    "/proc/sys/kernel/core_pattern",
    "/proc/sys/kernel/modprobe",
    "/proc/sys/user/max_user_namespaces",
];
/// Makes shared memory and a message queue, or removes them.
const IPC: &str = "import ctypes, sys
libc, key, queue = ctypes.CDLL(None, use_errno=True), int(sys.argv[2]), sys.argv[3].encode()
if sys.argv[1] == 'make':
    assert libc.shmget(key, 64, 0o1666) >= 0 and libc.mq_open(queue, 0o102, 0o666, None) >= 0
else:
    libc.shmctl(libc.shmget(key, 64, 0), 0, None), libc.mq_unlink(queue)";

/// The things to watch.
pub(crate) struct Canaries<'a> {
    location: &'a Place,
    token: String,
    child: Child,
    tcp: Vec<TcpListener>,
    udp: UdpSocket,
    unix: Vec<UnixListener>,
    key: u32,
    mark: String,
    planted: String,
    before: BTreeMap<String, String>,
}

impl<'a> Canaries<'a> {
    /// Sets them up.
    pub(crate) fn new(location: &'a Place, number: u32) -> Self {
        let own = std::process::id();
        let token = format!("t0ken-{own}-{}-{number}", location.user());
        for name in [
            "secret",
            "secret/.ssh",
            "lower",
            "lower/src",
            "upper",
            "scratch",
            "lent",
        ] {
            location.directory(name);
        }
        location.file("secret/file", &token);
        location.file("secret/.ssh/authorized_keys", "the person's\n");
        location.file("lower/readme", "of the project\n");
        location.file("lower/src/main", "of the project too\n");
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = tcp.local_addr().unwrap().port();
        let tcp = vec![tcp, TcpListener::bind(("::1", port)).unwrap()];
        let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
        let name = format!("kapi-escape-{own}-{number}");
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let socket = location.path("lower/host.sock");
        fs::remove_file(&socket).ok();
        let by_path = UnixListener::bind(&socket).unwrap();
        location.give(&socket);
        let unix = vec![UnixListener::bind_addr(&address).unwrap(), by_path];
        for listener in &tcp {
            listener.set_nonblocking(true).unwrap();
        }
        for listener in &unix {
            listener.set_nonblocking(true).unwrap();
        }
        udp.set_nonblocking(true).unwrap();
        let mut canaries = Self {
            location,
            child: spawn(location, &token),
            token,
            tcp,
            udp,
            unix,
            key: 0x4B00_0000 | (own << 4) | (number & 15),
            mark: format!("9{}.{own}{number}", location.user() % 10_000),
            planted: format!("planted-{own}-{number}"),
            before: BTreeMap::new(),
        };
        canaries.ipc("make");
        canaries.before = canaries.portrait();
        canaries
    }

    fn ipc(&self, what: &str) {
        let words = ["-I", "-c", IPC, what, &self.key.to_string(), &self.queue()];
        let done = self.location.host("/usr/bin/python3", &words);
        // In a destructor that runs for a failed test, a second panic would hide the first.
        let is_fine = done.end == ProcessEnd::Exited(0) || std::thread::panicking();
        assert!(is_fine, "{}", done.stderr.text());
    }

    fn queue(&self) -> String {
        format!("/{}", self.planted)
    }

    /// Returns what an attempt is told, none of which is the secret.
    pub(crate) fn env(&self) -> Vec<(String, String)> {
        let port = self.tcp.first().unwrap().local_addr().unwrap().port();
        let udp_port = self.udp.local_addr().unwrap().port();
        let own = std::process::id();
        let number = self.planted.rsplit('-').next().unwrap();
        [
            ("HOST_SECRET", self.location.text("secret/file")),
            ("HOST_PID", self.child.id().to_string()),
            ("HOST_PORT", port.to_string()),
            ("HOST_UDP_PORT", udp_port.to_string()),
            ("HOST_ABSTRACT", format!("kapi-escape-{own}-{number}")),
            ("HOST_KEY", self.key.to_string()),
            ("HOST_QUEUE", self.queue()),
            ("MARK", self.mark.clone()),
            ("PLANTED", self.planted.clone()),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .to_vec()
    }

    /// Returns the text that nobody inside may ever read.
    pub(crate) fn token(&self) -> &str {
        &self.token
    }

    /// Tells what happened to them, and sets right what can be.
    pub(crate) fn trips(&mut self) -> Vec<String> {
        let mut trips = Vec::new();
        let after = self.portrait();
        for (name, fact) in &self.before {
            let now = after.get(name).map_or("gone", String::as_str);
            if now != fact {
                trips.push(format!("{name} was {fact} and is {now}"));
            }
        }
        let added = after.keys().filter(|name| !self.before.contains_key(*name));
        trips.extend(added.map(|name| format!("{name} was made")));
        if !trips.is_empty() {
            self.location.file("secret/file", &self.token);
            self.before = self.portrait();
        }
        trips.extend(self.connections());
        if let Some(why) = self.harm_to_child() {
            trips.push(why);
            self.bury();
            self.child = spawn(self.location, &self.token);
        }
        for location in PLANTED_IN {
            let path = Path::new(location).join(&self.planted);
            if fs::symlink_metadata(&path).is_ok() {
                trips.push(format!("{} was made on the host", path.display()));
                fs::remove_file(&path).ok();
            }
        }
        for pid in processes(&self.mark) {
            trips.push("a process is alive after the run".to_owned());
            // It can only be one of this run's: the mark is nobody else's.
            kill_process(pid, Signal::KILL).ok();
        }
        for name in ["work", "home", "upper"] {
            special_files(&self.location.path(name), name != "upper", &mut trips);
        }
        trips
    }

    fn connections(&self) -> Vec<String> {
        let mut trips = Vec::new();
        for listener in &self.tcp {
            while listener.accept().is_ok() {
                trips.push("a connection reached the host's loopback".to_owned());
            }
        }
        for listener in &self.unix {
            while listener.accept().is_ok() {
                trips.push("a connection reached a local socket of the host".to_owned());
            }
        }
        while self.udp.recv(&mut [0; 64]).is_ok() {
            trips.push("a datagram reached the host's loopback".to_owned());
        }
        trips
    }

    fn harm_to_child(&mut self) -> Option<String> {
        if let Some(status) = self.child.try_wait().unwrap() {
            return Some(format!("a process of the host ended: {status}"));
        }
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap();
        let state = stat
            .rsplit_once(") ")
            .and_then(|(_, rest)| rest.chars().next());
        (!matches!(state, Some('S' | 'R' | 'D')))
            .then(|| format!("a process of the host is in state {state:?}"))
    }

    fn bury(&mut self) {
        // It may have ended already.
        self.child.kill().ok();
        self.child.wait().unwrap();
    }

    /// Notes everything that an escape would change.
    fn portrait(&self) -> BTreeMap<String, String> {
        let mut known = BTreeMap::new();
        for fact in FACTS {
            let text = fs::read_to_string(fact).unwrap_or_default();
            known.insert((*fact).to_owned(), text.trim().to_owned());
        }
        // Others may make files in these; nobody changes whose they are and who may enter.
        for directory in PLANTED_IN {
            if let Ok(found) = fs::metadata(directory) {
                let fact = format!("{:o} {} {}", found.mode(), found.uid(), found.gid());
                known.insert(format!("the directory {directory}"), fact);
            }
        }
        for tree in ["secret", "lower"] {
            note(&self.location.path(tree), &mut known);
        }
        known
    }
}

impl Drop for Canaries<'_> {
    fn drop(&mut self) {
        self.bury();
        self.ipc("remove");
    }
}

/// Starts the process that must stay, as the place's user.
#[expect(
    clippy::disallowed_methods,
    reason = "it must outlive many runs and belong to nobody's group"
)]
fn spawn(location: &Place, token: &str) -> Child {
    let mut command = Command::new("/usr/bin/sleep");
    command.arg("100000").env_clear().env("TOKEN", token);
    command
        .stdin(Stdio::null())
        .current_dir("/")
        .process_group(0);
    if rustix::process::geteuid().as_raw() != location.user() {
        command.uid(location.user()).gid(location.user());
    }
    command.spawn().unwrap()
}

fn note(path: &Path, known: &mut BTreeMap<String, String>) {
    let found = fs::symlink_metadata(path).unwrap();
    let mut content = String::new();
    if found.is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            note(&entry.unwrap().path(), known);
        }
    } else if found.is_file() {
        fs::File::open(path)
            .unwrap()
            .read_to_string(&mut content)
            .unwrap();
    }
    let fact = format!(
        "{:o} {} {} {}.{} {} {content}",
        found.mode(),
        found.uid(),
        found.ino(),
        found.mtime(),
        found.mtime_nsec(),
        found.nlink(),
    );
    known.insert(path.display().to_string(), fact);
}

/// Names what no run may leave: programs that run as their owner, and devices.
fn special_files(tree: &Path, is_plain: bool, trips: &mut Vec<String>) {
    let mut left: Vec<PathBuf> = vec![tree.to_path_buf()];
    while let Some(path) = left.pop() {
        let Ok(found) = fs::symlink_metadata(&path) else {
            continue;
        };
        let kind = found.file_type();
        let is_whiteout = kind.is_char_device() && found.rdev() == 0;
        let is_device = kind.is_block_device() || kind.is_char_device();
        if is_device && (is_plain || !is_whiteout) {
            trips.push(format!("device {} was left", path.display()));
        }
        if kind.is_file() && found.mode() & 0o4000 != 0 {
            trips.push(format!("set-user-id file {} was left", path.display()));
        }
        if kind.is_dir() {
            let entries = fs::read_dir(&path).into_iter().flatten().flatten();
            left.extend(entries.map(|entry| entry.path()));
        }
    }
}
