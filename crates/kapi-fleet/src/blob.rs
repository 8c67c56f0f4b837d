//! A sequence of bytes in a stream: cut into parts, each one message, and put together again.
//!
//! Knows sizes and hashes. Who says where the parts are, and when they may go, is the caller.

use kapi_store::hash::sha256_hex;
use serde::{Deserialize, Serialize};

use crate::client::random_hex;
use crate::error::FleetError;
use crate::jetstream::JetStream;

/// Bytes of one part: small beside what a server takes in one message.
const PART_BYTES: usize = 192 * 1024;
/// Parts that are read at once.
const PARTS_AT_ONCE: usize = 32;

/// Where a blob is, and what it must be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct BlobLocation {
    /// Above the subjects of its parts.
    pub(crate) subject: String,
    /// The lowest message of its parts.
    pub(crate) first: u64,
    /// How many parts there are.
    pub(crate) n_parts: u64,
    /// How many bytes.
    pub(crate) bytes: u64,
    /// Their SHA-256.
    pub(crate) sha256: String,
}

/// Sends bytes under a subject of their own below `above`, and returns where they are.
///
/// Each part has a subject of its own too: a server that takes over in the middle may take them in
/// in another order.
pub(crate) fn send(
    stream: &JetStream<'_>,
    above: &str,
    bytes: &[u8],
) -> Result<BlobLocation, FleetError> {
    let id = random_hex()?;
    let subject = format!("{above}.{id}");
    let numbered = bytes.chunks(PART_BYTES).enumerate();
    let parts: Vec<(String, &[u8])> = numbered
        .map(|(number, part)| (format!("{subject}.{number}"), part))
        .collect();
    let first = stream.publish_all(&parts, &id)?;
    Ok(BlobLocation {
        subject,
        first,
        n_parts: u64::try_from(parts.len()).unwrap_or(u64::MAX),
        bytes: u64::try_from(bytes.len()).unwrap_or(u64::MAX),
        sha256: sha256_hex(bytes),
    })
}

/// Returns the bytes; `None` when parts of them are gone.
///
/// # Errors
/// When the store does not answer, or has other bytes than were sent.
pub(crate) fn fetch(
    stream: &JetStream<'_>,
    location: &BlobLocation,
) -> Result<Option<Vec<u8>>, FleetError> {
    let subjects: Vec<String> = (0..location.n_parts)
        .map(|number| format!("{}.{number}", location.subject))
        .collect();
    let mut bytes = Vec::new();
    for some in subjects.chunks(PARTS_AT_ONCE) {
        for kept in stream.last_all(some)? {
            match kept {
                Some(kept) => bytes.extend_from_slice(&kept.payload),
                None => return Ok(None),
            }
        }
    }
    let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
    if length != location.bytes || sha256_hex(&bytes) != location.sha256 {
        return Err(FleetError::Object {
            name: location.subject.clone(),
            what: "its content was corrupted in transit",
        });
    }
    Ok(Some(bytes))
}
