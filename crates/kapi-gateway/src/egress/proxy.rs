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

use self::session::{Session, SessionNext};
use super::EgressLimits;
use super::dial::{Dialer, Resolve};
use super::host_proxy::HostProxy;
use super::log::{ConnectionKind, ConnectionRecord, ConnectionVerdict, RecordDraft};
use super::policy::EgressPolicy;
use super::relay::ByteAllowance;
use crate::serve::{self, ServeLimits, StopSignal};

/// First byte of a SOCKS5 greeting, which no method begins with.
const SOCKS_5: u8 = 5;

/// What a proxy is made of.
pub struct ProxyConfig {
    /// What may be reached.
    pub policy: EgressPolicy,
    /// How names are looked up on the host.
    pub resolve: Resolve,
    /// What all connections of the run may use.
    pub limits: EgressLimits,
}

/// The proxy of one run; several listeners may share it, and with it its limits.
pub struct Proxy<'a> {
    policy: EgressPolicy,
    limits: EgressLimits,
    dialer: Dialer,
    allowance: ByteAllowance,
    n_requests: AtomicU64,
    clock: &'a dyn Clock,
    on_record: &'a (dyn Fn(ConnectionRecord) + Sync),
}

impl<'a> Proxy<'a> {
    /// Returns a proxy that hands every decision to `on_record` when what it led to has ended.
    pub fn new(
        config: ProxyConfig,
        clock: &'a dyn Clock,
        on_record: &'a (dyn Fn(ConnectionRecord) + Sync),
    ) -> Self {
        let ProxyConfig {
            policy,
            resolve,
            limits,
        } = config;
        Self {
            policy,
            limits,
            dialer: Dialer::new(resolve, limits.lookup_time_max, limits.connect_time_max),
            allowance: ByteAllowance::new(limits.run_bytes_max),
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
    pub fn serve(
        &self,
        listener: &TcpListener,
        stop: &StopSignal,
    ) -> Result<(), serve::ServeError> {
        let limits = ServeLimits {
            connections_max: self.limits.connections_max,
        };
        let handle = |client: &TcpStream| serve_client(&mut Session::new(self, client, stop));
        serve::serve(listener, stop, limits, &handle)
    }

    /// Begins a record, or nothing once the run has asked too often, which is recorded once.
    fn begin(&self, kind: ConnectionKind) -> Option<RecordDraft> {
        let draft = RecordDraft::new(self.clock.now_ms(), kind);
        let n_before = self.n_requests.fetch_add(1, Ordering::SeqCst);
        let max = self.limits.run_requests_max;
        if n_before < max {
            return Some(draft);
        }
        if n_before == max {
            let reason = format!("the run made more than {max} requests; the rest is not recorded");
            (self.on_record)(draft.end(ConnectionVerdict::Denied { reason }));
        }
        None
    }
}

/// Serves one connection to its end.
fn serve_client(session: &mut Session<'_>) {
    // Without it a small answer may wait for the client's next packet; nothing else depends on it.
    if session.client.set_nodelay(true).is_err() || !session.wait_for_request() {
        return;
    }
    if session.reader.unused().first() == Some(&SOCKS_5) {
        socks::serve(session);
    } else {
        serve_http(session);
    }
}

fn serve_http(session: &mut Session<'_>) {
    for _ in 0..session.proxy.limits.connection_requests_max {
        if !session.wait_for_request() {
            return;
        }
        let head = match session.reader.request(&session.proxy.limits.head) {
            Ok(Some(head)) => head,
            Ok(None) => return,
            Err(error) => return session.refuse_unread(&error),
        };
        session.be_patient();
        let next = if head.method == "CONNECT" {
            tunnel::serve_connect(session, &head);
            SessionNext::Close
        } else {
            plain::serve(session, &head)
        };
        if next == SessionNext::Close || session.stop.is_raised() {
            return;
        }
    }
}
