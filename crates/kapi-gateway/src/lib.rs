//! Everything between a sandbox and the network: what may leave, and how a model is reached.
//!
//! [`egress`] decides about connections, [`model`] holds keys and counts what a model used, [`ask`]
//! puts one question to one. Knows nothing of sandboxes, goals or agents: it serves listeners that
//! it is given.

pub mod ask;
pub mod egress;
pub mod http;
pub mod model;
pub mod serve;
