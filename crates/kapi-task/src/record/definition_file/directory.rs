//! Reading files of a directory, however hostile what lies in it.
//!
//! Nothing outside of the directory is read, whatever links say; a pipe or device is refused
//! without being waited for; sizes and numbers are bounded. Knows nothing of what is read.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use kapi_settings::fault::SettingsFault;
use rustix::fs::{CWD, Dir, Mode, OFlags, ResolveFlags, openat, openat2};
use rustix::io::Errno;

/// The longest file in bytes.
const FILE_BYTES_MAX: u64 = 256 * 1024;
/// The most files of one directory.
const FILES_MAX: usize = 4_096;
/// The most other names of one directory that are passed over.
const NAMES_MAX: usize = 65_536;
/// How often a look-up that somebody disturbs is tried again.
const ATTEMPTS_MAX: usize = 16;

/// Looks up a file of the project.
pub(crate) type Files<'a> = &'a dyn Fn(&Path) -> Result<Option<String>, DefinitionPathError>;

/// A directory that files are read from.
#[derive(Debug)]
pub(in crate::record) struct DefinitionDirectory {
    root: PathBuf,
    fd: OwnedFd,
}

/// Why a file or directory was not read.
#[derive(Debug, thiserror::Error)]
pub(in crate::record) enum DefinitionPathError {
    /// A link leads elsewhere.
    #[error("a symbolic link points outside {}", .root.display())]
    Escapes {
        /// The directory that it leads out of.
        root: PathBuf,
    },
    /// A pipe, a device, a directory.
    #[error("it is not a regular file")]
    NoFile,
    /// It is too long.
    #[error("it is longer than 256 KiB")]
    TooLong,
    /// Its bytes are no text.
    #[error("it is not UTF-8")]
    NotText,
    /// There are too many.
    #[error("there are more than 4096 files or 65536 names")]
    TooMany,
    /// The system refused.
    #[error("{source}")]
    Io {
        /// Why.
        #[source]
        source: io::Error,
    },
}

impl DefinitionPathError {
    /// Returns it as what is wrong with a file or directory.
    pub(in crate::record) fn fault(&self, path: &Path) -> SettingsFault {
        SettingsFault::of_file(path.display().to_string(), self.to_string(), self.remedy())
    }

    /// Returns what to do.
    pub(in crate::record) const fn remedy(&self) -> &'static str {
        match self {
            Self::Escapes { .. } => "replace the link with the file",
            Self::NoFile => "put a regular file there, or remove it",
            Self::TooLong => "shorten it",
            Self::NotText => "save it as UTF-8",
            Self::TooMany => "remove what is not needed",
            Self::Io { .. } => "make it readable",
        }
    }
}

impl From<Errno> for DefinitionPathError {
    fn from(errno: Errno) -> Self {
        Self::Io {
            source: errno.into(),
        }
    }
}

impl DefinitionDirectory {
    /// Opens a directory; `None` when there is none.
    pub(in crate::record) fn open(root: &Path) -> Result<Option<Self>, DefinitionPathError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        match openat(CWD, root, flags, Mode::empty()) {
            Ok(fd) => Ok(Some(Self {
                root: root.to_path_buf(),
                fd,
            })),
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Returns a file's text; `None` when there is no such file.
    pub(in crate::record) fn read(
        &self,
        path: &Path,
    ) -> Result<Option<String>, DefinitionPathError> {
        let Some(fd) = self.beneath(path, OFlags::NONBLOCK | OFlags::NOCTTY)? else {
            return Ok(None);
        };
        let failed = |source| DefinitionPathError::Io { source };
        let file = File::from(fd);
        if !file.metadata().map_err(failed)?.is_file() {
            return Err(DefinitionPathError::NoFile);
        }
        let mut bytes = Vec::new();
        let mut limited = file.take(FILE_BYTES_MAX + 1);
        limited.read_to_end(&mut bytes).map_err(failed)?;
        if u64::try_from(bytes.len()).is_ok_and(|n_bytes| n_bytes > FILE_BYTES_MAX) {
            return Err(DefinitionPathError::TooLong);
        }
        let text = String::from_utf8(bytes).map_err(|_| DefinitionPathError::NotText)?;
        Ok(Some(text))
    }

    /// Returns the Markdown files of a directory in the order of their names; `None` when there
    /// is no such directory.
    pub(in crate::record) fn markdown(
        &self,
        dir: &Path,
    ) -> Result<Option<Vec<PathBuf>>, DefinitionPathError> {
        let Some(fd) = self.beneath(dir, OFlags::DIRECTORY)? else {
            return Ok(None);
        };
        let mut files = Vec::new();
        for (number, entry) in Dir::new(fd)?.enumerate() {
            let entry = entry?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            let is_hidden = name.as_bytes().starts_with(b".");
            if !is_hidden && Path::new(name).extension() == Some(OsStr::new("md")) {
                files.push(dir.join(name));
            }
            if files.len() > FILES_MAX || number > NAMES_MAX {
                return Err(DefinitionPathError::TooMany);
            }
        }
        files.sort();
        Ok(Some(files))
    }

    /// Opens what lies beneath, and nothing else.
    fn beneath(&self, path: &Path, flags: OFlags) -> Result<Option<OwnedFd>, DefinitionPathError> {
        let flags = flags | OFlags::RDONLY | OFlags::CLOEXEC;
        let how = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        for _ in 0..ATTEMPTS_MAX {
            match openat2(&self.fd, path, flags, Mode::empty(), how) {
                Ok(fd) => return Ok(Some(fd)),
                // Somebody renames what the look-up passes through.
                Err(Errno::AGAIN) => {}
                Err(Errno::NOENT | Errno::NOTDIR) => return Ok(None),
                // A socket cannot be opened.
                Err(Errno::NXIO) => return Err(DefinitionPathError::NoFile),
                Err(Errno::XDEV | Errno::LOOP) => {
                    return Err(DefinitionPathError::Escapes {
                        root: self.root.clone(),
                    });
                }
                Err(errno) => return Err(errno.into()),
            }
        }
        Err(Errno::AGAIN.into())
    }
}

/// Returns where the nearest of some directories may lie, from `start` up to `root`, relative to
/// `root`: what lies above a project belongs to somebody else. Only `root` when `start` lies
/// elsewhere.
pub(in crate::record) fn upward(root: &Path, start: &Path) -> Vec<PathBuf> {
    let below = start.strip_prefix(root).unwrap_or(Path::new(""));
    below.ancestors().map(Path::to_path_buf).collect()
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::io::Write as _;
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;
    use std::path::{Path, PathBuf};

    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::{DefinitionDirectory, FILE_BYTES_MAX, upward};

    fn refusal(location: &DefinitionDirectory, path: &str) -> String {
        location.read(Path::new(path)).unwrap_err().to_string()
    }

    #[test]
    fn only_short_text_beneath_is_read() {
        let above = tempfile::tempdir().unwrap();
        let root = above.path().join("project");
        fs::create_dir_all(root.join("dir")).unwrap();
        let location = DefinitionDirectory::open(&root).unwrap().unwrap();
        assert_eq!(location.read(Path::new("nothing")).unwrap(), None);
        assert_eq!(refusal(&location, "dir"), "it is not a regular file");

        let file = File::create(root.join("file")).unwrap();
        assert_eq!(location.read(Path::new("file")).unwrap().unwrap(), "");
        symlink("../file", root.join("dir/inside")).unwrap();
        assert!(location.read(Path::new("dir/inside")).unwrap().is_some());
        File::create(above.path().join("secret")).unwrap();
        symlink("../../secret", root.join("dir/outside")).unwrap();
        symlink(above.path().join("secret"), root.join("dir/absolute")).unwrap();
        symlink("loop", root.join("loop")).unwrap();
        for path in ["dir/outside", "dir/absolute", "loop", "../secret"] {
            assert!(
                refusal(&location, path).starts_with("a symbolic link points outside"),
                "{path}"
            );
        }

        let mode = Mode::RUSR | Mode::WUSR;
        mknodat(CWD, root.join("pipe"), FileType::Fifo, mode, 0).unwrap();
        assert_eq!(refusal(&location, "pipe"), "it is not a regular file");
        let _listener = UnixListener::bind(root.join("socket")).unwrap();
        assert_eq!(refusal(&location, "socket"), "it is not a regular file");

        file.set_len(FILE_BYTES_MAX).unwrap();
        assert!(location.read(Path::new("file")).is_ok());
        file.set_len(FILE_BYTES_MAX + 1).unwrap();
        assert_eq!(refusal(&location, "file"), "it is longer than 256 KiB");
        let mut binary = File::create(root.join("binary")).unwrap();
        binary.write_all(&[0xff]).unwrap();
        assert_eq!(refusal(&location, "binary"), "it is not UTF-8");
    }

    #[test]
    fn markdown_is_listed_in_order() {
        let root = tempfile::tempdir().unwrap();
        let location = DefinitionDirectory::open(root.path()).unwrap().unwrap();
        assert_eq!(location.markdown(Path::new("loops")).unwrap(), None);
        fs::create_dir(root.path().join("loops")).unwrap();
        for name in ["b.md", "a.md", ".hidden.md", "c.txt", "C.md"] {
            File::create(root.path().join("loops").join(name)).unwrap();
        }
        let files = location.markdown(Path::new("loops")).unwrap().unwrap();
        let expected = ["loops/C.md", "loops/a.md", "loops/b.md"].map(PathBuf::from);
        assert_eq!(files, expected);
        symlink("/", root.path().join("away")).unwrap();
        assert!(location.markdown(Path::new("away/etc")).is_err());
    }

    #[test]
    fn nothing_above_the_project_is_looked_at() {
        let paths = |start: &str| -> Vec<String> {
            upward(Path::new("/p"), Path::new(start))
                .iter()
                .map(|path| path.display().to_string())
                .collect()
        };
        assert_eq!(paths("/p/a/b"), ["a/b", "a", ""]);
        assert_eq!(paths("/p"), [""]);
        assert_eq!(paths("/elsewhere"), [""]);
    }
}
