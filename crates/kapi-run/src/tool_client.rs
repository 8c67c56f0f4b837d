//! The agent's end of its tools: one call to the socket of the run this process belongs to.
//!
//! Runs inside the sandbox, so it knows a path and nothing else. A host that is gone or silent is an
//! error, never an answer.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use crate::run_socket::connect;

/// The variable that marks every process of a run.
pub const RUN_ID_VARIABLE: &str = "KAPI_RUN_ID";
/// The variable that leads to the socket.
pub const SOCKET_VARIABLE: &str = "KAPI_AGENT_TOOLS";
/// The variable that says whether the kernel's tools are offered too: `1` if they are.
pub const KERNEL_VARIABLE: &str = "KAPI_AGENT_KERNEL";
/// Bytes of one call: more than the largest plan.
pub const CALL_BYTES_MAX: usize = 8 << 20;
/// Bytes of one answer.
const ANSWER_BYTES_MAX: u64 = 8 << 20;
/// How long an answer may take: longer than the host waits for a lock.
const PATIENCE: Duration = Duration::from_secs(30);

/// A call that got no answer.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// Nobody is there, or nobody answers in time.
    #[error("reach the tools of this run at {}", socket.display())]
    Unreachable {
        /// The socket.
        socket: PathBuf,
        /// What the system says.
        #[source]
        source: io::Error,
    },
    /// The call is longer than any that is taken.
    #[error("send a call of {bytes} bytes: the most is {CALL_BYTES_MAX}")]
    TooLong {
        /// How long it is.
        bytes: usize,
    },
    /// The answer is not one.
    #[error("read the answer of the tools")]
    Answer {
        /// What is wrong with it.
        #[source]
        source: serde_json::Error,
    },
}

/// Calls a tool and returns its answer.
///
/// # Errors
/// When nobody answers. Whether the call was recorded is then not known; `until_done_status` tells.
pub fn call(socket: &Path, tool: &str, input: &Value) -> Result<Value, ClientError> {
    let unreachable = |source| ClientError::Unreachable {
        socket: socket.to_path_buf(),
        source,
    };
    let mut line = json!({"tool": tool, "input": input}).to_string();
    line.push('\n');
    if line.len() > CALL_BYTES_MAX {
        return Err(ClientError::TooLong { bytes: line.len() });
    }
    let answer = exchange(socket, &line).map_err(unreachable)?;
    serde_json::from_slice(&answer).map_err(|source| ClientError::Answer { source })
}

fn exchange(socket: &Path, line: &str) -> io::Result<Vec<u8>> {
    let mut stream = connect(socket)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    // A host that refuses a call may answer before it has read all of it.
    let written = stream.write_all(line.as_bytes());
    let mut answer = Vec::new();
    let mut reader = BufReader::new(stream.take(ANSWER_BYTES_MAX));
    let n_read = reader.read_until(b'\n', &mut answer)?;
    if n_read == 0 {
        written?;
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(answer)
}
