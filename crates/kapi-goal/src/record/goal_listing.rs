//! What a listing says of a goal.
//!
//! Data alone: the inventory lists, whoever shows the list asks nothing more.

use kapi_core::id::GoalId;

use crate::record::error::EngineError;
use crate::record::inventory::GoalEntry;

/// One goal in a listing.
#[derive(Debug)]
pub struct GoalListingEntry {
    /// The goal.
    pub id: GoalId,
    /// What is known of it.
    pub state: ListingStatus,
}

/// What a listing knows of a goal.
#[derive(Debug)]
pub enum ListingStatus {
    /// Its stream is sound.
    Known(GoalEntry),
    /// Its stream cannot be trusted or read.
    Damaged(EngineError),
}
