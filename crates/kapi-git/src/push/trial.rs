//! Whether a push could succeed, found out before any work is done for it.
//!
//! The remote is spoken to as for a push, and nothing is sent.

use super::{PushError, PushPlan, Remote};
use crate::ref_name::branch_ref;
use crate::repository::Repository;

impl Repository {
    /// Tries a push of what is checked out to a branch of a remote, without sending anything.
    ///
    /// # Errors
    /// When there is no such remote, it cannot be reached, or it does not accept who pushes.
    pub fn try_push(&self, plan: &PushPlan<'_>) -> Result<(), PushError> {
        self.check_names(&plan.remote, &[plan.remote_branch])?;
        let refspec = format!("HEAD:{}", branch_ref(plan.remote_branch));
        let call = self
            .outward_call(&plan.remote, "push")?
            .args(["--dry-run", "--porcelain", "--no-verify", "--"])
            .args([plan.remote.name, &refspec]);
        self.converse(&plan.remote, "push to", call).map(drop)
    }

    /// Returns the address of a remote, as the repository's configuration has it.
    ///
    /// # Errors
    /// When there is no such remote.
    pub fn remote_address(&self, remote: &Remote<'_>) -> Result<String, PushError> {
        self.check_names(remote, &[])?;
        let key = format!("remote.{}.url", remote.name);
        let asked = self
            .remote_call(remote, "config")
            .args(["--get", &key])
            .exit()?;
        Ok(String::from_utf8_lossy(&asked.stdout).trim().to_owned())
    }
}
