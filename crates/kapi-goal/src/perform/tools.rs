//! The host's end of an agent's tools: what a run asks for becomes a command of its goal.
//!
//! Who speaks is known from the socket that was mounted into that run's sandbox, never from what is
//! said. What may be done is decided by the core; refusals go back with their code.

use std::sync::Arc;

use kapi_agent::agent::AgentKind;
use kapi_check::perform::hidden;
use kapi_core::actor::Actor;
use kapi_core::failure::Failure;
use kapi_core::id::GoalId;
use kapi_core::judge::Judge;
use kapi_run::failure::chain;
use kapi_run::gate::person::Person;
use kapi_run::gate::support;
use kapi_run::run_service::RunService;
use serde_json::Value;

use crate::record::error::EngineError;
use crate::record::project::Project;
use crate::rules::command::{GoalCommand, PersonCommand};
use crate::rules::contract::Contract;
use crate::rules::event::ApprovalMeans;
use crate::rules::state::{Goal, GoalStatus};
use crate::tools::call::{GoalToolRequest, read};
use crate::tools::input::SetInput;
use crate::tools::{ToolRefusal, answer, set};

/// Performs a call of a tool that submits or follows tasks, in the name of a goal; nothing where it is
/// no such tool.
pub type CallTaskTool<'a> = Arc<dyn Fn(&GoalId, &str, Value) -> Option<Value> + Send + Sync + 'a>;

/// The tools that submit and follow tasks, beside those of a goal.
#[derive(Clone)]
pub struct TaskTools<'a> {
    /// Whether an agent is told of them; where it is not, a call says who may allow them.
    pub are_offered: bool,
    /// Performs a call.
    pub call: CallTaskTool<'a>,
}

/// Returns the scripts that a contract's verify commands name and that are checks.
pub type NamedChecks<'a> =
    Arc<dyn Fn(&Contract) -> Result<Vec<String>, Failure> + Send + Sync + 'a>;

/// What the tools of all runs of a project need on this side.
#[derive(Clone)]
pub struct ToolService<'a> {
    /// Where goals are.
    pub project: Project<'a>,
    /// The person whose recorded preference approves an agent's draft at once, if there is one.
    pub autopilot: Option<Actor>,
    /// The judge of a draft that names none.
    pub judge_default: Option<Judge>,
    /// The person at the terminal, who is asked before what a contract lists.
    pub person: Option<Person>,
    /// Looks up what protects itself in a draft.
    pub named_checks: NamedChecks<'a>,
    /// The tools that submit and follow tasks.
    pub tasks: TaskTools<'a>,
}

/// One run that uses the service.
#[derive(Clone, Copy)]
pub struct ToolCaller<'a> {
    /// The service.
    pub(crate) tool_service: &'a ToolService<'a>,
    /// Its goal.
    pub(crate) goal: &'a GoalId,
    /// The run's name.
    pub(crate) run: &'a str,
    /// Where the goal's hidden checks are kept from its approval on.
    pub(crate) hidden: &'a std::path::Path,
}

impl RunService for ToolCaller<'_> {
    fn run(&self) -> &str {
        self.run
    }

    fn offers_kernel_tools(&self) -> bool {
        self.tool_service.tasks.are_offered
    }

    fn refuse(&self, code: &'static str, message: String) -> Value {
        answer::refused(&ToolRefusal::new(code, message))
    }

    fn asks_nothing(&self) -> Result<bool, Failure> {
        Ok(self.goal()?.contract.working.ask_before.is_empty())
    }

    fn ask_before(&self) -> Result<Vec<String>, Failure> {
        Ok(open_entries(&self.goal()?))
    }

    fn person(&self) -> Option<&Person> {
        self.tool_service.person.as_ref()
    }

    fn allow(&self, person: &Person, entry: &str) -> Result<(), String> {
        let command = GoalCommand::Person(PersonCommand::Allow {
            what: entry.to_owned(),
        });
        let submitted = self
            .tool_service
            .project
            .submit(self.goal, &person.actor, &command);
        submitted
            .map(drop)
            .map_err(|error| format!("The user allowed {entry:?}, but Kapi failed to {error}."))
    }

    fn record_refused(&self, entry: &str, command: &str) -> bool {
        let actor = Actor::Agent {
            run: self.run.to_owned(),
        };
        let command = GoalCommand::AskConsent {
            pattern: entry.to_owned(),
            command: command.to_owned(),
        };
        let submitted = self
            .tool_service
            .project
            .submit(self.goal, &actor, &command);
        submitted.is_ok()
    }

    fn needs_person(&self, entry: &str) -> String {
        let goal = self.goal;
        format!(
            "the user must allow {entry:?} first (`kapi goal allow {goal} {entry:?}`): it is on \
             the contract's ask-before list. Do not try it in another way. Continue with \
             something else, or ask with until_done_block and end your turn."
        )
    }

    fn call(&self, tool: &str, input: Value) -> Value {
        let answer = (self.tool_service.tasks.call)(self.goal, tool, input.clone());
        answer.unwrap_or_else(|| {
            self.perform(tool, input)
                .unwrap_or_else(|refused| answer::refused(&refused))
        })
    }
}

impl ToolCaller<'_> {
    fn goal(&self) -> Result<Goal, Failure> {
        let goal = self.tool_service.project.load(self.goal);
        goal.map_err(|error| kapi_run::failure::plain(&error))
    }

    fn perform(&self, tool: &str, input: Value) -> Result<Value, ToolRefusal> {
        let project = &self.tool_service.project;
        let actor = Actor::Agent {
            run: self.run.to_owned(),
        };
        match read(tool, input, project.clock.now_ms())? {
            GoalToolRequest::Status(_) => self.load().map(|goal| answer::looked(&goal)),
            GoalToolRequest::Set(input) => self.draft(&actor, &input),
            GoalToolRequest::Call(call) => {
                let command = GoalCommand::Tool((*call).clone());
                let submitted = project.submit(self.goal, &actor, &command);
                submitted
                    .map(|submitted| answer::recorded(&call, &submitted.goal))
                    .map_err(|error| refusal(&error))
            }
        }
    }

    /// Records a draft of the contract; only a person, or their own preference, approves it.
    fn draft(&self, actor: &Actor, input: &SetInput) -> Result<Value, ToolRefusal> {
        let project = &self.tool_service.project;
        let before = self.load()?;
        if !matches!(before.status, GoalStatus::Setup | GoalStatus::Proposed) {
            return Err(ToolRefusal::new(
                "goal_exists",
                format!(
                    "the goal is {}, and its contract cannot change; only the user can start another",
                    before.status
                ),
            ));
        }
        let known = Some(&before.contract.judge).filter(|judge| **judge != Judge::None);
        let judge_default = known.or(self.tool_service.judge_default.as_ref());
        let mut contract = set::contract(&before.contract, input, judge_default)?;
        protect_named(&self.tool_service.named_checks, &mut contract)?;
        // The host of a session asks before each tool itself.
        if !contract.is_session() {
            let kind = AgentKind::parse(&contract.agent).map_err(|error| {
                ToolRefusal::new("failed", format!("failed to {}", chain(&error)))
            })?;
            support::check(&kind, &contract.working.ask_before)
                .map_err(|failure| ToolRefusal::input(format!("cannot {}", failure.message)))?;
        }
        let hash = project
            .draft(self.goal, actor, &contract)
            .map_err(|error| refusal(&error))?;
        let in_advance = may_be_approved_in_advance(&contract, judge_default);
        let Some(person) = self.tool_service.autopilot.as_ref().filter(|_| in_advance) else {
            return Ok(answer::not_confirmed(
                &self.goal.to_string(),
                &hash,
                &contract,
            ));
        };
        if let Some(checks) = &contract.hidden {
            hidden::keep(checks, self.hidden)
                .map_err(|failure| ToolRefusal::new("failed", failure.message))?;
        }
        let approve = GoalCommand::Approve {
            contract_hash: hash.clone(),
            means: ApprovalMeans::Autopilot,
        };
        let submitted = project
            .submit(self.goal, person, &approve)
            .map_err(|error| refusal(&error))?;
        Ok(answer::approved(&submitted.goal, &hash))
    }

    fn load(&self) -> Result<Goal, ToolRefusal> {
        self.tool_service
            .project
            .load(self.goal)
            .map_err(|error| refusal(&error))
    }
}

/// Returns the entries of a goal's list that a person has not allowed.
pub fn open_entries(goal: &Goal) -> Vec<String> {
    let entries = goal.contract.working.ask_before.iter();
    let open = entries.filter(|entry| !goal.consent.allowed.contains(*entry));
    open.cloned().collect()
}

/// Protects the scripts that the verify commands of a draft name, as for a contract from flags.
///
/// # Errors
/// When the repository cannot be looked at.
pub fn protect_named(
    named_checks: &NamedChecks<'_>,
    contract: &mut Contract,
) -> Result<(), ToolRefusal> {
    let checks = named_checks(contract)
        .map_err(|failure| ToolRefusal::new("failed", format!("failed to {}", failure.message)))?;
    for file in checks {
        if !contract.protect.contains(&file) {
            contract.protect.push(file);
        }
    }
    Ok(())
}

/// The most turns that a preference approves; more is asked about (pi-until-done: 500).
const TURNS_UNASKED_MAX: u32 = 500;

/// Tells whether the autopilot preference covers a draft: one with many turns, or with another judge
/// than the person's own, is still shown to them.
#[must_use]
pub fn may_be_approved_in_advance(contract: &Contract, judge_default: Option<&Judge>) -> bool {
    let keeps_judge = judge_default.is_none_or(|judge| *judge == contract.judge);
    contract.budget.turns <= TURNS_UNASKED_MAX && keeps_judge
}

/// Returns what an agent is told when its request was not recorded.
#[must_use]
pub fn refusal(error: &EngineError) -> ToolRefusal {
    match error {
        EngineError::Denied(denied) => answer::denied(denied),
        EngineError::NotFound { .. } => ToolRefusal::new("no_active_goal", error.to_string()),
        EngineError::Busy { .. } => ToolRefusal::new(
            "busy",
            "another process is writing to this goal; try again".to_owned(),
        ),
        EngineError::Corrupt(_)
        | EngineError::UnknownEvent { .. }
        | EngineError::Store(_)
        | EngineError::NotDerived(_)
        | EngineError::Encode { .. } => {
            ToolRefusal::new("failed", format!("failed to {}", chain(error)))
        }
    }
}

#[cfg(test)]
mod gate_tests;
#[cfg(test)]
mod tests;
