//! What a decision is given from outside, because nothing here looks at a clock or hashes.
//!
//! Knows no rule.

/// What a decision is given from outside.
#[derive(Debug, Clone, Copy)]
pub struct DecisionContext {
    /// The time, in milliseconds since the epoch.
    pub now_ms: i64,
    /// SHA-256 of some bytes, in hexadecimal: what an approval is bound to.
    pub sha256: fn(&[u8]) -> String,
}
