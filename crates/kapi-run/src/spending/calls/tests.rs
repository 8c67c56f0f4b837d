//! Calls side by side under one limit, and calls that no limit lets through.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Barrier, Mutex};
use std::thread;

use kapi_core::room::Room;
use kapi_core::usage::Usage;
use kapi_machine::watch::{Activity, EffectWatch, RoomQuery};
use kapi_spend::rules::call::{CallBounds, CallRefusal, OutputLimit};
use kapi_spend::rules::prices::Prices;
use kapi_sys::cancel::Cancel;

use super::{CallBook, CallStart};

const BOUNDS: CallBounds = CallBounds {
    input_least: 40,
    input_likely: 100,
    input_max: Some(400),
    output: OutputLimit::Named(1_000),
};

/// Someone who limits tokens, and counts.
struct Limiter {
    left: Mutex<Room>,
    refused: Mutex<Vec<String>>,
}

impl Limiter {
    fn new(left: Room) -> Self {
        Self {
            left: Mutex::new(left),
            refused: Mutex::default(),
        }
    }

    fn room(&self, query: &RoomQuery<'_>) -> Room {
        if let RoomQuery::Refused { why } = query {
            self.refused.lock().unwrap().push((*why).to_owned());
        }
        *self.left.lock().unwrap()
    }

    fn used(&self, tokens: u64) {
        let mut left = self.left.lock().unwrap();
        *left = left.less_used(&Usage {
            output_tokens: tokens,
            ..Usage::ZERO
        });
    }
}

fn tokens(tokens: u64) -> Room {
    Room {
        tokens: Some(tokens),
        ..Room::UNLIMITED
    }
}

fn with_book(limiter: &Limiter, cancel: &Cancel, act: impl FnOnce(&CallBook<'_>)) {
    let room = |query: &RoomQuery<'_>| limiter.room(query);
    let watch = EffectWatch {
        cancel,
        notice: &|_: Activity| {},
        room: &room,
    };
    let prices = Prices::built_in();
    act(&CallBook::new(
        &watch,
        Some(&prices),
        "anthropic".to_owned(),
    ));
}

#[test]
fn sixty_calls_at_once_use_no_more_than_there_is() {
    const N_CALLS: usize = 60;
    let limiter = Limiter::new(tokens(3_000));
    let (all, n_sent) = (Barrier::new(N_CALLS), AtomicUsize::new(0));
    with_book(&limiter, &Cancel::new(), |book| {
        let send = |call: usize| {
            all.wait();
            let call = call as u64;
            if let CallStart::Go { output_max } = book.begin(call, "m", &BOUNDS, &|| false) {
                n_sent.fetch_add(1, Ordering::SeqCst);
                limiter.used(100 + output_max.expect("a limit"));
                book.end(call);
            }
        };
        let send = &send;
        thread::scope(|scope| {
            for call in 0..N_CALLS {
                scope.spawn(move || send(call));
            }
        });
    });
    // Two fit at their worst; the next ones go alone, with what is left.
    assert!(
        (3..=4).contains(&n_sent.load(Ordering::SeqCst)),
        "{n_sent:?}"
    );
    let left = limiter.left.lock().unwrap().tokens.expect("a limit");
    assert!(left < 100 + 256, "what is left is of no use: {left}");
}

#[test]
fn a_model_without_a_price_is_refused_where_money_is_limited_and_the_remedy_is_told() {
    let limiter = Limiter::new(Room {
        usd_micros: Some(1_000_000),
        needs_price: true,
        ..Room::UNLIMITED
    });
    with_book(&limiter, &Cancel::new(), |book| {
        let refused = book.begin(1, "claude-opus-99", &BOUNDS, &|| false);
        assert_eq!(refused, CallStart::Refused(CallRefusal::Unpriced));
        let priced = book.begin(2, "claude-opus-5", &BOUNDS, &|| false);
        assert!(matches!(priced, CallStart::Go { .. }));
        assert!(book.is_new_unpriced(1) && !book.is_new_unpriced(1));
    });
    let refused = limiter.refused.lock().unwrap().join("\n");
    for word in ["anthropic/claude-opus-99", "[prices.", "allow_unpriced"] {
        assert!(refused.contains(word), "{refused}");
    }
}

#[test]
fn a_call_that_waits_ends_with_its_run() {
    let (limiter, cancel) = (Limiter::new(tokens(2_000)), Cancel::new());
    with_book(&limiter, &cancel, |book| {
        assert!(matches!(
            book.begin(1, "m", &BOUNDS, &|| false),
            CallStart::Go { .. }
        ));
        let looks = AtomicUsize::new(0);
        let is_stopped = || looks.fetch_add(1, Ordering::SeqCst) > 2;
        let stopped = book.begin(2, "m", &BOUNDS, &is_stopped);
        assert_eq!(stopped, CallStart::Stopped);
        cancel.raise();
        assert_eq!(book.begin(3, "m", &BOUNDS, &|| false), CallStart::Stopped);
    });
}
