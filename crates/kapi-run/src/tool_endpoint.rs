//! The tool endpoint of one run: a socket in a directory that only its sandbox is shown.
//!
//! One line in, one line out, a connection each. What comes is foreign: its size, its number and the
//! time it takes are bounded, and who speaks is decided by which socket it came to.

use std::collections::BTreeMap;
use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use kapi_core::failure::Failure;
use kapi_core::isolation::SandboxLevel;
use kapi_gateway::serve::StopSignal;
use kapi_sandbox::spec::Mount;
use serde::Deserialize;
use serde_json::Value;

use crate::run_service::RunService;
use crate::run_socket::RunSocket;
use crate::tool_client::{CALL_BYTES_MAX, KERNEL_VARIABLE, RUN_ID_VARIABLE, SOCKET_VARIABLE};

/// How long one call may take to arrive.
const CALL_TIME: Duration = Duration::from_secs(10);
/// How long one answer may take to be taken.
const ANSWER_TIME: Duration = Duration::from_secs(10);
/// Calls of one run: each may be recorded, and a log does not grow without end.
const CALLS_MAX: u64 = 10_000;
/// Bytes of all calls of one run.
const BYTES_MAX: u64 = 128 << 20;

/// A run's tool endpoint; when it is dropped, nobody listens there any more.
pub struct ToolEndpoint<'a> {
    service: &'a dyn RunService,
    run_socket: RunSocket,
    n_calls: AtomicU64,
    n_bytes: AtomicU64,
}

/// A call that cannot be performed.
struct RefusedCall {
    code: &'static str,
    message: String,
}

/// One call as it comes over the socket.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ToolCallLine {
    tool: String,
    input: Value,
}

impl<'a> ToolEndpoint<'a> {
    /// Opens an endpoint in a directory, which is made anew.
    pub fn open(
        service: &'a dyn RunService,
        level: SandboxLevel,
        directory: &Path,
        self_exe: &Path,
    ) -> Result<Self, Failure> {
        Ok(Self {
            service,
            run_socket: RunSocket::open("tools", level, directory, self_exe)?,
            n_calls: AtomicU64::new(0),
            n_bytes: AtomicU64::new(0),
        })
    }

    /// Returns what is mounted into the sandbox: the socket's directory and the program.
    pub(crate) fn mounts(&self, self_exe: &Path) -> Vec<Mount> {
        self.run_socket.mounts(self_exe)
    }

    /// Returns the directory of the program, as the agent sees it.
    pub(crate) fn programs(&self) -> PathBuf {
        self.run_socket.programs()
    }

    /// Returns the program, as the agent sees it.
    pub(crate) fn program(&self) -> PathBuf {
        self.run_socket.program()
    }

    /// Returns the variables that lead a process of the run here, whoever starts it.
    pub fn leading_here(&self) -> BTreeMap<String, String> {
        let socket = self.run_socket.socket();
        let offers_kernel = u8::from(self.service.offers_kernel_tools());
        [
            (SOCKET_VARIABLE, socket.to_string_lossy().into_owned()),
            (KERNEL_VARIABLE, offers_kernel.to_string()),
            (RUN_ID_VARIABLE, self.service.run().to_owned()),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into()
    }

    /// Answers calls until the run is over.
    pub fn serve(&self, stop: &StopSignal) {
        // A listener that fails closes the endpoint; its agent learns it by its own end.
        self.run_socket.serve(stop, &|stream| self.attend(stream));
    }

    fn attend(&self, stream: &UnixStream) -> io::Result<()> {
        stream.set_nonblocking(false)?;
        stream.set_write_timeout(Some(ANSWER_TIME))?;
        let given = match self.read_call(stream)? {
            Ok(call) => self.service.call(&call.tool, call.input),
            Err(refused) => self.service.refuse(refused.code, refused.message),
        };
        let mut line = given.to_string();
        line.push('\n');
        let mut stream = stream;
        stream.write_all(line.as_bytes())
    }

    /// Reads one call; one that cannot be followed is refused.
    fn read_call(&self, stream: &UnixStream) -> io::Result<Result<ToolCallLine, RefusedCall>> {
        let refused = |code, text: &str| {
            Ok(Err(RefusedCall {
                code,
                message: text.to_owned(),
            }))
        };
        if self.n_calls.fetch_add(1, Ordering::SeqCst) >= CALLS_MAX {
            return refused(
                "too_many_calls",
                "this run has made 10000 calls; end your turn",
            );
        }
        let mut line = Vec::new();
        let began = Instant::now();
        let mut piece = [0_u8; 16 * 1024];
        while line.last() != Some(&b'\n') {
            let left = CALL_TIME.saturating_sub(began.elapsed());
            if left.is_zero() {
                return Err(io::ErrorKind::TimedOut.into());
            }
            stream.set_read_timeout(Some(left))?;
            let mut reader = stream;
            let n_read = reader.read(&mut piece)?;
            if n_read == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            line.extend_from_slice(piece.get(..n_read).unwrap_or_default());
            if line.len() > CALL_BYTES_MAX {
                return refused("bad_input", "the call is too long");
            }
        }
        let n_bytes = u64::try_from(line.len()).unwrap_or(u64::MAX);
        if self.n_bytes.fetch_add(n_bytes, Ordering::SeqCst) >= BYTES_MAX {
            return refused(
                "too_many_calls",
                "this run's calls are too large; end your turn",
            );
        }
        match serde_json::from_slice(&line) {
            Ok(call) => Ok(Ok(call)),
            Err(_) => refused("bad_input", "the call is not one JSON object in a line"),
        }
    }
}
