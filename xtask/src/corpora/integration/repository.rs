//! A repository of the corpus on the disk: made in one go from its draft, and how its commits are checked
//! and altered.
//!
//! Knows no verdict. What is checked is checked out into a directory of its own.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use kapi_git::command::Git;
use kapi_git::id::CommitId;
use kapi_git::repository::Repository;
use kapi_sys::cancel::Cancel;

use super::case::{CaseDraft, CommitDraft, TextChange};
use super::project::RUN_CHECKS;
use crate::corpora::case_directory::CaseDirectory;
use crate::corpora::shell::Shell;
use crate::tool::find;

/// The longest that one program may take.
const DEADLINE: Duration = Duration::from_secs(120);
/// Who makes the commits.
const WHO: &str = "Ada <ada@example.invalid> 1700000000 +0000";

/// A repository, with its commits.
#[derive(Debug)]
pub(super) struct CaseRepository {
    pub(super) directory: CaseDirectory,
    pub(super) shell: Shell,
    pub(super) repository: Repository,
    /// The commits of the draft.
    pub(super) commits: Vec<CommitId>,
}

impl CaseRepository {
    /// Makes the repository of a draft, with `main` at its first commit and `dev` where it says.
    pub(super) fn make(location: &Path, name: &str, draft: &CaseDraft) -> anyhow::Result<Self> {
        let directory = CaseDirectory::new(location, name, false)?;
        let shell = directory.shell(DEADLINE);
        shell.must("git init -q -b main .")?;
        let git = find("git").context("find git")?;
        let stream = stream(draft)?;
        let words = ["fast-import", "--quiet"].map(str::to_owned);
        let ended = shell.run(&git, &words, &stream)?;
        ensure!(ended.code == Some(0), "import: {}", ended.last_words());
        let refs = shell.must("git for-each-ref --format='%(refname) %(objectname)' refs/draft")?;
        let mut commits = vec![None; draft.commits.len()];
        for line in refs.stdout.lines() {
            let (name, id) = line.split_once(' ').context("read a ref")?;
            let place: usize = name.trim_start_matches("refs/draft/").parse()?;
            if let Some(slot) = commits.get_mut(place) {
                *slot = Some(CommitId::parse(id)?);
            }
        }
        let commits: Option<Vec<CommitId>> = commits.into_iter().collect();
        let commits = commits.context("find every commit")?;
        let dev = commits.get(draft.dev).context("find dev")?;
        shell.must(&format!(
            "git update-ref refs/heads/dev {dev}\ngit reset -q --hard {}",
            commits[0]
        ))?;
        let git = Git::open(&git, &Cancel::new())?;
        let repository = Repository::discover(&git, &directory.repository())?;
        Ok(Self {
            directory,
            shell,
            repository,
            commits,
        })
    }

    /// Returns a directory for git's own files.
    pub(super) fn scratch(&self) -> PathBuf {
        self.directory.root().join("scratch")
    }

    /// Returns the checks that fail on a commit, checked out in a directory of its own.
    pub(super) fn failing(&self, commit: &CommitId) -> anyhow::Result<BTreeSet<String>> {
        let clean = self.directory.root().join("clean");
        let script = format!(
            "rm -rf '{0}' && mkdir '{0}' && git archive {commit} | tar x -C '{0}'",
            clean.display()
        );
        self.shell.must(&script)?;
        failing_in(&self.shell, &clean)
    }

    /// Returns a commit's file as text.
    pub(super) fn text(&self, commit: &CommitId, path: &str) -> anyhow::Result<Option<String>> {
        let bytes = self.repository.file_at(commit, Path::new(path), 1 << 22)?;
        Ok(bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
    }

    /// Commits a change of a file on a commit; the commit itself where the text is not there.
    pub(super) fn changed(&self, head: &CommitId, change: &TextChange) -> anyhow::Result<CommitId> {
        let Some(text) = self.text(head, &change.path)? else {
            return Ok(head.clone());
        };
        let text = text.replacen(&change.from, &change.to, 1);
        let stream = format!(
            "commit refs/draft-later/change\ncommitter {WHO}\ndata 5\ntidy\nfrom {head}\n\
             M 100644 inline {}\ndata {}\n{text}\n",
            change.path,
            text.len()
        );
        let git = find("git").context("find git")?;
        let words = ["fast-import", "--quiet", "--force"].map(str::to_owned);
        let ended = self.shell.run(&git, &words, &stream)?;
        ensure!(ended.code == Some(0), "import: {}", ended.last_words());
        let id = self.shell.must("git rev-parse refs/draft-later/change")?;
        self.shell
            .must("git update-ref -d refs/draft-later/change")?;
        Ok(CommitId::parse(id.stdout.trim())?)
    }

    /// Returns all that must stay as it is, whatever is integrated.
    pub(super) fn untouched(&self) -> anyhow::Result<String> {
        let script = "git for-each-ref | grep -v '\\srefs/heads/dev$' | grep -v '\\srefs/kapi/'\n\
                      git status --porcelain --ignored\ngit stash list\ncat .git/HEAD .git/config\n\
                      sha1sum .git/index";
        Ok(self.shell.must(script)?.stdout)
    }
}

/// Returns the checks that fail in a directory.
pub(super) fn failing_in(shell: &Shell, directory: &Path) -> anyhow::Result<BTreeSet<String>> {
    let mut inside = shell.clone();
    inside.directory = directory.to_path_buf();
    let ended = inside.sh(&format!("sh {RUN_CHECKS}"))?;
    ensure!(
        ended.code.is_some(),
        "run the checks: {}",
        ended.last_words()
    );
    let is_whole = directory.join(RUN_CHECKS).is_file();
    ensure!(is_whole, "run the checks: there are none");
    Ok(ended.stdout.lines().map(str::to_owned).collect())
}

/// Writes a draft as `git fast-import` reads it.
fn stream(draft: &CaseDraft) -> anyhow::Result<String> {
    let mut text = String::new();
    for (place, CommitDraft { parents, files }) in draft.commits.iter().enumerate() {
        write!(
            text,
            "commit refs/draft/{place}\nmark :{}\ncommitter {WHO}\ndata {}\ncommit {place}\n",
            place + 1,
            format!("commit {place}").len()
        )?;
        for (at, parent) in parents.iter().enumerate() {
            let word = if at == 0 { "from" } else { "merge" };
            writeln!(text, "{word} :{}", parent + 1)?;
        }
        writeln!(text, "deleteall")?;
        for (path, content) in files {
            let length = content.len();
            writeln!(text, "M 100644 inline {path}\ndata {length}\n{content}")?;
        }
    }
    Ok(text)
}
