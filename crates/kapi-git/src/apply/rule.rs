//! Which paths are never taken from a sandbox.
//!
//! Pure rules on names; looks at no file.

use std::path::{Component, Path};

use super::ApplyRefusal;
use crate::candidate::is_kapi_state;
use crate::layer::names::is_git_alias;

/// Returns why a path is not taken.
pub(super) fn refusal_of(path: &Path) -> Option<ApplyRefusal> {
    let mut parts = path.components();
    let is_below = !path.as_os_str().is_empty();
    if !is_below || !parts.all(|part| matches!(part, Component::Normal(_))) {
        return Some(ApplyRefusal::NotBelow);
    }
    if path.iter().any(is_git_alias) {
        return Some(ApplyRefusal::GitData);
    }
    is_kapi_state(path).then_some(ApplyRefusal::KapiState)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::refusal_of;
    use crate::apply::ApplyRefusal;

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
                Some(ApplyRefusal::GitData),
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
                Some(ApplyRefusal::NotBelow),
                "{name}"
            );
        }
        for name in [".ilchul/x", ".ILCHUL"] {
            assert_eq!(
                refusal_of(Path::new(name)),
                Some(ApplyRefusal::KapiState),
                "{name}"
            );
        }
        assert_eq!(refusal_of(Path::new("a/.ilchul")), None);
    }
}
