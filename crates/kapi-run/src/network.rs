//! The network access of a run: the ways out of its sandbox, all of them served on this side.
//!
//! Inside, there is only loopback. What listens there was handed out to us: the model's gateway, the
//! proxy that decides about connections, and the person's forwarded ports. On the host's own network
//! nothing can be refused, so only the gateway is there.

pub mod refused_connection;
pub mod serve;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io::Read as _;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};

use kapi_agent::launch::upstream::{AgentUpstream, GatewayAddress};
use kapi_core::failure::Failure;
use kapi_core::isolation::{NetworkMode, SandboxLevel};
use kapi_gateway::egress::host_proxy::HostProxy;
use kapi_gateway::egress::policy::{EgressMode, EgressPolicy};
use kapi_gateway::egress::rule::EgressRule;
use kapi_gateway::model::cassette::Cassette;
use kapi_sandbox::spec::NetworkIsolation;

use crate::failure;
use crate::grant::{Cassettes, GATEWAY_PORT, Grant, PROXY_PORT};

/// Random bytes of a placeholder.
const PLACEHOLDER_BYTES: usize = 16;
/// Bytes of one recording.
const CASSETTE_BYTES_MAX: u64 = 256 << 20;
/// What is reached without a proxy.
const NOT_PROXIED: &str = "localhost,127.0.0.1,::1";

/// The ways out of one sandbox.
#[derive(Debug)]
pub struct NetworkAccess {
    /// What stands for the key inside.
    placeholder: String,
    /// The gateway's address, as the agent sees it.
    gateway_url: String,
    /// What is asked for the model, once an agent is known.
    pub upstream: Option<AgentUpstream>,
    /// Whether the model's traffic is recorded or replayed.
    pub(crate) cassette: Option<Cassette>,
    /// What the proxy lets through; `None` where there is no proxy.
    pub(crate) policy: Option<EgressPolicy>,
    /// The proxies that this host needs.
    pub(crate) host_proxy: Option<HostProxy>,
    /// What listens inside, in the order of the addresses.
    inside: Vec<(SocketAddr, NetworkEndpoint)>,
    /// The gateway's listener, where the network is the host's.
    on_host: Option<TcpListener>,
    network: NetworkIsolation,
}

/// What answers at an address inside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NetworkEndpoint {
    /// The model's gateway.
    Model,
    /// The proxy.
    Proxy,
    /// A port of the host's loopback.
    Forward(u16),
}

impl NetworkAccess {
    /// Plans the network access of a run; nothing is served yet.
    pub fn new(level: SandboxLevel, mode: NetworkMode, grant: &Grant) -> Result<Self, Failure> {
        let is_shared = level == SandboxLevel::None || mode == NetworkMode::Open;
        let mut access = Self {
            placeholder: placeholder()?,
            gateway_url: format!("http://127.0.0.1:{GATEWAY_PORT}"),
            upstream: None,
            cassette: None,
            policy: None,
            host_proxy: grant.host_proxy.clone(),
            inside: Vec::new(),
            on_host: None,
            network: if is_shared {
                NetworkIsolation::Host
            } else {
                NetworkIsolation::Loopback
            },
        };
        if is_shared {
            let failed = |error: std::io::Error| Failure {
                message: format!("listen on the loopback for the model's gateway: {error}"),
                hint: None,
            };
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(failed)?;
            access.gateway_url = format!("http://{}", listener.local_addr().map_err(failed)?);
            access.on_host = Some(listener);
            return Ok(access);
        }
        access.listen(GATEWAY_PORT, NetworkEndpoint::Model);
        if mode == NetworkMode::Filtered {
            access.listen(PROXY_PORT, NetworkEndpoint::Proxy);
            access.policy = Some(EgressPolicy {
                mode: EgressMode::Filtered,
                rules: grant.allow.clone(),
            });
            for port in &grant.forward {
                access.listen(*port, NetworkEndpoint::Forward(*port));
                let also = SocketAddr::from((Ipv6Addr::LOCALHOST, *port));
                access.inside.push((also, NetworkEndpoint::Forward(*port)));
            }
        }
        Ok(access)
    }

    fn listen(&mut self, port: u16, socket: NetworkEndpoint) {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        self.inside.push((address, socket));
    }

    /// Finds the cassette of a run, if the person keeps any.
    pub fn insert_cassette(&mut self, grant: &Grant, run_id: &str) {
        self.cassette = match &grant.cassettes {
            None => None,
            Some(Cassettes::Record(dir)) => {
                // An attempt that is made again under the same id keeps its first recording.
                let path = dir.join(format!("{run_id}.jsonl"));
                (!path.exists()).then_some(Cassette::Record {
                    path,
                    bytes_max: CASSETTE_BYTES_MAX,
                })
            }
            Some(Cassettes::Replay(dir)) => Some(Cassette::Replay {
                path: dir.join(format!("{run_id}.jsonl")),
            }),
        };
    }

    /// Lets an agent reach what its manifest names.
    pub fn allow(&mut self, hosts: &[String]) -> Result<(), Failure> {
        let Some(policy) = &mut self.policy else {
            return Ok(());
        };
        for host in hosts {
            let rule = EgressRule::parse(host).map_err(|error| failure::plain(&error))?;
            policy.rules.push(rule);
        }
        Ok(())
    }

    /// Returns the way to the model, as the agent sees it.
    pub fn gateway(&self) -> GatewayAddress<'_> {
        GatewayAddress {
            url: &self.gateway_url,
            placeholder: &self.placeholder,
        }
    }

    /// Returns the kind of network of the sandbox.
    pub const fn network(&self) -> NetworkIsolation {
        self.network
    }

    /// Returns where to listen inside.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.inside.iter().map(|(address, _)| *address).collect()
    }

    /// Returns what answers at each of the addresses.
    pub(crate) fn kinds(&self) -> impl Iterator<Item = NetworkEndpoint> + '_ {
        self.inside.iter().map(|(_, socket)| *socket)
    }

    /// Returns the gateway's own listener, where the network is the host's.
    pub(crate) const fn on_host(&self) -> Option<&TcpListener> {
        self.on_host.as_ref()
    }

    /// Returns the variables that lead programs to the proxy.
    pub fn environment(&self) -> BTreeMap<OsString, OsString> {
        let mut env = BTreeMap::new();
        if self.policy.is_none() {
            return env;
        }
        let proxy = format!("http://127.0.0.1:{PROXY_PORT}");
        for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"] {
            env.insert(name.into(), proxy.clone().into());
            env.insert(name.to_ascii_lowercase().into(), proxy.clone().into());
        }
        for name in ["NO_PROXY", "no_proxy"] {
            env.insert(name.into(), NOT_PROXIED.into());
        }
        // Node's own fetch looks at the others only if it is told to.
        env.insert("NODE_USE_ENV_PROXY".into(), "1".into());
        env
    }
}

/// Makes up what stands for a key: on a shared loopback nobody else must be able to guess it.
fn placeholder() -> Result<String, Failure> {
    let path = std::path::Path::new("/dev/urandom");
    let mut random = [0_u8; PLACEHOLDER_BYTES];
    fs::File::open(path)
        .and_then(|mut source| source.read_exact(&mut random))
        .map_err(|error| failure::file("read", path, &error))?;
    let digits: Vec<String> = random.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(format!("kapi-placeholder-{}", digits.concat()))
}

#[cfg(test)]
mod tests {
    use kapi_core::isolation::{NetworkMode, SandboxLevel};
    use kapi_sandbox::spec::NetworkIsolation;

    use super::{NetworkAccess, NetworkEndpoint};
    use crate::grant::Grant;

    fn access(level: SandboxLevel, mode: NetworkMode) -> NetworkAccess {
        let grant = Grant {
            forward: vec![11_434],
            ..Grant::default()
        };
        NetworkAccess::new(level, mode, &grant).unwrap()
    }

    #[test]
    fn only_filtered_runs_have_a_proxy_and_forwards() {
        let filtered = access(SandboxLevel::Native, NetworkMode::Filtered);
        let kinds: Vec<NetworkEndpoint> = filtered.kinds().collect();
        let forward = NetworkEndpoint::Forward(11_434);
        assert_eq!(
            kinds,
            [
                NetworkEndpoint::Model,
                NetworkEndpoint::Proxy,
                forward,
                forward
            ]
        );
        assert!(
            filtered
                .environment()
                .contains_key(std::ffi::OsStr::new("https_proxy"))
        );
        let none = access(SandboxLevel::Native, NetworkMode::None);
        assert_eq!(none.kinds().collect::<Vec<_>>(), [NetworkEndpoint::Model]);
        assert!(none.environment().is_empty());
    }

    #[test]
    fn a_shared_network_has_a_gateway_of_its_own_on_the_host() {
        for (level, mode) in [
            (SandboxLevel::Native, NetworkMode::Open),
            (SandboxLevel::None, NetworkMode::Open),
        ] {
            let access = access(level, mode);
            assert_eq!(access.network(), NetworkIsolation::Host);
            assert!(access.addresses().is_empty());
            let address = access.on_host().unwrap().local_addr().unwrap();
            assert_eq!(access.gateway().url, format!("http://{address}"));
        }
    }

    #[test]
    fn no_two_runs_have_the_same_placeholder() {
        let one = access(SandboxLevel::Native, NetworkMode::None);
        let other = access(SandboxLevel::Native, NetworkMode::None);
        assert_ne!(one.gateway().placeholder, other.gateway().placeholder);
    }
}
