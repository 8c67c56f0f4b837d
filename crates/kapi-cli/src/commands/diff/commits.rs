//! What differs between two commits of a project, read and printed.
//!
//! Whose commits they are is the caller's affair.

use std::path::Path;

use kapi_core::text::counted;
use kapi_goal::perform::survey::RepositorySurvey;

use crate::commands::diff::PATCH_BYTES_MAX;
use crate::context::Context;
use crate::error::Error;

/// How the line of a file begins in a patch of git's.
const FILE: &str = "diff --git ";

/// What differs.
#[derive(Debug, Default)]
pub(super) struct CommitPatch {
    bytes: Vec<u8>,
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
        let patch = RepositorySurvey::of(&grants, root)
            .and_then(|survey| survey.diff(base, commit, PATCH_BYTES_MAX))
            .map_err(|failure| Error::world(&failure))?;
        Ok(Self {
            bytes: patch.bytes,
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

    /// Returns the paths that differ.
    pub(super) fn paths(&self) -> Vec<String> {
        let text = String::from_utf8_lossy(&self.bytes);
        let files = text.lines().filter_map(|line| line.strip_prefix(FILE));
        files.map(path).collect()
    }

    /// Prints it, or only its paths.
    pub(super) fn print(&self, context: &Context, stat: bool) {
        if stat {
            let paths = self.paths();
            for path in &paths {
                context.ui.line(path);
            }
            context
                .ui
                .line(&format!("{} changed.", counted(paths.len(), "path")));
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

/// Returns the path of `a/<path> b/<path>`, which is the same twice: nothing is shown as moved.
fn path(names: &str) -> String {
    let half = names.len() / 2;
    let second = names.get(half + 1..).unwrap_or(names);
    second.strip_prefix("b/").unwrap_or(second).to_owned()
}

#[cfg(test)]
mod tests {
    use super::{CommitPatch, path};

    #[test]
    fn the_paths_of_a_patch_are_those_of_its_files() {
        assert_eq!(path("a/a b/x.rs b/a b/x.rs"), "a b/x.rs");
        let text = "diff --git a/one b/one\n--- a/one\n+++ b/one\n+diff --git\n\
                    diff --git a/two/x b/two/x\n";
        let patch = CommitPatch {
            bytes: text.into(),
            is_cut: false,
        };
        assert_eq!(patch.paths(), ["one", "two/x"]);
        assert_eq!(patch.text(true), "");
        assert_eq!(patch.text(false), text);
    }
}
