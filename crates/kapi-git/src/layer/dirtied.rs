//! Files that the agent changed or deleted while they held changes of the person's.
//!
//! What lies below is compared with the base. Most of it needs no process: the same bytes are the
//! same file. Git is asked where the rules of the checkout may make other bytes the same.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use rustix::fs::FileType;

use super::direct::Conversion;
use super::error::LayerCommitError;
use super::plan::{Masks, Taken};
use super::store::{self, ObjectKind};
use super::survey::LayerSurvey;
use super::trees::{self, TreeEntry, Trees};
use super::{Layer, beneath, index};
use crate::candidate::lfs;
use crate::command::GitError;
use crate::owned_dir;
use crate::repository::{Repository, path_of};
use crate::scratch::{Objects, Scratch};

/// The largest file that is compared without git.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// What is needed to tell what of the person's the agent changed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ChangeQuestion<'a> {
    pub(crate) layer: &'a Layer,
    pub(crate) survey: &'a LayerSurvey,
    pub(crate) masks: &'a Masks,
    pub(crate) conversion: Conversion,
    pub(crate) repository: &'a Repository,
}

/// Adds what cannot be taken when these stay as they are in the base.
///
/// A file needs the directory it is in, and cannot be beside one of its own name.
pub(crate) fn add_dependents(dirtied: &mut BTreeSet<PathBuf>, taken: &Taken) {
    let found = dirtied.clone();
    let depends = |path: &&PathBuf| {
        let is_below = path.ancestors().any(|at| found.contains(at));
        let next = found.range((*path).clone()..).next();
        is_below || next.is_some_and(|next| next.starts_with(path))
    };
    dirtied.extend(taken.keys().filter(depends).cloned());
}

/// How what lies below relates to what the base has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BaseRelation {
    Same,
    Differs,
    /// Git has to be asked.
    Open,
}

impl ChangeQuestion<'_> {
    /// Returns what held changes of the person's and is taken or gone.
    pub(crate) fn answer(
        &self,
        taken: &Taken,
        gone: &BTreeSet<PathBuf>,
        trees: &Trees<'_>,
    ) -> Result<BTreeSet<PathBuf>, LayerCommitError> {
        let mut dirtied = BTreeSet::new();
        let mut open: BTreeMap<PathBuf, Option<TreeEntry>> = BTreeMap::new();
        let touched = taken.iter().map(|(path, base)| (path, base.as_ref()));
        let lost = gone.iter().map(|path| (path, trees.entry(path)));
        for (path, base) in touched.chain(lost) {
            if self.masks.cover(path) {
                continue;
            }
            match self.relation(path, base) {
                BaseRelation::Same => {}
                BaseRelation::Differs => drop(dirtied.insert(path.clone())),
                BaseRelation::Open => drop(open.insert(path.clone(), base.cloned())),
            }
        }
        if !open.is_empty() {
            dirtied.extend(self.ask(&open)?);
        }
        Ok(dirtied)
    }

    fn relation(&self, path: &Path, base: Option<&TreeEntry>) -> BaseRelation {
        let below = self.survey.lower.stat(path);
        let below = match below {
            // Nothing of the person's can be in what the agent made.
            Ok(None) => return BaseRelation::Same,
            Ok(Some(below)) => below,
            Err(_unreadable) => return BaseRelation::Differs,
        };
        let kind = beneath::kind(&below);
        let Some(base) = base else {
            // Untracked, and the agent wrote to it or in its place.
            let has_content = matches!(kind, FileType::RegularFile | FileType::Symlink);
            return if has_content {
                BaseRelation::Differs
            } else {
                BaseRelation::Same
            };
        };
        let format = self.repository.object_format();
        match kind {
            FileType::Symlink => {
                let value = self.survey.lower.link(path).unwrap_or_default();
                let is_same =
                    base.is_link() && store::id(format, ObjectKind::Blob, &value) == base.object;
                if is_same {
                    BaseRelation::Same
                } else {
                    BaseRelation::Differs
                }
            }
            FileType::RegularFile if !base.is_file() => BaseRelation::Differs,
            FileType::RegularFile => {
                let is_program = below.st_mode & 0o100 != 0;
                if is_program != base.mode.ends_with("755") {
                    return BaseRelation::Differs;
                }
                let mut bytes = Vec::new();
                let file = self.survey.lower.file(path);
                let read =
                    file.and_then(|file| file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes));
                if read.is_err() || bytes.len() as u64 > FILE_BYTES_MAX {
                    return BaseRelation::Open;
                }
                if store::id(format, ObjectKind::Blob, &bytes) == base.object {
                    BaseRelation::Same
                } else if self.conversion.keeps(&bytes) {
                    BaseRelation::Differs
                } else {
                    BaseRelation::Open
                }
            }
            _ => BaseRelation::Differs,
        }
    }

    /// Lets git compare where they are: nobody but the person writes there, and nothing runs.
    fn ask(
        &self,
        open: &BTreeMap<PathBuf, Option<TreeEntry>>,
    ) -> Result<Vec<PathBuf>, LayerCommitError> {
        let (dir, files) = (self.layer.part("git"), self.survey.lower.path());
        let lower = Scratch::prepare(self.repository, &dir, files, Objects::Shared)?;
        owned_dir::wipe(&lower.index())?;
        index::fill(&lower, open.iter())?;
        let call = lower.call("ls-files").args(["-z", "--modified"]);
        let listed = call.bytes()?;
        let names = listed.split(|&b| b == 0).filter(|name| !name.is_empty());
        let modified: Vec<PathBuf> = names.map(path_of).collect();
        let questions = modified.iter().filter_map(|path| open.get(path)?.as_ref());
        let questions: Vec<Vec<u8>> = questions.map(|e| e.object.clone().into_bytes()).collect();
        let blobs = self.small(&questions)?;
        let mut dirtied = Vec::new();
        for path in modified {
            let base = open.get(&path).and_then(Option::as_ref);
            let pointer = base.and_then(|base| blobs.get(base.object.as_bytes()));
            let content = self.survey.lower.file(&path);
            // The filter that is not run here turned the one into the other.
            let is_same = pointer
                .zip(content.ok())
                .is_some_and(|(pointer, content)| lfs::points_to(pointer, content));
            if !is_same {
                dirtied.push(path);
            }
        }
        Ok(dirtied)
    }

    /// Returns those of the objects that are small enough to be pointers.
    fn small(&self, ids: &[Vec<u8>]) -> Result<BTreeMap<Vec<u8>, Vec<u8>>, GitError> {
        if ids.is_empty() || self.conversion != Conversion::Anything {
            return Ok(BTreeMap::new());
        }
        let mut script = ids.join(&b'\n');
        script.push(b'\n');
        let call = self.repository.call("cat-file").arg("--batch-check");
        let sizes = call.stdin(script).bytes()?;
        let is_small = |line: &&[u8]| {
            let bytes = line.rsplit(|&b| b == b' ').next().unwrap_or_default();
            let bytes = std::str::from_utf8(bytes)
                .ok()
                .and_then(|text| text.parse::<u64>().ok());
            bytes.is_some_and(|bytes| bytes <= lfs::POINTER_BYTES_MAX)
        };
        let small = sizes.split(|&b| b == b'\n').filter(is_small);
        let small = small.filter_map(|line| line.split(|&b| b == b' ').next());
        let small: Vec<Vec<u8>> = small.map(<[u8]>::to_vec).collect();
        let contents = trees::objects(self.repository, &small)?;
        let found = small.into_iter().zip(contents);
        Ok(found
            .filter_map(|(id, content)| Some((id, content?)))
            .collect())
    }
}
