//! Real sandboxes around real programs, as the user who runs the tests and, if that is root, as an
//! ordinary user too.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "the whole binary is a test; clippy sees only the functions marked as one"
)]

mod confinement;
mod exposure;
mod lifetime;
#[path = "../helper/request.rs"]
mod request;
mod setup_failure;
mod streams;
mod workplace;
