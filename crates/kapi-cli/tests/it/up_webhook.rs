//! Calls over HTTP that trigger loops, as whoever sends them meets them: the port of `kapi up`.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use serde_json::{Value, json};

use crate::environment::{Environment, write};
use crate::kernel_loop::define;
use crate::program::{Running, parse};
use crate::up_kernel::{await_count, count, end, log};

const SECRET: &str = "0123456789abcdef0123456789abcdef";
/// The signature of the body `[]`, as `openssl dgst -sha256 -hmac` tells.
const SIGNED: &str = "ad12fdb13ff0ab86ff6c711867d7134adcf79d33f834a741be12988ff846b7e2";

/// Sends bytes to a port and returns the status and the document that come back.
fn call(address: &str, request: &[u8]) -> (u16, Value) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(request).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, parse(body.trim_end()))
}

fn post(address: &str, path: &str, headers: &[&str], body: &str) -> (u16, Value) {
    let mut lines = vec![
        format!("POST {path} HTTP/1.1"),
        format!("Host: {address}"),
        format!("Content-Length: {}", body.len()),
    ];
    lines.extend(headers.iter().map(|&line| line.to_owned()));
    call(
        address,
        format!("{}\r\n\r\n{body}", lines.join("\r\n")).as_bytes(),
    )
}

/// Starts a supervisor that takes calls, and returns its address and the header of the secret.
fn listening(env: &mut Environment) -> (Running, String, String) {
    env.set("HOOK_SECRET", SECRET);
    env.configure("[kernel.webhook]\nlisten = \"127.0.0.1:0\"\nsecret_env = \"HOOK_SECRET\"\n");
    define(env, "deploy", "trigger:\n  type: event\n  webhook: pushed");
    let mut running = env.start(&["up", "--json"]);
    let line = parse(&running.await_line(&|line| line.contains("\"listening\"")));
    let address = line["address"].as_str().unwrap();
    let address = address.trim_start_matches("http://").split('/').next();
    let bearer = format!("Authorization: Bearer {SECRET}");
    (running, address.unwrap().to_owned(), bearer)
}

#[test]
fn a_call_with_the_secret_sets_a_loop_off_once_for_each_delivery() {
    let mut env = Environment::new();
    let (running, address, bearer) = listening(&mut env);
    let address = address.as_str();
    let first = ["X-GitHub-Delivery: 1", &bearer];
    let (status, reported) = post(address, "/loops/pushed", &first, "{\"ref\":\"main\"}");
    assert_eq!(
        (status, &reported),
        (
            202,
            &json!({"loops": [{"loop": "deploy", "task": "task_1"}]})
        )
    );
    await_count(&env, "ended", 1);
    let (status, reported) = post(address, "/loops/pushed", &first, "{\"ref\":\"main\"}");
    assert_eq!(
        (status, &reported["loops"][0]["task"]),
        (409, &json!("task_1"))
    );
    let signed = format!("X-Hub-Signature-256: sha256={SIGNED}");
    let second = ["X-GitHub-Delivery: 2", &signed];
    assert_eq!(post(address, "/loops/pushed", &second, "[]").0, 202);
    await_count(&env, "ended", 2);
    let submitted = log(&env);
    let submitted: Vec<&Value> = submitted
        .iter()
        .filter(|record| record["type"] == "submitted")
        .collect();
    assert_eq!(submitted.len(), 2);
    let run = &submitted[0]["data"]["request"]["loop"];
    assert_eq!(
        (&run["payload"], &run["trigger"]["source"]),
        (&json!({"ref": "main"}), &json!("webhook pushed"))
    );

    end(running);
}

#[test]
fn no_call_of_a_burst_is_lost_while_runs_of_its_loop_wait() {
    let mut env = Environment::new();
    let (running, address, bearer) = listening(&mut env);
    let deliver = |n: usize, body: &str| {
        let delivery = format!("X-GitHub-Delivery: {n}");
        post(&address, "/loops/pushed", &[&delivery, &bearer], body).0
    };
    for n in 1..=6 {
        assert_eq!(deliver(n, &format!("{{\"n\":{n}}}")), 202);
    }
    await_count(&env, "ended", 6);
    let log = log(&env);
    let submitted = log.iter().filter(|record| record["type"] == "submitted");
    let payloads: Vec<&Value> = submitted
        .map(|record| &record["data"]["request"]["loop"]["payload"]["n"])
        .collect();
    assert_eq!(payloads, [1, 2, 3, 4, 5, 6]);
    end(running);
}

#[test]
fn calls_that_are_wrong_hostile_or_not_proved_set_nothing_off() {
    let mut env = Environment::new();
    let (running, address, bearer) = listening(&mut env);
    let address = address.as_str();
    // Of another body.
    let signed = format!("X-Hub-Signature-256: sha256={SIGNED}");
    for (status, path, headers, body) in [
        (401, "/loops/pushed", vec![], "{}"),
        (
            401,
            "/loops/pushed",
            vec!["Authorization: Bearer 0123456789abcdef"],
            "{}",
        ),
        (401, "/loops/pushed", vec![signed.as_str()], "[1]"),
        (401, "/loops/unknown", vec![], "{}"),
        (404, "/loops/unknown", vec![bearer.as_str()], "{}"),
        (404, "/loops/deploy", vec![bearer.as_str()], "{}"),
        (404, "/loops/../x", vec![bearer.as_str()], "{}"),
        (404, "/", vec![bearer.as_str()], "{}"),
        (400, "/loops/pushed", vec![bearer.as_str()], "{"),
        (
            400,
            "/loops/pushed",
            vec![bearer.as_str(), "X-GitHub-Delivery: a b"],
            "{}",
        ),
        (
            400,
            "/loops/pushed",
            vec![bearer.as_str(), "Content-Length: 3"],
            "{}",
        ),
    ] {
        let (found, reported) = post(address, path, &headers, body);
        assert_eq!(found, status, "{path} {headers:?} {body}: {reported}");
    }
    let get = format!("GET /loops/pushed HTTP/1.1\r\nHost: x\r\n{bearer}\r\n\r\n");
    assert_eq!(call(address, get.as_bytes()).0, 405);
    // Whoever is still sending when it is refused reads its answer all the same.
    for (status, path, header, length) in [
        (413, "/loops/pushed", bearer.as_str(), 65_537),
        (413, "/loops/pushed", "X: y", 8 << 20),
        (404, "/elsewhere", bearer.as_str(), 8 << 20),
    ] {
        let (found, reported) = post(address, path, &[header], &"x".repeat(length));
        assert_eq!(found, status, "{path} {length}: {reported}");
    }
    assert_eq!(count(&env, "submitted"), 0);
    end(running);
}

/// Clients that say nothing, or never the end of it, do not keep out one that calls.
#[test]
fn those_who_only_hold_connections_open_give_way_to_one_that_calls() {
    let mut env = Environment::new();
    let (running, address, bearer) = listening(&mut env);
    let address = address.as_str();
    let idle: Vec<TcpStream> = (0..64)
        .map(|n| {
            let mut stream = TcpStream::connect(address).unwrap();
            if n % 2 == 0 {
                stream
                    .write_all(b"POST /loops/pushed HTTP/1.1\r\nHo")
                    .unwrap();
            }
            stream
        })
        .collect();
    let third = ["Idempotency-Key: 3", &bearer];
    assert_eq!(post(address, "/loops/pushed", &third, "").0, 202);
    // One whose time was waited for would be told so.
    let gave_way = |mut stream: &TcpStream| !matches!(stream.read(&mut [0]), Ok(1..));
    assert!(idle.iter().any(gave_way), "each was waited for");
    drop(idle);
    await_count(&env, "ended", 1);
    assert_eq!(count(&env, "submitted"), 1);
    assert_eq!(env.kapi(&["loop", "disable", "deploy"]).code, 0);
    assert_eq!(post(address, "/loops/pushed", &[&bearer], "{}").0, 404);
    end(running);
}

#[test]
fn a_webhook_that_others_could_call_or_read_is_refused() {
    let env = Environment::new();
    define(&env, "deploy", "trigger:\n  type: event\n  webhook: pushed");
    env.configure("[kernel.webhook]\nlisten = \"0.0.0.0:0\"\nsecret_env = \"HOOK_SECRET\"\n");
    env.kapi(&["up", "--once"])
        .assert_error(2, &["config.toml:2", "other machines could reach it"]);
    env.configure("[kernel.webhook]\nlisten = \"127.0.0.1:0\"\nsecret_env = \"HOOK_SECRET\"\n");
    env.kapi(&["up", "--once"])
        .assert_error(2, &["the variable HOOK_SECRET is not set"]);
    let file = env.root().join("secret");
    write(&file, SECRET);
    let said = format!("[kernel.webhook]\nlisten = \"127.0.0.1:0\"\nsecret_file = {file:?}\n");
    env.configure(&said);
    env.kapi(&["up", "--once"])
        .assert_error(3, &["others can read the secret", "chmod 600"]);
}
