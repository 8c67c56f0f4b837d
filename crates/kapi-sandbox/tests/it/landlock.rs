//! The second lock: what Landlock keeps shut even if a mount were open, and what it must leave open.

use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};

use crate::workplace::as_each_user;

#[test]
fn a_run_says_which_version_holds_it() {
    as_each_user(|location| {
        let reply = location.run(&location.shell("true"));
        assert!(
            reply.grade.starts_with("namespaces, landlock "),
            "{reply:?}"
        );
        assert!(reply.grade.ends_with(", seccomp"), "{reply:?}");
        let bare = location.run(&location.bare("true"));
        assert_eq!(bare.grade, "no isolation", "{bare:?}");
    });
}

#[test]
fn writable_places_are_wholly_writable() {
    as_each_user(|location| {
        let line = "set -e; for place in /workspace ~ /tmp /var/tmp /run /dev/shm; do cd $place; \
            mkdir a b; echo x > a/f; mv a/f b/g; ln b/g h; ln -s b l; mkfifo p; rm p h l; \
            : > b/g; echo y > b/t; truncate -s 0 b/t; rm -r a b; done; \
            echo z > /dev/null; head -c 1 /dev/urandom | wc -c; echo out > /dev/stderr; cat /proc/self/comm";
        let reply = location.run(&location.shell(line));
        assert_eq!(
            (reply.end.as_str(), reply.stdout.as_str()),
            ("Exited(0)", "1\ncat\n"),
            "{reply:?}"
        );
    });
}

#[test]
fn an_abstract_socket_of_the_host_is_out_of_reach_even_on_its_network() {
    let name = format!("kapi-test-{}", std::process::id());
    let address = SocketAddr::from_abstract_name(name.as_bytes()).unwrap();
    let listener = UnixListener::bind_addr(&address).unwrap();
    let line = format!(
        "import socket\ns = socket.socket(socket.AF_UNIX)\ntry:\n    s.connect('\\0{name}')\n    print('connected')\nexcept OSError as error:\n    print(error.errno)"
    );
    as_each_user(|location| {
        let mut request = location.shell("");
        request.argv = ["/usr/bin/python3", "-c", &line]
            .map(str::to_owned)
            .to_vec();
        let bare = location.run(&crate::request::Request {
            argv: request.argv.clone(),
            ..location.bare("")
        });
        assert_eq!(bare.stdout, "connected\n", "{bare:?}");
        let apart = location.run(&request);
        assert_eq!(apart.stdout, "111\n", "{apart:?}");
        request.network = "host".to_owned();
        let joined = location.run(&request);
        assert_eq!(joined.stdout, "1\n", "{joined:?}");
    });
    drop(listener);
}
