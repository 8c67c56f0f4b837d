//! The files of a project that globs cover, each with its size and the time of its last change.
//!
//! Follows no link and leaves out what tools make: hidden directories, `node_modules` and caches
//! that say so, unless a glob names them. Opens nothing; bounded in what it visits.

use std::collections::BTreeSet;
use std::fs::{self, DirEntry, Metadata};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use kapi_core::pattern;

use crate::perform::events::Listing;

/// The most names that are visited.
const NAMES_MAX: usize = 100_000;
/// Where git and Kapi keep their own files.
const NEVER: [&str; 2] = [".git", ".ilchul"];
/// A directory of packages that somebody else wrote.
const PACKAGES: &str = "node_modules";
/// The file by which a directory says that it is a cache.
const CACHE_TAG: &str = "CACHEDIR.TAG";

/// What a walk found.
#[derive(Debug, Default)]
pub(super) struct EventWalk {
    /// The files.
    pub(super) files: Listing,
    /// The directories that were read.
    pub(super) directories: Vec<PathBuf>,
    n_names: usize,
}

impl EventWalk {
    /// Walks through the directories that the globs can mean anything in.
    pub(super) fn of(root: &Path, globs: &[String]) -> Result<Self, String> {
        let mut walk = Self::default();
        let real = fs::canonicalize(root)
            .map_err(|error| format!("look at {}: {error}", root.display()))?;
        for base in bases(globs) {
            let path = real.join(&base);
            let Ok(found) = fs::symlink_metadata(&path) else {
                // It may come: the nearest directory above tells of it.
                let above = path.ancestors().find(|above| above.is_dir());
                walk.directories.extend(above.map(Path::to_path_buf));
                continue;
            };
            if fs::canonicalize(&path).ok().as_ref() != Some(&path) {
                return Err(format!(
                    "read {}: it is behind a symbolic link",
                    base.display()
                ));
            }
            if found.is_dir() {
                walk.directory(&real, &base, globs)?;
            } else {
                walk.directories
                    .extend(path.parent().map(Path::to_path_buf));
                walk.file(&base, &found, globs);
            }
        }
        Ok(walk)
    }

    fn directory(&mut self, root: &Path, dir: &Path, globs: &[String]) -> Result<(), String> {
        let mut left = vec![dir.to_path_buf()];
        while let Some(dir) = left.pop() {
            let path = root.join(&dir);
            // It may have been removed since it was seen.
            let Ok(entries) = fs::read_dir(&path) else {
                continue;
            };
            self.directories.push(path);
            for entry in entries.flatten() {
                left.extend(self.entry(&dir, &entry, globs)?);
            }
        }
        Ok(())
    }

    /// Takes one name of a directory, and returns it if it is one to walk through.
    fn entry(
        &mut self,
        dir: &Path,
        entry: &DirEntry,
        globs: &[String],
    ) -> Result<Option<PathBuf>, String> {
        self.n_names += 1;
        if self.n_names > NAMES_MAX {
            let globs = globs.join(" ");
            return Err(format!(
                "watch {globs}: there are more than {NAMES_MAX} names; use narrower directories"
            ));
        }
        let inner = dir.join(entry.file_name());
        let Ok(found) = entry.metadata() else {
            return Ok(None);
        };
        if !found.is_dir() {
            self.file(&inner, &found, globs);
            return Ok(None);
        }
        Ok((!is_left_out(&entry.path())).then_some(inner))
    }

    fn file(&mut self, path: &Path, found: &Metadata, globs: &[String]) {
        let Some(name) = path.to_str() else {
            return;
        };
        if globs.iter().any(|pattern| pattern::covers(pattern, name)) {
            let what = format!(
                "{} {}.{:09}",
                found.len(),
                found.mtime(),
                found.mtime_nsec()
            );
            self.files.insert(name.to_owned(), what);
        }
    }
}

/// Returns the directories below one, itself first, at most so many.
pub(super) fn directories_below(dir: &Path, count_max: usize) -> Vec<PathBuf> {
    let mut found = vec![dir.to_path_buf()];
    let mut next = 0;
    while let Some(dir) = found.get(next).cloned() {
        next += 1;
        let entries = fs::read_dir(&dir).into_iter().flatten().flatten();
        let dirs = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        let capacity = count_max.saturating_sub(found.len());
        found.extend(dirs.map(|entry| entry.path()).take(capacity));
    }
    found
}

/// Returns what stands before the first wildcard of each glob; none lies in another.
fn bases(globs: &[String]) -> Vec<PathBuf> {
    let all: BTreeSet<PathBuf> = globs
        .iter()
        .map(|pattern| {
            let parts = Path::new(pattern.trim_start_matches("./")).components();
            let is_plain = |part: &std::path::Component<'_>| {
                !part.as_os_str().to_string_lossy().contains(['*', '?'])
            };
            parts.take_while(is_plain).collect()
        })
        .filter(|base: &PathBuf| {
            let mut parts = base.components();
            !parts.any(|part| NEVER.iter().any(|name| part.as_os_str() == *name))
        })
        .collect();
    let is_inside = |base: &PathBuf| {
        let others = all.iter().filter(|other| *other != base);
        // A base below what is left out is walked for itself.
        others
            .into_iter()
            .any(|other| base.starts_with(other) && !passes_left_out(base, other))
    };
    all.iter()
        .filter(|base| !is_inside(base))
        .cloned()
        .collect()
}

fn passes_left_out(base: &Path, above: &Path) -> bool {
    let below = base.strip_prefix(above).unwrap_or(base);
    below.components().any(|part| {
        let name = part.as_os_str().to_string_lossy();
        name.starts_with('.') || name == PACKAGES
    })
}

fn is_left_out(dir: &Path) -> bool {
    let name = dir.file_name().unwrap_or_default().to_string_lossy();
    name.starts_with('.') || name == PACKAGES || dir.join(CACHE_TAG).is_file()
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::os::unix::fs::symlink;
    use std::path::Path;

    use super::{EventWalk, bases};

    fn make(root: &Path, names: &[&str]) {
        for name in names {
            let path = root.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            File::create(path).unwrap();
        }
    }

    fn found(root: &Path, globs: &[&str]) -> Vec<String> {
        let globs: Vec<String> = globs.iter().map(|&text| text.to_owned()).collect();
        EventWalk::of(root, &globs)
            .unwrap()
            .files
            .into_keys()
            .collect()
    }

    #[test]
    fn what_globs_cover_is_found_and_what_tools_make_is_not() {
        let root = tempfile::tempdir().unwrap();
        let names = [
            "a.rs",
            "src/a.rs",
            "src/x/b.rs",
            "src/x/c.txt",
            "docs/d.md",
            ".hidden/e.rs",
            "node_modules/p/f.rs",
            "target/CACHEDIR.TAG",
            "target/g.rs",
            ".git/h.rs",
            ".ilchul/i.rs",
        ];
        make(root.path(), &names);
        let found = |globs: &[&str]| found(root.path(), globs);
        assert_eq!(found(&["**/*.rs"]), ["a.rs", "src/a.rs", "src/x/b.rs"]);
        assert_eq!(found(&["src"]), ["src/a.rs", "src/x/b.rs", "src/x/c.txt"]);
        assert_eq!(found(&["./src/*.rs", "docs/**"]), ["docs/d.md", "src/a.rs"]);
        assert_eq!(found(&["a.rs"]), ["a.rs"]);
        assert_eq!(found(&["**", ".hidden/**"]).len(), 6);
        assert_eq!(found(&["node_modules/p/*"]), ["node_modules/p/f.rs"]);
        assert_eq!(found(&[".git/**", ".ilchul/*"]), [""; 0]);
        assert_eq!(found(&["missing/**"]), [""; 0]);
    }

    #[test]
    fn a_change_of_size_or_time_is_seen_and_a_link_is_not_followed() {
        let root = tempfile::tempdir().unwrap();
        make(root.path(), &["src/a"]);
        let globs = ["src/**".to_owned()];
        let before = EventWalk::of(root.path(), &globs).unwrap().files;
        let file = File::options()
            .write(true)
            .open(root.path().join("src/a"))
            .unwrap();
        file.set_len(1).unwrap();
        let after = EventWalk::of(root.path(), &globs).unwrap().files;
        assert_ne!(before, after);
        let elsewhere = tempfile::tempdir().unwrap();
        make(elsewhere.path(), &["secret"]);
        symlink(elsewhere.path(), root.path().join("src/link")).unwrap();
        assert_eq!(found(root.path(), &["src/**"]), ["src/a", "src/link"]);
        let refused = EventWalk::of(root.path(), &["src/link/*".to_owned()]).unwrap_err();
        assert_eq!(refused, "read src/link: it is behind a symbolic link");
    }

    #[test]
    fn nothing_is_walked_twice() {
        let globs = ["src/**", "src/x/*.rs", "docs/*.md", "**/../x"].map(str::to_owned);
        let paths = |globs: &[String]| -> Vec<String> {
            let found = bases(globs);
            found
                .iter()
                .map(|path| path.display().to_string())
                .collect()
        };
        assert_eq!(paths(globs.get(..3).unwrap()), ["docs", "src"]);
        assert_eq!(paths(&globs), [""]);
    }
}
