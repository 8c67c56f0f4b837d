//! Which levels of isolation this host supports, found out by trying each.
//!
//! For `kapi doctor` and for errors about a level that cannot be had. Does not decide what to do about
//! a refusal.

mod container;
mod fact;
mod native;
mod trial;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::Path;

use crate::error::SandboxError;
use crate::hint::{HostRestrictions, hint};
use crate::spec::IsolationLevel;
use crate::status::StepFailure;

/// What each level of isolation gives on this host.
#[derive(Debug)]
pub struct LevelReport {
    /// The levels, the default first.
    pub levels: Vec<LevelSupport>,
    /// Facts about the host that explain the rest.
    pub facts: Vec<HostFact>,
}

/// Whether and how far this host supports a level.
#[derive(Debug)]
pub struct LevelSupport {
    /// The level.
    pub level: IsolationLevel,
    /// Whether a program can be run in it.
    pub works: bool,
    /// What it keeps apart or limits here, in a few words each.
    pub gives: Vec<String>,
    /// What is missing, the necessary first.
    pub missing: Vec<MissingFeature>,
}

/// Something the host does not grant.
#[derive(Debug)]
pub struct MissingFeature {
    /// What it is, for people: `user namespace`.
    pub what: String,
    /// Whether the level does not work without it.
    pub is_necessary: bool,
    /// The call that was refused.
    pub call: String,
    /// What it was called on.
    pub target: String,
    /// What the system said; absent where a program and not a call was asked.
    pub source: Option<io::Error>,
    /// What a person can do about it.
    pub hint: Option<String>,
}

/// Something seen that explains the rest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostFact {
    /// What it is about: `kernel`.
    pub name: &'static str,
    /// What was seen.
    pub value: String,
}

/// Tries every level. `sandboxes` is the directory below which layers will lie, and need not exist yet;
/// `env` is the environment in which podman is looked for and asked.
///
/// Leaves nothing behind. Fails only if the launcher itself could not be run.
pub fn levels(
    self_exe: &Path,
    sandboxes: &Path,
    env: &BTreeMap<OsString, OsString>,
) -> Result<LevelReport, SandboxError> {
    let host = HostRestrictions::observe();
    let (native, mut facts) = native::probe(self_exe, sandboxes, &host)?;
    facts.extend(fact::observe(sandboxes, &host));
    let (podman, seen) = container::probe(env);
    facts.extend(seen);
    let none = LevelSupport {
        level: IsolationLevel::None,
        works: true,
        gives: vec!["its processes end with it; it can see the host".to_owned()],
        missing: Vec::new(),
    };
    Ok(LevelReport {
        levels: vec![native, podman, none],
        facts,
    })
}

impl MissingFeature {
    fn new(what: &str, failure: StepFailure, host: &HostRestrictions) -> Self {
        Self {
            what: what.to_owned(),
            is_necessary: false,
            hint: hint(&failure, host),
            call: failure.call,
            target: failure.target,
            source: Some(io::Error::from_raw_os_error(failure.errno)),
        }
    }

    fn necessary(self) -> Self {
        Self {
            is_necessary: true,
            ..self
        }
    }
}
