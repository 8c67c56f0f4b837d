//! Event logs and the files derived from them, on a [`kapi_sys::disk::Disk`].
//!
//! Knows bytes, hashes, sequence and durability; does not know what an event means or how state
//! is folded. Tour: [`stream`] appends and loads, [`codec`] reads lines, [`audit`] checks a whole
//! log, [`layout`] names every path.

pub mod audit;
pub mod canonical;
pub mod codec;
pub mod error;
pub mod hash;
pub mod layout;
pub mod record;
pub mod saved;
pub mod stream;
pub mod timestamp;
