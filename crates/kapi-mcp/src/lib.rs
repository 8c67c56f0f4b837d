//! The Model Context Protocol over standard input and output, as a server of Kapi's tools.
//!
//! Knows frames and the tools' words. What a call does is a function of the caller's: no goal, socket
//! or project is known here.

pub mod call;
mod connection;
pub mod frame;
pub mod message;
pub mod protocol;
pub mod server;
