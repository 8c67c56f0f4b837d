//! Who we are and whom we descend from.
//!
//! Through a real chain of processes: this test, a shell, the peer.

use kapi_sys::process::{ProcessEnd, current_exe, environment, parent_chain};

use crate::support::{PEER, finish_with_lines, script};

#[test]
fn the_chain_shows_ids_programs_and_environments() {
    let mut text = script(&format!("TOKEN=inner {PEER} ancestors; exit 0"));
    text.env.insert("TOKEN".into(), "outer".into());
    let (finished, lines) = finish_with_lines(text);
    assert_eq!(finished.end, ProcessEnd::Exited(0));
    assert!(
        lines[0].contains("kapi-sys-peer") && lines[0].contains("TOKEN=inner"),
        "{lines:?}"
    );
    assert!(
        lines[1].contains("sh\")") && lines[1].contains("TOKEN=outer"),
        "{lines:?}"
    );
    let me = format!("out: {} ", std::process::id());
    assert!(lines[2].starts_with(&me), "{lines:?}");
    assert!(!lines[2].contains("TOKEN="), "{lines:?}");
}

#[test]
fn the_chain_begins_with_us() {
    let chain = parent_chain();
    assert_eq!(chain[0].pid, std::process::id());
    assert_eq!(chain[0].exe, Some(current_exe().unwrap()));
    let parent = std::os::unix::process::parent_id();
    assert_eq!(chain[1].pid, parent);
}

#[test]
fn the_environment_is_ours() {
    let expected: Vec<_> = std::env::vars_os().collect();
    assert_eq!(environment().len(), expected.len());
    assert!(
        expected
            .iter()
            .all(|(name, value)| environment().get(name) == Some(value))
    );
}
