//! JSON files that people and other programs read: indented, and ended by a newline.

use serde::Serialize;

use crate::record::error::EngineError;

/// Returns the bytes of such a file; `what` is how errors call it.
pub fn json_file<T: Serialize>(value: &T, what: &'static str) -> Result<Vec<u8>, EngineError> {
    let encode = |source| EngineError::Encode { what, source };
    let mut bytes = serde_json::to_vec_pretty(value).map_err(encode)?;
    bytes.push(b'\n');
    Ok(bytes)
}
