//! Providers and agents that stall, vanish or misbehave.
//!
//! Time limits are short where one must run out, and long everywhere else.

use std::cell::Cell;
use std::net::{Shutdown, TcpListener};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use kapi_gateway::model::dialect::ModelDialect;
use kapi_gateway::model::event::GatewayEvent;
use kapi_gateway::model::meter::UnknownUsage;

use crate::model_rig::{
    After, PATIENCE, Provide, Setup, begin_events, begin_events_with, end_chunks, put, put_chunk,
    put_json, run, wait_for_close,
};
use crate::room::with_room;

const SHORT: Duration = Duration::from_millis(300);
const ANSWER: &str = r#"{"usage":{"input_tokens":10,"output_tokens":5}}"#;
const STARTED: &str =
    "data: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":10}}}\n\n";
const TOTALS: &str = "data: {\"type\":\"message_delta\",\"usage\":{\"output_tokens\":5}}\n\n";

fn impatient() -> Setup {
    let mut setup = Setup::new(ModelDialect::Anthropic);
    setup.timeouts.first_byte = SHORT;
    setup.timeouts.silence = SHORT;
    setup
}

#[test]
fn a_provider_that_never_answers_is_a_stall_that_passes() {
    let provide: Provide<'_> = &|_, stream| {
        wait_for_close(stream);
        After::Close
    };
    run(impatient(), provide, &|rig| {
        let began = Instant::now();
        let mut agent = rig.connect();
        let got = agent.post("/v1/messages", "{}");
        assert!(began.elapsed() >= SHORT);
        assert_eq!(got.head.status, 504);
        assert_eq!(got.json()["error"]["type"], "timeout_error");
        assert_eq!(got.header("x-should-retry").as_deref(), Some("true"));
        let events = rig.events();
        assert!(
            events.contains(&GatewayEvent::Stalled { call: 1 }),
            "{events:?}"
        );
        // It may have worked on it all the same.
        assert_eq!(rig.totals().n_unmetered, 1);
        assert_eq!(rig.estimated().output_tokens, 128 * 1024);
    });
}

#[test]
fn a_stream_that_stalls_breaks_off_after_what_came() {
    let provide: Provide<'_> = &|_, stream| {
        // At once, for silence is measured from the head on.
        begin_events_with(stream, STARTED);
        wait_for_close(stream);
        After::Close
    };
    let mut setup = Setup::new(ModelDialect::Anthropic);
    setup.timeouts.silence = SHORT;
    run(setup, provide, &|rig| {
        let got = rig.connect().post("/v1/messages", "{}");
        assert_eq!((got.body.as_str(), got.is_whole), (STARTED, false));
        rig.wait_for(&|event| *event == GatewayEvent::Stalled { call: 1 });
        let wanted = |event: &GatewayEvent| {
            matches!(event, GatewayEvent::Unmetered { call: 1, why: UnknownUsage::BrokenOff, estimate }
                if (estimate.input_tokens, estimate.output_tokens) == (0, 128 * 1024))
        };
        rig.wait_for(&wanted);
        assert_eq!((rig.reported().tokens(), rig.totals().n_stalled), (10, 1));
    });
}

#[test]
fn a_provider_that_breaks_off_is_seen_to() {
    let provide: Provide<'_> = &|_, stream| {
        begin_events(stream);
        put_chunk(stream, STARTED);
        After::Close
    };
    run(Setup::new(ModelDialect::Anthropic), provide, &|rig| {
        let got = rig.connect().post("/v1/messages", "{}");
        assert_eq!((got.body.as_str(), got.is_whole), (STARTED, false));
        rig.wait_for(&|event| *event == GatewayEvent::BrokenOff { call: 1 });
    });
}

#[test]
fn nobody_at_the_providers_address_is_said_and_passes() {
    let free = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = free.local_addr().expect("an address").port();
    drop(free);
    let setup = Setup {
        base_url: Some(format!("http://127.0.0.1:{port}")),
        ..Setup::new(ModelDialect::Responses)
    };
    let provide: Provide<'_> = &|_, _| panic!("not this provider");
    run(setup, provide, &|rig| {
        let got = rig.connect().post("/v1/responses", "{}");
        assert_eq!(got.head.status, 502);
        assert_eq!(got.header("x-should-retry").as_deref(), Some("true"));
        let message = got.json()["error"]["message"].to_string();
        assert!(message.contains("connect to 127.0.0.1"), "{message}");
        assert_eq!(rig.totals().n_unmetered, 0);
    });
}

#[test]
fn answers_that_cannot_be_passed_on_safely_are_not() {
    let provide: Provide<'_> = &|seen, stream| match seen.body.as_slice() {
        b"{\"a\":1}" => put_json(
            stream,
            "302 Found",
            "location: http://elsewhere.test/\r\n",
            "",
        ),
        b"{\"a\":2}" => put_json(stream, "200 OK", "content-encoding: gzip\r\n", "zipped"),
        b"{\"a\":3}" => put_json(stream, "200 OK", "transfer-encoding: chunked\r\n", "two"),
        _ => {
            put(stream, "no HTTP at all\r\n\r\n");
            After::Close
        }
    };
    run(Setup::new(ModelDialect::Anthropic), provide, &|rig| {
        for body in [r#"{"a":1}"#, r#"{"a":2}"#, r#"{"a":3}"#, r#"{"a":4}"#] {
            let got = rig.connect().post("/v1/messages", body);
            assert_eq!(got.head.status, 502, "{body}");
            assert_eq!(got.header("location"), None);
            assert_eq!(got.json()["type"], "error");
        }
        assert_eq!((rig.seen().len(), rig.totals().n_unmetered), (4, 4));
    });
}

#[test]
fn a_kept_connection_that_the_provider_closed_costs_nothing() {
    let n_requests = AtomicUsize::new(0);
    let provide: Provide<'_> = &|_, stream| {
        put_json(stream, "200 OK", "", ANSWER);
        match n_requests.fetch_add(1, Ordering::SeqCst) {
            0 => After::Close,
            _ => After::Keep,
        }
    };
    run(Setup::new(ModelDialect::Anthropic), provide, &|rig| {
        let mut agent = rig.connect();
        for _ in 0..3 {
            assert_eq!(agent.post("/v1/messages", "{}").body, ANSWER);
        }
        assert_eq!(rig.totals().usage.tokens(), 45);
    });
}

#[test]
fn a_request_that_a_kept_connection_swallowed_is_sent_once_more() {
    let provide: Provide<'_> = &|seen, stream| {
        if seen.connection == 0 && seen.body == b"{\"n\":2}" {
            return After::Close;
        }
        put_json(stream, "200 OK", "", ANSWER)
    };
    run(Setup::new(ModelDialect::Anthropic), provide, &|rig| {
        let mut agent = rig.connect();
        assert_eq!(agent.post("/v1/messages", r#"{"n":1}"#).body, ANSWER);
        assert_eq!(agent.post("/v1/messages", r#"{"n":2}"#).body, ANSWER);
        assert!(rig.events().contains(&GatewayEvent::Retried { call: 2 }));
        assert_eq!((rig.seen().len(), rig.totals().n_calls), (3, 2));
    });
}

#[test]
fn an_agent_that_leaves_before_the_end_is_counted_all_the_same() {
    let (sender, receiver) = std::sync::mpsc::sync_channel::<()>(1);
    let receiver = std::sync::Mutex::new(receiver);
    let provide: Provide<'_> = &|_, stream| {
        begin_events(stream);
        put_chunk(stream, STARTED);
        let left = receiver.lock().expect("no panic").recv_timeout(PATIENCE);
        left.expect("the test is still there");
        // The gateway notices at some write that nobody reads any more.
        for _ in 0..1000 {
            put_chunk(stream, "data: {\"type\":\"ping\"}\n\n");
        }
        put_chunk(stream, TOTALS);
        end_chunks(stream)
    };
    run(Setup::new(ModelDialect::Anthropic), provide, &|rig| {
        let mut agent = rig.connect();
        agent.begin_post("/v1/messages", "{}");
        let head = agent.receive_head();
        agent.receive_each(&head, &["message_start"], &|| ());
        drop(agent);
        sender.send(()).expect("the provider waits");
        let wanted = |event: &GatewayEvent| matches!(event, GatewayEvent::Used { usage, .. } if usage.output_tokens == 5);
        rig.wait_for(&wanted);
        assert_eq!((rig.reported().tokens(), rig.totals().n_unmetered), (15, 0));
    });
}

#[test]
fn an_answer_that_nobody_reads_is_not_waited_for_without_end() {
    let mut setup = Setup::new(ModelDialect::Anthropic);
    setup.timeouts.drain = SHORT;
    let provide: Provide<'_> = &|_, stream| {
        begin_events(stream);
        put_chunk(stream, STARTED);
        // Words for ever: until the gateway hangs up.
        let word = "data: {\"type\":\"ping\"}\n\n".repeat(1000);
        let word = format!("{:x}\r\n{word}\r\n", word.len());
        let mut out = stream;
        while std::io::Write::write_all(&mut out, word.as_bytes()).is_ok() {}
        After::Close
    };
    run(setup, provide, &|rig| {
        let mut agent = rig.connect();
        agent.begin_post("/v1/messages", "{}");
        let head = agent.receive_head();
        agent.receive_each(&head, &["message_start"], &|| ());
        drop(agent);
        rig.wait_for(&|event| *event == GatewayEvent::AgentLeft { call: 1 });
        rig.wait_for(&|event| matches!(event, GatewayEvent::Unmetered { .. }));
        assert!(rig.estimated().output_tokens >= 128 * 1024);
    });
}

#[test]
fn a_stop_ends_calls_that_hang() {
    let provide: Provide<'_> = &|_, stream| {
        wait_for_close(stream);
        After::Close
    };
    let began = Instant::now();
    run(Setup::new(ModelDialect::Anthropic), provide, &|rig| {
        let mut agent = rig.connect();
        agent.begin_post("/v1/messages", "{}");
        rig.wait_for(&|event| matches!(event, GatewayEvent::Call { .. }));
        // The end of the test raises the sign, and every thread is joined.
    });
    assert!(began.elapsed() < PATIENCE);
}

#[test]
fn an_agent_that_dawdles_is_let_go() {
    let provide: Provide<'_> = &|_, _| panic!("not for the provider");
    with_room(300, |limit_ms| {
        let mut setup = Setup::new(ModelDialect::Anthropic);
        setup.timeouts.agent = Duration::from_millis(limit_ms);
        let got = Cell::new(None);
        run(setup, provide, &|rig| {
            let mut idle = rig.connect();
            let mut agent = rig.connect();
            agent.send("POST /v1/messages HTTP/1.1\r\nhost:");
            let answer = agent.receive_if_any("POST");
            assert!(answer.is_none() || agent.is_closed());
            got.set(answer);
            assert!(
                idle.is_closed(),
                "an idle connection is closed without a word"
            );
        });
        // One that has said nothing in time is idle, too.
        let got = got.into_inner()?;
        assert_eq!(got.head.status, 408);
        Some(())
    });
}

#[test]
fn interim_answers_are_not_taken_for_the_answer() {
    let provide: Provide<'_> = &|_, stream| {
        put(stream, "HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n");
        put_json(stream, "200 OK", "", ANSWER)
    };
    run(Setup::new(ModelDialect::Anthropic), provide, &|rig| {
        assert_eq!(rig.connect().post("/v1/messages", "{}").body, ANSWER);
    });
}

#[test]
fn a_half_closed_agent_still_gets_its_answer() {
    let provide: Provide<'_> = &|_, stream| put_json(stream, "200 OK", "", ANSWER);
    run(Setup::new(ModelDialect::Anthropic), provide, &|rig| {
        let mut agent = rig.connect();
        agent.begin_post("/v1/messages", "{}");
        agent.shut_down(Shutdown::Write);
        assert_eq!(agent.receive("POST").body, ANSWER);
    });
}
