//! Loopback listeners inside that the host side serves, the same at every level.

use crate::request::Request;
use crate::workplace::{Workplace, as_each_user};

const ASK: &str =
    "for at in \"$@\"; do timeout 5 bash -c 'exec 3<>/dev/tcp/'$at' && cat <&3'; done";

fn asking(request: Request, locations: &[&str]) -> Request {
    let mut request = request;
    request.argv = ["/bin/bash", "-c", ASK, "ask"]
        .iter()
        .chain(locations)
        .map(|word| (*word).to_owned())
        .collect();
    request
}

#[test]
fn what_listens_inside_is_served_from_the_host() {
    as_each_user(|location| {
        let mut request = asking(
            location.shell(""),
            &[
                "127.0.0.1/3128",
                "::1/3129",
                "127.0.0.1/80",
                "127.0.0.1/3128",
            ],
        );
        request.listeners = ["127.0.0.1:3128", "[::1]:3129", "127.0.0.1:80"]
            .map(str::to_owned)
            .to_vec();
        let reply = location.run(&request);
        assert_eq!(
            reply.stdout, "listener 0\nlistener 1\nlistener 2\nlistener 0\n",
            "{reply:?}"
        );
    });
}

#[test]
fn many_sandboxes_listen_at_the_same_address() {
    as_each_user(|location| {
        let mut request = asking(location.shell(""), &["127.0.0.1/3128"]);
        request.listeners = vec!["127.0.0.1:3128".to_owned()];
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| assert_eq!(location.run(&request).stdout, "listener 0\n"));
            }
        });
    });
}

/// Finds a port of the host that is free, by taking it for a moment.
fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

#[test]
fn on_the_host_s_network_they_listen_on_the_host() {
    as_each_user(|location| {
        let on_host = Request {
            network: "host".to_owned(),
            ..location.shell("")
        };
        for request in [on_host, location.bare("")] {
            let port = free_port();
            let mut request = asking(request, &[&format!("127.0.0.1/{port}")]);
            request.listeners = vec![format!("127.0.0.1:{port}")];
            let reply = location.run(&request);
            assert_eq!(reply.stdout, "listener 0\n", "{reply:?}");
        }
    });
}

fn check_refused(location: &Workplace, listeners: &[&str], error: &str) {
    for request in [location.shell("echo ran"), location.bare("echo ran")] {
        let request = Request {
            listeners: listeners.iter().map(|at| (*at).to_owned()).collect(),
            ..request
        };
        let reply = location.run(&request);
        assert_eq!((reply.end.as_str(), reply.stdout.as_str()), (error, ""));
    }
}

#[test]
fn an_address_that_cannot_be_listened_at_is_an_error_at_every_level() {
    as_each_user(|location| {
        check_refused(
            location,
            &["192.0.2.1:80"],
            "set up the sandbox: bind on 192.0.2.1:80, which is not a loopback address: Cannot assign requested address (os error 99)",
        );
        check_refused(
            location,
            &["0.0.0.0:8080"],
            "set up the sandbox: bind on 0.0.0.0:8080, which is not a loopback address: Cannot assign requested address (os error 99)",
        );
        let port = free_port();
        let at = format!("127.0.0.1:{port}");
        check_refused(
            location,
            &[&at, &at],
            &format!("set up the sandbox: bind on {at}: Address already in use (os error 98)"),
        );
        let many = vec!["127.0.0.1:0"; 65];
        check_refused(
            location,
            &many,
            "set up the sandbox: bind on 65 listeners, at most 64: Argument list too long (os error 7)",
        );
    });
}
