//! What hides Kapi's own state in a workspace: goals, logs and checks of others are not for an agent.
//!
//! Over the state directory lies another one, read-only, that holds only what the repository itself
//! tracks for everybody to read: loops and policy. Tracked loops elsewhere are read-only, too.

use std::fs;
use std::path::Path;

use kapi_core::failure::Failure;
use kapi_core::state_directory::{OWN_LOOPS, PI_LOOPS, POLICY_FILE, STATE_DIRECTORY};
use kapi_git::diff::TrackedFile;
use kapi_git::id::CommitId;
use kapi_git::layer::lower::LowerStack;
use kapi_git::owned_dir;
use kapi_git::repository::Repository;
use kapi_sandbox::spec::Mount;
use kapi_sys::disk::Disk as _;
use kapi_sys::real_disk::RealDisk;

use crate::confine::{WORKSPACE_INSIDE, read_only};
use crate::failure;

/// Returns the loop and policy files that a commit tracks.
pub fn tracked(repository: &Repository, commit: &CommitId) -> Result<Vec<TrackedFile>, Failure> {
    let globs = [
        format!("{OWN_LOOPS}/*.md"),
        format!("{STATE_DIRECTORY}/{POLICY_FILE}"),
        format!("{PI_LOOPS}/*.md"),
    ];
    repository
        .read_tracked_files(commit, &globs)
        .map_err(|error| failure::plain(&error))
}

/// Returns what lies over Kapi's state in a workspace, and over the files that are tracked beside it.
///
/// `workspace` is the directory on the host; `cover` is one of Kapi's own, which is made anew and
/// must outlive the sandbox. Where there is no state, nothing hides it.
pub fn state_cover(
    workspace: &Path,
    tracked: &[TrackedFile],
    cover: &Path,
) -> Result<Vec<Mount>, Failure> {
    state_cover_over(&LowerStack::project(workspace), tracked, cover)
}

/// Returns the same for a workspace that lies over a stack of directories.
pub fn state_cover_over(
    workspace: &LowerStack,
    tracked: &[TrackedFile],
    cover: &Path,
) -> Result<Vec<Mount>, Failure> {
    owned_dir::wipe(cover).map_err(|error| failure::plain(&error))?;
    let state = Path::new(STATE_DIRECTORY);
    let mut mounts = Vec::new();
    if found(workspace, state)?.is_some_and(|found| found.is_dir()) {
        make_directory(&cover.join(state))?;
        let inside = Path::new(WORKSPACE_INSIDE).join(state);
        mounts.push(read_only(&cover.join(state), &inside));
    }
    for file in tracked {
        let is_below_cover = file.path.starts_with(state);
        if is_below_cover && mounts.is_empty() {
            continue;
        }
        let is_plain = || Ok(found(workspace, &file.path)?.is_some_and(|found| found.is_file()));
        if !is_below_cover && !is_plain()? {
            continue;
        }
        let copy = cover.join(&file.path);
        if let Some(parent) = copy.parent() {
            make_directory(parent)?;
        }
        RealDisk
            .write(&copy, &file.bytes)
            .map_err(|error| failure::plain(&error))?;
        if !is_below_cover {
            let inside = Path::new(WORKSPACE_INSIDE).join(&file.path);
            mounts.push(read_only(&copy, &inside));
        }
    }
    Ok(mounts)
}

fn make_directory(dir: &Path) -> Result<(), Failure> {
    fs::create_dir_all(dir).map_err(|error| failure::file("create", dir, &error))
}

/// Looks at what shows at a path below plain directories: nothing is laid over where a link leads.
fn found(workspace: &LowerStack, path: &Path) -> Result<Option<fs::Metadata>, Failure> {
    let place = workspace.place(path);
    let place = place.map_err(|error| failure::plain(&error))?;
    Ok(place.and_then(|place| fs::symlink_metadata(place).ok()))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write as _;
    use std::path::{Path, PathBuf};

    use kapi_git::diff::TrackedFile;

    use super::state_cover;

    fn put(root: &Path, name: &str) {
        let path = root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::File::create(path)
            .unwrap()
            .write_all(b"secret")
            .unwrap();
    }

    fn file(name: &str) -> TrackedFile {
        TrackedFile {
            path: PathBuf::from(name),
            bytes: b"tracked".to_vec(),
        }
    }

    fn inside(root: &Path, cover: &Path, tracked: &[TrackedFile]) -> Vec<String> {
        let mounts = state_cover(root, tracked, cover).unwrap();
        let inside = mounts
            .iter()
            .map(|mount| mount.inside.display().to_string());
        inside.collect()
    }

    #[test]
    fn only_what_is_tracked_is_seen_of_the_state() {
        let (root, cover) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let cover = cover.path().join("cover");
        let tracked = [
            file(".ilchul/loops/a.md"),
            file(".ilchul/policy.yaml"),
            file(".pi/loops/b.md"),
            file(".pi/loops/gone.md"),
        ];
        assert!(inside(root.path(), &cover, &tracked).is_empty(), "no state");
        for name in [
            ".ilchul/goals/001-x/hidden/t.py",
            ".ilchul/loops/own.md",
            ".pi/loops/b.md",
        ] {
            put(root.path(), name);
        }
        let found = inside(root.path(), &cover, &tracked);
        assert_eq!(found, ["/workspace/.ilchul", "/workspace/.pi/loops/b.md"]);
        let mut names: Vec<_> = fs::read_dir(cover.join(".ilchul"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        names.sort();
        assert_eq!(names, ["loops", "policy.yaml"]);
        assert_eq!(
            fs::read_dir(cover.join(".ilchul/loops")).unwrap().count(),
            1
        );
        // It is made anew each time.
        inside(root.path(), &cover, &[]);
        assert_eq!(fs::read_dir(cover.join(".ilchul")).unwrap().count(), 0);
    }

    #[test]
    fn nothing_is_laid_over_where_a_link_leads() {
        let (root, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        put(other.path(), "loops/b.md");
        std::os::unix::fs::symlink(other.path(), root.path().join(".pi")).unwrap();
        std::os::unix::fs::symlink(other.path(), root.path().join(".ilchul")).unwrap();
        let cover = root.path().join("cover");
        assert!(inside(root.path(), &cover, &[file(".pi/loops/b.md")]).is_empty());
    }
}
