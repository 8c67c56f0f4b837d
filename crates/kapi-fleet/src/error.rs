//! Why the shared log could not answer.
//!
//! Nothing here repeats an address's secrets.

use std::io;
use std::path::PathBuf;

use kapi_store::codec::LineError;

use crate::address::AddressError;

/// A request of the shared log that failed.
#[derive(Debug, thiserror::Error)]
pub enum FleetError {
    /// The address cannot be used.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// The project's name cannot stand in a subject.
    #[error(
        "use {name:?} as a project's name in a shared store: letters, digits, dash and underscore only"
    )]
    Project {
        /// The name.
        name: String,
    },
    /// The file that proves who asks cannot be used.
    #[error("read the credentials in {}: {what}", path.display())]
    Credentials {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: &'static str,
    },
    /// The file that proves who asks, or one of certificates, cannot be read.
    #[error("read {}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// TLS cannot be set up.
    #[error("set up TLS")]
    Tls(#[source] rustls::Error),
    /// No server answered in time.
    #[error("reach {servers} within {waited_ms} ms")]
    Unreachable {
        /// The servers that were tried.
        servers: String,
        /// How long.
        waited_ms: u64,
        /// What went wrong last.
        #[source]
        source: LinkError,
    },
    /// A server does not let us in.
    #[error("log in to {server}: {said}")]
    NotLetIn {
        /// The server.
        server: String,
        /// What it said.
        said: String,
    },
    /// The store refused a request.
    #[error("{action} in {stream}: {said} (code {code})")]
    Refused {
        /// What was asked.
        action: &'static str,
        /// The stream.
        stream: String,
        /// What the store said.
        said: String,
        /// Its code for that.
        code: u32,
    },
    /// A stream of this name is there, and is not ours.
    #[error("use stream {stream}: {what}")]
    OtherStream {
        /// The stream.
        stream: String,
        /// What is different.
        what: &'static str,
    },
    /// An answer is not what the protocol says.
    #[error("understand the answer of {stream} to: {action}")]
    Answer {
        /// What was asked.
        action: &'static str,
        /// The stream.
        stream: String,
        /// What is wrong with it.
        #[source]
        source: serde_json::Error,
    },
    /// It is not known whether a batch was accepted: it may be read later, and it may not.
    #[error("learn within {waited_ms} ms whether {stream} accepted a batch")]
    Unknown {
        /// The stream.
        stream: String,
        /// How long was waited.
        waited_ms: u64,
        /// What went wrong last.
        #[source]
        source: Box<Self>,
    },
    /// Others were always first.
    #[error("append to {stream}: another writer came first {n_tries} times")]
    Contended {
        /// The stream.
        stream: String,
        /// How often it was decided anew.
        n_tries: u32,
    },
    /// A batch is larger than the servers take.
    #[error("send {bytes} bytes to {stream}; the maximum is {bytes_max}")]
    TooLarge {
        /// The stream.
        stream: String,
        /// Its size.
        bytes: usize,
        /// The most.
        bytes_max: usize,
    },
    /// Something could not be written as JSON.
    #[error("encode for {stream}")]
    Encode {
        /// The stream it was meant for.
        stream: String,
        /// The encoder's error.
        #[source]
        source: serde_json::Error,
    },
    /// A message is not what was accepted.
    #[error("trust message {message} of {stream}")]
    Corrupt {
        /// The stream.
        stream: String,
        /// The message, from 1.
        message: u64,
        /// What is wrong there.
        #[source]
        fault: LineError,
    },
    /// A message that was accepted is not there.
    #[error("find message {message} of {stream}")]
    Missing {
        /// The stream.
        stream: String,
        /// The message, from 1.
        message: u64,
    },
    /// An object does not have the bytes that were sent.
    #[error("read object {name}: {what}")]
    Object {
        /// Its name.
        name: String,
        /// What is wrong with it.
        what: &'static str,
    },
    /// An object is larger than may travel.
    #[error("transfer {name}: {bytes} bytes; the maximum is {bytes_max}")]
    ObjectTooLarge {
        /// Its name.
        name: String,
        /// Its size.
        bytes: u64,
        /// The most.
        bytes_max: u64,
    },
    /// The system gave no random bytes.
    #[error("draw random bytes")]
    Random,
}

/// What went wrong on one connection.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// The name of the server leads nowhere.
    #[error("find the address of {server}")]
    Resolve {
        /// The server.
        server: String,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// It could not be made, or it broke.
    #[error("communicate with {server}")]
    Io {
        /// The server.
        server: String,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The server's name cannot stand in a certificate, or TLS refused its parameters.
    #[error("start TLS with {server}: {what}")]
    Tls {
        /// The server.
        server: String,
        /// What is wrong.
        what: String,
    },
    /// The server closed it.
    #[error("keep the connection to {server}: it was closed")]
    Closed {
        /// The server.
        server: String,
    },
    /// The answer did not come in time.
    #[error("get an answer from {server} in time")]
    Silent {
        /// The server.
        server: String,
    },
    /// What the server said is not the protocol.
    #[error("understand {server}: {what}")]
    Protocol {
        /// The server.
        server: String,
        /// What is wrong.
        what: &'static str,
    },
    /// The server said that something is wrong with the connection.
    #[error("continue with {server}: it reported {said}")]
    Said {
        /// The server.
        server: String,
        /// What it said.
        said: String,
    },
    /// Nobody in the cluster answers for this at the moment: no leader, or no JetStream.
    #[error("find a responder for the store behind {server}")]
    Nobody {
        /// The server.
        server: String,
    },
}

impl FleetError {
    /// Returns what to do about it, if there is something.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Unreachable { source, .. } => Some(match source {
                LinkError::Nobody { .. } => "the cluster has no leader at the moment, or its servers were not started with JetStream (`-js`)."
                    .to_owned(),
                LinkError::Tls { .. } => {
                    "name the authority's certificate in the configuration, or fix the server's."
                        .to_owned()
                }
                LinkError::Resolve { .. }
                | LinkError::Io { .. }
                | LinkError::Closed { .. }
                | LinkError::Silent { .. }
                | LinkError::Protocol { .. }
                | LinkError::Said { .. } => {
                    "check that the servers are running and reachable from here; nothing was lost."
                        .to_owned()
                }
            }),
            Self::NotLetIn { .. } => {
                Some("check the user, token or credentials file for the store.".to_owned())
            }
            Self::Contended { .. } => Some("try again.".to_owned()),
            Self::Unknown { .. } => {
                Some("try again: anything already accepted is detected and not repeated.".to_owned())
            }
            Self::Corrupt { .. } | Self::Missing { .. } => Some(
                "nothing was changed. restore the stream from a backup, or use another project \
                 name to continue without it."
                    .to_owned(),
            ),
            Self::OtherStream { stream, .. } => {
                Some(format!("keep {stream}, or remove it with the cluster's own tools."))
            }
            Self::Address(_)
            | Self::Project { .. }
            | Self::Credentials { .. }
            | Self::File { .. }
            | Self::Tls(_)
            | Self::Refused { .. }
            | Self::Answer { .. }
            | Self::TooLarge { .. }
            | Self::Encode { .. }
            | Self::Object { .. }
            | Self::ObjectTooLarge { .. }
            | Self::Random => None,
        }
    }
}
