//! A project's installed dependencies, lent to a workspace over a frozen base.
//!
//! What tools downloaded is lent and what a build made is not: it was built of the files as the
//! person has them, and would pass for that of the files that are shown. Looks near the top only, so
//! that the size of the project costs nothing.

use std::collections::BTreeSet;
use std::path::Path;

use kapi_git::layer::lower::LowerStack;
use kapi_git::repository::Repository;
use kapi_run::ignored::{IgnoredDirectories, IgnoredPlan};

use crate::error::LaunchError;
use crate::paths::SandboxPaths;

/// Opens a layer over each directory of dependencies.
pub(crate) fn lend(
    location: &SandboxPaths,
    repository: &Repository,
    lower: &LowerStack,
    written: &Path,
    home: &Path,
) -> Result<IgnoredDirectories, LaunchError> {
    let layers = location.dir().join("ignored");
    let plan = IgnoredPlan {
        home,
        workspace: written,
        layers: &layers,
        except: &BTreeSet::new(),
        owner: "kapi launch",
    };
    // A commit may have something of its own there.
    let is_free = |path: &Path| {
        let mut above = path
            .ancestors()
            .skip(1)
            .filter(|at| !at.as_os_str().is_empty());
        let is_directory = |at: &Path| match lower.place(at) {
            Ok(place) => place.is_none_or(|place| place.is_dir()),
            Err(_unreadable) => false,
        };
        matches!(lower.place(path), Ok(None)) && above.all(is_directory)
    };
    Ok(IgnoredDirectories::open_dependencies(
        repository, &plan, is_free,
    )?)
}
