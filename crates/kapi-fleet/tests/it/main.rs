//! The shared log on real servers: one, and a cluster of three.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests fail the test"
)]

mod cluster;
mod proxy;
mod real;
mod support;
