//! Tunnels: HTTP's CONNECT, and what it shares with SOCKS5.
//!
//! Before the first byte goes up, a TLS hello must name the host that was allowed. What is inside a
//! tunnel afterwards is not seen.

use std::io::Write as _;
use std::os::fd::AsFd as _;

use rustix::event::{PollFd, PollFlags};

use super::rejection::Rejection;
use super::session::{AdmittedTarget, Session};
use crate::egress::hello::{self, Hello};
use crate::egress::host::{HostEndpoint, TargetHost};
use crate::egress::log::{ConnectionKind, ConnectionVerdict, RecordDraft};
use crate::egress::policy::EgressTarget;
use crate::egress::relay::{RelayEnd, RelayOutcome, TunnelLimits, relay};
use crate::http::head::{Framing, RequestHead};
use crate::http::timed::{moment_after, ready};

/// What the client hears when its tunnel stands.
const ESTABLISHED: &[u8] = b"HTTP/1.1 200 Connection Established\r\n\r\n";

/// Serves a CONNECT request; nothing follows it on its connection.
pub(super) fn serve_connect(session: &mut Session<'_>, head: &RequestHead) {
    let Some(draft) = session.proxy.begin(ConnectionKind::Connect) else {
        return session.reject(None, &Rejection::Spent);
    };
    let endpoint = match connect_endpoint(head) {
        Ok(endpoint) => endpoint,
        Err(problem) => {
            let draft = draft.to(&head.target, 0);
            return session.reject(Some(draft), &Rejection::unreadable(&problem));
        }
    };
    let draft = draft.to(&endpoint.host.to_string(), endpoint.port);
    let target = EgressTarget {
        endpoint,
        request: None,
    };
    match session.admit(&target) {
        Err(rejection) => session.reject(Some(draft), &rejection),
        Ok(admitted) => carry(session, &target.endpoint, &admitted, draft, ESTABLISHED),
    }
}

/// Tells the client that its tunnel stands, checks the first bytes that it sends, and relays the rest.
pub(super) fn carry(
    session: &mut Session<'_>,
    endpoint: &HostEndpoint,
    admitted: &AdmittedTarget,
    draft: RecordDraft,
    established: &[u8],
) {
    let rule = admitted.permit.rule.clone();
    let reported = session.timed(session.client).write_all(established);
    let checked = match reported {
        Ok(()) => check_first_bytes(session, endpoint, admitted),
        Err(_) => Ok(Some(RelayEnd::Reset)),
    };
    let record = match checked {
        Err(reason) => draft.end(ConnectionVerdict::Denied { reason }),
        Ok(ended) => {
            let relayed = match ended {
                Some(end) => RelayOutcome {
                    bytes_up: 0,
                    bytes_down: 0,
                    end,
                },
                None => relay_rest(session, admitted),
            };
            let cut = relayed.end.cut().map(str::to_owned);
            let verdict = ConnectionVerdict::Allowed { rule, cut };
            draft
                .moving(relayed.bytes_up, relayed.bytes_down)
                .end(verdict)
        }
    };
    (session.proxy.on_record)(record);
}

fn relay_rest(session: &mut Session<'_>, admitted: &AdmittedTarget) -> RelayOutcome {
    let limits = TunnelLimits {
        idle_max: session.proxy.limits.idle_time_max,
        deadline: session.deadline,
        allowance: &session.proxy.allowance,
    };
    relay(
        session.client,
        &admitted.socket,
        session.reader.unused(),
        limits,
        session.stop,
    )
}

/// Reads what the client says first, unless the server speaks before it.
///
/// Returns how the tunnel ended if it did so before anybody spoke, or why it is refused.
fn check_first_bytes(
    session: &mut Session<'_>,
    endpoint: &HostEndpoint,
    admitted: &AdmittedTarget,
) -> Result<Option<RelayEnd>, String> {
    if session.reader.unused().is_empty() {
        let mut fds = [
            PollFd::from_borrowed_fd(session.client.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(admitted.socket.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(session.stop.event(), PollFlags::IN),
        ];
        match ready(&mut fds, session.proxy.limits.idle_time_max) {
            Ok(true) if session.stop.is_raised() => return Ok(Some(RelayEnd::Stopped)),
            Ok(true) => {}
            Ok(false) => return Ok(Some(RelayEnd::Idle)),
            Err(_) => return Ok(Some(RelayEnd::Reset)),
        }
        let [client, _, _] = &fds;
        if client.revents().is_empty() {
            return Ok(None);
        }
    }
    let hello_end = moment_after(session.proxy.limits.head.time_max);
    let deadline = session.deadline.min(hello_end);
    session.reader.inner_mut().set_deadline(Some(deadline));
    let mut closed = false;
    loop {
        match hello::read(session.reader.unused()) {
            Hello::NotTls | Hello::Complete { server_name: None } => return Ok(None),
            Hello::Complete {
                server_name: Some(name),
            } if TargetHost::parse(&name).as_ref() == Ok(&endpoint.host) => return Ok(None),
            Hello::Complete {
                server_name: Some(name),
            } => {
                let name = name.escape_default();
                return Err(format!(
                    "the TLS hello names {name} and not {}",
                    endpoint.host
                ));
            }
            Hello::Malformed => return Err("the TLS hello cannot be read".to_owned()),
            Hello::Incomplete if closed && session.reader.unused().is_empty() => return Ok(None),
            Hello::Incomplete if closed => return Err("the TLS hello is not whole".to_owned()),
            Hello::Incomplete => {}
        }
        match session.reader.fill("a TLS hello") {
            Ok(n_bytes) => closed = n_bytes == 0,
            Err(crate::http::HttpMessageError::Slow { .. }) => {
                return Err("the TLS hello did not come in time".to_owned());
            }
            Err(_) => return Ok(Some(RelayEnd::Reset)),
        }
    }
}

fn connect_endpoint(head: &RequestHead) -> Result<HostEndpoint, String> {
    let endpoint = HostEndpoint::parse(&head.target, None).map_err(|error| error.to_string())?;
    match head.framing() {
        Ok(Framing::Empty | Framing::Length(0)) => {}
        Ok(Framing::Length(_) | Framing::Chunked | Framing::UntilClose) => {
            return Err("a CONNECT request has no body".to_owned());
        }
        Err(error) => return Err(error.to_string()),
    }
    check_host_header(head, &endpoint, endpoint.port)?;
    Ok(endpoint)
}

/// Checks that a Host header, if there is one, names the target and no other.
pub(super) fn check_host_header(
    head: &RequestHead,
    endpoint: &HostEndpoint,
    default_port: u16,
) -> Result<(), String> {
    let mut values = head.headers.all("host");
    let Some(value) = values.next() else {
        return Ok(());
    };
    if values.next().is_some() {
        return Err("it has more than one Host header".to_owned());
    }
    let named = std::str::from_utf8(value)
        .ok()
        .and_then(|value| HostEndpoint::parse(value, Some(default_port)).ok());
    if named.as_ref() == Some(endpoint) {
        Ok(())
    } else {
        Err("its Host header does not name its target".to_owned())
    }
}
