//! Traffic that is recorded, and answered again without a provider or a key.
//!
//! The provider of a replay is there only to fail the test when it is asked.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use kapi_gateway::model::GatewayError;
use kapi_gateway::model::cassette::{Cassette, CassetteError};
use kapi_gateway::model::dialect::ModelDialect;
use kapi_gateway::model::event::GatewayEvent;
use kapi_gateway::model::route::AuthStyle;

use crate::model_rig::{
    After, Provide, SECRET, Setup, begin_events, end_chunks, put_chunk, put_json, run, try_gateway,
};

const EVENTS: [&str; 3] = [
    "data: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":10}}}\n\n",
    "data: {\"type\":\"ping\",\"text\":\"\u{e4}\"}\n\n",
    "data: {\"type\":\"message_delta\",\"usage\":{\"output_tokens\":5}}\n\n",
];
const SLOW: &str = r#"{"type":"error","error":{"type":"rate_limit_error"}}"#;
const NOBODY: Provide<'_> = &|_, _| panic!("a replay needs no provider");

/// Answers each request as its body wants.
const PROVIDER: Provide<'_> = &|seen, stream| {
    let body = String::from_utf8_lossy(&seen.body).into_owned();
    match body.as_str() {
        r#"{"n":"slow"}"# => put_json(stream, "429 Too Many", "retry-after: 3\r\n", SLOW),
        r#"{"n":"break"}"# => {
            begin_events(stream);
            put_chunk(stream, EVENTS[0]);
            After::Close
        }
        r#"{"n":"stream"}"# => {
            begin_events(stream);
            for event in EVENTS {
                put_chunk(stream, event);
            }
            end_chunks(stream)
        }
        other => {
            let echo = format!(
                r#"{{"echo":{other},"key":"{SECRET}","usage":{{"input_tokens":1,"output_tokens":1}}}}"#
            );
            put_json(stream, "200 OK", "", &echo)
        }
    }
};

fn setup(cassette: Cassette) -> Setup {
    Setup {
        cassette: Some(cassette),
        ..Setup::new(ModelDialect::Anthropic)
    }
}

fn record(path: &Path, bytes_max: u64) -> Setup {
    setup(Cassette::Record {
        path: path.to_path_buf(),
        bytes_max,
    })
}

fn replay(path: &Path) -> Setup {
    setup(Cassette::Replay {
        path: path.to_path_buf(),
    })
}

fn location() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("cassette.jsonl");
    (directory, path)
}

#[test]
fn what_was_recorded_is_answered_again() {
    let (_directory, path) = location();
    let bodies = [
        r#"{"n":"slow"}"#,
        r#"{"n":"stream"}"#,
        r#"{"n":1}"#,
        r#"{"n":"break"}"#,
        r#"{"n":2}"#,
    ];
    let play = |rig: &crate::model_rig::Rig<'_>| -> String {
        let ask = |body: &&str| {
            let got = rig.connect().post("/v1/messages?beta=true", body);
            let retry_after = got.header("retry-after");
            format!(
                "{} {retry_after:?} {} {}\n",
                got.head.status, got.is_whole, got.body
            )
        };
        let reported: String = bodies.iter().map(ask).collect();
        rig.wait_for(&|event| *event == GatewayEvent::BrokenOff { call: 4 });
        format!("{reported}{:?}", rig.totals())
    };
    let first = std::sync::Mutex::new(String::new());
    run(record(&path, 1 << 20), PROVIDER, &|rig| {
        *first.lock().expect("no panic") = play(rig);
    });
    let text = fs::read_to_string(&path).expect("a cassette");
    assert!(
        !text.contains(SECRET) && !text.contains("x-api-key"),
        "{text}"
    );
    assert!(text.contains("/v1/messages?beta=true"));
    let mode = fs::metadata(&path).expect("a file").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    run(replay(&path), NOBODY, &|rig| {
        assert_eq!(play(rig), *first.lock().expect("no panic"));
        let differs = |event: &GatewayEvent| matches!(event, GatewayEvent::ReplayDiffers { .. });
        assert!(!rig.events().iter().any(differs));
    });
}

#[test]
fn a_replay_finds_each_bodys_own_answer_and_says_what_differs_or_is_missing() {
    let (_directory, path) = location();
    run(record(&path, 1 << 20), PROVIDER, &|rig| {
        for body in [r#"{"n":1}"#, r#"{"n":2}"#, r#"{"n":3}"#] {
            assert_eq!(rig.connect().post("/v1/messages", body).head.status, 200);
        }
    });
    run(replay(&path), NOBODY, &|rig| {
        let mut agent = rig.connect();
        let mut echo = |body: &str| agent.post("/v1/messages", body).json()["echo"]["n"].clone();
        assert_eq!(echo(r#"{"n":3}"#), 3);
        assert_eq!(echo(r#"{"n":"other"}"#), 1);
        assert_eq!(echo(r#"{"n":2}"#), 2);
        assert_eq!(
            rig.events()
                .iter()
                .filter(|event| **event == GatewayEvent::ReplayDiffers { call: 2 })
                .count(),
            1
        );
        let missed = rig.connect().post("/v1/messages", r#"{"n":1}"#);
        assert_eq!(missed.head.status, 501);
        assert!(missed.body.contains("request 4"), "{}", missed.body);
        let elsewhere = rig
            .connect()
            .post("/v1/messages/count_tokens", r#"{"n":1}"#);
        assert_eq!(elsewhere.head.status, 501);
        assert!(
            rig.events()
                .contains(&GatewayEvent::ReplayMissed { call: 4 })
        );
    });
}

#[test]
fn a_full_cassette_stops_the_recording_and_not_the_traffic() {
    let (_directory, path) = location();
    run(record(&path, 1500), PROVIDER, &|rig| {
        for n in 0..10 {
            let body = format!(r#"{{"n":{n}}}"#);
            assert_eq!(rig.connect().post("/v1/messages", &body).head.status, 200);
        }
        let stopped =
            |event: &&GatewayEvent| matches!(event, GatewayEvent::RecordingStopped { .. });
        assert_eq!(rig.events().iter().filter(stopped).count(), 1);
    });
    assert!(fs::metadata(&path).expect("a cassette").len() <= 1500);
    run(replay(&path), NOBODY, &|rig| {
        let got = rig.connect().post("/v1/messages", r#"{"n":0}"#);
        assert_eq!(got.json()["echo"]["n"], 0);
    });
}

#[test]
fn an_agents_own_log_in_is_not_recorded() {
    let (_directory, path) = location();
    let setup = Setup {
        auth: AuthStyle::AgentsOwn,
        ..record(&path, 1 << 20)
    };
    run(setup, PROVIDER, &|rig| {
        let mut agent = rig.connect();
        agent.send(
            "POST /v1/messages?key=its-own-1&beta=true HTTP/1.1\r\nauthorization: Bearer its-own-2\r\n\
             cookie: its-own-3\r\ncontent-length: 7\r\n\r\n{\"n\":1}",
        );
        assert_eq!(agent.receive("POST").head.status, 200);
        assert!(rig.seen()[0].header("authorization").is_some());
    });
    let text = fs::read_to_string(&path).expect("a cassette");
    assert!(!text.contains("its-own"), "{text}");
    assert!(text.contains("/v1/messages?beta=true"), "{text}");
}

#[test]
fn a_recording_never_overwrites_a_file() {
    let (_directory, path) = location();
    let other = path.with_extension("other");
    std::os::unix::fs::symlink(&other, &path).expect("a link");
    let error = try_gateway(record(&path, 1000)).expect_err("something is there");
    assert!(matches!(
        error,
        GatewayError::Cassette(CassetteError::Create { .. })
    ));
    assert!(!other.exists());
}

#[test]
fn a_torn_end_is_forgiven_and_anything_else_is_not() {
    let (_directory, path) = location();
    let check = |text: &str| {
        fs::File::create(&path).expect("a file");
        fs::OpenOptions::new()
            .write(true)
            .open(&path)
            .and_then(|mut file| std::io::Write::write_all(&mut file, text.as_bytes()))
            .expect("written");
        try_gateway(replay(&path)).map_err(|error| error.to_string())
    };
    let first = "{\"type\":\"cassette\",\"version\":1}\n";
    let request = "{\"type\":\"request\",\"call\":1,\"method\":\"POST\",\"target\":\"/v1/messages\",\
                   \"headers\":[],\"body\":{\"text\":\"{}\"}}\n";
    assert_eq!(check(&format!("{first}{request}{{\"type\":\"he")), Ok(()));
    for (text, line) in [
        (String::new(), 1),
        ("{\"type\":\"cassette\",\"version\":2}\n".to_owned(), 1),
        (request.to_owned(), 1),
        (format!("{first}{first}"), 2),
        (format!("{first}{request}nonsense\n"), 3),
        (format!("{first}{request}{request}"), 3),
        (
            format!("{first}{{\"type\":\"end\",\"call\":9,\"ending\":\"complete\"}}\n"),
            2,
        ),
        (
            format!(
                "{first}{request}{{\"type\":\"head\",\"call\":1,\"status\":200,\"headers\":\
                 [[\"a\",\"b\\r\\nc: d\"]]}}\n"
            ),
            3,
        ),
        (
            format!(
                "{first}{request}{{\"type\":\"head\",\"call\":1,\"status\":99,\"headers\":[]}}\n"
            ),
            3,
        ),
    ] {
        let error = check(&text).expect_err(&text);
        assert!(
            error.contains(&format!("line {line} of the cassette")),
            "{error}"
        );
    }
}
