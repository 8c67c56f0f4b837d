//! Ten branches over trees of different sizes, planned and landed: by our plumbing, and by hand with git.
//!
//! Ours is measured inside this program, and checks nothing out. By hand, planning is one `git merge-tree`
//! for each pair, and landing one `git merge` after another in the checkout.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufWriter, Write as _};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use kapi_git::author::Author;
use kapi_git::command::Git;
use kapi_git::coverage::{CoveragePlan, IntegratedSource};
use kapi_git::id::CommitId;
use kapi_git::land::source::{ApplyMethod, SourceOutcome, SourcePlan};
use kapi_git::repository::Repository;
use kapi_git::repository::range::CommitRange;
use kapi_sys::cancel::Cancel;
use kapi_workflow::rules::batch::order::{ForeseenClash, SourceGraph, order};

use super::make::git;
use super::{BenchRepository, made, rounds};
use crate::bench::BenchDirectory;
use crate::bench::comparison::measured;
use crate::bench::ground::Ground;
use crate::bench::invocation::Invocation;
use crate::bench::launcher::remove_all;
use crate::bench::sample::Pair;
use crate::bench::table::{ComparisonRow, ComparisonTable, Quantity};
use crate::tool::{ToolCommand, find};

/// Branches that are brought together.
const BRANCHES: usize = 10;
/// Files that each of them changes.
const CHANGED: usize = 20;
/// A distance between changed files, so that they lie far apart.
const STRIDE: usize = 37;

/// What is measured over one tree.
#[derive(Debug, Default)]
struct Durations {
    planning: Pair,
    landing: Pair,
}

/// A tree with its branches.
struct BranchedTree<'a> {
    tree: &'a BenchRepository,
    repository: Repository,
    base: CommitId,
    tips: Vec<CommitId>,
}

/// Measures planning and landing over trees of these sizes.
pub(in crate::bench) fn compare(
    location: &BenchDirectory,
    sizes: &[u32],
) -> anyhow::Result<ComparisonTable> {
    let largest = sizes.iter().max().copied().unwrap_or_default();
    let ground = Ground::new(&location.scratch, largest)?;
    let mut rows = Vec::new();
    for n_files in sizes {
        let tree = made(&ground.directory.join("branched"), *n_files)?;
        let branched = BranchedTree::new(&tree)?;
        rows.extend(branched.rows(rounds(&tree))?);
        remove_all(&tree.beside)?;
    }
    Ok(ComparisonTable {
        title: "Ten branches brought together",
        note: format!(
            "Each of ten branches changes twenty files. Planning merges every pair of them and orders them; \
             by hand, that is a `git merge-tree` for each pair. Landing applies all ten and traces every \
             line of the result to its branch; by hand, that is ten `git merge` in the checkout, and \
             nothing is traced. The size of the tree must cost ours nothing. {}",
            ground.note()
        ),
        quantity: Quantity::Time,
        rows,
    })
}

impl<'a> BranchedTree<'a> {
    /// Makes the branches.
    fn new(tree: &'a BenchRepository) -> anyhow::Result<Self> {
        let import = Invocation::new(
            "`git fast-import`",
            &tree.root,
            "git",
            &["fast-import", "--quiet"],
        );
        let base = CommitId::parse(git(tree, &["rev-parse", "main"])?.trim())?;
        let (started, input, output) = import.start_piped()?;
        let mut input = BufWriter::new(input);
        for branch in 0..BRANCHES {
            write_branch(&mut input, tree, &base, branch).context("write a branch")?;
        }
        let mut input = input.into_inner().context("write the last branch")?;
        writeln!(input, "done").context("end the branches")?;
        drop(input);
        started.finish()?;
        drop(output);
        let tips = (0..BRANCHES).map(|branch| {
            let id = git(tree, &["rev-parse", &format!("branch{branch}")])?;
            Ok(CommitId::parse(id.trim())?)
        });
        let found = find("git").context("find git")?;
        let repository = Repository::discover(&Git::open(&found, &Cancel::new())?, &tree.root)?;
        Ok(Self {
            tree,
            repository,
            base,
            tips: tips.collect::<anyhow::Result<_>>()?,
        })
    }

    fn rows(&self, n_rounds: usize) -> anyhow::Result<Vec<ComparisonRow>> {
        let mut durations = Durations::default();
        // One round warms both up.
        for round in 0..=n_rounds {
            let (planned, order) = self.plan()?;
            let by_pairs = self.plan_by_hand()?;
            let (landed, tree) = self.land(&order, round)?;
            let (merged, by_hand) = self.land_by_hand()?;
            ensure!(tree == by_hand, "come to the same tree in both ways");
            if round > 0 {
                durations.planning.add(planned, by_pairs);
                durations.landing.add(landed, merged);
            }
        }
        let name = &self.tree.name;
        Ok(vec![
            measured(
                &format!("{name}: planning"),
                "`git merge-tree` of 45 pairs",
                durations.planning,
            ),
            measured(
                &format!("{name}: landing, and tracing every line"),
                "ten times `git merge`",
                durations.landing,
            ),
        ])
    }

    fn plan(&self) -> anyhow::Result<(Duration, Vec<usize>)> {
        let started = Instant::now();
        let scratch = self.tree.beside.join("planning");
        let clashes = self.repository.clashes(&self.tips, &scratch)?;
        let clashes: Vec<ForeseenClash> = clashes
            .iter()
            .map(|clash| ForeseenClash {
                one: clash.one,
                other: clash.other,
            })
            .collect();
        let placed = order(&SourceGraph {
            n_sources: self.tips.len(),
            dependencies: &[],
            clashes: &clashes,
        })?;
        let took = started.elapsed();
        Ok((took, placed.into_iter().map(|one| one.source).collect()))
    }

    /// Merges every pair, each time into objects of its own: what is there already is not written again.
    fn plan_by_hand(&self) -> anyhow::Result<Duration> {
        let objects = self.tree.beside.join("objects-by-hand");
        fs::create_dir_all(&objects)?;
        let lent = self.tree.root.join(".git/objects");
        let started = Instant::now();
        for (at, one) in self.tips.iter().enumerate() {
            for other in self.tips.iter().skip(at + 1) {
                let words = ["merge-tree", "--write-tree", one.as_str(), other.as_str()];
                ToolCommand::new(&self.tree.root, "git", &words)
                    .env("GIT_CONFIG_GLOBAL", "/dev/null")
                    .env("GIT_CONFIG_NOSYSTEM", "1")
                    .env("GIT_OBJECT_DIRECTORY", &objects)
                    .env("GIT_ALTERNATE_OBJECT_DIRECTORIES", &lent)
                    .read()?;
            }
        }
        let took = started.elapsed();
        remove_all(&objects)?;
        Ok(took)
    }

    /// Applies the branches and traces the result; returns its tree.
    fn land(&self, order: &[usize], round: usize) -> anyhow::Result<(Duration, String)> {
        let started = Instant::now();
        let author = Author {
            name: "Kapi".to_owned(),
            email: "kapi@localhost".to_owned(),
        };
        let scratch = self.tree.beside.join("landing");
        let mut head = self.base.clone();
        let mut sources = Vec::new();
        for source in order {
            let tip = self.tips.get(*source).context("find a branch")?;
            let range = CommitRange {
                base: self.base.clone(),
                commit: tip.clone(),
            };
            let plan = SourcePlan {
                head: &head,
                source: &range,
                method: ApplyMethod::Merge,
                commits_max: 1,
                message: "bring a branch\n",
                author: &author,
                // Another moment each time, so that every commit is written anew.
                at_unix_seconds: 1_700_000_000 + i64::try_from(round)?,
                scratch: &scratch,
            };
            match self.repository.apply_source(&plan)? {
                SourceOutcome::Applied(applied) => head = applied.head,
                SourceOutcome::Conflicted(conflict) => {
                    bail!("bring {}: it conflicts", conflict.commit)
                }
            }
            sources.push(IntegratedSource {
                range,
                after: head.clone(),
            });
        }
        let coverage = self.repository.coverage(&CoveragePlan {
            dev: &self.base,
            head: &head,
            sources: &sources,
            generated: &BTreeSet::new(),
            scratch: &scratch,
        })?;
        let took = started.elapsed();
        ensure!(
            coverage.findings.is_empty(),
            "trace every line of a clean merge"
        );
        let tree = self.repository.tree_of(&head)?.as_str().to_owned();
        Ok((took, tree))
    }

    /// Merges the branches in the checkout, and returns the tree; the checkout is put back.
    fn land_by_hand(&self) -> anyhow::Result<(Duration, String)> {
        let started = Instant::now();
        for tip in &self.tips {
            let identity = super::make::IDENTITY;
            let words = ["merge", "--quiet", "--no-ff", "--no-edit", tip.as_str()];
            git(self.tree, &[&identity[..], &words].concat())?;
        }
        let took = started.elapsed();
        let tree = git(self.tree, &["rev-parse", "HEAD^{tree}"])?
            .trim()
            .to_owned();
        git(
            self.tree,
            &["reset", "--quiet", "--hard", self.base.as_str()],
        )?;
        Ok((took, tree))
    }
}

/// Writes one branch: a line more at the end of each of its files.
fn write_branch(
    input: &mut impl std::io::Write,
    tree: &BenchRepository,
    base: &CommitId,
    branch: usize,
) -> anyhow::Result<()> {
    write!(
        input,
        "commit refs/heads/branch{branch}\ncommitter bench <bench@example.invalid> 1700000001 +0000\n\
         data 6\nbranch\nfrom {base}\n"
    )?;
    let n_files = usize::try_from(tree.n_files)?;
    for at in 0..CHANGED {
        let number = (branch * CHANGED + at) * STRIDE % n_files;
        let path = super::make::path(number);
        let content = format!("{}branch {branch} was here\n", super::make::content(number));
        let (length, path) = (content.len(), Path::display(&path));
        write!(input, "M 100644 inline {path}\ndata {length}\n{content}\n")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::BranchedTree;
    use crate::bench::tree::made;

    #[test]
    fn both_ways_come_to_the_same_tree() {
        let directory = tempfile::tempdir().unwrap();
        let tree = made(&directory.path().join("tree"), 1000).unwrap();
        let branched = BranchedTree::new(&tree).unwrap();
        let (_, order) = branched.plan().unwrap();
        let (_, ours) = branched.land(&order, 0).unwrap();
        let (_, by_hand) = branched.land_by_hand().unwrap();
        assert_eq!(ours, by_hand);
    }
}
