//! What came of a run: how it ended, which isolation it had, which limit it met.
//!
//! Pure data, shown to people and recorded as evidence.

use std::fmt;

use kapi_sys::process::Finished;

/// A finished run.
#[derive(Debug)]
pub struct Ran {
    /// How the program ended and what it said.
    pub finished: Finished,
    /// The isolation it really had.
    pub grade: Grade,
    /// The limit that ended it, if one did.
    pub exceeded: Option<Exceeded>,
}

/// The isolation a run really had, layer by layer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Grade {
    /// The layers in force, in the order they are named to people: `namespaces`, `landlock 7`.
    pub layers: Vec<String>,
    /// Layers this host does not grant, each with the reason.
    pub missing: Vec<String>,
}

impl fmt::Display for Grade {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.layers.join(", "))?;
        if !self.missing.is_empty() {
            write!(out, "; without {}", self.missing.join(", "))?;
        }
        Ok(())
    }
}

/// A limit of [`crate::spec::Resources`] that was met.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exceeded {
    /// Which: `memory`, `disk`, `processes`.
    pub resource: &'static str,
    /// The limit, for people: `2 GiB`.
    pub limit: String,
}
