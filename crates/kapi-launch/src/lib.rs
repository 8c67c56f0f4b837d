//! `kapi launch`: one agent in one workspace, and what is kept of it on the host afterwards.
//!
//! A launch has no contract and no verdict: it makes a workspace, runs an agent once, commits and
//! pushes. Every sandbox has a directory of its own below `~/.ilchul/sandboxes`, whose record says
//! what it is. Knows nothing of command lines.

pub mod adopt;
pub mod booked;
pub mod bounds;
pub mod clean;
pub mod context;
pub mod enter;
pub mod error;
pub mod event;
pub mod finish;
pub mod log;
pub mod look;
pub mod merge;
pub mod message;
pub mod mode;
pub mod monitor;
pub mod paths;
pub mod plan;
pub mod preview;
pub mod raise;
pub mod record;
pub mod result;
pub mod run;

pub mod head_view;
pub mod pruned;
pub mod reduce;
pub mod remains;

mod active_launch;
mod agent;
pub mod branch;
mod decide;
mod dependencies;
mod ended;
mod ending;
mod finished;
mod foreign;
pub mod inputs;
mod kept;
mod limits;
mod merging;
mod patterns;
mod ports;
mod prepare;
mod progress;
mod removal;
mod shown;
