//! Signals, sent to a real second process.
//!
//! A process can take over its signals only once, so none of this runs inside the test itself.

use std::os::unix::process::ExitStatusExt as _;

use rustix::process::{Signal, kill_process};

use crate::support::{Background, await_line};

/// Starts a process that watches for signals, and sends it one.
fn interrupted_by(signal: Signal) -> (Background, String) {
    let directory = tempfile::tempdir().unwrap();
    let [ready, seen] = ["ready", "seen"].map(|name| directory.path().join(name));
    let peer = Background::peer(&[
        "interrupts",
        ready.to_str().unwrap(),
        seen.to_str().unwrap(),
    ]);
    await_line(&ready);
    kill_process(peer.pid(), signal).unwrap();
    let seen = await_line(&seen);
    (peer, seen)
}

#[test]
fn each_signal_raises_the_flag_and_leaves_its_number() {
    for (signal, number) in [(Signal::INT, 2), (Signal::TERM, 15), (Signal::HUP, 1)] {
        let (mut peer, seen) = interrupted_by(signal);
        assert_eq!(seen, format!("Some({number})"));
        assert_eq!(
            peer.0.try_wait().unwrap(),
            None,
            "one signal leaves time to clean up"
        );
    }
}

#[test]
fn a_second_interrupt_ends_the_process_at_once() {
    for first in [Signal::INT, Signal::TERM] {
        let (mut peer, _) = interrupted_by(first);
        kill_process(peer.pid(), Signal::INT).unwrap();
        let status = peer.0.wait().unwrap();
        assert_eq!((status.code(), status.signal()), (Some(130), None));
    }
}
