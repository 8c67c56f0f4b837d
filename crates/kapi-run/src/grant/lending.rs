//! Copying what a person lends of their home into a private one.
//!
//! Copied once, as a whole or not at all: what a run makes of its copy stays until the home is made
//! anew. The private home is not trusted, the person's own is; sockets, pipes and devices are never
//! copied.

use std::path::{Component, Path, PathBuf};
use std::{fs, io};

use kapi_core::failure::Failure;
use kapi_git::owned_dir;

use crate::failure;

/// The most files and directories of one copy.
const ENTRIES_MAX: usize = 20_000;
/// The most bytes of one copy.
const BYTES_MAX: u64 = 512 << 20;
/// The most levels of directories of one copy.
const DEPTH_MAX: usize = 24;
/// Where a copy is made before it takes its place, in the private home.
const UNDER_WAY: &str = ".kapi-lending";

/// Copies each path, which is relative to both homes, unless something is at its place already.
///
/// # Errors
/// When a copy is too large, cannot be made, or would lead out of the private home.
pub fn lend(copies: &[PathBuf], from: &Path, to: &Path) -> Result<(), Failure> {
    for relative in copies {
        let source = from.join(relative);
        // What was taken away since it was resolved is simply not there any more.
        if fs::metadata(&source).is_err() {
            continue;
        }
        let location = location(to, relative)?;
        if location.symlink_metadata().is_ok() {
            continue;
        }
        let under_way = to.join(UNDER_WAY);
        owned_dir::wipe(&under_way).map_err(|error| failure::plain(&error))?;
        let mut copy = Copy {
            entries_left: ENTRIES_MAX,
            bytes_left: BYTES_MAX,
            whole: relative,
        };
        copy.take(&source, &under_way, DEPTH_MAX)?;
        fs::rename(&under_way, &location)
            .map_err(|error| failure::file("write", &location, &error))?;
    }
    Ok(())
}

/// Returns where a path is in the private home, with its parents made; a parent that a run turned
/// into a link is refused.
fn location(home: &Path, relative: &Path) -> Result<PathBuf, Failure> {
    let mut location = home.to_path_buf();
    let mut parts = relative.components().peekable();
    while let Some(part) = parts.next() {
        let Component::Normal(name) = part else {
            return Err(leads_out(relative, home));
        };
        location.push(name);
        if parts.peek().is_none() {
            return Ok(location);
        }
        match location.symlink_metadata() {
            Ok(found) if found.is_dir() => {}
            Ok(_) => return Err(leads_out(relative, home)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                fs::create_dir(&location)
                    .map_err(|error| failure::file("create", &location, &error))?;
            }
            Err(error) => return Err(failure::file("inspect", &location, &error)),
        }
    }
    Err(leads_out(relative, home))
}

fn leads_out(relative: &Path, home: &Path) -> Failure {
    Failure {
        message: format!(
            "share {} in the private home: its path points outside it",
            relative.display()
        ),
        hint: Some(format!("remove {} and start again.", home.display())),
    }
}

struct Copy<'a> {
    entries_left: usize,
    bytes_left: u64,
    whole: &'a Path,
}

impl Copy<'_> {
    fn take(&mut self, from: &Path, to: &Path, depth: usize) -> Result<(), Failure> {
        // The person's own links lead where the person wants them to.
        let found = match fs::metadata(from) {
            Ok(found) => found,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(failure::file("inspect", from, &error)),
        };
        self.entries_left = self
            .entries_left
            .checked_sub(1)
            .ok_or_else(|| self.too_large())?;
        if found.is_dir() {
            let depth = depth.checked_sub(1).ok_or_else(|| self.too_large())?;
            return self.directory(from, to, depth);
        }
        if !found.is_file() {
            return Ok(());
        }
        let left = self.bytes_left.checked_sub(found.len());
        self.bytes_left = left.ok_or_else(|| self.too_large())?;
        let copied = fs::copy(from, to).map_err(|error| failure::file("copy", from, &error))?;
        // It may have grown meanwhile.
        let grown = copied.saturating_sub(found.len());
        self.bytes_left = self
            .bytes_left
            .checked_sub(grown)
            .ok_or_else(|| self.too_large())?;
        Ok(())
    }

    fn directory(&mut self, from: &Path, to: &Path, depth: usize) -> Result<(), Failure> {
        fs::create_dir(to).map_err(|error| failure::file("create", to, &error))?;
        let failed = |error: io::Error| failure::file("list", from, &error);
        for entry in fs::read_dir(from).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            self.take(&entry.path(), &to.join(entry.file_name()), depth)?;
        }
        Ok(())
    }

    fn too_large(&self) -> Failure {
        Failure {
            message: format!(
                "share ~/{}: it has more than {ENTRIES_MAX} entries, 512 MiB or {DEPTH_MAX} levels",
                self.whole.display()
            ),
            hint: Some("list the parts you need in `filesystem.include`.".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;
    use std::path::{Path, PathBuf};

    use super::lend;

    #[expect(clippy::disallowed_methods, reason = "a fixture needs no durability")]
    fn write(path: PathBuf, content: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    fn homes() -> (tempfile::TempDir, PathBuf, PathBuf) {
        let root = tempfile::tempdir().unwrap();
        let (from, to) = (root.path().join("from"), root.path().join("to"));
        write(from.join(".claude/settings.json"), "{}");
        write(from.join(".claude/skills/a/SKILL.md"), "a");
        write(from.join("dotfiles/b.md"), "b");
        symlink(from.join("dotfiles/b.md"), from.join(".claude/b.md")).unwrap();
        symlink("/nowhere", from.join(".claude/broken")).unwrap();
        drop(UnixListener::bind(from.join(".claude/socket")).unwrap());
        fs::create_dir(&to).unwrap();
        (root, from, to)
    }

    #[test]
    fn a_directory_is_copied_once_without_what_is_no_file() {
        let (_root, from, to) = homes();
        let copies = [PathBuf::from(".claude"), PathBuf::from(".gone")];
        lend(&copies, &from, &to).unwrap();
        let names = |dir: &Path| {
            let entries = fs::read_dir(dir).unwrap();
            let mut names: Vec<String> = entries
                .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                .collect();
            names.sort();
            names
        };
        assert_eq!(names(&to), [".claude"]);
        assert_eq!(
            names(&to.join(".claude")),
            ["b.md", "settings.json", "skills"]
        );
        assert!(!to.join(".claude/b.md").is_symlink());
        write(to.join(".claude/settings.json"), "changed inside");
        lend(&copies, &from, &to).unwrap();
        let kept = fs::read_to_string(to.join(".claude/settings.json")).unwrap();
        assert_eq!(kept, "changed inside");
        assert_eq!(
            fs::read_to_string(from.join(".claude/settings.json")).unwrap(),
            "{}"
        );
    }

    #[test]
    fn a_part_is_copied_to_its_own_place() {
        let (_root, from, to) = homes();
        lend(&[PathBuf::from(".claude/skills/a")], &from, &to).unwrap();
        assert_eq!(
            fs::read_to_string(to.join(".claude/skills/a/SKILL.md")).unwrap(),
            "a"
        );
        assert!(!to.join(".claude/settings.json").exists());
    }

    #[test]
    fn a_home_that_leads_elsewhere_gets_nothing() {
        let (root, from, to) = homes();
        let outside = root.path().join("outside");
        fs::create_dir(&outside).unwrap();
        symlink(&outside, to.join(".claude")).unwrap();
        let refused = lend(&[PathBuf::from(".claude/skills")], &from, &to).unwrap_err();
        assert!(
            refused.message.contains("points outside"),
            "{}",
            refused.message
        );
        let refused = lend(&[PathBuf::from("../from/.claude")], &from, &to).unwrap_err();
        assert!(
            refused.message.contains("points outside"),
            "{}",
            refused.message
        );
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
    }

    #[test]
    fn a_directory_that_never_ends_is_refused() {
        let (_root, from, to) = homes();
        symlink(from.join(".claude"), from.join(".claude/again")).unwrap();
        let refused = lend(&[PathBuf::from(".claude")], &from, &to).unwrap_err();
        assert!(refused.message.contains("more than"), "{}", refused.message);
        assert!(!to.join(".claude").exists());
    }
}
