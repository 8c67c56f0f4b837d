//! What can be reached from inside: the listeners that the host side serves, and nothing else.

use std::net::TcpListener;

use crate::place::Place;
use crate::{Behaviour, notify, run, say};

pub(crate) const BEHAVIOURS: &[Behaviour] = &[
    (
        "listeners are served from the host",
        served,
        "listener 0\nlistener 1\nrefused\nlistener 0",
    ),
    ("nothing of the host listens inside", alone, "refused"),
    (
        "the network is only a loopback",
        |location| {
            let line = "/usr/bin/python3 -I -c 'import socket; print(*[name for _, name in socket.if_nameindex()])'; tail -n +3 /proc/net/dev | wc -l";
            say(location, line)
        },
        "lo\n1",
    ),
    ("its own loopback works", own, "heard"),
    ("an address that is not a loopback's", foreign, "refused"),
];

/// A shell line that asks at each place and says what came.
const ASK: &str = "for at in \"$@\"; do timeout 9 bash -c 'exec 3<>/dev/tcp/'$at' && cat <&3' 2>/dev/null || echo refused; done";

fn asked(location: &Place, at: &[&str], listeners: &[&str]) -> String {
    let mut request = location.shell(ASK);
    request.argv.push("ask".to_owned());
    request.argv.extend(at.iter().map(|one| (*one).to_owned()));
    request.listeners = listeners.iter().map(|one| (*one).to_owned()).collect();
    notify(&run(location, &request))
}

fn served(location: &Place) -> String {
    let at = [
        "127.0.0.1/3128",
        "::1/3129",
        "127.0.0.1/3130",
        "127.0.0.1/3128",
    ];
    asked(location, &at, &["127.0.0.1:3128", "[::1]:3129"])
}

fn alone(location: &Place) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    asked(location, &[&format!("127.0.0.1/{port}")], &[])
}

fn own(location: &Place) -> String {
    let script = "import socket; s = socket.create_server(('127.0.0.1', 0)); c = socket.create_connection(s.getsockname()); s.accept()[0].send(b'heard'); print(c.recv(9).decode())";
    let mut request = location.shell("");
    request.argv = ["/usr/bin/python3", "-I", "-c", script]
        .map(str::to_owned)
        .to_vec();
    notify(&run(location, &request))
}

fn foreign(location: &Place) -> String {
    let mut request = location.shell("echo ran");
    request.listeners = vec!["192.0.2.1:80".to_owned()];
    let reply = run(location, &request);
    if reply.end.contains("bind on 192.0.2.1:80") && reply.stdout.is_empty() {
        return "refused".to_owned();
    }
    notify(&reply)
}
