//! Refs: reading them, and changing those that are Kapi's.
//!
//! A change states the value it expects. Lock files left by a killed git are removed, but only
//! of refs that are provably ours; the caller holds the goal's own lock.

pub(crate) mod plain;

use std::fs;
use std::path::{Path, PathBuf};

use self::plain::{RefChange, RefFiles};
use crate::command::GitError;
use crate::id::CommitId;
use crate::ref_name::branch_ref;
use crate::repository::{Head, Repository};

impl Repository {
    /// Tells whether a branch of this name can be made.
    ///
    /// It cannot when there is one, or one whose name is the beginning of this name (`feat` for
    /// `feat/x`) or the other way round: git keeps names as paths.
    pub fn branch_is_free(&self, name: &str) -> Result<bool, GitError> {
        let is_blocked = self.branch_in_the_way(name)?.is_some();
        Ok(!is_blocked && !self.branch_exists(name)?)
    }

    /// Returns the commit that a branch points at, if there is one of this name.
    pub fn branch_tip(&self, name: &str) -> Result<Option<CommitId>, GitError> {
        self.ref_value(&branch_ref(name))
    }

    /// Returns another branch that keeps one of this name from being made.
    pub(crate) fn branch_in_the_way(&self, name: &str) -> Result<Option<String>, GitError> {
        let above = name.match_indices('/').filter_map(|(at, _)| name.get(..at));
        for shorter in above {
            if self.branch_exists(shorter)? {
                return Ok(Some(shorter.to_owned()));
            }
        }
        let full = branch_ref(name);
        let below = self.refs_at(&full)?;
        let blocking = below.into_iter().find(|(found, _)| *found != full);
        Ok(blocking.map(|(found, _)| found.trim_start_matches("refs/heads/").to_owned()))
    }

    /// Returns the value of the ref with this full name.
    pub(crate) fn ref_value(&self, name: &str) -> Result<Option<CommitId>, GitError> {
        if let Some(value) = self.ref_files().and_then(|files| files.value(name)) {
            return Ok(value);
        }
        let found = self.refs_at(name)?;
        Ok(found
            .into_iter()
            .find(|(found, _)| found == name)
            .map(|(_, value)| value))
    }

    /// Returns the ref with this full name and those below it.
    pub fn refs_at(&self, name: &str) -> Result<Vec<(String, CommitId)>, GitError> {
        if let Some(found) = self.ref_files().and_then(|files| files.at(name)) {
            return Ok(found.into_iter().collect());
        }
        let unexpected = || GitError::Unexpected {
            subcommand: "for-each-ref".to_owned(),
        };
        let format = "--format=%(objectname) %(refname)";
        let text = self.call("for-each-ref").args([format, "--", name]).text();
        let mut found = Vec::new();
        for line in text?.lines() {
            let (value, name) = line.split_once(' ').ok_or_else(unexpected)?;
            let value = CommitId::parse(value).map_err(|_malformed| unexpected())?;
            found.push((name.to_owned(), value));
        }
        Ok(found)
    }

    /// Makes or moves refs of ours, in this order; the commits are known to be there.
    ///
    /// One that is made and is there is an error, as is one that moves and is somewhere else.
    pub(crate) fn set_refs(&self, changes: &[RefChange<'_>]) -> Result<(), GitError> {
        if self.ref_files().is_some_and(|files| files.change(changes)) {
            return Ok(());
        }
        let lines = changes.iter().map(|change| {
            let RefChange { name, to, .. } = change;
            match change.from {
                None => format!("create {name} {to}"),
                Some(from) => format!("update {name} {to} {from}"),
            }
        });
        let lines: Vec<String> = lines.collect();
        let names: Vec<&str> = changes.iter().map(|change| change.name).collect();
        self.change_refs(&lines, &names)
    }

    /// Makes refs of ours at one commit, which is known to be there, in this order.
    ///
    /// For refs that say where work began and can be made again: they are whole after a crash, or not
    /// there. One that is there already is an error.
    pub(crate) fn claim_refs(&self, names: &[&str], to: &CommitId) -> Result<(), GitError> {
        if self.ref_files().is_some_and(|files| files.claim(names, to)) {
            return Ok(());
        }
        let changes: Vec<RefChange<'_>> = names
            .iter()
            .map(|name| RefChange {
                name,
                from: None,
                to,
            })
            .collect();
        self.set_refs(&changes)
    }

    /// Applies changes as one transaction; `owned` are the refs whose stale locks may go.
    ///
    /// Each change is a line of the `update-ref --stdin` language.
    pub(crate) fn change_refs(&self, changes: &[String], owned: &[&str]) -> Result<(), GitError> {
        let script = format!("start\n{}\nprepare\ncommit\n", changes.join("\n"));
        let change = || {
            let call = self.call("update-ref").args(["--no-deref", "--stdin"]);
            call.stdin(script.clone().into_bytes()).done()
        };
        let Err(error) = change() else { return Ok(()) };
        // Git has just waited for the locks in vain (`core.filesRefLockTimeout`): whoever made
        // them on a ref that only this goal changes is dead.
        let stale: Vec<PathBuf> = owned
            .iter()
            .map(|name| self.common_dir().join(format!("{name}.lock")))
            .filter(|lock| lock.exists())
            .collect();
        if stale.is_empty() {
            return Err(error);
        }
        for lock in stale {
            if fs::remove_file(&lock).is_err() {
                return Err(error);
            }
        }
        change()
    }

    /// Returns the commit that HEAD of another git directory is at, read from files alone; nothing where
    /// it has none, or they are out of the ordinary.
    pub(crate) fn plain_head_commit(&self, git_dir: &Path) -> Option<CommitId> {
        let refs = RefFiles {
            common_dir: git_dir,
            n_digits: self.object_format().n_digits(),
        };
        match self.plain_head_in(git_dir)? {
            Head::Branch(name) => refs.value(&name)?,
            Head::Detached(commit) => Some(commit),
        }
    }

    /// Returns the files that the refs are kept in, if they are.
    fn ref_files(&self) -> Option<RefFiles<'_>> {
        self.has_ref_files().then(|| RefFiles {
            common_dir: self.common_dir(),
            n_digits: self.object_format().n_digits(),
        })
    }

    fn branch_exists(&self, name: &str) -> Result<bool, GitError> {
        self.ref_value(&branch_ref(name))
            .map(|value| value.is_some())
    }
}
