//! A scripted model: a server on the loopback that speaks the Anthropic, OpenAI and
//! Gemini APIs to real agent CLIs and plays a [`scenario::ModelScenario`] to them.
//! It keeps no sessions: the step to play is read off each request's own history.
//! It does not know which CLI asks, nor anything of Kapi.

pub mod fault;
pub mod record;
pub mod scenario;

mod anthropic;
mod chat;
mod endpoint;
mod exchange;
mod file_edit;
mod gemini;
mod http;
mod playback;
mod reply;
mod request;
mod responses;
mod schema;
mod shared;
mod tool_call;

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::model_server::http::HttpError;
use crate::model_server::record::RecordedRequest;
use crate::model_server::scenario::ModelScenario;
use crate::model_server::shared::SharedServer;

/// A server that cannot be started.
#[derive(Debug, thiserror::Error)]
pub enum ModelServerError {
    /// The loopback gives no port.
    #[error("listen on the loopback")]
    Listen {
        /// What the system says.
        #[source]
        source: io::Error,
    },
}

/// A running server; dropping it ends its connections and joins its threads.
#[derive(Debug)]
pub struct ModelServer {
    address: SocketAddr,
    shared: Arc<SharedServer>,
    acceptor: Option<JoinHandle<()>>,
}

impl ModelServer {
    /// Starts a server on a free port of 127.0.0.1.
    pub fn start(scenario: ModelScenario) -> Result<Self, ModelServerError> {
        let listen = || {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
            let address = listener.local_addr()?;
            Ok((listener, address))
        };
        let (listener, address) = listen().map_err(|source| ModelServerError::Listen { source })?;
        let shared = Arc::new(SharedServer::new(scenario));
        let acceptor = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || accept(&listener, &shared))
        };
        Ok(Self {
            address,
            shared,
            acceptor: Some(acceptor),
        })
    }

    /// Returns the base URL without a final slash; OpenAI clients want `/v1` after it.
    pub fn base_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Returns all requests so far, in the order of their arrival.
    pub fn requests(&self) -> Vec<RecordedRequest> {
        self.shared.requests()
    }

    /// Waits until the requests satisfy a condition; says whether they did in time.
    ///
    /// A request is recorded before it is answered, so that a test can wait for one
    /// that hangs.
    pub fn wait_until(
        &self,
        deadline: Duration,
        condition: &dyn Fn(&[RecordedRequest]) -> bool,
    ) -> bool {
        self.shared.wait_until(deadline, condition)
    }

    /// Replaces the scenario; faults and verdicts count anew, the requests stay recorded.
    pub fn set_scenario(&self, scenario: ModelScenario) {
        self.shared.set_scenario(scenario);
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        self.shared.end();
        // The acceptor looks up only when somebody knocks.
        let knocked = TcpStream::connect(self.address).is_ok();
        if let Some(acceptor) = self.acceptor.take()
            && knocked
        {
            // A panic in a thread has been reported by the panic hook already.
            let _joined: thread::Result<()> = acceptor.join();
        }
    }
}

/// Accepts connections, a thread each, and joins them all at the end.
fn accept(listener: &TcpListener, shared: &SharedServer) {
    thread::scope(|scope| {
        for stream in listener.incoming() {
            if shared.is_ending() {
                return;
            }
            // A client that went away before it was accepted is no event for a script.
            let Ok(stream) = stream else { continue };
            scope.spawn(move || serve(shared, stream));
        }
    });
}

fn serve(shared: &SharedServer, stream: TcpStream) {
    // Without a handle to wake it at the end, a connection must not be served.
    let Ok(Some(id)) = shared.connect(&stream) else {
        return;
    };
    // Clients that hang up, or are killed, are part of the game.
    let _served: Result<(), HttpError> = exchange::serve(shared, stream);
    shared.disconnect(id);
}
