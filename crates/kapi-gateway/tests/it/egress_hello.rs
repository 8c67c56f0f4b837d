//! What a client says first in a tunnel: the host of its hello must be the one that was allowed.

use std::io::{Read as _, Write as _};
use std::net::Shutdown;
use std::sync::Mutex;
use std::sync::mpsc::channel;

use crate::egress_connect::gate_to;
use crate::support::{PATIENCE, Target, client_hello, read_exactly, read_to_end};

#[test]
fn a_hello_for_the_same_host_passes_whole() {
    let target = Target::echo();
    let gate = gate_to(target.address);
    let not_tls = b"SSH-2.0-x\r\n".to_vec();
    for hello in [
        client_hello(&["allowed.test"]),
        client_hello(&["ALLOWED.test"]),
        client_hello(&[]),
        not_tls,
    ] {
        let mut client = gate.tunnel("allowed.test:443");
        // Byte by byte, so that the check sees every incomplete form of it.
        for byte in &hello {
            client.write_all(&[*byte]).expect("send");
        }
        let mut echoed = vec![0; hello.len()];
        client.read_exact(&mut echoed).expect("an echo");
        assert_eq!(echoed, hello);
    }
}

#[test]
fn a_hello_for_another_host_never_reaches_the_target() {
    let (saw, seen) = channel();
    let saw = Mutex::new(saw);
    let target = Target::start(move |mut stream| {
        let mut all = Vec::new();
        if stream.read_to_end(&mut all).is_ok() {
            saw.lock().expect("a lock").send(all.len()).expect("a test");
        }
    });
    let gate = gate_to(target.address);
    let mut huge = client_hello(&["allowed.test"]);
    huge[3..5].copy_from_slice(&[0xff, 0xff]);
    huge[6..9].copy_from_slice(&[0xff, 0xff, 0xff]);
    huge.resize(100_000, 0);
    let mut two_records = client_hello(&["evil.test"]);
    let rest = two_records.split_off(20);
    two_records[3..5].copy_from_slice(&[0, 15]);
    let rest_length = u8::try_from(rest.len()).expect("short");
    two_records.extend([22, 3, 1, 0, rest_length]);
    two_records.extend(rest);
    for (hello, reason) in [
        (
            client_hello(&["evil.test"]),
            "the TLS hello names evil.test and not allowed.test",
        ),
        (
            two_records,
            "the TLS hello names evil.test and not allowed.test",
        ),
        (
            client_hello(&["127.0.0.1"]),
            "the TLS hello names 127.0.0.1 and not allowed.test",
        ),
        (
            client_hello(&[""]),
            "the TLS hello names  and not allowed.test",
        ),
        (
            client_hello(&["allowed.test", "evil.test"]),
            "the TLS hello cannot be read",
        ),
        (
            vec![22, 3, 1, 0, 4, 2, 0, 0, 0],
            "the TLS hello cannot be read",
        ),
        (vec![22, 3, 1, 0, 0], "the TLS hello cannot be read"),
        (huge, "the TLS hello cannot be read"),
    ] {
        let mut client = gate.tunnel("allowed.test:443");
        // The proxy may close before it has read everything.
        let sent = client.write_all(&hello);
        assert!(sent.is_ok() || hello.len() > 10_000);
        assert_eq!(read_to_end(&mut client), "");
        let line = gate.line();
        assert_eq!(
            line,
            format!("Connect allowed.test:443 denied: {reason} up 0 down 0")
        );
        assert_eq!(seen.recv_timeout(PATIENCE), Ok(0), "{reason}");
    }
    let mut client = gate.tunnel("allowed.test:443");
    client
        .write_all(&client_hello(&["allowed.test"])[..30])
        .expect("send");
    client.shutdown(Shutdown::Write).expect("half close");
    assert_eq!(read_to_end(&mut client), "");
    assert!(gate.line().contains("denied: the TLS hello is not whole"));
    assert_eq!(seen.recv_timeout(PATIENCE), Ok(0));
}

#[test]
fn a_server_may_speak_first() {
    let target = Target::start(|mut stream| {
        stream.write_all(b"220 ready\r\n").expect("write");
        let mut line = [0; 4];
        stream.read_exact(&mut line).expect("read");
        stream.write_all(b"bye").expect("write");
    });
    let gate = gate_to(target.address);
    let mut client = gate.tunnel("allowed.test:443");
    assert_eq!(read_exactly(&mut client, 11), "220 ready\r\n");
    client.write_all(b"QUIT").expect("send");
    assert_eq!(read_to_end(&mut client), "bye");
}
