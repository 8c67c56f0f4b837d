//! The servers of a test, and how to speak with them.

use std::time::Duration;

use kapi_fleet::address::Address;
use kapi_fleet::client::FleetSettings;
use kapi_testkit::cluster;

/// Servers that know each other.
pub(crate) struct Cluster {
    servers: cluster::Cluster,
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
        let above = std::env::temp_dir();
        let servers = cluster::Cluster::start_with(n_nodes, more, &above).unwrap();
        Self { servers }
    }

    /// Starts a server again.
    pub(crate) fn start(&mut self, number: usize) {
        self.servers.restart(number).unwrap();
    }

    /// Waits until another server may be lost.
    pub(crate) fn wait_until_healthy(&self) {
        self.servers.wait_until_healthy().unwrap();
    }

    /// Kills a server, as a power cut would.
    pub(crate) fn kill(&mut self, number: usize) {
        self.servers.kill(number).unwrap();
    }

    /// Returns the ports of all servers.
    pub(crate) fn ports(&self) -> Vec<u16> {
        self.servers.ports()
    }

    /// Returns how to speak with all of them.
    pub(crate) fn settings(&self) -> FleetSettings {
        settings(&self.ports())
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
