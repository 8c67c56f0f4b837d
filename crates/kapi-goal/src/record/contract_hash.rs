//! The hash by which a contract is approved.
//!
//! Knows nothing of who approves, nor where that is kept.

use kapi_store::canonical::canonical_hash;

use crate::record::error::EngineError;
use crate::rules::contract::Contract;

/// Returns the hash by which a contract is approved.
///
/// # Errors
/// When the contract cannot be written as JSON.
pub fn contract_hash(contract: &Contract) -> Result<String, EngineError> {
    canonical_hash(contract).map_err(|source| EngineError::Encode {
        what: "the contract",
        source,
    })
}
