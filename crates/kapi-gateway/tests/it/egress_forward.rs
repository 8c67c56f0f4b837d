//! Forwards to a port of the host, and to nothing else.

use std::io::{Read as _, Write as _};
use std::net::{Ipv6Addr, Shutdown, SocketAddr, TcpListener};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use kapi_gateway::egress::EgressLimits;
use kapi_gateway::egress::forward::Forward;
use kapi_gateway::egress::log::ConnectionRecord;
use kapi_sys::clock::SystemClock;

use crate::support::{Background, PATIENCE, Target, connect, line, read_to_end};

struct Forwarded {
    _background: Background,
    address: SocketAddr,
    records: Receiver<ConnectionRecord>,
}

fn forward(listener: TcpListener, port: u16, limits: EgressLimits) -> Forwarded {
    let address = listener.local_addr().expect("an address");
    let (sender, records) = channel();
    let background = Background::start(move |stop| {
        let on_record = |record| sender.send(record).expect("a test");
        let forward = Forward::new(port, limits, &SystemClock, &on_record);
        forward.serve(&listener, stop).expect("serve the forward");
    });
    Forwarded {
        _background: background,
        address,
        records,
    }
}

#[test]
fn a_port_of_the_host_is_reached_from_both_loopbacks() {
    let target = Target::start(|mut stream| {
        let mut all = String::new();
        stream.read_to_string(&mut all).expect("read");
        write!(stream, "got {all}").expect("write");
    });
    let port = target.address.port();
    for loopback in ["127.0.0.1:0", "[::1]:0"] {
        let listener = TcpListener::bind(loopback).expect("a listener");
        let forwarded = forward(listener, port, EgressLimits::usual());
        let mut client = connect(forwarded.address);
        client.write_all(b"ping").expect("send");
        client.shutdown(Shutdown::Write).expect("half close");
        assert_eq!(read_to_end(&mut client), "got ping");
        let record = forwarded.records.recv_timeout(PATIENCE).expect("a record");
        let expected = format!("Forward 127.0.0.1:{port} allowed by forward:{port} up 4 down 8");
        assert_eq!(line(&record), expected);
    }
}

#[test]
fn what_the_client_says_does_not_change_where_it_leads() {
    let target = Target::echo();
    let other = Target::echo();
    let listener = TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).expect("a listener");
    let forwarded = forward(listener, target.address.port(), EgressLimits::usual());
    let mut client = connect(forwarded.address);
    let request = format!("CONNECT {} HTTP/1.1\r\n\r\n", other.address);
    client.write_all(request.as_bytes()).expect("send");
    client.shutdown(Shutdown::Write).expect("half close");
    assert_eq!(
        read_to_end(&mut client),
        request,
        "the target got it as it was sent"
    );
    assert_eq!((target.n_connections(), other.n_connections()), (1, 0));
}

#[test]
fn a_port_where_nobody_listens_is_closed_and_recorded() {
    let closed = TcpListener::bind("127.0.0.1:0").expect("a listener");
    let port = closed.local_addr().expect("an address").port();
    drop(closed);
    let listener = TcpListener::bind("127.0.0.1:0").expect("a listener");
    let forwarded = forward(listener, port, EgressLimits::usual());
    assert_eq!(read_to_end(&mut connect(forwarded.address)), "");
    let record = forwarded.records.recv_timeout(PATIENCE).expect("a record");
    let start = format!("Forward 127.0.0.1:{port} allowed by forward:{port}, failed to connect to");
    assert!(line(&record).starts_with(&start), "{}", line(&record));
}

#[test]
fn a_silent_forward_is_closed() {
    let target = Target::echo();
    let limits = EgressLimits {
        idle_time_max: Duration::from_millis(50),
        ..EgressLimits::usual()
    };
    let listener = TcpListener::bind("127.0.0.1:0").expect("a listener");
    let forwarded = forward(listener, target.address.port(), limits);
    assert_eq!(read_to_end(&mut connect(forwarded.address)), "");
    let record = forwarded.records.recv_timeout(PATIENCE).expect("a record");
    assert!(line(&record).contains("cut: nothing moved for too long"));
}
