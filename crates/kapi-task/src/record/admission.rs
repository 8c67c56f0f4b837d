//! The one door by which tasks come in, whoever asks: the policy first, then the kernel's rules.
//!
//! Whoever asks by command line, tool, schedule or event is asked the same. The policy is asked
//! once more when the task is performed: what was let in today may be forbidden tomorrow.

pub mod goal;

use std::collections::BTreeMap;

use kapi_check::rules::proof::policy::CheckPolicy;
use kapi_core::actor::Actor;
use kapi_core::task_id::KernelTaskId;
use kapi_core::value::KernelValue;
use kapi_store::canonical::canonical_hash;
use serde::Serialize;

use crate::record::error::KernelError;
use crate::record::profile_file::AgentProfile;
use crate::record::queue::Queue;
use crate::record::terms::KernelTerms;
use crate::rules::command::KernelCommand;
use crate::rules::condition::window::LocalTime;
use crate::rules::decide::KernelReply;
use crate::rules::definition::Definition;
use crate::rules::loop_run::{LoopRun, RunTrigger};
use crate::rules::policy;
use crate::rules::policy::{Policy, PolicyDecision, PolicyRequest, RequestKind};
use crate::rules::request::{KernelRequest, RequestKey, TaskOrigin};
use crate::rules::task_terms::{Priority, Retry, TaskBudget};

/// What stands at the door.
#[derive(Clone, Copy)]
pub struct TaskAdmission<'a> {
    /// What may be submitted at all.
    pub policy: &'a Policy,
    /// What time it is in the zones that the policy names.
    pub local_times: &'a BTreeMap<String, LocalTime>,
    /// What the person set.
    pub terms: &'a KernelTerms,
    /// Whether nobody is there to answer.
    pub is_unattended: bool,
    /// Returns the commit that a task begins at, the one that is named or the one that is checked out,
    /// once every machine that may work on it can have it; where all of them work in one directory,
    /// only what is named. Asked only for what is let in.
    pub base: &'a BaseOffer<'a>,
}

/// Offers the commit that a task begins at, and returns it.
pub type BaseOffer<'a> = dyn Fn(Option<&str>) -> Result<Option<String>, String> + 'a;

/// A task, as it is asked for; what is absent is as the terms have it.
#[derive(Debug, Clone)]
pub struct TaskAsk<'a> {
    /// What it is, in one line.
    pub description: String,
    /// What the agent is told.
    pub prompt: String,
    /// Who works.
    pub profile: &'a AgentProfile,
    /// The agent program to use instead of the profile's.
    pub backend: Option<String>,
    /// The model to use instead of the profile's.
    pub model: Option<String>,
    /// The longest an attempt may take, in milliseconds; 0 for no limit.
    pub timeout_ms: Option<u64>,
    /// What an attempt may use.
    pub budget: TaskBudget,
    /// Whose guardrails it is told, besides the agent's.
    pub domain: Option<String>,
    /// How urgent it is.
    pub priority: Priority,
    /// What makes it the same as another.
    pub key: KeyAsk,
    /// When and how often a failed attempt is tried again.
    pub retry: Retry,
    /// Shell commands that must pass before it counts as completed.
    pub verify: Vec<String>,
    /// Files that must stay as they are, as pathspecs.
    pub protect: Vec<String>,
    /// What the checks are held to.
    pub checks: CheckPolicy,
    /// Whether the branch gets the commits that the agent made by itself, before one of what is left.
    pub keep_commits: bool,
    /// The commit it begins at; `None` for the one that is checked out.
    pub base: Option<String>,
    /// Who asks.
    pub origin: TaskOrigin,
    /// How many tasks it stands below another.
    pub depth: u32,
    /// The task it repeats.
    pub retry_of: Option<KernelTaskId>,
}

/// What makes a request the same as another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyAsk {
    /// Nothing: whoever asks twice means it.
    None,
    /// What is asked: profile, description, prompt and project.
    Derived,
    /// This.
    Given(String),
}

/// A loop's run, as it is asked for.
#[derive(Debug, Clone)]
pub struct LoopAsk<'a> {
    /// The loop.
    pub definition: &'a Definition,
    /// Who works.
    pub profile: &'a AgentProfile,
    /// What triggers it.
    pub trigger: RunTrigger,
    /// Inputs instead of the definition's.
    pub inputs: BTreeMap<String, KernelValue>,
    /// What came with the trigger.
    pub payload: KernelValue,
    /// How many runs set each other off before this one.
    pub depth: u32,
    /// What makes it the same as another.
    pub key: KeyAsk,
    /// Who asks.
    pub origin: TaskOrigin,
}

impl TaskAdmission<'_> {
    /// Lets a task in, or says why not.
    ///
    /// # Errors
    /// When the policy or a rule of the kernel refuses (nothing was changed then), the log is
    /// damaged, or the disk refuses.
    pub fn submit_task(
        &self,
        queue: &mut Queue<'_>,
        actor: &Actor,
        ask: TaskAsk<'_>,
    ) -> Result<KernelReply, KernelError> {
        let root = queue.location();
        let request = KernelRequest {
            timeout_ms: ask.timeout_ms.unwrap_or(self.terms.default_timeout_ms),
            key: self.key(&ask.key, || {
                canonical_hash(&DerivedTask {
                    agent: &ask.profile.name,
                    description: ask.description.trim(),
                    prompt: &ask.prompt,
                    cwd: &root,
                    with: (&ask.backend, &ask.model, &ask.domain, ask.timeout_ms),
                    budget: ask.budget,
                    verify: &ask.verify,
                    protect: &ask.protect,
                    checks: ask.checks,
                    keep_commits: ask.keep_commits,
                    base: ask.base.as_ref(),
                })
            })?,
            description: ask.description.trim().to_owned(),
            prompt: ask.prompt,
            agent: ask.profile.name.clone(),
            backend: ask.backend,
            model: ask.model,
            budget: ask.budget,
            domain: ask.domain,
            priority: ask.priority,
            retry: ask.retry,
            verify: ask.verify,
            protect: ask.protect,
            checks: ask.checks,
            keep_commits: ask.keep_commits,
            base: ask.base,
            origin: ask.origin,
            depth: ask.depth,
            retry_of: ask.retry_of,
            loop_run: None,
            goal: None,
        };
        self.let_in(queue, actor, request, ask.profile)
    }

    /// Lets a run of a loop in, or says why not.
    ///
    /// # Errors
    /// As for a task, and when the inputs are not those that the definition declares.
    pub fn trigger_loop(
        &self,
        queue: &mut Queue<'_>,
        actor: &Actor,
        ask: LoopAsk<'_>,
    ) -> Result<KernelReply, KernelError> {
        let profile = ask.profile;
        let (name, trigger) = (ask.definition.name.clone(), ask.trigger.clone());
        let request = self.loop_request(ask)?;
        let answer = self.let_in(queue, actor, request, profile);
        if let Err(denied @ KernelError::Policy(_)) = &answer {
            // Whoever looks at the loop later sees why it did not run.
            let reason = denied.to_string();
            let skip = KernelCommand::Skip {
                name,
                trigger,
                reason,
                is_refused: true,
            };
            queue.submit(&Actor::Engine, &skip)?;
        }
        answer
    }

    /// Returns what is asked for a run of a loop. Asks nobody and changes nothing.
    ///
    /// # Errors
    /// When the inputs are not those that the definition declares.
    pub fn loop_request(&self, ask: LoopAsk<'_>) -> Result<KernelRequest, KernelError> {
        let definition = ask.definition;
        definition.inputs_with(&ask.inputs)?;
        Ok(KernelRequest {
            description: format!("loop {}", definition.name),
            prompt: definition.body.clone(),
            agent: ask.profile.name.clone(),
            backend: definition.backend.clone(),
            model: definition.model.clone(),
            timeout_ms: definition.timeout_ms,
            budget: definition.budget,
            domain: Some(definition.name.to_string()),
            priority: definition.priority,
            key: self.key(&ask.key, || {
                Ok(format!(
                    "loop:{}|type:{}|source:{}|payload:{}",
                    definition.name,
                    ask.trigger.kind(),
                    ask.trigger.source().as_deref().unwrap_or("manual"),
                    canonical_hash(&(&ask.payload, &ask.inputs))?
                ))
            })?,
            retry: definition.retry,
            verify: definition.verify.clone(),
            protect: definition.protect.clone(),
            checks: definition.checks,
            keep_commits: definition.keep_commits,
            base: None,
            origin: ask.origin,
            depth: 0,
            retry_of: None,
            loop_run: Some(Box::new(LoopRun {
                definition: definition.clone(),
                trigger: ask.trigger,
                inputs: ask.inputs,
                payload: ask.payload,
                depth: ask.depth,
            })),
            goal: None,
        })
    }

    /// Asks the policy about a request, as far as it is known before it is performed.
    #[must_use]
    pub fn ask_policy(
        &self,
        project: &str,
        request: &KernelRequest,
        profile: &AgentProfile,
    ) -> PolicyDecision {
        policy::evaluate(self.policy, &self.policy_request(project, request, profile))
    }

    /// Returns a request as the policy sees it.
    #[must_use]
    pub fn policy_request(
        &self,
        project: &str,
        request: &KernelRequest,
        profile: &AgentProfile,
    ) -> PolicyRequest {
        let run = request.loop_run.as_deref();
        let mut budget = request.budget;
        if request.timeout_ms > 0 {
            let time_ms = budget.time_ms.unwrap_or(u64::MAX);
            budget.time_ms = Some(time_ms.min(request.timeout_ms));
        }
        PolicyRequest {
            kind: if run.is_some() {
                RequestKind::Loop
            } else {
                RequestKind::Task
            },
            agent: Some(request.agent.clone()),
            loop_name: run.map(|run| run.name().to_string()),
            project: project.to_owned(),
            backend: request.backend.clone().or_else(|| profile.backend.clone()),
            tools: tool_names(profile),
            prompt: request.prompt.clone(),
            trigger_source: run.and_then(|run| run.trigger.source()),
            budget,
            is_unattended: self.is_unattended,
            network: None,
            hosts: Vec::new(),
            commands: commands(request),
            paths: Vec::new(),
            local_times: self.local_times.clone(),
        }
    }

    fn let_in(
        &self,
        queue: &mut Queue<'_>,
        actor: &Actor,
        mut request: KernelRequest,
        profile: &AgentProfile,
    ) -> Result<KernelReply, KernelError> {
        let project = queue.project().layout.root().display().to_string();
        let decision = self.ask_policy(&project, &request, profile);
        if !decision.allowed {
            return Err(KernelError::Policy(Box::new(decision)));
        }
        let named = request.base.take();
        request.base = (self.base)(named.as_deref()).map_err(|why| KernelError::Base { why })?;
        let command = KernelCommand::Submit {
            request: Box::new(request),
            admission: self.terms.admission(),
        };
        queue.submit(actor, &command)
    }

    fn key(
        &self,
        ask: &KeyAsk,
        derive: impl FnOnce() -> Result<String, serde_json::Error>,
    ) -> Result<Option<RequestKey>, KernelError> {
        let text = match ask {
            KeyAsk::None => return Ok(None),
            KeyAsk::Given(text) => text.clone(),
            KeyAsk::Derived => derive().map_err(|source| KernelError::Encode {
                what: "a key",
                source,
            })?,
        };
        let ttl_ms = self.terms.key_ttl_ms;
        Ok(Some(RequestKey { text, ttl_ms }))
    }
}

fn tool_names(profile: &AgentProfile) -> Option<Vec<String>> {
    let tools = profile.tools.as_ref()?;
    Some(tools.iter().map(|tool| tool.name().to_owned()).collect())
}

/// Returns every command that Kapi itself will run for a request.
fn commands(request: &KernelRequest) -> Vec<String> {
    let run = request.loop_run.as_deref();
    let of_loop = run.map(|run| run.definition.commands()).unwrap_or_default();
    let mut commands = request.verify.clone();
    commands.extend(of_loop);
    commands
}

/// What the key of a task is derived from (specification: Idempotency).
#[derive(Serialize)]
struct DerivedTask<'a> {
    agent: &'a str,
    description: &'a str,
    prompt: &'a str,
    cwd: &'a str,
    /// What the specification's key leaves out, and what makes it another task all the same.
    with: (
        &'a Option<String>,
        &'a Option<String>,
        &'a Option<String>,
        Option<u64>,
    ),
    budget: TaskBudget,
    verify: &'a [String],
    // Left out while nothing was said, so that keys from before stay as they were.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    protect: &'a [String],
    #[serde(skip_serializing_if = "CheckPolicy::is_plain")]
    checks: CheckPolicy,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    keep_commits: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    base: Option<&'a String>,
}
