//! The same sources brought together by git alone, in the ways that people do it.
//!
//! None of them runs a check; what the checks say afterwards is found out for the table.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use anyhow::Context as _;
use kapi_sys::disk::Disk as _;
use kapi_sys::real_disk::RealDisk;

use super::case::{CaseDraft, Settling};
use super::repository::{CaseRepository, failing_in};
use crate::corpora::shell::Shell;

/// A way to bring sources together by git alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rival {
    /// `git merge`, one after another.
    Merges,
    /// `git merge` of all at once.
    Octopus,
    /// `git rebase` of each on what is there.
    Rebases,
}

impl Rival {
    /// Every one.
    pub(super) const ALL: [Self; 3] = [Self::Merges, Self::Octopus, Self::Rebases];

    const fn directory(self) -> &'static str {
        match self {
            Self::Merges => "by-merges",
            Self::Octopus => "by-octopus",
            Self::Rebases => "by-rebases",
        }
    }
}

/// What came of it.
#[derive(Debug)]
pub(super) enum RivalResult {
    /// It did not go on, and nobody helped.
    Stopped,
    /// `dev` has all of it.
    Landed(LandedFiles),
}

/// A result of git's.
#[derive(Debug)]
pub(super) struct LandedFiles {
    directory: PathBuf,
    /// Checks that fail and did not on `dev`.
    pub(super) new_failures: BTreeSet<String>,
}

impl LandedFiles {
    /// Returns the text of a file.
    pub(super) fn text(&self, path: &str) -> Option<String> {
        let bytes = fs::read(self.directory.join(path)).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// Brings the sources of a repository together, in a clone.
pub(super) fn integrate(
    rival: Rival,
    case: &CaseRepository,
    draft: &CaseDraft,
) -> anyhow::Result<RivalResult> {
    let directory = case.directory.root().join(rival.directory());
    let dev = case.commits.get(draft.dev).context("find dev")?;
    case.shell.must(&format!(
        "git clone -q --shared --no-checkout . '{0}'\ncd '{0}'\ngit checkout -q -B dev {dev}",
        directory.display()
    ))?;
    let mut shell = case.shell.clone();
    shell.directory.clone_from(&directory);
    let baseline = failing_in(&shell, &directory)?;
    shell.must("git reset -q --hard && git clean -q -f -d -x")?;
    let tips = draft.sources.iter().map(|source| {
        let tip = case.commits.get(source.tip);
        tip.map(|tip| tip.as_str().to_owned())
            .context("find a source")
    });
    let tips: Vec<String> = tips.collect::<anyhow::Result<_>>()?;
    let hand = draft.hand.settles;
    let went = match rival {
        Rival::Merges => each(&tips, |tip| {
            let merge = format!("git merge -q --no-ff --no-edit {tip}");
            step(&shell, &merge, "git commit -q --no-edit", hand)
        })?,
        Rival::Octopus => {
            let merge = format!("git merge -q --no-ff --no-edit {}", tips.join(" "));
            step(&shell, &merge, "git commit -q --no-edit", hand)?
        }
        Rival::Rebases => each(&tips, |tip| {
            shell.must(&format!("git branch -q -f work {tip}"))?;
            let went = step(
                &shell,
                "git rebase -q dev work",
                "git rebase --continue",
                hand,
            )?;
            if went {
                shell.must("git checkout -q dev && git merge -q --ff-only work")?;
            }
            Ok(went)
        })?,
    };
    if !went {
        return Ok(RivalResult::Stopped);
    }
    if let Some(change) = &draft.hand.afterwards {
        let path = directory.join(&change.path);
        let text = fs::read_to_string(&path)?;
        let text = text.replacen(&change.from, &change.to, 1);
        RealDisk.write(&path, text.as_bytes())?;
        shell.must("git commit -q -a -m tidy --allow-empty")?;
    }
    let new_failures = &failing_in(&shell, &directory)? - &baseline;
    Ok(RivalResult::Landed(LandedFiles {
        directory,
        new_failures,
    }))
}

/// Does a step for each until one does not go on.
fn each(
    tips: &[String],
    mut step: impl FnMut(&str) -> anyhow::Result<bool>,
) -> anyhow::Result<bool> {
    for tip in tips {
        if !step(tip)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Runs a command of git's; where it stops at conflicts and somebody settles them, it goes on.
fn step(
    shell: &Shell,
    command: &str,
    goes_on: &str,
    hand: Option<Settling>,
) -> anyhow::Result<bool> {
    if shell.sh(command)?.code == Some(0) {
        return Ok(true);
    }
    let settle = match hand {
        None => return Ok(false),
        Some(Settling::Ours) => "git checkout -q --ours -- \"$path\"",
        Some(Settling::Theirs) => "git checkout -q --theirs -- \"$path\"",
        Some(Settling::AsItLies) => "true",
    };
    let script = format!(
        "set -e\npaths=$(git diff --name-only --diff-filter=U)\n[ -n \"$paths\" ]\n\
         for path in $paths; do {settle}; done\ngit add -A\nGIT_EDITOR=true {goes_on}"
    );
    Ok(shell.sh(&script)?.code == Some(0))
}
