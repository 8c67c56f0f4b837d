//! Links that no commit takes: those that may lead out of the tree they are in.
//!
//! A rule on names and on what the base has, so that it says the same wherever the files are.
//! Looks at no file and does not know what any name leads to.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path};

use crate::layer::names::is_git_alias;
use crate::layer::store::{self, ObjectKind};
use crate::repository::ObjectFormat;

/// Tells whether the link at `path` stays out of a commit.
///
/// `of_base` is the object of the link that the base has there, if it has one: what was in the
/// base already is no doing of the agent's and stays.
pub(crate) fn is_refused(
    format: ObjectFormat,
    path: &Path,
    target: &OsStr,
    of_base: Option<&str>,
) -> bool {
    leads_out(path, target)
        && of_base != Some(store::id(format, ObjectKind::Blob, target.as_bytes()).as_str())
}

/// Tells whether a link at `path` may lead out of the tree.
///
/// Steps up are known to stay inside only while they come first, where every directory is a real
/// one. After a name they start from wherever that name leads, which another link may decide.
pub(crate) fn leads_out(path: &Path, target: &OsStr) -> bool {
    let mut depth = path.components().count().saturating_sub(1);
    let mut has_named = false;
    for part in Path::new(target).components() {
        match part {
            Component::Prefix(_) | Component::RootDir => return true,
            Component::CurDir => {}
            Component::ParentDir if has_named || depth == 0 => return true,
            Component::ParentDir => depth -= 1,
            // What is written through it acts on the host like a file outside.
            Component::Normal(name) if is_git_alias(name) => return true,
            Component::Normal(_) => has_named = true,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::path::Path;

    use super::{is_refused, leads_out};
    use crate::layer::store::{self, ObjectKind};
    use crate::repository::ObjectFormat;

    #[test]
    fn a_link_leads_out_unless_it_certainly_does_not() {
        for (path, target, expected) in [
            ("a", "b", false),
            ("a", ".", false),
            ("a", "./b/c", false),
            ("a", "nowhere", false),
            ("a", "...", false),
            ("a", ".github/x", false),
            ("d/a", "..", false),
            ("d/a", ".././b", false),
            ("d/e/a", "../../b/c", false),
            ("a", "/", true),
            ("a", "/etc/passwd", true),
            ("a", "//etc", true),
            ("a", "..", true),
            ("a", "./..", true),
            ("d/a", "../..", true),
            ("d/a", "../../d/b", true),
            // The name may be another link, even to the top itself.
            ("a", "b/../c", true),
            ("d/a", "b/../../../etc", true),
            ("a", ".git", true),
            ("a", ".GIT/hooks", true),
            ("d/a", "../.git/config", true),
        ] {
            let found = leads_out(Path::new(path), OsStr::new(target));
            assert_eq!(found, expected, "{path} -> {target}");
        }
    }

    #[test]
    fn only_the_very_link_of_the_base_stays() {
        for format in [ObjectFormat::Sha1, ObjectFormat::Sha256] {
            let object = |target: &str| store::id(format, ObjectKind::Blob, target.as_bytes());
            let refused = |target: &str, of_base: Option<&str>| {
                is_refused(format, Path::new("a"), OsStr::new(target), of_base)
            };
            assert!(refused("/etc", None));
            assert!(refused("/etc", Some(&object("/usr"))));
            assert!(!refused("/etc", Some(&object("/etc"))));
            assert!(!refused("inside", Some(&object("/etc"))));
        }
    }
}
