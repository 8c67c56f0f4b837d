//! One log for many machines: a kernel's stream, its fold, its history and the objects that
//! travel between them, on the distributed log of a NATS cluster (JetStream).
//!
//! Knows bytes, sequences and acknowledgements; does not know what an event means, what a task is
//! or what a commit is. Tour: [`log`] appends and loads, [`objects`] carries files, [`watch`]
//! waits for news; [`client`] speaks to the servers, [`address`] says where they are.

#![forbid(unsafe_code)]

pub mod address;
pub mod client;
pub mod error;
pub mod log;
pub mod objects;
pub mod past;
pub mod watch;

mod blob;
mod credentials;
mod jetstream;
mod link;
mod names;
mod wire;
