//! Which paths and links are never taken from a sandbox.
//!
//! Pure rules on names; looks at no file.

use std::ffi::OsStr;
use std::path::{Component, Path};

use super::Refusal;
use crate::candidate::is_kapi_state;
use crate::layer::names::is_git_alias;

/// Returns why a path is not taken.
pub(super) fn refusal_of(path: &Path) -> Option<Refusal> {
    let mut parts = path.components();
    let is_below = !path.as_os_str().is_empty();
    if !is_below || !parts.all(|part| matches!(part, Component::Normal(_))) {
        return Some(Refusal::NotBelow);
    }
    if path.iter().any(is_git_alias) {
        return Some(Refusal::GitData);
    }
    is_kapi_state(path).then_some(Refusal::KapiState)
}

/// Tells whether a link at `path` may lead out of the project.
///
/// Steps up are only known to stay inside while they come first: after a name they start from
/// wherever that name leads.
pub(super) fn leads_out(path: &Path, target: &OsStr) -> bool {
    let mut depth = path.components().count().saturating_sub(1);
    let mut has_named = false;
    for part in Path::new(target).components() {
        match part {
            Component::Prefix(_) | Component::RootDir => return true,
            Component::CurDir => {}
            Component::ParentDir => {
                if has_named || depth == 0 {
                    return true;
                }
                depth -= 1;
            }
            // Into git's data is as good as out.
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

    use super::{leads_out, refusal_of};
    use crate::apply::Refusal;

    #[test]
    fn git_data_is_refused_under_every_name_some_file_system_takes_for_it() {
        for name in [
            ".git",
            ".GIT",
            "a/.git/config",
            ".git.",
            ".git ",
            "git~1",
            "GIT~1/x",
            ".g\u{200c}it",
            ".git::$INDEX_ALLOCATION",
            "a/.Git",
        ] {
            assert_eq!(
                refusal_of(Path::new(name)),
                Some(Refusal::GitData),
                "{name}"
            );
        }
        for name in [".gitignore", "git", "a/git", ".github/x", "...", ".git2"] {
            assert_eq!(refusal_of(Path::new(name)), None, "{name}");
        }
    }

    #[test]
    fn only_what_is_below_the_project_is_taken() {
        for name in ["", "/etc/passwd", "../x", "a/../../x", "."] {
            assert_eq!(
                refusal_of(Path::new(name)),
                Some(Refusal::NotBelow),
                "{name}"
            );
        }
        for name in [".ilchul/x", ".ILCHUL"] {
            assert_eq!(
                refusal_of(Path::new(name)),
                Some(Refusal::KapiState),
                "{name}"
            );
        }
        assert_eq!(refusal_of(Path::new("a/.ilchul")), None);
    }

    #[test]
    fn a_link_leads_out_unless_it_certainly_does_not() {
        for (at, target, expected) in [
            ("a", "b", false),
            ("a", "./b/c", false),
            ("d/a", "../b", false),
            ("d/e/a", "../../b", false),
            ("a", "../b", true),
            ("d/a", "../../b", true),
            ("a", "/etc/passwd", true),
            // The name may be a link to the top itself.
            ("a", "b/../c", true),
            ("a", ".git/config", true),
        ] {
            assert_eq!(
                leads_out(Path::new(at), OsStr::new(target)),
                expected,
                "{at} -> {target}"
            );
        }
    }
}
