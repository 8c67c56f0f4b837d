//! The settings and variables that hold on every call of git, whatever the person's or an agent's say.

/// Settings that hold on every call, above anything a configuration file says.
///
/// They stop hooks, monitors, helpers, networks and maintenance, keep git from writing reflogs
/// and configuration, and make what it does write durable before it returns.
pub(super) const SETTINGS: &[(&str, &str)] = &[
    ("core.hooksPath", "/dev/null"),
    ("core.fsmonitor", "false"),
    ("core.untrackedCache", "false"),
    ("core.splitIndex", "false"),
    ("core.logAllRefUpdates", "false"),
    ("core.protectNTFS", "true"),
    ("core.protectHFS", "true"),
    ("core.safecrlf", "false"),
    ("core.filesRefLockTimeout", "2000"),
    ("core.fsync", "all"),
    ("core.fsyncMethod", "batch"),
    ("core.pager", "cat"),
    ("core.askPass", ""),
    ("core.sshCommand", "false"),
    ("credential.helper", ""),
    ("safe.bareRepository", "explicit"),
    // Git asks who owns a repository only while it searches for one, which happens once, for the
    // directory the person named; as root that directory may well be somebody else's.
    ("safe.directory", "*"),
    ("protocol.allow", "never"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
    ("commit.gpgSign", "false"),
    ("submodule.recurse", "false"),
    ("diff.ignoreSubmodules", "all"),
    ("worktree.useRelativePaths", "false"),
    ("color.ui", "false"),
];

/// Settings that hold when git talks to a remote with the person's own configuration.
///
/// Hooks and monitors may lie in the tree, where an agent's work ends up; a remote's address
/// must not be a program; and nothing is pushed, fetched or cleaned up beside what was asked.
pub(super) const REMOTE_SETTINGS: &[(&str, &str)] = &[
    ("core.hooksPath", "/dev/null"),
    ("core.fsmonitor", "false"),
    ("core.askPass", ""),
    ("protocol.ext.allow", "never"),
    ("safe.bareRepository", "explicit"),
    ("safe.directory", "*"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
    ("submodule.recurse", "false"),
    ("fetch.recurseSubmodules", "false"),
    ("fetch.writeCommitGraph", "false"),
    ("fetch.prune", "false"),
    ("push.followTags", "false"),
    ("push.recurseSubmodules", "no"),
    ("push.useForceIfIncludes", "false"),
    ("color.ui", "false"),
    ("advice.pushUpdateRejected", "false"),
];

/// Variables of every git command.
pub(super) const ALWAYS: &[(&str, &str)] = &[
    ("LC_ALL", "C"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_NO_REPLACE_OBJECTS", "1"),
];

/// Variables of a git command that sees nothing of the person's.
pub(super) const SEALED: &[(&str, &str)] = &[
    ("PATH", "/usr/bin:/bin"),
    ("HOME", "/nonexistent"),
    ("TZ", "UTC"),
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("GIT_CONFIG_SYSTEM", "/dev/null"),
    ("GIT_CONFIG_GLOBAL", "/dev/null"),
    ("GIT_ATTR_NOSYSTEM", "1"),
    ("GIT_NO_LAZY_FETCH", "1"),
];

/// Variables that keep a command of the person's from waiting for an answer.
pub(super) const UNATTENDED: &[(&str, &str)] = &[
    // Empty means: ask no program, not the one of the configuration either.
    ("GIT_ASKPASS", ""),
    ("SSH_ASKPASS", ""),
    ("SSH_ASKPASS_REQUIRE", "never"),
    ("GCM_INTERACTIVE", "never"),
];
