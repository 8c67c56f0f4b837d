//! The rules of the kernel, asked the way its queue asks them: decide, then fold.
//!
//! Helpers that the modules below share; what they prove stands in each.

mod goals;
mod keys;
mod lease;
mod loops;
mod random;
mod rests;
mod spend;
mod table;
mod turns;

use std::collections::{BTreeMap, BTreeSet};

use kapi_check::rules::proof::policy::CheckPolicy;
use kapi_core::actor::Actor;
use kapi_core::task_id::{Holder, KernelTaskId, LoopName};
use kapi_core::usage::Usage;
use kapi_core::value::KernelValue;

use crate::rules::command::{Admission, Capacity, Hold, KernelCommand, Overflow};
use crate::rules::decide::{KernelReply, decide};
use crate::rules::definition::trigger::LoopTrigger;
use crate::rules::definition::{Definition, DefinitionSource, Learn, WorkspaceMode};
use crate::rules::denied::KernelDenial;
use crate::rules::event::KernelEvent;
use crate::rules::evolve::evolve;
use crate::rules::loop_run::{LoopRun, RunTrigger};
use crate::rules::request::{KernelRequest, TaskOrigin};
use crate::rules::state::KernelState;
use crate::rules::task::{AttemptFailure, AttemptReport, End, FailureKind, KernelTask};
use crate::rules::task_state::KernelTaskState;
use crate::rules::task_terms::{Priority, Retry, TaskBudget};

pub(super) const NOW: i64 = 1_795_348_800_000;
/// How long the leases of these tests last.
pub(super) const LEASE_MS: u64 = 60_000;

/// A kernel, the time, and every fact that was recorded.
#[derive(Debug, Clone)]
pub(super) struct TestKernel {
    pub(super) kernel: KernelState,
    pub(super) now_ms: i64,
    pub(super) log: Vec<(KernelEvent, i64)>,
    pub(super) capacity: Capacity,
    pub(super) admission: Admission,
}

impl TestKernel {
    pub(super) fn new() -> Self {
        Self {
            kernel: KernelState::default(),
            now_ms: NOW,
            log: Vec::new(),
            capacity: locations(100),
            admission: Admission {
                tasks_max: 10_000,
                overflow: Overflow::Queue,
                running_max: 100,
            },
        }
    }

    /// Asks, records and folds. A denial must have been of no effect, which its type says.
    pub(super) fn ask(
        &mut self,
        actor: &Actor,
        command: &KernelCommand,
    ) -> Result<KernelReply, KernelDenial> {
        let decided = decide(&self.kernel, actor, command, self.now_ms)?;
        for event in decided.events {
            evolve(&mut self.kernel, &event, self.now_ms);
            self.log.push((event, self.now_ms));
        }
        Ok(decided.answer)
    }

    pub(super) fn engine(&mut self, command: &KernelCommand) -> Result<KernelReply, KernelDenial> {
        self.ask(&Actor::Engine, command)
    }

    pub(super) fn try_submit(
        &mut self,
        actor: &Actor,
        request: KernelRequest,
    ) -> Result<KernelReply, KernelDenial> {
        let (request, admission) = (Box::new(request), self.admission);
        self.ask(actor, &KernelCommand::Submit { request, admission })
    }

    pub(super) fn submit(&mut self, request: KernelRequest) -> KernelTaskId {
        let answer = self.try_submit(&person(), request).unwrap();
        let KernelReply::Submitted(task) = answer else {
            panic!("it was to be let in: {answer:?}");
        };
        task
    }

    pub(super) fn claim(&mut self, who: &str) -> Option<Hold> {
        self.claim_only(who, None)
    }

    pub(super) fn claim_only(&mut self, who: &str, only: Option<KernelTaskId>) -> Option<Hold> {
        let capacity = self.capacity.clone();
        let answer = self.engine(&claim(who, capacity, only)).unwrap();
        if let KernelReply::Claimed(task, fence) = answer {
            return Some(Hold { task, fence });
        }
        assert_eq!(answer, KernelReply::Nothing);
        None
    }

    /// Claims and begins.
    pub(super) fn start(&mut self, who: &str) -> Hold {
        let hold = self.claim(who).unwrap();
        self.engine(&KernelCommand::Begin(hold)).unwrap();
        hold
    }

    pub(super) fn finish(&mut self, hold: Hold, end: End) -> Result<KernelReply, KernelDenial> {
        let report = Box::new(AttemptReport::of(end));
        self.engine(&KernelCommand::Finish { hold, report })
    }

    pub(super) fn expire(&mut self, gone: &[&str]) {
        let gone: BTreeSet<Holder> = gone.iter().map(|who| holder(who)).collect();
        self.engine(&KernelCommand::Expire { gone }).unwrap();
    }

    pub(super) fn task(&self, id: KernelTaskId) -> &KernelTask {
        self.kernel.task(id).unwrap()
    }

    pub(super) fn state(&self, id: KernelTaskId) -> KernelTaskState {
        self.task(id).state
    }
}

pub(super) fn claim(who: &str, capacity: Capacity, only: Option<KernelTaskId>) -> KernelCommand {
    KernelCommand::Claim {
        holder: holder(who),
        ttl_ms: LEASE_MS,
        capacity,
        only,
        reach: None,
    }
}

pub(super) fn cancel(task: KernelTaskId) -> KernelCommand {
    let why = "not wanted".to_owned();
    KernelCommand::Cancel { task, why }
}

pub(super) fn give_back(hold: Hold) -> KernelCommand {
    KernelCommand::GiveBack {
        hold,
        why: "told to stop".to_owned(),
        usage: Usage::default(),
        pause_ms: 0,
    }
}

pub(super) const fn locations(project: u32) -> Capacity {
    Capacity {
        project,
        per_agent: BTreeMap::new(),
        usd_micros_per_day: None,
    }
}

pub(super) fn holder(who: &str) -> Holder {
    Holder(who.to_owned())
}

pub(super) fn person() -> Actor {
    let user = "user".to_owned();
    Actor::Human { user }
}

pub(super) fn agent(run: &str) -> Actor {
    let run = run.to_owned();
    Actor::Agent { run }
}

pub(super) fn by_person(user: &str) -> TaskOrigin {
    let user = user.to_owned();
    TaskOrigin::Person { user }
}

pub(super) fn by_agent(run: &str) -> TaskOrigin {
    let run = run.to_owned();
    TaskOrigin::Agent { run, task: None }
}

pub(super) fn request(origin: TaskOrigin) -> KernelRequest {
    KernelRequest {
        description: "Count the tests".to_owned(),
        prompt: "Count them.".to_owned(),
        agent: "sisyphus".to_owned(),
        backend: None,
        model: None,
        timeout_ms: 300_000,
        budget: TaskBudget::default(),
        domain: None,
        priority: Priority::Normal,
        key: None,
        retry: Retry::default(),
        verify: Vec::new(),
        protect: Vec::new(),
        checks: CheckPolicy::default(),
        keep_commits: false,
        base: None,
        origin,
        depth: 0,
        retry_of: None,
        loop_run: None,
        goal: None,
    }
}

pub(super) fn plain() -> KernelRequest {
    request(by_person("user"))
}

pub(super) fn loop_name(name: &str) -> LoopName {
    LoopName::parse(name).unwrap()
}

pub(super) fn definition(name: &str) -> Definition {
    Definition {
        name: loop_name(name),
        version: 1,
        description: "Look at the tests".to_owned(),
        trigger: LoopTrigger::Manual,
        agent: "sisyphus".to_owned(),
        backend: None,
        model: None,
        timeout_ms: 120_000,
        max_concurrent: 1,
        cooldown_ms: 0,
        coalesce: false,
        retry: Retry::default(),
        evals: Vec::new(),
        inputs: BTreeMap::new(),
        budget: TaskBudget::default(),
        should_run: None,
        retrigger: None,
        learn: Learn::Never,
        priority: Priority::Normal,
        verify: Vec::new(),
        protect: Vec::new(),
        checks: CheckPolicy::default(),
        keep_commits: false,
        workspace: WorkspaceMode::ReadOnly,
        body: "Look.".to_owned(),
        source: DefinitionSource {
            file: "loops/look.md".to_owned(),
            sha256: "0".repeat(64),
            is_tracked: false,
        },
    }
}

pub(super) fn run_of(definition: Definition, trigger: RunTrigger) -> KernelRequest {
    let name = definition.name.clone();
    KernelRequest {
        loop_run: Some(Box::new(LoopRun {
            definition,
            trigger,
            inputs: BTreeMap::new(),
            payload: KernelValue::Null,
            depth: 0,
        })),
        ..request(TaskOrigin::Loop { name })
    }
}

pub(super) fn failed(kind: FailureKind) -> End {
    End::Failed(AttemptFailure {
        kind,
        message: "It did not work.".to_owned(),
        hint: None,
        exit_code: Some(1),
    })
}

/// Something that ends a worker's hold on a task.
pub(super) type Ending<'a> = &'a dyn Fn(&mut TestKernel, Hold);

/// Returns the name of what refused.
pub(super) fn word(denied: &KernelDenial) -> &'static str {
    match denied {
        KernelDenial::BadRequest { .. } => "BadRequest",
        KernelDenial::OverCapacity { .. } => "OverCapacity",
        KernelDenial::TooDeep { .. } => "TooDeep",
        KernelDenial::NoTask { .. } => "NoTask",
        KernelDenial::WrongState { .. } => "WrongState",
        KernelDenial::Fenced { .. } => "Fenced",
        KernelDenial::WrongPhase { .. } => "WrongPhase",
        KernelDenial::Led { .. } => "Led",
        KernelDenial::OnlyHuman { .. } => "OnlyHuman",
        KernelDenial::OnlyEngine { .. } => "OnlyEngine",
        KernelDenial::NotYours { .. } => "NotYours",
    }
}
