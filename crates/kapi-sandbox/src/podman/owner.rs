//! The launcher of a container, as its label names it, and whether it is still alive.
//!
//! A process is known by the machine's run, its process namespace, its number and when it began: no
//! part of it is ever used again together. Reads `/proc` and decides nothing.

use std::fs;
use std::path::Path;

use super::error::PodmanError;

/// The label that names the owner.
pub(super) const OWNER: &str = "kapi.owner";

/// A process, told apart from every other of any time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LauncherIdentity {
    boot: String,
    namespace: String,
    pid: u32,
    began: u64,
}

/// Whether a launcher is alive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Liveness {
    /// It is alive.
    Alive,
    /// It is dead.
    Dead,
    /// It ran where this process cannot look.
    OutOfSight,
}

impl LauncherIdentity {
    /// Returns this process.
    pub(super) fn this() -> Result<Self, PodmanError> {
        let here = here()?;
        let pid = std::process::id();
        Ok(Self {
            began: began(pid).unwrap_or_default(),
            pid,
            ..here
        })
    }

    /// Writes it as a label's value.
    pub(super) fn label(&self) -> String {
        let Self {
            boot,
            namespace,
            pid,
            began,
        } = self;
        format!("{boot}/{namespace}/{pid}/{began}")
    }

    /// Reads a label's value.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('/');
        let owner = Self {
            boot: parts.next()?.to_owned(),
            namespace: parts.next()?.to_owned(),
            pid: parts.next()?.parse().ok()?,
            began: parts.next()?.parse().ok()?,
        };
        parts.next().is_none().then_some(owner)
    }

    /// Tells whether it lives.
    pub(super) fn life(&self) -> Result<Liveness, PodmanError> {
        let here = here()?;
        Ok(if self.boot != here.boot {
            Liveness::Dead
        } else if self.namespace != here.namespace {
            Liveness::OutOfSight
        } else if began(self.pid) == Some(self.began) {
            Liveness::Alive
        } else {
            Liveness::Dead
        })
    }
}

/// Returns where this process is, without itself.
fn here() -> Result<LauncherIdentity, PodmanError> {
    let boot = Path::new("/proc/sys/kernel/random/boot_id");
    let namespace = Path::new("/proc/self/ns/pid");
    let text = fs::read_to_string(boot).map_err(PodmanError::file("read", boot))?;
    let link = fs::read_link(namespace).map_err(PodmanError::file("read", namespace))?;
    let is_digit = |c: &char| c.is_ascii_digit();
    Ok(LauncherIdentity {
        boot: text.trim().to_owned(),
        namespace: link.to_string_lossy().chars().filter(is_digit).collect(),
        pid: 0,
        began: 0,
    })
}

/// Returns when a process began, in the kernel's own unit; `None` when there is none.
fn began(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name before it may hold anything, blanks and brackets too.
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(19)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::{LauncherIdentity, Liveness};

    #[test]
    fn a_process_is_alive_only_as_itself() {
        let this = LauncherIdentity::this().unwrap();
        assert_eq!(LauncherIdentity::parse(&this.label()), Some(this.clone()));
        assert_eq!(this.life().unwrap(), Liveness::Alive);
        let check = |change: &dyn Fn(&mut LauncherIdentity), expected| {
            let mut other = this.clone();
            change(&mut other);
            assert_eq!(other.life().unwrap(), expected, "{other:?}");
        };
        check(&|other| other.began += 1, Liveness::Dead);
        check(&|other| other.pid = u32::MAX, Liveness::Dead);
        check(&|other| other.boot.push('0'), Liveness::Dead);
        check(&|other| other.namespace.push('0'), Liveness::OutOfSight);
    }

    #[test]
    fn what_is_no_owner_is_none() {
        for text in ["", "a", "a/b/c/d", "a/1/2", "a/1/2/3/4", "a/1/-2/3"] {
            assert_eq!(LauncherIdentity::parse(text), None, "{text}");
        }
    }
}
