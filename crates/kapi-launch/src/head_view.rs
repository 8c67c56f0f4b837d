//! A git directory that shows the checked-out commit of a project to an overlay without a branch.
//!
//! Made by hand because nothing in the repository is claimed for it: no branch, no ref, no
//! worktree. It carries none of the person's configuration, remotes, hooks or other branches.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};
use std::{fs, io};

use kapi_core::failure::Failure;
use kapi_git::id::CommitId;
use kapi_git::owned_dir;
use kapi_git::private_view::VIEW_CONFIG;
use kapi_git::repository::{ObjectFormat, Repository};
use kapi_run::failure;
use kapi_sys::disk::Disk as _;
use kapi_sys::real_disk::RealDisk;

/// The branch that a detached HEAD seems to be on.
const NO_BRANCH: &str = "detached";

/// Fills `to` with a view of the checked-out commit; its objects will be at `objects_inside`.
pub(crate) fn make(
    repository: &Repository,
    commit: &CommitId,
    to: &Path,
    objects_inside: &[PathBuf],
) -> Result<(), Failure> {
    let plain = |error: &dyn std::error::Error| failure::plain(error);
    owned_dir::wipe(to).map_err(|error| plain(&error))?;
    for part in [
        "hooks",
        "info",
        "objects/info",
        "objects/pack",
        "refs/heads",
        "refs/tags",
    ] {
        let dir = to.join(part);
        fs::create_dir_all(&dir).map_err(|error| failure::file("create", &dir, &error))?;
    }
    let branch = repository.head_branch().map_err(|error| plain(&error))?;
    let branch = branch.as_deref().unwrap_or(NO_BRANCH);
    let format = match repository.object_format() {
        ObjectFormat::Sha1 => "\trepositoryFormatVersion = 0\n",
        ObjectFormat::Sha256 => {
            "\trepositoryFormatVersion = 1\n[extensions]\n\tobjectFormat = sha256\n"
        }
    };
    let config = format!(
        "[user]\n\tname = Kapi\n\temail = kapi@localhost\n[gc]\n\tauto = 0\n[maintenance]\n\tauto = \
         false\n{VIEW_CONFIG}[core]\n\tbare = false\n\tfileMode = true\n{format}"
    );
    let mut alternates = Vec::new();
    for objects in objects_inside {
        alternates.extend_from_slice(objects.as_os_str().as_bytes());
        alternates.push(b'\n');
    }
    let refs = format!("# pack-refs with: sorted \n{commit} refs/heads/{branch}\n");
    let files: [(&str, Vec<u8>); 4] = [
        ("HEAD", format!("ref: refs/heads/{branch}\n").into_bytes()),
        ("config", config.into_bytes()),
        ("packed-refs", refs.into_bytes()),
        ("objects/info/alternates", alternates),
    ];
    for (name, content) in files {
        let written = RealDisk.write(&to.join(name), &content);
        written.map_err(|error| plain(&error))?;
    }
    copy_index(repository, to)
}

/// Copies the person's index, so that what is changed inside can be told from what was.
fn copy_index(repository: &Repository, to: &Path) -> Result<(), Failure> {
    let Some(git_dir) = git_dir_of(repository.top_level()) else {
        return Ok(());
    };
    let index = git_dir.join("index");
    if !index.is_file() {
        return Ok(());
    }
    let copied = copy_with_time(&index, &to.join("index"));
    copied.map_err(|error| failure::file("copy", &index, &error))?;
    let shared = fs::read_dir(&git_dir).map_err(|error| failure::file("list", &git_dir, &error))?;
    for entry in shared.flatten() {
        if entry.file_name().as_bytes().starts_with(b"sharedindex.") {
            let copied = fs::copy(entry.path(), to.join(entry.file_name()));
            copied.map_err(|error| failure::file("copy", &entry.path(), &error))?;
        }
    }
    Ok(())
}

/// Copies an index. Git takes the file's time as "checked at"; a later one would hide later changes.
fn copy_with_time(from: &Path, to: &Path) -> io::Result<()> {
    let modified = fs::metadata(from)?.modified()?;
    let _n_bytes = fs::copy(from, to)?;
    fs::File::options()
        .write(true)
        .open(to)?
        .set_modified(modified)
}

/// Returns the git directory of a person's own worktree.
fn git_dir_of(top: &Path) -> Option<PathBuf> {
    let link = top.join(".git");
    if link.is_dir() {
        return Some(link);
    }
    let mut text = fs::read(&link).ok()?;
    text.truncate(text.trim_ascii_end().len());
    let target = text.strip_prefix(b"gitdir: ")?.to_vec();
    Some(top.join(PathBuf::from(OsString::from_vec(target))))
}
