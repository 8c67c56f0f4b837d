//! `kapi hook` as an agent starts it: a payload goes to the host, and the agent never pays for it.
//!
//! The built program, a real socket, real pipes. What payloads mean is tested where they are read.

use std::fs::File;
use std::io::{Read as _, Seek as _, Write as _};
use std::os::unix::net::UnixDatagram;
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use kapi_agent::hook::{HookAgent, HookEvent, MESSAGE_BYTES_MAX, SOCKET_VARIABLE, parse_message};

use crate::environment::Environment;

/// Far more than a hook waits, far less than for ever: a busy machine is no failure.
const PATIENCE: Duration = Duration::from_secs(60);
const PAYLOAD: &str =
    r#"{"hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"cargo test"}}"#;

/// The host's end.
struct Host {
    env: Environment,
    socket: UnixDatagram,
    path: String,
}

impl Host {
    fn new() -> Self {
        let mut env = Environment::bare();
        // Nothing of the person's is read: neither a home nor a configuration is there.
        env.set("HOME", "/nonexistent");
        // Below the repository the address would be too long for a socket.
        let path = format!(
            "/tmp/kapi-hooks-{}.sock",
            env.root().file_name().unwrap().display()
        );
        let socket = UnixDatagram::bind(&path).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        Self { env, socket, path }
    }

    fn start(&self, args: &[&str], variable: Option<&str>, input: impl Into<Stdio>) -> Child {
        let mut command = self
            .env
            .command(env!("CARGO_BIN_EXE_kapi"), self.env.root());
        command.arg("hook").args(args).stdin(input);
        if let Some(path) = variable {
            command.env(SOCKET_VARIABLE, path);
        }
        command.spawn().unwrap()
    }

    /// Gives a hook its payload, checks that it answers as every hook must, and says how long it took.
    fn run(&self, args: &[&str], variable: Option<&str>, payload: &[u8]) -> Duration {
        let began = Instant::now();
        check(self.start(args, variable, holding(payload)));
        began.elapsed()
    }

    fn received(&self) -> Vec<u8> {
        let mut bytes = vec![0; 2 * MESSAGE_BYTES_MAX];
        let n = self.socket.recv(&mut bytes).unwrap();
        bytes.truncate(n);
        bytes
    }

    fn is_quiet(&self) -> bool {
        self.socket.set_nonblocking(true).unwrap();
        let quiet = self.socket.recv(&mut [0]).is_err();
        self.socket.set_nonblocking(false).unwrap();
        quiet
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        std::fs::remove_file(&self.path).ok();
    }
}

/// Returns a payload that is there as a whole when its hook begins, which waits for a moment only: on a
/// busy machine whoever writes into a pipe may come later.
fn holding(payload: &[u8]) -> File {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(payload).unwrap();
    file.rewind().unwrap();
    file
}

/// Checks that a hook says that it has nothing to say.
fn check(mut child: Child) {
    let (mut said, mut talk) = (String::new(), String::new());
    child
        .stdout
        .take()
        .unwrap()
        .read_to_string(&mut said)
        .unwrap();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut talk)
        .unwrap();
    let code = child.wait().unwrap().code();
    assert_eq!((code, said.as_str(), talk.as_str()), (Some(0), "{}\n", ""));
}

#[test]
fn a_payload_reaches_the_host_by_flag_and_by_variable() {
    let host = Host::new();
    let path = host.path.as_str();
    let by_flag = ["--agent", "claude", "--socket", path];
    for (args, variable) in [
        (&by_flag[..], None),
        (&by_flag[..2], Some(path)),
        (&["--agent", "claude", "--verbose", "x"], Some(path)),
        (&by_flag, Some("/nonexistent/other.sock")),
    ] {
        host.run(args, variable, PAYLOAD.as_bytes());
        let (agent, event) = parse_message(&host.received()).unwrap();
        assert_eq!(agent, HookAgent::Claude);
        let HookEvent::ToolStarted(call) = event else {
            panic!("{event:?}");
        };
        assert_eq!(
            (call.name.as_str(), call.detail.as_str()),
            ("Bash", "cargo test")
        );
    }
    assert!(host.is_quiet());
}

#[test]
fn nobody_at_the_other_end_is_no_failure() {
    let host = Host::new();
    let path = host.path.as_str();
    let payload = PAYLOAD.as_bytes();
    for (args, variable) in [
        (&[][..], None),
        (&["--agent", "claude"], None),
        (&["--agent", "claude"], Some("/nonexistent/hook.sock")),
        (&["--agent", "claude", "--socket"], None),
        (&["--agent", "no name\"", "--socket", path], None),
        (&["--socket", path], None),
    ] {
        assert!(host.run(args, variable, payload) < PATIENCE, "{args:?}");
    }
    host.run(&["--agent", "claude", "--socket", path], None, b"");
    assert!(host.is_quiet(), "what is no payload is not sent");
}

#[test]
fn a_payload_without_an_end_is_sent_as_far_as_it_came() {
    let host = Host::new();
    let args = ["--agent", "gemini", "--socket", host.path.as_str()];
    let (reader, mut input) = std::io::pipe().unwrap();
    input
        .write_all(b"{\"hook_event_name\":\"BeforeTool\"")
        .unwrap();
    let child = host.start(&args, None, reader);
    let began = Instant::now();
    // The pipe stays open: the hook waits for a moment and not for ever.
    check(child);
    assert!(began.elapsed() < PATIENCE);
    drop(input);
    let message = String::from_utf8(host.received()).unwrap();
    assert_eq!(
        message,
        "{\"agent\":\"gemini\",\"payload\":{\"hook_event_name\":\"BeforeTool\""
    );
}

#[test]
fn a_long_payload_is_read_to_its_end_and_cut() {
    let host = Host::new();
    let args = ["--agent", "codex", "--socket", host.path.as_str()];
    let long = format!("{}{}", &PAYLOAD[..PAYLOAD.len() - 1], " ".repeat(8 << 20));
    let mut input = holding(long.as_bytes());
    check(host.start(&args, None, input.try_clone().unwrap()));
    assert_eq!(input.stream_position().unwrap(), long.len() as u64);
    let message = host.received();
    assert!(message.len() <= MESSAGE_BYTES_MAX, "{}", message.len());
    let (agent, event) = parse_message(&message).unwrap();
    assert_eq!(agent, HookAgent::Codex);
    assert!(matches!(event, HookEvent::ToolStarted(_)), "{event:?}");
}

#[test]
fn a_host_that_does_not_listen_costs_an_agent_nothing_and_a_crowd_loses_nothing() {
    let host = Host::new();
    let filler = UnixDatagram::unbound().unwrap();
    filler.set_nonblocking(true).unwrap();
    let mut n_filled = 0;
    while filler.send_to(b"x", &host.path).is_ok() {
        n_filled += 1;
    }
    let args = ["--agent", "claude", "--socket", host.path.as_str()];
    assert!(host.run(&args, None, PAYLOAD.as_bytes()) < PATIENCE);
    for _ in 0..n_filled {
        assert_eq!(host.received(), b"x");
    }
    assert!(host.is_quiet(), "one that found the queue full gave up");
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| host.run(&args, None, PAYLOAD.as_bytes()));
        }
        for _ in 0..8 {
            parse_message(&host.received()).unwrap();
        }
    });
    assert!(host.is_quiet());
}
