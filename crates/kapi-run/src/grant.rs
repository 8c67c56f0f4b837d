//! What the person grants to every run beyond the minimum.
//!
//! Resolved values; where each came from is the caller's business. A project can only make these
//! smaller before they arrive here.

pub mod lending;

use std::path::PathBuf;

use kapi_gateway::egress::host_proxy::HostProxy;
use kapi_gateway::egress::rule::EgressRule;
use kapi_sandbox::podman::options::PodmanOptions;
use kapi_sandbox::spec::Resources;

/// The variables of the host that every program may see, whoever it is for.
pub const PASSED_VARIABLES: &[&str] = &[
    "PATH",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "LANGUAGE",
    "TZ",
    "USER",
    "LOGNAME",
    "JAVA_HOME",
];

/// Where the model's gateway listens in a network of the sandbox's own.
pub const GATEWAY_PORT: u16 = 41_317;
/// Where the proxy listens there.
pub const PROXY_PORT: u16 = 41_318;

/// What a run may see, reach and use.
#[derive(Debug, Clone, Default)]
pub struct Grant {
    /// Further host paths visible inside, read-only, at the same place.
    pub read_only: Vec<PathBuf>,
    /// What is copied from the person's home to the same place of a private one, relative to both;
    /// the run may change its copy.
    pub home_copies: Vec<PathBuf>,
    /// Hosts that may be reached in filtered mode, besides those of the agent's own manifest.
    pub allow: Vec<EgressRule>,
    /// Ecosystems, by their names, whose registries may be reached as well: those that the person's own
    /// clients ask.
    pub registries: Vec<String>,
    /// Ports of the host's loopback that are reachable at the same address inside; not 0, and not
    /// [`GATEWAY_PORT`] or [`PROXY_PORT`], where Kapi listens.
    pub forward: Vec<u16>,
    /// What everything in a sandbox together may use.
    pub resources: Resources,
    /// Whether programs inside may make sandboxes of their own.
    pub nested_namespaces: bool,
    /// What only a container has.
    pub podman: PodmanOptions,
    /// Where Maven's releases come from instead of its own first repository.
    pub maven_mirror: Option<String>,
    /// The proxies that this host itself needs to get out.
    pub host_proxy: Option<HostProxy>,
    /// Whether what is said to models is kept, or answered from what was kept.
    pub cassettes: Option<Cassettes>,
}

/// A directory with one cassette for each run, by the run's id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cassettes {
    /// Traffic is recorded here, without keys; a run that is there already is not recorded again.
    Record(PathBuf),
    /// Models are not asked; the answers are taken from here.
    Replay(PathBuf),
}
