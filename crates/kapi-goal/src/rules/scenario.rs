//! Stories for tests: steps that happen to a goal, and events as lines to compare.
//!
//! A step is turned into the command that a person, an agent or the engine would send.

use kapi_check::rules::proof::attribution::Attribution;
use kapi_check::rules::proof::fixture::{report, run};
use kapi_check::rules::proof::policy::CheckPolicy;
use kapi_check::rules::proof::verify_report::VerifyReport;
use kapi_check::rules::proof::verify_run::{Checks, VerifyRun};
use kapi_core::actor::Actor;
use kapi_core::agent_end::{AgentEnd, AgentRun, Claim, ProviderFailure, ProviderFailureKind};
use kapi_core::id::{EffectId, GoalId};
use kapi_core::isolation::{NetworkMode, SandboxLevel};
use kapi_core::judge::{Judge, JudgeUnavailable};
use kapi_core::usage::Usage;
use kapi_core::verdict::{JudgeAnswer, JudgeRun, JudgeVerdict};

use crate::rules::budget::Budget;
use crate::rules::command::GoalCommand;
use crate::rules::contract::{Base, CONTRACT_VERSION, Contract, Working};
use crate::rules::decide::decide;
use crate::rules::effect::next;
use crate::rules::event::{ApprovalMeans, GoalEvent, Stop};
use crate::rules::evolve::evolve;
use crate::rules::journey::TurnDeclaration;
use crate::rules::outcome::{GoalCandidate, GoalOutcome};
use crate::rules::state::Goal;
use crate::rules::tool::ToolCall;

/// Something that happens to a goal.
#[derive(Clone)]
pub(super) enum Step {
    /// A person asks.
    Person(GoalCommand),
    /// An agent asks.
    Agent(GoalCommand),
    /// The engine asks.
    Engine(GoalCommand),
    /// The agent whose turn it is calls a tool.
    Calls(ToolCall),
    /// The planned effect is intended and ends like this.
    Ends(GoalOutcome),
    /// The planned effect is intended.
    Begins,
    /// The effect under way ends like this.
    Reports(GoalOutcome),
    /// The effect under way uses tokens and milliseconds.
    Uses(u64, u64),
}

use Step::{Agent, Begins, Calls, Ends, Engine, Person, Reports, Uses};

/// The time at which everything happens, in milliseconds since the epoch.
const NOW_MS: i64 = 10_000;

pub(super) fn contract() -> Contract {
    Contract {
        version: CONTRACT_VERSION,
        intent: "make it work".to_owned(),
        done_criteria: "it works".to_owned(),
        verify: vec!["test".to_owned()],
        verify_timeout_ms: 1_000,
        verify_network: false,
        protect: Vec::new(),
        hidden: None,
        budget: Budget {
            turns: 3,
            tokens: Some(1_000),
            usd_micros: Some(1_000),
            wall_ms: Some(100_000),
        },
        stall_after: 2,
        turn_timeout_ms: 1_000,
        agent: "claude".to_owned(),
        models: Vec::new(),
        judge: Judge::Agent("codex".to_owned()),
        judge_unavailable: JudgeUnavailable::Closed,
        base: Base {
            revision: "HEAD".to_owned(),
            commit: "base".to_owned(),
            tree: "base-tree".to_owned(),
        },
        branch: "feat/goal-x".to_owned(),
        sandbox: SandboxLevel::Native,
        network: NetworkMode::Filtered,
        working: Working::default(),
        checks: CheckPolicy::default(),
        attribution: Attribution::default(),
        race: None,
        delivery: None,
    }
}

/// The goal of a contract that was just proposed.
pub(super) fn goal_of(contract: Contract) -> Goal {
    let mut state = None;
    play(&mut state, &create(contract)).unwrap();
    state.unwrap()
}

pub(super) fn create(contract: Contract) -> Step {
    Person(GoalCommand::Create {
        id: GoalId::parse("001-x").unwrap(),
        contract: Box::new(contract),
        contract_hash: "hash".to_owned(),
        setup: false,
    })
}

pub(super) fn approve() -> Step {
    Person(GoalCommand::Approve {
        contract_hash: "hash".to_owned(),
        means: ApprovalMeans::Terminal,
    })
}

/// The steps to an approved goal with a workspace, and checks that fail on its base.
pub(super) fn ready(contract: Contract) -> Vec<Step> {
    let workspace = GoalOutcome::Workspace {
        path: "/w".to_owned(),
    };
    let is_verified = contract.is_verified();
    let mut steps = vec![create(contract), approve(), Ends(workspace)];
    if is_verified {
        steps.push(Ends(failed()));
    }
    steps
}

/// The same, and a turn up to its verification.
pub(super) fn to_verify(contract: Contract, tree: &str) -> Vec<Step> {
    [ready(contract), vec![Ends(worked()), Ends(committed(tree))]].concat()
}

/// The same, and up to its judgement.
pub(super) fn to_judge(contract: Contract) -> Vec<Step> {
    [to_verify(contract, "tree"), vec![Ends(passed())]].concat()
}

fn agent_run(end: AgentEnd) -> AgentRun {
    AgentRun {
        end,
        claim: None,
        message: String::new(),
        session: Some("s".to_owned()),
        usage: Usage {
            input_tokens: 10,
            output_tokens: 1,
            usd_micros: Some(5),
            ..Usage::ZERO
        },
        tools: 0,
        isolation: None,
        score: None,
    }
}

pub(super) fn worked() -> GoalOutcome {
    GoalOutcome::Agent(agent_run(AgentEnd::Finished))
}

pub(super) fn claims(claim: Claim) -> GoalOutcome {
    GoalOutcome::Agent(AgentRun {
        claim: Some(claim),
        ..agent_run(AgentEnd::Finished)
    })
}

pub(super) fn crashed(code: i32) -> GoalOutcome {
    GoalOutcome::Agent(agent_run(AgentEnd::Crashed { code }))
}

pub(super) fn unchanged() -> GoalOutcome {
    GoalOutcome::Committed(GoalCandidate {
        commit: "base".to_owned(),
        tree: "base-tree".to_owned(),
        files_changed: 0,
        left_out: Vec::new(),
    })
}

pub(super) fn provider(kind: ProviderFailureKind, retry_after_ms: Option<u64>) -> GoalOutcome {
    let failure = ProviderFailure {
        kind,
        message: "no".to_owned(),
        retry_after_ms,
    };
    GoalOutcome::Agent(agent_run(AgentEnd::Provider(failure)))
}

pub(super) fn committed(tree: &str) -> GoalOutcome {
    GoalOutcome::Committed(GoalCandidate {
        commit: format!("commit-{tree}"),
        tree: tree.to_owned(),
        files_changed: 1,
        left_out: Vec::new(),
    })
}

pub(super) fn verified(exit_code: Option<i32>, checks: Checks, tampered: &[&str]) -> GoalOutcome {
    GoalOutcome::Verified(VerifyReport {
        tampered: tampered.iter().map(|path| (*path).to_owned()).collect(),
        ..report(vec![VerifyRun {
            checks,
            ..run(exit_code, "")
        }])
    })
}

pub(super) fn passed() -> GoalOutcome {
    verified(Some(0), Checks::Visible, &[])
}

pub(super) fn failed() -> GoalOutcome {
    verified(Some(1), Checks::Visible, &[])
}

pub(super) fn judged(answer: JudgeAnswer) -> GoalOutcome {
    let usage = Usage {
        input_tokens: 2,
        output_tokens: 0,
        usd_micros: None,
        ..Usage::ZERO
    };
    GoalOutcome::Judged(JudgeRun {
        by: "codex".to_owned(),
        answer,
        usage,
    })
}

pub(super) fn verdict(verdict: JudgeVerdict) -> GoalOutcome {
    judged(JudgeAnswer::Verdict {
        verdict,
        reason: "so".to_owned(),
    })
}

pub(super) fn cancelled() -> GoalOutcome {
    let usage = Usage {
        input_tokens: 4,
        output_tokens: 0,
        usd_micros: None,
        ..Usage::ZERO
    };
    GoalOutcome::Cancelled {
        usage,
        session: None,
    }
}

fn planned(state: Option<&Goal>) -> EffectId {
    let effect = state.and_then(next);
    effect.map_or_else(|| EffectId::new(9, "none", 9), |effect| effect.id)
}

fn running(state: Option<&Goal>) -> EffectId {
    let in_flight = state.and_then(|goal| goal.in_flight.clone());
    in_flight.map_or_else(|| EffectId::new(9, "none", 9), |in_flight| in_flight.effect)
}

/// Does one step; the engine's steps are made of the commands it would send.
pub(super) fn play(
    state: &mut Option<Goal>,
    step: &Step,
) -> Result<Vec<GoalEvent>, crate::rules::denied::GoalDenial> {
    let (actor, command) = match step {
        Person(command) => (
            Actor::Human {
                user: "ada".to_owned(),
            },
            command.clone(),
        ),
        Agent(command) => (
            Actor::Agent {
                run: "r".to_owned(),
            },
            command.clone(),
        ),
        Engine(command) => (Actor::Engine, command.clone()),
        Calls(call) => {
            let effect = running(state.as_ref());
            let run = state
                .as_ref()
                .map_or_else(String::new, |goal| goal.run_name(&effect));
            (Actor::Agent { run }, GoalCommand::Tool(call.clone()))
        }
        Begins => (
            Actor::Engine,
            GoalCommand::Intend {
                effect: planned(state.as_ref()),
            },
        ),
        Reports(outcome) => {
            let (effect, outcome) = (running(state.as_ref()), outcome.clone());
            (
                Actor::Engine,
                GoalCommand::Report {
                    effect,
                    outcome,
                    elapsed_ms: 100,
                },
            )
        }
        Uses(tokens, elapsed_ms) => {
            let usage = Usage {
                input_tokens: *tokens,
                output_tokens: 0,
                usd_micros: None,
                ..Usage::ZERO
            };
            let (effect, elapsed_ms) = (running(state.as_ref()), *elapsed_ms);
            (
                Actor::Engine,
                GoalCommand::Progress {
                    effect,
                    usage,
                    elapsed_ms,
                },
            )
        }
        Ends(outcome) => {
            let mut events = play(state, &Begins)?;
            events.extend(play(state, &Reports(outcome.clone()))?);
            return Ok(events);
        }
    };
    let events = decide(state.as_ref(), &actor, &command, NOW_MS)?;
    for event in &events {
        evolve(state, event);
    }
    Ok(events)
}

pub(super) fn render(event: &GoalEvent) -> String {
    match event {
        GoalEvent::GoalCreated { id, .. } => format!("created {id}"),
        GoalEvent::ContractApproved { .. } => "approved".to_owned(),
        GoalEvent::EffectIntended { effect, .. } => format!("intended {effect}"),
        GoalEvent::EffectProgressed {
            usage,
            elapsed_ms: ms,
            ..
        } => format!("used {} tokens {ms} ms", usage.tokens()),
        GoalEvent::RunRecorded { effect, .. } => format!("recorded {effect}"),
        GoalEvent::WorkspaceCreated { .. } => "workspace".to_owned(),
        GoalEvent::BaselineEnded { .. } => "baseline".to_owned(),
        GoalEvent::AgentEnded { .. } => "agent ended".to_owned(),
        GoalEvent::ProviderFailed { retry_at_ms, .. } => match retry_at_ms {
            Some(at_ms) => format!("provider failed, again in {} ms", at_ms - NOW_MS),
            None => "provider failed".to_owned(),
        },
        GoalEvent::WaitEnded => "waited".to_owned(),
        GoalEvent::CandidateCommitted { candidate, .. } => format!("committed {}", candidate.tree),
        GoalEvent::VerifyEnded { report, .. } => (if report.passed() {
            "verified"
        } else {
            "not verified"
        })
        .to_owned(),
        GoalEvent::JudgeEnded { .. } => "judged".to_owned(),
        GoalEvent::JudgeFailed { retry_at_ms, .. } => match retry_at_ms {
            Some(at_ms) => format!("no verdict, again in {} ms", at_ms - NOW_MS),
            None => "no verdict".to_owned(),
        },
        GoalEvent::TurnEnded { turn, verdict } => format!("turn {turn} {verdict:?}"),
        GoalEvent::GoalDone {
            verified: true,
            commit,
            ..
        } => format!("done {commit}"),
        GoalEvent::GoalDone {
            verified: false,
            commit,
            ..
        } => format!("accepted {commit}"),
        GoalEvent::GoalStopped { stop } => format!("{}: {}", stop.status(), render_stop(stop)),
        GoalEvent::EffectCancelled { effect, usage, .. } => {
            format!("cut off {effect} after {} tokens", usage.tokens())
        }
        GoalEvent::GoalResumed => "resumed".to_owned(),
        GoalEvent::ContractDrafted { contract_hash, .. } => format!("drafted {contract_hash}"),
        GoalEvent::SetupEnded { .. } => "setup ended".to_owned(),
        GoalEvent::GoalReopened { reason } => format!("reopened: {reason}"),
        GoalEvent::PlanMade { .. }
        | GoalEvent::Replanned { .. }
        | GoalEvent::TaskUpdated { .. }
        | GoalEvent::ProgressNoted { .. }
        | GoalEvent::TurnDeclared { .. } => render_journey(event),
        GoalEvent::JourneyDistilled { markdown } => format!("distilled {markdown}"),
        GoalEvent::DistillSkipped => "distil skipped".to_owned(),
        GoalEvent::DistillEnded { .. } => "distil ended".to_owned(),
        GoalEvent::PersonSaid { text } => format!("person says {text}"),
        GoalEvent::SideQuestionAnswered { question, .. } => format!("aside {question}"),
        GoalEvent::ConsentAsked { asked } => {
            format!("refused {} ({})", asked.command, asked.pattern)
        }
        GoalEvent::ConsentGiven { what } => format!("allowed {what}"),
        GoalEvent::GoalParked { wait } => format!("parked {}", wait.number),
        GoalEvent::GoalWoken { number, why } => format!("woken {number}: {why}"),
        GoalEvent::TurnsSet { turns } => format!("turns {turns}"),
        GoalEvent::JudgeChanged { judge } => format!("judge {judge}"),
        GoalEvent::BudgetRaised { .. } => "raised".to_owned(),
    }
}

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "called for the events of a journey alone"
)]
fn render_journey(event: &GoalEvent) -> String {
    match event {
        GoalEvent::PlanMade { delta } => format!("planned {} tasks", delta.written.len()),
        GoalEvent::Replanned { delta } => {
            let reason = delta.replan.as_ref().map_or("", |replan| &replan.reason);
            format!("replanned: {reason}")
        }
        GoalEvent::TaskUpdated { id, delta } => {
            let task = delta.written.iter().find(|task| task.id == *id);
            format!("task {id} {}", task.map_or("same", |it| it.status.as_str()))
        }
        GoalEvent::ProgressNoted { note, phase, .. } => format!("noted {note} {phase:?}"),
        GoalEvent::TurnDeclared { declared } => match declared {
            TurnDeclaration::Complete { evidence, .. } => format!("claims {evidence}"),
            TurnDeclaration::Blocked { question, .. } => format!("asks {question}"),
            TurnDeclaration::Wait { .. } => "asks to wait".to_owned(),
        },
        other => format!("{other:?}"),
    }
}

fn render_stop(stop: &Stop) -> String {
    match stop {
        Stop::BudgetUsedUp { limit } => format!("{limit} budget"),
        Stop::Interrupted => "interrupted".to_owned(),
        Stop::NoProgress { turns } => format!("{turns} turns alike"),
        Stop::SameFailure { turns } => format!("{turns} failures alike"),
        Stop::AgentBlocked { reason } => format!("agent says {reason}"),
        Stop::JudgeBlocked { reason } | Stop::Impossible { reason } => {
            format!("judge says {reason}")
        }
        Stop::JudgeUnavailable { reason } => format!("judge: {reason}"),
        Stop::ProviderUnavailable { failure } => format!("provider: {}", failure.kind.words()),
        Stop::WorldFailed { failure } => format!("failed to {}", failure.message),
        Stop::Cancelled { reason } => format!("cancelled {reason:?}"),
        Stop::CapReached { cap } => format!("cap {cap}"),
        Stop::CleanEnd { nudges } => format!("worked off, {nudges} reminders"),
        Stop::SpinGuard => "spin guard".to_owned(),
        Stop::ConsentNeeded { pattern, .. } => format!("needs consent to {pattern}"),
        Stop::NotDrafted { message } => format!("no draft: {message}"),
        Stop::ChecksCannotRun { reason, .. } => format!("checks cannot run: {reason}"),
    }
}
