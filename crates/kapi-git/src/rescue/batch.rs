//! Removing many refs at once, with what only they hold kept under one rescue ref.
//!
//! However many refs there are, git is asked once what would be lost and once to change them. Which
//! refs may go is the caller's to know; that they are still where they were seen is checked here.

use std::collections::{BTreeMap, BTreeSet};

use super::{RESCUE_REFS, RescueError, RescuedCommit, Signature};
use crate::command::GitError;
use crate::id::{CommitId, RefPart};
use crate::ref_name::is_held;
use crate::repository::Repository;

/// The most commits that one rescue holds.
const RESCUED_MAX: usize = 1_000;

/// All refs of a repository at one moment, by their full names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Refs(pub BTreeMap<String, CommitId>);

/// Refs that go.
#[derive(Debug, Clone, Copy)]
pub struct Retirement<'a> {
    /// The refs, each with where it was seen.
    pub going: &'a BTreeMap<String, CommitId>,
    /// Commits without a ref that are kept, too.
    pub also: &'a [CommitId],
    /// What it is called that is kept: the last part of the rescue ref.
    pub name: &'a RefPart,
    /// Who keeps it.
    pub by: &'a Signature<'a>,
}

fn lines(words: &[&str]) -> Vec<u8> {
    let mut text = words.join("\n");
    text.push('\n');
    text.into_bytes()
}

/// One commit, as far as it matters what it holds.
struct CommitContent {
    tree: String,
    parents: Vec<CommitId>,
}

impl Repository {
    /// Returns all refs; those that name no commit, as a tag may, by what they do name.
    pub fn refs(&self) -> Result<Refs, GitError> {
        let listed = self
            .call("for-each-ref")
            .args(["--format=%(objectname) %(refname)"])
            .text()?;
        let mut refs = BTreeMap::new();
        for line in listed.lines() {
            let parts = line.split_once(' ');
            let found = parts.and_then(|(id, name)| Some((name, CommitId::parse(id).ok()?)));
            let (name, commit) = found.ok_or_else(|| GitError::Unexpected {
                subcommand: "for-each-ref".to_owned(),
            })?;
            refs.insert(name.to_owned(), commit);
        }
        Ok(Refs(refs))
    }

    /// Returns which of these commits nothing would hold any more: no branch, tag, remote's branch
    /// or rescue ref but those that go, nor what is checked out.
    pub fn lost_without(
        &self,
        refs: &Refs,
        going: &BTreeSet<&str>,
        commits: &BTreeSet<CommitId>,
    ) -> Result<BTreeSet<CommitId>, GitError> {
        let mut lost = self.unheld(refs, going, commits)?;
        lost.retain(|commit| commits.contains(commit));
        Ok(lost)
    }

    /// Returns these commits and those below them that nothing would hold any more.
    fn unheld(
        &self,
        refs: &Refs,
        going: &BTreeSet<&str>,
        commits: &BTreeSet<CommitId>,
    ) -> Result<BTreeSet<CommitId>, GitError> {
        if commits.is_empty() {
            return Ok(BTreeSet::new());
        }
        let stays = |name: &str| {
            // What Kapi notes of other work is no place where work is kept.
            let is_kept = name.starts_with(RESCUE_REFS) || is_held(name);
            let is_note = name.starts_with("refs/kapi/") && !is_kept;
            !is_note && !going.contains(name)
        };
        let mut script = String::new();
        for commit in commits {
            script.push_str(commit.as_str());
            script.push('\n');
        }
        script.push_str("^HEAD\n");
        let staying = refs.0.iter().filter(|(name, _)| stays(name));
        for holder in staying.map(|(_, commit)| commit).collect::<BTreeSet<_>>() {
            script.push('^');
            script.push_str(holder.as_str());
            script.push('\n');
        }
        let call = self.call("rev-list").args(["--stdin"]);
        let listed = call.stdin(script.into_bytes()).text()?;
        let listed = listed.lines().filter_map(|line| CommitId::parse(line).ok());
        Ok(listed.collect())
    }

    /// Returns which of these commits have arrived: a remote is known to hold them, or what is checked
    /// out does, or holds one with the same change.
    ///
    /// Asks no remote: what is known of them is what the last fetch or push saw.
    pub fn arrived(
        &self,
        refs: &Refs,
        commits: &BTreeSet<CommitId>,
    ) -> Result<BTreeSet<CommitId>, GitError> {
        if commits.is_empty() {
            return Ok(BTreeSet::new());
        }
        let mut script: Vec<&str> = commits.iter().map(CommitId::as_str).collect();
        let remotes = refs.0.iter();
        let remotes = remotes.filter(|(name, _)| name.starts_with("refs/remotes/"));
        let remotes: BTreeSet<String> = remotes.map(|(_, commit)| format!("^{commit}")).collect();
        script.extend(remotes.iter().map(String::as_str));
        script.push("^HEAD");
        let call = self.call("rev-list").args(["--stdin"]);
        let listed = call.stdin(lines(&script)).text()?;
        let away = listed.lines().filter_map(|line| CommitId::parse(line).ok());
        let away: BTreeSet<CommitId> = away.filter(|commit| commits.contains(commit)).collect();
        let picked = self.picked(&away)?;
        let is_there = |commit: &&CommitId| !away.contains(*commit) || picked.contains(*commit);
        Ok(commits.iter().filter(is_there).cloned().collect())
    }

    /// Returns those whose change a commit of what is checked out makes, too.
    fn picked(&self, commits: &BTreeSet<CommitId>) -> Result<BTreeSet<CommitId>, GitError> {
        if commits.is_empty() {
            return Ok(BTreeSet::new());
        }
        let own: Vec<&str> = commits.iter().map(CommitId::as_str).collect();
        let own = self.changes_of(&["--no-walk"], &lines(&own))?;
        // Only what is beyond where they began can have picked them.
        let beyond: Vec<String> = commits.iter().map(|commit| format!("^{commit}")).collect();
        let mut script: Vec<&str> = beyond.iter().map(String::as_str).collect();
        script.push("HEAD");
        let there = self.changes_of(&["--no-merges"], &lines(&script))?;
        let there: BTreeSet<&str> = there.iter().map(|(change, _)| change.as_str()).collect();
        let picked = own
            .iter()
            .filter(|(change, _)| there.contains(change.as_str()));
        let picked = picked.filter_map(|(_, commit)| CommitId::parse(commit).ok());
        Ok(picked.collect())
    }

    /// Returns what commits change, as git's own name of it, with each commit.
    pub(crate) fn changes_of(
        &self,
        args: &[&str],
        script: &[u8],
    ) -> Result<Vec<(String, String)>, GitError> {
        let shown = self
            .call("log")
            .args(["-p", "--no-textconv", "--no-ext-diff", "--full-index"])
            .args(args.iter().copied())
            .args(["--stdin"])
            .stdin(script.to_vec())
            .bytes()?;
        let named = self.call("patch-id").args(["--stable"]).stdin(shown);
        let named = named.text()?;
        let pairs = named.lines().filter_map(|line| line.split_once(' '));
        Ok(pairs
            .map(|(change, commit)| (change.to_owned(), commit.to_owned()))
            .collect())
    }

    /// Removes refs that hold nothing that is not held elsewhere, all or none, in one go.
    ///
    /// # Errors
    /// When one is no longer where it was seen; nothing has changed then.
    pub fn drop_refs(
        &self,
        refs: &Refs,
        going: &BTreeMap<String, CommitId>,
    ) -> Result<(), RescueError> {
        let there = going.iter().filter(|(name, _)| refs.0.contains_key(*name));
        let script: Vec<String> = there
            .map(|(name, commit)| format!("delete {name} {commit}"))
            .collect();
        if script.is_empty() {
            return Ok(());
        }
        let owned: Vec<&str> = going.keys().map(String::as_str).collect();
        Ok(self.change_refs(&script, &owned)?)
    }

    /// Removes refs, all or none; what would be lost with them and changes anything is kept first,
    /// under one ref for all, with what an earlier call has kept there.
    ///
    /// # Errors
    /// When a ref is no longer where it was seen; nothing has changed then.
    pub fn retire_refs(&self, plan: &Retirement<'_>) -> Result<Option<RescuedCommit>, RescueError> {
        let refs = self.refs()?;
        let names: BTreeSet<&str> = plan.going.keys().map(String::as_str).collect();
        let mut commits: BTreeSet<CommitId> = plan.going.values().cloned().collect();
        commits.extend(plan.also.iter().cloned());
        let unheld = self.unheld(&refs, &names, &commits)?;
        let worth = self.worth_keeping(&unheld, &commits)?;
        let ref_name = format!("{RESCUE_REFS}/{}", plan.name);
        let before = refs.0.get(&ref_name);
        let mut script = Vec::new();
        let kept = self.gathered(plan, &worth, before)?;
        if let Some(kept) = &kept {
            script.push(match before {
                Some(before) => format!("update {ref_name} {kept} {before}"),
                None => format!("create {ref_name} {kept}"),
            });
        }
        // One that is gone already is what was wanted.
        let there = plan
            .going
            .iter()
            .filter(|(name, _)| refs.0.contains_key(*name));
        script.extend(there.map(|(name, commit)| format!("delete {name} {commit}")));
        if !script.is_empty() {
            let owned: Vec<&str> = names.iter().copied().chain([ref_name.as_str()]).collect();
            self.change_refs(&script, &owned)?;
        }
        Ok(kept.map(|commit| RescuedCommit {
            commit,
            restore_line: format!("git branch {}-rescued {ref_name}", plan.name),
            ref_name,
        }))
    }

    /// Returns one commit that holds all these, and what was kept before; none where there is
    /// nothing new to keep.
    fn gathered(
        &self,
        plan: &Retirement<'_>,
        worth: &[CommitId],
        before: Option<&CommitId>,
    ) -> Result<Option<CommitId>, RescueError> {
        let Some(last) = worth.last() else {
            return Ok(None);
        };
        let mut parents: Vec<&CommitId> = before.into_iter().collect();
        parents.extend(worth);
        if let ([one], None) = (worth, before) {
            return Ok(Some(one.clone()));
        }
        if parents.len() > RESCUED_MAX {
            return Err(RescueError::TooMany {
                commit: last.clone(),
                name: format!("{RESCUE_REFS}/{}", plan.name),
            });
        }
        let tree = self.tree_of(last)?;
        let date = format!("@{} +0000", plan.by.at_unix_seconds);
        let n = parents.len();
        let message = format!("kapi: {n} attempts rescued of {}\n", plan.name);
        let mut call = self.call("commit-tree").args([tree.as_str(), "-F", "-"]);
        for parent in parents {
            call = call.args(["-p", parent.as_str()]);
        }
        for role in ["AUTHOR", "COMMITTER"] {
            call = call
                .env(&format!("GIT_{role}_NAME"), &plan.by.author.name)
                .env(&format!("GIT_{role}_EMAIL"), &plan.by.author.email)
                .env(&format!("GIT_{role}_DATE"), &date);
        }
        let made = call.stdin(message.into_bytes()).text()?;
        Ok(Some(CommitId::parse(&made)?))
    }

    /// Returns the tips that are lost, but for those that change nothing in a commit that stays,
    /// those that another of them holds, and all but one of those that are alike.
    fn worth_keeping(
        &self,
        unheld: &BTreeSet<CommitId>,
        tips: &BTreeSet<CommitId>,
    ) -> Result<Vec<CommitId>, RescueError> {
        let lost = unheld.iter().filter(|commit| tips.contains(*commit));
        let held = self.held(lost)?;
        let above = held.values().flat_map(|one| &one.parents);
        let parents = self.held(above.collect::<BTreeSet<_>>().into_iter())?;
        let changes = |one: &CommitContent| {
            let is_same = |parent: &CommitId| {
                let same = parents
                    .get(parent)
                    .is_some_and(|held| held.tree == one.tree);
                same && !unheld.contains(parent)
            };
            !one.parents.iter().any(is_same)
        };
        let worth = held.iter().filter(|(_, one)| changes(one));
        let above: BTreeSet<&CommitId> = worth.clone().flat_map(|(_, one)| &one.parents).collect();
        let mut seen = BTreeSet::new();
        let worth = worth.filter(|(commit, one)| {
            !above.contains(commit) && seen.insert((&one.tree, &one.parents))
        });
        Ok(worth.map(|(commit, _)| commit.clone()).collect())
    }

    fn held<'a>(
        &self,
        commits: impl Iterator<Item = &'a CommitId>,
    ) -> Result<BTreeMap<CommitId, CommitContent>, RescueError> {
        let script: Vec<&str> = commits.map(CommitId::as_str).collect();
        if script.is_empty() {
            return Ok(BTreeMap::new());
        }
        let call = self
            .call("log")
            .args(["--no-walk", "--format=%H %T %P", "--stdin"]);
        let listed = call.stdin(format!("{}\n", script.join("\n")).into_bytes());
        let mut held = BTreeMap::new();
        for line in listed.text()?.lines() {
            let mut words = line.split(' ');
            let (Some(commit), Some(tree)) = (words.next(), words.next()) else {
                continue;
            };
            let parents = words
                .filter_map(|word| CommitId::parse(word).ok())
                .collect();
            let tree = tree.to_owned();
            held.insert(CommitId::parse(commit)?, CommitContent { tree, parents });
        }
        Ok(held)
    }
}
