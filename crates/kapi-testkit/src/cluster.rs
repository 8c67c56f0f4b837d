//! Real servers of the store that machines share: on loopback, on free ports, in a directory of
//! their own, killed at the end.
//!
//! Starts and kills; what is said to them is the tests' affair. The program comes with the system.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use std::{fs, thread};

use kapi_sys::cancel::Cancel;
use kapi_sys::process::{self, ProcessLimits, Program};

/// The program of a server.
const SERVER: &str = "nats-server";
/// Where it is looked for.
const DIRECTORIES: &str = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin";
/// The longest that a server lives.
const LIFE: Duration = Duration::from_secs(7_200);
/// How long servers may take to have what the others have, and how often they are asked.
const HEALTH_MAX: Duration = Duration::from_secs(240);
const HEALTH_PAUSE: Duration = Duration::from_millis(50);
/// Ports below those that the kernel gives to connections: a server that was killed finds its own
/// free again, however much else connects meanwhile.
const PORTS: std::ops::Range<u16> = 10_000..32_000;

/// Servers that know each other.
pub struct Cluster {
    nodes: Vec<ClusterNode>,
    dir: tempfile::TempDir,
}

struct ClusterNode {
    port: u16,
    /// Where it tells whether it is healthy.
    monitor: u16,
    config: PathBuf,
    process: Option<(Cancel, JoinHandle<io::Result<()>>)>,
}

impl Cluster {
    /// Starts so many servers that anybody may speak with, in a new directory below `above`.
    ///
    /// # Errors
    /// When a port, a file or the program cannot be had.
    pub fn start(n_nodes: usize, above: &Path) -> io::Result<Self> {
        Self::start_with(n_nodes, "", above)
    }

    /// Starts servers with more lines in the configuration of each.
    ///
    /// # Errors
    /// When a port, a file or the program cannot be had.
    pub fn start_with(n_nodes: usize, more: &str, above: &Path) -> io::Result<Self> {
        let dir = tempfile::Builder::new()
            .prefix("cluster-")
            .tempdir_in(above)?;
        let ports = free_ports(n_nodes * 3)?;
        let (own, more_ports) = ports.split_at(n_nodes);
        let (inner, monitors) = more_ports.split_at(n_nodes);
        let mut nodes = Vec::new();
        for (number, ((&port, &route), &monitor)) in own.iter().zip(inner).zip(monitors).enumerate()
        {
            let mut text = configuration(dir.path(), number, port, route, inner);
            text.extend([format!("http: \"127.0.0.1:{monitor}\"\n")]);
            text.push_str(more);
            let config = dir.path().join(format!("node{number}.conf"));
            fs::File::create(&config)?.write_all(text.as_bytes())?;
            nodes.push(ClusterNode {
                port,
                monitor,
                config,
                process: None,
            });
        }
        let mut cluster = Self { nodes, dir };
        for number in 0..n_nodes {
            cluster.restart(number)?;
        }
        Ok(cluster)
    }

    /// Starts a server that was killed.
    ///
    /// # Errors
    /// When the program is not there.
    pub fn restart(&mut self, number: usize) -> io::Result<()> {
        let Some(node) = self.nodes.get_mut(number) else {
            return Ok(());
        };
        let program = program(&node.config, self.dir.path())?;
        let cancel = Cancel::new();
        let raised = cancel.clone();
        let thread = thread::spawn(move || {
            let finished = process::run(program, &raised, &mut |_| {}).map_err(io::Error::other)?;
            if raised.is_raised() {
                return Ok(());
            }
            let (end, said) = (finished.end, finished.stderr.text());
            let text = format!("server {number} ended by itself ({end:?}): {said}");
            Err(io::Error::other(text))
        });
        node.process = Some((cancel, thread));
        Ok(())
    }

    /// Waits until every server has all that the others have: three bear the loss of one of them
    /// only then.
    ///
    /// # Errors
    /// When one of them does not say so in time.
    pub fn wait_until_healthy(&self) -> io::Result<()> {
        let deadline = Instant::now() + HEALTH_MAX;
        let is_healthy = |node: &ClusterNode| is_healthy(node.monitor).unwrap_or(false);
        while !self.nodes.iter().all(is_healthy) {
            if Instant::now() >= deadline {
                return Err(io::Error::from(io::ErrorKind::TimedOut));
            }
            thread::sleep(HEALTH_PAUSE);
        }
        Ok(())
    }

    /// Kills a server, as a power cut would.
    ///
    /// # Errors
    /// When it had ended by itself, with what it said.
    pub fn kill(&mut self, number: usize) -> io::Result<()> {
        let node = self.nodes.get_mut(number);
        let Some((cancel, thread)) = node.and_then(|node| node.process.take()) else {
            return Ok(());
        };
        cancel.raise();
        let joined = thread.join();
        joined.unwrap_or_else(|_| Err(io::Error::other("its thread panicked")))
    }

    /// Returns the ports of all servers.
    #[must_use]
    pub fn ports(&self) -> Vec<u16> {
        self.nodes.iter().map(|node| node.port).collect()
    }

    /// Returns where they are, as a person writes it.
    #[must_use]
    pub fn address(&self) -> String {
        let ports = self.ports().into_iter();
        let servers: Vec<String> = ports.map(|port| format!("127.0.0.1:{port}")).collect();
        format!("nats://{}", servers.join(","))
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for number in 0..self.nodes.len() {
            // Whoever needed it was told by the answers that did not come.
            drop(self.kill(number));
        }
    }
}

fn configuration(dir: &Path, number: usize, port: u16, route: u16, routes: &[u16]) -> String {
    let store = dir.join(format!("store{number}"));
    let mut text = format!(
        "server_name: n{number}\nhost: 127.0.0.1\nport: {port}\n\
         jetstream {{ store_dir: \"{}\", max_memory_store: 64MB, max_file_store: 4GB }}\n",
        store.display()
    );
    if routes.len() > 1 {
        let routes: Vec<String> = routes
            .iter()
            .map(|port| format!("\"nats://127.0.0.1:{port}\""))
            .collect();
        let routes = routes.join(", ");
        text.extend([format!(
            "cluster {{ name: c, host: 127.0.0.1, port: {route}, routes: [{routes}] }}\n"
        )]);
    }
    text
}

/// Asks a server whether all its streams are current.
fn is_healthy(monitor: u16) -> io::Result<bool> {
    let mut socket = TcpStream::connect((Ipv4Addr::LOCALHOST, monitor))?;
    socket.set_read_timeout(Some(HEALTH_MAX))?;
    socket.write_all(b"GET /healthz HTTP/1.0\r\n\r\n")?;
    let mut answer = String::new();
    socket.read_to_string(&mut answer)?;
    let status = answer.split(' ').nth(1);
    Ok(status == Some("200"))
}

/// Finds ports that nobody listens on, by listening on all of them for a moment.
fn free_ports(n: usize) -> io::Result<Vec<u16>> {
    let n_ports = u64::from(PORTS.end - PORTS.start);
    // Tests that run at once begin at different ports.
    let first = RandomState::new().hash_one(std::process::id());
    let mut held: Vec<(u16, TcpListener)> = Vec::new();
    for step in 0..n_ports {
        if held.len() == n {
            return Ok(held.into_iter().map(|(port, _)| port).collect());
        }
        let offset = first.wrapping_add(step) % n_ports;
        let port = PORTS.start + u16::try_from(offset).map_err(io::Error::other)?;
        if let Ok(listener) = TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
            held.push((port, listener));
        }
    }
    Err(io::Error::from(io::ErrorKind::AddrInUse))
}

fn program(config: &Path, cwd: &Path) -> io::Result<Program> {
    let path = process::find_in_path(OsStr::new(SERVER), OsStr::new(DIRECTORIES));
    let path = path.ok_or_else(|| {
        let text = format!("{SERVER} is not installed; the gate does it");
        io::Error::new(io::ErrorKind::NotFound, text)
    })?;
    Ok(Program {
        path,
        args: vec![OsString::from("-c"), config.into()],
        env: BTreeMap::new(),
        cwd: cwd.to_path_buf(),
        stdin: Vec::new(),
        pass_fds: Vec::new(),
        limits: ProcessLimits {
            deadline: LIFE,
            idle: None,
            tail_bytes_max: 16 * 1024,
            line_bytes_max: 1024,
        },
    })
}
