//! The text of the repository, read once.
//!
//! What is generated, installed or not text is left out. Rules never touch the disk.

use std::fs;
use std::path::Path;

use anyhow::Context as _;

/// Directories that hold nothing of ours, wherever they stand.
const NOT_OURS: &[&str] = &[".git", ".ilchul", ".test-tools", "node_modules"];

/// One text file.
#[derive(Debug)]
pub(super) struct TextFile {
    /// Relative to the root, with slashes.
    pub(super) path: String,
    /// Its content.
    pub(super) text: String,
}

/// Every text file, in the order of paths.
#[derive(Debug, Default)]
pub(super) struct SourceTree {
    pub(super) files: Vec<TextFile>,
}

impl SourceTree {
    /// Reads everything below `root`.
    pub(super) fn load(root: &Path) -> anyhow::Result<Self> {
        let mut tree = Self::default();
        tree.add_directory(root, root)?;
        tree.files.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(tree)
    }

    fn add_directory(&mut self, root: &Path, directory: &Path) -> anyhow::Result<()> {
        let reading = || format!("read {}", directory.display());
        for entry in fs::read_dir(directory).with_context(reading)? {
            let entry = entry.with_context(reading)?;
            let path = entry.path();
            let kind = entry.file_type().with_context(reading)?;
            let name = entry.file_name();
            let is_build = name == "target" && directory == root;
            let is_ours = !is_build && !NOT_OURS.iter().any(|other| name == *other);
            if !is_ours || kind.is_symlink() {
                continue;
            }
            if kind.is_dir() {
                self.add_directory(root, &path)?;
            } else {
                self.add_file(root, &path)?;
            }
        }
        Ok(())
    }

    fn add_file(&mut self, root: &Path, path: &Path) -> anyhow::Result<()> {
        let reading = || format!("read {}", path.display());
        if let Ok(text) = String::from_utf8(fs::read(path).with_context(reading)?) {
            let path = path
                .strip_prefix(root)
                .unwrap_or(path)
                .to_string_lossy()
                .into_owned();
            self.files.push(TextFile { path, text });
        }
        Ok(())
    }

    /// Builds a repository of these paths and texts.
    #[cfg(test)]
    pub(super) fn of(files: &[(&str, &str)]) -> Self {
        let file = |&(path, text): &(&str, &str)| TextFile {
            path: path.to_owned(),
            text: text.to_owned(),
        };
        Self {
            files: files.iter().map(file).collect(),
        }
    }

    /// Returns the file at this path.
    pub(super) fn file(&self, path: &str) -> Option<&TextFile> {
        self.files.iter().find(|file| file.path == path)
    }

    /// Returns the Rust files.
    pub(super) fn rust(&self) -> impl Iterator<Item = &TextFile> {
        self.files.iter().filter(|file| file.path.ends_with(".rs"))
    }
}

impl TextFile {
    /// Returns the lines with their numbers, from 1.
    pub(super) fn numbered(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text
            .lines()
            .enumerate()
            .map(|(index, line)| (index + 1, line))
    }

    /// Tells whether the file holds nothing but tests.
    pub(super) fn is_test(&self) -> bool {
        let name = self.path.rsplit('/').next().unwrap_or_default();
        self.path.contains("/tests/") || matches!(name, "tests.rs" | "props.rs")
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::Path;

    use kapi_sys::disk::Disk as _;
    use kapi_sys::real_disk::RealDisk;

    use super::SourceTree;

    #[test]
    fn only_our_own_text_is_read() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        let write = |path: &str, bytes: &[u8]| {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap_or(Path::new("/"))).unwrap();
            RealDisk.write(&path, bytes).unwrap();
        };
        write("crates/a/src/lib.rs", b"//! Text.\n");
        write("STYLE.md", b"rules\n");
        write("picture.bin", &[0xff, 0xfe]);
        write("target/debug/made.rs", b"made");
        write("crates/a/node_modules/x/index.js", b"installed");
        write(".test-tools/y/lib.rs", b"installed");
        symlink("STYLE.md", root.join("again.md")).unwrap();
        let tree = SourceTree::load(root).unwrap();
        let paths: Vec<&str> = tree.files.iter().map(|file| file.path.as_str()).collect();
        assert_eq!(paths, ["STYLE.md", "crates/a/src/lib.rs"]);
    }
}
