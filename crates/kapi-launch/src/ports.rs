//! The ports of a sandbox: ten in a row, the same at every launch, never another sandbox's.
//!
//! Servers in sandboxes that share the host's network do not meet. Opens no port.

use std::collections::BTreeSet;

use kapi_run::private_dir::make_private;
use kapi_sys::lock::Lock;

use super::error::{LaunchError, LaunchErrorKind};
use super::paths::SandboxPaths;
use super::record::SandboxRecord;

/// The variable that names the first one inside.
pub(crate) const VARIABLE: &str = "KAPI_PORT_BASE";
/// The first port that is given out.
const FIRST: u16 = 20_000;
/// Ports of one sandbox.
const EACH: u16 = 10;
/// How many sandboxes have ports: up to 32759, below which systems take ports for themselves.
const SANDBOXES_MAX: u16 = 1_276;
/// The longest another process may take to choose, in milliseconds.
const WAIT_MS: u64 = 10_000;

/// Keeps other processes from choosing ports until it is dropped.
pub(crate) fn hold(location: &SandboxPaths) -> Result<Lock, LaunchError> {
    let root = location.sandboxes().root();
    make_private(&root)?;
    Lock::acquire(&root.join("ports.lock"), "choosing ports", WAIT_MS)
        .map_err(|error| LaunchError::failed(&error))
}

/// Chooses the first port for a sandbox: what it had, else what no other one has.
pub(crate) fn choose(location: &SandboxPaths, own: Option<u16>) -> Result<u16, LaunchError> {
    let mut taken = BTreeSet::new();
    for other in location.sandboxes().all()? {
        // A record that cannot be read has ports nobody knows; its own command says what is wrong.
        if other != *location
            && let Ok(Some(record)) = SandboxRecord::load(&other)
        {
            taken.insert(record.port_base);
        }
    }
    free(&taken, own).ok_or_else(|| {
        LaunchError::new(
            LaunchErrorKind::Failed,
            format!("find free ports: {SANDBOXES_MAX} sandboxes use all of them"),
            "remove sandboxes that are no longer needed with `kapi cleanup`.",
        )
    })
}

fn free(taken: &BTreeSet<u16>, own: Option<u16>) -> Option<u16> {
    let all = (0..SANDBOXES_MAX).map(|n| FIRST + n * EACH);
    own.into_iter()
        .chain(all)
        .find(|base| !taken.contains(base))
}

#[cfg(test)]
mod tests {
    use super::free;

    #[test]
    fn ports_are_kept_and_never_shared() {
        let taken = [20_000, 20_020].into();
        assert_eq!(free(&taken, None), Some(20_010));
        assert_eq!(free(&taken, Some(20_500)), Some(20_500));
        assert_eq!(free(&taken, Some(20_020)), Some(20_010));
        let all = (0..super::SANDBOXES_MAX).map(|n| 20_000 + n * 10).collect();
        assert_eq!(free(&all, None), None);
    }
}
