//! What differs between two commits of a project, read and printed.
//!
//! Whose commits they are is the caller's affair.

use std::path::Path;

use kapi_core::text::counted;
use kapi_goal::perform::survey::RepositorySurvey;

use crate::commands::diff::PATCH_BYTES_MAX;
use crate::context::Context;
use crate::error::Error;

/// What differs.
#[derive(Debug, Default)]
pub(super) struct CommitPatch {
    bytes: Vec<u8>,
    paths: Vec<String>,
    /// Whether the patch goes on after its last byte here.
    pub(super) is_cut: bool,
}

impl CommitPatch {
    /// Reads what differs between two commits.
    pub(super) fn between(
        context: &Context,
        root: &Path,
        base: &str,
        commit: &str,
    ) -> Result<Self, Error> {
        let grants = context.grants(&context.config(Some(root))?);
        let read = RepositorySurvey::of(&grants, root).and_then(|survey| {
            let patch = survey.diff(base, commit, PATCH_BYTES_MAX)?;
            Ok((patch, survey.changed_files(base, commit)?))
        });
        let (patch, files) = read.map_err(|failure| Error::world(&failure))?;
        Ok(Self {
            bytes: patch.bytes,
            paths: files
                .iter()
                .map(|file| file.path.display().to_string())
                .collect(),
            is_cut: patch.is_cut,
        })
    }

    /// Returns it as text for a document; only the paths are left of it where that is asked for.
    pub(super) fn text(&self, stat: bool) -> String {
        if stat {
            return String::new();
        }
        String::from_utf8_lossy(&self.bytes).into_owned()
    }

    /// Returns the paths that differ, also those that the patch does not get to.
    pub(super) fn paths(&self) -> Vec<String> {
        self.paths.clone()
    }

    /// Prints it, or only its paths.
    pub(super) fn print(&self, context: &Context, stat: bool) {
        if stat {
            for path in &self.paths {
                context.ui.line(path);
            }
            let paths = counted(self.paths.len(), "path");
            context.ui.line(&format!("{paths} changed."));
        } else {
            context.ui.raw(&self.bytes);
        }
        if self.is_cut {
            context
                .ui
                .say("The patch is truncated; use `git diff` on the commits to see all of it.");
        }
    }
}
