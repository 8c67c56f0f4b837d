//! Where levels differ, and why they must: the one table of it.
//!
//! A line that no longer holds is an error, except where the host decides.

use crate::place::{Level, Place};

/// One difference.
pub(crate) struct Difference {
    name: &'static str,
    level: Level,
    /// Whether root starts the sandbox; `None` is both.
    by_root: Option<bool>,
    /// What is seen instead.
    pub seen: &'static str,
    /// Why.
    pub why: &'static str,
    /// Whether it holds on every host.
    pub is_always: bool,
}

const TABLE: &[Difference] = &[
    Difference {
        name: "who the program is",
        level: Level::Native,
        by_root: Some(true),
        seen: "1000",
        why: "the host's root becomes an ordinary number inside",
        is_always: true,
    },
    Difference {
        name: "who the program is",
        level: Level::Podman,
        by_root: Some(true),
        seen: "0",
        why: "podman gives root's containers no user namespace that keeps the owner of files; the grade says so",
        is_always: true,
    },
    Difference {
        name: "used up processes are named",
        level: Level::Podman,
        by_root: Some(false),
        seen: "",
        why: "without a control group nobody counts what the kernel refuses",
        is_always: false,
    },
    Difference {
        name: "used up memory is named",
        level: Level::Podman,
        by_root: Some(false),
        seen: "",
        why: "without a control group each process has a limit of its own, and which one met it is not known; the grade says so",
        is_always: false,
    },
];

/// Returns the difference that is listed for a behaviour at a place.
pub(crate) fn find(location: &Place, name: &str) -> Option<&'static Difference> {
    TABLE.iter().find(|one| {
        let is_here = one
            .by_root
            .is_none_or(|by_root| by_root == location.is_root());
        one.name == name && one.level == location.level && is_here
    })
}

/// Returns what the table speaks of.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    TABLE.iter().map(|one| one.name)
}
