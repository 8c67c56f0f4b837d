//! One event of the feed, whatever log it is from.

use kapi_core::actor::Actor;
use serde_json::Value;

/// One event, with the log that it is in.
#[derive(Debug)]
pub(super) struct FeedEntry {
    /// The log.
    pub(super) stream: String,
    /// Its place there, from 1.
    pub(super) seq: u64,
    /// When it was accepted, in milliseconds since the epoch.
    pub(super) at_ms: i64,
    /// Who asked for it.
    pub(super) actor: Actor,
    /// The kind of subject and its id, where the log is of one.
    pub(super) subject: Option<(&'static str, String)>,
    /// What kind of event it is.
    pub(super) kind: String,
    /// The event itself.
    pub(super) data: Value,
    /// It in words, where there are any.
    pub(super) words: Option<String>,
}
