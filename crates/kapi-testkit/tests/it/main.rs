//! Tests of the test kit: the model server over plain sockets, and against the
//! real agent CLIs.

#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking, in its helpers too"
)]

mod books;
mod client;
mod converge;
mod faults;
mod judges;
mod real;
mod scenarios;
mod wire;
