//! What Kapi's own runs on the base built, lent copy-on-write to the runs on the work.
//!
//! Only output that its tool compares with what it is built from before it uses it (`reusable` in the
//! table of ecosystems). Files of a checkout are newer than all that was built before it was made, so
//! what is built of them is built anew; what is saved are the dependencies.

use std::fs;
use std::path::Path;
use std::time::SystemTime;

use kapi_core::failure::Failure;
use kapi_core::isolation::SandboxLevel;
use kapi_git::owned_dir;
use kapi_run::failure;

use super::{Prover, WorkToProve};
use crate::perform::dependencies::{Dependencies, reusable};

/// Where it is kept, in the prover's own directory.
const KEPT: &str = "base-built";
/// A file that tells what time it is for the file system.
const NOW: &str = "base-built-now";

impl Prover<'_> {
    /// Keeps what runs on the base left in their checkout.
    pub(super) fn keep_built(&self, checkout: &Path) -> Result<(), Failure> {
        let all = self.site.scratch.join(KEPT);
        owned_dir::wipe(&all).map_err(|error| failure::plain(&error))?;
        if self.site.level != SandboxLevel::Native {
            return Ok(());
        }
        for relative in reusable(&self.repo.repository)? {
            let from = checkout.join(&relative);
            if !fs::symlink_metadata(&from).is_ok_and(|found| found.is_dir()) {
                continue;
            }
            let to = all.join(&relative);
            let parent = to.parent().unwrap_or(&all);
            fs::create_dir_all(parent).map_err(|error| failure::file("create", parent, &error))?;
            fs::rename(&from, &to).map_err(|error| failure::file("keep", &from, &error))?;
        }
        Ok(())
    }

    /// Returns dependencies with what runs on the base built; nothing where nothing is lent.
    pub(super) fn with_built(
        &self,
        work: &WorkToProve<'_>,
        dependencies: &Dependencies,
    ) -> Result<Option<Dependencies>, Failure> {
        let all = self.site.scratch.join(KEPT);
        let Ok(kept) = fs::symlink_metadata(&all) else {
            return Ok(None);
        };
        // Where the clock was put back, files of a checkout may be older than what was built.
        let now = self.file_system_time()?;
        let is_older = kept.modified().is_ok_and(|kept| kept < now);
        if self.site.level != SandboxLevel::Native || !is_older {
            return Ok(None);
        }
        // Tools take the source of a dependency for what it was when they built it.
        if work.change.touches_dependencies() {
            return Ok(None);
        }
        let mut built = reusable(&self.repo.repository)?;
        built.retain(|relative| all.join(relative).is_dir());
        Ok((!built.is_empty()).then(|| dependencies.with_built(&all, built)))
    }

    fn file_system_time(&self) -> Result<SystemTime, Failure> {
        let probe = self.site.scratch.join(NOW);
        let failed = |error: &std::io::Error| failure::file("write", &probe, error);
        let file = fs::File::create(&probe).map_err(|error| failed(&error))?;
        let found = file.metadata().map_err(|error| failed(&error))?;
        found.modified().map_err(|error| failed(&error))
    }
}
