//! Real sandboxes around real programs, as the user who runs the tests and, if that is root, as an
//! ordinary user too.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "the whole binary is a test; clippy sees only the functions marked as one"
)]

mod benchmark;
mod confinement;
mod exposure;
mod interaction;
mod landlock;
mod lifetime;
mod limits;
mod listeners;
mod overlay;
mod podman;
mod probe;
#[path = "../helper/request.rs"]
mod request;
#[path = "../../../kapi-sys/tests/it/room.rs"]
mod room;
mod search_path;
mod seccomp;
mod setup_failure;
mod streams;
mod swarm;
mod workplace;
