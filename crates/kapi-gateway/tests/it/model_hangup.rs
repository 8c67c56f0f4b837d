//! Agents that hang up to save tokens: what they asked for is counted all the same.
//!
//! The provider works on, as real ones may, and the gateway is to find out or to estimate.

use std::sync::{Condvar, Mutex};
use std::time::Duration;

use kapi_core::usage::Usage;
use kapi_gateway::model::dialect::ModelDialect;
use kapi_gateway::model::event::{GatewayEvent, GatewayRefusal};

use crate::model_rig::{
    After, PATIENCE, Provide, Rig, Setup, begin_events, end_chunks, put_chunk, run, wait_for_close,
};

const CREATED: &str = "event: response.created\ndata: {\"type\":\"response.created\",\"response\":\
                       {\"usage\":null}}\n\n";
const WORD: &str = "event: response.output_text.delta\ndata: {\"delta\":\"x\"}\n\n";
const COMPLETED: &str = "event: response.completed\ndata: {\"type\":\"response.completed\",\
                         \"response\":{\"usage\":{\"input_tokens\":100,\"output_tokens\":30}}}\n\n";
/// Answers that are read on at once.
const DRAINS_MAX: usize = 32;

/// Opens once every agent has left.
#[derive(Default)]
struct Gate {
    is_open: Mutex<bool>,
    opened: Condvar,
}

impl Gate {
    fn open(&self) {
        *self.is_open.lock().expect("no panic") = true;
        self.opened.notify_all();
    }

    fn wait(&self) {
        let is_open = self.is_open.lock().expect("no panic");
        let waited = self
            .opened
            .wait_timeout_while(is_open, PATIENCE, |is_open| !*is_open);
        assert!(*waited.expect("no panic").0, "the agents have left");
    }
}

/// Asks, and hangs up at the first bytes of the answer.
fn ask_and_leave(rig: &Rig<'_>, body: &str) {
    let mut agent = rig.connect();
    agent.begin_post("/v1/responses", body);
    let head = agent.receive_head();
    agent.receive_each(&head, &["response.created"], &|| ());
}

fn count(events: &[GatewayEvent], wanted: &dyn Fn(&GatewayEvent) -> bool) -> usize {
    events.iter().filter(|event| wanted(event)).count()
}

fn has_left(event: &GatewayEvent) -> bool {
    matches!(event, GatewayEvent::AgentLeft { .. })
}

fn is_estimated(event: &GatewayEvent) -> bool {
    matches!(event, GatewayEvent::Unmetered { .. })
}

#[test]
fn a_storm_of_hang_ups_costs_what_the_provider_counts() {
    const N_CALLS: usize = 30;
    let left = Gate::default();
    let provide: Provide<'_> = &|_, stream| {
        begin_events(stream);
        put_chunk(stream, CREATED);
        left.wait();
        for _ in 0..1000 {
            put_chunk(stream, WORD);
        }
        put_chunk(stream, COMPLETED);
        end_chunks(stream)
    };
    run(Setup::new(ModelDialect::Responses), provide, &|rig| {
        for _ in 0..N_CALLS {
            ask_and_leave(rig, "{}");
        }
        left.open();
        let is_used = |event: &GatewayEvent| matches!(event, GatewayEvent::Used { .. });
        rig.wait_until(&|events| count(events, &is_used) == N_CALLS);
        let events = rig.events();
        assert_eq!(count(&events, &has_left), N_CALLS);
        assert_eq!(count(&events, &is_estimated), 0);
        assert_eq!(rig.reported().input_tokens, 30 * 100);
        assert_eq!(rig.reported().output_tokens, 30 * 30);
    });
}

#[test]
fn too_many_hang_ups_at_once_and_the_end_of_a_run_cost_the_estimate() {
    const N_CALLS: usize = DRAINS_MAX + 8;
    let body = format!(
        r#"{{"max_output_tokens":500,"input":"{}"}}"#,
        "x".repeat(300)
    );
    let left = Gate::default();
    let provide: Provide<'_> = &|_, stream| {
        begin_events(stream);
        put_chunk(stream, CREATED);
        left.wait();
        for _ in 0..20 {
            put_chunk(stream, WORD);
        }
        // It thinks, and the gateway must not be held for as long as it does.
        wait_for_close(stream);
        After::Close
    };
    run(Setup::new(ModelDialect::Responses), provide, &|rig| {
        for _ in 0..N_CALLS {
            ask_and_leave(rig, &body);
        }
        left.open();
        let is = |n_left: usize, n_estimated: usize| {
            rig.wait_until(&|events| {
                count(events, &has_left) == n_left && count(events, &is_estimated) == n_estimated
            });
            let n = u64::try_from(n_estimated).expect("few");
            let each = Usage {
                // At most a token a byte, and what a provider adds.
                input_tokens: u64::try_from(body.len()).expect("short") + 1024,
                output_tokens: 500,
                usd_micros: None,
                ..Usage::ZERO
            };
            let estimated = rig.totals().estimated;
            assert_eq!(estimated.input_tokens, n * each.input_tokens);
            assert!(estimated.output_tokens >= n * each.output_tokens);
            assert_eq!(rig.estimated(), estimated);
        };
        is(N_CALLS, N_CALLS - DRAINS_MAX);
        rig.stop.raise();
        is(N_CALLS, N_CALLS);
        assert_eq!(rig.reported(), Usage::default());
    });
}

#[test]
fn hanging_up_spends_the_budget() {
    let mut setup = Setup::new(ModelDialect::Responses);
    setup.timeouts.drain = Duration::from_millis(100);
    setup.tokens_max = 300_000;
    let provide: Provide<'_> = &|_, stream| {
        begin_events(stream);
        put_chunk(stream, CREATED);
        let word = format!("{:x}\r\n{WORD}\r\n", WORD.len());
        let mut out = stream;
        while std::io::Write::write_all(&mut out, word.as_bytes()).is_ok() {}
        After::Close
    };
    run(setup, provide, &|rig| {
        let mut n_calls = 0;
        while rig.estimated().tokens() < 300_000 {
            n_calls += 1;
            assert!(
                n_calls <= 3,
                "each call is charged the longest answer there is"
            );
            ask_and_leave(rig, "{}");
            rig.wait_until(&|events| count(events, &is_estimated) == n_calls);
        }
        let got = rig.connect().post("/v1/responses", "{}");
        assert_eq!(got.head.status, 400, "{}", got.body);
        let refused = GatewayEvent::Refused {
            why: GatewayRefusal::Spent,
        };
        assert!(rig.events().contains(&refused));
    });
}
