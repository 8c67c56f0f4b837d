//! The stories: what the person does next in each, as a function of how things stand, so that
//! nothing has to be remembered over a death.
//!
//! Knows nothing of disks and crashes.

use kapi_core::actor::Actor;
use kapi_core::id::{GoalId, Slug};
use kapi_core::usage::Usage;
use kapi_core::workflow_status::Status;
use kapi_goal::rules::plan::task::TaskId;
use kapi_workflow::rules::command::Command;
use kapi_workflow::rules::evidence::{Evidence, Weight};
use kapi_workflow::rules::limits::{GoalAccount, Raised};
use kapi_workflow::rules::modes::interview::begin::InterviewBegin;
use kapi_workflow::rules::modes::interview::command::InterviewCommand;
use kapi_workflow::rules::modes::interview::round::Provenance;
use kapi_workflow::rules::modes::interview::state::{Interview, InterviewPhase};
use kapi_workflow::rules::modes::ralph::begin::RalphBegin;
use kapi_workflow::rules::modes::ralph::command::RalphCommand;
use kapi_workflow::rules::modes::ralph::state::{Ralph, Stand};
use kapi_workflow::rules::modes::{Begin, Body, ModeCommand};
use kapi_workflow::rules::state::Workflow;

/// A story.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tale {
    /// An interview, the build that goes on from it, and a workflow that is given up.
    Whole,
    /// A build that nobody agrees about, that is sent back until a person looks, and that is
    /// integrated in the end.
    Rough,
}

/// What comes next.
pub(super) enum Next<'a> {
    /// A workflow begins.
    Start(&'static str, Begin),
    /// A workflow is looked at for a moment and given up.
    GiveUp(&'a Workflow),
    /// A workflow is driven, and then the person looks at it.
    Drive(&'a Workflow),
}

/// What somebody does.
pub(super) enum Deed {
    /// Somebody asks for something.
    Command(Actor, Command),
    /// The person approves the artifact with this hash, and its risks.
    Approve(String),
}

impl Tale {
    /// Every story.
    pub const ALL: [Self; 2] = [Self::Whole, Self::Rough];

    /// Returns the story that a workflow belongs to.
    pub(super) fn of(workflow: &Workflow) -> Self {
        if workflow.purpose.starts_with("Mend") {
            Self::Rough
        } else {
            Self::Whole
        }
    }

    /// Returns where its last workflow stands when it has ended.
    pub(super) const fn end(self) -> Status {
        match self {
            Self::Whole => Status::Completed,
            Self::Rough => Status::Integrated,
        }
    }

    /// Returns what comes next.
    pub(super) fn next(self, known: &[Workflow]) -> Next<'_> {
        let of = |purpose: &str| known.iter().find(|w| w.purpose.starts_with(purpose));
        match self {
            Self::Whole => {
                let Some(interview) = of("Keep") else {
                    return Next::Start("Keep sessions over a crash", interview_begin());
                };
                match (of("Give"), of("Build")) {
                    (None, _) => Next::Start("Give everything another colour", interview_begin()),
                    (Some(other), _) if !other.status.is_terminal() => Next::GiveUp(other),
                    (Some(_), None) if is_at_branch(interview) => {
                        let begin = ralph_begin(Some(interview.id.clone()));
                        Next::Start("Build the store of sessions", begin)
                    }
                    (Some(_), None) => Next::Drive(interview),
                    (Some(_), Some(build)) => Next::Drive(build),
                }
            }
            Self::Rough => match of("Mend") {
                None => Next::Start("Mend the store of sessions", ralph_begin(None)),
                Some(build) => Next::Drive(build),
            },
        }
    }

    /// Returns what somebody does to a workflow that came to rest; `None` where nothing waits.
    pub(super) fn deed(self, workflow: &Workflow) -> Option<Deed> {
        match (self, &workflow.body) {
            (Self::Rough, Body::Ralph(ralph)) => rough(workflow, ralph),
            (Self::Whole | Self::Rough, _) => whole(workflow),
        }
    }
}

/// Returns the person of every story.
pub(super) fn person() -> Actor {
    let user = "user".to_owned();
    Actor::Human { user }
}

fn by_person(command: Command) -> Option<Deed> {
    Some(Deed::Command(person(), command))
}

fn whole(workflow: &Workflow) -> Option<Deed> {
    if workflow.status == Status::Blocked {
        return by_person(Command::Unblock {});
    }
    if workflow.status.is_terminal() {
        return None;
    }
    if let Some(pending) = &workflow.pending {
        if workflow.revisions.is_empty() {
            let text = "Smaller.".to_owned();
            return by_person(Command::Revise { text });
        }
        return Some(Deed::Approve(pending.sha256.clone()));
    }
    match &workflow.body {
        Body::Interview(interview) => answer(interview),
        Body::Ralph(_) => None,
    }
}

fn rough(workflow: &Workflow, ralph: &Ralph) -> Option<Deed> {
    match workflow.status {
        Status::Completed => {
            let by = GoalId::new(900, Slug::from_sentence("integrate"));
            let command = Command::MarkIntegrated { by };
            Some(Deed::Command(Actor::Engine, command))
        }
        Status::Failed | Status::Abandoned | Status::Linked | Status::Integrated => None,
        Status::Active | Status::Blocked if !workflow.evidence.iter().any(is_note) => {
            let run = "001-mend.t001-thesis-a1".to_owned();
            let command = Command::RecordEvidence(Box::new(note()));
            Some(Deed::Command(Actor::Agent { run }, command))
        }
        Status::Active => {
            let pending = workflow.pending.as_ref()?;
            Some(Deed::Approve(pending.sha256.clone()))
        }
        Status::Blocked => {
            let unseen = workflow.workers.first().filter(|w| w.terminal.is_none());
            if let Some(worker) = unseen {
                let command = Command::RefreshWorker {
                    worker: worker.id.clone(),
                    note: Some("It can be watched.".to_owned()),
                    terminal: Some("kapi:1".to_owned()),
                    isolated: None,
                };
                return Some(Deed::Command(Actor::Engine, command));
            }
            if workflow.raised.is_zero() {
                let more = Raised {
                    tokens: 1_000,
                    usd_micros: 0,
                    wall_ms: 0,
                };
                return by_person(Command::RaiseLimits { more });
            }
            if workflow.goals.is_empty() {
                return Some(Deed::Command(Actor::Engine, goal_use()?));
            }
            by_person(match rested(ralph) {
                Some(task) => Command::Mode(ModeCommand::Ralph(RalphCommand::Retry { task })),
                None => Command::Unblock {},
            })
        }
    }
}

fn rested(ralph: &Ralph) -> Option<TaskId> {
    let mut tasks = ralph.tasks.values();
    let rested = tasks.find(|state| matches!(state.stand, Stand::Rested { .. }));
    rested.map(|state| state.task.id.clone())
}

/// What a goal of the first task says of itself.
fn goal_use() -> Option<Command> {
    Some(Command::RecordGoalUse {
        goal: GoalId::new(111, Slug::from_sentence("work")),
        account: GoalAccount {
            task: TaskId::parse("T-001").ok()?,
            attempt: 1,
            used: Usage {
                input_tokens: 7,
                output_tokens: 3,
                usd_micros: None,
            },
        },
    })
}

fn is_note(evidence: &Evidence) -> bool {
    evidence.kind == "note"
}

fn note() -> Evidence {
    Evidence {
        weight: Weight::Narrative,
        kind: "note".to_owned(),
        summary: "The store was seen to lose a session.".to_owned(),
        reference: "file:notes.md".to_owned(),
        command: None,
        exit_code: None,
        role: None,
        verdict: None,
        phase: None,
        artifacts: Vec::new(),
        worker: None,
        verifier: None,
        at_ms: 0,
    }
}

fn answer(interview: &Interview) -> Option<Deed> {
    let asked = match interview.open().map(|open| open.number) {
        Some(3) => InterviewCommand::Defer {
            round: 3,
            reason: None,
        },
        Some(4) => InterviewCommand::Withdraw {
            round: 4,
            reason: "Not now.".to_owned(),
        },
        Some(10..) => InterviewCommand::Enough {},
        Some(round) => InterviewCommand::Answer {
            round,
            text: if round == 7 {
                String::new()
            } else {
                format!("As {round} says.")
            },
            provenance: Provenance::Person,
        },
        None if interview.phase == InterviewPhase::Branch => InterviewCommand::Reopen {
            reason: "One more thing.".to_owned(),
        },
        None => return None,
    };
    by_person(Command::Mode(ModeCommand::Interview(asked)))
}

/// Tells whether the interview was approved for the second time.
fn is_at_branch(workflow: &Workflow) -> bool {
    match &workflow.body {
        Body::Interview(interview) => {
            interview.phase == InterviewPhase::Branch && workflow.approvals.len() > 1
        }
        Body::Ralph(_) => false,
    }
}

fn interview_begin() -> Begin {
    Begin::Interview(InterviewBegin {
        commit: Some("0".repeat(40)),
    })
}

fn ralph_begin(interview: Option<GoalId>) -> Begin {
    Begin::Ralph(RalphBegin {
        base: "0".repeat(40),
        interview,
        spec: None,
    })
}
