//! A provider behind real TLS, with certificates of a made-up authority.
//!
//! The fixtures were made with openssl for `localhost`, for a hundred years; the authority's own
//! key was thrown away, so nothing else can ever be signed with it.

use std::io::Write as _;
use std::net::TcpStream;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::{fs, thread};

use kapi_gateway::http::HeadLimits;
use kapi_gateway::http::reader::MessageReader;
use kapi_gateway::model::GatewayError;
use kapi_gateway::model::dialect::ModelDialect;
use kapi_gateway::model::event::GatewayEvent;
use kapi_gateway::serve::{ServeLimits, StopSignal, serve};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::model_rig::{PATIENCE, Provide, Rig, SECRET, Setup, listen, run, try_gateway};

const ANSWER: &str = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 48\r\n\r\n\
                      {\"usage\":{\"input_tokens\":10,\"output_tokens\":5}} ";
const CUT_OFF: &str = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n{\"usage\":{}";
const NOT_THIS_ONE: Provide<'_> = &|_, _| panic!("the provider with TLS is another");

fn fixture(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures")
        .join(name)
}

fn server_config() -> Arc<ServerConfig> {
    let certificate = CertificateDer::from_pem_file(fixture("provider.pem")).expect("a fixture");
    let key = PrivateKeyDer::from_pem_file(fixture("provider.key")).expect("a fixture");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key);
    Arc::new(config.expect("a configuration"))
}

/// What a provider with TLS has seen.
#[derive(Default)]
struct Seen {
    n_connections: AtomicUsize,
    keys: Mutex<Vec<String>>,
}

/// Runs a gateway before a provider with TLS that answers every request with `answer`.
fn run_tls(host: &str, authority: Option<&str>, answer: &str, test: &dyn Fn(&Rig<'_>, &Seen)) {
    let (listener, stop) = (listen(), StopSignal::new().expect("a stop sign"));
    let port = listener.local_addr().expect("an address").port();
    let (config, seen) = (server_config(), Seen::default());
    let limits = ServeLimits {
        connections_max: 16,
    };
    let handle = |stream: &TcpStream| provide(stream, &config, &seen, answer);
    thread::scope(|scope| {
        scope.spawn(|| serve(&listener, &stop, limits, &handle).expect("a provider"));
        let setup = Setup {
            base_url: Some(format!("https://{host}:{port}")),
            extra_authorities: authority.map(fixture),
            ..Setup::new(ModelDialect::Anthropic)
        };
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            run(setup, NOT_THIS_ONE, &|rig| test(rig, &seen));
        }));
        stop.raise();
        if let Err(panic) = done {
            std::panic::resume_unwind(panic);
        }
    });
}

fn provide(stream: &TcpStream, config: &Arc<ServerConfig>, seen: &Seen, answer: &str) {
    let limits = HeadLimits {
        bytes_max: 64 * 1024,
        headers_max: 100,
        time_max: PATIENCE,
    };
    seen.n_connections.fetch_add(1, Ordering::SeqCst);
    stream.set_nonblocking(false).expect("a socket");
    let session = ServerConnection::new(Arc::clone(config)).expect("a session");
    let mut reader = MessageReader::new(StreamOwned::new(session, stream));
    while let Ok(Some(head)) = reader.request(&limits) {
        let framing = head.framing().expect("a frame");
        let Ok(_body) = reader.body(framing, u64::MAX).read_all() else {
            return;
        };
        let key = head.headers.first("x-api-key").unwrap_or_default();
        let key = String::from_utf8_lossy(key).into_owned();
        seen.keys.lock().expect("no panic").push(key);
        let out = reader.inner_mut();
        let sent = out.write_all(answer.as_bytes()).and_then(|()| out.flush());
        if sent.is_err() || answer == CUT_OFF {
            // Without the word that TLS has for an end.
            return;
        }
    }
}

#[test]
fn calls_reach_a_provider_whose_authority_is_trusted() {
    run_tls("localhost", Some("authority.pem"), ANSWER, &|rig, seen| {
        let mut agent = rig.connect();
        for _ in 0..3 {
            let got = agent.post("/v1/messages", "{}");
            assert_eq!((got.head.status, got.is_whole), (200, true), "{got:?}");
        }
        assert_eq!(*seen.keys.lock().expect("no panic"), [SECRET; 3]);
        assert_eq!(seen.n_connections.load(Ordering::SeqCst), 1);
        assert_eq!(rig.totals().usage.tokens(), 45);
    });
}

#[test]
fn a_provider_that_nobody_vouches_for_gets_no_key() {
    let refused = |host: &str, authority: Option<&str>| {
        run_tls(host, authority, ANSWER, &|rig, seen| {
            let got = rig.connect().post("/v1/messages", "{}");
            assert_eq!(got.head.status, 502);
            let message = got.json()["error"]["message"].to_string();
            assert!(message.contains("certificate"), "{message}");
            assert_eq!(*seen.keys.lock().expect("no panic"), [""; 0]);
            let wanted = |event: &GatewayEvent| matches!(event, GatewayEvent::Unreachable { .. });
            assert!(rig.events().iter().any(wanted));
        });
    };
    refused("localhost", None);
    // Its certificate is for a name, not for this address.
    refused("127.0.0.1", Some("authority.pem"));
}

#[test]
fn an_answer_that_was_cut_off_below_tls_is_not_taken_for_whole() {
    run_tls("localhost", Some("authority.pem"), CUT_OFF, &|rig, _| {
        let got = rig.connect().post("/v1/messages", "{}");
        assert_eq!((got.body.as_str(), got.is_whole), ("{\"usage\":{}", false));
        rig.wait_for(&|event| matches!(event, GatewayEvent::BrokenOff { .. }));
    });
}

#[test]
fn a_file_of_authorities_must_hold_some() {
    let directory = tempfile::tempdir().expect("a directory");
    let made = |name: &str, text: &str| {
        let path = directory.path().join(name);
        let mut file = fs::File::create(&path).expect("a file");
        file.write_all(text.as_bytes()).expect("written");
        path
    };
    let broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    for path in [
        directory.path().join("missing.pem"),
        made("empty.pem", ""),
        made("text.pem", "no certificate"),
        made("broken.pem", broken),
    ] {
        let setup = Setup {
            extra_authorities: Some(path.clone()),
            ..Setup::new(ModelDialect::Anthropic)
        };
        let error = try_gateway(setup).expect_err("no authority");
        assert!(matches!(error, GatewayError::Trust(_)), "{error:?}");
        assert!(
            error.to_string().contains(&path.display().to_string()),
            "{error}"
        );
    }
}
