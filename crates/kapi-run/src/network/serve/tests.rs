//! Hostile agents at the endpoints: floods of refusals, and answers that are hung up on.
//!
//! The sockets are real; the sandbox is not there, for the endpoints do not know it.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use kapi_agent::launch::upstream::{AgentUpstream, KeyLocation, UpstreamDialect};
use kapi_core::isolation::{NetworkMode, SandboxLevel};
use kapi_core::usage::Usage;
use kapi_gateway::egress::log::{ConnectionKind, ConnectionRecord, ConnectionVerdict};
use kapi_gateway::serve::StopSignal;
use kapi_machine::watch::{Activity, EffectWatch, unlimited};
use kapi_sys::cancel::Cancel;

use super::{AN_ESTIMATE, LOG_FULL, NetworkServices};
use crate::grant::Grant;
use crate::network::NetworkAccess;
use crate::run_dir::RunDir;

const LONG_HOST: usize = 300;

/// Does something with the endpoints of a run; returns what was reported and the lines of its log.
fn reported(
    upstream: Option<AgentUpstream>,
    act: &dyn Fn(&NetworkServices<'_>),
) -> (Vec<Activity>, Vec<serde_json::Value>) {
    let directory = tempfile::tempdir().unwrap();
    let run_dir = RunDir::open(directory.path(), "run").unwrap();
    let level = SandboxLevel::None;
    let mut access = NetworkAccess::new(level, NetworkMode::Open, &Grant::default()).unwrap();
    access.upstream = upstream;
    let reported = Mutex::new(Vec::new());
    let notice = |activity: Activity| reported.lock().unwrap().push(activity);
    let watch = EffectWatch {
        cancel: &Cancel::new(),
        notice: &notice,
        room: &unlimited,
    };
    act(&NetworkServices::new(&access, &watch, &run_dir).unwrap());
    let text = std::fs::read_to_string(run_dir.file("network.jsonl")).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
    (reported.into_inner().unwrap(), lines.collect())
}

fn is_note(activity: &Activity, wanted: &str) -> bool {
    matches!(activity, Activity::Note { text } if text == wanted)
}

fn record(host: &str, verdict: ConnectionVerdict) -> ConnectionRecord {
    ConnectionRecord {
        at_ms: 1,
        kind: ConnectionKind::Connect,
        host: host.to_owned(),
        port: 443,
        method: None,
        path: None,
        verdict,
        bytes_up: 0,
        bytes_down: 0,
        duration: Duration::ZERO,
    }
}

/// Begins a stream for each request and never ends one.
fn endless_provider(listener: &TcpListener, n_requests: usize) {
    const BEGUN: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n\
                         event: response.created\ndata: {}\n\n";
    let serve = |mut stream: TcpStream| {
        let mut request = [0_u8; 4096];
        assert!(stream.read(&mut request).unwrap() > 0);
        stream.write_all(BEGUN.as_bytes()).unwrap();
        // Until the gateway hangs up.
        while matches!(stream.read(&mut request), Ok(1..)) {}
    };
    thread::scope(|scope| {
        for _ in 0..n_requests {
            let (stream, _) = listener.accept().unwrap();
            scope.spawn(move || serve(stream));
        }
    });
}

/// Asks for a response and hangs up at its first bytes.
fn ask_and_leave(gateway: SocketAddr, placeholder: &str, body: &str) {
    let mut agent = TcpStream::connect(gateway).unwrap();
    let length = body.len();
    let request = format!(
        "POST /v1/responses HTTP/1.1\r\nhost: gateway\r\nauthorization: Bearer {placeholder}\r\n\
         content-length: {length}\r\n\r\n{body}"
    );
    agent.write_all(request.as_bytes()).unwrap();
    let mut seen = Vec::new();
    while !seen.ends_with(b"data: {}\n\n\r\n") {
        let mut byte = [0_u8; 1];
        agent.read_exact(&mut byte).unwrap();
        seen.extend(byte);
    }
}

#[test]
fn an_agent_that_hangs_up_and_ends_is_charged_what_it_may_have_used() {
    const N_CALLS: usize = 30;
    let provider = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = provider.local_addr().unwrap().port();
    let body = format!(r#"{{"model":"m","input":"{}"}}"#, "x".repeat(3000));
    let upstream = AgentUpstream {
        base_url: format!("http://127.0.0.1:{port}"),
        key: None,
        key_location: KeyLocation::Bearer,
        dialect: UpstreamDialect::Responses,
    };
    let act = |served: &NetworkServices<'_>| {
        let gateway = served.access.on_host().unwrap().local_addr().unwrap();
        let placeholder = served.access.gateway().placeholder;
        let ended = served.open(|_| {
            (0..N_CALLS).for_each(|_| ask_and_leave(gateway, placeholder, &body));
            Ok(())
        });
        ended.unwrap();
    };
    let (reported, lines) = thread::scope(|scope| {
        scope.spawn(|| endless_provider(&provider, N_CALLS));
        reported(Some(upstream), &act)
    });
    let mut used = Usage::default();
    for activity in &reported {
        if let Activity::Used(more) = activity {
            used.add(more);
        }
    }
    assert_eq!(used.output_tokens, 30 * 128 * 1024);
    assert_eq!(
        used.input_tokens,
        30 * (u64::try_from(body.len()).unwrap() + 1024),
        "a token a byte, and what a provider adds"
    );
    assert_eq!(used.doubt.calls, 30);
    assert_eq!(used.doubt.tokens, used.tokens(), "nothing of it is certain");
    assert_eq!(used.doubt.unpriced_calls, 30);
    let notes = reported
        .iter()
        .filter(|reported| is_note(reported, AN_ESTIMATE));
    assert_eq!(notes.count(), 1);
    let is_unmetered = |line: &&serde_json::Value| {
        let is_event = line["kind"] == "model" && line["event"] == "unmetered";
        is_event && line["at_ms"].is_i64() && line["call"].is_u64()
    };
    assert_eq!(lines.iter().filter(is_unmetered).count(), N_CALLS);
}

#[test]
fn refusals_however_many_leave_room_for_what_is_let_through() {
    let stop = StopSignal::new().unwrap();
    let (reported, lines) = reported(None, &|served| {
        for n in 0..80_000 {
            let host = format!("{n}.{}", "x".repeat(LONG_HOST));
            let reason = format!("no rule allows {host}:443");
            served.note_record(&record(&host, ConnectionVerdict::Denied { reason }), &stop);
        }
        let rule = "a.test".to_owned();
        let allowed = ConnectionVerdict::Allowed { rule, cut: None };
        served.note_record(&record("a.test", allowed), &stop);
        assert!(!stop.is_raised());
    });
    let host = |line: &serde_json::Value| line["host"].as_str().map(str::len);
    assert!(lines.iter().filter_map(host).all(|length| length <= 255));
    let full: Vec<_> = lines.iter().filter(|line| line["log"] == "full").collect();
    assert_eq!(full.len(), 1);
    assert_eq!(full.first().unwrap()["part"], "refused");
    let last = lines.last().unwrap();
    assert_eq!(
        (&last["host"], &last["decision"]),
        (&"a.test".into(), &"allowed".into())
    );
    assert!(reported.len() <= super::REPORTED_MAX);
}

#[test]
fn a_log_without_room_closes_the_network() {
    let stop = StopSignal::new().unwrap();
    let (reported, lines) = reported(None, &|served| {
        let rule = "a.test".to_owned();
        // A refusal after bytes went out counts among what was let through.
        let mut late = record(
            &"x".repeat(LONG_HOST),
            ConnectionVerdict::Denied { reason: rule },
        );
        late.bytes_up = 1;
        while !stop.is_raised() {
            served.note_record(&late, &stop);
        }
        served.note_record(&late, &stop);
    });
    let n_records = lines.iter().filter(|line| line["bytes_up"] == 1).count();
    assert_eq!(lines.len(), n_records + 1, "all of them, and one mark");
    assert_eq!(lines.get(n_records - 1).unwrap()["part"], "allowed");
    assert_eq!(
        reported
            .iter()
            .filter(|reported| is_note(reported, LOG_FULL))
            .count(),
        1
    );
}
