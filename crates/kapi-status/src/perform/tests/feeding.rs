//! Hooks and progress files of well-behaved agents.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::time::{Duration, Instant};

use super::{Host, read, shown};
use crate::perform::listener::HookListener;
use crate::perform::progress_file::{ProgressFile, ProgressStep};
use crate::perform::watch::{StatusSource, during};

pub(super) fn send(listener: &HookListener, message: &str) {
    let socket = UnixDatagram::unbound().unwrap();
    let path = listener.directory().join("hook.sock");
    socket.send_to(message.as_bytes(), path).unwrap();
}

pub(super) fn write_progress(workspace: &Path, text: &str) {
    fs::create_dir_all(workspace.join(".kapsis")).unwrap();
    let new = workspace.join(".kapsis/new");
    fs::File::create(&new)
        .unwrap()
        .write_all(text.as_bytes())
        .unwrap();
    fs::rename(&new, workspace.join(".kapsis/progress.json")).unwrap();
}

fn tool_message(event: &str, tool: &str, command: &str) -> String {
    let payload = serde_json::json!({
        "hook_event_name": event, "tool_name": tool, "tool_input": {"command": command},
    });
    format!("{{\"agent\":\"claude\",\"payload\":{payload}}}")
}

/// Longer than anything here takes, unless it hangs.
const PATIENCE: Duration = Duration::from_secs(120);

/// Returns when `is_so`; a test that waits in vain fails.
pub(super) fn wait_until(mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < PATIENCE, "waited in vain");
        std::thread::park_timeout(Duration::from_millis(2));
    }
}

#[test]
fn hooks_move_the_status_while_the_agent_runs() {
    let host = Host::new();
    let writer = host.writer("p", "1");
    let listener = HookListener::bind(&host.path("hooks")).unwrap();
    let mode = fs::metadata(listener.directory())
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o700);
    let watched = during(&writer, StatusSource::Hooks(&listener), || {
        send(
            &listener,
            r#"{"agent":"claude","payload":{"hook_event_name":"UserPromptSubmit"}}"#,
        );
        wait_until(|| read(writer.path()).message == "The agent is reading its task");
        send(&listener, &tool_message("PreToolUse", "Bash", "cargo test"));
        wait_until(|| shown(writer.path()) == ("testing".to_owned(), 60));
        7
    });
    assert_eq!(watched.value, 7);
    let heard = watched.hooks.unwrap();
    assert_eq!(
        (heard.n_understood, heard.n_malformed, heard.n_dropped),
        (2, 0, 0)
    );
}

#[test]
fn what_was_sent_before_the_end_is_not_lost() {
    let host = Host::new();
    let writer = host.writer("p", "1");
    let listener = HookListener::bind(&host.path("hooks")).unwrap();
    let began = Instant::now();
    let watched = during(&writer, StatusSource::Hooks(&listener), || {
        for command in ["ls", "cargo build", "git commit -m x"] {
            send(&listener, &tool_message("PreToolUse", "Bash", command));
        }
    });
    assert_eq!(watched.hooks.unwrap().n_understood, 3);
    // A commit before any test is not near the end.
    assert_eq!(shown(writer.path()), ("committing".to_owned(), 55));
    assert!(began.elapsed() < PATIENCE);
}

#[test]
fn a_call_counts_once_whether_its_beginning_was_told_or_only_its_end() {
    let host = Host::new();
    let listener = HookListener::bind(&host.path("hooks")).unwrap();
    let percent = |id: &str, events: &[&str]| {
        let writer = host.writer("p", id);
        let watched = during(&writer, StatusSource::Hooks(&listener), || {
            for event in events {
                send(&listener, &tool_message(event, "Bash", "cargo build"));
            }
        });
        assert!(watched.hooks.is_ok());
        shown(writer.path()).1
    };
    assert_eq!(percent("1", &["PreToolUse"]), 50);
    assert_eq!(percent("2", &["PostToolUse"]), 50);
}

#[test]
fn both_ends_of_a_call_are_one_call() {
    let host = Host::new();
    let writer = host.writer("p", "1");
    let listener = HookListener::bind(&host.path("hooks")).unwrap();
    let watched = during(&writer, StatusSource::Hooks(&listener), || {
        send(
            &listener,
            &tool_message("PreToolUse", "Bash", "cargo build"),
        );
        wait_until(|| shown(writer.path()).1 == 50);
        send(
            &listener,
            &tool_message("PostToolUse", "Bash", "cargo build"),
        );
    });
    assert_eq!(watched.hooks.unwrap().n_understood, 2);
    assert_eq!(shown(writer.path()).1, 50);
}

#[test]
fn a_long_path_and_an_old_socket_are_no_obstacle() {
    let host = Host::new();
    let deep = host.path(&"d".repeat(200)).join("e".repeat(200));
    let first = HookListener::bind(&deep).unwrap();
    let again = HookListener::bind(&deep).unwrap();
    let path = deep.join("hook.sock");
    assert!(path.exists());
    drop(first);
    drop(again);
    assert!(!path.exists(), "nothing is left behind");
}

#[test]
fn a_directory_of_others_is_not_listened_in() {
    let host = Host::new();
    let open = host.path("open");
    fs::create_dir(&open).unwrap();
    fs::set_permissions(&open, fs::Permissions::from_mode(0o755)).unwrap();
    let error = HookListener::bind(&open).unwrap_err().to_string();
    assert!(error.starts_with("use directory"), "{error}");
    let private = host.path("private");
    fs::create_dir(&private).unwrap();
    fs::set_permissions(&private, fs::Permissions::from_mode(0o700)).unwrap();
    std::os::unix::fs::symlink(&private, host.path("link")).unwrap();
    assert!(HookListener::bind(&host.path("link")).is_err());
    fs::File::create(private.join("hook.sock")).unwrap();
    let error = HookListener::bind(&private).unwrap_err().to_string();
    assert!(error.starts_with("make a socket"), "{error}");
}

#[test]
fn a_progress_file_is_followed_and_read_a_last_time() {
    let host = Host::new();
    let workspace = host.path("workspace");
    write_progress(
        &workspace,
        r#"{"version":"1.0","current_step":1,"total_steps":5,"description":"Reading"}"#,
    );
    let file = ProgressFile::new(&workspace);
    let writer = host.writer("p", "1");
    let began = Instant::now();
    let watched = during(&writer, StatusSource::File(&file), || {
        wait_until(|| shown(writer.path()) == ("implementing".to_owned(), 38));
        assert_eq!(read(writer.path()).message, "Reading (step 1/5)");
        write_progress(&workspace, r#"{"current_step":5,"total_steps":5}"#);
    });
    assert!(watched.file.is_ok());
    assert_eq!(shown(writer.path()), ("committing".to_owned(), 90));
    assert_eq!(read(writer.path()).message, "Working (step 5/5)");
    assert!(began.elapsed() < PATIENCE, "the thread ends with the run");
}

#[test]
fn both_sources_may_speak() {
    let host = Host::new();
    let workspace = host.path("workspace");
    write_progress(
        &workspace,
        r#"{"current_step":1,"total_steps":2,"description":"x"}"#,
    );
    let (file, writer) = (ProgressFile::new(&workspace), host.writer("p", "1"));
    let listener = HookListener::bind(&host.path("hooks")).unwrap();
    let watched = during(&writer, StatusSource::Both(&listener, &file), || {
        send(&listener, &tool_message("PreToolUse", "Bash", "pytest"));
        wait_until(|| shown(writer.path()).1 >= 60);
    });
    assert!(watched.hooks.is_ok() && watched.file.is_ok());
}

#[test]
fn a_run_that_panics_leaves_no_thread_behind() {
    let host = Host::new();
    let (writer, file) = (host.writer("p", "1"), ProgressFile::new(host.folder.path()));
    let listener = HookListener::bind(&host.path("hooks")).unwrap();
    let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        during(&writer, StatusSource::Both(&listener, &file), || {
            panic!("a defect")
        })
    }));
    assert!(ended.is_err());
}

#[test]
fn what_is_no_step_is_none() {
    let host = Host::new();
    let workspace = host.path("workspace");
    let file = ProgressFile::new(&workspace);
    assert_eq!(file.step(), None);
    let cases = [
        ("", None),
        ("[]", None),
        ("{\"current_step\":1", None),
        ("{\"current_step\":1,\"total_steps\":0}", None),
        ("{\"current_step\":-1,\"total_steps\":2}", None),
        ("{\"current_step\":\"1\",\"total_steps\":2}", None),
        (
            "{\"current_step\":9,\"total_steps\":2,\"x\":{}}",
            Some((9, 2)),
        ),
    ];
    for (text, numbers) in cases {
        write_progress(&workspace, text);
        let expected = numbers.map(|(done, total)| ProgressStep {
            done,
            total,
            description: "Working".to_owned(),
        });
        assert_eq!(file.step(), expected, "{text}");
    }
}
