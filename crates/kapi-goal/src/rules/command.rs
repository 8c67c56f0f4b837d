//! Every request that can be made of a goal, reports of finished effects included.
//!
//! A command is a wish: only the events that `decide` returns for it ever happened.

use kapi_core::evidence::EvidenceFile;
use kapi_core::id::{EffectId, GoalId};
use kapi_core::usage::Usage;

use crate::rules::budget::Raise;
use crate::rules::contract::Contract;
use crate::rules::event::ApprovalMeans;
use crate::rules::outcome::GoalOutcome;
use crate::rules::tool::ToolCall;
use crate::rules::wait::WaitFor;

/// A request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GoalCommand {
    /// Propose a contract under a new id.
    Create {
        /// The id.
        id: GoalId,
        /// The contract.
        contract: Box<Contract>,
        /// SHA-256 of the contract's canonical JSON.
        contract_hash: String,
        /// Whether an agent drafts the contract first.
        setup: bool,
    },
    /// Put another contract in the place of one that was not approved yet.
    Draft {
        /// The contract.
        contract: Box<Contract>,
        /// SHA-256 of the contract's canonical JSON.
        contract_hash: String,
    },
    /// Approve the contract with this hash.
    Approve {
        /// The hash that was shown.
        contract_hash: String,
        /// How the approval is given.
        means: ApprovalMeans,
    },
    /// Record that an effect is about to be performed.
    Intend {
        /// Its id.
        effect: EffectId,
    },
    /// Report what a running effect used.
    Progress {
        /// Its id.
        effect: EffectId,
        /// Used since the last report.
        usage: Usage,
        /// Milliseconds since the last report.
        elapsed_ms: u64,
    },
    /// Record the files of a run that is over, before how it ended is reported.
    RecordRun {
        /// The effect whose run it is.
        effect: EffectId,
        /// Every file of its directory.
        files: Vec<EvidenceFile>,
    },
    /// Report how an effect ended.
    Report {
        /// Its id.
        effect: EffectId,
        /// What came back.
        outcome: GoalOutcome,
        /// Milliseconds since the last report.
        elapsed_ms: u64,
    },
    /// Stop for now.
    Interrupt,
    /// Go on.
    Resume,
    /// Stop for good.
    Cancel {
        /// Why, if it is said.
        reason: Option<String>,
    },
    /// Raise the limits.
    RaiseBudget(Raise),
    /// What only a person asks of a goal.
    Person(PersonCommand),
    /// Call a tool.
    Tool(ToolCall),
    /// Record that a command was refused, because a person has to be asked first.
    AskConsent {
        /// The entry of the contract's list that it matches.
        pattern: String,
        /// The command.
        command: String,
    },
    /// End a wait.
    Wake {
        /// Its number.
        number: u32,
        /// What ended it, in words.
        why: String,
    },
    /// Record a question beside the work and its answer.
    AnswerSideQuestion {
        /// The question.
        question: String,
        /// The answer.
        answer: String,
        /// What it used.
        usage: Usage,
    },
}

/// What a person asks beside starting, stopping and raising.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PersonCommand {
    /// Set the number of turns.
    SetTurns {
        /// The limit from now on.
        turns: u32,
    },
    /// Not accept the result of a goal that is done.
    Reopen {
        /// Why.
        reason: String,
    },
    /// Say something to the agent.
    Say {
        /// What.
        text: String,
    },
    /// Allow what was asked about.
    Allow {
        /// The entry of the contract's list, or what is waited for.
        what: String,
    },
    /// Name another judge.
    ChangeJudge {
        /// Who judges from now on.
        judge: String,
    },
    /// Park the goal.
    Park {
        /// On what.
        until: WaitFor,
        /// Why.
        reason: Option<String>,
        /// Milliseconds after which it goes on all the same.
        timeout_ms: Option<u64>,
    },
}

impl PersonCommand {
    /// Returns what is asked, as it reads after "only a person may".
    #[must_use]
    pub const fn action(&self) -> &'static str {
        match self {
            Self::SetTurns { .. } => "set the number of turns",
            Self::Reopen { .. } => "reopen a goal",
            Self::Say { .. } => "send the agent a message",
            Self::Allow { .. } => "approve a request of the agent",
            Self::ChangeJudge { .. } => "change the judge of a goal",
            Self::Park { .. } => "park a goal",
        }
    }
}
