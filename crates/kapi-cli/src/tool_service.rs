//! Where a call of an agent's tool goes: to the run this process belongs to, or to the project of
//! the working directory, where an agent may draft and look.
//!
//! Shared by `kapi mcp` and `kapi agent`, and by whoever drives a goal.

pub(crate) mod attendants;
mod consent;
mod kernel;
mod outside;
mod proposal;
mod wait;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use kapi_core::actor::Actor;
use kapi_core::judge::Judge;
use kapi_core::task_id::KernelTaskId;
use kapi_goal::perform::survey::RepositorySurvey;
use kapi_goal::perform::tools::{NamedChecks, ToolService};
use kapi_goal::record::project::Project;
use kapi_goal::rules::contract::Contract;
use kapi_goal::tools::{ToolRefusal, answer};
use kapi_mcp::call::{CallOutcome, QuestionReply};
use kapi_run::failure::chain;
use kapi_run::tool_client;
use kapi_run::tool_client::{KERNEL_VARIABLE, SOCKET_VARIABLE};
use kapi_wire::kernel_tools::input::wait_s;
use kapi_wire::kernel_tools::{AnyTool, KernelTool, ToolOffer};
use serde_json::Value;

use crate::config::Config;
use crate::context::Context;
use crate::error::Error;
use crate::tool_service::proposal::Proposal;

/// What the server of tools calls itself in locks.
const MCP: &str = "kapi mcp";
/// What an agent's tools from a shell call themselves in locks.
const SHELL: &str = "kapi agent";

/// The calls of one process.
pub(crate) struct ToolCalls<'a> {
    context: &'a Context,
    socket: Option<PathBuf>,
    /// What this process has proposed.
    proposal: Proposal,
    /// Takes the tasks that this process submitted, to work on them.
    attend: Option<&'a dyn Fn(KernelTaskId)>,
}

impl<'a> ToolCalls<'a> {
    /// Looks for the run this process belongs to.
    pub(crate) fn new(context: &'a Context) -> Self {
        let socket = context.env.get(std::ffi::OsStr::new(SOCKET_VARIABLE));
        Self {
            context,
            socket: socket.map(PathBuf::from),
            proposal: Proposal::default(),
            attend: None,
        }
    }

    /// Hands every task that is submitted to somebody who works on it.
    pub(crate) fn attended_by(mut self, attend: &'a dyn Fn(KernelTaskId)) -> Self {
        self.attend = Some(attend);
        self
    }

    /// Tells whether this process is outside of any run.
    pub(crate) const fn is_outside(&self) -> bool {
        self.socket.is_none()
    }

    /// Returns the tools that are offered here: within a run the kernel's only where its host says so.
    pub(crate) fn offer(&self) -> ToolOffer {
        let is_reported = self.context.variable(KERNEL_VARIABLE) == Some("1");
        if self.is_outside() || is_reported {
            ToolOffer::ALL
        } else {
            ToolOffer::GOAL
        }
    }

    /// Performs a call; what it comes to says itself whether it is a refusal.
    pub(crate) fn call(&self, tool: AnyTool, input: Value) -> CallOutcome<'a> {
        let context = self.context;
        match (&self.socket, tool) {
            (Some(socket), tool) => {
                let (socket, wait_s) = (socket.clone(), waits_s(tool, &input));
                let look = move || ask_host(&socket, tool, &input);
                wait::until_over(Box::new(look), wait_s)
            }
            (None, AnyTool::Goal(tool)) => {
                let outcome = outside::call(context, &self.proposal, tool, input);
                outcome.unwrap_or_else(|refused| CallOutcome::Answered(answer::refused(&refused)))
            }
            (None, AnyTool::Kernel(kernel_tool)) => {
                let wait_s = waits_s(tool, &input);
                if wait_s == 0 {
                    let answer = outside::ask_kernel(context, self.attend, kernel_tool, input);
                    return CallOutcome::Answered(answer.to_value());
                }
                let look = move || {
                    let answer = outside::ask_kernel(context, None, kernel_tool, input.clone());
                    answer.to_value()
                };
                wait::until_over(Box::new(look), wait_s)
            }
        }
    }

    /// Returns what settles a question of a call by what the person said.
    pub(crate) fn settler(&self) -> impl Fn(&str, QuestionReply) -> Value + Sync + use<'a> {
        let (context, proposal) = (self.context, self.proposal.clone());
        move |about, reply| proposal.settle(context, about, &reply)
    }
}

/// Returns how long a call waits for something else.
fn waits_s(tool: AnyTool, input: &Value) -> u64 {
    match tool {
        AnyTool::Kernel(KernelTool::Status) => wait_s(input),
        AnyTool::Kernel(_) | AnyTool::Goal(_) => 0,
    }
}

/// Asks the host of the run that this process belongs to.
fn ask_host(socket: &Path, tool: AnyTool, input: &Value) -> Value {
    let answered = tool_client::call(socket, tool.name(), input);
    answered.unwrap_or_else(|error| {
        let text = format!("failed to {}", chain(&error));
        answer::refused(&ToolRefusal::new("unreachable", text))
    })
}

/// Returns what the tools of a project's runs need on this side.
pub(crate) fn tool_service<'a>(
    context: &'a Context,
    project: &Project<'_>,
) -> Result<ToolService<'a>, Error> {
    let preferred = context.preferred(project.layout.root())?;
    Ok(ToolService {
        project: context.project(project.layout.root(), &project.owner),
        autopilot: preferred.autopilot.map(|user| Actor::Human { user }),
        judge_default: preferred.judge.as_deref().map(judge_named),
        person: consent::person(context),
        named_checks: named_checks(context, project.layout.root().to_path_buf()),
        tasks: kernel::within::tool_service(context, project.layout.root().to_path_buf())?,
    })
}

/// Returns what looks up the scripts that a draft's verify commands name.
fn named_checks(context: &Context, root: PathBuf) -> NamedChecks<'static> {
    let grants = context.grants(&Config::unconfigured());
    Arc::new(move |contract: &Contract| {
        let survey = RepositorySurvey::of(&grants, &root)?;
        survey.checks_named_in(&contract.base, &contract.verify, persons_words(contract))
    })
}

/// Returns what a person said of the task itself: a check that it is about is theirs to change.
fn persons_words(contract: &Contract) -> &str {
    let original = contract.attribution.original.as_ref();
    original.map_or("", |original| &original.task)
}

/// Returns the judge that a person wrote after `--judge`.
fn judge_named(text: &str) -> Judge {
    match text {
        "none" => Judge::None,
        "same" => Judge::Same,
        reference => Judge::Agent(reference.to_owned()),
    }
}
