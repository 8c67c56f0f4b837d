//! Joining the control groups that the host side made for this sandbox.
//!
//! Does not know what they limit.

use std::fs::OpenOptions;
use std::io::Write as _;

use rustix::io::Errno;

use crate::order::SystemText;
use crate::status::StepFailure;

/// What a process writes to say "me".
const SELF: &[u8] = b"0";

/// Moves this process into each group. Call while the host's files are in reach and there is one
/// thread; every process started afterwards is born in the groups.
pub(super) fn join(group_files: &[SystemText]) -> Result<(), StepFailure> {
    for group_file in group_files {
        let path = group_file.path();
        OpenOptions::new()
            .write(true)
            .open(&path)
            .and_then(|mut file| file.write_all(SELF))
            .map_err(|error| {
                let errno = Errno::from_io_error(&error).unwrap_or(Errno::IO);
                StepFailure::new("write", &path.display().to_string(), errno)
            })?;
    }
    Ok(())
}
