//! SOCKS5: names, addresses, and everything of the protocol that is not served.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use crate::support::{Gate, Setup, Target, client_hello, read_exactly, read_to_end};

const GREETING: &[u8] = &[5, 1, 0];

fn by_name(name: &str, port: u16) -> Vec<u8> {
    let mut request = vec![5, 1, 0, 3, u8::try_from(name.len()).expect("short")];
    request.extend(name.as_bytes());
    request.extend(port.to_be_bytes());
    request
}

/// Sends a request after the greeting and returns the client and the reply code.
fn ask(gate: &Gate, request: &[u8]) -> (TcpStream, u8) {
    let mut client = gate.client();
    client.write_all(GREETING).expect("send");
    let mut chosen = [0; 2];
    client.read_exact(&mut chosen).expect("a method");
    assert_eq!(chosen, [5, 0]);
    client.write_all(request).expect("send");
    let mut reply = [0; 10];
    client.read_exact(&mut reply).expect("a reply");
    assert_eq!((reply[0], &reply[2..]), (5, &[0, 1, 0, 0, 0, 0, 0, 0][..]));
    (client, reply[1])
}

#[test]
fn a_name_is_looked_up_on_the_host_and_carried() {
    let target = Target::echo();
    let gate = Setup::filtered(&["private:allowed.test:443"])
        .name("allowed.test", &[target.address])
        .start();
    let (mut client, reply) = ask(&gate, &by_name("Allowed.test", 443));
    assert_eq!(reply, 0);
    client.write_all(b"ping").expect("send");
    assert_eq!(read_exactly(&mut client, 4), "ping");
    drop(client);
    let expected = "Socks allowed.test:443 allowed by private:allowed.test:443 up 4 down 4";
    assert_eq!(gate.line(), expected);
    assert_eq!(gate.lookups(), ["allowed.test:443"]);
    gate.end();
}

#[test]
fn an_address_needs_its_own_rule() {
    let target = Target::echo();
    let port = target.address.port();
    let gate = Setup::filtered(&[&format!("private:127.0.0.1:{port}")]).start();
    let [high, low] = port.to_be_bytes();
    let v4 = |last| vec![5, 1, 0, 1, 127, 0, 0, last, high, low];
    assert_eq!(ask(&gate, &v4(1)).1, 0);
    assert_eq!(ask(&gate, &v4(2)).1, 2);
    let mut mapped = vec![5, 1, 0, 4];
    mapped.extend([
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 0, 0, 1, high, low,
    ]);
    assert_eq!(ask(&gate, &mapped).1, 0);
    let mut loopback = vec![5, 1, 0, 4];
    loopback.extend([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, high, low]);
    assert_eq!(ask(&gate, &loopback).1, 2);
    // An address written as a name is still an address.
    assert_eq!(ask(&gate, &by_name("127.0.0.1", port)).1, 0);
    assert_eq!(ask(&gate, &by_name("127.0.0.2", port)).1, 2);
    assert_eq!(gate.lookups(), Vec::<String>::new());
}

#[test]
fn a_denial_is_the_reply_for_rules() {
    let gate = Setup::filtered(&["github.com", "rebound.test"])
        .name(
            "rebound.test",
            &["127.0.0.1:9".parse().expect("an address")],
        )
        .start();
    for name in ["evilgithub.com", "www.github.com", "rebound.test"] {
        let (mut client, reply) = ask(&gate, &by_name(name, 443));
        assert_eq!(reply, 2, "{name}");
        assert_eq!(read_to_end(&mut client), "");
    }
    assert_eq!(
        ask(&gate, &by_name("github.com", 443)).1,
        4,
        "the name is unknown"
    );
    for name in [
        "2130706433",
        "0x7f.1",
        "a@github.com",
        "github.com\r\n",
        "",
        "githu\u{ff42}.com",
    ] {
        assert_eq!(ask(&gate, &by_name(name, 443)).1, 1, "{name:?}");
    }
    assert_eq!(ask(&gate, &by_name("github.com", 0)).1, 1);
}

#[test]
fn what_is_not_served_has_its_reply_code() {
    let gate = Setup::filtered(&["private:127.0.0.1:9"]).start();
    let bind = [5, 2, 0, 1, 127, 0, 0, 1, 0, 9];
    assert_eq!(ask(&gate, &bind).1, 7);
    let associate = [5, 3, 0, 1, 127, 0, 0, 1, 0, 9];
    assert_eq!(ask(&gate, &associate).1, 7);
    let unknown_address = [5, 1, 0, 2, 127, 0, 0, 1, 0, 9];
    assert_eq!(ask(&gate, &unknown_address).1, 8);
    let old_version = [4, 1, 0, 1, 127, 0, 0, 1, 0, 9];
    assert_eq!(ask(&gate, &old_version).1, 1);
    let mut client = gate.client();
    client.write_all(&[5, 1, 2]).expect("send");
    assert_eq!(client.shutdown(std::net::Shutdown::Write).ok(), Some(()));
    let mut refused = Vec::new();
    client.read_to_end(&mut refused).expect("a reply");
    assert_eq!(refused, [5, 0xff], "only without a log-in");
}

#[test]
fn a_hello_for_another_host_is_refused_here_too() {
    let target = Target::echo();
    let gate = Setup::filtered(&["private:allowed.test:443"])
        .name("allowed.test", &[target.address])
        .start();
    let (mut client, reply) = ask(&gate, &by_name("allowed.test", 443));
    assert_eq!(reply, 0);
    client
        .write_all(&client_hello(&["evil.test"]))
        .expect("send");
    assert_eq!(read_to_end(&mut client), "");
    assert!(
        gate.line()
            .contains("denied: the TLS hello names evil.test")
    );
}

#[test]
fn half_a_request_ends_quietly() {
    let gate = Setup::filtered(&[]).start();
    for start in [
        &[5][..],
        &[5, 1],
        &[5, 1, 0, 5, 1],
        &[5, 1, 0, 5, 1, 0, 3, 200, b'a'],
    ] {
        let mut client = gate.client();
        client.write_all(start).expect("send");
        client
            .shutdown(std::net::Shutdown::Write)
            .expect("half close");
        assert!(read_to_end(&mut client).len() <= 2, "{start:?}");
    }
    gate.end();
}
