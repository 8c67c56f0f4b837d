//! The last line of `kapi run --json`: how a goal came out.

use kapi_check::rules::proof::assess::Grade;
use kapi_check::rules::proof::inspection::Inspection;
use kapi_check::rules::proof::verify_report::VerifyReport;
use kapi_check::rules::proof::verify_run::{Checks, VerifyRun};
use kapi_core::usage::{Doubt, Usage};
use kapi_core::verdict::{JudgeAnswer, JudgeRun};
use kapi_goal::rules::contract::Contract;
use kapi_goal::rules::state::Goal;
use kapi_goal::rules::words;
use schemars::JsonSchema;
use serde::Serialize;

/// How a goal came out, or where it stands.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ResultView {
    /// Always `result`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// The goal's id, `NNN-slug`.
    pub id: String,
    /// `done`, `unverified`, `blocked`, `stalled`, `paused`, `impossible`, `cancelled`.
    pub status: &'static str,
    /// The branch that receives a proved commit; it stays at the base until then.
    pub branch: String,
    /// The commit that was proved or accepted.
    pub commit: Option<String>,
    /// The work so far as a commit, proved or not.
    pub candidate: Option<String>,
    /// The worktree.
    pub worktree: Option<String>,
    /// The isolation, `native` or `none`.
    pub sandbox: String,
    /// Turns that came to a verdict.
    pub turns: u32,
    /// What executor and judge used.
    pub usage: UsageView,
    /// Milliseconds during which something was being performed.
    pub wall_ms: u64,
    /// The last verification.
    pub verify: Vec<VerifyView>,
    /// What the verify commands showed on the base.
    pub baseline: Vec<VerifyView>,
    /// How much the last verification shows: `red_to_green`, `own_tests`, `kept_green` or
    /// `base_unknown`; `null` where a check fails.
    #[schemars(skip)]
    pub grade: Option<Grade>,
    /// What the work does to the checks themselves.
    #[schemars(skip)]
    pub inspection: Option<Inspection>,
    /// Protected files that the work changes.
    pub tampered: Vec<String>,
    /// The last judgement.
    pub judge: Option<JudgeView>,
    /// One sentence on why it stands where it does.
    pub reason: Option<String>,
    /// What to do about it, where there is something to do.
    pub hint: Option<String>,
    /// What a person can type next.
    pub next: Vec<String>,
}

/// A contract that waits for its person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ApprovalNeededView<'a> {
    /// Always `approval_needed`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// The goal's id, `NNN-slug`.
    pub goal: String,
    /// The contract.
    #[schemars(skip)]
    pub contract: &'a Contract,
    /// SHA-256 of the contract's canonical JSON: what an approval names.
    pub contract_hash: &'a str,
    /// The command line that approves it.
    pub approve: String,
}

/// Tokens and money.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct UsageView {
    /// Tokens read by the model.
    pub input_tokens: u64,
    /// Tokens written by the model.
    pub output_tokens: u64,
    /// US dollars; `null` where the agent does not report it.
    pub usd: Option<f64>,
    /// What of these is not certain; left out where all is.
    #[serde(skip_serializing_if = "Doubt::is_none")]
    #[schemars(skip)]
    pub doubt: Doubt,
}

/// One verify command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct VerifyView {
    /// The shell command.
    pub command: String,
    /// Its exit code; `null` if it was killed.
    pub exit_code: Option<i32>,
    /// The tree it ran on.
    pub tree: String,
    /// Whether the hidden checks were in the checkout.
    pub hidden: bool,
    /// Whether it was killed at its time limit.
    pub timed_out: bool,
    /// Milliseconds it took.
    pub duration_ms: u64,
    /// The end of its output.
    pub output_tail: String,
}

/// One judgement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct JudgeView {
    /// The agent that was asked.
    pub by: String,
    /// `done`, `continue`, `blocked`, `impossible`, `unavailable` or `malformed`.
    pub verdict: &'static str,
    /// Why.
    pub reason: String,
}

impl From<Usage> for UsageView {
    fn from(usage: Usage) -> Self {
        #[expect(
            clippy::cast_precision_loss,
            reason = "money below 2^53 millionths is exact"
        )]
        let usd = usage.usd_micros.map(|micros| micros as f64 / 1_000_000.0);
        Self {
            input_tokens: usage.input_tokens,
            output_tokens: usage.output_tokens,
            usd,
            doubt: usage.doubt,
        }
    }
}

impl VerifyView {
    /// Returns every run of a report.
    #[must_use]
    pub fn all(report: &VerifyReport) -> Vec<Self> {
        let runs = report.runs.iter();
        runs.map(|run| Self::new(run, &report.tree)).collect()
    }

    fn new(run: &VerifyRun, tree: &str) -> Self {
        Self {
            command: run.command.clone(),
            exit_code: run.exit_code,
            tree: tree.to_owned(),
            hidden: run.checks == Checks::Hidden,
            timed_out: run.timed_out,
            duration_ms: run.duration_ms,
            output_tail: run.output_tail.clone(),
        }
    }
}

impl From<&JudgeRun> for JudgeView {
    fn from(run: &JudgeRun) -> Self {
        let (verdict, reason) = match &run.answer {
            JudgeAnswer::Verdict { verdict, reason } => (verdict.as_str(), reason.clone()),
            JudgeAnswer::Malformed { text } => ("malformed", text.clone()),
            JudgeAnswer::Unavailable(failure) => ("unavailable", failure.message.clone()),
        };
        Self {
            by: run.by.clone(),
            verdict,
            reason,
        }
    }
}

impl From<&Goal> for ResultView {
    fn from(goal: &Goal) -> Self {
        let report = goal.verify.as_ref();
        Self {
            kind: "result",
            id: goal.id.to_string(),
            status: goal.status.as_str(),
            branch: goal.contract.branch.clone(),
            commit: goal.result.clone(),
            candidate: goal
                .candidate
                .as_ref()
                .map(|candidate| candidate.commit.clone()),
            worktree: goal.workspace.clone(),
            sandbox: goal.contract.sandbox.to_string(),
            turns: goal.spent.turns,
            usage: goal.spent.total().into(),
            wall_ms: goal.spent.wall_ms,
            verify: report.map_or_else(Vec::new, VerifyView::all),
            baseline: goal
                .baseline
                .as_ref()
                .map_or_else(Vec::new, VerifyView::all),
            grade: goal.grade(),
            inspection: report.map(|report| (*report.inspection).clone()),
            tampered: report.map_or_else(Vec::new, |report| report.tampered.clone()),
            judge: goal.judge.as_ref().map(JudgeView::from),
            reason: words::reason(goal),
            hint: words::hint(goal),
            next: words::next_commands(goal),
        }
    }
}
