//! Writing one commit: a tree, its parents, who wrote it and when. No ref is touched.
//!
//! A function of its arguments, so that doing it twice gives the same id.

use crate::author::Author;
use crate::command::{GitCall, GitError};
use crate::id::{CommitId, TreeId};

/// A commit to write.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CommitObject<'a> {
    pub(crate) tree: &'a TreeId,
    pub(crate) parents: &'a [&'a CommitId],
    pub(crate) message: &'a [u8],
    pub(crate) author: &'a Author,
    /// When it was written, as git takes it.
    pub(crate) authored: &'a str,
    pub(crate) committer: &'a Author,
    /// When it is committed, as git takes it.
    pub(crate) committed: &'a str,
}

/// Returns a moment as git takes it, in seconds since the Unix epoch, UTC.
pub(crate) fn utc(at_unix_seconds: i64) -> String {
    format!("@{at_unix_seconds} +0000")
}

impl CommitObject<'_> {
    /// Writes it by a call of `commit-tree`, which says into which objects.
    pub(crate) fn write(&self, commit_tree: GitCall<'_>) -> Result<CommitId, GitError> {
        let parents = self.parents.iter();
        let text = commit_tree
            .arg(self.tree.as_str())
            .args(parents.flat_map(|parent| ["-p", parent.as_str()]))
            .args(["-F", "-"])
            .env("GIT_AUTHOR_NAME", &self.author.name)
            .env("GIT_AUTHOR_EMAIL", &self.author.email)
            .env("GIT_AUTHOR_DATE", self.authored)
            .env("GIT_COMMITTER_NAME", &self.committer.name)
            .env("GIT_COMMITTER_EMAIL", &self.committer.email)
            .env("GIT_COMMITTER_DATE", self.committed)
            .settings(&[("i18n.commitEncoding".into(), "UTF-8".into())])
            .stdin(self.message.to_vec())
            .text()?;
        CommitId::parse(&text).map_err(|_malformed| GitError::Unexpected {
            subcommand: "commit-tree".to_owned(),
        })
    }
}
