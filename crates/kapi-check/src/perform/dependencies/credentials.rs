//! Files with secrets in what is lent: found by their names, and covered inside.
//!
//! Package content is passed over: certificates and examples that a package comes with are no
//! secrets of the person, and a program may need them.

use std::collections::{BTreeSet, VecDeque};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::{fs, io};

use kapi_core::failure::Failure;
use kapi_core::glob::Glob;
use kapi_run::failure;

use super::pattern::PathPattern;
use crate::rules::proof::ecosystem::EcosystemTable;

/// How many entries of one directory tree are looked at.
const ENTRIES_MAX: usize = 40_000;
/// Directories that hold what packages and tool chains come with.
const CONTENT: &[&str] = &[
    "node_modules",
    "site-packages",
    "dist-packages",
    "lib",
    "lib64",
    "libexec",
    "include",
    "share",
    "src",
    "_cacache",
    ".pnpm",
    "archive-v0",
    "wheels-v5",
    "files",
    "doc",
    "docs",
    "test",
];

/// How deep a tree is looked through: secrets lie near the top.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Depth {
    /// What packages were put into.
    Packages,
    /// Tool chains, which keep settings of their own in each version.
    ToolChains,
}

impl Depth {
    const fn levels(self) -> usize {
        match self {
            Self::Packages => 2,
            Self::ToolChains => 6,
        }
    }
}

/// The names of files that hold secrets, by how they are told: trees of many files are looked
/// through.
#[derive(Debug, Default)]
pub(super) struct CredentialFinder {
    /// Whole names.
    names: BTreeSet<String>,
    /// Ends of names.
    endings: Vec<String>,
    /// Ends of paths, with a slash before them.
    paths: Vec<String>,
    /// Directories all of whose files are meant, with slashes around them.
    directories: Vec<String>,
    /// Everything else: patterns of paths, at any depth.
    others: Vec<Glob>,
}

impl CredentialFinder {
    /// Takes those of every ecosystem: who uses one tool has the secrets of another beside it.
    pub(super) fn of(table: &EcosystemTable) -> Self {
        let mut credentials = Self::default();
        for pattern in table.all.iter().flat_map(|one| &one.credentials) {
            for plain in PathPattern::new(pattern).names() {
                credentials.add(plain);
            }
        }
        credentials
    }

    fn add(&mut self, plain: &str) {
        let is_literal = |text: &str| !text.contains(['*', '?']);
        let (directory, ending) = (plain.strip_suffix("/**"), plain.strip_prefix('*'));
        if is_literal(plain) && !plain.contains('/') {
            self.names.insert(plain.to_owned());
        } else if is_literal(plain) {
            self.paths.push(format!("/{plain}"));
        } else if let Some(directory) = directory.filter(|it| is_literal(it)) {
            self.directories.push(format!("/{directory}/"));
        } else if let Some(ending) = ending.filter(|it| is_literal(it) && !it.contains('/')) {
            self.endings.push(ending.to_owned());
        } else {
            self.others.push(Glob::new(&format!("**/{plain}")));
        }
    }

    /// Tells whether a file is one, by its path below the home or below what is lent.
    pub(super) fn is_one(&self, path: &str) -> bool {
        let name = path.rsplit('/').next().unwrap_or(path);
        let slashed = format!("/{path}");
        self.names.contains(name)
            || self
                .endings
                .iter()
                .any(|ending| name.ends_with(ending.as_str()))
            || self.paths.iter().any(|end| slashed.ends_with(end.as_str()))
            || self
                .directories
                .iter()
                .any(|at| slashed.contains(at.as_str()))
            || {
                let names: Vec<&str> = path.split('/').collect();
                self.others.iter().any(|other| other.matches_names(&names))
            }
    }

    /// Returns the files in a tree that are, relative to it.
    ///
    /// `shown` is the tree's own path below the home or the project, which patterns may name.
    pub(super) fn within(
        &self,
        tree: &Path,
        shown: &str,
        depth: Depth,
    ) -> Result<Vec<PathBuf>, Failure> {
        let mut found = Vec::new();
        let mut waiting = VecDeque::from([(PathBuf::new(), 1)]);
        let mut entries_left = ENTRIES_MAX;
        while let Some((relative, level)) = waiting.pop_front() {
            let entries = listed(&tree.join(&relative))?;
            entries_left = entries_left.saturating_sub(entries.len());
            let may_go_deeper = level < depth.levels() && entries_left > 0;
            let is_content = |name: &OsStr| CONTENT.iter().any(|content| name == *content);
            let (directories, files): (Vec<_>, Vec<_>) =
                entries.into_iter().partition(|(_, kind)| kind.is_dir());
            let deeper = directories.iter().filter(|(name, _)| !is_content(name));
            let deeper = deeper.filter(|_| may_go_deeper);
            waiting.extend(deeper.map(|(name, _)| (relative.join(name), level + 1)));
            found.extend(files.into_iter().filter_map(|(name, kind)| {
                let path = relative.join(name);
                let is_one = self.is_one(&format!("{shown}/{}", path.display()));
                is_one
                    .then(|| real_location(tree, path, kind.is_symlink()))
                    .flatten()
            }));
        }
        Ok(found)
    }
}

/// Lists a directory; what cannot be read here cannot be read inside either.
fn listed(at: &Path) -> Result<Vec<(OsString, fs::FileType)>, Failure> {
    let entries = match fs::read_dir(at) {
        Ok(entries) => entries,
        Err(error) if is_closed(&error) => return Ok(Vec::new()),
        Err(error) => return Err(failure::file("list", at, &error)),
    };
    let entries = entries.flatten();
    Ok(entries
        .filter_map(|entry| Some((entry.file_name(), entry.file_type().ok()?)))
        .collect())
}

/// Returns what a file is in the tree; what a link leads to outside of it is not visible inside.
fn real_location(tree: &Path, path: PathBuf, is_link: bool) -> Option<PathBuf> {
    if !is_link {
        return Some(path);
    }
    let real = fs::canonicalize(tree.join(path)).ok()?;
    let top = fs::canonicalize(tree).ok()?;
    real.strip_prefix(top).ok().map(Path::to_path_buf)
}

fn is_closed(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::PermissionDenied | io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

/// Returns what stands in a covered file's place: nothing, in the file's own notation, so that a
/// program that reads it reads no mistake.
pub(super) fn blank(path: &Path) -> &'static [u8] {
    let name = path
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .to_lowercase();
    match name.rsplit('.').next() {
        Some("json") => b"{}\n",
        Some("xml") => b"<settings/>\n",
        _ if name == "nuget.config" => b"<configuration/>\n",
        _ => b"",
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use kapi_sys::disk::Disk as _;
    use kapi_sys::real_disk::RealDisk;

    use super::{CredentialFinder, Depth};
    use crate::perform::ecosystems;

    #[test]
    fn secrets_are_told_by_their_names_and_content_of_packages_is_none() {
        let credentials = CredentialFinder::of(ecosystems::table().unwrap());
        for path in [
            ".npmrc",
            ".nvm/versions/node/v20/etc/npmrc",
            ".cargo/credentials.toml",
            ".m2/settings.xml",
            ".local/share/uv/credentials/a",
            ".netrc",
            ".NuGet/NuGet.Config",
            ".pypirc",
            "keys/id_ed25519",
            ".env.local",
            "config/credentials/production.key",
            ".sbt/my-credentials-2",
        ] {
            assert!(credentials.is_one(path), "{path}");
        }
        for path in [
            "a/npm",
            "lib/settings.py",
            "index.js",
            "x.npmrc.md",
            "Cargo.toml",
        ] {
            assert!(!credentials.is_one(path), "{path}");
        }
        let top = tempfile::tempdir().unwrap();
        for (path, is_covered) in [
            (".npmrc", true),
            ("v20/etc/npmrc", true),
            ("v20/lib/node_modules/npm/npmrc", false),
            ("v20/include/x.pem", false),
        ] {
            let file = top.path().join(path);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            RealDisk.write(&file, b"x").unwrap();
            let found = credentials
                .within(top.path(), ".nvm", Depth::ToolChains)
                .unwrap();
            assert_eq!(
                found.iter().any(|it| it.ends_with(path)),
                is_covered,
                "{path}"
            );
        }
    }
}
