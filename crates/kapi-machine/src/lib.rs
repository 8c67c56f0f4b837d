//! The machine that goals, workflows, tasks, the spend ledger and preferences all are: a state, its
//! events, and the stream that they are recorded in.
//!
//! Tour: [`machine::Machine`] says what is folded into what, [`opened`] is lock, load, append and
//! fold, [`audit`] checks a stream, [`follow`] reads it as it grows. [`running_effect`], [`meter`], [`pace`]
//! and [`watch`] are what every loop that performs effects needs. Knows no subject.

pub mod audit;
pub mod effect_room;
pub mod error;
pub mod evidence;
pub mod file_log;
pub mod fold;
pub mod follow;
pub mod logged;
pub mod machine;
pub mod meter;
pub mod opened;
pub mod pace;
pub mod running_effect;
pub mod slots;
pub mod watch;
