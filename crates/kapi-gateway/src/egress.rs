//! Which connections a sandbox may make, and the making of them.
//!
//! The rules are pure: [`host`], [`rule`], [`policy`], [`address`] and [`hello`] open nothing. The
//! rest accepts on listeners made inside a sandbox and dials out from the host. Knows no run and no
//! agent; terminates no TLS, so it sees names and amounts, never contents of a tunnel.

pub mod address;
pub mod dial;
pub mod forward;
pub mod hello;
pub mod host;
pub mod host_proxy;
pub mod log;
pub mod policy;
pub mod proxy;
pub mod relay;
pub mod rule;

use std::time::Duration;

use crate::http::HeadLimits;

/// What the connections of one run may use.
#[derive(Debug, Clone, Copy)]
pub struct EgressLimits {
    /// Connections open at once at one listener.
    pub connections_max: usize,
    /// Requests on one connection that is kept alive.
    pub connection_requests_max: u64,
    /// Requests, tunnels and refusals in the whole run; what comes after is refused unrecorded.
    pub run_requests_max: u64,
    /// Bytes in the whole run, both directions together.
    pub run_bytes_max: u64,
    /// A request's head.
    pub head: HeadLimits,
    /// Time to look a name up.
    pub lookup_time_max: Duration,
    /// Time to connect to one address.
    pub connect_time_max: Duration,
    /// Silence before a request begins, the first or the next on its connection.
    pub quiet_time_max: Duration,
    /// Silence within a request or tunnel before it is closed.
    pub idle_time_max: Duration,
    /// Life of one connection.
    pub connection_time_max: Duration,
}

impl EgressLimits {
    /// Returns limits that honest agents never meet.
    #[must_use]
    pub const fn usual() -> Self {
        Self {
            connections_max: 256,
            connection_requests_max: 10_000,
            run_requests_max: 200_000,
            run_bytes_max: 64 * 1024 * 1024 * 1024,
            head: HeadLimits {
                bytes_max: 32 * 1024,
                headers_max: 100,
                time_max: Duration::from_secs(10),
            },
            lookup_time_max: Duration::from_secs(10),
            connect_time_max: Duration::from_secs(10),
            quiet_time_max: Duration::from_secs(60),
            idle_time_max: Duration::from_secs(15 * 60),
            connection_time_max: Duration::from_secs(12 * 60 * 60),
        }
    }
}
