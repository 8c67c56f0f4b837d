//! Limits: slow, large, many and endless clients, and the stop sign that ends them all.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::sync::Mutex;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use crate::support::{
    Gate, PATIENCE, Setup, Target, client_hello, connect, open_tunnel, read_exactly, read_to_end,
    status,
};

/// A limit into which a tunnel fits that is opened, and a byte that is sent, on a busy machine too.
const ROOMY: Duration = Duration::from_secs(2);

fn setup_to(target: &Target) -> Setup {
    Setup::filtered(&["private:a.test:443"]).name("a.test", &[target.address])
}

/// Returns whether the peer has closed or reset the connection.
fn is_closed(client: &mut TcpStream) -> bool {
    matches!(client.read(&mut [0]), Ok(0) | Err(_))
}

#[test]
fn a_head_that_comes_byte_by_byte_is_given_up() {
    let gate = Setup::filtered(&[])
        .limits(|limits| limits.head.time_max = Duration::from_millis(100))
        .start();
    let mut client = gate.client();
    let mut sender = client.try_clone().expect("a clone");
    let (closed, was_closed) = channel();
    thread::scope(|scope| {
        scope.spawn(move || {
            // A byte now and then, until the proxy has hung up.
            let pause = Duration::from_millis(5);
            while was_closed.recv_timeout(pause).is_err() && sender.write_all(b"a").is_ok() {}
        });
        let answer = read_to_end(&mut client);
        assert_eq!(status(&answer), "HTTP/1.1 408 Request Timeout");
        closed.send(()).ok();
    });
    assert!(
        gate.line()
            .contains("denied: failed to read the message: the peer was too slow in its head")
    );
    let mut silent = gate.client();
    silent.write_all(b"GET http://a").expect("send");
    assert_eq!(
        status(&read_to_end(&mut silent)),
        "HTTP/1.1 408 Request Timeout"
    );
    let mut in_greeting = gate.client();
    in_greeting.write_all(&[5, 1]).expect("send");
    assert_eq!(read_to_end(&mut in_greeting), "");
}

#[test]
fn a_client_that_says_nothing_is_hung_up_on() {
    let target = Target::echo();
    let gate = setup_to(&target)
        .limits(|limits| limits.quiet_time_max = Duration::from_millis(50))
        .start();
    assert_eq!(read_to_end(&mut gate.client()), "");
    gate.end();
    let gate = setup_to(&target)
        .limits(|limits| limits.idle_time_max = ROOMY)
        .start();
    let mut silent_tunnel = gate.tunnel("a.test:443");
    assert_eq!(read_to_end(&mut silent_tunnel), "");
    assert!(gate.line().contains("cut: nothing moved for too long"));
    let mut used_tunnel = gate.tunnel("a.test:443");
    used_tunnel.write_all(b"x").expect("send");
    assert_eq!(read_to_end(&mut used_tunnel), "x");
    assert!(
        gate.line()
            .contains("cut: nothing moved for too long up 1 down 1")
    );
    gate.end();
}

#[test]
fn half_a_hello_is_given_up() {
    let target = Target::echo();
    let gate = setup_to(&target)
        .limits(|limits| limits.head.time_max = ROOMY)
        .start();
    let mut client = gate.tunnel("a.test:443");
    client
        .write_all(&client_hello(&["a.test"])[..20])
        .expect("send");
    assert_eq!(read_to_end(&mut client), "");
    assert!(
        gate.line()
            .contains("denied: the TLS hello did not come in time")
    );
}

#[test]
fn a_tunnel_does_not_live_for_ever() {
    let target = Target::start(|mut stream| while stream.write_all(b"tick").is_ok() {});
    let gate = setup_to(&target)
        .limits(|limits| limits.connection_time_max = ROOMY)
        .start();
    let mut client = gate.tunnel("a.test:443");
    read_to_end(&mut client);
    assert!(gate.line().contains("cut: it was open for too long"));
}

#[test]
fn a_head_over_its_limits_is_refused() {
    let gate = Setup::filtered(&[]).start();
    let answer = gate.ask(format!("GET http://a.test/{}", "a".repeat(40_000)).as_bytes());
    assert_eq!(
        status(&answer),
        "HTTP/1.1 431 Request Header Fields Too Large"
    );
    assert!(
        gate.line()
            .contains("denied: failed to read the message: its head is longer than 32768 bytes")
    );
    let lines = "X: y\r\n".repeat(101);
    let answer = gate.ask(format!("GET http://a.test/ HTTP/1.1\r\n{lines}\r\n").as_bytes());
    assert_eq!(
        status(&answer),
        "HTTP/1.1 431 Request Header Fields Too Large"
    );
    assert!(
        gate.line()
            .contains("its head has more than 100 header lines")
    );
}

#[test]
fn a_run_moves_no_more_bytes_than_it_may() {
    let target = Target::start(|mut stream| while stream.write_all(&[b'x'; 4096]).is_ok() {});
    let gate = setup_to(&target)
        .limits(|limits| limits.run_bytes_max = 1_000_000)
        .start();
    let mut client = gate.tunnel("a.test:443");
    assert!(read_to_end(&mut client).len() <= 1_000_000);
    let record = gate.record();
    assert!(
        record.bytes_down <= 1_000_000 && record.bytes_down > 500_000,
        "{record:?}"
    );
    let mut next = gate.tunnel("a.test:443");
    assert!(read_to_end(&mut next).len() < 500_000);
}

#[test]
fn a_plain_request_counts_from_its_first_byte() {
    let target = Target::echo();
    let gate = Setup::filtered(&["private:a.test:80"])
        .name("a.test", &[target.address])
        .limits(|limits| limits.run_bytes_max = 10)
        .start();
    let answer = gate.ask(b"GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n");
    assert_eq!(status(&answer), "HTTP/1.1 403 Forbidden");
    let expected = "Http a.test:80 GET / denied: this run has used up its connections or bytes";
    assert!(gate.line().starts_with(expected));
}

#[test]
fn a_denial_is_read_even_by_a_client_that_is_still_sending() {
    let gate = Setup::filtered(&[]).start();
    let head = "POST http://a.test/ HTTP/1.1\r\nHost: a.test\r\nContent-Length: 100000\r\n\r\n";
    let mut client = gate.client();
    client.write_all(head.as_bytes()).expect("send");
    assert_eq!(client.peek(&mut [0]).ok(), Some(1), "the denial is there");
    for _ in 0..10 {
        client.write_all(&[b'x'; 10_000]).expect("send");
    }
    assert_eq!(status(&read_to_end(&mut client)), "HTTP/1.1 403 Forbidden");
}

#[test]
fn a_run_asks_no_more_often_than_it_may() {
    let gate = Setup::filtered(&[])
        .limits(|limits| limits.run_requests_max = 2)
        .start();
    for _ in 0..4 {
        let answer = gate.ask(b"CONNECT a.test:443 HTTP/1.1\r\n\r\n");
        assert_eq!(status(&answer), "HTTP/1.1 403 Forbidden");
    }
    assert!(gate.line().contains("no rule allows"));
    assert!(gate.line().contains("no rule allows"));
    assert!(
        gate.line()
            .contains("denied: the run made more than 2 requests")
    );
    gate.end();
}

#[test]
fn two_hundred_tunnels_at_once_are_carried() {
    let target = Target::echo();
    let gate = setup_to(&target).start();
    let (address, n_clients) = (gate.address, 200_u32);
    let open = move |_| open_tunnel(address, "a.test:443");
    let mut clients: Vec<TcpStream> = thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|_| scope.spawn(move || (0..n_clients / 8).map(open).collect::<Vec<_>>()))
            .collect();
        let opened = threads
            .into_iter()
            .map(|thread| thread.join().expect("a client"));
        opened.flatten().collect()
    });
    for (number, client) in clients.iter_mut().enumerate() {
        write!(client, "{number:08}").expect("send");
    }
    for (number, client) in clients.iter_mut().enumerate() {
        assert_eq!(read_exactly(client, 8), format!("{number:08}"));
    }
    assert_eq!(target.n_connections(), 200);
    drop(clients);
    for _ in 0..n_clients {
        let record = gate.record();
        assert_eq!((record.bytes_up, record.bytes_down), (8, 8));
    }
    gate.end();
}

#[test]
fn connections_over_the_limit_wait_for_a_free_place() {
    let target = Target::echo();
    let gate = setup_to(&target)
        .limits(|limits| limits.connections_max = 2)
        .start();
    let first = gate.tunnel("a.test:443");
    let second = gate.tunnel("a.test:443");
    let (asked, was_asked) = channel();
    let address = gate.address;
    thread::scope(|scope| {
        let waiting = scope.spawn(move || {
            let mut client = connect(address);
            client
                .write_all(b"CONNECT b.test:443 HTTP/1.1\r\n\r\n")
                .expect("send");
            asked.send(()).expect("a test");
            read_to_end(&mut client)
        });
        was_asked
            .recv_timeout(PATIENCE)
            .expect("the third has asked");
        // Both places are taken, so nothing can have been decided about the third.
        assert!(gate.records.try_recv().is_err());
        drop(first);
        assert!(gate.line().contains("allowed by"));
        assert_eq!(
            status(&waiting.join().expect("an answer")),
            "HTTP/1.1 403 Forbidden"
        );
    });
    drop(second);
}

#[test]
fn the_stop_sign_ends_every_connection_wherever_it_waits() {
    let (hang_up, hung_up) = channel::<()>();
    let (connected, is_connected) = channel();
    let (connected, hung_up) = (Mutex::new(connected), Mutex::new(hung_up));
    let target = Target::echo();
    let silent = Target::start(move |_| {
        connected.lock().expect("a lock").send(()).expect("a test");
        let ended = hung_up.lock().expect("a lock").recv_timeout(PATIENCE);
        assert_eq!(
            ended,
            Err(RecvTimeoutError::Disconnected),
            "the stop came first"
        );
    });
    let mut gate = Setup::filtered(&["private:a.test:443", "private:silent.test:80"])
        .name("a.test", &[target.address])
        .name("silent.test", &[silent.address])
        .start();
    let untouched = gate.client();
    let mut in_head = gate.client();
    in_head.write_all(b"GET http://a").expect("send");
    let mut in_greeting = gate.client();
    in_greeting.write_all(&[5, 9]).expect("send");
    let before_hello = gate.tunnel("a.test:443");
    let mut in_hello = gate.tunnel("a.test:443");
    in_hello.write_all(&client_hello(&[])[..9]).expect("send");
    let mut in_tunnel = gate.tunnel("a.test:443");
    in_tunnel.write_all(b"x").expect("send");
    assert_eq!(read_exactly(&mut in_tunnel, 1), "x");
    let mut in_answer = gate.client();
    in_answer
        .write_all(b"GET http://silent.test/ HTTP/1.1\r\nHost: silent.test\r\n\r\n")
        .expect("send");
    is_connected
        .recv_timeout(PATIENCE)
        .expect("a silent target");
    gate.background.end();
    for mut client in [
        untouched,
        in_head,
        in_greeting,
        before_hello,
        in_hello,
        in_tunnel,
        in_answer,
    ] {
        read_to_end(&mut client);
    }
    drop(hang_up);
}

#[test]
fn the_stop_sign_ends_a_lookup() {
    let (release, released) = channel::<()>();
    let (asked, was_asked) = channel();
    let (asked, released) = (Mutex::new(asked), Mutex::new(released));
    let resolve = std::sync::Arc::new(move |_: &str, _: u16| {
        asked.lock().expect("a lock").send(()).expect("a test");
        let ended = released.lock().expect("a lock").recv_timeout(PATIENCE);
        assert!(ended.is_err(), "nothing is sent, only hung up");
        Ok(Vec::new())
    });
    let mut gate = Setup::filtered(&["a.test"]).resolve(resolve).start();
    let mut client = gate.client();
    client
        .write_all(b"CONNECT a.test:443 HTTP/1.1\r\n\r\n")
        .expect("send");
    was_asked.recv_timeout(PATIENCE).expect("a lookup");
    gate.background.end();
    drop(release);
    assert!(
        gate.line()
            .contains("failed to connect before the run ended")
    );
}

#[test]
fn a_target_that_resets_ends_the_tunnel() {
    let target = Target::start(|stream| {
        // Closing with unread bytes resets.
        let mut first = [0];
        assert!(stream.peek(&mut first).is_ok());
    });
    let gate: Gate = setup_to(&target).start();
    let mut client = gate.tunnel("a.test:443");
    client.write_all(b"unread").expect("send");
    assert!(is_closed(&mut client));
    assert!(
        gate.line()
            .contains("allowed by private:a.test:443 up 6 down 0")
    );
}

#[test]
fn a_client_that_vanishes_ends_the_tunnel() {
    let (ended, has_ended) = channel();
    let ended = Mutex::new(ended);
    let target = Target::start(move |mut stream| {
        let mut all = Vec::new();
        let read = stream.read_to_end(&mut all);
        ended
            .lock()
            .expect("a lock")
            .send(read.is_ok())
            .expect("a test");
    });
    let gate = setup_to(&target).start();
    let client = gate.tunnel("a.test:443");
    client.shutdown(Shutdown::Both).expect("close");
    drop(client);
    assert!(has_ended.recv_timeout(PATIENCE).is_ok());
    assert!(gate.line().contains("allowed by"));
}
