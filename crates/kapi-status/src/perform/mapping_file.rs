//! The person's own table from tool calls to phases, as YAML.
//!
//! Knows nothing of where a person keeps it.

use std::path::{Path, PathBuf};

use super::{StatusError, private_file};
use crate::rules::mapping::Mapping;

/// Bytes of the table's file.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// A table that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum MappingFileError {
    /// It cannot be read.
    #[error(transparent)]
    Unread(#[from] StatusError),
    /// There is no such file.
    #[error("find the tool mapping {}", path.display())]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// It is not text, or too long.
    #[error("read the tool mapping {}: it is not UTF-8 of at most 1 MiB", path.display())]
    NotText {
        /// The file.
        path: PathBuf,
    },
    /// It is no table of this shape.
    #[error("read the tool mapping {}: {reason}", path.display())]
    Shape {
        /// The file.
        path: PathBuf,
        /// What is wrong, with its line.
        reason: String,
    },
}

/// Reads a table. What it leaves out is as built in.
///
/// # Errors
/// When there is no such file, or it holds anything but such a table.
pub fn load(path: &Path) -> Result<Mapping, MappingFileError> {
    let bytes = private_file::read(path, FILE_BYTES_MAX + 1)?;
    let bytes = bytes.ok_or_else(|| MappingFileError::Missing {
        path: path.to_path_buf(),
    })?;
    let text = std::str::from_utf8(&bytes).ok();
    let is_whole = u64::try_from(bytes.len()).is_ok_and(|n| n <= FILE_BYTES_MAX);
    let text = text
        .filter(|_| is_whole)
        .ok_or_else(|| MappingFileError::NotText {
            path: path.to_path_buf(),
        })?;
    parse(path, text)
}

fn parse(path: &Path, text: &str) -> Result<Mapping, MappingFileError> {
    serde_saphyr::from_str(text).map_err(|error| MappingFileError::Shape {
        path: path.to_path_buf(),
        reason: error.without_snippet().to_string(),
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::parse;
    use crate::rules::phase::ToolCategory;

    #[test]
    fn the_table_that_the_documents_show_is_one() {
        let document = include_str!("../../../../docs/launches.md");
        let (_, block) = document.split_once("```yaml\n").unwrap();
        let (text, _) = block.split_once("```").unwrap();
        let mapping = parse(Path::new("launches.md"), text).unwrap();
        for (tool, command, category) in [
            ("Bash", "just test unit", ToolCategory::Testing),
            ("Bash", "pytest", ToolCategory::Other),
            ("Grep", "", ToolCategory::Exploring),
            ("Bash", "cargo build", ToolCategory::Building),
        ] {
            assert_eq!(
                mapping.category(tool, command),
                category,
                "{tool} {command}"
            );
        }
    }
}
