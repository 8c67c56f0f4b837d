//! Plain HTTP through the proxy: what the target gets, and what never gets there.

use std::io::{Read as _, Write as _};
use std::sync::Mutex;
use std::sync::mpsc::channel;

use crate::support::{Gate, PATIENCE, Setup, Target, read_exactly, read_head, read_to_end, status};

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// A gate whose rules lead to `target` as `a.test`, port 80.
fn gate_to(target: &Target) -> Gate {
    Setup::filtered(&["private:a.test:80"])
        .name("a.test", &[target.address])
        .start()
}

#[test]
fn the_target_gets_a_request_written_anew() {
    let (target, requests) = Target::answering(3, OK);
    let gate = gate_to(&target);
    let mut client = gate.client();
    let request = b"POST http://A.test/x/y?q=1&r=%2F HTTP/1.1\r\nhost: a.test:80\r\n\
        X-First: 1\r\nProxy-Authorization: Basic c2VjcmV0\r\nProxy-Connection: keep-alive\r\n\
        Connection: keep-alive, X-Named\r\nX-Named: gone\r\nKeep-Alive: timeout=5\r\n\
        Upgrade: h2c\r\nTE: trailers\r\nX-Second:   two words \r\nContent-Length: 3\r\n\r\nabc";
    client.write_all(request).expect("send");
    assert_eq!(
        requests.recv_timeout(PATIENCE).expect("a request"),
        "POST /x/y?q=1&r=%2F HTTP/1.1\r\nX-First: 1\r\nX-Second: two words\r\n\
         Host: a.test\r\nContent-Length: 3\r\nConnection: close\r\n\r\nabc"
    );
    let head = read_head(&mut client);
    assert_eq!(head, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n");
    assert_eq!(read_exactly(&mut client, 2), "ok");
    let record = gate.record();
    assert_eq!(
        record.path.as_deref(),
        Some("/x/y"),
        "the query is not recorded"
    );
    assert_eq!(record.method.as_deref(), Some("POST"));
    assert!(record.bytes_up > 3 && record.bytes_down > 2);
}

#[test]
fn every_request_of_a_connection_is_decided_anew() {
    let (target, requests) = Target::answering(0, OK);
    let gate = Setup::filtered(&["private:a.test:80", "GET private:b.test:80/public"])
        .name("a.test", &[target.address])
        .name("b.test", &[target.address])
        .start();
    let mut client = gate.client();
    for (url, host) in [
        ("http://a.test", "a.test"),
        ("http://b.test/public/x", "b.test"),
    ] {
        write!(client, "GET {url} HTTP/1.1\r\nHost: {host}\r\n\r\n").expect("send");
        assert!(read_head(&mut client).starts_with("HTTP/1.1 200 OK\r\n"));
        assert_eq!(read_exactly(&mut client, 2), "ok");
        assert!(gate.line().contains("allowed by"));
        assert!(requests.recv_timeout(PATIENCE).is_ok());
    }
    client
        .write_all(
            b"GET http://b.test/private HTTP/1.1\r\nHost: b.test\r\n\r\n\
            GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n",
        )
        .expect("send");
    let answer = read_to_end(&mut client);
    assert_eq!(status(&answer), "HTTP/1.1 403 Forbidden");
    assert_eq!(
        answer.matches("HTTP/1.1").count(),
        1,
        "nothing follows a denial"
    );
    assert_eq!(
        gate.line(),
        "Http b.test:80 GET /private denied: the rules for b.test:80 allow only some plain HTTP \
         requests, and not GET /private up 0 down 0"
    );
    assert_eq!(target.n_connections(), 2);
    gate.end();
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    let target = Target::start(|mut stream| {
        let mut request = Vec::new();
        let mut byte = [0];
        while !request.ends_with(b"\r\n\r\n") && stream.read_exact(&mut byte).is_ok() {
            request.push(byte[0]);
        }
        let path = String::from_utf8_lossy(&request[4..6]).into_owned();
        write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{path}").expect("answer");
    });
    let gate = gate_to(&target);
    let request = |path: &str| format!("GET http://a.test{path} HTTP/1.1\r\nHost: a.test\r\n\r\n");
    let requests: String = ["/1", "/2", "/3"].map(request).concat();
    let answers = gate.ask(requests.as_bytes());
    let bodies: Vec<&str> = answers
        .split("\r\n\r\n")
        .skip(1)
        .map(|rest| &rest[..2])
        .collect();
    assert_eq!(bodies, ["/1", "/2", "/3"]);
}

#[test]
fn a_message_that_two_readers_could_cut_differently_is_refused() {
    let target = Target::echo();
    let gate = gate_to(&target);
    let start = "POST http://a.test/ HTTP/1.1\r\nHost: a.test\r\n";
    for headers in [
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
        "Content-Length: 5\r\nContent-Length: 6\r\n",
        "Content-Length: 5\r\nContent-Length: 5\r\n",
        "Content-Length: 5, 5\r\n",
        "Content-Length: +5\r\n",
        "Content-Length: -5\r\n",
        "Content-Length: 0x5\r\n",
        "Content-Length: 5 5\r\n",
        "Content-Length:\r\n",
        "Content-Length: 99999999999999999999\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked, chunked\r\n",
        "Transfer-Encoding: gzip, chunked\r\n",
        "Transfer-Encoding: identity\r\n",
        "Transfer-Encoding: xchunked\r\n",
        "Transfer-Encoding : chunked\r\n",
        " Transfer-Encoding: chunked\r\n",
        "X: a\r\n Transfer-Encoding: chunked\r\n",
        "X: a\n\rTransfer-Encoding: chunked\r\n",
        "X: a\nTransfer-Encoding: chunked\r\n",
        "X: a\rTransfer-Encoding: chunked\r\n",
        "X: a\0b\r\n",
        "X\0: a\r\n",
        ": a\r\n",
        "X\r\n",
        "Host: a.test\r\n",
    ] {
        let answer = gate.ask(format!("{start}{headers}\r\n0\r\n\r\n").as_bytes());
        assert_eq!(status(&answer), "HTTP/1.1 400 Bad Request", "{headers:?}");
        assert!(gate.line().contains("denied: "), "{headers:?}");
    }
    let old = "POST http://a.test/ HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n";
    assert_eq!(
        status(&gate.ask(old.as_bytes())),
        "HTTP/1.1 400 Bad Request"
    );
    assert_eq!(target.n_connections(), 0);
}

#[test]
fn only_whole_http_urls_with_their_own_host_are_requests() {
    let target = Target::echo();
    let gate = gate_to(&target);
    for request in [
        "GET / HTTP/1.1\r\nHost: a.test\r\n",
        "OPTIONS * HTTP/1.1\r\nHost: a.test\r\n",
        "GET https://a.test/ HTTP/1.1\r\nHost: a.test\r\n",
        "GET ftp://a.test/ HTTP/1.1\r\nHost: a.test\r\n",
        "GET http://a.test/ HTTP/1.1\r\n",
        "GET http://a.test/ HTTP/1.1\r\nHost: evil.test\r\n",
        "GET http://a.test/ HTTP/1.1\r\nHost: a.test:81\r\n",
        "GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\nHost: evil.test\r\n",
        "GET http://user@a.test/ HTTP/1.1\r\nHost: a.test\r\n",
        "GET http://evil.test\\@a.test/ HTTP/1.1\r\nHost: a.test\r\n",
        "GET http://a.test\\.evil.test/ HTTP/1.1\r\nHost: a.test\r\n",
        "GET http://a.test#@evil.test/ HTTP/1.1\r\nHost: a.test\r\n",
        "GET http:///a.test/ HTTP/1.1\r\nHost: a.test\r\n",
        "GET http://a.test/ HTTP/2.0\r\nHost: a.test\r\n",
        "GET http://a.test/ evil HTTP/1.1\r\nHost: a.test\r\n",
        "GET http://a.test/\r\nHost: a.test\r\n",
        "G(T http://a.test/ HTTP/1.1\r\nHost: a.test\r\n",
    ] {
        let answer = gate.ask(format!("{request}\r\n").as_bytes());
        assert_eq!(status(&answer), "HTTP/1.1 400 Bad Request", "{request:?}");
        assert!(gate.line().contains("denied: "), "{request:?}");
    }
    for host in [
        "127.1",
        "0x7f.1",
        "evil.test",
        "xa.test",
        "a.test.evil.test",
    ] {
        let request = format!("GET http://{host}/ HTTP/1.1\r\nHost: {host}\r\n\r\n");
        let answer = gate.ask(request.as_bytes());
        assert!(status(&answer).starts_with("HTTP/1.1 40"), "{host}");
    }
    assert_eq!(target.n_connections(), 0);
}

#[test]
fn naming_the_length_as_a_connection_header_smuggles_nothing() {
    let (target, requests) = Target::answering("GET /secret HTTP/1.1\r\n\r\n".len(), OK);
    let gate = Setup::filtered(&["private:a.test:80/public"])
        .name("a.test", &[target.address])
        .start();
    gate.ask(
        b"POST http://a.test/public HTTP/1.1\r\nHost: a.test\r\nContent-Length: 24\r\n\
          Connection: Content-Length, Host\r\n\r\nGET /secret HTTP/1.1\r\n\r\n",
    );
    let request = requests.recv_timeout(PATIENCE).expect("a request");
    assert_eq!(
        request,
        "POST /public HTTP/1.1\r\nHost: a.test\r\nContent-Length: 24\r\nConnection: close\r\n\r\n\
         GET /secret HTTP/1.1\r\n\r\n"
    );
}

#[test]
fn a_chunked_body_is_written_anew() {
    let (target, requests) = Target::answering("3\r\nabc\r\n0\r\n\r\n".len(), OK);
    let gate = gate_to(&target);
    let answer = gate.ask(
        b"PUT http://a.test/ HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: Chunked\r\n\r\n\
          0003;name=\"0\"\r\nabc\r\n0;last\r\nX-Trailer: gone\r\n\r\n",
    );
    assert_eq!(status(&answer), "HTTP/1.1 200 OK");
    let request = requests.recv_timeout(PATIENCE).expect("a request");
    let (head, body) = request.split_once("\r\n\r\n").expect("a head");
    assert!(
        head.contains("\r\nTransfer-Encoding: chunked\r\n"),
        "{head}"
    );
    assert_eq!(body, "3\r\nabc\r\n0\r\n\r\n");
}

#[test]
fn a_broken_chunk_ends_the_request() {
    for body in [
        "x\r\n",
        "3\r\nabcd\r\n0\r\n\r\n",
        "3\nabc\r\n0\r\n\r\n",
        "-1\r\n",
        "fffffffffffffffff\r\n",
    ] {
        let target = Target::start(|mut stream| {
            let mut all = Vec::new();
            // The proxy closes without the end of the body.
            let ended = stream.read_to_end(&mut all).is_ok();
            assert!(!ended || !all.ends_with(b"0\r\n\r\n"));
        });
        let gate = gate_to(&target);
        let start =
            "PUT http://a.test/ HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n";
        let answer = gate.ask(format!("{start}{body}").as_bytes());
        assert_eq!(status(&answer), "HTTP/1.1 400 Bad Request", "{body:?}");
        assert!(
            gate.line()
                .contains("denied: failed to read the message: a"),
            "{body:?}"
        );
    }
}

#[test]
fn an_answer_without_length_is_framed_for_the_client() {
    let (target, _requests) = Target::answering(
        0,
        b"HTTP/1.0 200 Fine\r\nConnection: X-Gone\r\nX-Gone: 1\r\nX-Stays: 1\r\n\r\nbody",
    );
    let gate = gate_to(&target);
    let answer = gate.ask(b"GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n");
    let expected = "HTTP/1.1 200 Fine\r\nX-Stays: 1\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n";
    assert_eq!(answer, expected);
    let answer = gate.ask(b"GET http://a.test/ HTTP/1.0\r\n\r\n");
    assert_eq!(
        answer,
        "HTTP/1.1 200 Fine\r\nX-Stays: 1\r\nConnection: close\r\n\r\nbody"
    );
}

#[test]
fn answers_without_a_body_are_not_waited_for() {
    for (method, answer) in [
        (
            "HEAD",
            &b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n"[..],
        ),
        (
            "GET",
            b"HTTP/1.1 304 Not Modified\r\nContent-Length: 99\r\n\r\n",
        ),
        ("GET", b"HTTP/1.1 204 No Content\r\n\r\n"),
        (
            "GET",
            b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n",
        ),
    ] {
        let (target, _requests) = Target::answering(0, answer);
        let gate = gate_to(&target);
        let mut client = gate.client();
        for _ in 0..2 {
            write!(
                client,
                "{method} http://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n"
            )
            .expect("send");
            let head = read_head(&mut client);
            assert!(
                !head.contains(" 103 ") && head.starts_with("HTTP/1.1 "),
                "{head}"
            );
        }
    }
}

#[test]
fn an_answer_is_passed_on_as_it_comes() {
    let (go_on, may_go_on) = channel::<()>();
    let may_go_on = Mutex::new(may_go_on);
    let target = Target::start(move |mut stream| {
        let start = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n";
        stream.write_all(start).expect("write");
        may_go_on
            .lock()
            .expect("a lock")
            .recv_timeout(PATIENCE)
            .expect("the client got the first piece");
        stream.write_all(b"3\r\ntwo\r\n0\r\n\r\n").expect("write");
    });
    let gate = gate_to(&target);
    let mut client = gate.client();
    client
        .write_all(b"GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n")
        .expect("send");
    read_head(&mut client);
    assert_eq!(read_exactly(&mut client, 8), "3\r\none\r\n");
    go_on.send(()).expect("a target");
    assert_eq!(read_exactly(&mut client, 13), "3\r\ntwo\r\n0\r\n\r\n");
}

#[test]
fn a_client_that_waits_for_leave_to_send_gets_it() {
    let (target, requests) = Target::answering(4, OK);
    let gate = gate_to(&target);
    let mut client = gate.client();
    client
        .write_all(
            b"POST http://a.test/ HTTP/1.1\r\nHost: a.test\r\nContent-Length: 4\r\n\
            Expect: 100-continue\r\n\r\n",
        )
        .expect("send");
    assert_eq!(read_head(&mut client), "HTTP/1.1 100 Continue\r\n\r\n");
    client.write_all(b"body").expect("send");
    let request = requests.recv_timeout(PATIENCE).expect("a request");
    assert!(
        request.ends_with("\r\n\r\nbody") && !request.contains("Expect"),
        "{request}"
    );
    assert!(read_head(&mut client).starts_with("HTTP/1.1 200 OK\r\n"));
}

#[test]
fn a_redirect_is_passed_on_and_what_it_leads_to_is_denied() {
    let (target, _requests) = Target::answering(
        0,
        b"HTTP/1.1 302 Found\r\nLocation: http://169.254.169.254/\r\nContent-Length: 0\r\n\r\n",
    );
    let gate = gate_to(&target);
    let mut client = gate.client();
    client
        .write_all(b"GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n")
        .expect("send");
    assert!(read_head(&mut client).contains("Location: http://169.254.169.254/\r\n"));
    client
        .write_all(b"GET http://169.254.169.254/ HTTP/1.1\r\nHost: 169.254.169.254\r\n\r\n")
        .expect("send");
    assert_eq!(status(&read_to_end(&mut client)), "HTTP/1.1 403 Forbidden");
    assert_eq!(target.n_connections(), 1);
}

#[test]
fn a_bad_answer_is_the_targets_fault_and_says_so() {
    for answer in [
        &b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"[..],
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nxxxxx",
        b"HTTP/1.1 200 OK\r\nX: a\nContent-Length: 5\r\n\r\nxxxxx",
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\n\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\n",
        b"SSH-2.0-OpenSSH\r\n\r\n",
        b"HTTP/1.1 200",
        b"",
    ] {
        let (target, _requests) = Target::answering(0, answer);
        let gate = gate_to(&target);
        let said = gate.ask(b"GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n");
        let shown = String::from_utf8_lossy(answer);
        assert_eq!(status(&said), "HTTP/1.1 502 Bad Gateway", "{shown:?}");
        assert!(
            gate.line()
                .contains("allowed by private:a.test:80, failed to"),
            "{shown:?}"
        );
    }
}

#[test]
fn an_answer_that_breaks_off_is_not_made_whole() {
    let (target, _requests) = Target::answering(
        0,
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabc",
    );
    let gate = gate_to(&target);
    let answer = gate.ask(b"GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n");
    assert!(
        answer.ends_with("3\r\nabc\r\n"),
        "no last chunk: {answer:?}"
    );
    assert!(
        gate.line()
            .contains("cut: read the message: the peer closed in the middle of its body")
    );
}
