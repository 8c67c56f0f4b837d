//! Output in bulk: floods, endless lines, tails, and the memory they cost.
//!
//! The rules of cutting are unit tests beside the code; here the pipes are real.

use kapi_sys::process::ProcessEnd;

use crate::support::{PEER, finish, finish_with_lines, program, script};

/// The most our own memory may grow while any amount of output passes.
const GROWTH_KIB_MAX: u64 = 4 * 1024;

/// Runs a script in a process of its own, and returns how many lines and bytes of lines came, how
/// many bytes there were, and by how many KiB that process grew.
fn count(text: &str) -> [u64; 4] {
    let (finished, lines) = finish_with_lines(program(PEER, &["count-output", text]));
    assert_eq!(finished.end, ProcessEnd::Exited(0), "{lines:?}");
    let numbers: Vec<u64> = lines[0]
        .split(' ')
        .skip(1)
        .map(|n| n.parse().unwrap())
        .collect();
    numbers.try_into().unwrap()
}

#[test]
fn a_flood_of_lines_costs_no_memory() {
    let long = "y".repeat(999);
    let [n_lines, n_bytes, bytes_total, growth] = count(&format!("yes {long} | head -c 200000000"));
    assert_eq!(
        (n_lines, n_bytes, bytes_total),
        (200_000, 199_800_000, 200_000_000)
    );
    assert!(growth < GROWTH_KIB_MAX, "memory grew by {growth} KiB");
}

#[test]
fn a_line_without_end_costs_no_memory() {
    let [n_lines, n_bytes, bytes_total, growth] = count("head -c 200000000 /dev/zero");
    assert_eq!((n_lines, n_bytes, bytes_total), (1, 1024, 200_000_000));
    assert!(growth < GROWTH_KIB_MAX, "memory grew by {growth} KiB");
}

#[test]
fn a_line_of_three_megabytes_is_cut_and_the_next_one_is_not() {
    let mut long = script("head -c 3000000 /dev/zero | tr '\\0' x; echo; echo end");
    long.limits.line_bytes_max = 100;
    let (finished, lines) = finish_with_lines(long);
    assert_eq!(
        lines,
        [format!("out: {}", "x".repeat(100)), "out: end".to_owned()]
    );
    assert_eq!(finished.stdout.bytes_total, 3_000_005);
}

#[test]
fn the_tail_is_the_end_and_says_what_is_missing() {
    let mut counted = script("seq 1 100000");
    counted.limits.tail_bytes_max = 13;
    let finished = finish(counted);
    assert_eq!(
        finished.stdout.text(),
        "[588882 earlier bytes left out]\n99999\n100000\n"
    );
    assert_eq!(finished.stderr.bytes_total, 0);
}

#[test]
fn nothing_written_just_before_the_end_is_lost() {
    for _ in 0..20 {
        let (finished, lines) = finish_with_lines(script("seq 1 5000; seq 1 5000 >&2"));
        assert_eq!((finished.end, lines.len()), (ProcessEnd::Exited(0), 10_000));
    }
}

#[test]
fn an_output_closed_early_does_not_end_the_program() {
    let (finished, lines) = finish_with_lines(script("exec >&- 2>/dev/null; sleep 0.2; exit 4"));
    assert_eq!((finished.end, lines), (ProcessEnd::Exited(4), vec![]));
}
