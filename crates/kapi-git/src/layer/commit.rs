//! Commits made from a layer, at a cost that depends on what changed only.
//!
//! The commit is the one that a worktree with the same files would give. Git never looks into the
//! layer: it gets copies of what changed, with the rules that apply, and the base's directories
//! that change. Files that the agent did not touch are never taken from below.

use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::direct::{Contents, Conversion, Dirs};
use super::error::{BYTES_MAX, LayerCommitError};
use super::ignored::{self, IgnoreSources, RULE_FILES};
use super::import::{self, Edit};
use super::lower::LowerStack;
use super::plan::{BaseChanges, Taken};
use super::staging::Staging;
use super::store::ObjectWriter;
use super::survey::{LayerPathKind, LayerSurvey};
use super::trees::{TreeEntry, Trees};
use super::walk::{self, WalkNote};
use super::{Layer, index, retouched};
use crate::candidate;
use crate::candidate::own::OwnCommitRules;
use crate::candidate::staging::{SEARCH_CALLS_MAX, StagingSearch};
use crate::candidate::{CHANGES_MAX, Candidate, CandidateError, CandidatePlan, lfs};
use crate::change::PathChange;
use crate::check_ignore::check_ignore;
use crate::id::{CommitId, TreeId};
use crate::own_commits::OwnCommit;
use crate::owned_dir::{self, DirError};
use crate::reference::plain::RefChange;
use crate::refused_path::{FILE_BYTES_MAX, RefusalReason, RefusedPath};
use crate::repository::Repository;
use crate::scratch::{Objects, Scratch};
use crate::workspace::{GitWorkspace, goal_ref};

/// The commit to make from a layer.
#[derive(Debug, Clone, Copy)]
pub struct LayerPlan<'a> {
    /// The layer; not mounted by anybody now.
    pub layer: &'a Layer,
    /// What it lay over: the files of the workspace's base.
    pub lower: &'a LowerStack,
    /// The goal and the base, from [`Repository::claim_layer`].
    pub workspace: &'a GitWorkspace,
    /// Name, message, author and time.
    pub candidate: &'a CandidatePlan,
    /// The commits that the agent made by itself, to be kept before it.
    pub own: &'a [OwnCommit],
}

/// A commit of a layer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayerCandidate {
    /// The commit.
    pub candidate: Candidate,
    /// What is in it and deserves a look.
    pub notes: Vec<WalkNote>,
}

/// A commit of a layer that no ref names yet.
struct LayerSnapshot {
    commit: CommitId,
    tree: TreeId,
    changed: Vec<PathChange>,
    refused: Vec<RefusedPath>,
    notes: Vec<WalkNote>,
    /// Those of the agent's own commits that may be kept.
    own: Vec<OwnCommit>,
}

impl Repository {
    /// Commits what a layer changes in the base and names the commit.
    ///
    /// Deterministic, and the same as [`Repository::commit_candidate_after`] on a worktree with the
    /// same files; repeating it is fine.
    pub fn commit_layer(&self, plan: &LayerPlan<'_>) -> Result<LayerCandidate, LayerCommitError> {
        candidate::check(plan.candidate)?;
        let snapshot = self.layer_snapshot(plan)?;
        let candidate = Candidate {
            commit: self.name_layer_commit(plan, &snapshot)?,
            tree: snapshot.tree,
            changed: snapshot.changed,
            refused: snapshot.refused,
            own_left_out: plan.own.len() - snapshot.own.len(),
        };
        Ok(LayerCandidate {
            candidate,
            notes: snapshot.notes,
        })
    }

    /// Makes the candidate's ref, at once when it is new.
    fn name_layer_commit(
        &self,
        plan: &LayerPlan<'_>,
        snapshot: &LayerSnapshot,
    ) -> Result<CommitId, LayerCommitError> {
        let (workspace, candidate) = (plan.workspace, plan.candidate);
        if !snapshot.own.is_empty() {
            let (base, tree) = (&workspace.base, &snapshot.tree);
            let (parent, last) = self.write_own_commits(base, candidate, &snapshot.own, tree)?;
            return Ok(self.commit_for(&workspace.goal, &parent, &last, tree)?);
        }
        let name = format!("{}/{}", goal_ref(&workspace.goal), candidate.name);
        let create = RefChange {
            name: &name,
            from: None,
            to: &snapshot.commit,
        };
        match self.set_refs(&[create]) {
            Ok(()) => Ok(snapshot.commit.clone()),
            // It exists: what it names is kept, or is this commit.
            Err(_exists) => Ok(self.commit_tree(workspace, candidate, &snapshot.tree)?),
        }
    }

    fn layer_snapshot(&self, plan: &LayerPlan<'_>) -> Result<LayerSnapshot, LayerCommitError> {
        let survey = LayerSurvey::of(plan.layer, plan.lower)?;
        let mut trees = Trees::new(self, &plan.workspace.base, RULE_FILES);
        let touched = BaseChanges::of(&survey, &mut trees)?;
        let mut work = CommitWork {
            repository: self,
            plan,
            survey: &survey,
            trees: &trees,
            refused: touched.refused.clone(),
            staging: Staging::new(&plan.layer.part("staging"))?,
            rules: BTreeSet::new(),
            conversion: Conversion::Anything,
            retouched: Taken::new(),
        };
        let scratch = work.scratch(work.staging.path())?;
        owned_dir::wipe(&scratch.index())?;
        let mut taken = work.select(&scratch, &touched)?;
        let n_changes = taken.len() + touched.gone.len();
        if n_changes > CHANGES_MAX {
            return Err(CandidateError::TooManyChanges { changes: n_changes }.into());
        }
        work.leave_lfs(&scratch, &mut taken)?;
        let made = work.write(&scratch, &touched, &mut taken)?;
        let LayerCommit { commit, tree, edit } = made;
        let notes = walk::notes(&survey, edit.set.iter().map(|(path, _)| path.as_path()));
        let base = &plan.workspace.base;
        let changed = if edit
            .set
            .iter()
            .any(|(path, _)| touched.cleared.contains(path))
        {
            self.tree_changes(base, tree.as_str())?
        } else {
            import::changes(&edit, &taken)
        };
        let refused: Vec<RefusedPath> = work.refused.iter().cloned().collect();
        let own = OwnCommitRules::new(base, &refused).committable(&scratch, plan.own)?;
        owned_dir::wipe(work.staging.path())?;
        Ok(LayerSnapshot {
            commit,
            tree,
            changed,
            refused,
            notes,
            own,
        })
    }
}

struct CommitWork<'a> {
    repository: &'a Repository,
    plan: &'a LayerPlan<'a>,
    survey: &'a LayerSurvey,
    trees: &'a Trees<'a>,
    refused: BTreeSet<RefusedPath>,
    staging: Staging,
    /// Files with rules that are in the staging directory already.
    rules: BTreeSet<PathBuf>,
    /// What those rules and the settings may do to the bytes of a file.
    conversion: Conversion,
    /// What was only touched and is taken all the same.
    retouched: Taken,
}

/// A commit and how it differs from the base.
struct LayerCommit {
    commit: CommitId,
    tree: TreeId,
    edit: Edit,
}

impl<'a> CommitWork<'a> {
    /// Returns a git directory that stages `files`; all of them have one index.
    fn scratch(&self, files: &Path) -> Result<Scratch<'a>, DirError> {
        let dir = self.plan.layer.part("git");
        Scratch::prepare(self.repository, &dir, files, Objects::Shared)
    }

    /// Returns what is to be taken: not ignored, and with nothing against it.
    fn select(
        &mut self,
        scratch: &Scratch<'_>,
        touched: &BaseChanges,
    ) -> Result<Taken, LayerCommitError> {
        let in_nested = |path: &Path| path.ancestors().any(|at| touched.nested.contains(at));
        let files = touched.present.iter().filter(|(path, _)| !in_nested(path));
        let mut asked: Vec<PathBuf> = Vec::new();
        let mut dirs = BTreeSet::new();
        for path in touched.same.keys() {
            dirs.extend(path.ancestors().skip(1).map(Path::to_path_buf));
        }
        for (path, base) in files.clone() {
            dirs.extend(path.ancestors().skip(1).map(Path::to_path_buf));
            if base.is_none() {
                asked.push(path.clone());
            }
        }
        for dir in &touched.nested {
            dirs.extend(dir.ancestors().skip(1).map(Path::to_path_buf));
            asked.push(dir.join(""));
        }
        dirs.extend(self.dirs_of_own()?);
        let sources = IgnoreSources {
            survey: self.survey,
            trees: self.trees,
        };
        let laid = ignored::lay_out(&sources, &dirs, &mut self.staging)?;
        self.rules = laid.paths;
        self.conversion = laid
            .conversion
            .and(ignored::conversion(self.repository, scratch));
        let ignored = if laid.has_ignores || ignored::has_excludes(scratch) {
            check_ignore(scratch.call("check-ignore"), &asked)?
        } else {
            BTreeSet::new()
        };
        for dir in touched.nested.iter().filter(|dir| !ignored.contains(*dir)) {
            self.refuse(dir, RefusalReason::NestedRepository);
        }
        let format = self.repository.object_format();
        let mut taken = Taken::new();
        for (path, base) in files.filter(|(path, _)| !ignored.contains(*path)) {
            match BaseChanges::obstacle(format, self.survey, path, base.as_ref()) {
                Some(why) => self.refuse(path, why),
                None => drop(taken.insert(path.clone(), base.clone())),
            }
        }
        self.retouched = retouched::found(self.survey, &touched.same, self.conversion);
        taken.append(&mut self.retouched.clone());
        Ok(taken)
    }

    /// Returns the directories in which the agent's own commits change something.
    fn dirs_of_own(&self) -> Result<BTreeSet<PathBuf>, CandidateError> {
        let base = &self.plan.workspace.base;
        let mut dirs = BTreeSet::new();
        for commit in self.plan.own {
            for change in self.repository.tree_changes(base, commit.tree.as_str())? {
                dirs.extend(change.path.ancestors().skip(1).map(Path::to_path_buf));
            }
        }
        Ok(dirs)
    }

    /// Leaves out what belongs in Git LFS and was put there whole.
    fn leave_lfs(
        &mut self,
        scratch: &Scratch<'_>,
        taken: &mut Taken,
    ) -> Result<(), LayerCommitError> {
        if self.conversion != Conversion::Anything {
            return Ok(());
        }
        let is_file =
            |path: &&PathBuf| matches!(self.survey.what(path), Some(LayerPathKind::File { .. }));
        let files: Vec<PathBuf> = taken.keys().filter(is_file).cloned().collect();
        for path in lfs::filtered(scratch, &files)? {
            let content = self.survey.upper.file(&path);
            if content.is_ok_and(lfs::is_pointer) {
                continue;
            }
            taken.remove(&path);
            // Nobody put anything there that was only touched.
            let is_new = !self.retouched.contains_key(&path);
            is_new.then(|| self.refuse(&path, RefusalReason::LfsContent));
        }
        Ok(())
    }

    /// Makes the commit, in this process when git need not look at any file.
    fn write(
        &mut self,
        scratch: &Scratch<'_>,
        touched: &BaseChanges,
        taken: &mut Taken,
    ) -> Result<LayerCommit, LayerCommitError> {
        if let Some(made) = self.write_here(touched, taken)? {
            return Ok(made);
        }
        let (base, plan) = (&self.plan.workspace.base, self.plan.candidate);
        owned_dir::wipe(&scratch.index())?;
        index::fill(scratch, taken.iter())?;
        self.stage(taken)?;
        let listed = self.convert(scratch, taken)?;
        let edit = import::edit(touched, taken, listed);
        let (commit, tree) = import::write_commit(scratch, base, plan, &edit)?;
        Ok(LayerCommit { commit, tree, edit })
    }

    /// Makes the commit without git; nothing when git has to see any of it.
    fn write_here(
        &self,
        touched: &BaseChanges,
        taken: &Taken,
    ) -> Result<Option<LayerCommit>, LayerCommitError> {
        let contents = Contents::read(self.survey, taken, self.conversion);
        let Some((contents, mut store)) = contents.zip(ObjectWriter::new(self.repository)) else {
            return Ok(None);
        };
        let format = self.repository.object_format();
        let edit = import::edit(touched, taken, contents.listed(format));
        let Some(dirs) = Dirs::of(&edit, self.trees) else {
            return Ok(None);
        };
        contents.put(&mut store, &edit)?;
        let (base, plan) = (&self.plan.workspace.base, self.plan.candidate);
        let made = dirs.write_commit(&mut store, self.trees, base, plan)?;
        store.settle()?;
        Ok(made.map(|(commit, tree)| LayerCommit { commit, tree, edit }))
    }

    /// Copies what is taken to where git may see it.
    fn stage(&mut self, taken: &mut Taken) -> Result<(), LayerCommitError> {
        let mut bytes_left = BYTES_MAX;
        let mut lost = Vec::new();
        for path in taken.keys() {
            if self.rules.remove(path) {
                self.staging.take_out(path)?;
            }
            let mode = match self.survey.what(path) {
                Some(LayerPathKind::Link { target }) => {
                    self.staging.put_link(path, target.as_bytes())?;
                    continue;
                }
                Some(LayerPathKind::File { mode, .. }) => *mode,
                _ => continue,
            };
            let Ok(file) = self.survey.upper.file(path) else {
                lost.push((path.clone(), RefusalReason::Unreadable));
                continue;
            };
            let bytes_max = bytes_left.min(FILE_BYTES_MAX) + 1;
            let bytes = self.staging.put_file(path, file, mode, bytes_max)?;
            if bytes > FILE_BYTES_MAX {
                self.staging.take_out(path)?;
                lost.push((path.clone(), RefusalReason::TooLarge));
                continue;
            }
            let left = bytes_left.checked_sub(bytes);
            bytes_left = left.ok_or(LayerCommitError::TooManyBytes)?;
        }
        for (path, why) in lost {
            taken.remove(&path);
            self.refuse(&path, why);
        }
        Ok(())
    }

    /// Lets git store the staged files; returns what its index then holds.
    fn convert(
        &mut self,
        scratch: &Scratch<'_>,
        taken: &Taken,
    ) -> Result<Vec<(PathBuf, TreeEntry)>, LayerCommitError> {
        if taken.is_empty() {
            return Ok(Vec::new());
        }
        let paths: Vec<PathBuf> = taken.keys().cloned().collect();
        let mut search = StagingSearch {
            scratch,
            calls_left: SEARCH_CALLS_MAX,
        };
        let mut unstorable = Vec::new();
        search.add(&paths, &mut unstorable)?;
        let listed = index::entries(&scratch.index(), self.repository.object_format())?;
        let names: BTreeSet<&PathBuf> = listed.iter().map(|(path, _)| path).collect();
        // Git leaves out names it finds unsafe and says so to nobody.
        let unsafe_names = paths
            .iter()
            .filter(|path| !names.contains(path) && !unstorable.contains(path));
        for path in unsafe_names {
            self.refuse(path, RefusalReason::UnsafeName);
        }
        for path in unstorable {
            self.refuse(&path, RefusalReason::Unstorable);
        }
        Ok(listed)
    }

    fn refuse(&mut self, path: &Path, why: RefusalReason) {
        let path = path.to_path_buf();
        self.refused.insert(RefusedPath { path, why });
    }
}
