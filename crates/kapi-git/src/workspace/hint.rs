//! What a person can do about a workspace that cannot be made.
//!
//! Words only; the errors themselves say what happened.

use crate::workspace::WorkspaceError;

impl WorkspaceError {
    /// Returns advice, as a sentence, where there is any to give.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::InvalidBranch { .. } => {
                "choose a name that `git check-ref-format --branch` accepts.".to_owned()
            }
            Self::BranchExists { branch } => {
                format!("rename or delete branch {branch}, or start a new goal.")
            }
            Self::BranchBlocked { branch, by } => {
                format!("rename or delete branch {by}, or choose another name than {branch}.")
            }
            Self::PathOccupied { path } => format!("move {} away.", path.display()),
            Self::OtherRepository { path, git_dir } => format!(
                "continue in the repository of {}, or remove the worktree there with `git \
                 worktree remove {}`.",
                git_dir.display(),
                path.display()
            ),
            Self::CheckedOutElsewhere { branch, at } => format!(
                "switch {} to a branch other than {branch}, or remove it with \
                 `git worktree remove {}`.",
                at.display(),
                at.display()
            ),
            Self::MovedRepository { at, path, .. } => format!(
                "move the repository back, or run `git worktree repair {}` and then \
                 `git worktree move {} {}` in it.",
                at.display(),
                at.display(),
                path.display()
            ),
            Self::Gone { .. } => "resume the goal: Kapi creates the directory again.".to_owned(),
            Self::OtherBase { .. } | Self::Dir(_) | Self::Git(_) => return None,
        })
    }
}
