//! Books against what was really served, for the first seeds; `cargo xtask books` plays more.

use kapi_testkit::books::play;

/// So many that every dialect and every fault comes up.
const SEEDS: u64 = 24;

#[test]
fn books_are_never_below_what_was_served_nor_above_what_they_say_is_doubtful() {
    let (mut n_limited, mut n_doubtful, mut n_unpriced) = (0, 0, 0);
    for seed in 0..SEEDS {
        let tally = play(seed).expect("books that are right");
        n_limited += u64::from(tally.is_limited);
        n_doubtful += tally.booked.doubt.calls;
        n_unpriced += tally.served.unpriced_calls;
    }
    assert!(n_limited > 0, "no seed meets a limit");
    assert!(n_doubtful > 0, "no seed has an answer that breaks off");
    assert!(n_unpriced > 0, "no seed has a model without a price");
}
