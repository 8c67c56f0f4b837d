//! Commits that travel to another machine: one file of git's own kind, a bundle, with exactly the
//! objects that the other side lacks.
//!
//! What arrives was made elsewhere and is checked object by object before a ref names it. Knows
//! nothing of how it travels.

use std::collections::BTreeSet;

use crate::command::{GitCall, GitError};
use crate::id::{CommitId, RefPart};
use crate::ref_name::branch_ref;
use crate::reference::plain::RefChange;
use crate::repository::{ObjectFormat, Repository};

/// Below which commits from other machines are kept.
const FLEET_REFS: &str = "refs/kapi/fleet";
/// The longest first part of a bundle: its signature and the ids it names.
const HEAD_BYTES_MAX: usize = 64 * 1024;

/// The most commits that a bundle builds on: each is asked for on its own.
const BASIS_MAX: usize = 16;
/// The most commits of which the nearest are looked for.
const CANDIDATES_MAX: usize = 256;

/// A bundle that is not what it should be.
#[derive(Debug, thiserror::Error)]
pub enum BundleError {
    /// Git failed, or refused what is in it.
    #[error(transparent)]
    Git(#[from] GitError),
    /// It is no bundle of this repository's kind.
    #[error("read the bundle of {tip}: {what}")]
    Malformed {
        /// The commit it was to bring.
        tip: CommitId,
        /// What is wrong.
        what: &'static str,
    },
    /// It builds on commits that are not here.
    #[error("use the bundle of {tip}: {missing} is missing here")]
    Lacks {
        /// The commit it was to bring.
        tip: CommitId,
        /// The first that is missing.
        missing: CommitId,
    },
}

impl Repository {
    /// Returns a bundle of a commit with everything below it but what is below the basis.
    ///
    /// # Errors
    /// When git fails, or the bundle is larger than
    /// [`OUTPUT_BYTES_MAX`](crate::command::OUTPUT_BYTES_MAX).
    pub fn bundle(&self, tip: &CommitId, parents: &[CommitId]) -> Result<Vec<u8>, GitError> {
        let mut bytes = match self.object_format() {
            ObjectFormat::Sha1 => "# v2 git bundle\n".to_owned(),
            ObjectFormat::Sha256 => "# v3 git bundle\n@object-format=sha256\n".to_owned(),
        };
        for commit in parents {
            bytes.extend(["-", commit.as_str(), "\n"]);
        }
        bytes.extend([tip.as_str(), " ", FLEET_REFS, "/tip\n\n"]);
        let parents: Vec<&CommitId> = parents.iter().collect();
        let pack = thin_pack(self.call("pack-objects"), tip, &parents)?;
        let mut bytes = bytes.into_bytes();
        bytes.extend(pack);
        Ok(bytes)
    }

    /// Takes in a bundle that must bring `tip`, and keeps it under a ref, whose full name is
    /// returned. May be repeated.
    ///
    /// # Errors
    /// When it brings something else, builds on what is not here, or an object in it is not sound;
    /// no ref names anything of it then.
    pub fn unbundle(
        &self,
        tip: &CommitId,
        bytes: &[u8],
        task: &RefPart,
    ) -> Result<String, BundleError> {
        let pack = self.check_head(tip, bytes)?;
        self.unpack_checked(pack.to_vec(), tip)?;
        Ok(self.keep(tip, task)?)
    }

    /// Keeps a commit that is here already under the ref of a task from another machine.
    ///
    /// # Errors
    /// When git fails.
    pub fn keep(&self, tip: &CommitId, task: &RefPart) -> Result<String, GitError> {
        let name = format!("{FLEET_REFS}/{task}");
        let before = self.ref_value(&name)?;
        if before.as_ref() != Some(tip) {
            self.set_refs(&[RefChange {
                name: &name,
                from: before.as_ref(),
                to: tip,
            }])?;
        }
        Ok(name)
    }

    /// Returns those of the candidates that a commit builds on, without those that another of them
    /// builds on; some of them where there are many.
    ///
    /// # Errors
    /// When git fails.
    pub fn nearest(
        &self,
        tip: &CommitId,
        candidates: &[CommitId],
    ) -> Result<Vec<CommitId>, GitError> {
        let candidates = candidates.get(..candidates.len().min(CANDIDATES_MAX));
        let here = self.present(candidates.unwrap_or_default())?;
        let mut below = Vec::new();
        for commit in here.iter().filter(|commit| *commit != tip) {
            if self.is_ancestor(commit, tip)? {
                below.push(commit.clone());
            }
        }
        if below.len() > 1 {
            let names = below.iter().map(CommitId::as_str);
            let call = self.call("merge-base").arg("--independent");
            let text = call.args(names).text()?;
            below.retain(|commit| text.lines().any(|line| line == commit.as_str()));
        }
        below.truncate(BASIS_MAX);
        Ok(below)
    }

    /// Returns the commit that the history of HEAD began with, which is the same in every clone; of
    /// several the one that sorts first. `None` where the history is cut short.
    ///
    /// # Errors
    /// When git fails.
    pub fn first_commit(&self) -> Result<Option<CommitId>, GitError> {
        if self.is_shallow() {
            return Ok(None);
        }
        let roots = self.call("rev-list").args(["--max-parents=0", "HEAD"]);
        let text = roots.text()?;
        Ok(text.lines().min().and_then(|id| CommitId::parse(id).ok()))
    }

    /// Makes a branch, or moves it forward from exactly where it was found.
    ///
    /// # Errors
    /// When it is somewhere else by now, or git fails.
    pub fn forward_branch(
        &self,
        branch: &str,
        from: Option<&CommitId>,
        to: &CommitId,
    ) -> Result<(), GitError> {
        let name = branch_ref(branch);
        self.set_refs(&[RefChange {
            name: &name,
            from,
            to,
        }])
    }

    /// Returns those of the commits that are here.
    ///
    /// # Errors
    /// When git fails.
    pub fn present(&self, commits: &[CommitId]) -> Result<BTreeSet<CommitId>, GitError> {
        if commits.is_empty() {
            return Ok(BTreeSet::new());
        }
        let lines = commits
            .iter()
            .map(|commit| format!("{commit}^{{commit}}\n"));
        let text = self
            .call("cat-file")
            .arg("--batch-check=%(objecttype)")
            .stdin(lines.collect::<String>().into_bytes())
            .text()?;
        let found = commits.iter().zip(text.lines());
        let found = found.filter(|(_, line)| *line == "commit");
        Ok(found.map(|(commit, _)| commit.clone()).collect())
    }

    /// Returns the objects' part of a bundle whose first part is as it should be.
    fn check_head<'b>(&self, tip: &CommitId, bytes: &'b [u8]) -> Result<&'b [u8], BundleError> {
        let malformed = |what| BundleError::Malformed {
            tip: tip.clone(),
            what,
        };
        let front = bytes.get(..bytes.len().min(HEAD_BYTES_MAX));
        let front = front.unwrap_or_default();
        let end = front.windows(2).position(|pair| pair == b"\n\n");
        let end = end.ok_or_else(|| malformed("it has no head"))?;
        let (head, pack) = bytes.split_at(end + 1);
        let head = str::from_utf8(head).map_err(|_| malformed("its head is not text"))?;
        let rest = match self.object_format() {
            ObjectFormat::Sha1 => head.strip_prefix("# v2 git bundle\n"),
            ObjectFormat::Sha256 => head.strip_prefix("# v3 git bundle\n@object-format=sha256\n"),
        };
        let rest = rest.ok_or_else(|| malformed("it has a different object format"))?;
        let (mut parents, mut tips) = (Vec::new(), Vec::new());
        for line in rest.lines() {
            let (list, id) = match line.strip_prefix('-') {
                Some(id) => (&mut parents, id),
                None => (&mut tips, line),
            };
            let id = id.split(' ').next().unwrap_or_default();
            list.push(
                CommitId::parse(id).map_err(|_| malformed("its head does not name a commit"))?,
            );
        }
        if tips != [tip.clone()] {
            return Err(malformed("it contains another commit"));
        }
        let here = self.present(&parents)?;
        if let Some(missing) = parents.iter().find(|commit| !here.contains(commit)) {
            return Err(BundleError::Lacks {
                tip: tip.clone(),
                missing: missing.clone(),
            });
        }
        Ok(pack.get(1..).unwrap_or_default())
    }

    /// Takes the objects of a commit from a pack that a stranger made: each is checked, and all are
    /// there.
    pub(crate) fn unpack_checked(&self, pack: Vec<u8>, tip: &CommitId) -> Result<(), GitError> {
        self.call("index-pack")
            .args(["--stdin", "--fix-thin", "--strict"])
            .stdin(pack)
            .done()?;
        self.check_connected(tip)
    }

    /// Every object below the commit is here, or git says which is not.
    fn check_connected(&self, tip: &CommitId) -> Result<(), GitError> {
        let revs = format!("{tip}\n--not\n--all\n");
        self.call("rev-list")
            .args(["--objects", "--quiet", "--stdin"])
            .stdin(revs.into_bytes())
            .done()
    }
}

/// Returns a pack of a commit with everything below it but what is below the others.
pub(crate) fn thin_pack(
    pack_objects: GitCall<'_>,
    tip: &CommitId,
    without: &[&CommitId],
) -> Result<Vec<u8>, GitError> {
    let mut revs = format!("{tip}\n");
    for commit in without {
        revs.extend(["^", commit.as_str(), "\n"]);
    }
    pack_objects
        .args(["--revs", "--thin", "--stdout", "--delta-base-offset", "-q"])
        .stdin(revs.into_bytes())
        .bytes()
}
