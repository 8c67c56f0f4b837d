//! Reading one configuration file, however hostile the place where it lies.
//!
//! Knows nothing of what is in it.

use std::fs::OpenOptions;
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::error::Error;

/// The longest configuration.
const BYTES_MAX: u64 = 1 << 20;

/// What becomes of a link at the file's place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Links {
    /// It is followed: a person may keep their files elsewhere.
    Followed,
    /// It is refused: a project's could lead to anything.
    Refused,
}

/// Returns a file's text, if there is such a file.
///
/// Never waits: a pipe at its place is refused, not read.
pub(crate) fn read(path: &Path, links: Links) -> Result<Option<String>, Error> {
    let failed = |why: &str| Error::usage(format!("failed to read {}: {why}", path.display()));
    let flags = match links {
        Links::Followed => OFlags::NONBLOCK,
        Links::Refused => OFlags::NONBLOCK | OFlags::NOFOLLOW,
    };
    let flags = i32::try_from(flags.bits()).map_err(|_| failed("it could not be opened"))?;
    let file = match OpenOptions::new().read(true).custom_flags(flags).open(path) {
        Ok(file) => file,
        // What a link leads to is meant to be there: a file of limits that is silently none would
        // leave everything without a limit.
        Err(error) if error.kind() == io::ErrorKind::NotFound && path.is_symlink() => {
            return Err(failed("it is a link to a file that does not exist"));
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) if Errno::from_io_error(&error) == Some(Errno::LOOP) => {
            return Err(failed("it is a link"));
        }
        Err(error) => return Err(failed(&error.to_string())),
    };
    let found = file
        .metadata()
        .map_err(|error| failed(&error.to_string()))?;
    if !found.is_file() {
        return Err(failed("it is not a regular file"));
    }
    let mut text = String::new();
    let read = file.take(BYTES_MAX + 1).read_to_string(&mut text);
    let n_bytes = read.map_err(|error| match error.kind() {
        io::ErrorKind::InvalidData => failed("it is not UTF-8 text"),
        _ => failed(&error.to_string()),
    })?;
    if u64::try_from(n_bytes).is_ok_and(|n_bytes| n_bytes > BYTES_MAX) {
        return Err(failed("it is longer than 1 MiB"));
    }
    Ok(Some(text))
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Write as _;
    use std::os::unix::fs::symlink;
    use std::path::Path;

    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::{BYTES_MAX, Links, read};

    fn refusal(path: &Path, links: Links) -> String {
        read(path, links).unwrap_err().message
    }

    #[test]
    fn only_a_short_regular_file_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        for links in [Links::Followed, Links::Refused] {
            assert!(read(&at("nothing"), links).unwrap().is_none());
            assert!(refusal(dir.path(), links).ends_with("it is not a regular file"));
        }
        let file = File::create(at("file")).unwrap();
        assert_eq!(read(&at("file"), Links::Refused).unwrap().unwrap(), "");
        symlink("file", at("link")).unwrap();
        assert!(read(&at("link"), Links::Followed).unwrap().is_some());
        assert!(refusal(&at("link"), Links::Refused).ends_with("it is a link"));
        symlink("nowhere", at("astray")).unwrap();
        assert!(refusal(&at("astray"), Links::Followed).ends_with("a file that does not exist"));
        let mut latin = File::create(at("latin")).unwrap();
        latin.write_all(b"caf\xe9").unwrap();
        assert!(refusal(&at("latin"), Links::Followed).ends_with("it is not UTF-8 text"));
        let mode = Mode::RUSR | Mode::WUSR;
        mknodat(CWD, at("pipe"), FileType::Fifo, mode, 0).unwrap();
        assert!(refusal(&at("pipe"), Links::Followed).ends_with("it is not a regular file"));
        file.set_len(BYTES_MAX).unwrap();
        assert!(read(&at("file"), Links::Refused).is_ok());
        file.set_len(BYTES_MAX + 1).unwrap();
        assert!(refusal(&at("file"), Links::Refused).ends_with("it is longer than 1 MiB"));
    }
}
