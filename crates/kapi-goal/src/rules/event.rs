//! Every fact that can stand in a goal's log.
//!
//! Tags are explicit and stable; a variant is only ever added. The envelope (sequence, time,
//! actor, hash) belongs to the store.

use kapi_check::rules::proof::verify_report::VerifyReport;
use kapi_core::agent_end::{AgentRun, ProviderFailure};
use kapi_core::evidence::EvidenceFile;
use kapi_core::failure::Failure;
use kapi_core::id::{EffectId, GoalId};
use kapi_core::usage::Usage;
use kapi_core::verdict::JudgeRun;
use serde::{Deserialize, Serialize};

use crate::rules::budget::{BudgetLimit, Raise};
use crate::rules::consent::RefusedCommand;
use crate::rules::contract::Contract;
use crate::rules::journey::TurnDeclaration;
use crate::rules::outcome::GoalCandidate;
use crate::rules::plan::delta::PlanDelta;
use crate::rules::plan::task::{PlanTaskId, TaskPhase};
use crate::rules::wait::GoalWait;

mod account;

/// A recorded fact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    tag = "type",
    content = "data",
    rename_all = "snake_case",
    deny_unknown_fields
)]
pub enum GoalEvent {
    /// A contract was proposed.
    GoalCreated {
        /// The goal's id.
        id: GoalId,
        /// The contract.
        contract: Box<Contract>,
        /// SHA-256 of the contract's canonical JSON.
        contract_hash: String,
        /// Milliseconds since the epoch.
        at_ms: i64,
        /// Whether an agent drafts the contract first.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        setup: bool,
    },
    /// Another contract takes the place of the one that was not approved yet.
    ContractDrafted {
        /// The contract.
        contract: Box<Contract>,
        /// SHA-256 of the contract's canonical JSON.
        contract_hash: String,
    },
    /// The drafting agent's run is over.
    SetupEnded {
        /// How it went.
        run: AgentRun,
        /// Milliseconds since the last report.
        elapsed_ms: u64,
    },
    /// A person approved the contract with this hash.
    ContractApproved {
        /// The hash that was approved.
        contract_hash: String,
        /// How the approval was given.
        means: ApprovalMeans,
    },
    /// An effect is about to be performed.
    EffectIntended {
        /// Its id.
        effect: EffectId,
        /// Milliseconds since the epoch.
        at_ms: i64,
    },
    /// A running effect used something.
    EffectProgressed {
        /// Its id.
        effect: EffectId,
        /// Used since the last report.
        usage: Usage,
        /// Milliseconds since the last report.
        elapsed_ms: u64,
    },
    /// What a run wrote was hashed, before what came of it is recorded. The last record of a run
    /// holds: a run that is performed again adds to its files.
    RunRecorded {
        /// The effect whose run it is.
        effect: EffectId,
        /// Every file of its directory.
        files: Vec<EvidenceFile>,
    },
    /// The worktree and branch exist.
    WorkspaceCreated {
        /// Where the worktree is.
        path: String,
        /// Milliseconds since the last report.
        elapsed_ms: u64,
    },
    /// The verify commands ran on the base.
    BaselineEnded {
        /// What they showed there.
        report: VerifyReport,
        /// Milliseconds since the last report.
        elapsed_ms: u64,
    },
    /// An agent's turn is over.
    AgentEnded {
        /// How it went.
        run: AgentRun,
        /// Milliseconds since the last report.
        elapsed_ms: u64,
    },
    /// The provider of executor or judge failed; the effect is tried again after `retry_at_ms`.
    ProviderFailed {
        /// What failed.
        failure: ProviderFailure,
        /// Used all the same.
        usage: Usage,
        /// When it is tried again, in milliseconds since the epoch; `None` if it is not.
        retry_at_ms: Option<i64>,
        /// Milliseconds since the last report.
        elapsed_ms: u64,
    },
    /// The wait is over.
    WaitEnded,
    /// The workspace was recorded as a commit on the base.
    CandidateCommitted {
        /// The commit.
        candidate: GoalCandidate,
        /// Milliseconds since the last report.
        elapsed_ms: u64,
    },
    /// The verify commands ran.
    VerifyEnded {
        /// What they showed.
        report: VerifyReport,
        /// Milliseconds since the last report.
        elapsed_ms: u64,
    },
    /// A judge gave a verdict.
    JudgeEnded {
        /// What it said.
        run: JudgeRun,
        /// Milliseconds since the last report.
        elapsed_ms: u64,
    },
    /// A judge could not be asked or understood.
    JudgeFailed {
        /// What came instead.
        run: JudgeRun,
        /// When it is asked again, in milliseconds since the epoch; `None` if it is not.
        retry_at_ms: Option<i64>,
        /// Milliseconds since the last report.
        elapsed_ms: u64,
    },
    /// The turn came to a verdict other than done.
    TurnEnded {
        /// Its number, from 1.
        turn: u32,
        /// Why it is not done.
        verdict: TurnVerdict,
    },
    /// The branch points at the commit that was proved or accepted.
    GoalDone {
        /// That commit.
        commit: String,
        /// Whether a verify command proved it.
        verified: bool,
        /// Milliseconds since the last report.
        elapsed_ms: u64,
    },
    /// The goal does not go on by itself.
    GoalStopped {
        /// Which way it stopped.
        stop: Stop,
    },
    /// An effect ended because it was no longer wanted.
    EffectCancelled {
        /// Its id.
        effect: EffectId,
        /// Used since the last report.
        usage: Usage,
        /// The agent's session, where one had begun.
        session: Option<String>,
        /// Milliseconds since the last report.
        elapsed_ms: u64,
    },
    /// A person let it go on.
    GoalResumed,
    /// A person does not accept the result, and it goes on.
    GoalReopened {
        /// Why.
        reason: String,
    },
    /// The agent made its task list.
    PlanMade {
        /// The list.
        delta: PlanDelta,
    },
    /// The agent changed its task list.
    Replanned {
        /// What changed, and why.
        delta: PlanDelta,
    },
    /// The agent changed one task.
    TaskUpdated {
        /// The task.
        id: PlanTaskId,
        /// What changed.
        delta: PlanDelta,
    },
    /// The agent noted progress.
    ProgressNoted {
        /// One line.
        note: String,
        /// The phase from now on.
        phase: Option<TaskPhase>,
        /// Milliseconds since the epoch.
        at_ms: i64,
    },
    /// The agent declared how its turn stands.
    TurnDeclared {
        /// What it declared.
        declared: TurnDeclaration,
    },
    /// The agent distilled the journey.
    JourneyDistilled {
        /// Markdown.
        markdown: String,
    },
    /// The account of a goal that is done is left to Kapi.
    DistillSkipped,
    /// The distilling agent's run is over.
    DistillEnded {
        /// What it used.
        usage: Usage,
        /// Milliseconds since the last report.
        elapsed_ms: u64,
    },
    /// A person said something to the agent.
    PersonSaid {
        /// What.
        text: String,
    },
    /// A person asked something beside the work.
    SideQuestionAnswered {
        /// The question.
        question: String,
        /// The answer, capped.
        answer: String,
        /// What it used.
        usage: Usage,
    },
    /// A command was refused, because a person has to be asked first.
    ConsentAsked {
        /// The command and the entry of the contract's list that it matches.
        asked: RefusedCommand,
    },
    /// A person allowed it.
    ConsentGiven {
        /// The entry, or what was waited for.
        what: String,
    },
    /// The goal is parked.
    GoalParked {
        /// On what.
        wait: GoalWait,
    },
    /// The wait has ended, and it goes on.
    GoalWoken {
        /// The wait's number.
        number: u32,
        /// What ended it, in words.
        why: String,
    },
    /// A person set the number of turns.
    TurnsSet {
        /// The limit from now on.
        turns: u32,
    },
    /// A person named another judge.
    JudgeChanged {
        /// Who judges from now on.
        judge: String,
    },
    /// A person raised the limits.
    BudgetRaised {
        /// By how much.
        raise: Raise,
    },
}

/// How an approval was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalMeans {
    /// Typed at a terminal after the contract was shown.
    Terminal,
    /// Given with `--yes`.
    YesFlag,
    /// Given by naming the hash.
    NamedHash,
    /// Given in advance, by the person's own autopilot preference.
    Autopilot,
    /// Given with the approval of the plan that the contract names.
    Plan,
    /// Given in a dialog of the person's own agent client, which showed the contract.
    Client,
}

/// Why a turn did not end in done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnVerdict {
    /// Protected files were changed.
    Tampered,
    /// A verify command failed.
    VerifyFailed,
    /// The visible checks passed and the hidden ones did not.
    HiddenFailed,
    /// The checks pass, with fewer tests than on the base.
    TestsVanished,
    /// The checks pass, and tests of the base were changed or removed.
    TestsChanged,
    /// The checks pass only with what the change made of the files that steer them.
    SteeringChanged,
    /// The checks pass, and cannot fail, or fail without code that looks like faking a pass.
    CodeFlagged,
    /// The judge wants more.
    JudgeContinue,
    /// The agent did not end its turn by itself.
    AgentFailed,
    /// The agent says that it needs a person, and no check says otherwise.
    AgentBlocked,
    /// Nothing was changed, and nothing else says that nothing had to be.
    NothingDone,
    /// The checks pass, and the agent's plan has tasks left.
    PlanOpen,
    /// The checks pass and the plan is worked off, and the agent did not claim the goal.
    Unclaimed,
    /// The agent has to wait.
    Waiting,
    /// A person spoke before the result was accepted.
    PersonSpoke,
    /// The agent of a session ended its turn and has not claimed the goal: nothing was proved yet.
    Unfinished,
}

impl TurnVerdict {
    /// Tells whether the no-progress breaker counts a turn that ended so.
    #[must_use]
    pub const fn is_counted(self) -> bool {
        match self {
            Self::Tampered
            | Self::VerifyFailed
            | Self::HiddenFailed
            | Self::TestsVanished
            | Self::TestsChanged
            | Self::SteeringChanged
            | Self::CodeFlagged
            | Self::JudgeContinue
            | Self::AgentFailed
            | Self::AgentBlocked
            | Self::NothingDone
            | Self::PlanOpen
            | Self::Unfinished => true,
            // These have an end of their own, or wait for something outside.
            Self::Unclaimed | Self::Waiting | Self::PersonSpoke => false,
        }
    }
}

/// A way to stop without being done, with its cause.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "stop", rename_all = "snake_case", deny_unknown_fields)]
pub enum Stop {
    /// A limit is used up.
    BudgetUsedUp {
        /// Which one.
        limit: BudgetLimit,
    },
    /// A person interrupted it.
    Interrupted,
    /// A cap on spending beyond this goal is used up.
    CapReached {
        /// Which, and how much of it, for people.
        cap: String,
    },
    /// The plan is worked off, and the agent was reminded in vain.
    CleanEnd {
        /// How often.
        nudges: u32,
    },
    /// The agent did nothing at all in its turn.
    SpinGuard,
    /// All that the agent did was refused, because a person has to be asked first.
    ConsentNeeded {
        /// The entry of the contract's list.
        pattern: String,
        /// The last refused command, capped.
        command: String,
    },
    /// A verify command cannot work where it is run, so nothing could be proved.
    ChecksCannotRun {
        /// The command.
        command: String,
        /// Why, as a fragment.
        reason: String,
        /// What mends it.
        remedy: String,
    },
    /// The drafting agent ended without a contract.
    NotDrafted {
        /// What it said last, capped.
        message: String,
    },
    /// Turns ended in trees and with verdicts that were there before.
    NoProgress {
        /// How many in a row.
        turns: u32,
    },
    /// Turns changed files, and the checks fail in the same way.
    SameFailure {
        /// How many in a row.
        turns: u32,
    },
    /// The agent says it needs a person.
    AgentBlocked {
        /// Why.
        reason: String,
    },
    /// The judge says a person is needed.
    JudgeBlocked {
        /// Why.
        reason: String,
    },
    /// The judge says the criteria cannot be met.
    Impossible {
        /// Why.
        reason: String,
    },
    /// No judge could be asked or understood.
    JudgeUnavailable {
        /// What came instead.
        reason: String,
    },
    /// The provider kept failing, or failed in a way that waiting does not mend.
    ProviderUnavailable {
        /// The last failure.
        failure: ProviderFailure,
    },
    /// The world refused an effect.
    WorldFailed {
        /// The refusal.
        failure: Failure,
    },
    /// A person cancelled it for good.
    Cancelled {
        /// Why, if it was said.
        reason: Option<String>,
    },
}
