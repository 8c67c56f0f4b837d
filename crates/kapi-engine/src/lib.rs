//! Use cases: what happens between a request and the disk.
//!
//! Knows the store and the rules, and the world only through [`world::World`]. Tour:
//! [`project::Project`] is the door, [`opened`] is lock, load, decide, append, fold, and
//! [`drive`] is the loop that keeps a goal going.

pub mod approvals;
pub mod audit;
pub mod contract_hash;
pub mod contract_yaml;
pub mod damage;
pub mod drive;
pub mod error;
pub mod evidence;
pub mod flight;
pub mod goal_entries;
pub mod goal_listing;
mod goals;
pub mod home_record;
pub mod inventory;
mod journey_files;
pub mod json_file;
pub mod machine;
pub mod meter;
pub mod opened;
pub mod pace;
pub mod places;
pub mod preferences;
pub mod project;
pub mod race;
pub mod reference;
pub mod snapshot;
pub mod spend;
pub mod tools;
pub mod watch;
pub mod world;
