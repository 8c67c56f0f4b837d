//! Bringing the work of several onto one branch, step by step: what is asked of git, and what it found.
//!
//! Data alone. What a source is, in which order they come and what follows from a conflict is the mode's
//! affair; how git does it is the performer's.

use kapi_check::rules::proof::verify_run::VerifyRun;
use kapi_core::id::GoalId;
use kapi_core::isolation::{NetworkMode, SandboxLevel};
use kapi_core::mode::Mode;
use kapi_core::text::counted;
use serde::{Deserialize, Serialize};

use crate::rules::batch::mechanical::ConflictRule;

/// How a source's change comes onto the branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MergeMethod {
    /// A merge commit, which keeps the proved commits in the history.
    Merge,
    /// Each commit again, but those whose change is there already.
    Rebase,
    /// Each commit again, naming the commit that it was.
    CherryPick,
}

impl MergeMethod {
    /// Every method.
    pub const ALL: [Self; 3] = [Self::Merge, Self::Rebase, Self::CherryPick];

    /// Returns the name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Merge => "merge",
            Self::Rebase => "rebase",
            Self::CherryPick => "cherry-pick",
        }
    }
}

/// A source as far as git is concerned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CombinedSource {
    /// Whose work it is.
    pub id: GoalId,
    /// The branch that holds it.
    pub branch: String,
    /// The commit that it was begun on.
    pub base: String,
    /// The proved commit.
    pub commit: String,
}

/// One step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CombineStep {
    /// Look at the integration branch and at every source, and try every pair. Changes nothing.
    Inspect {
        /// The sources.
        sources: Vec<CombinedSource>,
        /// A person's own rules for conflicts.
        rules: Vec<ConflictRule>,
    },
    /// Put a source's change on a commit, and the workflow's branch there.
    Apply(SourceApplication),
    /// Have tools write files anew on a commit. Moves no branch.
    Regenerate(FileRegeneration),
    /// Make of files in which a conflict was resolved the commit that it stopped at, and put the
    /// workflow's branch there.
    Settle {
        /// What was applied.
        application: SourceApplication,
        /// The commit whose files are the resolution.
        resolution: String,
        /// Why it is one, to be remembered with it.
        rationale: String,
    },
    /// Put sources on a commit, one after the other, without moving any branch.
    Try {
        /// The commit.
        onto: String,
        /// The sources.
        sources: Vec<CombinedSource>,
        /// The time of the commits, in seconds since the epoch.
        at_s: i64,
    },
    /// Trace what a result changed to the sources that it came from.
    Trace {
        /// The commit before all of them.
        base: String,
        /// The result.
        head: String,
        /// Each source, with the commit before and after it came onto the branch.
        steps: Vec<TracedStep>,
    },
    /// Record in each workflow that its work was taken over.
    Mark {
        /// The workflows; goals keep no record of it.
        workflows: Vec<MarkedWorkflow>,
    },
}

/// One source that is put on the branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceApplication {
    /// The source.
    pub source: CombinedSource,
    /// How.
    pub method: MergeMethod,
    /// The workflow's branch.
    pub branch: String,
    /// The commit at which it began.
    pub first: String,
    /// Where it is.
    pub at: String,
    /// The commit that the change is put on.
    pub onto: String,
    /// The message of a commit that has to be made.
    pub message: String,
    /// Its author and committer time, in seconds since the epoch.
    pub at_s: i64,
    /// A person's own rules for conflicts.
    pub rules: Vec<ConflictRule>,
}

/// Files that tools write, on a commit in which everything else is as it is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileRegeneration {
    /// What was applied.
    pub application: SourceApplication,
    /// The commit.
    pub commit: String,
    /// Each file with the shell line that writes it, run beside it.
    pub files: Vec<GeneratedPath>,
    /// Milliseconds one line may take.
    pub timeout_ms: u64,
    /// The isolation.
    pub sandbox: SandboxLevel,
    /// What a line can reach where what was downloaded before is not enough.
    pub network: NetworkMode,
}

/// A file that a tool writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GeneratedPath {
    /// The file.
    pub path: String,
    /// The shell line.
    pub line: String,
}

/// How a tool wrote a file anew.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RegenerationRun {
    /// The file.
    pub path: String,
    /// How the tool ended.
    pub run: VerifyRun,
}

/// A source as it came onto the branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TracedStep {
    /// The source.
    pub source: CombinedSource,
    /// The commit before it.
    pub before: String,
    /// The commit after it.
    pub after: String,
    /// The paths of a conflict that was resolved on the way.
    pub resolved: Vec<String>,
    /// Those of them that tools wrote anew.
    pub generated: Vec<String>,
}

/// A workflow whose work was taken over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MarkedWorkflow {
    /// Its mode.
    pub mode: Mode,
    /// Which.
    pub id: GoalId,
}

/// What a step found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CombineReport {
    /// What there is.
    Inspected(Box<Foresight>),
    /// Something is not as it was; each in words.
    Unfit {
        /// What.
        reasons: Vec<String>,
    },
    /// The change is on the branch.
    Applied {
        /// The branch's commit now.
        head: String,
        /// Its tree.
        tree: String,
        /// What did not fit and was settled by rules alone.
        by_rule: Vec<ConflictedPath>,
    },
    /// The change does not fit; the branch is at a commit with the conflict in its files.
    Conflicted {
        /// That commit.
        at: String,
        /// What does not fit.
        paths: Vec<ConflictedPath>,
    },
    /// Tools wrote files anew.
    Regenerated {
        /// The commit with them; nothing where a tool failed.
        commit: Option<String>,
        /// How each tool ended, up to the first that failed.
        runs: Vec<RegenerationRun>,
    },
    /// The source cannot come onto the branch by that method.
    MethodUnfit {
        /// Why.
        why: String,
    },
    /// The resolution is not one: conflict markers are left.
    MarkersLeft {
        /// Where.
        paths: Vec<String>,
    },
    /// Sources were tried together; no commit where they do not fit.
    Tried {
        /// The commit.
        commit: Option<String>,
    },
    /// What the result holds.
    Traced(Box<Coverage>),
    /// Every workflow knows.
    Marked,
}

/// What can be foreseen of sources that are to come together.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Foresight {
    /// Where the integration branch is.
    pub target: String,
    /// The order that is proposed, each source with why it comes where it does.
    pub order: Vec<OrderedSource>,
    /// Pairs that do not fit, tried with the whole of git's merge.
    pub clashes: Vec<PairClash>,
    /// Changes that two sources both make.
    pub duplicates: Vec<SameChange>,
    /// Paths of these pairs that a rule settles.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ruled: Vec<RuledPath>,
}

impl Foresight {
    /// Returns where two do not fit; the integration branch is `None`.
    #[must_use]
    pub fn clash(&self, one: Option<&GoalId>, other: Option<&GoalId>) -> Option<&PairClash> {
        self.clashes.iter().find(|it| {
            let (a, b) = (it.one.as_ref(), Some(&it.other));
            (a == one && b == other) || (a == other && b == one)
        })
    }

    /// Returns the integration branch and the sources, in the order that is proposed.
    #[must_use]
    pub fn sides(&self) -> Vec<Option<&GoalId>> {
        let sources = self.order.iter().map(|it| Some(&it.source));
        std::iter::once(None).chain(sources).collect()
    }
}

/// A path whose conflict a rule settles.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RuledPath {
    /// The path.
    pub path: String,
    /// The rule.
    pub rule: ConflictRule,
}

/// A source in an order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OrderedSource {
    /// The source.
    pub source: GoalId,
    /// The sources whose work it was begun on.
    pub after: Vec<GoalId>,
    /// Why it comes here.
    pub why: String,
}

/// Two that do not fit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PairClash {
    /// The one; `None` for the integration branch.
    pub one: Option<GoalId>,
    /// The other.
    pub other: GoalId,
    /// The first of the paths, sorted.
    pub paths: Vec<String>,
}

/// A change that two sources both make.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SameChange {
    /// The one.
    pub one: GoalId,
    /// The other.
    pub other: GoalId,
    /// The one's commit.
    pub commit: String,
}

/// A path where two changes do not fit, by the contents that met there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConflictedPath {
    /// The path.
    pub path: String,
    /// The object before both; `None` where there was no file.
    pub base: Option<String>,
    /// The object on the branch.
    pub ours: Option<String>,
    /// The object of the source.
    pub theirs: Option<String>,
    /// How a rule settles it, where one does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by_rule: Option<String>,
    /// The shell line that writes the file anew once everything else is settled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub regenerate: Option<String>,
    /// How the same contents were put together before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remembered: Option<RememberedChoice>,
}

/// How the same contents were put together before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RememberedChoice {
    /// The commit that keeps it.
    pub commit: String,
    /// Why it was done so.
    pub rationale: String,
    /// What the file became; empty where it went.
    pub text: String,
}

/// What of the sources is in a result, and what is in it beside them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Coverage {
    /// The result.
    pub head: String,
    /// Hunks of the result.
    pub n_hunks: u64,
    /// Of these, how many are a source's, line by line.
    pub n_traced: u64,
    /// Hunks of each source, and how many of them are in the result.
    pub sources: Vec<SourceCoverage>,
    /// What is not accounted for mechanically.
    pub findings: Vec<CoverageFinding>,
    /// How many findings there were beyond those that are kept.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub n_more: u64,
}

/// How much of a source is in a result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SourceCoverage {
    /// The source.
    pub source: GoalId,
    /// Its hunks.
    pub n_hunks: u64,
    /// Of these, how many are in the result.
    pub n_there: u64,
}

/// Something that is not accounted for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CoverageFinding {
    /// What is wrong with it.
    pub kind: CoverageFault,
    /// Whose change it is, where it is one's.
    pub source: Option<GoalId>,
    /// The file.
    pub path: String,
    /// The first line, in the result where it is there.
    pub line: u64,
    /// What, in a few words.
    pub what: String,
}

/// What may be wrong with a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CoverageFault {
    /// A source's change is not in the result.
    Missed,
    /// Only a part of it is.
    Altered,
    /// It is there twice.
    Duplicated,
    /// Several sources make it, and it is there once.
    Shared,
    /// An earlier source or the integration branch brought it, and a later step took it away.
    Reverted,
    /// No source brought it.
    Unexpected,
}

impl CoverageFault {
    /// Tells whether somebody has to say what it is for before the result may land.
    #[must_use]
    pub const fn needs_justification(self) -> bool {
        !matches!(self, Self::Shared)
    }

    /// Says it in a word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Missed => "missed",
            Self::Altered => "altered",
            Self::Duplicated => "duplicated",
            Self::Shared => "shared",
            Self::Reverted => "reverted by the merge",
            Self::Unexpected => "unexpected",
        }
    }
}

impl CombineStep {
    /// Says what it does, in a few words.
    #[must_use]
    pub fn words(&self) -> String {
        match self {
            Self::Inspect { sources, .. } => {
                format!("comparing {}", counted(sources.len(), "source"))
            }
            Self::Apply(asked) => format!("applying {}", asked.source.id),
            Self::Regenerate(asked) => {
                let paths: Vec<&str> = asked.files.iter().map(|it| it.path.as_str()).collect();
                format!("writing {} anew", paths.join(", "))
            }
            Self::Settle { application, .. } => {
                format!("settling the conflict of {}", application.source.id)
            }
            Self::Try { sources, .. } => {
                let names: Vec<String> = sources.iter().map(|it| it.id.to_string()).collect();
                format!("trying {} alone", names.join(" and "))
            }
            Self::Trace { .. } => "tracing every hunk to its source".to_owned(),
            Self::Mark { workflows } => format!(
                "marking {} as integrated",
                counted(workflows.len(), "workflow")
            ),
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it over so")]
const fn is_zero(n: &u64) -> bool {
    *n == 0
}
