//! The rules of the kernel, asked the way its queue asks them: decide, then fold.
//!
//! Helpers that the modules below share; what they prove stands in each.

mod goals;
mod keys;
mod lease;
mod loops;
mod random;
mod spend;
mod table;
mod turns;

use std::collections::{BTreeMap, BTreeSet};

use kapi_check::rules::proof::policy::CheckPolicy;
use kapi_core::actor::Actor;
use kapi_core::task_id::{Holder, LoopName, TaskId};
use kapi_core::usage::Usage;
use kapi_core::value::Value;

use crate::rules::command::{Admission, Capacity, Command, Hold, Overflow};
use crate::rules::decide::{Answer, decide};
use crate::rules::definition::trigger::Trigger as Due;
use crate::rules::definition::{Definition, Learn, Source, Workspace};
use crate::rules::denied::Denied;
use crate::rules::event::KernelEvent;
use crate::rules::evolve::evolve;
use crate::rules::loop_run::{LoopRun, Trigger};
use crate::rules::request::{Origin, Request};
use crate::rules::state::Kernel;
use crate::rules::task::{End, Failure, FailureKind, Report, Task};
use crate::rules::task_state::State;
use crate::rules::task_terms::{Priority, Retry, TaskBudget};

pub(super) const NOW: i64 = 1_795_348_800_000;
/// How long the leases of these tests last.
pub(super) const LEASE_MS: u64 = 60_000;

/// A kernel, the time, and every fact that was recorded.
#[derive(Debug, Clone)]
pub(super) struct Desk {
    pub(super) kernel: Kernel,
    pub(super) now_ms: i64,
    pub(super) log: Vec<(KernelEvent, i64)>,
    pub(super) capacity: Capacity,
    pub(super) admission: Admission,
}

impl Desk {
    pub(super) fn new() -> Self {
        Self {
            kernel: Kernel::default(),
            now_ms: NOW,
            log: Vec::new(),
            capacity: places(100),
            admission: Admission {
                tasks_max: 10_000,
                overflow: Overflow::Queue,
                running_max: 100,
            },
        }
    }

    /// Asks, records and folds. A denial must have been of no effect, which its type says.
    pub(super) fn ask(&mut self, actor: &Actor, command: &Command) -> Result<Answer, Denied> {
        let decided = decide(&self.kernel, actor, command, self.now_ms)?;
        for event in decided.events {
            evolve(&mut self.kernel, &event, self.now_ms);
            self.log.push((event, self.now_ms));
        }
        Ok(decided.answer)
    }

    pub(super) fn engine(&mut self, command: &Command) -> Result<Answer, Denied> {
        self.ask(&Actor::Engine, command)
    }

    pub(super) fn try_submit(&mut self, actor: &Actor, request: Request) -> Result<Answer, Denied> {
        let (request, admission) = (Box::new(request), self.admission);
        self.ask(actor, &Command::Submit { request, admission })
    }

    pub(super) fn submit(&mut self, request: Request) -> TaskId {
        let answer = self.try_submit(&person(), request).unwrap();
        let Answer::Submitted(task) = answer else {
            panic!("it was to be let in: {answer:?}");
        };
        task
    }

    pub(super) fn claim(&mut self, who: &str) -> Option<Hold> {
        self.claim_only(who, None)
    }

    pub(super) fn claim_only(&mut self, who: &str, only: Option<TaskId>) -> Option<Hold> {
        let capacity = self.capacity.clone();
        let answer = self.engine(&claim(who, capacity, only)).unwrap();
        if let Answer::Claimed(task, fence) = answer {
            return Some(Hold { task, fence });
        }
        assert_eq!(answer, Answer::Nothing);
        None
    }

    /// Claims and begins.
    pub(super) fn start(&mut self, who: &str) -> Hold {
        let hold = self.claim(who).unwrap();
        self.engine(&Command::Begin(hold)).unwrap();
        hold
    }

    pub(super) fn finish(&mut self, hold: Hold, end: End) -> Result<Answer, Denied> {
        let report = Box::new(Report::of(end));
        self.engine(&Command::Finish { hold, report })
    }

    pub(super) fn expire(&mut self, gone: &[&str]) {
        let gone: BTreeSet<Holder> = gone.iter().map(|who| holder(who)).collect();
        self.engine(&Command::Expire { gone }).unwrap();
    }

    pub(super) fn task(&self, id: TaskId) -> &Task {
        self.kernel.task(id).unwrap()
    }

    pub(super) fn state(&self, id: TaskId) -> State {
        self.task(id).state
    }
}

pub(super) fn claim(who: &str, capacity: Capacity, only: Option<TaskId>) -> Command {
    Command::Claim {
        holder: holder(who),
        ttl_ms: LEASE_MS,
        capacity,
        only,
        reach: None,
    }
}

pub(super) fn cancel(task: TaskId) -> Command {
    let why = "not wanted".to_owned();
    Command::Cancel { task, why }
}

pub(super) fn give_back(hold: Hold) -> Command {
    Command::GiveBack {
        hold,
        why: "told to stop".to_owned(),
        usage: Usage::default(),
        pause_ms: 0,
    }
}

pub(super) const fn places(project: u32) -> Capacity {
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

pub(super) fn by_person(user: &str) -> Origin {
    let user = user.to_owned();
    Origin::Person { user }
}

pub(super) fn by_agent(run: &str) -> Origin {
    let run = run.to_owned();
    Origin::Agent { run, task: None }
}

pub(super) fn request(origin: Origin) -> Request {
    Request {
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
        base: None,
        origin,
        depth: 0,
        retry_of: None,
        loop_run: None,
        goal: None,
    }
}

pub(super) fn plain() -> Request {
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
        trigger: Due::Manual,
        agent: "sisyphus".to_owned(),
        backend: None,
        model: None,
        timeout_ms: 120_000,
        max_concurrent: 1,
        cooldown_ms: 0,
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
        workspace: Workspace::ReadOnly,
        body: "Look.".to_owned(),
        source: Source {
            file: "loops/look.md".to_owned(),
            sha256: "0".repeat(64),
        },
    }
}

pub(super) fn run_of(definition: Definition, trigger: Trigger) -> Request {
    let name = definition.name.clone();
    Request {
        loop_run: Some(Box::new(LoopRun {
            definition,
            trigger,
            inputs: BTreeMap::new(),
            payload: Value::Null,
            depth: 0,
        })),
        ..request(Origin::Loop { name })
    }
}

pub(super) fn failed(kind: FailureKind) -> End {
    End::Failed(Failure {
        kind,
        message: "It did not work.".to_owned(),
        exit_code: Some(1),
    })
}

/// Something that ends a worker's hold on a task.
pub(super) type Ending<'a> = &'a dyn Fn(&mut Desk, Hold);

/// Returns the name of what refused.
pub(super) fn word(denied: &Denied) -> &'static str {
    match denied {
        Denied::BadRequest { .. } => "BadRequest",
        Denied::OverCapacity { .. } => "OverCapacity",
        Denied::TooDeep { .. } => "TooDeep",
        Denied::NoTask { .. } => "NoTask",
        Denied::WrongState { .. } => "WrongState",
        Denied::Fenced { .. } => "Fenced",
        Denied::WrongPhase { .. } => "WrongPhase",
        Denied::Led { .. } => "Led",
        Denied::OnlyHuman { .. } => "OnlyHuman",
        Denied::OnlyEngine { .. } => "OnlyEngine",
        Denied::NotYours { .. } => "NotYours",
    }
}
