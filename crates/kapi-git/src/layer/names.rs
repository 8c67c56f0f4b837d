//! Names that some file system or git takes for `.git`.
//!
//! Pure text. Git refuses these names too; this tells before git is asked, and where there is none.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;

/// Code points that an Apple file system leaves out when it compares names.
const IGNORED: [std::ops::RangeInclusive<u32>; 4] = [
    0x200c..=0x200f,
    0x202a..=0x202e,
    0x206a..=0x206f,
    0xfeff..=0xfeff,
];

/// Tells whether a file system may open git's directory by this name: `.GIT`, `git~1`, `.git. `,
/// `.git::$INDEX_ALLOCATION`, or `.git` with characters that do not count.
#[must_use]
pub fn is_git_alias(name: &OsStr) -> bool {
    let bytes = name.as_bytes();
    let is_odd = |b: &u8| !b.is_ascii() || matches!(b, b'~' | b'\\');
    if bytes.first() != Some(&b'.') && !bytes.iter().any(is_odd) {
        return false;
    }
    // A backslash separates names on one file system and is part of them on others.
    let parts = bytes.split(|&b| b == b'\\');
    for part in parts {
        let stream = part.split(|&b| b == b':').next().unwrap_or_default();
        let end = stream.iter().rposition(|b| !matches!(b, b'.' | b' '));
        let stem = stream.get(..end.map_or(0, |at| at + 1)).unwrap_or_default();
        if stem.eq_ignore_ascii_case(b".git") || stem.eq_ignore_ascii_case(b"git~1") {
            return true;
        }
    }
    let Ok(text) = std::str::from_utf8(bytes) else {
        return false;
    };
    let counted: String = text
        .chars()
        .filter(|&c| !IGNORED.iter().any(|range| range.contains(&u32::from(c))))
        .collect();
    counted.eq_ignore_ascii_case(".git")
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;

    use super::is_git_alias;

    #[test]
    fn every_name_that_opens_a_git_directory_somewhere_is_known() {
        for name in [
            ".git",
            ".GIT",
            ".gIt",
            "git~1",
            "GIT~1",
            ".git.",
            ".git ",
            ".git . .",
            ".git::$INDEX_ALLOCATION",
            "a\\.git",
            ".g\u{200c}it",
            "\u{feff}.git",
            ".git\u{202e}",
        ] {
            assert!(is_git_alias(OsStr::new(name)), "{name:?}");
        }
        for name in [
            ".gitignore",
            "git",
            ".gitx",
            "git~2",
            "..git",
            ".gi",
            " ",
            ".",
            "...",
        ] {
            assert!(!is_git_alias(OsStr::new(name)), "{name:?}");
        }
        assert!(!is_git_alias(OsStr::from_bytes(b".gi\xfft")));
    }
}
