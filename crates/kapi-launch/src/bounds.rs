//! What holds inside one launch beyond its plan: what the agent may not touch, run or ask.
//!
//! Held by mounts and by the gate before its tools, not by words. Who sets such bounds, and why, is
//! not known here.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use kapi_core::isolation::SandboxLevel;
use kapi_core::pattern;
use kapi_run::confine::WORKSPACE_INSIDE;
use kapi_run::gate::support;
use kapi_run::{confine, tree};
use kapi_sandbox::spec::Mount;

use super::branch::RemoteQuery;
use super::error::{LaunchError, LaunchErrorKind};
use super::plan::LaunchPlan;
use super::prepare::ReadyWorkspace;
use super::record::SandboxRecord;
use super::shown;

/// The most paths that are covered one by one; what is new or beyond is found afterwards.
const COVERED_MAX: usize = 200;

/// Bounds of one launch.
#[derive(Debug, Clone, Copy)]
pub struct Bounds<'a> {
    /// What of the workspace it may change.
    pub touch: Touch,
    /// Commands that are refused, each as an entry of [`kapi_core::consent_rule`].
    pub forbidden: &'a [String],
    /// Patterns for paths of the workspace that stay as they are.
    pub kept: &'a [String],
    /// Whether the remote is asked where a branch begins.
    pub remote: RemoteUse,
}

/// What of its workspace an agent may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Touch {
    /// All of it.
    Workspace,
    /// Nothing.
    Nothing,
}

/// Whether a remote takes part in where a branch begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RemoteUse {
    /// It is asked.
    Asked,
    /// Only what is here counts.
    Ignored,
}

impl Bounds<'_> {
    /// None: all that the plan allows.
    pub const NONE: Bounds<'static> = Bounds {
        touch: Touch::Workspace,
        forbidden: &[],
        kept: &[],
        remote: RemoteUse::Asked,
    };

    /// Refuses a launch that nothing would hold within these bounds.
    pub(crate) fn check(&self, plan: &LaunchPlan) -> Result<(), LaunchError> {
        let denied = |message: String, hint: String| LaunchError {
            kind: LaunchErrorKind::Denied,
            message,
            hint: Some(hint),
        };
        if self.touch == Touch::Nothing && plan.level == SandboxLevel::None {
            let message = "without isolation, nothing prevents an agent from writing".to_owned();
            return Err(denied(
                message,
                "use a sandbox, or allow writing.".to_owned(),
            ));
        }
        support::check(&plan.agent, self.forbidden).map_err(|failure| {
            let hint = failure.hint.unwrap_or_default();
            denied(format!("nothing can {}", failure.message), hint)
        })
    }

    pub(crate) const fn ask(&self) -> RemoteQuery {
        match self.remote {
            RemoteUse::Asked => RemoteQuery::Remote,
            RemoteUse::Ignored => RemoteQuery::Nobody,
        }
    }

    /// Returns what lies over the paths that stay as they are.
    pub(crate) fn mounts(
        &self,
        ready: &ReadyWorkspace,
        record: &SandboxRecord,
    ) -> Result<Vec<Mount>, LaunchError> {
        let is_held_already = self.touch == Touch::Nothing;
        if self.kept.is_empty() || is_held_already || !shown::has_layers(record.level) {
            return Ok(Vec::new());
        }
        let mut files = BTreeSet::new();
        for dir in ready.lower.dirs() {
            files.extend(tree::files(dir).map_err(LaunchError::from)?);
        }
        let mut mounts = Vec::new();
        for path in files.iter().filter(|path| self.keeps(path)) {
            let place = ready.lower.place(Path::new(path));
            let place = place.map_err(|error| LaunchError::failed(&error))?;
            let is_plain =
                |place: &PathBuf| fs::symlink_metadata(place).is_ok_and(|found| found.is_file());
            let Some(place) = place.filter(is_plain) else {
                continue;
            };
            let inside = Path::new(WORKSPACE_INSIDE).join(path);
            mounts.push(confine::read_only(&place, &inside));
            if mounts.len() >= COVERED_MAX {
                break;
            }
        }
        Ok(mounts)
    }

    /// Tells whether a path stays as it is.
    #[must_use]
    pub fn keeps(&self, path: &str) -> bool {
        self.kept
            .iter()
            .any(|pattern| pattern::covers(pattern, path))
    }
}
