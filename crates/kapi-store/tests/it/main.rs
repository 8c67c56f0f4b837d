//! Integration tests of the store, on a simulated disk and on the real one.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail the test")]

mod audit;
mod crash;
mod faults;
mod stream;
mod support;
