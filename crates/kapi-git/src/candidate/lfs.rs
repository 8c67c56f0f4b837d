//! Files that a repository keeps in Git LFS: its commits hold pointers, and a filter does the rest.
//!
//! No filter runs here, so a file that is not a pointer would get into the repository whole and
//! for ever. It is left out and named instead. Makes no pointer and talks to no server.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use crate::command::GitError;
use crate::repository::path_of;
use crate::scratch::Scratch;

/// The most bytes a pointer has.
const POINTER_BYTES_MAX: u64 = 1_023;

/// The line that every pointer begins with.
const VERSION: &str = "version https://git-lfs.github.com/spec/v1";

/// Returns those of `paths` that the attributes in the working tree give to Git LFS.
pub(crate) fn filtered(
    scratch: &Scratch<'_>,
    paths: &[PathBuf],
) -> Result<BTreeSet<PathBuf>, GitError> {
    if paths.is_empty() {
        return Ok(BTreeSet::new());
    }
    let mut script = Vec::new();
    for path in paths {
        script.extend_from_slice(path.as_os_str().as_bytes());
        script.push(0);
    }
    let call = scratch.call("check-attr").args(["-z", "--stdin", "filter"]);
    let answer = call.stdin(script).bytes()?;
    let fields: Vec<&[u8]> = answer.split(|&b| b == 0).collect();
    let answers = fields.as_chunks::<3>().0.iter();
    let of_lfs = answers.filter(|[_, _, value]| *value == b"lfs");
    Ok(of_lfs.map(|[path, _, _]| path_of(path)).collect())
}

/// Tells whether a file of a workspace is its own content and no pointer; a link is neither.
pub(crate) fn is_whole(path: &Path) -> bool {
    !path.is_symlink() && !File::open(path).is_ok_and(is_pointer)
}

/// Tells whether a file is what a commit holds of a file in Git LFS.
///
/// An empty file is its own pointer.
pub(crate) fn is_pointer(file: File) -> bool {
    let mut text = String::new();
    let read = file.take(POINTER_BYTES_MAX + 1).read_to_string(&mut text);
    read.is_ok_and(|bytes| bytes as u64 <= POINTER_BYTES_MAX)
        && (text.is_empty() || names_content(&text))
}

/// Tells whether a text names the SHA-256 and the size of a content.
fn names_content(text: &str) -> bool {
    let mut lines = text.lines();
    let has_version = lines.next() == Some(VERSION);
    let digits = lines
        .clone()
        .find_map(|line| line.strip_prefix("oid sha256:"));
    let is_hash = digits
        .is_some_and(|digits| digits.len() == 64 && digits.bytes().all(|b| b.is_ascii_hexdigit()));
    let bytes = lines.find_map(|line| line.strip_prefix("size "));
    has_version && is_hash && bytes.is_some_and(|bytes| bytes.parse::<u64>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::names_content;

    #[test]
    fn only_a_whole_pointer_is_one() {
        let oid = "4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393";
        let version = "version https://git-lfs.github.com/spec/v1";
        let pointer = format!("{version}\noid sha256:{oid}\nsize 12345\n");
        assert!(names_content(&pointer));
        let extended = format!("{version}\next-0-foo sha256:{oid}\noid sha256:{oid}\nsize 1\n");
        assert!(names_content(&extended));
        for text in [
            "",
            "x",
            version,
            &format!("{version}\noid sha256:{oid}\n"),
            &format!("{version}\noid sha256:0\nsize 1\n"),
            &format!("{version}\noid sha256:{oid}\nsize much\n"),
            &format!("oid sha256:{oid}\nsize 12345\n"),
        ] {
            assert!(!names_content(text), "{text:?}");
        }
    }
}
