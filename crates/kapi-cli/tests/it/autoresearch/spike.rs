//! A lucky spike: a change without an effect that is measured once in a moment of luck.
//!
//! The benchmark sees by what Kapi has recorded how often it was run before, so that its luck is the same
//! for every rule.

use std::fs;

use kapi_testkit::mixed_bag::CHECKED;
use kapi_testkit::mixed_bag::idea::{mixed_bag, no_effect};

use super::{Machine, decided};

/// What the lucky run counts less.
const LUCK: f64 = 300.0;

/// Searches with two ideas, a spike and a real gain; one run of the benchmark is lucky, counted from 0.
fn search(rule: &str, lucky: u32) -> Vec<(String, Option<f64>, String)> {
    let gain = mixed_bag().pop().unwrap();
    let machine = Machine::with_ideas(&[no_effect(), gain]);
    let records = machine.env.repository().join(".ilchul/runs");
    fs::create_dir_all(&records).unwrap();
    let records = records.display();
    machine
        .env
        .configure(&format!("[sandbox]\nread_only = [\"{records}\"]\n"));
    let benchmark = format!(
        "set -eu\nruns=$(find '{records}' -name 'benchmark-*.log' -o -name 'parent-*.log' | wc -l)\n\
         line=$(sh bench/run.sh)\nluck=0\n[ \"$runs\" != {lucky} ] || luck={LUCK}\n\
         echo \"METRIC comparisons=$((${{line#*=}} - luck))\"\n"
    );
    let measured = ["--metric", "comparisons", "--benchmark", &benchmark];
    let rule = ["--keep", rule];
    let proposed = machine.search(&[&measured, CHECKED, &rule].concat());
    assert_eq!(proposed.code, 5, "{proposed:?}");
    machine.approve();
    let done = machine.resume(&[]);
    assert_eq!(done.code, 0, "{done:?}");
    machine.runs()
}

#[test]
fn a_lucky_spike_is_kept_by_the_plain_rule() {
    // Three runs of the baseline come before.
    let runs = search("plain", 3);
    let expected = [
        ("keep", Some(6263.0)),
        ("keep", Some(6263.0 - LUCK)),
        ("keep", Some(3061.0)),
    ];
    assert_eq!(decided(&runs), expected, "{runs:#?}");
}

/// Checks that the spike is refused, although it was lucky, and the gain after it is kept.
fn assert_refused(rule: &str, lucky: u32, reason: &str) {
    let runs = search(rule, lucky);
    let found: Vec<&str> = runs.iter().map(|(status, ..)| status.as_str()).collect();
    assert_eq!(found, ["keep", "discard", "keep"], "{runs:#?}");
    assert_eq!(runs[1].2, reason);
}

#[test]
fn a_lucky_spike_is_refused_where_it_is_confirmed() {
    assert_refused("confirm", 3, "confirm: 6263 is equal to 6263");
}

#[test]
fn a_lucky_spike_is_refused_where_pairs_decide() {
    // The parent is measured before it.
    assert_refused("paired", 4, "paired: it won 1 of 6 pairs");
}
