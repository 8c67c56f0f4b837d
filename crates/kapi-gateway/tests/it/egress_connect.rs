//! CONNECT tunnels: what gets through, and every disguise that does not.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use kapi_gateway::egress::policy::EgressMode;

use crate::support::{Gate, PATIENCE, Setup, Target, at, read_exactly, read_to_end, status};

/// Texts that some reader takes for a host and a port, and that are none.
const UNREADABLE: &[&str] = &[
    "2130706433:443",
    "0x7f000001:443",
    "0x7f.1:443",
    "0177.0.0.1:443",
    "127.1:443",
    "127.0.0.01:443",
    "[::1%25lo]:443",
    "[::1%lo]:443",
    "::1:443",
    "user@allowed.test:443",
    "allowed.test:443@evil.test:443",
    "evil.test#allowed.test:443",
    "evil.test\\allowed.test:443",
    "evil.test/allowed.test:443",
    "evil.test%00.allowed.test:443",
    "evil.test?allowed.test:443",
    "http://allowed.test:443",
    "allowed.test",
    "allowed.test:",
    "allowed.test:0443",
    "allowed.test:0",
    "allowed.test:+443",
    "allowed.test:443:443",
    "allowed.test..:443",
    ".allowed.test:443",
    ":443",
];

/// A gate whose one rule leads to `target` as `allowed.test:443`.
pub(crate) fn gate_to(target: SocketAddr) -> Gate {
    Setup::filtered(&["private:allowed.test:443"])
        .name("allowed.test", &[target])
        .start()
}

fn connect_request(target: &str) -> Vec<u8> {
    format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n").into_bytes()
}

#[test]
fn a_tunnel_carries_both_ways_and_passes_half_closes_on() {
    let target = Target::start(|mut stream| {
        let mut all = String::new();
        stream.read_to_string(&mut all).expect("read");
        write!(stream, "got {all}").expect("write");
    });
    let gate = gate_to(target.address);
    let mut client = gate.tunnel("allowed.test:443");
    client.write_all(b"ping").expect("send");
    client.shutdown(Shutdown::Write).expect("half close");
    assert_eq!(read_to_end(&mut client), "got ping");
    let expected = "Connect allowed.test:443 allowed by private:allowed.test:443 up 4 down 8";
    assert_eq!(gate.line(), expected);
    gate.end();
}

#[test]
fn bytes_sent_with_the_request_are_not_lost() {
    let target = Target::echo();
    let gate = gate_to(target.address);
    let mut request = connect_request("allowed.test:443");
    request.extend_from_slice(b"early");
    let answer = gate.ask(&request);
    assert_eq!(answer, "HTTP/1.1 200 Connection Established\r\n\r\nearly");
}

#[test]
fn more_bytes_than_any_buffer_arrive_whole_both_ways() {
    let target = Target::echo();
    let gate = gate_to(target.address);
    let mut client = gate.tunnel("allowed.test:443");
    let sent: Vec<u8> = (0..8_000_000_u32)
        .map(|number| (number % 251) as u8)
        .collect();
    let mut sender = client.try_clone().expect("a clone");
    let received = std::thread::scope(|scope| {
        scope.spawn(|| {
            sender.write_all(&sent).expect("send");
            sender.shutdown(Shutdown::Write).expect("half close");
        });
        let mut received = Vec::new();
        client.read_to_end(&mut received).expect("receive");
        received
    });
    assert!(sent == received, "the bytes that came back are others");
    let record = gate.record();
    assert_eq!((record.bytes_up, record.bytes_down), (8_000_000, 8_000_000));
}

#[test]
fn a_slow_reader_gets_the_tail_after_both_sides_are_done() {
    let target = Target::start(|mut stream| {
        let mut all = Vec::new();
        stream.read_to_end(&mut all).expect("read");
        stream.write_all(&vec![b'x'; 6_000_000]).expect("write");
    });
    let gate = gate_to(target.address);
    let mut client = gate.tunnel("allowed.test:443");
    client.shutdown(Shutdown::Write).expect("half close");
    // In small pieces, so that the target is done and gone long before its bytes have passed.
    let mut n_bytes = 0;
    let mut piece = [0; 512];
    while let Ok(length @ 1..) = client.read(&mut piece) {
        n_bytes += length;
    }
    assert_eq!(n_bytes, 6_000_000);
    assert!(gate.line().ends_with("up 0 down 6000000"));
}

#[test]
fn a_denial_says_how_a_person_allows_it() {
    let gate = Setup::filtered(&["github.com"]).start();
    let answer = gate.ask(&connect_request("evilgithub.com:8443"));
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    assert_eq!(status(head), "HTTP/1.1 403 Forbidden");
    assert_eq!(
        body,
        "Kapi denied this request: no rule allows evilgithub.com:8443.\n\
         To allow it, the user must add this to Kapi's configuration:\n\n\
         [network]\nallow = [\"evilgithub.com:8443\"]\n"
    );
    let denied =
        "Connect evilgithub.com:8443 denied: no rule allows evilgithub.com:8443 up 0 down 0";
    assert_eq!(gate.line(), denied);
    assert_eq!(
        gate.lookups(),
        Vec::<String>::new(),
        "what is denied is not looked up"
    );
    gate.end();
}

#[test]
fn no_disguise_of_a_host_gets_through() {
    let target = Target::echo();
    let gate = gate_to(target.address);
    let port = target.address.port();
    let forbidden = [
        "evilallowed.test:443".to_owned(),
        "allowed.test.evil.test:443".to_owned(),
        "sub.allowed.test:443".to_owned(),
        "allowed.test:22".to_owned(),
        format!("allowed.test:{port}"),
        format!("127.0.0.1:{port}"),
        format!("[::1]:{port}"),
        format!("[::ffff:127.0.0.1]:{port}"),
        format!("[::ffff:7f00:1]:{port}"),
        format!("localhost:{port}"),
        "169.254.169.254:80".to_owned(),
        "[fd00:ec2::254]:80".to_owned(),
        "0.0.0.0:443".to_owned(),
    ];
    for wanted in &forbidden {
        let answer = gate.ask(&connect_request(wanted));
        assert_eq!(status(&answer), "HTTP/1.1 403 Forbidden", "{wanted}");
        assert!(gate.line().contains("denied: no rule allows"), "{wanted}");
    }
    for wanted in UNREADABLE {
        let answer = gate.ask(&connect_request(wanted));
        assert_eq!(status(&answer), "HTTP/1.1 400 Bad Request", "{wanted}");
        assert!(gate.line().contains("denied: "), "{wanted}");
    }
    for wanted in [
        "allow\u{435}d.test:443",
        "allowed.test\0:443",
        "allowed.test:443\r\nX",
    ] {
        let answer = gate.ask(&connect_request(wanted));
        assert_eq!(status(&answer), "HTTP/1.1 400 Bad Request", "{wanted:?}");
        assert!(
            gate.line().contains("denied: failed to read the message"),
            "{wanted:?}"
        );
    }
    assert_eq!(target.n_connections(), 0);
    assert_eq!(gate.lookups(), Vec::<String>::new());
    gate.end();
}

#[test]
fn one_spelling_of_an_allowed_host_is_as_good_as_another() {
    let target = Target::echo();
    let gate = gate_to(target.address);
    for wanted in ["ALLOWED.Test:443", "allowed.test.:443"] {
        let answer = gate.ask(&connect_request(wanted));
        assert_eq!(status(&answer), "HTTP/1.1 200 Connection Established");
    }
}

#[test]
fn the_host_header_and_the_framing_must_agree_with_the_target() {
    let target = Target::echo();
    let gate = gate_to(target.address);
    for headers in [
        "Host: evil.test:443",
        "Host: allowed.test:444",
        "Host: allowed.test:443\r\nHost: allowed.test:443",
        "Host: allowed.test, evil.test",
        "Content-Length: 5",
        "Transfer-Encoding: chunked",
        "Content-Length: 0\r\nContent-Length: 0",
    ] {
        let request = format!("CONNECT allowed.test:443 HTTP/1.1\r\n{headers}\r\n\r\n");
        let answer = gate.ask(request.as_bytes());
        assert_eq!(status(&answer), "HTTP/1.1 400 Bad Request", "{headers}");
    }
    assert_eq!(target.n_connections(), 0);
    for headers in ["Host: allowed.test", "Host: ALLOWED.test.:443", "X: y"] {
        let request = format!("CONNECT allowed.test:443 HTTP/1.1\r\n{headers}\r\n\r\n");
        let answer = gate.ask(request.as_bytes());
        assert_eq!(
            status(&answer),
            "HTTP/1.1 200 Connection Established",
            "{headers}"
        );
    }
}

#[test]
fn an_allowed_name_that_leads_home_is_refused() {
    let target = Target::echo();
    for address in [
        "127.0.0.1",
        "10.1.2.3",
        "192.168.0.1",
        "169.254.169.254",
        "100.64.0.1",
        "0.0.0.0",
        "::1",
        "::ffff:127.0.0.1",
        "64:ff9b::7f00:1",
        "fd00::1",
        "fe80::1",
        "224.0.0.1",
        "255.255.255.255",
    ] {
        let mut answer = at(address);
        answer.set_port(target.address.port());
        let gate = Setup::filtered(&["rebound.test"])
            .name("rebound.test", &[answer])
            .start();
        let answer = gate.ask(&connect_request("rebound.test:443"));
        assert_eq!(status(&answer), "HTTP/1.1 403 Forbidden", "{address}");
        assert!(
            gate.line().contains("denied: rebound.test:443 resolves to"),
            "{address}"
        );
    }
    assert_eq!(target.n_connections(), 0);
}

#[test]
fn a_refused_address_says_which_rule_would_reach_it() {
    let check = |address: &str, mode: EgressMode, expected: &str| {
        let mut setup = Setup::filtered(&["a.test"]).name("a.test", &[at(address)]);
        setup.mode = mode;
        let answer = setup.start().ask(&connect_request("a.test:443"));
        let (_, body) = answer.split_once("\r\n\r\n").expect("a head");
        let rule = body.lines().find(|line| line.starts_with("allow = "));
        assert_eq!(rule.unwrap_or("none"), expected, "{address}");
    };
    check(
        "10.0.0.1",
        EgressMode::Filtered,
        "allow = [\"private:a.test:443\"]",
    );
    check(
        "127.0.0.1",
        EgressMode::Open,
        "allow = [\"private:a.test:443\"]",
    );
    check(
        "169.254.169.254",
        EgressMode::Open,
        "allow = [\"private:169.254.169.254:443\"]",
    );
    check(
        "fd00:ec2::254",
        EgressMode::Open,
        "allow = [\"private:[fd00:ec2::254]:443\"]",
    );
    check("0.0.0.0", EgressMode::Open, "none");
}

#[test]
fn all_answers_are_judged_once_and_only_a_judged_one_is_dialled() {
    let target = Target::echo();
    let answers = Arc::new(Mutex::new(vec![
        vec![target.address],
        vec![at("169.254.169.254"), at("224.0.0.1"), target.address],
    ]));
    let resolve = Arc::new(move |_: &str, _: u16| {
        let next = answers.lock().expect("a lock").pop();
        Ok(next.expect("a name is looked up once a connection"))
    });
    let gate = Setup::filtered(&["private:allowed.test:443"])
        .resolve(resolve)
        .start();
    for _ in 0..2 {
        let mut client = gate.tunnel("allowed.test:443");
        client.write_all(b"x").expect("send");
        assert_eq!(read_exactly(&mut client, 1), "x");
    }
    assert_eq!(target.n_connections(), 2);
}

#[test]
fn a_literal_is_reached_only_where_it_was_written() {
    let target = Target::echo();
    let port = target.address.port();
    let rule = format!("private:127.0.0.1:{port}");
    let gate = Setup::filtered(&[&rule, "*.0.0.1", "127.0.0.2"][..1]).start();
    let ok = "HTTP/1.1 200 Connection Established";
    assert_eq!(
        status(&gate.ask(&connect_request(&format!("127.0.0.1:{port}")))),
        ok
    );
    assert_eq!(
        status(&gate.ask(&connect_request(&format!("[::ffff:127.0.0.1]:{port}")))),
        ok
    );
    let other = gate.ask(&connect_request(&format!("127.0.0.2:{port}")));
    assert_eq!(status(&other), "HTTP/1.1 403 Forbidden");
    let public_only = Setup::filtered(&[&format!("127.0.0.1:{port}")]).start();
    let answer = public_only.ask(&connect_request(&format!("127.0.0.1:{port}")));
    assert_eq!(status(&answer), "HTTP/1.1 403 Forbidden");
}

#[test]
fn no_network_is_none() {
    let mut setup = Setup::filtered(&["private:a.test:443"]).name("a.test", &[at("127.0.0.1")]);
    setup.mode = EgressMode::None;
    let gate = setup.start();
    let answer = gate.ask(&connect_request("a.test:443"));
    assert_eq!(status(&answer), "HTTP/1.1 403 Forbidden");
    assert!(answer.ends_with("Kapi denied this request: this run has no network.\n"));
}

#[test]
fn what_the_world_refuses_is_told_apart_from_a_rule() {
    let closed = std::net::TcpListener::bind("127.0.0.1:0").expect("a listener");
    let address = closed.local_addr().expect("an address");
    drop(closed);
    let gate = Setup::filtered(&["private:closed.test:443", "unknown.test", "empty.test"])
        .name("closed.test", &[address])
        .name("empty.test", &[])
        .start();
    let refused = gate.ask(&connect_request("closed.test:443"));
    assert_eq!(status(&refused), "HTTP/1.1 502 Bad Gateway");
    assert!(
        refused.contains(&format!("Kapi failed to connect to {address}: ")),
        "{refused}"
    );
    assert!(
        gate.line()
            .contains("allowed by private:closed.test:443, failed to connect")
    );
    let unknown = gate.ask(&connect_request("unknown.test:443"));
    assert!(
        unknown.contains("Kapi failed to look up unknown.test: no such name."),
        "{unknown}"
    );
    assert!(
        gate.line()
            .contains("allowed by unknown.test, failed to look up")
    );
    let empty = gate.ask(&connect_request("empty.test:443"));
    assert!(
        empty.contains("Kapi failed to find an address of empty.test."),
        "{empty}"
    );
}

#[test]
fn a_resolver_that_hangs_is_given_up() {
    let (release, released) = channel::<()>();
    let released = Mutex::new(released);
    let resolve = Arc::new(move |_: &str, _: u16| {
        let ended = released.lock().expect("a lock").recv_timeout(PATIENCE);
        assert!(ended.is_err(), "nothing is sent, only hung up");
        Ok(Vec::new())
    });
    let gate = Setup::filtered(&["a.test"])
        .resolve(resolve)
        .limits(|limits| limits.lookup_time_max = Duration::from_millis(50))
        .start();
    let answer = gate.ask(&connect_request("a.test:443"));
    assert_eq!(status(&answer), "HTTP/1.1 504 Gateway Timeout");
    assert!(gate.line().contains("failed to look up a.test in time"));
    drop(release);
}
