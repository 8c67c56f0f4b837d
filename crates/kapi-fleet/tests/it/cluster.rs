//! Real servers on loopback, on free ports, in a temporary directory, killed at the end.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::Write as _;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use std::time::Duration;

use kapi_fleet::address::Address;
use kapi_fleet::client::FleetSettings;
use kapi_sys::cancel::Cancel;
use kapi_sys::process::{self, ProcessLimits, Program};

/// Servers that know each other.
pub(crate) struct Cluster {
    nodes: Vec<Node>,
    dir: tempfile::TempDir,
}

struct Node {
    port: u16,
    config: PathBuf,
    process: Option<(Cancel, JoinHandle<String>)>,
}

impl Cluster {
    /// Starts one server that anybody may speak with.
    pub(crate) fn one() -> Self {
        Self::with(1, "")
    }

    /// Starts three servers that anybody may speak with.
    pub(crate) fn three() -> Self {
        Self::with(3, "")
    }

    /// Starts servers with more in their configuration.
    pub(crate) fn with(n_nodes: usize, more: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let ports = free_ports(n_nodes * 2);
        let routes: Vec<String> = (0..n_nodes)
            .map(|number| format!("\"nats://127.0.0.1:{}\"", ports[n_nodes + number]))
            .collect();
        let mut nodes = Vec::new();
        for number in 0..n_nodes {
            let store = dir.path().join(format!("store{number}"));
            let mut text = format!(
                "server_name: n{number}\nhost: 127.0.0.1\nport: {}\n\
                 jetstream {{ store_dir: \"{}\", max_memory_store: 64MB, max_file_store: 4GB }}\n",
                ports[number],
                store.display()
            );
            if n_nodes > 1 {
                let routes = routes.join(", ");
                let port = ports[n_nodes + number];
                text.extend([format!(
                    "cluster {{ name: c, host: 127.0.0.1, port: {port}, routes: [{routes}] }}\n"
                )]);
            }
            text.push_str(more);
            let config = dir.path().join(format!("node{number}.conf"));
            fs::File::create(&config)
                .unwrap()
                .write_all(text.as_bytes())
                .unwrap();
            nodes.push(Node {
                port: ports[number],
                config,
                process: None,
            });
        }
        let mut cluster = Self { nodes, dir };
        for number in 0..n_nodes {
            cluster.start(number);
        }
        cluster
    }

    /// Starts a server, or starts it again.
    pub(crate) fn start(&mut self, number: usize) {
        let cancel = Cancel::new();
        let program = program(&self.nodes[number].config, self.dir.path());
        let raised = cancel.clone();
        let thread = std::thread::spawn(move || {
            let finished = process::run(program, &raised, &mut |_| {}).unwrap();
            format!("{:?}: {}", finished.end, finished.stderr.text())
        });
        self.nodes[number].process = Some((cancel, thread));
    }

    /// Kills a server, as a power cut would.
    pub(crate) fn kill(&mut self, number: usize) {
        if let Some((cancel, thread)) = self.nodes[number].process.take() {
            cancel.raise();
            let said = thread.join().unwrap();
            assert!(
                said.starts_with("Cancelled"),
                "it had ended by itself: {said}"
            );
        }
    }

    /// Returns the ports of all servers.
    pub(crate) fn ports(&self) -> Vec<u16> {
        self.nodes.iter().map(|node| node.port).collect()
    }

    /// Returns how to speak with all of them.
    pub(crate) fn settings(&self) -> FleetSettings {
        settings(&self.ports())
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for node in &mut self.nodes {
            if let Some((cancel, thread)) = node.process.take() {
                cancel.raise();
                drop(thread.join());
            }
        }
    }
}

/// Returns how to speak with the servers at these ports.
pub(crate) fn settings(ports: &[u16]) -> FleetSettings {
    let servers: Vec<String> = ports
        .iter()
        .map(|port| format!("127.0.0.1:{port}"))
        .collect();
    FleetSettings {
        address: Address::parse(&format!("nats://{}", servers.join(","))).unwrap(),
        authorities: None,
        replicas: if ports.len() >= 3 { 3 } else { 1 },
        // A cluster that begins, on a machine with other work, takes its time.
        patience: Duration::from_secs(60),
    }
}

fn free_ports(n: usize) -> Vec<u16> {
    let held: Vec<TcpListener> = (0..n)
        .map(|_| TcpListener::bind("127.0.0.1:0").unwrap())
        .collect();
    held.iter()
        .map(|listener| listener.local_addr().unwrap().port())
        .collect()
}

fn program(config: &Path, cwd: &Path) -> Program {
    let path = process::find_in_path(
        OsStr::new("nats-server"),
        OsStr::new("/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"),
    );
    Program {
        path: path.expect("nats-server is installed; the gate does it"),
        args: vec![OsString::from("-c"), config.into()],
        env: BTreeMap::new(),
        cwd: cwd.to_path_buf(),
        stdin: Vec::new(),
        pass_fds: Vec::new(),
        limits: ProcessLimits {
            deadline: Duration::from_secs(600),
            idle: None,
            tail_bytes_max: 16 * 1024,
            line_bytes_max: 1024,
        },
    }
}
