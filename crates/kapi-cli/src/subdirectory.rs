//! What a person types in a subdirectory of the project is meant there: commands run in it, patterns
//! start in it, as with git. What is kept is said from the project's top.

use std::fs;
use std::path::Path;

use kapi_core::quote::shell_word;

/// A directory of a project, from its top; empty at the top.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Subdirectory(String);

impl Subdirectory {
    /// Returns where a directory is in the project below `top`; the top, where it is not inside.
    pub(crate) fn of(directory: &Path, top: &Path) -> Self {
        let real = |path: &Path| fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
        let (directory, top) = (real(directory), real(top));
        let below = directory.strip_prefix(&top).ok().and_then(Path::to_str);
        Self(below.unwrap_or_default().to_owned())
    }

    /// Returns the line that runs a command in it, from the top.
    pub(crate) fn command(&self, typed: &str) -> String {
        run_in(&self.0, typed)
    }

    /// Returns the lines that run commands in it, from the top.
    pub(crate) fn commands(&self, typed: &[String]) -> Vec<String> {
        let lines = typed.iter().map(|command| self.command(command));
        lines.collect()
    }

    /// Returns patterns of files in it, from the top.
    pub(crate) fn patterns(&self, typed: &[String]) -> Vec<String> {
        let from_top = |pattern: &String| match pattern.strip_prefix("./").unwrap_or(pattern) {
            pattern if self.0.is_empty() => pattern.to_owned(),
            pattern => format!("{}/{pattern}", self.0),
        };
        typed.iter().map(from_top).collect()
    }
}

/// Returns the line that runs a command in a directory, and nothing of it if there is no such
/// directory.
pub(crate) fn run_in(directory: &str, command: &str) -> String {
    if directory.is_empty() {
        return command.to_owned();
    }
    let cd = format!("cd {}", shell_word(directory));
    if command.contains(['#', '\n']) {
        format!("{cd} && (\n{command}\n)")
    } else if command.contains([';', '|', '&']) {
        format!("{cd} && ({command})")
    } else {
        format!("{cd} && {command}")
    }
}

#[cfg(test)]
mod tests {
    use super::{Subdirectory, run_in};

    #[test]
    fn what_is_typed_in_a_subdirectory_is_said_from_the_top() {
        let here = Subdirectory("apps/my web".to_owned());
        let typed = ["npm test".to_owned(), "./check".to_owned()];
        assert_eq!(
            here.commands(&typed),
            [
                "cd 'apps/my web' && npm test",
                "cd 'apps/my web' && ./check"
            ]
        );
        let globs = ["tests/**".to_owned(), "./test.sh".to_owned()];
        assert_eq!(
            here.patterns(&globs),
            ["apps/my web/tests/**", "apps/my web/test.sh"]
        );
        let top = Subdirectory(String::new());
        assert_eq!(top.commands(&typed), typed);
    }

    #[test]
    fn nothing_runs_where_the_directory_is_gone() {
        assert_eq!(run_in("web", "a || b"), "cd web && (a || b)");
        assert_eq!(run_in("web", "a # why"), "cd web && (\na # why\n)");
    }
}
