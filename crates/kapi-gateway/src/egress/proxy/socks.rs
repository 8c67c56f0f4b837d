//! SOCKS5 without a log-in, CONNECT only.
//!
//! Names are looked up on the host, never by the client. Everything else of the protocol is refused
//! with its own reply code.

use std::io::Write as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::rejection::Rejection;
use super::session::Session;
use super::tunnel;
use crate::egress::host::{HostEndpoint, HostError, TargetHost};
use crate::egress::log::{ConnectionKind, ConnectionVerdict, RecordDraft};
use crate::egress::policy::EgressTarget;

const VERSION: u8 = 5;
const NO_LOG_IN: u8 = 0;
const NO_METHOD: u8 = 0xff;
const COMMAND_CONNECT: u8 = 1;
const ADDRESS_V4: u8 = 1;
const ADDRESS_NAME: u8 = 3;
const ADDRESS_V6: u8 = 4;
const REPLY_DONE: u8 = 0;
const REPLY_FAILED: u8 = 1;
const REPLY_COMMAND: u8 = 7;
const REPLY_ADDRESS: u8 = 8;
const PART: &str = "a SOCKS request";

/// A request that cannot be served: the reply code, what stood for the host, and what is wrong.
struct UnreadableRequest {
    reply: u8,
    host: String,
    problem: String,
}

/// Serves a connection whose first byte was read.
pub(super) fn serve(session: &mut Session<'_>) {
    if !greet(session) {
        return;
    }
    let asked = read_request(session);
    let Some(asked) = asked else {
        return;
    };
    let Some(draft) = session.proxy.begin(ConnectionKind::Socks) else {
        return session.send_last(&reply(Rejection::Spent.socks_reply()));
    };
    session.be_patient();
    match asked {
        Ok(endpoint) => connect(session, endpoint, draft),
        Err(unreadable) => {
            let reason = unreadable.problem;
            let draft = draft.to(&unreadable.host, 0);
            (session.proxy.on_record)(draft.end(ConnectionVerdict::Denied { reason }));
            session.send_last(&reply(unreadable.reply));
        }
    }
}

fn connect(session: &mut Session<'_>, endpoint: HostEndpoint, draft: RecordDraft) {
    let draft = draft.to(&endpoint.host.to_string(), endpoint.port);
    let target = EgressTarget {
        endpoint,
        request: None,
    };
    match session.admit(&target) {
        Ok(admitted) => {
            let done = reply(REPLY_DONE);
            tunnel::carry(session, &target.endpoint, &admitted, draft, &done);
        }
        Err(rejection) => {
            (session.proxy.on_record)(draft.end(rejection.verdict()));
            session.send_last(&reply(rejection.socks_reply()));
        }
    }
}

/// Reads the greeting and agrees on no log-in; returns whether a request may follow.
fn greet(session: &mut Session<'_>) -> bool {
    let Some(methods) = counted(session, 2).map(|greeting| greeting.contains(&NO_LOG_IN)) else {
        return false;
    };
    if !methods {
        session.send_last(&[VERSION, NO_METHOD]);
        return false;
    }
    let mut client = session.timed(session.client);
    client.write_all(&[VERSION, NO_LOG_IN]).is_ok()
}

/// Takes `prefix` bytes, the last of which says how many follow, and returns what follows.
fn counted(session: &mut Session<'_>, prefix: usize) -> Option<Vec<u8>> {
    let start = session.reader.fill_to(prefix, PART).ok()?;
    let n_bytes = usize::from(*start.get(prefix.checked_sub(1)?)?);
    let bytes = exactly(session, prefix + n_bytes)?;
    bytes.get(prefix..).map(<[u8]>::to_vec)
}

fn exactly(session: &mut Session<'_>, length: usize) -> Option<Vec<u8>> {
    let available = session.reader.fill_to(length, PART).ok()?.len();
    (available >= length).then(|| session.reader.take(length).to_vec())
}

/// Reads the request, or nothing when the client broke off.
fn read_request(session: &mut Session<'_>) -> Option<Result<HostEndpoint, UnreadableRequest>> {
    let start = exactly(session, 4)?;
    let &[version, command, _, kind] = start.as_slice() else {
        return None;
    };
    let refused = |reply, problem: &str| UnreadableRequest {
        reply,
        host: String::new(),
        problem: problem.to_owned(),
    };
    if version != VERSION {
        return Some(Err(refused(REPLY_FAILED, "it is not SOCKS5")));
    }
    let (shown, host) = match kind {
        ADDRESS_V4 => {
            let bytes: [u8; 4] = exactly(session, 4)?.try_into().ok()?;
            literal(Ipv4Addr::from(bytes).into())
        }
        ADDRESS_V6 => {
            let bytes: [u8; 16] = exactly(session, 16)?.try_into().ok()?;
            literal(Ipv6Addr::from(bytes).into())
        }
        ADDRESS_NAME => {
            let name = String::from_utf8_lossy(&counted(session, 1)?).into_owned();
            let host = TargetHost::parse(&name);
            (name, host)
        }
        _ => {
            return Some(Err(refused(
                REPLY_ADDRESS,
                "its address is of an unknown kind",
            )));
        }
    };
    let port: [u8; 2] = exactly(session, 2)?.try_into().ok()?;
    if command != COMMAND_CONNECT {
        return Some(Err(refused(REPLY_COMMAND, "only CONNECT is served")));
    }
    let endpoint = match (host, u16::from_be_bytes(port)) {
        (Ok(_), 0) => Err(HostError::Port),
        (Ok(host), port) => Ok(HostEndpoint { host, port }),
        (Err(error), _) => Err(error),
    };
    Some(endpoint.map_err(|error| UnreadableRequest {
        reply: REPLY_FAILED,
        host: shown,
        problem: error.to_string(),
    }))
}

fn literal(address: IpAddr) -> (String, Result<TargetHost, HostError>) {
    (
        address.to_string(),
        Ok(TargetHost::Address(address.to_canonical())),
    )
}

/// Returns a reply that names no bound address.
fn reply(code: u8) -> [u8; 10] {
    [VERSION, code, 0, ADDRESS_V4, 0, 0, 0, 0, 0, 0]
}
