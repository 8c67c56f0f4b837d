//! The path of a file that every workflow of a mode has, filled in for one after the other.
//!
//! A listing asks for it thousands of times, so nothing is allocated for any one of them. Knows
//! neither the file nor the disk.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use kapi_core::id::GoalId;

/// The path of a file that every workflow of a mode has, from the mode's directory.
#[derive(Debug)]
pub(super) struct FileOfEach {
    path: PathBuf,
    file: OsString,
}

impl FileOfEach {
    /// Takes the name of the file from where one workflow has it.
    pub(super) fn of_mode(of_one: &Path) -> Self {
        Self {
            path: PathBuf::new(),
            file: of_one.file_name().unwrap_or_default().to_owned(),
        }
    }

    /// Returns where this workflow has it.
    pub(super) fn of(&mut self, workflow: &GoalId) -> &Path {
        let path = self.path.as_mut_os_string();
        path.clear();
        let written = write!(path, "{workflow}");
        assert!(written.is_ok(), "text in memory takes more text");
        self.path.push(&self.file);
        &self.path
    }
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use kapi_core::id::GoalId;

    use super::FileOfEach;

    #[test]
    fn it_is_the_path_of_one_workflow_after_the_other() {
        let mut file = FileOfEach::of_mode(Path::new("/x/001-a/events.jsonl"));
        let paths = ["001-a", "1000-keep-sessions", "002-b"]
            .map(|name| file.of(&GoalId::parse(name).unwrap()).to_path_buf());
        let expected = ["001-a", "1000-keep-sessions", "002-b"]
            .map(|name| PathBuf::from(name).join("events.jsonl"));
        assert_eq!(paths, expected);
    }
}
