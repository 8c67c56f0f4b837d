//! Settings that a person wrote: YAML, TOML and JSON with comments, read strictly into types.
//!
//! A text becomes a tree in which everything knows its line, and the tree becomes a type by serde.
//! All faults of a file are found at once. Reads no file, and knows no key by name.

pub mod amount;
pub mod fault;
pub mod jsonc;
pub mod node;
pub mod read;
pub mod scalar;
pub mod setting;
pub mod toml;
pub mod yaml;
