//! `kapi hook`: what agents run at each of their hooks; hands the payload to the host and is gone.
//!
//! Runs hundreds of times in a session, so it reads no configuration and parses no JSON. Where it
//! reports, an agent must never fail or linger because of its status: whatever happens, it prints
//! `{}` and exits with 0. Where it asks (`--gate`), whatever happens is a no unless the host says yes.

use std::ffi::OsString;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{env, io};

use kapi_agent::hook::gate::QUESTION_BYTES_MAX;
use kapi_agent::hook::{MESSAGE_BYTES_MAX, SOCKET_VARIABLE};
use kapi_run::gate::client;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::gate::session_hook;

/// The word that enters it.
pub(crate) const ARGUMENT: &str = "hook";

/// The longest the payload is waited for, all its pieces together.
const READ_MAX: Duration = Duration::from_millis(110);
/// The longest the host's queue is waited for.
const SEND_MAX: Duration = Duration::from_millis(80);
const _: () = assert!(
    READ_MAX.as_millis() + SEND_MAX.as_millis() < 200,
    "a status report never delays an agent longer"
);
/// Bytes read at once, and how often: an input of more than 64 MiB is nobody's payload.
const PIECE_BYTES: usize = 16 * 1024;
const PIECES_MAX: usize = 4 * 1024;
/// The longest a question is waited for.
const QUESTION_MAX: Duration = Duration::from_secs(10);
/// What every agent takes for "do not run this tool, for the reason on standard error".
const DENIED: i32 = 2;
/// What every agent takes for "nothing to say".
const ANSWER: &[u8] = b"{}\n";

/// Reports one payload from standard input, `kapi hook --agent NAME [--socket PATH]`, or asks
/// whether its tool may run, `kapi hook --agent NAME --gate PATH`, or answers for the stop gate of a
/// person's own session, `kapi hook --agent NAME --session`.
///
/// Other words are passed over: an agent may add some.
pub(crate) fn enter(mut args: impl Iterator<Item = OsString>) -> i32 {
    let (mut agent, mut socket, mut gate) = (None, None, None);
    let mut is_session = false;
    while let Some(word) = args.next() {
        match word.to_str() {
            Some("--agent") => agent = args.next(),
            Some("--socket") => socket = args.next(),
            Some("--session") => is_session = true,
            // Without its path it still asks, and nobody answers.
            Some("--gate") => gate = Some(args.next().unwrap_or_default()),
            Some(_) | None => {}
        }
    }
    if is_session {
        let agent = agent.unwrap_or_default();
        return session_hook::enter(agent.to_str().unwrap_or_default());
    }
    if let Some(gate) = gate {
        return ask(rustix::stdio::stdin(), Path::new(&gate));
    }
    let socket = socket
        .or_else(|| env::var_os(SOCKET_VARIABLE))
        .map(PathBuf::from);
    let agent = agent
        .as_ref()
        .and_then(|agent| agent.to_str())
        .unwrap_or_default();
    report(rustix::stdio::stdin(), agent, socket.as_deref());
    answer(rustix::stdio::stdout());
    0
}

/// Asks whether the tool of a payload may run.
fn ask(input: BorrowedFd<'_>, gate: &Path) -> i32 {
    let allowed = read_question(input)
        .ok_or_else(|| "Kapi could not read the tool call.".to_owned())
        .and_then(|question| client::ask(gate, &question));
    match allowed {
        Ok(()) => {
            answer(rustix::stdio::stdout());
            0
        }
        Err(reason) => {
            announce(&reason);
            DENIED
        }
    }
}

#[expect(
    clippy::let_underscore_must_use,
    reason = "the exit code denies, whoever reads the reason"
)]
fn announce(reason: &str) {
    let _ = rustix::io::write(rustix::stdio::stderr(), reason.as_bytes());
}

/// Reads a payload whole; none where it is too long or does not come.
fn read_question(input: BorrowedFd<'_>) -> Option<Vec<u8>> {
    let mut left = QUESTION_MAX;
    let mut piece = [0; PIECE_BYTES];
    let mut question = Vec::new();
    while question.len() <= QUESTION_BYTES_MAX && is_ready(input, &mut left) {
        match rustix::io::read(input, &mut piece) {
            Ok(0) => return Some(question),
            Ok(n_read) => question.extend_from_slice(piece.get(..n_read).unwrap_or_default()),
            Err(_) => return None,
        }
    }
    None
}

#[expect(
    clippy::let_underscore_must_use,
    reason = "whoever does not listen to the answer needs none"
)]
fn answer(output: BorrowedFd<'_>) {
    let _ = rustix::io::write(output, ANSWER);
}

/// Sends the payload as one datagram, if there is anybody to send it to.
fn report(input: BorrowedFd<'_>, agent: &str, socket: Option<&Path>) {
    let mut message = Vec::with_capacity(MESSAGE_BYTES_MAX);
    message.extend_from_slice(b"{\"agent\":\"");
    message.extend_from_slice(agent.as_bytes());
    message.extend_from_slice(b"\",\"payload\":");
    let n_before = message.len();
    let end = read_payload(input, &mut message);
    let is_name = !agent.is_empty() && agent.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let Some(socket) = socket.filter(|_| is_name && message.len() > n_before) else {
        return;
    };
    // Without its end it stays open, and the host reads it as far as it goes.
    if end == Payload::Whole {
        message.push(b'}');
    }
    // Nobody there, a full queue, an older host: status is not worth an agent's failure.
    drop(send(socket, &message));
}

fn send(socket: &Path, message: &[u8]) -> io::Result<usize> {
    let sender = UnixDatagram::unbound()?;
    sender.set_write_timeout(Some(SEND_MAX))?;
    sender.send_to(message, socket)
}

/// How much of a payload was kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Payload {
    Whole,
    Beginning,
}

/// Reads to the end of the input, keeping what a message holds; the rest is read and dropped, so
/// that the agent does not write into a closed pipe.
fn read_payload(input: BorrowedFd<'_>, message: &mut Vec<u8>) -> Payload {
    let mut left = READ_MAX;
    let mut piece = [0; PIECE_BYTES];
    let mut kept = Payload::Whole;
    for _ in 0..PIECES_MAX {
        if !is_ready(input, &mut left) {
            break;
        }
        let n_read = match rustix::io::read(input, &mut piece) {
            Ok(0) | Err(_) => return kept,
            Ok(n_read) => n_read,
        };
        // One byte is left for the brace.
        let capacity = (MESSAGE_BYTES_MAX - 1).saturating_sub(message.len());
        if n_read > capacity {
            kept = Payload::Beginning;
        }
        message.extend_from_slice(piece.get(..n_read.min(capacity)).unwrap_or_default());
    }
    Payload::Beginning
}

/// Waits until there is something to read; false when no time is left. Only waiting costs time:
/// a long payload that keeps coming is read to its end.
fn is_ready(input: BorrowedFd<'_>, left: &mut Duration) -> bool {
    let Ok(limit) = Timespec::try_from(*left) else {
        return false;
    };
    let input = input.as_fd();
    let mut waiting = [PollFd::new(&input, PollFlags::IN)];
    let began = Instant::now();
    let polled = poll(&mut waiting, Some(&limit));
    *left = left.saturating_sub(began.elapsed());
    polled.is_ok_and(|n_ready| n_ready > 0)
}

#[cfg(test)]
mod tests {
    use std::io::{self, PipeReader, Write as _};
    use std::os::fd::AsFd as _;
    use std::os::unix::net::UnixDatagram;
    use std::path::PathBuf;
    use std::thread;
    use std::time::{Duration, Instant};

    use kapi_agent::hook::{HookAgent, HookEvent, MESSAGE_BYTES_MAX, parse_message};

    use super::{answer, report};

    /// Far more than a hook ever waits, and far less than for ever: a busy machine is no failure.
    const PATIENCE: Duration = Duration::from_secs(10);

    struct Host {
        _folder: tempfile::TempDir,
        path: PathBuf,
        socket: UnixDatagram,
    }

    fn host() -> Host {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("hook.sock");
        let socket = UnixDatagram::bind(&path).unwrap();
        socket.set_nonblocking(true).unwrap();
        Host {
            _folder: folder,
            path,
            socket,
        }
    }

    impl Host {
        fn received(&self) -> Vec<u8> {
            let mut buffer = vec![0; 2 * MESSAGE_BYTES_MAX];
            let n = self.socket.recv(&mut buffer).unwrap();
            buffer.truncate(n);
            buffer
        }
    }

    /// Returns an input that holds this and ends.
    fn input(bytes: &[u8]) -> PipeReader {
        let (reader, mut writer) = io::pipe().unwrap();
        let bytes = bytes.to_vec();
        thread::spawn(move || writer.write_all(&bytes));
        reader
    }

    #[test]
    fn a_payload_arrives_as_one_message() {
        let host = host();
        let payload = br#"{"hook_event_name":"Stop"}"#;
        report(input(payload).as_fd(), "codex", Some(&host.path));
        let message = host.received();
        let expected = br#"{"agent":"codex","payload":{"hook_event_name":"Stop"}}"#;
        assert_eq!(message, expected);
        let event = Some((HookAgent::Codex, HookEvent::Stopped));
        assert_eq!(parse_message(&message), event);
    }

    #[test]
    fn a_long_payload_is_read_to_its_end_and_sent_without_it() {
        let host = host();
        let payload = format!(
            "{{\"hook_event_name\":\"PreToolUse\",\"tool_name\":\"Write\",\
             \"tool_input\":{{\"file_path\":\"a.rs\",\"content\":\"{}\"}}}}",
            "x".repeat(3 << 20)
        );
        let input = input(payload.as_bytes());
        report(input.as_fd(), "claude", Some(&host.path));
        let message = host.received();
        assert_eq!(message.len(), MESSAGE_BYTES_MAX - 1);
        let Some((HookAgent::Claude, HookEvent::ToolStarted(call))) = parse_message(&message)
        else {
            panic!("not understood");
        };
        assert_eq!(
            (call.name.as_str(), call.detail.as_str()),
            ("Write", "a.rs")
        );
        let mut rest = Vec::new();
        io::Read::read_to_end(&mut { input }, &mut rest).unwrap();
        assert!(
            rest.is_empty(),
            "{} bytes were left in the pipe",
            rest.len()
        );
    }

    #[test]
    fn an_input_without_end_is_left_alone() {
        let host = host();
        let (reader, mut writer) = io::pipe().unwrap();
        let writing = thread::spawn(move || while writer.write_all(&[b' '; 65_536]).is_ok() {});
        report(reader.as_fd(), "claude", Some(&host.path));
        drop(reader);
        writing.join().unwrap();
        assert_eq!(host.received().len(), MESSAGE_BYTES_MAX - 1);
    }

    #[test]
    fn nobody_is_waited_for() {
        let host = host();
        let missing = host.path.with_file_name("missing.sock");
        let file = host.path.with_file_name("file");
        std::fs::File::create(&file).unwrap();
        let long = PathBuf::from(format!("/{}", "x".repeat(500)));
        for socket in [None, Some(&missing), Some(&file), Some(&long)] {
            let began = Instant::now();
            report(input(b"{}").as_fd(), "claude", socket.map(PathBuf::as_path));
            assert!(began.elapsed() < PATIENCE, "{socket:?}");
        }
    }

    #[test]
    fn an_input_that_stays_open_is_left_alone() {
        let host = host();
        let (reader, mut writer) = io::pipe().unwrap();
        writer.write_all(br#"{"hook_event_name":"Stop","#).unwrap();
        let began = Instant::now();
        report(reader.as_fd(), "claude", Some(&host.path));
        assert!(began.elapsed() < PATIENCE);
        let event = Some((HookAgent::Claude, HookEvent::Stopped));
        assert_eq!(parse_message(&host.received()), event);
        drop(writer);
    }

    #[test]
    fn a_full_queue_is_given_up() {
        let host = host();
        let filler = UnixDatagram::unbound().unwrap();
        filler.set_nonblocking(true).unwrap();
        while filler.send_to(&[0; 1024], &host.path).is_ok() {}
        let began = Instant::now();
        report(input(b"{}").as_fd(), "claude", Some(&host.path));
        assert!(began.elapsed() < PATIENCE);
    }

    #[test]
    fn only_a_plain_name_and_a_payload_are_sent() {
        let host = host();
        for (agent, payload) in [("", "{}"), ("a\",\"b", "{}"), ("claude", "")] {
            report(input(payload.as_bytes()).as_fd(), agent, Some(&host.path));
        }
        let error = host.socket.recv(&mut [0; 16]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
    }

    #[test]
    fn the_answer_is_an_empty_object() {
        let (reader, writer) = io::pipe().unwrap();
        answer(writer.as_fd());
        drop(writer);
        assert_eq!(io::read_to_string(reader).unwrap(), "{}\n");
    }
}
