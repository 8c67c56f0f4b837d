//! Attempts to get out of a sandbox, each of which must be refused: at each level, as the user who
//! runs the tests and, if that is root, as an ordinary user too.
//!
//! An attempt is one file in `attempts`; see `AGENTS.md` here for its form.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "the whole binary is a test; clippy sees only the functions marked as one"
)]

mod attempt;
mod canary;
mod cases;
#[path = "../suite/place.rs"]
mod place;
#[path = "../suite/request.rs"]
mod request;
mod trial;

use std::io::Write as _;

use canary::Canaries;
use place::{Level, Place, Who};

/// How many attempts there are at least.
const ATTEMPTS_MIN: usize = 60;

#[test]
fn every_attempt_is_understood_and_there_are_enough() {
    let attempts = attempt::all();
    assert!(attempts.len() >= ATTEMPTS_MIN, "{}", attempts.len());
    for attempt in &attempts {
        assert_eq!(
            attempt.levels,
            [Level::Native, Level::Podman],
            "{}",
            attempt.name
        );
    }
}

#[test]
fn native_refuses_whoever_runs_the_tests() {
    check(Level::Native, Who::Own);
}

#[test]
fn native_refuses_an_ordinary_user() {
    check(Level::Native, Who::Ordinary);
}

#[test]
fn podman_refuses_whoever_runs_the_tests() {
    check(Level::Podman, Who::Own);
}

#[test]
fn podman_refuses_an_ordinary_user() {
    check(Level::Podman, Who::Ordinary);
}

/// Tries everything and names all that got out.
fn check(level: Level, who: Who) {
    let Some(location) = Place::new(level, who) else {
        return;
    };
    let attempts = attempt::all();
    attempt::install(&attempts, &location);
    let mut canaries = Canaries::new(&location, who as u32);
    let (mut faults, mut holes) = (Vec::new(), Vec::new());
    for batch in trial::batches(&location, &attempts) {
        let judgements = trial::run(&location, &mut canaries, &batch);
        for (attempt, judgement) in batch.iter().zip(judgements) {
            let name = &attempt.name;
            faults.extend(
                judgement
                    .troubles
                    .iter()
                    .map(|why| format!("{name}: {why}")),
            );
            let hole = attempt.hole_at(&location);
            let hole = hole.filter(|hole| judgement.grade.contains(&hole.when));
            match (hole, judgement.escapes.is_empty()) {
                (None, _) => {
                    let escapes = judgement.escapes.iter();
                    faults.extend(escapes.map(|what| format!("{name}: ESCAPED: {what}")));
                }
                (Some(hole), false) => holes.push(format!("{name} gets out: {}", hole.why)),
                (Some(_), true) => {
                    faults.push(format!("{name}: is refused now: take its known-hole away"));
                }
            }
        }
    }
    let mut out = std::io::stderr();
    writeln!(out, "KNOWN HOLES of {level:?} as {who:?}: {holes:#?}").unwrap();
    assert!(
        faults.is_empty(),
        "{level:?} as {who:?}:\n{}",
        faults.join("\n")
    );
    assert_eq!(location.remains(), "");
}

#[test]
fn each_attempt_gets_out_when_its_wall_is_taken_away() {
    let location = Place::new(Level::Native, Who::Own).unwrap();
    let attempts = attempt::all();
    attempt::install(&attempts, &location);
    let mut canaries = Canaries::new(&location, 7);
    let mut blind = Vec::new();
    for attempt in &attempts {
        let judgement = trial::run_free(&location, &mut canaries, attempt);
        if judgement.escapes.is_empty() {
            blind.push(format!(
                "{} ({}) sees nothing under {:?}: {:?}",
                attempt.name, attempt.says, attempt.control, judgement.troubles
            ));
        }
    }
    assert!(
        blind.is_empty(),
        "some walls can be taken away by root only:\n{}",
        blind.join("\n")
    );
}
