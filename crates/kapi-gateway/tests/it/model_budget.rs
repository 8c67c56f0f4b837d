//! A spent budget: streams that end, calls that are refused, and counts that are exact.
//!
//! The budget itself is the rig's: so many tokens, and the verdict is that it is spent.

use std::sync::{Barrier, Mutex};
use std::thread;

use kapi_gateway::model::dialect::ModelDialect;
use kapi_gateway::model::event::{GatewayEvent, GatewayRefusal};
use kapi_gateway::model::meter::UnknownUsage;

use crate::model_rig::{
    After, Provide, Setup, begin_events, end_chunks, put_chunk, put_json, run, wait_for_close,
};

const STARTED: &str = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":\
                       {\"input_tokens\":1000,\"output_tokens\":1}}}\n\n";
const WORD: &str = "event: content_block_delta\ndata: {\"type\":\"content_block_delta\"}\n\n";
const TOTALS: &str = "event: message_delta\ndata: {\"type\":\"message_delta\",\"usage\":\
                      {\"output_tokens\":50}}\n\n";
const STOPPED: &str = "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n";

#[test]
fn a_stream_ends_at_its_next_event_once_the_budget_is_spent() {
    let setup = Setup {
        tokens_max: 1000,
        ..Setup::new(ModelDialect::Anthropic)
    };
    let provide: Provide<'_> = &|_, stream| {
        begin_events(stream);
        put_chunk(stream, STARTED);
        let (one, two) = WORD.split_at(30);
        // Words until the gateway hangs up; an event in two pieces stays whole.
        put_chunk(stream, one);
        put_chunk(stream, two);
        wait_for_close(stream);
        After::Close
    };
    run(setup, provide, &|rig| {
        let mut agent = rig.connect();
        let got = agent.post("/v1/messages", r#"{"model":"m","stream":true}"#);
        assert!(got.is_whole, "the agent sees an end, not a break");
        let events: Vec<&str> = got.body.split_inclusive("\n\n").collect();
        let (last, before) = events.split_last().expect("events");
        assert!(
            before.iter().all(|event| [STARTED, WORD].contains(event)),
            "{before:?}"
        );
        assert!(
            last.contains("\"type\":\"error\"") && last.contains("budget"),
            "{last}"
        );
        let refused = rig.connect().post("/v1/messages", r#"{"model":"m"}"#);
        assert_eq!(refused.head.status, 400);
        assert_eq!(refused.json()["error"]["type"], "invalid_request_error");
        assert_eq!(refused.header("x-should-retry").as_deref(), Some("false"));
        let count = rig.connect().post("/v1/messages/count_tokens", "{}");
        assert_ne!(count.head.status, 400, "counting tokens costs nothing");
        let events = rig.events();
        for expected in [
            GatewayEvent::Cut { call: 1 },
            GatewayEvent::Refused {
                why: GatewayRefusal::Spent,
            },
        ] {
            assert!(events.contains(&expected), "{expected:?} in {events:?}");
        }
        let is_estimated = |event: &GatewayEvent| {
            matches!(event, GatewayEvent::Unmetered { call: 1, why: UnknownUsage::BrokenOff, estimate }
                if (estimate.input_tokens, estimate.output_tokens) == (0, 128 * 1024 - 1))
        };
        assert!(events.iter().any(is_estimated), "{events:?}");
        assert_eq!(rig.reported().tokens(), 1001);
    });
}

#[test]
fn an_answer_that_is_paid_for_is_delivered_to_its_end() {
    let setup = Setup {
        tokens_max: 1050,
        ..Setup::new(ModelDialect::Anthropic)
    };
    let provide: Provide<'_> = &|_, stream| {
        begin_events(stream);
        for event in [STARTED, WORD, TOTALS, STOPPED] {
            put_chunk(stream, event);
        }
        end_chunks(stream)
    };
    run(setup, provide, &|rig| {
        let mut agent = rig.connect();
        let got = agent.post("/v1/messages", r#"{"model":"m","stream":true}"#);
        assert_eq!(got.body, [STARTED, WORD, TOTALS, STOPPED].concat());
        assert_eq!(agent.post("/v1/messages", "{}").head.status, 400);
        assert_eq!(
            (rig.reported().tokens(), rig.totals().n_unmetered),
            (1050, 0)
        );
    });
}

#[test]
fn one_calls_spending_ends_the_others_that_run() {
    let both_run = Barrier::new(2);
    let provide: Provide<'_> = &|seen, stream| {
        begin_events(stream);
        if seen.body.contains(&b'1') {
            put_chunk(stream, WORD);
            both_run.wait();
            // The gateway learns of it at the next event, which the agent will not see.
            wait_until_spent(stream);
            return After::Close;
        }
        both_run.wait();
        put_chunk(stream, STARTED);
        put_chunk(stream, TOTALS);
        end_chunks(stream)
    };
    let setup = Setup {
        tokens_max: 1000,
        ..Setup::new(ModelDialect::Anthropic)
    };
    run(setup, provide, &|rig| {
        thread::scope(|scope| {
            let first = scope.spawn(|| rig.connect().post("/v1/messages", r#"{"model":"1"}"#));
            let second = scope.spawn(|| rig.connect().post("/v1/messages", r#"{"model":"2"}"#));
            assert!(second.join().expect("no panic").is_whole);
            let first = first.join().expect("no panic");
            assert!(
                first.is_whole && first.body.contains("budget"),
                "{}",
                first.body
            );
        });
    });
}

/// Sends words until the gateway hangs up.
fn wait_until_spent(stream: &std::net::TcpStream) {
    use std::io::Write as _;
    let word = format!("{:x}\r\n{WORD}\r\n", WORD.len());
    let mut stream = stream;
    while stream.write_all(word.as_bytes()).is_ok() {}
}

#[test]
fn fifty_calls_side_by_side_are_counted_exactly() {
    const N_CALLS: usize = 50;
    let all_run = Barrier::new(N_CALLS);
    let provide: Provide<'_> = &|seen, stream| {
        all_run.wait();
        if seen.body.contains(&b'w') {
            return put_json(
                stream,
                "200 OK",
                "",
                r#"{"usage":{"input_tokens":7,"output_tokens":3}}"#,
            );
        }
        begin_events(stream);
        for event in [STARTED, WORD, TOTALS, STOPPED] {
            for piece in event.as_bytes().chunks(17) {
                put_chunk(stream, std::str::from_utf8(piece).expect("ASCII"));
            }
        }
        end_chunks(stream)
    };
    run(Setup::new(ModelDialect::Anthropic), provide, &|rig| {
        let bodies = Mutex::new(Vec::new());
        let ask = |kind: &str| {
            let got = rig
                .connect()
                .post("/v1/messages", &format!(r#"{{"x":"{kind}"}}"#));
            assert!(got.is_whole);
            bodies.lock().expect("no panic").push(got.body);
        };
        thread::scope(|scope| {
            for _ in 0..N_CALLS / 2 {
                scope.spawn(|| ask("w"));
                scope.spawn(|| ask("s"));
            }
        });
        assert_eq!(bodies.lock().expect("no panic").len(), N_CALLS);
        let totals = rig.totals();
        assert_eq!((totals.n_calls, totals.n_unmetered), (50, 0));
        assert_eq!(totals.usage.input_tokens, 25 * 7 + 25 * 1000);
        assert_eq!(totals.usage.output_tokens, 25 * 3 + 25 * 50);
        assert_eq!(rig.reported(), totals.usage);
    });
}

#[test]
fn the_refusal_has_the_shape_that_each_client_takes_for_final() {
    for (dialect, path) in [
        (ModelDialect::Anthropic, "/v1/messages"),
        (ModelDialect::Responses, "/v1/responses"),
        (ModelDialect::Chat, "/v1/chat/completions"),
        (ModelDialect::Gemini, "/v1beta/models/g:generateContent"),
    ] {
        let provide: Provide<'_> = &|_, _| panic!("not for the provider");
        run(Setup::new(dialect), provide, &|rig| {
            rig.gateway.spend_out();
            let got = rig.connect().post(path, "{}");
            assert_eq!(got.head.status, 400, "{dialect:?}");
            let message = got.json()["error"]["message"].clone();
            let message = message.as_str().expect("a message").to_lowercase();
            assert!(message.contains("budget"), "{message}");
            // Words by which agents know trouble that passes.
            for word in [
                "rate",
                "limit",
                "overloaded",
                "timeout",
                "try again",
                "5",
                "429",
            ] {
                assert!(!message.contains(word), "{message}");
            }
        });
    }
}
