//! Goals, from a request to the disk and the loop that keeps one going.
//!
//! Tour: [`project::Project`] is the door, [`opened`] is lock, load, decide, append, fold, and
//! [`drive`] performs effects through [`world::World`]. Knows no git, sandbox or agent.

pub mod approvals;
pub mod audit;
pub mod contract_hash;
pub mod contract_yaml;
pub mod damage;
pub mod drive;
pub mod error;
pub mod goal_entries;
pub mod goal_listing;
pub mod goals;
pub mod home_record;
pub mod inventory;
pub mod journey_files;
pub mod json_file;
pub mod opened;
pub mod preferences;
pub mod project;
pub mod race;
pub mod reference;
pub mod snapshot;
pub mod world;
