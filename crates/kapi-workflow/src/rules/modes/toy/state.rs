//! A toy as it stands, and its fold.

use serde::{Deserialize, Serialize};

use crate::rules::branch::Branch;
use crate::rules::modes::toy::answer::ToyAnswer;
use crate::rules::modes::toy::event::ToyEvent;

/// A toy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Toy {
    /// The commit that it began at.
    pub base: String,
    /// The scale, as it is described.
    pub draft: Option<Box<ToyAnswer>>,
    /// Whether it was approved.
    pub is_approved: bool,
    /// How often something was begun anew: part of each effect's name.
    pub tries: u32,
    /// The branch, once it is there.
    pub branch: Option<Branch>,
    /// The commit that a goal proved and that has not landed.
    pub proved: Option<String>,
    /// What came of the effect of its own.
    pub carried: Option<String>,
}

impl Toy {
    /// Returns one that has just begun.
    pub(super) fn new(base: &str) -> Self {
        Self {
            base: base.to_owned(),
            draft: None,
            is_approved: false,
            tries: 1,
            branch: None,
            proved: None,
            carried: None,
        }
    }

    /// Returns the branch, once something has landed on it.
    pub(super) fn landed(&self) -> Option<&Branch> {
        self.branch.as_ref().filter(|branch| branch.tree.is_some())
    }

    /// Applies a fact.
    pub(super) fn evolve(&mut self, event: &ToyEvent) {
        match event {
            ToyEvent::Described { scale } => self.draft = Some(scale.clone()),
            ToyEvent::Reopened {} => {
                self.draft = None;
                self.tries = self.tries.saturating_add(1);
            }
            ToyEvent::TriedInVain {} => {
                self.proved = None;
                self.tries = self.tries.saturating_add(1);
            }
            ToyEvent::BranchMade { branch, worktree } => {
                self.branch = Some(Branch {
                    name: branch.clone(),
                    worktree: worktree.clone(),
                    head: self.base.clone(),
                    tree: None,
                });
            }
            ToyEvent::Proved { commit } => self.proved = Some(commit.clone()),
            ToyEvent::Landed { head, tree } => {
                if let Some(branch) = &mut self.branch {
                    branch.head.clone_from(head);
                    branch.tree = Some(tree.clone());
                }
            }
            ToyEvent::Carried { what } => self.carried = Some(what.clone()),
        }
    }
}
