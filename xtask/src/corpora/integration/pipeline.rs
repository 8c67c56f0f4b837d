//! The way of Integrate through one repository: order, apply, verify, blame, evict, compare, land.
//!
//! Every step is the product's own; here they only follow one another.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use kapi_check::perform::ecosystems;
use kapi_git::author::Author;
use kapi_git::changed_file::FileMode;
use kapi_git::coverage::{Coverage, CoverageFinding, CoveragePlan, IntegratedSource};
use kapi_git::id::CommitId;
use kapi_git::land::merge::{ConflictPath, ConflictSide, MergeConflict};
use kapi_git::land::source::{
    SettlePlan, SettledContent, SettledFile, SourceConflict, SourceOutcome, SourcePlan,
};
use kapi_git::markers::LeftoverMarker;
use kapi_git::repository::range::CommitRange;
use kapi_workflow::rules::batch::SourceDependency;
use kapi_workflow::rules::batch::bisection::{
    BisectionStep, Culprits, SetResult, SetResults, SourceBatch, next,
};
use kapi_workflow::rules::batch::mechanical::{ConflictRule, ConflictWay, defaults, rule_for};
use kapi_workflow::rules::batch::order::{ForeseenClash, SourceGraph, order};

use super::case::{CaseDraft, Settling};
use super::repository::CaseRepository;

/// When everything is made.
const AT: i64 = 1_700_000_100;
/// The most commits of a source.
const COMMITS_MAX: u32 = 50;

/// What came of integrating a repository.
#[derive(Debug, Default)]
pub(super) struct PipelineResult {
    /// Where `dev` is now, if everything that was left of the sources landed.
    pub(super) landed: Option<CommitId>,
    /// The conflict that nobody settled.
    pub(super) conflict: Option<MergeConflict>,
    /// Those who failed together and were evicted, in turn.
    pub(super) culprits: Vec<Culprits>,
    /// What is wrong with the result or not explained.
    pub(super) findings: Vec<CoverageFinding>,
    /// Markers that were left.
    pub(super) markers: Vec<LeftoverMarker>,
    /// How many times checks ran.
    pub(super) n_verified: usize,
}

/// Sources that were applied.
struct AppliedBatch {
    head: CommitId,
    sources: Vec<IntegratedSource>,
    /// The paths that a tool wrote anew, as a rule says: nothing in them is anybody's line.
    generated: BTreeSet<PathBuf>,
}

/// One way through.
pub(super) struct Pipeline<'a> {
    case: &'a CaseRepository,
    draft: &'a CaseDraft,
    author: Author,
    dev: CommitId,
    ranges: Vec<CommitRange>,
    dependencies: Vec<SourceDependency>,
    rules: Vec<ConflictRule>,
}

impl<'a> Pipeline<'a> {
    /// Reads the sources of a repository.
    pub(super) fn new(case: &'a CaseRepository, draft: &'a CaseDraft) -> anyhow::Result<Self> {
        let commit = |place: usize| case.commits.get(place).context("find a commit").cloned();
        let mut ranges = Vec::new();
        for source in &draft.sources {
            ranges.push(CommitRange {
                base: commit(source.base)?,
                commit: commit(source.tip)?,
            });
        }
        let rules = draft.rules.iter().map(|text| ConflictRule::parse(text));
        Ok(Self {
            case,
            draft,
            author: Author {
                name: "Kapi".to_owned(),
                email: "kapi@example.invalid".to_owned(),
            },
            dev: commit(draft.dev)?,
            ranges,
            dependencies: Vec::new(),
            rules: rules.collect::<Result<_, _>>()?,
        })
    }

    /// Goes the whole way.
    pub(super) fn run(&self) -> anyhow::Result<PipelineResult> {
        let mut result = PipelineResult::default();
        let mut order = self.order()?;
        let mut batch = match self.applied(&order)? {
            Ok(batch) => batch,
            Err(conflict) => {
                result.conflict = Some(conflict);
                return Ok(result);
            }
        };
        if let Some(change) = &self.draft.hand.afterwards {
            batch.head = self.case.changed(&batch.head, change)?;
        }
        let baseline = self.case.failing(&self.dev)?;
        while let Some(culprits) = self.blamed(&order, &batch, &baseline, &mut result)? {
            order.retain(|source| *source != culprits.source);
            result.culprits.push(culprits);
            match self.applied(&order)? {
                Ok(rest) => batch = rest,
                Err(conflict) => {
                    result.conflict = Some(conflict);
                    return Ok(result);
                }
            }
        }
        self.compare(&batch, &mut result)?;
        if result.findings.is_empty() && result.markers.is_empty() {
            let from = Some(&self.dev);
            self.case
                .repository
                .forward_branch("dev", from, &batch.head)?;
            result.landed = Some(batch.head);
        }
        Ok(result)
    }

    fn order(&self) -> anyhow::Result<Vec<usize>> {
        let tips: Vec<CommitId> = self.ranges.iter().map(|it| it.commit.clone()).collect();
        let clashes = self.case.repository.clashes(&tips, &self.case.scratch())?;
        let clashes: Vec<ForeseenClash> = clashes
            .iter()
            .map(|clash| ForeseenClash {
                one: clash.one,
                other: clash.other,
            })
            .collect();
        let placed = order(&SourceGraph {
            n_sources: tips.len(),
            dependencies: &self.dependencies,
            clashes: &clashes,
        })?;
        Ok(placed.into_iter().map(|one| one.source).collect())
    }

    /// Applies some sources to `dev`, one after another; or tells the conflict that nobody settles.
    fn applied(&self, sources: &[usize]) -> anyhow::Result<Result<AppliedBatch, MergeConflict>> {
        let mut batch = AppliedBatch {
            head: self.dev.clone(),
            sources: Vec::new(),
            generated: BTreeSet::new(),
        };
        for source in sources {
            let range = self.ranges.get(*source).context("find a source")?;
            if let Some(conflict) = self.apply(*source, range, &mut batch)? {
                return Ok(Err(conflict));
            }
            batch.sources.push(IntegratedSource {
                range: range.clone(),
                after: batch.head.clone(),
            });
        }
        Ok(Ok(batch))
    }

    /// Applies one source, or what is left of it; returns the conflict that nobody settles.
    fn apply(
        &self,
        source: usize,
        range: &CommitRange,
        batch: &mut AppliedBatch,
    ) -> anyhow::Result<Option<MergeConflict>> {
        let head = batch.head.clone();
        let plan = SourcePlan {
            head: &head,
            source: range,
            method: self.draft.sources[source].method,
            commits_max: COMMITS_MAX,
            message: "integrate a source\n",
            author: &self.author,
            at_unix_seconds: AT,
            scratch: &self.case.scratch(),
        };
        let conflict = match self.case.repository.apply_source(&plan)? {
            SourceOutcome::Applied(applied) => {
                batch.head = applied.head;
                return Ok(None);
            }
            SourceOutcome::Conflicted(conflict) => conflict,
        };
        let Some(head) = self.settled(&plan, &conflict, &mut batch.generated)? else {
            return Ok(Some(conflict.conflict));
        };
        batch.head = head;
        match &conflict.rest {
            Some(rest) => self.apply(source, rest, batch),
            None => Ok(None),
        }
    }

    /// Settles a conflict by its rules, otherwise by the careless hand of the case, if it has one.
    fn settled(
        &self,
        plan: &SourcePlan<'_>,
        conflict: &SourceConflict,
        generated: &mut BTreeSet<PathBuf>,
    ) -> anyhow::Result<Option<CommitId>> {
        let table = ecosystems::table().map_err(|failure| anyhow::anyhow!(failure.message))?;
        let defaults = defaults(table);
        let mut files = Vec::new();
        let mut anew = Vec::new();
        for path in &conflict.conflict.paths {
            let name = path.path.display().to_string();
            let way = rule_for(&name, &self.rules, &defaults).map(|rule| &rule.way);
            let bytes = match way {
                Some(ConflictWay::Union) => {
                    let scratch = self.case.scratch();
                    self.case.repository.union_of(path, &scratch)?
                }
                Some(ConflictWay::Ours) => self.side(path.ours.as_ref())?,
                Some(ConflictWay::Theirs) => self.side(path.theirs.as_ref())?,
                Some(ConflictWay::Regenerate { run }) => {
                    anew.push((path.path.clone(), run.clone()));
                    generated.insert(path.path.clone());
                    self.side(path.ours.as_ref())?
                }
                None => self.by_hand(conflict, path)?,
            };
            let Some(bytes) = bytes else {
                return Ok(None);
            };
            files.push(settled_file(path, bytes));
        }
        let settle = |files: &[SettledFile]| {
            self.case.repository.settle(&SettlePlan {
                source: *plan,
                conflict,
                files,
            })
        };
        let mut head = settle(&files)?;
        for (path, run) in anew {
            let written = self.regenerated(&head, &path, &run)?;
            for file in files.iter_mut().filter(|file| file.path == path) {
                let mode = FileMode::Plain;
                let bytes = written.clone();
                file.content = Some(SettledContent { mode, bytes });
            }
            head = settle(&files)?;
        }
        Ok(Some(head))
    }

    fn side(&self, side: Option<&ConflictSide>) -> anyhow::Result<Option<Vec<u8>>> {
        let read = |side: &ConflictSide| self.case.repository.blob(&side.object);
        Ok(side.map(read).transpose()?)
    }

    /// Settles one path as a careless person would.
    fn by_hand(
        &self,
        conflict: &SourceConflict,
        path: &ConflictPath,
    ) -> anyhow::Result<Option<Vec<u8>>> {
        match self.draft.hand.settles {
            None => Ok(None),
            Some(Settling::Ours) => self.side(path.ours.as_ref()),
            Some(Settling::Theirs) => self.side(path.theirs.as_ref()),
            Some(Settling::AsItLies) => {
                let name = format!("{}:{}", conflict.conflict.tree, path.path.display());
                let marked = self.case.repository.blob(&name)?;
                Ok(Some(marked))
            }
        }
    }

    /// Runs the command of a rule in a directory of its own, and returns the file that it writes.
    fn regenerated(&self, head: &CommitId, path: &Path, run: &str) -> anyhow::Result<Vec<u8>> {
        let clean = self.case.directory.root().join("anew");
        let script = format!(
            "rm -rf '{0}' && mkdir '{0}' && git archive {head} | tar x -C '{0}'",
            clean.display()
        );
        self.case.shell.must(&script)?;
        let beside = path.parent().map(|parent| clean.join(parent));
        let mut shell = self.case.shell.clone();
        shell.directory = beside.unwrap_or_else(|| clean.clone());
        shell.must(run)?;
        let file = clean.join(path);
        fs::read(&file).with_context(|| format!("read {}", file.display()))
    }

    /// Runs the checks on a batch, and on parts of it until it is known who is to blame.
    fn blamed(
        &self,
        order: &[usize],
        batch: &AppliedBatch,
        baseline: &BTreeSet<String>,
        result: &mut PipelineResult,
    ) -> anyhow::Result<Option<Culprits>> {
        let whole: BTreeSet<usize> = order.iter().copied().collect();
        let mut results = SetResults::new();
        let failed = self.case.failing(&batch.head)?;
        result.n_verified += 1;
        results.insert(whole, SetResult::Ran { failed });
        loop {
            let known = SourceBatch {
                order,
                dependencies: &self.dependencies,
                baseline,
            };
            let set = match next(&known, &results) {
                BisectionStep::Holds => return Ok(None),
                BisectionStep::Found(culprits) => return Ok(Some(culprits)),
                BisectionStep::Verify(set) => set,
            };
            let part: Vec<usize> = order
                .iter()
                .copied()
                .filter(|it| set.contains(it))
                .collect();
            let known = match self.applied(&part)? {
                Err(_) => SetResult::NoFit,
                Ok(part) => {
                    result.n_verified += 1;
                    let failed = self.case.failing(&part.head)?;
                    SetResult::Ran { failed }
                }
            };
            results.insert(set, known);
        }
    }

    /// Compares a result with what its sources bring.
    fn compare(&self, batch: &AppliedBatch, result: &mut PipelineResult) -> anyhow::Result<()> {
        let plan = CoveragePlan {
            dev: &self.dev,
            head: &batch.head,
            sources: &batch.sources,
            generated: &batch.generated,
            scratch: &self.case.scratch(),
        };
        let Coverage { findings, .. } = self.case.repository.coverage(&plan)?;
        let is_open = |finding: &CoverageFinding| finding.kind.needs_justification();
        result.findings = findings.into_iter().filter(is_open).collect();
        let mut sides = vec![self.dev.clone()];
        sides.extend(batch.sources.iter().map(|it| it.range.commit.clone()));
        let repository = &self.case.repository;
        result.markers = repository.leftover_markers(&sides, &batch.head)?;
        Ok(())
    }
}

fn settled_file(path: &ConflictPath, bytes: Vec<u8>) -> SettledFile {
    let mode = path.ours.as_ref().map_or(FileMode::Plain, |side| side.mode);
    SettledFile {
        path: path.path.clone(),
        content: Some(SettledContent { mode, bytes }),
    }
}
