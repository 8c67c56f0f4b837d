//! Whether something failed only because the machine is short of something for now.
//!
//! Whoever runs unattended waits then, and tries again; whoever has a person before it says so.

use std::error::Error;
use std::io;
use std::path::Path;

use rustix::fs::statvfs;
use rustix::io::Errno;

/// What the system says when a disk, a quota, the memory, or a table of open files is full.
const SHORTAGES: [Errno; 5] = [
    Errno::NOSPC,
    Errno::DQUOT,
    Errno::NOMEM,
    Errno::MFILE,
    Errno::NFILE,
];

/// What other programs say of them in the language of the `C` locale.
const WORDS: [(&str, Errno); 7] = [
    ("No space left on device", Errno::NOSPC),
    ("Disk quota exceeded", Errno::DQUOT),
    ("Cannot allocate memory", Errno::NOMEM),
    ("Out of memory", Errno::NOMEM),
    ("out of memory", Errno::NOMEM),
    ("Too many open files in system", Errno::NFILE),
    ("Too many open files", Errno::MFILE),
];

/// Returns the shortage that another program complains of, in the language of the `C` locale.
#[must_use]
pub fn named_in(complaint: &str) -> Option<io::Error> {
    let mut words = WORDS.iter();
    let (_, number) = words.find(|(words, _)| complaint.contains(words))?;
    Some((*number).into())
}

/// Tells whether an error, or one of its causes, is a shortage that passes.
pub fn is_shortage(error: &(dyn Error + 'static)) -> bool {
    let mut cause = Some(error);
    while let Some(error) = cause {
        let system = error.downcast_ref::<io::Error>();
        let number = system.and_then(io::Error::raw_os_error);
        if number.is_some_and(|number| SHORTAGES.contains(&Errno::from_raw_os_error(number))) {
            return true;
        }
        cause = error.source();
    }
    false
}

/// Returns how many bytes anyone may still write to the file system of a path.
///
/// # Errors
/// When the path does not exist or its file system does not say.
pub fn free_bytes(path: &Path) -> io::Result<u64> {
    let found = statvfs(path)?;
    Ok(found.f_bavail.saturating_mul(found.f_frsize))
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::path::PathBuf;

    use rustix::io::Errno;

    use super::{is_shortage, named_in};
    use crate::lock::LockError;

    #[test]
    fn the_cause_decides_however_deep_it_is() {
        let failed = |errno: Errno| LockError::Failed {
            path: PathBuf::from("lock"),
            source: errno.into(),
        };
        for (errno, is_short) in [
            (Errno::NOSPC, true),
            (Errno::DQUOT, true),
            (Errno::MFILE, true),
            (Errno::ACCESS, false),
            (Errno::NOENT, false),
        ] {
            assert_eq!(is_shortage(&failed(errno)), is_short, "{errno}");
            let wrapped = io::Error::from(errno);
            assert_eq!(is_shortage(&wrapped), is_short, "{errno}");
        }
        assert!(!is_shortage(&io::Error::other("No space left on device")));
    }

    #[test]
    fn what_another_program_complains_of_is_one_as_well() {
        let complaint = "error: unable to write file a: No space left on device\nfatal: stopped";
        assert!(is_shortage(&named_in(complaint).unwrap()));
        assert!(named_in("fatal: not a git repository").is_none());
    }
}
