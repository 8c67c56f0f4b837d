//! What the verbs of every mode do: start, status, resume, approve.
//!
//! The modes' own command lines stand beside it; rules stand in the core.

pub(crate) mod adopt;
pub(crate) mod approve;
pub(crate) mod branch;
pub(crate) mod resume;
pub(crate) mod start;
pub(crate) mod status;
