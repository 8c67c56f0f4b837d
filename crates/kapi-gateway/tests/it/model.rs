//! What passes the gateway, what the provider gets to see, and what the agent does.
//!
//! The provider is a few lines in each test, and both sides are real sockets.

use kapi_core::usage::Usage;
use kapi_gateway::model::dialect::ModelDialect;
use kapi_gateway::model::event::{GatewayEvent, GatewayRefusal};
use kapi_gateway::model::meter::UnknownUsage;
use kapi_gateway::model::route::AuthStyle;

use crate::model_rig::{
    After, PATIENCE, PLACEHOLDER, Provide, SECRET, Setup, begin_events, end_chunks, put, put_chunk,
    put_json, run,
};

const ANSWER: &str = r#"{"content":[],"usage":{"input_tokens":10,"output_tokens":5}}"#;

const fn tokens(input_tokens: u64, output_tokens: u64) -> Usage {
    Usage {
        input_tokens,
        output_tokens,
        usd_micros: None,
        ..Usage::ZERO
    }
}

#[test]
fn a_call_arrives_with_the_real_key_and_its_usage_is_told() {
    let provide: Provide<'_> = &|_, stream| {
        put_json(
            stream,
            "200 OK",
            "request-id: r1\r\nset-cookie: a=b\r\n",
            ANSWER,
        )
    };
    run(Setup::new(ModelDialect::Anthropic), provide, &|rig| {
        let body = r#"{"model":"m-1", "messages":[]}"#;
        let got = rig.connect().post("/v1/messages?beta=true", body);
        assert_eq!(
            (got.head.status, got.body.as_str(), got.is_whole),
            (200, ANSWER, true)
        );
        assert_eq!(got.header("request-id").as_deref(), Some("r1"));
        assert_eq!(got.header("set-cookie"), None);
        let seen = rig.seen();
        assert_eq!(seen.len(), 1);
        assert_eq!(seen[0].head.target, "/v1/messages?beta=true");
        assert_eq!(seen[0].header("x-api-key").as_deref(), Some(SECRET));
        assert_eq!(
            seen[0].header("accept-encoding").as_deref(),
            Some("identity")
        );
        assert_ne!(seen[0].header("host").as_deref(), Some("gateway"));
        assert_eq!(seen[0].body, body.as_bytes());
        let expected = [
            GatewayEvent::Call {
                call: 1,
                model: "m-1".to_owned(),
            },
            GatewayEvent::Answered {
                call: 1,
                status: 200,
                retry_after_ms: None,
            },
            GatewayEvent::Used {
                call: 1,
                usage: tokens(10, 5),
            },
        ];
        assert_eq!(rig.events(), expected);
        assert_eq!(
            (rig.reported(), rig.totals().usage),
            (tokens(10, 5), tokens(10, 5))
        );
    });
}

#[test]
fn a_sign_of_life_is_answered_here_without_a_key() {
    let provide: Provide<'_> = &|_, _| panic!("not for the provider");
    run(Setup::new(ModelDialect::Anthropic), provide, &|rig| {
        let mut agent = rig.connect();
        for _ in 0..2 {
            agent.send("HEAD / HTTP/1.1\r\nhost: gateway\r\n\r\n");
            let got = agent.receive("HEAD");
            assert_eq!((got.head.status, got.body.as_str()), (200, ""));
        }
        assert_eq!(rig.events(), []);
    });
}

#[test]
fn only_the_runs_own_placeholder_and_only_known_requests_pass() {
    let provide: Provide<'_> = &|_, _| panic!("not for the provider");
    run(Setup::new(ModelDialect::Anthropic), provide, &|rig| {
        let mut agent = rig.connect();
        let mut refused = |request: &str, headers: &str, status: u16| {
            agent.send(&format!(
                "{request} HTTP/1.1\r\nhost: g\r\n{headers}content-length: 2\r\n\r\n{{}}"
            ));
            let got = agent.receive("POST");
            assert_eq!(got.head.status, status, "{request} {headers}");
            assert_eq!(got.json()["type"], "error", "{request} {headers}");
            assert_eq!(got.header("x-should-retry").as_deref(), Some("false"));
        };
        let mine = format!("x-api-key: {PLACEHOLDER}\r\n");
        refused("POST /v1/messages", "", 403);
        refused("POST /v1/messages", "x-api-key: sk-of-somebody\r\n", 403);
        refused("POST /v1/messages?key=sk-of-somebody", &mine, 403);
        refused("POST /v1/messages/batches", &mine, 403);
        refused("GET /v1/organizations", &mine, 403);
        refused("POST http://elsewhere.test/v1/messages", &mine, 403);
        refused(
            "POST /v1/messages",
            &format!("{mine}content-encoding: gzip\r\n"),
            400,
        );
        let whys: Vec<GatewayEvent> = rig.events();
        let why = |why: GatewayRefusal| GatewayEvent::Refused { why };
        let expected = [
            why(GatewayRefusal::Key),
            why(GatewayRefusal::Key),
            why(GatewayRefusal::Key),
            why(GatewayRefusal::NotAllowed),
            why(GatewayRefusal::NotAllowed),
            why(GatewayRefusal::NotAllowed),
            why(GatewayRefusal::Unreadable),
        ];
        assert_eq!(whys, expected);
        assert_eq!((rig.totals().n_refused, rig.totals().n_calls), (7, 0));
    });
}

#[test]
fn messages_that_two_readers_read_differently_are_refused() {
    let provide: Provide<'_> = &|_, _| panic!("not for the provider");
    run(Setup::new(ModelDialect::Anthropic), provide, &|rig| {
        let key = format!("x-api-key: {PLACEHOLDER}\r\n");
        for (headers, status) in [
            ("content-length: 2\r\ntransfer-encoding: chunked\r\n", 400),
            ("content-length: 2\r\ncontent-length: 3\r\n", 400),
            ("content-length: 99999999999\r\n", 413),
        ] {
            let mut agent = rig.connect();
            agent.send(&format!(
                "POST /v1/messages HTTP/1.1\r\n{key}{headers}\r\n{{}}"
            ));
            assert_eq!(agent.receive("POST").head.status, status, "{headers}");
            assert!(agent.is_closed());
        }
        let why = |why: GatewayRefusal| GatewayEvent::Refused { why };
        let expected = [
            why(GatewayRefusal::Unreadable),
            why(GatewayRefusal::Unreadable),
            why(GatewayRefusal::TooLarge),
        ];
        assert_eq!(rig.events(), expected);
    });
}

#[test]
fn calls_follow_each_other_on_one_connection_here_and_there() {
    let provide: Provide<'_> = &|_, stream| put_json(stream, "200 OK", "", ANSWER);
    run(Setup::new(ModelDialect::Anthropic), provide, &|rig| {
        let mut agent = rig.connect();
        for _ in 0..5 {
            assert_eq!(agent.post("/v1/messages", r#"{"model":"m"}"#).body, ANSWER);
        }
        let connections: Vec<usize> = rig.seen().iter().map(|seen| seen.connection).collect();
        assert_eq!(connections, [0; 5]);
        assert_eq!(rig.totals().usage, tokens(50, 25));
    });
}

#[test]
fn errors_of_the_provider_pass_with_what_says_when_to_ask_again() {
    let provide: Provide<'_> = &|seen, stream| {
        let body = r#"{"type":"error","error":{"type":"rate_limit_error","message":"slow"}}"#;
        if seen.body.contains(&b'4') {
            put_json(stream, "429 Too Many Requests", "retry-after: 7\r\n", body)
        } else {
            put_json(stream, "500 Oops", "", body)
        }
    };
    run(Setup::new(ModelDialect::Anthropic), provide, &|rig| {
        let mut agent = rig.connect();
        let got = agent.post("/v1/messages", r#"{"model":"4"}"#);
        assert_eq!(got.head.status, 429);
        assert_eq!(got.header("retry-after").as_deref(), Some("7"));
        assert_eq!(got.json()["error"]["type"], "rate_limit_error");
        assert_eq!(
            agent.post("/v1/messages", r#"{"model":"5"}"#).head.status,
            500
        );
        let totals = rig.totals();
        assert_eq!((totals.usage, totals.n_unmetered), (tokens(0, 0), 0));
    });
}

#[test]
fn the_key_is_blanked_wherever_the_provider_says_it() {
    let echo = format!("header {SECRET} and body");
    let provide: Provide<'_> = &|seen, stream| {
        if seen.body.contains(&b'e') {
            let headers = format!("x-echo: {echo}\r\n");
            let body = format!(r#"{{"error":{{"message":"wrong key {SECRET}"}}}}"#);
            return put_json(stream, "401 Unauthorized", &headers, &body);
        }
        begin_events(stream);
        let (one, two) = SECRET.split_at(9);
        put_chunk(stream, &format!("data: {one}"));
        put_chunk(stream, &format!("{two}\n\ndata: {SECRET}\n\n"));
        end_chunks(stream)
    };
    run(Setup::new(ModelDialect::Anthropic), provide, &|rig| {
        let mut agent = rig.connect();
        let failed = agent.post("/v1/messages", r#"{"x":"e"}"#);
        assert_eq!(failed.head.status, 401);
        let blank = "*".repeat(SECRET.len());
        let shown = format!("header {blank} and body");
        assert_eq!(failed.header("x-echo"), Some(shown));
        assert!(failed.is_whole && failed.body.contains(&blank));
        let streamed = agent.post("/v1/messages", r#"{"x":1}"#);
        assert_eq!(streamed.body, format!("data: {blank}\n\ndata: {blank}\n\n"));
        let everything = format!("{failed:?}{streamed:?}{:?}{:?}", rig.events(), rig.totals());
        assert!(!everything.contains(SECRET));
    });
}

#[test]
fn each_piece_of_a_stream_arrives_before_the_next_is_sent() {
    let (sender, receiver) = std::sync::mpsc::sync_channel::<()>(0);
    let receiver = std::sync::Mutex::new(receiver);
    let provide: Provide<'_> = &|_, stream| {
        begin_events(stream);
        for n in 0..3 {
            put_chunk(stream, &format!("data: {n}\n\n"));
            // Goes on only once the agent has this piece.
            let arrived = receiver.lock().expect("no panic").recv_timeout(PATIENCE);
            arrived.expect("the test is still there");
        }
        end_chunks(stream)
    };
    run(Setup::new(ModelDialect::Chat), provide, &|rig| {
        let mut agent = rig.connect();
        agent.begin_post("/v1/chat/completions", r#"{"model":"m","stream":true}"#);
        let head = agent.receive_head();
        let pieces = ["data: 0\n\n", "data: 1\n\n", "data: 2\n\n"];
        agent.receive_each(&head, &pieces, &|| {
            sender.send(()).expect("the provider waits");
        });
        let wanted = |event: &GatewayEvent| matches!(event, GatewayEvent::Unmetered { .. });
        let sent = r#"{"stream_options":{"include_usage":true},"model":"m","stream":true}"#;
        let expected = GatewayEvent::Unmetered {
            call: 1,
            why: UnknownUsage::NotTold,
            // At most a token a byte of what was sent and a provider's own words; of what was read,
            // one for every two bytes.
            estimate: tokens(u64::try_from(sent.len()).expect("short") + 1024, 13),
        };
        assert_eq!(rig.wait_for(&wanted), expected);
        assert_eq!(
            (rig.totals().n_unmetered, rig.reported()),
            (1, tokens(0, 0))
        );
    });
}

#[test]
fn an_answer_of_fifty_megabytes_passes_whole_and_is_counted() {
    let text = "x".repeat(64 * 1024);
    let before = r#"{"content":""#;
    let after = r#"","usage":{"input_tokens":3,"output_tokens":4}}"#;
    let provide: Provide<'_> = &|_, stream| {
        put(
            stream,
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n",
        );
        put(stream, before);
        for _ in 0..800 {
            put(stream, &text);
        }
        put(stream, after);
        After::Close
    };
    run(Setup::new(ModelDialect::Anthropic), provide, &|rig| {
        let got = rig.connect().post("/v1/messages", "{}");
        assert!(got.is_whole);
        assert_eq!(got.body.len(), before.len() + 800 * 64 * 1024 + after.len());
        assert_eq!(rig.totals().usage, tokens(3, 4));
    });
}

#[test]
fn a_chat_stream_is_asked_for_its_usage() {
    let provide: Provide<'_> = &|seen, stream| {
        let body = String::from_utf8_lossy(&seen.body).into_owned();
        assert!(
            body.contains(r#""stream_options":{"include_usage":true}"#),
            "{body}"
        );
        begin_events(stream);
        put_chunk(stream, "data: {\"choices\":[{}]}\n\n");
        put_chunk(
            stream,
            "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":8,",
        );
        put_chunk(stream, "\"completion_tokens\":2}}\n\ndata: [DONE]\n\n");
        end_chunks(stream)
    };
    run(Setup::new(ModelDialect::Chat), provide, &|rig| {
        let got = rig
            .connect()
            .post("/v1/chat/completions", r#"{"model":"m","stream":true}"#);
        assert!(got.is_whole && got.body.ends_with("data: [DONE]\n\n"));
        assert_eq!(rig.totals().usage, tokens(8, 2));
        assert!(rig.events().contains(&GatewayEvent::UsageAsked { call: 1 }));
        assert_eq!(
            rig.seen()[0].header("authorization"),
            Some(format!("Bearer {SECRET}"))
        );
    });
}

#[test]
fn an_agents_own_log_in_passes_unchanged() {
    let setup = Setup {
        auth: AuthStyle::AgentsOwn,
        ..Setup::new(ModelDialect::Anthropic)
    };
    let provide: Provide<'_> = &|_, stream| put_json(stream, "200 OK", "", ANSWER);
    run(setup, provide, &|rig| {
        let mut agent = rig.connect();
        agent.send(
            "POST /v1/messages HTTP/1.1\r\nauthorization: Bearer its-own\r\ncookie: a=b\r\n\
             content-length: 2\r\n\r\n{}",
        );
        assert_eq!(agent.receive("POST").head.status, 200);
        let seen = rig.seen();
        assert_eq!(
            seen[0].header("authorization").as_deref(),
            Some("Bearer its-own")
        );
        assert_eq!(
            (seen[0].header("cookie"), seen[0].header("x-api-key")),
            (None, None)
        );
        assert_eq!(rig.totals().usage, tokens(10, 5));
    });
}

#[test]
fn an_agent_that_asks_first_is_told_to_go_on() {
    let provide: Provide<'_> = &|_, stream| put_json(stream, "200 OK", "", ANSWER);
    run(Setup::new(ModelDialect::Anthropic), provide, &|rig| {
        let mut agent = rig.connect();
        agent.send(&format!(
            "POST /v1/messages HTTP/1.1\r\nx-api-key: {PLACEHOLDER}\r\nexpect: 100-continue\r\n\
             content-length: 2\r\n\r\n"
        ));
        assert_eq!(agent.receive_head().status, 100);
        agent.send("{}");
        assert_eq!(agent.receive("POST").body, ANSWER);
    });
}
