//! What the threads of one model server share: the playback, the record, the open
//! connections, and whether the server is ending.
//! It does not read or write a connection.

use std::collections::BTreeMap;
use std::io;
use std::net::{Shutdown, TcpStream};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::model_server::playback::{Playback, PlaybackDecision};
use crate::model_server::record::RecordedRequest;
use crate::model_server::request::ModelRequest;
use crate::model_server::scenario::ModelScenario;

/// The most connections that are served at once.
const CONNECTIONS_MAX: usize = 256;
/// The most requests that are remembered; a test that makes more is spinning.
const REQUESTS_MAX: usize = 10_000;

/// The state of one server, for all its threads.
#[derive(Debug)]
pub(crate) struct SharedServer {
    state: Mutex<ServerState>,
    /// Signals a new request, or the end.
    changed: Condvar,
}

#[derive(Debug)]
struct ServerState {
    playback: Playback,
    requests: Vec<RecordedRequest>,
    /// A second handle of each open connection, to wake its thread at the end.
    connections: BTreeMap<usize, TcpStream>,
    connections_made: usize,
    answers_made: usize,
    life: Life,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Life {
    Serving,
    Ending,
}

impl SharedServer {
    pub(crate) fn new(scenario: ModelScenario) -> Self {
        Self {
            state: Mutex::new(ServerState {
                playback: Playback::new(scenario),
                requests: Vec::new(),
                connections: BTreeMap::new(),
                connections_made: 0,
                answers_made: 0,
                life: Life::Serving,
            }),
            changed: Condvar::new(),
        }
    }

    /// A thread that panicked holds no half-made state: every change is one assignment.
    fn state(&self) -> MutexGuard<'_, ServerState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers a connection; nothing where the server ends or has too many.
    pub(crate) fn connect(&self, stream: &TcpStream) -> io::Result<Option<usize>> {
        let mut state = self.state();
        if state.life == Life::Ending || state.connections.len() >= CONNECTIONS_MAX {
            return Ok(None);
        }
        let id = state.connections_made;
        state.connections.insert(id, stream.try_clone()?);
        state.connections_made += 1;
        Ok(Some(id))
    }

    pub(crate) fn disconnect(&self, id: usize) {
        self.state().connections.remove(&id);
    }

    /// Ends every connection and every wait.
    pub(crate) fn end(&self) {
        let mut state = self.state();
        state.life = Life::Ending;
        for stream in state.connections.values() {
            // A connection that the client closed first cannot be shut down again.
            let _shut: io::Result<()> = stream.shutdown(Shutdown::Both);
        }
        self.changed.notify_all();
    }

    pub(crate) fn is_ending(&self) -> bool {
        self.state().life == Life::Ending
    }

    pub(crate) fn set_scenario(&self, scenario: ModelScenario) {
        self.state().playback = Playback::new(scenario);
    }

    pub(crate) fn admits(&self, key: Option<&str>) -> bool {
        self.state().playback.admits(key)
    }

    /// Decides on a request; also returns the number that makes its ids unique.
    pub(crate) fn decide(&self, request: &ModelRequest) -> (PlaybackDecision, usize) {
        let mut state = self.state();
        let serial = state.answers_made;
        state.answers_made += 1;
        (state.playback.decide(request, serial), serial)
    }

    pub(crate) fn record(&self, request: RecordedRequest) {
        let mut state = self.state();
        if state.requests.len() < REQUESTS_MAX {
            state.requests.push(request);
        }
        self.changed.notify_all();
    }

    pub(crate) fn requests(&self) -> Vec<RecordedRequest> {
        self.state().requests.clone()
    }

    /// Waits until the record satisfies a condition; says whether it did in time.
    pub(crate) fn wait_until(
        &self,
        deadline: Duration,
        condition: &dyn Fn(&[RecordedRequest]) -> bool,
    ) -> bool {
        let (state, _timeout) = self
            .changed
            .wait_timeout_while(self.state(), deadline, |state| {
                state.life == Life::Serving && !condition(&state.requests)
            })
            .unwrap_or_else(PoisonError::into_inner);
        condition(&state.requests)
    }

    /// Waits for a time, or for the end of the server.
    pub(crate) fn pause(&self, time: Duration) {
        let until = Instant::now() + time;
        let mut state = self.state();
        while state.life == Life::Serving {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            (state, _) = self
                .changed
                .wait_timeout(state, left)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }
}
