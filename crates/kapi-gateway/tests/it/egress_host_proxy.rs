//! A host that needs a proxy itself: what it is asked for, and that it is asked for nothing else.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};

use kapi_gateway::egress::host_proxy::HostProxy;
use kapi_gateway::model::dialect::ModelDialect;

use crate::model_rig;
use crate::support::{Gate, Setup, Target, read_exactly, status};

/// A proxy of the host's that answers as it is told, and then with what it was asked.
struct Upstream {
    target: Target,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Upstream {
    fn answering(answer: &'static str) -> Self {
        let asked = Arc::new(Mutex::new(Vec::new()));
        let theirs = Arc::clone(&asked);
        let target = Target::start(move |mut stream| {
            let Some(head) = head(stream) else { return };
            theirs.lock().expect("a lock").push(head);
            // The server behind it speaks first, in the same packet.
            if stream.write_all(answer.as_bytes()).is_ok() {
                echo(stream);
            }
        });
        Self { target, asked }
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().expect("a lock").clone()
    }

    /// Returns the variables that name it.
    fn gate(&self, setup: Setup, who: &str, except: &str) -> Gate {
        let address = self.target.address;
        let url = format!("http://{who}{address}");
        let variables = [
            ("https_proxy", &*url),
            ("HTTP_PROXY", &*url),
            ("NO_PROXY", except),
        ];
        setup.through(&variables).start()
    }
}

/// Sends back what comes until nothing more does.
fn echo(mut stream: &TcpStream) {
    let mut bytes = [0; 64];
    while let Ok(length @ 1..) = stream.read(&mut bytes)
        && stream.write_all(&bytes[..length]).is_ok()
    {}
}

/// Reads a request's head byte by byte.
fn head(mut stream: &TcpStream) -> Option<String> {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).ok()?;
        head.push(byte[0]);
    }
    Some(String::from_utf8_lossy(&head).into_owned())
}

fn public() -> SocketAddr {
    "93.184.216.34:443".parse().expect("an address")
}

const ESTABLISHED: &str = "HTTP/1.0 200 OK\r\nVia: x\r\n\r\nhello";

#[test]
fn a_tunnel_goes_through_it_to_the_address_that_was_judged() {
    let upstream = Upstream::answering(ESTABLISHED);
    let setup = Setup::filtered(&["a.test:443"]).name("a.test", &[public()]);
    let gate = upstream.gate(setup, "me:pass@", "");
    let mut client = gate.tunnel("a.test:443");
    assert_eq!(read_exactly(&mut client, 5), "hello", "not a byte is lost");
    client.write_all(b"ping").expect("send");
    assert_eq!(read_exactly(&mut client, 4), "ping");
    drop(client);
    let asked = upstream.asked();
    let expected = "CONNECT 93.184.216.34:443 HTTP/1.1\r\nHost: 93.184.216.34:443\r\n\
                    Proxy-Authorization: Basic bWU6cGFzcw==\r\n\r\n";
    assert_eq!(asked, [expected]);
    assert!(gate.line().contains("a.test"), "the name is on record");
    gate.end();
}

#[test]
fn a_name_that_leads_home_is_refused_before_it_is_asked() {
    let upstream = Upstream::answering(ESTABLISHED);
    let home = "10.0.0.1:443".parse().expect("an address");
    let setup = Setup::filtered(&["a.test:443", "127.0.0.1:443"]).name("a.test", &[home]);
    let gate = upstream.gate(setup, "", "");
    for target in ["a.test:443", "127.0.0.1:443", "other.test:443"] {
        let request = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n");
        let reported = gate.ask(request.as_bytes());
        assert_eq!(status(&reported), "HTTP/1.1 403 Forbidden", "{target}");
        gate.record();
    }
    assert_eq!(upstream.asked(), Vec::<String>::new());
    gate.end();
}

#[test]
fn a_name_that_may_lead_home_is_asked_by_name_or_reached_directly() {
    let upstream = Upstream::answering(ESTABLISHED);
    let target = Target::echo();
    let port = target.address.port();
    let rules = [
        "private:b.test:443".to_owned(),
        format!("private:c.test:{port}"),
    ];
    let rules: Vec<&str> = rules.iter().map(String::as_str).collect();
    let setup = Setup::filtered(&rules).name("c.test", &[target.address]);
    let gate = upstream.gate(setup, "", "c.test");
    let mut client = gate.tunnel("b.test:443");
    assert_eq!(read_exactly(&mut client, 5), "hello");
    drop(client);
    gate.record();
    let mut client = gate.tunnel(&format!("c.test:{port}"));
    client.write_all(b"ping").expect("send");
    assert_eq!(read_exactly(&mut client, 4), "ping");
    drop(client);
    gate.record();
    let asked = upstream.asked();
    assert_eq!(
        asked,
        ["CONNECT b.test:443 HTTP/1.1\r\nHost: b.test:443\r\n\r\n"]
    );
    assert_eq!(gate.lookups(), [format!("c.test:{port}")]);
    gate.end();
}

#[test]
fn what_it_refuses_is_refused_and_said() {
    for (answer, words) in [
        ("HTTP/1.1 403 No\r\n\r\n", "it answered 403"),
        ("HTTP/1.1 407 Who\r\n\r\n", "it wants to know who asks"),
        ("SSH-2.0-x\r\n\r\n", "its answer is not HTTP"),
    ] {
        let upstream = Upstream::answering(answer);
        let setup = Setup::filtered(&["a.test:443"]).name("a.test", &[public()]);
        let gate = upstream.gate(setup, "me:pass@", "");
        let reported = gate.ask(b"CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:443\r\n\r\n");
        assert_eq!(status(&reported), "HTTP/1.1 502 Bad Gateway", "{reported}");
        assert!(
            reported.contains(words) && !reported.contains("pass"),
            "{reported}"
        );
        assert!(gate.line().contains(words));
        gate.end();
    }
}

#[test]
fn plain_requests_go_through_it_too() {
    let upstream = Upstream::answering(
        "HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok",
    );
    let setup = Setup::filtered(&["a.test:80"])
        .name("a.test", &["93.184.216.34:80".parse().expect("an address")]);
    let gate = upstream.gate(setup, "", "");
    let reported =
        gate.ask(b"GET http://a.test/x HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n");
    assert!(reported.ends_with("ok"), "{reported}");
    let asked = upstream.asked();
    assert_eq!(
        asked,
        ["CONNECT 93.184.216.34:80 HTTP/1.1\r\nHost: 93.184.216.34:80\r\n\r\n"]
    );
    gate.record();
    gate.end();
}

#[test]
fn a_model_is_asked_through_it_by_name() {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let theirs = Arc::clone(&asked);
    let answer = r#"{"content":[],"usage":{"input_tokens":10,"output_tokens":5}}"#;
    let target = Target::start(move |mut stream| {
        let note = |head: String| theirs.lock().expect("a lock").push(head);
        let Some(connect) = head(stream) else { return };
        note(connect);
        let established = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n");
        established.expect("answer");
        let Some(call) = head(stream) else { return };
        note(call);
        let length = answer.len();
        let text = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\
             Connection: close\r\n\r\n{answer}"
        );
        stream.write_all(text.as_bytes()).expect("answer");
    });
    let variables = [("all_proxy".into(), target.address.to_string().into())];
    let setup = model_rig::Setup {
        base_url: Some("http://provider.test:8080".to_owned()),
        host_proxy: HostProxy::of(&variables.into()).expect("a proxy"),
        ..model_rig::Setup::new(ModelDialect::Anthropic)
    };
    model_rig::run(setup, &|_, _| model_rig::After::Close, &|rig| {
        let got = rig
            .connect()
            .post("/v1/messages", r#"{"model":"m","messages":[]}"#);
        assert_eq!((got.head.status, got.body.as_str()), (200, answer));
        assert_eq!(rig.reported().tokens(), 15);
    });
    let asked = asked.lock().expect("a lock").clone();
    assert!(
        asked[0].starts_with("CONNECT provider.test:8080 HTTP/1.1\r\n"),
        "{asked:?}"
    );
    assert!(
        asked[1].contains(model_rig::SECRET),
        "the key goes to the provider alone"
    );
    assert!(!asked[0].contains(model_rig::SECRET), "{asked:?}");
}
