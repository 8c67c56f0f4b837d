//! The facts of a toy.

use serde::{Deserialize, Serialize};

use crate::rules::modes::toy::answer::ToyAnswer;

/// One fact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ToyEvent {
    /// A scale was described.
    Described {
        /// It.
        scale: Box<ToyAnswer>,
    },
    /// It is to be described anew.
    Reopened {},
    /// What was tried came to nothing and is tried anew.
    TriedInVain {},
    /// The branch is there.
    BranchMade {
        /// Its name.
        branch: String,
        /// Its worktree.
        worktree: String,
    },
    /// A goal proved a commit.
    Proved {
        /// It.
        commit: String,
    },
    /// The commit is on the branch.
    Landed {
        /// The branch's commit.
        head: String,
        /// Its tree.
        tree: String,
    },
    /// The effect of its own is done.
    Carried {
        /// What came of it.
        what: String,
    },
}
