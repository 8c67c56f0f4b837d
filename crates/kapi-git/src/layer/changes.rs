//! What a layer changes, to be shown without making a commit; the project may have no git at all.
//!
//! Both sides are copied, within limits, to where git compares them as plain files. Git sees no
//! repository, no driver and nothing of the layer itself.

use std::path::{Path, PathBuf};

use super::lower::LowerStack;
use super::staging::Staging;
use super::survey::{LayerPathKind, LayerSurvey, LowerPath};
use super::walk::{self, LayerChangeKind, LayerWalk};
use super::{Layer, LayerError};
use crate::command::{Git, GitError};
use crate::diff::DiffPatch;
use crate::owned_dir::{self, DirError};

/// The most bytes of one file that are compared; of a larger one only the name is shown.
pub const FILE_BYTES_MAX: u64 = 4 << 20;

/// The most bytes of all files that are compared.
pub const BYTES_MAX: u64 = 64 << 20;

/// The most files that are compared.
pub const FILES_MAX: usize = 20_000;

/// What a layer changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayerChanges {
    /// The paths.
    pub walk: LayerWalk,
    /// The patch, perhaps only its beginning; foreign text in any encoding.
    pub patch: DiffPatch,
    /// Changed files whose content the patch leaves out because of their size or number.
    pub omitted: Vec<PathBuf>,
}

/// Changes that could not be found.
#[derive(Debug, thiserror::Error)]
pub enum ChangesError {
    /// The layer cannot be read.
    #[error(transparent)]
    Layer(#[from] LayerError),
    /// A file or directory could not be read or written.
    #[error(transparent)]
    Dir(#[from] DirError),
    /// Git failed.
    #[error(transparent)]
    Git(#[from] GitError),
}

/// Returns what a layer changes in `lower`, with at most `bytes_max` of the patch.
pub fn changes(
    git: &Git,
    layer: &Layer,
    lower: &LowerStack,
    bytes_max: usize,
) -> Result<LayerChanges, ChangesError> {
    let survey = LayerSurvey::of(layer, lower)?;
    let walk = walk::of(&survey);
    let dir = layer.part("diff");
    owned_dir::wipe(&dir)?;
    let mut copies = Copies {
        survey: &survey,
        old: Staging::new(&dir.join("a"))?,
        new: Staging::new(&dir.join("b"))?,
        bytes_left: BYTES_MAX,
        files_left: FILES_MAX,
        omitted: Vec::new(),
    };
    for change in &walk.changes {
        let shows_old = change.kind != LayerChangeKind::Added;
        copies.copy(&change.path, shows_old)?;
    }
    let omitted = copies.omitted;
    let patch = compare(git, &dir, bytes_max)?;
    owned_dir::wipe(&dir)?;
    Ok(LayerChanges {
        walk,
        patch,
        omitted,
    })
}

fn compare(git: &Git, dir: &Path, bytes_max: usize) -> Result<DiffPatch, GitError> {
    let call = git
        .call(dir, "diff")
        // Nothing above is taken for a repository, whatever it is.
        .env("GIT_DIR", "/nonexistent")
        .env("GIT_CEILING_DIRECTORIES", dir)
        .args([
            "--no-index",
            "--no-ext-diff",
            "--no-textconv",
            "--no-renames",
            "--binary",
        ])
        .args(["--no-prefix", "--no-color", "--", "a", "b"]);
    // Code 1 says that there are differences.
    let exit = call.exit_up_to(1)?;
    let mut bytes = exit.stdout;
    let is_cut = bytes.len() > bytes_max;
    if is_cut {
        bytes.truncate(bytes_max);
        let last = bytes.iter().rposition(|&b| b == b'\n');
        bytes.truncate(last.map_or(0, |at| at + 1));
    }
    Ok(DiffPatch {
        bytes: name_both_sides(&bytes),
        is_cut,
    })
}

/// Names what was added or deleted on both sides, as in the patches of a repository: git names the
/// side that is there twice.
fn name_both_sides(patch: &[u8]) -> Vec<u8> {
    const HEADER: &[u8] = b"diff --git ";
    let mut named = Vec::with_capacity(patch.len());
    for line in patch.split_inclusive(|&byte| byte == b'\n') {
        let Some(sides) = line.strip_prefix(HEADER) else {
            named.extend_from_slice(line);
            continue;
        };
        let sides = sides.strip_suffix(b"\n").unwrap_or(sides);
        let (old, new) = sides.split_at(sides.len() / 2);
        let new = new.strip_prefix(b" ").unwrap_or(new);
        if old != new {
            named.extend_from_slice(line);
            continue;
        }
        named.extend_from_slice(HEADER);
        named.extend(on_side(old, b'a'));
        named.push(b' ');
        named.extend(on_side(new, b'b'));
        named.push(b'\n');
    }
    named
}

/// Returns a name in a header with the letter of another side; it may be quoted.
fn on_side(name: &[u8], side: u8) -> Vec<u8> {
    let mut name = name.to_vec();
    let at = usize::from(name.first() == Some(&b'"'));
    if let Some(letter) = name.get_mut(at) {
        *letter = side;
    }
    name
}

struct Copies<'a> {
    survey: &'a LayerSurvey,
    old: Staging,
    new: Staging,
    bytes_left: u64,
    files_left: usize,
    omitted: Vec<PathBuf>,
}

impl Copies<'_> {
    fn copy(&mut self, path: &Path, shows_old: bool) -> Result<(), DirError> {
        let Some(entry) = self.survey.entry(path) else {
            return Ok(());
        };
        let new_bytes = match &entry.what {
            LayerPathKind::File { bytes, .. } => *bytes,
            _ => 0,
        };
        let old_bytes = match entry.below {
            LowerPath::File { bytes, .. } if shows_old => bytes,
            _ => 0,
        };
        let is_small = new_bytes <= FILE_BYTES_MAX && old_bytes <= FILE_BYTES_MAX;
        let is_copied = is_small
            && self.takes(new_bytes.saturating_add(old_bytes))
            && self.copy_new(path, &entry.what)?
            && self.copy_old(path, entry.below)?;
        if !is_copied {
            self.omitted.push(path.to_path_buf());
        }
        if shows_old && entry.below == LowerPath::Directory {
            self.copy_below(path)?;
        }
        Ok(())
    }

    /// Tells whether another file of this size is compared, and counts it.
    fn takes(&mut self, bytes: u64) -> bool {
        let left = self.bytes_left.checked_sub(bytes);
        let files_left = self.files_left.checked_sub(1);
        let (Some(left), Some(files_left)) = (left, files_left) else {
            return false;
        };
        (self.bytes_left, self.files_left) = (left, files_left);
        true
    }

    /// Copies what was in a directory that is gone; what the layer has in it is listed by itself.
    fn copy_below(&mut self, dir: &Path) -> Result<(), DirError> {
        let mut dirs = vec![dir.to_path_buf()];
        while let Some(dir) = dirs.pop() {
            for name in self.survey.lower.names(&dir)? {
                dirs.extend(self.copy_gone(dir.join(name))?);
            }
        }
        Ok(())
    }

    /// Copies one thing that was in a directory that is gone; returns it where it is a directory.
    fn copy_gone(&mut self, path: PathBuf) -> Result<Option<PathBuf>, DirError> {
        let found = self.survey.lower.stat(&path);
        let found = found.map_err(owned_dir::failed("inspect", &path))?;
        let Some(found) = found.filter(|_| self.survey.what(&path).is_none()) else {
            return Ok(None);
        };
        let below = LowerPath::of(&found);
        let bytes = match below {
            LowerPath::Directory => return Ok(Some(path)),
            LowerPath::File { bytes, .. } => bytes,
            LowerPath::Nothing | LowerPath::Link | LowerPath::Other => 0,
        };
        let is_small = bytes <= FILE_BYTES_MAX;
        if !(is_small && self.takes(bytes) && self.copy_old(&path, below)?) {
            self.omitted.push(path);
        }
        Ok(None)
    }

    fn copy_new(&mut self, path: &Path, what: &LayerPathKind) -> Result<bool, DirError> {
        use std::os::unix::ffi::OsStrExt as _;
        match what {
            LayerPathKind::File { mode, .. } => {
                let Ok(file) = self.survey.upper.file(path) else {
                    return Ok(false);
                };
                self.new.put_file(path, file, *mode, FILE_BYTES_MAX)?;
            }
            LayerPathKind::Link { target } => self.new.put_link(path, target.as_bytes())?,
            _ => {}
        }
        Ok(true)
    }

    fn copy_old(&mut self, path: &Path, below: LowerPath) -> Result<bool, DirError> {
        match below {
            LowerPath::File { mode, .. } => {
                let Ok(file) = self.survey.lower.file(path) else {
                    return Ok(false);
                };
                self.old.put_file(path, file, mode, FILE_BYTES_MAX)?;
            }
            LowerPath::Link => {
                let Ok(target) = self.survey.lower.link(path) else {
                    return Ok(false);
                };
                self.old.put_link(path, &target)?;
            }
            _ => {}
        }
        Ok(true)
    }
}
