//! The person's own path of a project, as a second place of the workspace inside a sandbox.
//!
//! Virtual environments, editable installs and build caches hold absolute paths, so they are right
//! inside only where the workspace stands at the same path. Decides where that can be; mounts
//! nothing.

use std::path::{Component, Path, PathBuf};
use std::{fs, io};

use kapi_core::failure::Failure;
use kapi_sandbox::spec::{Mount, MountAccess};

use super::WORKSPACE_INSIDE;
use crate::failure;

/// Where a sandbox has things of its own; nothing of a project is shown there or over it.
const RESERVED: &[&str] = &["/proc", "/sys", "/dev", "/run/kapi", WORKSPACE_INSIDE];
/// What every sandbox needs; a project may lie below, not over it.
const NEEDED: &[&str] = &[
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib64",
    "/etc",
    "/opt",
    "/nix/store",
    "/run",
    "/tmp",
    "/var/tmp",
];

/// Tells whether the workspace can also stand at the project's own path.
///
/// It cannot where it would cover the private home or the sandbox's own places.
pub(super) fn can_be_shown(project: &Path, home: &Path) -> bool {
    let real_home = fs::canonicalize(home).unwrap_or_else(|_| home.to_path_buf());
    let is_plain = project
        .components()
        .all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
    let is_over = |location: &str| Path::new(location).starts_with(project);
    is_plain
        && project.is_absolute()
        && !home.starts_with(project)
        && !real_home.starts_with(project)
        && !RESERVED
            .iter()
            .any(|location| project.starts_with(location))
        && !RESERVED
            .iter()
            .chain(NEEDED)
            .any(|location| is_over(location))
}

/// Moves a mount that would be covered by the workspace at the project's path onto the workspace,
/// where both paths show it: a program, or a directory that the person lends, in the project itself.
pub(super) fn moved_onto_workspace(mut mount: Mount, project: &Path) -> Mount {
    if let Ok(rest) = mount.inside.strip_prefix(project)
        && !rest.as_os_str().is_empty()
    {
        mount.inside = Path::new(WORKSPACE_INSIDE).join(rest);
    }
    mount
}

/// What mounts stand on in the host's directory of a workspace; what was made for that goes again.
#[derive(Debug)]
pub(super) struct MountTargets {
    workspace: PathBuf,
    made: Vec<PathBuf>,
}

impl MountTargets {
    /// Makes the missing ones: a workspace that cannot be written inside has no place for them.
    pub(super) fn make(
        workspace: &Path,
        access: &MountAccess,
        mounts: &[Mount],
    ) -> Result<Self, Failure> {
        let mut points = Self {
            workspace: workspace.to_path_buf(),
            made: Vec::new(),
        };
        if matches!(access, MountAccess::CopyOnWrite(_)) {
            return Ok(points);
        }
        for mount in mounts {
            let rest = mount.inside.strip_prefix(WORKSPACE_INSIDE);
            if let Ok(rest) = rest {
                points.add(rest, mount.host.is_dir())?;
            }
        }
        Ok(points)
    }

    fn add(&mut self, rest: &Path, is_directory: bool) -> Result<(), Failure> {
        let mut path = self.workspace.clone();
        let mut parts = rest.components().peekable();
        while let Some(part) = parts.next() {
            path.push(part);
            match fs::symlink_metadata(&path) {
                Ok(found) if found.is_dir() => continue,
                // A link or a file in the way is an error of the mount itself.
                Ok(_) => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(failure::file("inspect", &path, &error)),
            }
            let made = if parts.peek().is_some() || is_directory {
                fs::create_dir(&path)
            } else {
                fs::File::create_new(&path).map(drop)
            };
            made.map_err(|error| failure::file("create", &path, &error))?;
            self.made.push(path.clone());
        }
        Ok(())
    }
}

impl MountTargets {
    /// Tells whether a path still lies in the workspace: an agent may have put a link on the way.
    fn is_within(&self, path: &Path) -> bool {
        let parents = path.ancestors().skip(1);
        let mut within = parents.take_while(|parent| parent.starts_with(&self.workspace));
        within.all(|parent| {
            *parent == self.workspace || fs::symlink_metadata(parent).is_ok_and(|it| it.is_dir())
        })
    }
}

impl Drop for MountTargets {
    fn drop(&mut self) {
        for path in self.made.iter().rev().filter(|path| self.is_within(path)) {
            // What is no longer as it was made is the agent's work.
            match fs::symlink_metadata(path) {
                Ok(found) if found.is_dir() => drop(fs::remove_dir(path)),
                Ok(found) if found.is_file() && found.len() == 0 => drop(fs::remove_file(path)),
                Ok(_) | Err(_) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::Path;

    use kapi_sandbox::spec::MountAccess;
    use kapi_sys::disk::Disk as _;
    use kapi_sys::real_disk::RealDisk;

    use super::{MountTargets, can_be_shown, moved_onto_workspace};
    use crate::confine::read_only;

    #[test]
    fn a_project_is_shown_where_it_covers_nothing_that_is_needed() {
        let home = Path::new("/home/user");
        let check = |path: &str, expected: bool| {
            assert_eq!(can_be_shown(Path::new(path), home), expected, "{path}");
        };
        for path in [
            "/home/user/src/app",
            "/srv/app",
            "/tmp/x/app",
            "/usr/src/app",
            "/workspaces/a",
        ] {
            check(path, true);
        }
        for path in [
            "/",
            "/home",
            "/home/user",
            "/tmp",
            "/run",
            "/run/kapi/x",
            "/dev/shm/app",
        ] {
            check(path, false);
        }
        for path in [
            "/proc/1",
            "/sys/x",
            "/usr",
            "/etc",
            "/workspace",
            "/workspace/a",
            "app",
        ] {
            check(path, false);
        }
        check("/home/user/../me", false);
    }

    #[test]
    fn what_lies_in_the_project_is_mounted_on_the_workspace() {
        let moved = |inside: &str| {
            let mount = read_only(Path::new("/x"), Path::new(inside));
            moved_onto_workspace(mount, Path::new("/src/app")).inside
        };
        assert_eq!(moved("/src/app/.venv"), Path::new("/workspace/.venv"));
        assert_eq!(moved("/src/apple/.venv"), Path::new("/src/apple/.venv"));
        assert_eq!(moved("/src/app"), Path::new("/src/app"));
    }

    #[test]
    fn places_for_mounts_are_made_and_go_again_unless_they_are_used() {
        let top = tempfile::tempdir().unwrap();
        let workspace = top.path().join("work");
        fs::create_dir(&workspace).unwrap();
        RealDisk.write(&top.path().join("tool"), b"x").unwrap();
        let file = top.path().join("tool");
        let mounts = [
            read_only(top.path(), Path::new("/workspace/a/b")),
            read_only(&file, Path::new("/workspace/tool")),
            read_only(&file, Path::new("/elsewhere")),
        ];
        let points = MountTargets::make(&workspace, &MountAccess::ReadOnly, &mounts).unwrap();
        assert!(workspace.join("a/b").is_dir() && workspace.join("tool").is_file());
        RealDisk.write(&workspace.join("a/kept"), b"").unwrap();
        drop(points);
        assert!(!workspace.join("a/b").exists() && !workspace.join("tool").exists());
        assert!(workspace.join("a/kept").exists());
    }

    #[test]
    fn nothing_goes_that_an_agent_leads_to() {
        let top = tempfile::tempdir().unwrap();
        let (workspace, outside) = (top.path().join("work"), top.path().join("outside"));
        fs::create_dir(&workspace).unwrap();
        fs::create_dir_all(outside.join("b")).unwrap();
        let mounts = [read_only(top.path(), Path::new("/workspace/a/b"))];
        let points = MountTargets::make(&workspace, &MountAccess::ReadWrite, &mounts).unwrap();
        fs::remove_dir_all(workspace.join("a")).unwrap();
        symlink(&outside, workspace.join("a")).unwrap();
        drop(points);
        assert!(outside.join("b").is_dir());
    }
}
