//! The branch that a layer's work goes to.
//!
//! It is claimed as for a worktree, so that publishing knows no difference; no worktree is made.

use super::Layer;
use crate::ref_name::branch_ref;
use crate::repository::Repository;
use crate::workspace::{GitWorkspace, WorkspaceError, WorkspaceOrigin, WorkspacePlan, goal_ref};

impl Repository {
    /// Makes the branch for a layer, or finds it as an earlier call left it.
    ///
    /// No worktree is made, and the plan's path is not looked at.
    /// What is returned is for committing and publishing, and not for resetting.
    pub fn claim_layer(
        &self,
        layer: &Layer,
        plan: &WorkspacePlan,
    ) -> Result<GitWorkspace, WorkspaceError> {
        if !self.claim_at_once(plan) {
            if !self.is_valid_branch(&plan.branch)? {
                let branch = plan.branch.clone();
                return Err(WorkspaceError::InvalidBranch { branch });
            }
            self.claim_branch(plan)?;
        }
        Ok(GitWorkspace {
            goal: plan.goal.clone(),
            branch: plan.branch.clone(),
            base: plan.base.clone(),
            path: plan.path.clone(),
            admin_dir: layer.part("git"),
            origin: WorkspaceOrigin::Adopted,
        })
    }

    /// Makes both refs at once when nothing is in the way; tells whether both are there.
    ///
    /// Whatever is in the way is for [`Repository::claim_branch`] to find out and to name.
    fn claim_at_once(&self, plan: &WorkspacePlan) -> bool {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "/_-.".contains(c);
        let name = &plan.branch;
        if name.starts_with('-') || name == "HEAD" || !name.chars().all(is_plain) {
            return false;
        }
        let (base, branch) = (format!("{}/base", goal_ref(&plan.goal)), branch_ref(name));
        let is_made = self
            .ref_value(&base)
            .is_ok_and(|at| at.as_ref() == Some(&plan.base))
            && self.ref_value(&branch).is_ok_and(|at| at.is_some());
        if is_made {
            return true;
        }
        // Only of what is checked out it is known that the commit is there.
        let is_there = self
            .resolve_commit("HEAD")
            .is_ok_and(|head| head == plan.base);
        is_there && self.claim_refs(&[&base, &branch], &plan.base).is_ok()
    }
}
