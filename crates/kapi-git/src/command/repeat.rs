//! Which git commands may simply be run again when one is killed.
//!
//! Only by their subcommand, as this crate uses it.

/// Those that only read, and those that write an object or a pack, which git moves into place when it is
/// whole. Not what takes a lock: it stays behind.
const REPEATABLE: [&str; 24] = [
    "cat-file",
    "check-attr",
    "check-ignore",
    "check-ref-format",
    "cherry",
    "commit-tree",
    "config",
    "diff-files",
    "diff-index",
    "diff-tree",
    "for-each-ref",
    "grep",
    "hash-object",
    "log",
    "ls-files",
    "merge-base",
    "merge-file",
    "merge-tree",
    "pack-objects",
    "patch-id",
    "rev-list",
    "rev-parse",
    "symbolic-ref",
    "version",
];

/// Tells whether a command may be run again after it was killed at any moment.
pub(super) fn is_repeatable(subcommand: &str) -> bool {
    REPEATABLE.contains(&subcommand)
}
