//! Who is let in, over what; and that secrets stay where they are.

use std::path::{Path, PathBuf};
use std::time::Duration;

use kapi_fleet::address::Address;
use kapi_fleet::error::FleetError;
use kapi_fleet::log::NetLog;

use crate::cluster::{Cluster, settings};
use crate::support::Writer;

fn open(cluster: &Cluster, front: &str) -> Result<NetLog, FleetError> {
    let mut settings = cluster.settings();
    let port = cluster.ports()[0];
    settings.address = Address::parse(&format!("{front}127.0.0.1:{port}")).unwrap();
    NetLog::open(settings, "shop", "kernel")
}

fn words(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(error) = next {
        text = format!("{text}: {error}");
        next = error.source();
    }
    text
}

#[test]
fn a_password_or_a_token_lets_in_and_a_wrong_one_does_not() {
    for (more, right, wrong) in [
        (
            "authorization { user: kim, password: \"s3cret-one\" }",
            "nats://kim:s3cret-one@",
            "nats://kim:s3cret-two@",
        ),
        (
            "authorization { token: s3cret-one }",
            "nats://s3cret-one@",
            "nats://s3cret-two@",
        ),
    ] {
        let cluster = Cluster::with(1, more);
        let mut writer = Writer::new("w", open(&cluster, right).unwrap());
        writer.append(0);
        for front in [wrong, "nats://"] {
            let Err(error) = open(&cluster, front) else {
                panic!("{front} lets in");
            };
            // It does not try again: then it would be said that nobody was reached in time.
            assert!(matches!(error, FleetError::NotLetIn { .. }), "{error:?}");
            let text = format!("{error:?} {}", words(&error));
            assert!(!text.contains("s3cret"), "{text}");
        }
    }
}

#[test]
fn a_server_that_is_not_there_is_an_error_in_time() {
    let mut nowhere = settings(&[1]);
    nowhere.patience = Duration::from_millis(500);
    let Err(error) = NetLog::open(nowhere, "shop", "kernel") else {
        panic!("nobody is there");
    };
    assert!(matches!(error, FleetError::Unreachable { .. }), "{error:?}");
    assert!(error.hint().is_some());
}

#[test]
fn tls_is_spoken_with_whoever_a_believed_authority_vouches_for() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let file = |name: &str| fixtures.join(name).display().to_string();
    let more = format!(
        "tls {{ cert_file: \"{}\", key_file: \"{}\" }}",
        file("server.pem"),
        file("server.key")
    );
    let cluster = Cluster::with(1, &more);
    let port = cluster.ports()[0];
    let open = |address: String, authorities: Option<PathBuf>| {
        let mut settings = cluster.settings();
        settings.address = Address::parse(&address).unwrap();
        settings.authorities = authorities;
        settings.patience = Duration::from_secs(20);
        NetLog::open(settings, "shop", "kernel")
    };
    let authority = Some(fixtures.join("authority.pem"));
    let log = open(format!("tls://localhost:{port}"), authority.clone()).unwrap();
    Writer::new("w", log).append(0);
    // A server that asks for TLS gets it.
    open(format!("nats://localhost:{port}"), authority.clone()).unwrap();
    for (address, authorities) in [
        (format!("tls://localhost:{port}"), None),
        (format!("tls://127.0.0.1:{port}"), authority),
    ] {
        let Err(error) = open(address, authorities) else {
            panic!("an unknown certificate was believed");
        };
        assert!(words(&error).contains("start TLS"), "{}", words(&error));
    }
}
