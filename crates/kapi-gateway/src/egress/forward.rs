//! One port of the host's own loopback, at the same address inside a sandbox.
//!
//! The listener was made inside; what connects to it reaches 127.0.0.1 at one port of the host and
//! nothing else. Looks at nothing it carries.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;

use kapi_sys::clock::Clock;

use super::EgressLimits;
use super::dial::{Dialer, Resolve};
use super::log::{ConnectionKind, ConnectionRecord, ConnectionVerdict, RecordDraft};
use super::relay::{ByteAllowance, TunnelLimits, relay};
use crate::http::timed::moment_after;
use crate::serve::{self, ServeLimits, StopSignal};

/// A forward to one port of the host.
pub struct Forward<'a> {
    address: SocketAddr,
    limits: EgressLimits,
    dialer: Dialer,
    allowance: ByteAllowance,
    clock: &'a dyn Clock,
    on_record: &'a (dyn Fn(ConnectionRecord) + Sync),
}

impl<'a> Forward<'a> {
    /// Returns a forward to `port` of the host's loopback, whose limits are its own.
    pub fn new(
        port: u16,
        limits: EgressLimits,
        clock: &'a dyn Clock,
        on_record: &'a (dyn Fn(ConnectionRecord) + Sync),
    ) -> Self {
        let no_names: Resolve = Arc::new(|_, _| Ok(Vec::new()));
        Self {
            address: SocketAddr::from((Ipv4Addr::LOCALHOST, port)),
            limits,
            dialer: Dialer::new(no_names, limits.lookup_time_max, limits.connect_time_max),
            allowance: ByteAllowance::new(limits.run_bytes_max),
            clock,
            on_record,
        }
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
        serve::serve(listener, stop, limits, &|client| self.carry(client, stop))
    }

    fn carry(&self, client: &TcpStream, stop: &StopSignal) {
        let host = self.address.ip().to_string();
        let draft = RecordDraft::new(self.clock.now_ms(), ConnectionKind::Forward)
            .to(&host, self.address.port());
        let rule = format!("forward:{}", self.address.port());
        let target = match self.dialer.connect(self.address, stop) {
            Ok(target) => Arc::new(target),
            Err(error) => {
                let reason = error.to_string();
                (self.on_record)(draft.end(ConnectionVerdict::Failed { rule, reason }));
                return;
            }
        };
        let watched = stop.watch(&target);
        let limits = TunnelLimits {
            idle_max: self.limits.idle_time_max,
            deadline: moment_after(self.limits.connection_time_max),
            allowance: &self.allowance,
        };
        let relayed = relay(client, &target, &[], limits, stop);
        drop(watched);
        let cut = relayed.end.cut().map(str::to_owned);
        let verdict = ConnectionVerdict::Allowed { rule, cut };
        (self.on_record)(
            draft
                .moving(relayed.bytes_up, relayed.bytes_down)
                .end(verdict),
        );
    }
}
