//! Use cases: what happens between a request and the disk.
//!
//! Knows the store and the rules, and the world only through [`world::World`]. Tour:
//! [`project::Project`] is the door, [`opened`] is lock, load, decide, append, fold, and
//! [`drive`] is the loop that keeps a goal going.

pub mod evidence;
pub mod flight;
pub mod machine;
pub mod meter;
pub mod pace;
pub mod places;
pub mod watch;
