//! One list of what a run is like, asked of each level with the same words, as the user who runs the
//! tests and, if that is root, as an ordinary user too.
//!
//! Where levels differ they are wrong, unless `differences` says why they must.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "the whole binary is a test; clippy sees only the functions marked as one"
)]

mod differences;
mod ends;
mod limits;
mod outside;
#[path = "../suite/place.rs"]
mod place;
#[path = "../suite/request.rs"]
mod request;
mod streams;
mod surroundings;
mod workspace;

use std::io::Write as _;

use kapi_sys::process::run_quiet;
use place::{Level, Place, Who, read_reply};
use request::{Reply, Request};

/// One thing that holds of every run: what it is, what runs something and says what was seen, the same
/// at every level, and what must be seen.
type Behaviour = (&'static str, fn(&Place) -> String, &'static str);

fn behaviours() -> impl Iterator<Item = &'static Behaviour> {
    let parts = [
        ends::BEHAVIOURS,
        streams::BEHAVIOURS,
        surroundings::BEHAVIOURS,
        workspace::BEHAVIOURS,
        limits::BEHAVIOURS,
        outside::BEHAVIOURS,
    ];
    parts.into_iter().flatten()
}

/// Performs a request as a place's user.
fn run(location: &Place, request: &Request) -> Reply {
    read_reply(&run_quiet(location.driver(&[], request)).unwrap())
}

/// Runs a shell line and returns what it printed, errors after it.
fn say(location: &Place, line: &str) -> String {
    let reply = run(location, &location.shell(line));
    notify(&reply)
}

/// Puts a reply into words without what differs from run to run.
fn notify(reply: &Reply) -> String {
    let end = if reply.end == "Exited(0)" {
        String::new()
    } else {
        format!("{}; ", reply.end)
    };
    let text = format!("{end}{}{}", reply.stdout, reply.stderr);
    text.trim_end().to_owned()
}

/// The longest that a condition is waited for, on a machine that does other things besides.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(60);

/// Waits until a condition holds.
fn await_condition(what: &str, condition: impl Fn() -> bool) {
    let began = std::time::Instant::now();
    while !condition() {
        assert!(began.elapsed() < PATIENCE, "never happened: {what}");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

/// Returns a number of seconds that nobody else sleeps, to tell a run's processes from others.
fn mark(location: &Place, seconds: u32) -> String {
    format!("{seconds}.{}{}", std::process::id(), location.user())
}

fn check(level: Level, who: Who) {
    let Some(location) = Place::new(level, who) else {
        return;
    };
    let (mut faults, mut table) = (Vec::new(), Vec::new());
    for (name, observe, expected) in behaviours() {
        let seen = observe(&location);
        let found = differences::find(&location, name);
        let is_common = seen == *expected;
        match found {
            Some(other) if is_common && other.is_always => faults.push(format!(
                "{name}: is as everywhere now: take it from the table of differences"
            )),
            Some(other) if seen == other.seen => {
                table.push(format!("{}: {:?}: {}", name, seen, other.why));
            }
            _ if is_common => {}
            Some(_) | None => faults.push(format!("{}: saw {seen:?}, not {:?}", name, *expected)),
        }
    }
    let mut out = std::io::stderr();
    writeln!(out, "DIFFERENCES of {level:?} as {who:?}: {table:#?}").unwrap();
    let title = format!("{level:?} as {who:?}");
    assert!(faults.is_empty(), "{title}:\n{}", faults.join("\n"));
    assert_eq!(location.remains(), "", "{title}");
}

#[test]
fn native_behaves_for_whoever_runs_the_tests() {
    check(Level::Native, Who::Own);
}

#[test]
fn native_behaves_for_an_ordinary_user() {
    check(Level::Native, Who::Ordinary);
}

#[test]
fn podman_behaves_for_whoever_runs_the_tests() {
    check(Level::Podman, Who::Own);
}

#[test]
fn podman_behaves_for_an_ordinary_user() {
    check(Level::Podman, Who::Ordinary);
}

#[test]
fn every_difference_is_of_something_that_is_asked() {
    let names: Vec<&str> = behaviours().map(|(name, ..)| *name).collect();
    for name in differences::names() {
        assert!(names.contains(&name), "{name}");
    }
    let mut once = names.clone();
    once.sort_unstable();
    once.dedup();
    assert_eq!(once.len(), names.len());
}
