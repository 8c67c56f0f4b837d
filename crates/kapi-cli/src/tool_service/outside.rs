//! Tools outside of any run: an agent may propose a goal and look at goals, and ask the kernel.
//!
//! A proposal waits for its person like any other; no goal is started here. The kernel's policy
//! decides about tasks.

use clap::FromArgMatches as _;
use kapi_core::actor::Actor;
use kapi_core::id::GoalId;
use kapi_core::judge::Judge;
use kapi_core::task_id::KernelTaskId;
use kapi_goal::perform::tools::{may_be_approved_in_advance, protect_named, refusal};
use kapi_goal::record::contract_hash::contract_hash;
use kapi_goal::record::project::Project;
use kapi_goal::rules::event::ApprovalMeans;
use kapi_goal::tools::call::{GoalToolRequest, read};
use kapi_goal::tools::input::{SetInput, StatusInput};
use kapi_goal::tools::{GoalTool, ToolRefusal, answer, set};
use kapi_mcp::call::CallOutcome;
use kapi_wire::kernel_tools::KernelTool;
use kapi_wire::kernel_tools::answer::ToolAnswer;
use kapi_wire::kernel_tools::input::read as read_for_kernel;
use serde_json::Value;

use crate::context::Context;
use crate::contract::flags::Args;
use crate::contract::judge::is_model;
use crate::contract::{agent_name, approval};
use crate::error::Error;
use crate::tool_service::kernel::{self, Asker, AskerStatus};
use crate::tool_service::proposal::{Proposal, refused};
use crate::{contract, naming, tool_service};

/// The agent that proposes from outside, in the record.
const RUN: &str = "outside any run";

/// Performs a call in the project of the working directory.
pub(super) fn call(
    context: &Context,
    proposal: &Proposal,
    tool: GoalTool,
    input: Value,
) -> Result<CallOutcome<'static>, ToolRefusal> {
    let now_ms = kapi_sys::clock::Clock::now_ms(&context.clock);
    match read(tool.name(), input, now_ms)? {
        GoalToolRequest::Status(input) => look(context, &input).map(CallOutcome::Answered),
        GoalToolRequest::Set(input) => propose(context, proposal, &input),
        GoalToolRequest::Call(call) => Err(ToolRefusal::new(
            "wrong_run",
            format!(
                "{} is only for an agent during its turn; this process is outside any run \
                 (`kapi run` and `kapi resume` start one)",
                call.name()
            ),
        )),
    }
}

/// Asks the kernel of the working directory's project; `attend` takes a task that is let in.
pub(super) fn ask_kernel(
    context: &Context,
    attend: Option<&dyn Fn(KernelTaskId)>,
    tool: KernelTool,
    input: Value,
) -> ToolAnswer {
    if let Actor::Agent { run } = &context.actor {
        return ToolAnswer::not_launched(&format!(
            "this process belongs to agent run {run}, whose tools are not available here"
        ));
    }
    let request = match read_for_kernel(tool, input) {
        Ok(request) => request,
        Err(answer) => return answer,
    };
    let owner = if attend.is_some() {
        tool_service::MCP
    } else {
        tool_service::SHELL
    };
    let done = crate::kernel::with(context, owner, |kernel| {
        let asker = Asker {
            run: RUN.to_owned(),
            depth: 0,
            state: AskerStatus::Outside,
        };
        Ok(kernel::perform(kernel, &asker, &request))
    });
    let done = done.unwrap_or_else(|error| kernel::refused(&error).into());
    if let (Some(attend), Some(task)) = (attend, done.task) {
        attend(task);
    }
    done.answer
}

fn look(context: &Context, input: &StatusInput) -> Result<Value, ToolRefusal> {
    let project = || {
        let root = context.project_root()?;
        Ok(context.project(&root, "kapi mcp"))
    };
    let project = project().map_err(|error: Error| refused("no_active_goal", &error))?;
    let id = match &input.goal {
        Some(reference) => project
            .resolve(reference)
            .map_err(|error| refused("not_found", &Error::resolve(&error)))?,
        None => last_goal(&project)?,
    };
    project
        .load(&id)
        .map(|goal| answer::looked(&goal))
        .map_err(|error| refusal(&error))
}

fn last_goal(project: &Project<'_>) -> Result<GoalId, ToolRefusal> {
    let ids = project.goal_ids().map_err(|error| refusal(&error))?;
    ids.into_iter().next_back().ok_or_else(|| {
        ToolRefusal::new("no_active_goal", "this project has no goals yet".to_owned())
    })
}

/// Records a proposal, which a person approves, or their own preference does. Where the client has
/// dialogs, they are asked at once.
fn propose(
    context: &Context,
    proposal: &Proposal,
    input: &SetInput,
) -> Result<CallOutcome<'static>, ToolRefusal> {
    if let Actor::Agent { run } = &context.actor {
        return Err(ToolRefusal::new(
            "wrong_run",
            format!("this process belongs to agent run {run}, whose tools are not available here"),
        ));
    }
    let setup = |error: Error| refused("setup_failed", &error);
    let args = arguments(input).map_err(setup)?;
    let draft = contract::draft_for_proposal(context, &args).map_err(setup)?;
    let project = context.project(&draft.root, "kapi mcp");
    refuse_second(&project, proposal.goal().as_ref())?;
    let tool_service = tool_service::tool_service(context, &project).map_err(setup)?;
    let is_judged = is_model(&agent_name::kind(&draft.contract.agent).map_err(setup)?);
    // A program is judged by its checks, unless somebody is named.
    let nobody = (!is_judged).then_some(&Judge::None);
    let judge_default = tool_service.judge_default.as_ref().or(nobody);
    let mut contract = set::contract(&draft.contract, input, judge_default)?;
    protect_named(&tool_service.named_checks, &mut contract)?;
    let id = {
        let _held = naming::hold(&project).map_err(setup)?;
        let reserved = naming::reserved(&project).map_err(setup)?;
        if !naming::is_free(&contract.branch, &draft.survey, &reserved).map_err(setup)? {
            let text = "another run has just taken the branch; try again".to_owned();
            return Err(ToolRefusal::new("busy", text));
        }
        let agent = Actor::Agent {
            run: RUN.to_owned(),
        };
        project
            .create_goal(&agent, &draft.slug, &contract)
            .map_err(|error| refusal(&error))?
    };
    let hash = contract_hash(&contract).map_err(|error| refusal(&error))?;
    proposal.note(&id, &hash);
    let in_advance = may_be_approved_in_advance(&contract, tool_service.judge_default.as_ref());
    let Some(Actor::Human { .. }) = tool_service.autopilot.as_ref().filter(|_| in_advance) else {
        let question = Proposal::question(&id, &hash, &contract);
        return Ok(CallOutcome::Asking(question));
    };
    approval::approve(context, &project, &id, &contract, ApprovalMeans::Autopilot)
        .map_err(setup)?;
    let goal = project.load(&id).map_err(|error| refusal(&error))?;
    Ok(CallOutcome::Answered(answer::approved(&goal, &hash)))
}

/// One process proposes one goal at a time.
fn refuse_second(project: &Project<'_>, proposed: Option<&GoalId>) -> Result<(), ToolRefusal> {
    let Some(id) = proposed else { return Ok(()) };
    let status = project.load(id).map_err(|error| refusal(&error))?.status;
    if status.is_terminal() {
        return Ok(());
    }
    Err(ToolRefusal::new(
        "goal_exists",
        format!(
            "goal {id} is already proposed and is {status}; the user approves it with `kapi \
             goal approve {id}` or cancels it with `kapi cancel {id}`"
        ),
    ))
}

/// Returns the options of `kapi run` that name the task, and nothing else: what an agent says of
/// checks, judge and limits is no flag of the person's.
fn arguments(input: &SetInput) -> Result<Args, Error> {
    let words = ["kapi", "--", input.goal.trim()];
    let command = <Args as clap::Args>::augment_args(clap::Command::new("kapi"));
    command
        .try_get_matches_from(words)
        .and_then(|matches| Args::from_arg_matches(&matches))
        .map_err(|error| Error::usage(error.to_string()))
}
