//! The one way out of a sandbox: HTTP CONNECT, plain HTTP and SOCKS5 on one listener.
//!
//! Every request is decided anew, dialled from the host, and recorded. Which protocol a connection
//! speaks is told by its first byte. Knows no sandbox: it serves the listener it is given.

mod plain;
mod rejection;
mod session;
mod socks;
mod tunnel;

use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};

use kapi_sys::clock::Clock;

use self::session::Session;
use super::Limits;
use super::dial::{Dialer, Resolve};
use super::host_proxy::HostProxy;
use super::log::{Draft, Kind, Record, Verdict};
use super::policy::Policy;
use super::relay::Allowance;
use crate::serve::{self, ServeLimits, Stop};

/// What a proxy is told.
pub struct Config {
    /// What may be reached.
    pub policy: Policy,
    /// How names are looked up on the host.
    pub resolve: Resolve,
    /// What all connections of the run may use.
    pub limits: Limits,
}

/// The proxy of one run; several listeners may share it, and with it its limits.
pub struct Proxy<'a> {
    policy: Policy,
    limits: Limits,
    dialer: Dialer,
    allowance: Allowance,
    n_requests: AtomicU64,
    clock: &'a dyn Clock,
    on_record: &'a (dyn Fn(Record) + Sync),
}

impl<'a> Proxy<'a> {
    /// Returns a proxy that hands every decision to `on_record` when what it led to has ended.
    pub fn new(
        config: Config,
        clock: &'a dyn Clock,
        on_record: &'a (dyn Fn(Record) + Sync),
    ) -> Self {
        let Config {
            policy,
            resolve,
            limits,
        } = config;
        Self {
            policy,
            limits,
            dialer: Dialer::new(resolve, limits.lookup_time_max, limits.connect_time_max),
            allowance: Allowance::new(limits.run_bytes_max),
            n_requests: AtomicU64::new(0),
            clock,
            on_record,
        }
    }

    /// Goes out through the proxies that this host needs.
    #[must_use]
    pub fn through(mut self, host_proxy: Option<HostProxy>) -> Self {
        self.dialer = self.dialer.through(host_proxy);
        self
    }

    /// Serves a listener until `stop` is raised and its last connection is closed.
    pub fn serve(&self, listener: &TcpListener, stop: &Stop) -> Result<(), serve::Error> {
        let limits = ServeLimits {
            connections_max: self.limits.connections_max,
        };
        let handle = |client: &TcpStream| Session::new(self, client, stop).run();
        serve::serve(listener, stop, limits, &handle)
    }

    /// Begins a record, or nothing once the run has asked too often, which is recorded once.
    fn begin(&self, kind: Kind) -> Option<Draft> {
        let draft = Draft::new(self.clock.now_ms(), kind);
        let n_before = self.n_requests.fetch_add(1, Ordering::SeqCst);
        let max = self.limits.run_requests_max;
        if n_before < max {
            return Some(draft);
        }
        if n_before == max {
            let reason = format!("the run asked more than {max} times; the rest is not recorded");
            (self.on_record)(draft.end(Verdict::Denied { reason }));
        }
        None
    }
}
