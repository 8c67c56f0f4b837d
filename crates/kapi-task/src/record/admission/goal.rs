//! Letting in the tasks that drive a workflow's goals, by the same door as all others.
//!
//! What the goal may use and must prove stands in its contract; here the policy is asked about it,
//! and what nothing could hold a goal to is a refusal. The goal itself is not looked at.

use kapi_core::actor::Actor;
use kapi_core::isolation::{NetworkMode, SandboxLevel};
use kapi_goal::rules::contract::Contract;
use kapi_store::canonical::canonical_hash;

use crate::record::admission::TaskAdmission;
use crate::record::error::KernelError;
use crate::record::profile_file::{Access, AgentProfile};
use crate::record::queue::Queue;
use crate::rules::command::KernelCommand;
use crate::rules::decide::KernelReply;
use crate::rules::goal_drive::GoalDrive;
use crate::rules::policy;
use crate::rules::policy::{Constraints, PolicyDecision, PolicyLimit, PolicyViolation};
use crate::rules::request::{
    DESCRIPTION_BYTES_MAX, KernelRequest, PROMPT_BYTES_MAX, RequestKey, TaskOrigin,
};
use crate::rules::task_terms::{Priority, Retry, TaskBudget};

/// How long an effect that is repeated finds the task that did its work, in milliseconds: 30 days.
const KEY_TTL_MS: u64 = 30 * 24 * 60 * 60 * 1_000;
/// Hexadecimal digits of the hash that stands for a place in a key.
const PLACE_DIGITS: usize = 12;

/// The drive of a goal, as it is asked for.
#[derive(Debug, Clone)]
pub struct GoalAsk<'a> {
    /// What is done, in a few words.
    pub title: &'a str,
    /// What the goal demands.
    pub contract: &'a Contract,
    /// Who works: the name of the agent program.
    pub agent: &'a str,
    /// Which goal it is; its place is filled in here.
    pub drive: GoalDrive,
    /// The person in whose name it is done.
    pub user: &'a str,
    /// How urgent it is.
    pub priority: Priority,
}

impl TaskAdmission<'_> {
    /// Lets a task in that drives a goal, or says why not. The same effect asked for again finds
    /// its task.
    ///
    /// # Errors
    /// When the policy or a rule of the kernel refuses (nothing was changed then), the log is
    /// damaged, or the disk refuses.
    pub fn submit_goal(
        &self,
        queue: &mut Queue<'_>,
        ask: GoalAsk<'_>,
    ) -> Result<KernelReply, KernelError> {
        let project = queue.project().layout.root().display().to_string();
        let contract = ask.contract;
        let request = goal_request(ask, queue.reach())?;
        let decision = self.ask_policy_of_goal(&project, &request, contract);
        if !decision.allowed {
            return Err(KernelError::Policy(Box::new(decision)));
        }
        let command = KernelCommand::Submit {
            request: Box::new(request),
            admission: self.terms.admission(),
        };
        queue.submit(&Actor::Engine, &command)
    }

    /// Asks the policy about a task that drives a goal. What a rule would have held inside a run
    /// and nothing holds a goal to speaks against it, but for hosts: those can be taken away.
    #[must_use]
    pub fn ask_policy_of_goal(
        &self,
        project: &str,
        request: &KernelRequest,
        contract: &Contract,
    ) -> PolicyDecision {
        let mut asked = self.policy_request(project, request, &profile(request));
        let network = network(contract);
        asked.network = Some(network);
        let mut decision = policy::evaluate(self.policy, &asked);
        let unheld = unheld(&decision.constraints, network);
        if !unheld.is_empty() {
            decision.allowed = false;
            decision.reason.get_or_insert(policy::DENIED.to_owned());
            decision.violations.extend(unheld);
        }
        decision
    }
}

fn goal_request(ask: GoalAsk<'_>, location: Option<String>) -> Result<KernelRequest, KernelError> {
    let GoalAsk {
        contract,
        mut drive,
        ..
    } = ask;
    let (workflow, task) = (&drive.workflow, &drive.task);
    let description = format!("{task} of {workflow}: {}", ask.title.trim());
    let key = key(&drive, location.as_deref())?;
    drive.location = location;
    let budget = &contract.budget;
    Ok(KernelRequest {
        description: capped(description, DESCRIPTION_BYTES_MAX),
        prompt: capped(contract.intent.clone(), PROMPT_BYTES_MAX),
        agent: ask.agent.to_owned(),
        backend: Some(contract.agent.clone()),
        model: None,
        // The goal's own budget ends it.
        timeout_ms: 0,
        budget: TaskBudget {
            tokens: budget.tokens,
            usd_micros: budget.usd_micros,
            time_ms: budget.wall_ms,
        },
        domain: None,
        priority: ask.priority,
        key: Some(key),
        retry: Retry::default(),
        verify: contract.verify.clone(),
        protect: contract.protect.clone(),
        checks: contract.checks,
        keep_commits: contract.working.keep_commits,
        base: None,
        origin: TaskOrigin::Person {
            user: ask.user.to_owned(),
        },
        depth: 0,
        retry_of: None,
        loop_run: None,
        goal: Some(Box::new(drive)),
    })
}

/// The id of the effect; effects of several workflows, and of several machines' workflows, are told
/// from each other.
fn key(drive: &GoalDrive, location: Option<&str>) -> Result<RequestKey, KernelError> {
    let mut text = format!("workflow {} {}", drive.workflow, drive.effect);
    if let Some(location) = location {
        let hash = canonical_hash(&location).map_err(|source| KernelError::Encode {
            what: "a key",
            source,
        })?;
        text.push(' ');
        text.extend(hash.chars().take(PLACE_DIGITS));
    }
    let ttl_ms = KEY_TTL_MS;
    Ok(RequestKey { text, ttl_ms })
}

/// Stands for the profile that a goal's agent has not.
fn profile(request: &KernelRequest) -> AgentProfile {
    AgentProfile {
        name: request.agent.clone(),
        description: String::new(),
        backend: request.backend.clone(),
        model: None,
        tools: None,
        access: Access::Write,
        system_prompt: String::new(),
        source: "the contract of a workflow's goal".to_owned(),
        ignored: Vec::new(),
    }
}

/// Returns what a goal can reach.
const fn network(contract: &Contract) -> NetworkMode {
    match contract.sandbox {
        // Without isolation the network is the host's.
        SandboxLevel::None => NetworkMode::Open,
        SandboxLevel::Native | SandboxLevel::Podman => contract.network,
    }
}

fn unheld(constraints: &Constraints, network: NetworkMode) -> Vec<PolicyViolation> {
    let against = |what: &str, limit: &PolicyLimit| PolicyViolation {
        text: format!(
            "a workflow's goal cannot enforce it: {what} {}; {}",
            limit.pattern, limit.set_by.text
        ),
        ..limit.set_by.clone()
    };
    let commands = constraints.forbidden_commands.iter();
    let commands = commands.chain(&constraints.ask_before);
    let commands = commands.map(|limit| against("the command", limit));
    let paths = constraints.read_only.iter();
    let paths = paths.map(|limit| against("to leave alone", limit));
    let wider = constraints
        .network_max
        .iter()
        .filter(|max| network > max.mode);
    let wider = wider.map(|max| max.set_by.clone());
    commands.chain(paths).chain(wider).collect()
}

fn capped(mut text: String, bytes_max: usize) -> String {
    text.truncate(text.floor_char_boundary(bytes_max));
    text
}
