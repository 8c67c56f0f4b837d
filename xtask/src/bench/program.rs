//! Programs beside programs: a command that only looks, and what an agent runs at each hook.
//!
//! What is timed is what a person waits for: from before the process is started to its end.

use std::fs;
use std::fs::File;
use std::io::Write as _;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, ensure};

use super::comparison::{compare, measured};
use super::invocation::Invocation;
use super::sample::by_turns;
use super::sandbox::TRUE;
use super::table::{ComparisonTable, Quantity};
use super::{BenchDirectory, storage};
use crate::tool::ToolCommand;

/// Rounds that count.
const ROUNDS: usize = 40;
/// Rounds that count, of one hook call.
const HOOK_ROUNDS: usize = 300;
/// Goals that `kapi status` finds.
const N_GOALS: usize = 20;
/// What an agent says after a command.
const PAYLOAD: &str = r#"{"session_id":"0b8a","transcript_path":"/home/agent/.claude/projects/p/0b8a.jsonl","cwd":"/workspace","permission_mode":"default","hook_event_name":"PostToolUse","tool_name":"Bash","tool_input":{"command":"cargo test --workspace","description":"Run the tests"},"tool_response":{"stdout":"test result: ok. 412 passed; 0 failed","stderr":"","interrupted":false,"isImage":false},"tool_use_id":"toolu_01"}"#;
/// The longest message of a hook.
const MESSAGE_BYTES: usize = 64 * 1024;

/// Measures a command that only looks.
pub(super) fn commands(location: &BenchDirectory) -> anyhow::Result<ComparisonTable> {
    let project = location.scratch.join("project");
    make_project(&project)?;
    storage::fill_project(&project, N_GOALS)?;
    let kapi = location.kapi.to_string_lossy();
    let ours = Invocation::new("`kapi status`", &project, &kapi, &["status"]);
    let git = Invocation::new("`git --version`", &project, "git", &["--version"]);
    let node = Invocation::new("`node -e 0`", &project, "node", &["-e", "0"]);
    Ok(ComparisonTable {
        title: "A command that only looks",
        note: "`kapi status` lists 20 goals. `git --version` is close to the cost of starting any process; `node -e 0` is what every agent written in JavaScript pays before its first line.".to_owned(),
        quantity: Quantity::Time,
        rows: vec![
            compare(ROUNDS, &ours, &git)?,
            compare(ROUNDS, &ours, &node)?,
        ],
    })
}

/// Measures one call of a hook, which reports to a host that listens.
pub(super) fn hooks(location: &BenchDirectory) -> anyhow::Result<ComparisonTable> {
    let directory = location.scratch.join("hook");
    fs::create_dir_all(&directory).with_context(|| format!("create {}", directory.display()))?;
    let (payload, path) = (directory.join("payload.json"), directory.join("hook.sock"));
    let mut file = File::create(&payload).context("create the payload")?;
    file.write_all(PAYLOAD.as_bytes())
        .context("write the payload")?;
    let socket = UnixDatagram::bind(&path).context("listen to hooks")?;
    socket.set_nonblocking(true).context("listen to hooks")?;
    let kapi = location.kapi.to_string_lossy();
    let socket_path = path.to_string_lossy();
    let args = ["hook", "--agent", "claude", "--socket", &socket_path];
    let ours = Invocation::new("`kapi hook`", &directory, &kapi, &args);
    let peer = Invocation::new("`/bin/true`", &directory, TRUE, &[]);
    let pair = by_turns(
        HOOK_ROUNDS,
        &mut || hook(&ours, &payload, &socket),
        &mut || peer.time_with_input(&payload),
    )?;
    Ok(ComparisonTable {
        title: "One call of a hook",
        note: "An agent's hook with a payload of ordinary size; after each call its message was found whole at the listener.".to_owned(),
        quantity: Quantity::Time,
        rows: vec![measured(&ours.shown, &peer.shown, pair)],
    })
}

/// Calls the hook once and makes sure that it did its work.
fn hook(ours: &Invocation, payload: &Path, socket: &UnixDatagram) -> anyhow::Result<Duration> {
    let took = ours.time_with_input(payload)?;
    let mut message = vec![0; MESSAGE_BYTES];
    let length = socket.recv(&mut message).context("receive the message")?;
    let expected = format!(r#"{{"agent":"claude","payload":{PAYLOAD}}}"#);
    let is_whole = message.get(..length) == Some(expected.as_bytes());
    ensure!(is_whole, "receive the message of a hook as it was sent");
    Ok(took)
}

/// Makes a repository with one commit.
pub(super) fn make_project(project: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(project).with_context(|| format!("create {}", project.display()))?;
    let git = |args: &[&str]| {
        ToolCommand::new(project, "git", args)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .read()
    };
    git(&["init", "--quiet", "--initial-branch=main"])?;
    let identity = [
        "-c",
        "user.name=bench",
        "-c",
        "user.email=bench@example.invalid",
    ];
    git(&[
        &identity[..],
        &["commit", "--quiet", "--allow-empty", "--message=start"],
    ]
    .concat())?;
    Ok(())
}
