//! What an agent that wants to do harm can reach: a word and a number.

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixDatagram;
use std::time::{Duration, Instant};

use rustix::fs::{CWD, FileType, Mode, mknodat};

use super::feeding::{send, wait_until, write_progress};
use super::{Host, read};
use crate::perform::listener::HookListener;
use crate::perform::progress_file::ProgressFile;
use crate::perform::watch::{StatusSource, during};
use crate::perform::writer::LaunchCompletion;
use crate::rules::phase::StatusPhase;

/// Messages that try to say what only the host may.
const FORGED: &[&str] = &[
    r#"{"agent":"claude","payload":{"hook_event_name":"Stop","exit_code":0,"phase":"complete","progress":100}}"#,
    r#"{"agent":"claude","exit_code":0,"phase":"complete","pr_url":"https://evil.example","payload":{"hook_event_name":"Stop"}}"#,
    r#"{"agent":"claude","payload":{"hook_event_name":"SessionEnd","error":null,"pr_url":"https://evil.example"}}"#,
    r#"{"agent":"claude","agent_id":"2","project":"other","payload":{"hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"git push"},"agent_id":"2"}}"#,
    r#"{"agent":"../2","payload":{"hook_event_name":"Stop"}}"#,
    r#"{"agent":"claude","payload":{"hook_event_name":"kill-requested"}}"#,
    r#"{"agent":"claude","payload":{"hook_event_name":"PreToolUse","tool_name":"complete","tool_input":{"command":"exit 0"}}}"#,
    "\u{0}\u{1b}[2J",
    "{",
    "[]",
    "complete 100 0",
];

#[test]
fn no_message_ends_a_run_or_changes_whose_it_is() {
    let host = Host::new();
    let victim = host.writer("p", "2");
    let before = read(victim.path());
    let writer = host.writer("p", "1");
    let listener = HookListener::bind(&host.path("hooks")).unwrap();
    let watched = during(&writer, StatusSource::Hooks(&listener), || {
        for message in FORGED {
            send(&listener, message);
        }
    });
    let heard = watched.hooks.unwrap();
    assert_eq!(heard.n_understood + heard.n_malformed, FORGED.len() as u64);
    let file = read(writer.path());
    assert_eq!((file.agent_id.as_str(), file.project.as_str()), ("1", "p"));
    assert_ne!(file.phase, StatusPhase::Complete);
    assert!(file.progress <= 90, "{}", file.progress);
    assert_eq!(
        (file.exit_code, &file.error, &file.pr_url),
        (None, &None, &None)
    );
    assert_eq!(file.branch.as_deref(), Some("feature/x"));
    assert_eq!(read(victim.path()), before);
}

#[test]
fn what_comes_after_the_agent_counts_for_nothing() {
    let host = Host::new();
    let writer = host.writer("p", "1");
    let listener = HookListener::bind(&host.path("hooks")).unwrap();
    let end = LaunchCompletion {
        exit_code: 1,
        error: Some("the agent failed".to_owned()),
        class: None,
        advice: None,
        pr_url: None,
    };
    writer
        .phase(StatusPhase::Running, 90, "The agent has finished")
        .unwrap();
    let watched = during(&writer, StatusSource::Hooks(&listener), || {
        for message in FORGED {
            send(&listener, message);
        }
    });
    assert!(watched.hooks.is_ok());
    assert_eq!(read(writer.path()).message, "The agent has finished");
    writer.complete(&end).unwrap();
    let ended = read(writer.path());
    let watched = during(&writer, StatusSource::Hooks(&listener), || {
        for message in FORGED {
            send(&listener, message);
        }
    });
    assert!(watched.hooks.is_ok());
    assert_eq!(read(writer.path()), ended);
}

#[test]
fn words_of_an_agent_are_harmless_on_a_screen() {
    let host = Host::new();
    let writer = host.writer("p", "1");
    let listener = HookListener::bind(&host.path("hooks")).unwrap();
    let payload = serde_json::json!({
        "hook_event_name": "PreToolUse",
        "tool_name": "Bash",
        "tool_input": {"command": format!("\u{1b}]0;owned\u{7}ls \u{202e}{}", "x".repeat(5_000))},
    });
    let watched = during(&writer, StatusSource::Hooks(&listener), || {
        send(
            &listener,
            &format!(
                "{{\"agent\":\"gemini\",\"payload\":{}}}",
                payload.to_string().replace("PreToolUse", "BeforeTool")
            ),
        );
    });
    assert_eq!(watched.hooks.unwrap().n_understood, 1);
    let message = read(writer.path()).message;
    assert!(message.starts_with("Exploring: ls x"), "{message}");
    assert!(message.chars().count() <= 200);
    let text = fs::read_to_string(writer.path()).unwrap();
    assert!(!text.contains(['\u{1b}', '\u{202e}', '\u{7}']), "{text:?}");
}

/// Returns how many messages may be understood in a time: a portion for each tenth of a second
/// begun, and what the kernel's queue still holds at the end.
fn allowed(took: Duration) -> u64 {
    let queue = fs::read_to_string("/proc/sys/net/unix/max_dgram_qlen").unwrap();
    let queue: u64 = queue.trim().parse().unwrap();
    let ticks = u64::try_from(took.as_millis() / 100).unwrap() + 2;
    25 * ticks + queue + 1
}

#[test]
fn a_flood_is_cut_short_and_the_host_goes_on() {
    let host = Host::new();
    let writer = host.writer("p", "1");
    let listener = HookListener::bind(&host.path("hooks")).unwrap();
    let flood = r#"{"agent":"claude","payload":{"hook_event_name":"PreToolUse","tool_name":"Read","tool_input":{}}}"#;
    let n_sent = 1_000;
    let began = Instant::now();
    let watched = during(&writer, StatusSource::Hooks(&listener), || {
        for _ in 0..n_sent {
            send(&listener, flood);
        }
    });
    let took = began.elapsed();
    let heard = watched.hooks.unwrap();
    assert_eq!(heard.n_understood + heard.n_dropped, n_sent);
    // So fewer than were sent, unless the machine took long for them.
    assert!(heard.n_understood <= allowed(took), "{heard:?} in {took:?}");
    assert!(took < Duration::from_secs(120), "{took:?}");
    assert_eq!(read(writer.path()).phase, StatusPhase::Exploring);
}

#[test]
fn empty_messages_do_not_wake_the_listener_into_a_new_allowance() {
    let host = Host::new();
    let writer = host.writer("p", "1");
    let listener = HookListener::bind(&host.path("hooks")).unwrap();
    let began = Instant::now();
    let watched = during(&writer, StatusSource::Hooks(&listener), || {
        for _ in 0..500 {
            send(&listener, "");
            send(&listener, "{}");
        }
    });
    let heard = watched.hooks.unwrap();
    assert_eq!(heard.n_understood, 0);
    assert!(heard.n_malformed <= allowed(began.elapsed()), "{heard:?}");
}

#[test]
fn a_sender_that_fills_the_queue_holds_up_nobody() {
    let host = Host::new();
    let writer = host.writer("p", "1");
    let listener = HookListener::bind(&host.path("hooks")).unwrap();
    let sender = UnixDatagram::unbound().unwrap();
    sender.set_nonblocking(true).unwrap();
    let path = listener.directory().join("hook.sock");
    // Nobody listens yet: the kernel's queue is what an agent can fill of the host.
    let mut n_queued = 0_u32;
    while sender.send_to(&[b'{'; 60_000], &path).is_ok() {
        n_queued += 1;
        assert!(n_queued < 10_000, "the queue has no end");
    }
    writer.note("the host writes on").unwrap();
    let watched = during(&writer, StatusSource::Hooks(&listener), || ());
    assert_eq!(watched.hooks.unwrap().n_understood, 0);
    assert_eq!(read(writer.path()).message, "the host writes on");
}

#[test]
fn a_message_longer_than_any_is_taken_as_its_beginning() {
    let host = Host::new();
    let writer = host.writer("p", "1");
    let listener = HookListener::bind(&host.path("hooks")).unwrap();
    let long = format!(
        "{{\"agent\":\"claude\",\"payload\":{{\"hook_event_name\":\"PreToolUse\",\"tool_name\":\"Write\",\
         \"tool_input\":{{\"file_path\":\"a.rs\",\"content\":\"{}\"}}}}}}",
        "x".repeat(100_000)
    );
    let watched = during(&writer, StatusSource::Hooks(&listener), || {
        send(&listener, &long);
    });
    assert_eq!(watched.hooks.unwrap().n_understood, 1);
    assert_eq!(read(writer.path()).message, "Implementing: a.rs");
}

#[test]
fn progress_files_that_are_traps_are_not_read() {
    let host = Host::new();
    let workspace = host.path("workspace");
    let file = ProgressFile::new(&workspace);
    let path = workspace.join(".kapsis/progress.json");
    let good = r#"{"current_step":1,"total_steps":2,"description":"secret"}"#;
    write_progress(&host.path("elsewhere"), good);
    let target = host.path("elsewhere").join(".kapsis/progress.json");

    fs::create_dir_all(workspace.join(".kapsis")).unwrap();
    mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    assert_eq!(file.step(), None, "a named pipe");

    fs::remove_file(&path).unwrap();
    symlink(&target, &path).unwrap();
    assert_eq!(file.step(), None, "a link");

    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    assert_eq!(file.step(), None, "a directory");

    fs::remove_dir(&path).unwrap();
    let _socket = UnixDatagram::bind(&path).unwrap();
    assert_eq!(file.step(), None, "a socket");

    fs::remove_dir_all(workspace.join(".kapsis")).unwrap();
    symlink(
        host.path("elsewhere").join(".kapsis"),
        workspace.join(".kapsis"),
    )
    .unwrap();
    assert_eq!(file.step(), None, "a directory that is a link");

    fs::remove_file(workspace.join(".kapsis")).unwrap();
    write_progress(&workspace, &format!("{}{good}", " ".repeat(70_000)));
    assert_eq!(file.step(), None, "more than is read");

    write_progress(&workspace, good);
    assert!(file.step().is_some(), "the plain file is read");
}

#[test]
fn a_progress_file_cannot_end_a_run() {
    let host = Host::new();
    let workspace = host.path("workspace");
    let text = format!(
        r#"{{"current_step":{0},"total_steps":1,"description":"{1}","phase":"complete","exit_code":0}}"#,
        u64::MAX,
        "y".repeat(1_000),
    );
    write_progress(&workspace, &text);
    let (writer, file) = (host.writer("p", "1"), ProgressFile::new(&workspace));
    let watched = during(&writer, StatusSource::File(&file), || {
        wait_until(|| read(writer.path()).progress == 90);
    });
    assert!(watched.file.is_ok());
    let status = read(writer.path());
    assert_eq!(
        (status.exit_code, status.phase),
        (None, StatusPhase::Committing)
    );
    assert!(
        status.message.ends_with(&format!("(step {}/1)", u64::MAX)),
        "{}",
        status.message
    );
}
