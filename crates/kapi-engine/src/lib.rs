//! Use cases: what happens between a request and the disk.
//!
//! Knows the store and the rules, and the world only through [`world::World`].

pub mod world;
