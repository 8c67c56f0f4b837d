//! The container level: the same sandbox, made by podman.
//!
//! Knows podman's command line and nothing of namespaces.

pub mod options;
