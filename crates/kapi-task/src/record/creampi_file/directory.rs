//! A directory that a project's own file names: it must stay inside the project.
//!
//! Looks at the machine's disk for links only; creates nothing.

use std::io;
use std::path::{Component, Path, PathBuf};

/// Returns the directory that is meant, or why it may not be that one.
pub(super) fn inside(root: &Path, written: &str) -> Result<PathBuf, &'static str> {
    let relative = match Path::new(written).strip_prefix(root) {
        Ok(relative) => relative,
        Err(_) => Path::new(written),
    };
    let mut parts: Vec<&std::ffi::OsStr> = Vec::new();
    for part in relative.components() {
        match part {
            Component::CurDir => {}
            Component::Normal(name) => parts.push(name),
            Component::ParentDir => {
                parts.pop().ok_or("points outside the project")?;
            }
            Component::RootDir | Component::Prefix(_) => return Err("points outside the project"),
        }
    }
    if parts.is_empty() {
        return Err("is the project itself");
    }
    if parts.iter().any(|part| part.eq_ignore_ascii_case(".git")) {
        return Err("is git's own");
    }
    let directory = parts
        .iter()
        .fold(root.to_path_buf(), |path, part| path.join(part));
    follows_no_link_out(root, &directory)?;
    Ok(directory)
}

/// A link on the way may lead anywhere: what is there already must be inside, links followed.
fn follows_no_link_out(root: &Path, directory: &Path) -> Result<(), &'static str> {
    let root = match root.canonicalize() {
        Ok(root) => root,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(_) => return Err("cannot be read"),
    };
    for path in directory.ancestors() {
        match path.canonicalize() {
            Ok(path) if path.starts_with(&root) => return Ok(()),
            Ok(_) => return Err("is a symbolic link that points outside the project"),
            Err(error) if error.kind() == io::ErrorKind::NotFound && !path.is_symlink() => {}
            Err(_) => return Err("cannot be read"),
        }
    }
    Ok(())
}
