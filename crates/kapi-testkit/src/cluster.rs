//! Real servers of the store that machines share: on loopback, on free ports, in a directory of
//! their own, killed at the end.
//!
//! Starts and kills; what is said to them is the tests' affair. The program comes with the system.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::{self, Write as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use std::time::Duration;
use std::{fs, thread};

use kapi_sys::cancel::Cancel;
use kapi_sys::process::{self, ProcessLimits, Program};

/// The program of a server.
const SERVER: &str = "nats-server";
/// Where it is looked for.
const DIRECTORIES: &str = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin";
/// The longest that a server lives.
const LIFE: Duration = Duration::from_secs(7_200);

/// Servers that know each other.
pub struct Cluster {
    nodes: Vec<ClusterNode>,
    dir: tempfile::TempDir,
}

struct ClusterNode {
    port: u16,
    config: PathBuf,
    process: Option<(Cancel, JoinHandle<()>)>,
}

impl Cluster {
    /// Starts so many servers that anybody may speak with, in a new directory below `above`.
    ///
    /// # Errors
    /// When a port, a file or the program cannot be had.
    pub fn start(n_nodes: usize, above: &Path) -> io::Result<Self> {
        let dir = tempfile::Builder::new()
            .prefix("cluster-")
            .tempdir_in(above)?;
        let ports = free_ports(n_nodes * 2)?;
        let (own, inner) = ports.split_at(n_nodes);
        let mut nodes = Vec::new();
        for (number, (&port, &route)) in own.iter().zip(inner).enumerate() {
            let text = configuration(dir.path(), number, port, route, inner);
            let config = dir.path().join(format!("node{number}.conf"));
            fs::File::create(&config)?.write_all(text.as_bytes())?;
            nodes.push(ClusterNode {
                port,
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
        // Whoever speaks with a server that could not start is told by that.
        let thread = thread::spawn(move || drop(process::run(program, &raised, &mut |_| {})));
        node.process = Some((cancel, thread));
        Ok(())
    }

    /// Kills a server, as a power cut would.
    pub fn kill(&mut self, number: usize) {
        let node = self.nodes.get_mut(number);
        if let Some((cancel, thread)) = node.and_then(|node| node.process.take()) {
            cancel.raise();
            // It ends either way.
            drop(thread.join());
        }
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
            self.kill(number);
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

fn free_ports(n: usize) -> io::Result<Vec<u16>> {
    let held: io::Result<Vec<TcpListener>> =
        (0..n).map(|_| TcpListener::bind("127.0.0.1:0")).collect();
    let held = held?;
    let ports = held.iter().map(TcpListener::local_addr);
    ports.map(|address| Ok(address?.port())).collect()
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
