//! Files that nobody may change while a command runs: read-only inside, and compared afterwards.
//!
//! Files, not directories, because runners write caches beside tests. The directories they lie in
//! cannot be moved away either.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use kapi_core::failure::Failure;
use kapi_core::isolation::SandboxLevel;
use kapi_run::confine::WORKSPACE_INSIDE;
use kapi_run::failure;
use kapi_sandbox::spec::{Mount, MountAccess};
use sha2::{Digest as _, Sha256};

/// The most mounts that a native sandbox is given for sealed files; the others are compared only.
const MOUNTS_MAX: usize = 4_000;
/// The most that a container is given: each is a word of a command line.
const CONTAINER_MOUNTS_MAX: usize = 200;

/// What sealed files were when they were sealed.
#[derive(Debug, Clone, Default)]
pub struct Seal {
    files: BTreeMap<PathBuf, Print>,
}

/// What a file is: kind, mode and content.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Print {
    File { mode: u32, sha256: [u8; 32] },
    Link { target: PathBuf },
}

impl Seal {
    /// Notes what files of a checkout are; a path without a file or link is none.
    pub fn of(root: &Path, paths: Vec<PathBuf>) -> Result<Self, Failure> {
        let mut files = BTreeMap::new();
        for path in paths {
            if let Some(print) = print(&root.join(&path))? {
                files.insert(path, print);
            }
        }
        Ok(Self { files })
    }

    /// Tells whether a path is sealed.
    pub(super) fn holds(&self, path: &Path) -> bool {
        self.files.contains_key(path)
    }

    /// Returns the paths that are not what they were.
    pub(super) fn broken(&self, root: &Path) -> Result<Vec<String>, Failure> {
        let mut broken = Vec::new();
        for (path, sealed) in &self.files {
            if print(&root.join(path))?.as_ref() != Some(sealed) {
                broken.push(path.display().to_string());
            }
        }
        Ok(broken)
    }

    /// Returns the mounts that keep the files from being written, and the directories above them
    /// from being moved: a mount point cannot be renamed.
    pub fn mounts(&self, root: &Path, level: SandboxLevel) -> Vec<Mount> {
        let most = match level {
            SandboxLevel::None => return Vec::new(),
            SandboxLevel::Native => MOUNTS_MAX,
            SandboxLevel::Podman => CONTAINER_MOUNTS_MAX,
        };
        let is_file = |print: &Print| matches!(print, Print::File { .. });
        let files = self.files.iter().filter(|(_, print)| is_file(print));
        let files: Vec<&Path> = files.map(|(path, _)| path.as_path()).collect();
        let above = |path: &&Path| -> Vec<PathBuf> {
            let above = path.ancestors().skip(1);
            let named = above.filter(|path| !path.as_os_str().is_empty());
            named.map(Path::to_path_buf).collect()
        };
        // In the order of their names, so that each directory comes before what lies in it.
        let directories: BTreeSet<PathBuf> = files.iter().flat_map(above).collect();
        let mount = |path: &Path, access: MountAccess| Mount {
            host: root.join(path),
            inside: Path::new(WORKSPACE_INSIDE).join(path),
            access,
        };
        let directories = directories
            .iter()
            .map(|path| mount(path, MountAccess::ReadWrite));
        let files = files.iter().map(|path| mount(path, MountAccess::ReadOnly));
        directories.chain(files).take(most).collect()
    }
}

fn print(path: &Path) -> Result<Option<Print>, Failure> {
    let failed = |error: &io::Error| failure::file("read", path, error);
    let found = match fs::symlink_metadata(path) {
        Ok(found) => found,
        Err(error) if is_gone(&error) => return Ok(None),
        Err(error) => return Err(failed(&error)),
    };
    if found.is_symlink() {
        let target = fs::read_link(path).map_err(|error| failed(&error))?;
        return Ok(Some(Print::Link { target }));
    }
    // A file with a second name is one that somebody can change from elsewhere.
    if !found.is_file() || found.nlink() != 1 {
        return Ok(None);
    }
    let sha256 = match hash(path) {
        Ok(sha256) => sha256,
        Err(error) if is_gone(&error) => return Ok(None),
        Err(error) => return Err(failed(&error)),
    };
    Ok(Some(Print::File {
        mode: found.permissions().mode() & 0o7777,
        sha256,
    }))
}

fn is_gone(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory | io::ErrorKind::PermissionDenied
    )
}

fn hash(path: &Path) -> io::Result<[u8; 32]> {
    let mut file = File::open(path)?;
    let mut hash = Sha256::new();
    hash.update(path.as_os_str().as_bytes());
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let count = file.read(&mut buffer)?;
        match buffer.get(..count) {
            Some([]) | None => return Ok(hash.finalize().into()),
            Some(bytes) => hash.update(bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};

    use kapi_core::isolation::SandboxLevel;
    use kapi_sandbox::spec::MountAccess;
    use kapi_sys::disk::Disk as _;
    use kapi_sys::real_disk::RealDisk;

    use super::Seal;

    fn seal(root: &Path, paths: &[&str]) -> Seal {
        Seal::of(root, paths.iter().map(PathBuf::from).collect()).unwrap()
    }

    fn write(path: &Path, text: &str) {
        RealDisk.write(path, text.as_bytes()).unwrap();
    }

    #[test]
    fn whatever_becomes_of_a_sealed_file_breaks_the_seal() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        fs::create_dir(root.join("tests")).unwrap();
        let test = root.join("tests/test_a.py");
        write(&test, "assert False\n");
        let sealed = seal(root, &["tests/test_a.py", "tests/missing.py"]);
        assert_eq!(sealed.broken(root).unwrap(), [""; 0]);
        write(&root.join("tests/cache.pyc"), "x");
        assert_eq!(sealed.broken(root).unwrap(), [""; 0]);
        write(&test, "assert True\n");
        assert_eq!(sealed.broken(root).unwrap(), ["tests/test_a.py"]);
        write(&test, "assert False\n");
        assert_eq!(sealed.broken(root).unwrap(), [""; 0]);
        fs::hard_link(&test, root.join("other")).unwrap();
        assert_eq!(sealed.broken(root).unwrap(), ["tests/test_a.py"]);
        fs::remove_file(root.join("other")).unwrap();
        fs::rename(&test, root.join("gone")).unwrap();
        assert_eq!(sealed.broken(root).unwrap(), ["tests/test_a.py"]);
        std::os::unix::fs::symlink("../gone", &test).unwrap();
        assert_eq!(sealed.broken(root).unwrap(), ["tests/test_a.py"]);
    }

    #[test]
    fn directories_above_sealed_files_are_mounts_before_them() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        fs::create_dir_all(root.join("tests/deep")).unwrap();
        write(&root.join("tests/deep/test_a.py"), "");
        write(&root.join("test.sh"), "");
        let sealed = seal(root, &["tests/deep/test_a.py", "test.sh"]);
        let mounts = sealed.mounts(root, SandboxLevel::Native);
        let shown: Vec<(String, bool)> = mounts
            .iter()
            .map(|mount| {
                let is_read_only = mount.access == MountAccess::ReadOnly;
                (mount.inside.display().to_string(), is_read_only)
            })
            .collect();
        let expected = [
            ("/workspace/tests", false),
            ("/workspace/tests/deep", false),
            ("/workspace/test.sh", true),
            ("/workspace/tests/deep/test_a.py", true),
        ];
        let expected = expected.map(|(path, is_read_only)| (path.to_owned(), is_read_only));
        assert_eq!(shown, expected);
        assert!(sealed.mounts(root, SandboxLevel::None).is_empty());
    }
}
