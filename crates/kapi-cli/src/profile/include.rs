//! Host paths that a person lends to a run: which may be lent, and how they appear inside.
//!
//! What would hand over the machine is refused, also behind a link: the root, the home as a whole,
//! system directories, sockets and devices, a container engine's files, and Kapi's own.

use std::fs;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Component, Path, PathBuf};

/// Directory entries that are looked through for sockets and devices.
const ENTRIES_MAX: usize = 50_000;
/// Levels of directories that are looked through.
const DEPTH_MAX: usize = 12;
/// Directories that are never lent, nor anything in them.
const NEVER: &[&str] = &[
    "/proc",
    "/sys",
    "/dev",
    "/run",
    "/var/run",
    "/var/lib/docker",
    "/var/lib/containers",
    "/var/lib/containerd",
];
/// Directories of the home that are never lent, nor anything in them.
const NEVER_AT_HOME: &[&str] = &[".ilchul", ".local/share/containers", ".docker/run"];
/// Where agents keep what they also write: these are lent as copies.
const WRITTEN_BY_AGENTS: &[&str] = &[
    ".claude",
    ".claude.json",
    ".codex",
    ".gemini",
    ".pi",
    ".aider",
];

/// A path that may be lent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Include {
    /// Visible at the same place, read-only.
    ReadOnly(PathBuf),
    /// Copied to the same place below the private home; this is relative to the home.
    Copied(PathBuf),
    /// Nothing is there.
    Missing(PathBuf),
}

/// Returns how a path is lent, or why it is not.
pub(crate) fn include(text: &str, home: &Path) -> Result<Include, String> {
    let path = written(text, home)?;
    check_location(&path, home)?;
    let Ok(real) = fs::canonicalize(&path) else {
        return Ok(Include::Missing(path));
    };
    check_real(&real, home)?;
    let at_home = path.strip_prefix(home).ok();
    let is_written = |relative: &&Path| {
        let mut agents = WRITTEN_BY_AGENTS.iter();
        agents.any(|state| relative.starts_with(state))
    };
    Ok(match at_home.filter(is_written) {
        Some(relative) => Include::Copied(relative.to_path_buf()),
        None => Include::ReadOnly(path),
    })
}

/// Refuses a real path that must not be lent, and one that holds what must not be reached.
pub(crate) fn check_real(real: &Path, home: &Path) -> Result<(), String> {
    let real_home = fs::canonicalize(home).unwrap_or_else(|_| home.to_path_buf());
    check_location(real, &real_home)?;
    let mut left = ENTRIES_MAX;
    look_through(real, DEPTH_MAX, &mut left)
}

/// Reads what a person wrote: absolute, or from the home.
fn written(text: &str, home: &Path) -> Result<PathBuf, String> {
    let is_clean = |c: char| !c.is_control();
    if text.is_empty() || !text.chars().all(is_clean) {
        return Err("it is empty or contains control characters".to_owned());
    }
    if text.contains(['*', '?', '[']) {
        return Err("patterns are not supported; name the files or their directory".to_owned());
    }
    let path = Path::new(text);
    let path = match path.strip_prefix("~") {
        Ok(rest) => home.join(rest),
        Err(_) => path.to_path_buf(),
    };
    if !path.is_absolute() {
        return Err("it must be absolute or start with ~/".to_owned());
    }
    let has_up = path.components().any(|part| part == Component::ParentDir);
    if has_up {
        return Err("it must not contain `..`".to_owned());
    }
    // Collected again, so that `//` and a slash at the end are gone.
    Ok(path.components().collect())
}

fn check_location(path: &Path, home: &Path) -> Result<(), String> {
    if home.starts_with(path) {
        return Err("it contains your whole home; name the part that is needed".to_owned());
    }
    let inside = |dir: &Path| path.starts_with(dir) || dir.starts_with(path);
    if let Some(dir) = NEVER.iter().find(|dir| inside(Path::new(dir))) {
        return Err(format!(
            "{dir} leads out of every sandbox and is never shared"
        ));
    }
    if let Some(dir) = NEVER_AT_HOME.iter().find(|dir| inside(&home.join(dir))) {
        return Err(format!(
            "~/{dir} is part of what isolates sandboxes and is never shared"
        ));
    }
    Ok(())
}

/// Finds sockets and devices, which a read-only mount does not stop from being used.
fn look_through(path: &Path, depth: usize, left: &mut usize) -> Result<(), String> {
    let Ok(found) = fs::symlink_metadata(path) else {
        return Ok(());
    };
    let kind = found.file_type();
    let what = if kind.is_socket() {
        Some("a socket")
    } else if kind.is_block_device() || kind.is_char_device() {
        Some("a device")
    } else if kind.is_fifo() {
        Some("a pipe")
    } else {
        None
    };
    if let Some(what) = what {
        return Err(format!(
            "{} is {what}, which works through a read-only mount",
            path.display()
        ));
    }
    if !kind.is_dir() {
        return Ok(());
    }
    // What cannot be listed here cannot be read inside either.
    let Ok(entries) = fs::read_dir(path) else {
        return Ok(());
    };
    for entry in entries.flatten() {
        if depth == 0 || *left == 0 {
            return Err(format!(
                "{} is too large to inspect; name the part that is needed",
                path.display()
            ));
        }
        *left -= 1;
        look_through(&entry.path(), depth - 1, left)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;
    use std::path::PathBuf;

    use super::{Include, include};

    /// A home with a dot directory, a file, and what must not be lent.
    fn home() -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        let home = root.path();
        for dir in [".claude/skills", ".ssh", ".ilchul/worktrees", "sub", "etc"] {
            fs::create_dir_all(home.join(dir)).unwrap();
        }
        symlink("/", home.join("to-root")).unwrap();
        symlink(home.join(".ilchul"), home.join("to-state")).unwrap();
        drop(UnixListener::bind(home.join("sub/agent.sock")).unwrap());
        root
    }

    #[test]
    fn homes_are_lent_in_parts_and_agents_own_state_as_a_copy() {
        let root = home();
        let home = root.path();
        let shared_in = |text: &str| include(text, home).unwrap();
        assert_eq!(shared_in("~/.ssh"), Include::ReadOnly(home.join(".ssh")));
        assert_eq!(shared_in("~/.ssh/"), Include::ReadOnly(home.join(".ssh")));
        assert_eq!(
            shared_in("~/.claude"),
            Include::Copied(PathBuf::from(".claude"))
        );
        let skills = PathBuf::from(".claude/skills");
        assert_eq!(shared_in("~/.claude/skills"), Include::Copied(skills));
        assert_eq!(shared_in("~/.zshrc"), Include::Missing(home.join(".zshrc")));
        let etc = home.join("etc").display().to_string();
        assert_eq!(shared_in(&etc), Include::ReadOnly(home.join("etc")));
    }

    #[test]
    fn what_hands_over_the_machine_is_refused_also_behind_a_link() {
        let root = home();
        let home = root.path();
        let parent = home.parent().unwrap().display().to_string();
        let cases = [
            ("", "empty"),
            ("~/a\nb", "control"),
            ("~/.ssh/id_*", "patterns"),
            ("relative", "absolute"),
            ("../..", "absolute"),
            ("~/../x", "`..`"),
            ("/etc/../root", "`..`"),
            ("/", "whole home"),
            ("~", "whole home"),
            ("~/", "whole home"),
            (parent.as_str(), "whole home"),
            ("/var/run/docker.sock", "/var/run"),
            ("/run/user/1000/podman/podman.sock", "/run"),
            ("/run", "/run"),
            ("/var", "/var/run"),
            ("/proc/self", "/proc"),
            ("/dev/kvm", "/dev"),
            ("/var/lib/docker/volumes", "/var/lib/docker"),
            ("~/.ilchul", "~/.ilchul"),
            ("~/.ilchul/worktrees", "~/.ilchul"),
            ("~/.local", "~/.local/share/containers"),
            ("~/.docker/run/docker.sock", "~/.docker/run"),
            ("~/to-root", "whole home"),
            ("~/to-root/proc", "/proc"),
            ("~/to-state", "~/.ilchul"),
            ("~/sub", "a socket"),
            ("~/sub/agent.sock", "a socket"),
        ];
        for (text, rule) in cases {
            let refused = include(text, home).unwrap_err();
            assert!(refused.contains(rule), "{text:?}: {refused}");
        }
    }
}
