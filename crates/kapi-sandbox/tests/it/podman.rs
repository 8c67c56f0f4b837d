//! Real containers around real programs, as the user who runs the tests and, if that is root, as an
//! ordinary user made for them too.
//!
//! What the native tests ask of a sandbox is asked here of a container.

#[path = "../podman/ask.rs"]
mod ask;
mod caches;
mod confinement;
mod failure;
mod image;
mod left;
mod lifetime;
mod streams;
mod terminal;
mod workspace;
mod yard;
