//! Which of some paths git ignores, whatever repository it is asked in.
//!
//! Git alone reads the rules; nothing here knows where they stand.

use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use crate::command::{GitCall, GitError};
use crate::repository::path_of;

/// Returns those of `paths` that git ignores where this call of `check-ignore` is made.
///
/// A path that ends in a slash is a directory. Only the rules have to be there, not the paths.
pub(crate) fn check_ignore<'p>(
    call: GitCall<'_>,
    paths: impl IntoIterator<Item = &'p PathBuf>,
) -> Result<BTreeSet<PathBuf>, GitError> {
    let mut script = Vec::new();
    for path in paths {
        // So that a name that begins like a pattern is none.
        script.extend_from_slice(b"./");
        script.extend_from_slice(path.as_os_str().as_bytes());
        script.push(0);
    }
    if script.is_empty() {
        return Ok(BTreeSet::new());
    }
    let call = call.args(["-z", "--stdin", "--no-index"]).stdin(script);
    // Code 1 says that nothing is ignored.
    let exit = call.exit_up_to(1)?;
    let names = exit.stdout.split(|&b| b == 0);
    let names = names.filter_map(|name| name.strip_prefix(b"./"));
    Ok(names.map(path_of).collect())
}
