//! The loop of `kapi up`: read what changed, wake, drive, show, sleep.
//!
//! One thread decides, and nothing it keeps outlives it: whether a goal is parked, active or driven
//! is asked of the logs and locks each time, so several of these do each other no harm.

use std::collections::BTreeMap;
use std::time::Duration;

use kapi_core::failure::{Failure, chain};
use kapi_core::id::GoalId;
use kapi_goal::perform::waits;
use kapi_goal::perform::waits::WaitCheck;
use kapi_goal::record::approvals::approval::GoalLack;
use kapi_goal::record::drive::GoalDriveError;
use kapi_goal::record::error::EngineError;
use kapi_goal::record::race;
use kapi_goal::rules::state::Goal;
use kapi_goal::rules::wait::GoalWait;
use kapi_goal::rules::words;
use kapi_sys::alarm::{Alarm, WakeSources};
use kapi_sys::cancel::Cancel;
use kapi_sys::clock::monotonic_ms;
use kapi_workflow::record::supervise::{Need, Roster, RosterEntry, WakeOutcome, need, wake};

use crate::commands::up::StopCondition;
use crate::commands::up::board::{Board, BoardStatus};
use crate::commands::up::tally::SupervisorTally;
use crate::commands::up::tasks::Tasks;
use crate::commands::up::threads::{Shop, ThreadGroup, ThreadMessage};
use crate::driving::attendance::alarm_failed;
use crate::error::Error;
use crate::{delivering, notification};

/// The longest until everything is looked at again, should the system not tell of a change.
const LOOK_MS_MAX: u64 = 5_000;
/// How long an active goal must be without a driver before one is given to it, in milliseconds:
/// whoever made it active is about to drive it.
const GRACE_MS: u64 = 2_000;
/// The pause after something failed, in milliseconds.
const AFTER_FAILURE_MS: u64 = 60_000;
/// Commands that are tried at once.
const LOOKING_MAX: usize = 2;

/// What is remembered of a goal from look to look, in milliseconds of the monotonic clock.
#[derive(Debug, Default)]
struct GoalMemory {
    /// Since when it is active and not driven.
    undriven_since_ms: Option<u64>,
    /// It was woken here, so nobody else is about to drive it.
    is_ours: bool,
    /// The wait that was looked at last, and when it is worth another look.
    looked: Option<(u32, u64)>,
    /// What failed, and until when it is not tried again.
    trouble: Option<(String, u64)>,
}

/// How much a supervisor does.
#[derive(Clone, Copy)]
pub(super) struct SupervisorLimits {
    /// How long it goes on.
    pub(super) until: StopCondition,
    /// How many goals it drives at once.
    pub(super) jobs_max: usize,
}

/// The loop and what it needs.
pub(super) struct Supervisor<'scope, 'env> {
    shop: &'env Shop<'env>,
    threads: ThreadGroup<'scope, 'env>,
    tasks: Tasks<'scope, 'env>,
    alarm: Alarm,
    until: StopCondition,
    jobs_max: usize,
    roster: Roster,
    board: Board,
    memory: BTreeMap<GoalId, GoalMemory>,
    tally: SupervisorTally,
    now_ms: u64,
    /// When something is due that nobody tells of.
    next_ms: u64,
}

impl<'scope, 'env> Supervisor<'scope, 'env> {
    pub(super) fn new(
        shop: &'env Shop<'env>,
        threads: ThreadGroup<'scope, 'env>,
        tasks: Tasks<'scope, 'env>,
        alarm: Alarm,
        limits: SupervisorLimits,
    ) -> Self {
        let SupervisorLimits { until, jobs_max } = limits;
        Self {
            shop,
            threads,
            tasks,
            alarm,
            until,
            jobs_max,
            roster: Roster::default(),
            board: Board::new(shop.context.ui),
            memory: BTreeMap::new(),
            tally: SupervisorTally::default(),
            now_ms: 0,
            next_ms: 0,
        }
    }

    /// Supervises until it is time to end, and adds what was done to `tally`.
    pub(super) fn run(mut self, tally: &mut SupervisorTally) -> Result<(), Error> {
        let shop = self.shop;
        let result = loop {
            let is_leaving = shop.interrupts.is_raised();
            if let Err(error) = self.step(is_leaving) {
                break Err(error);
            }
            if self.is_finished(is_leaving) {
                break Ok(());
            }
            let is_over = || shop.interrupts.is_raised() && !is_leaving;
            let pause = Duration::from_millis(self.next_ms.saturating_sub(self.now_ms));
            if let Err(error) = self.alarm.sleep(pause, &is_over) {
                break Err(alarm_failed(&error));
            }
        };
        if result.is_err() {
            // The threads are joined before the error is told, and they end on the same flag.
            shop.failed.raise();
            self.threads.call_off(&|_, _| false);
            self.tasks.call_off();
        }
        self.tally.tasks = self.tasks.tally();
        tally.add(self.tally);
        result?;
        self.tasks.end()
    }

    fn step(&mut self, is_leaving: bool) -> Result<(), Error> {
        self.now_ms = monotonic_ms();
        self.next_ms = self.now_ms + LOOK_MS_MAX;
        for message in self.threads.messages() {
            self.take(message);
        }
        self.watch()?;
        self.roster
            .refresh(self.shop.project)
            .map_err(|error| Error::engine(&error, ""))?;
        self.tally.parked.clear();
        self.tally.undriven.clear();
        self.tally.failed.clear();
        let roster = std::mem::take(&mut self.roster);
        let considered = roster
            .entries()
            .try_for_each(|(id, entry)| self.consider(id, entry, is_leaving));
        self.threads.call_off(&|id, number| {
            let goal = roster.goal(id).filter(|_| !is_leaving);
            let wait = goal.and_then(|goal| goal.wait.as_ref());
            wait.is_some_and(|wait| wait.number == number)
        });
        self.roster = roster;
        considered?;
        let again_ms = self.tasks.step(&mut self.board, is_leaving)?;
        self.next_ms = self.next_ms.min(again_ms);
        Ok(())
    }

    /// Watches what can make something due. Goals that are driven here say so themselves.
    fn watch(&mut self) -> Result<(), Error> {
        let layout = &self.shop.project.layout;
        let mut watched = WakeSources::default();
        self.tasks.watch(&mut watched);
        watched.directories.insert(layout.state_dir());
        watched.directories.insert(layout.goals_dir());
        for (id, entry) in self.roster.entries() {
            let Ok(goal) = &entry.goal else { continue };
            let needed = need(goal);
            if needed == Need::Nothing || self.threads.drives(id) {
                continue;
            }
            let is_approved = !goal.contract.is_session() && self.lack(goal)?.is_none();
            watched
                .directories
                .insert(layout.goal(id).dir().to_path_buf());
            if let (Need::Watcher(wait), true) = (needed, is_approved) {
                let world = self.threads.world(id)?;
                let more = waits::watched(&world.location, wait);
                watched.directories.extend(more.directories);
                watched.processes.extend(more.processes);
            }
        }
        self.alarm
            .watch(&watched)
            .map_err(|error| alarm_failed(&error))
    }

    fn take(&mut self, message: ThreadMessage) {
        match message {
            ThreadMessage::Saw(id, seen) => self.board.see(&id, &seen),
            ThreadMessage::Drove(id, driven) => self.drove(&id, driven),
            ThreadMessage::Looked(id, number, found) => self.looked(&id, number, found),
        }
    }

    fn drove(&mut self, id: &GoalId, driven: Result<Box<Goal>, GoalDriveError>) {
        let again_ms = self.now_ms + AFTER_FAILURE_MS;
        let memory = self.memory.entry(id.clone()).or_default();
        memory.undriven_since_ms = None;
        memory.is_ours = false;
        match driven {
            // Another supervisor was faster.
            Err(GoalDriveError::Driven { .. }) => {}
            Err(GoalDriveError::Engine(error)) => {
                memory.trouble = Some((format!("failed to {}", chain(&error)), again_ms));
            }
            Ok(goal) if goal.is_driven() && !self.shop.interrupts.is_raised() => {
                let text = "it did not settle".to_owned();
                memory.trouble = Some((text, again_ms));
            }
            Ok(goal) => {
                self.tally.driven.insert(id.clone());
                // A lane that is proved ends its race, whoever drove it.
                let person = &self.shop.context.actor;
                if let Err(error) = race::settle(self.shop.project, person, &goal) {
                    memory.trouble = Some((format!("failed to {}", chain(&error)), again_ms));
                }
            }
        }
    }

    fn consider(
        &mut self,
        id: &GoalId,
        entry: &RosterEntry,
        is_leaving: bool,
    ) -> Result<(), Error> {
        let goal = match &entry.goal {
            Ok(goal) => goal,
            Err(error) => {
                self.fail(id, format!("failed to {}", chain(error)));
                return Ok(());
            }
        };
        let needed = need(goal);
        // Neither driven nor looked at: even a look may run what the goal's files say.
        if matches!(needed, Need::Driver | Need::Watcher(_))
            && !self.threads.drives(id)
            && let Some(lack) = self.lack(goal)?
        {
            self.forget(id);
            let text = format!(
                "cannot continue: {lack}; next: kapi goal approve {}",
                id.reference()
            );
            self.board.put(id, BoardStatus::Person, text);
            return Ok(());
        }
        if goal.contract.is_session() && !matches!(needed, Need::Person | Need::Nothing) {
            self.forget(id);
            let text = "it continues in its session".to_owned();
            self.board.put(id, BoardStatus::Driven, text);
            return Ok(());
        }
        match needed {
            Need::Driver => match &goal.contract.working.workflow {
                None => self.see_active(id, is_leaving),
                Some(of) => {
                    self.forget(id);
                    let text = format!("it continues as a task of workflow {}", of.id);
                    self.board.put(id, BoardStatus::Driven, text);
                    Ok(())
                }
            },
            Need::Watcher(wait) => self.see_parked(goal, wait, is_leaving),
            Need::Person => {
                self.forget(id);
                let has_come = self.board.put(id, BoardStatus::Person, person_words(goal));
                self.notify(goal, has_come);
                Ok(())
            }
            Need::Nothing => {
                self.forget(id);
                let reason = words::reason(goal).unwrap_or_default();
                let text = format!("{}: {reason}", goal.status);
                let has_come = self.board.put(id, BoardStatus::Ended, text);
                self.notify(goal, has_come);
                Ok(())
            }
        }
    }

    /// Tells the person of a goal that came to rest here; a workflow tells of its own goals.
    fn notify(&self, goal: &Goal, has_come: bool) {
        if !has_come || goal.contract.working.workflow.is_some() {
            return;
        }
        let (shop, goal) = (self.shop, goal.clone());
        self.threads.beside(move || {
            let root = shop.project.layout.root().to_path_buf();
            let delivered = delivering::of_goal(shop.context, shop.config, shop.project, &goal);
            if let Err(error) = delivered {
                shop.context.ui.say(&format!("note: {error}"));
            }
            notification::of_goal(shop.context, shop.config, &goal, root);
        });
    }

    /// Tells what is missing in the person's home for a goal to go on.
    fn lack(&self, goal: &Goal) -> Result<Option<GoalLack>, Error> {
        let lack = self.shop.project.unapproved(goal);
        lack.map_err(|error| Error::engine(&error, &goal.id.to_string()))
    }

    fn see_active(&mut self, id: &GoalId, is_leaving: bool) -> Result<(), Error> {
        if self.threads.drives(id) {
            let text = self.board.driven_text(id);
            self.board.put(id, BoardStatus::DrivenHere, text);
            return Ok(());
        }
        if let Some(text) = self.trouble(id) {
            self.fail(id, text);
            return Ok(());
        }
        let driver = self.shop.project.driver(id);
        let memory = self.memory.entry(id.clone()).or_default();
        if let Some(owner) = driver.map_err(|error| Error::engine(&error, &id.to_string()))? {
            memory.undriven_since_ms = None;
            let text = format!("driven by {owner}");
            self.board.put(id, BoardStatus::Driven, text);
            return Ok(());
        }
        let since_ms = *memory.undriven_since_ms.get_or_insert(self.now_ms);
        let due_ms = if memory.is_ours {
            self.now_ms
        } else {
            since_ms + GRACE_MS
        };
        let has_capacity = self.threads.n_driving() < self.jobs_max;
        if is_leaving || due_ms > self.now_ms || !has_capacity {
            self.next_ms = self.next_ms.min(due_ms.max(self.now_ms + 1));
            self.tally.undriven.insert(id.clone());
            let text = "active, and not driven yet".to_owned();
            self.board.put(id, BoardStatus::Due, text);
            return Ok(());
        }
        self.threads.drive(id)?;
        let text = self.board.driven_text(id);
        self.board.put(id, BoardStatus::DrivenHere, text);
        Ok(())
    }

    fn see_parked(&mut self, goal: &Goal, wait: &GoalWait, is_leaving: bool) -> Result<(), Error> {
        let id = &goal.id;
        self.tally.parked.insert(id.clone());
        let text = format!("parked until {}", words::wait_words(&wait.until));
        self.board.put(id, BoardStatus::Parked, text);
        if is_leaving || self.threads.looks_at(id) {
            return Ok(());
        }
        if waits::pace(wait) == waits::CheckCost::Quick {
            let world = self.threads.world(id)?;
            let found = waits::look(&world, goal, wait, &Cancel::new());
            self.looked(id, wait.number, found);
        } else {
            self.try_command(goal, wait)?;
        }
        let memory = self.memory.get(id);
        if memory.is_some_and(|memory| memory.trouble.is_some()) {
            self.tally.failed.insert(id.clone());
        }
        Ok(())
    }

    /// Has a command tried that is waited for, if it is time and there is room.
    fn try_command(&mut self, goal: &Goal, wait: &GoalWait) -> Result<(), Error> {
        let id = &goal.id;
        let memory = self.memory.entry(id.clone()).or_default();
        let again_ms = match memory.looked {
            Some((number, again_ms)) if number == wait.number => again_ms,
            Some(_) | None => 0,
        };
        if again_ms > self.now_ms {
            self.next_ms = self.next_ms.min(again_ms);
        } else if self.threads.n_looking() < LOOKING_MAX {
            self.threads.look(goal, wait)?;
        }
        Ok(())
    }

    fn looked(&mut self, id: &GoalId, number: u32, found: Result<WaitCheck, Failure>) {
        let failed_ms = self.now_ms + AFTER_FAILURE_MS;
        let memory = self.memory.entry(id.clone()).or_default();
        memory.looked = Some((number, failed_ms));
        match found {
            Ok(WaitCheck::NotYet { look_again_ms }) => {
                let again_ms = self.now_ms + look_again_ms;
                memory.looked = Some((number, again_ms));
                memory.trouble = None;
                self.next_ms = self.next_ms.min(again_ms);
            }
            Ok(WaitCheck::Met { why }) => {
                // Looked at again at once, now as an active goal.
                self.next_ms = self.now_ms;
                memory.looked = None;
                match wake(self.shop.project, id, number, &why) {
                    Ok(WakeOutcome::Now) => {
                        memory.is_ours = true;
                        memory.trouble = None;
                        self.tally.woken.insert(id.clone());
                    }
                    Ok(WakeOutcome::Before) => {}
                    Err(error) => self.cannot_wake(id, number, &error),
                }
            }
            Err(failure) => {
                let text = format!("cannot check whether its wait is over: {}", failure.message);
                if memory.trouble.as_ref().map(|(text, _)| text) != Some(&text) {
                    self.board.say(&format!("{id}  {text}"));
                }
                memory.trouble = Some((text, failed_ms));
            }
        }
    }

    fn cannot_wake(&mut self, id: &GoalId, number: u32, error: &EngineError) {
        let again_ms = self.now_ms + AFTER_FAILURE_MS;
        self.next_ms = self.next_ms.max(self.now_ms + LOOK_MS_MAX);
        let memory = self.memory.entry(id.clone()).or_default();
        memory.looked = Some((number, again_ms));
        memory.trouble = Some((format!("failed to {}", chain(error)), again_ms));
    }

    /// Returns what failed, while it is too soon to try again.
    fn trouble(&mut self, id: &GoalId) -> Option<String> {
        let memory = self.memory.entry(id.clone()).or_default();
        match &memory.trouble {
            Some((text, until_ms)) if *until_ms > self.now_ms => Some(text.clone()),
            Some(_) | None => {
                memory.trouble = None;
                None
            }
        }
    }

    fn fail(&mut self, id: &GoalId, text: String) {
        self.tally.failed.insert(id.clone());
        self.board.put(id, BoardStatus::Failed, text);
    }

    fn forget(&mut self, id: &GoalId) {
        self.memory.remove(id);
    }

    /// Tells whether everything that was to be done is done.
    fn is_finished(&mut self, is_leaving: bool) -> bool {
        if self.threads.n_driving() + self.threads.n_looking() > 0 {
            return false;
        }
        if (is_leaving || self.until == StopCondition::NothingDue) && !self.tasks.is_finished() {
            return false;
        }
        if is_leaving {
            return true;
        }
        let was_looked_at = |id: &GoalId| {
            let wait = self.roster.goal(id).and_then(|goal| goal.wait.as_ref());
            let looked = self.memory.get(id).and_then(|memory| memory.looked);
            wait.map(|wait| wait.number) == looked.map(|(number, _)| number)
        };
        self.until == StopCondition::NothingDue
            && self.tally.undriven.is_empty()
            && self.tally.parked.iter().all(was_looked_at)
    }
}

fn person_words(goal: &Goal) -> String {
    let reason = words::reason(goal).unwrap_or_default();
    let next = words::next_commands(goal).into_iter().next();
    let next = next.map_or_else(String::new, |command| format!("; next: {command}"));
    format!("{}: {reason}{next}", goal.status)
}
