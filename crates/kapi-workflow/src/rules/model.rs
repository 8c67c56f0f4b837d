//! An exhaustive search of a mode's machine: everything that anybody can ask for, from every state
//! that can be reached, until no new one comes about.
//!
//! States that differ in nothing a rule looks at are taken for one; a mode says which those are.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use kapi_core::actor::Actor;
use kapi_core::workflow_status::WorkflowStatus;

use crate::rules::command::WorkflowCommand;
use crate::rules::decide::{decide, folded, subject};
use crate::rules::documents::documents;
use crate::rules::effect::next;
use crate::rules::scenario::given;
use crate::rules::state::Workflow;

/// The most states of one search: reaching it is a mistake in a mode's abstraction.
const STATES_MAX: usize = 20_000;

/// What a search needs to know of a mode.
pub(crate) struct Alphabet {
    /// Where it begins.
    pub(crate) starts: Vec<Workflow>,
    /// Everything that can be asked for in a state, by everybody.
    pub(crate) commands: fn(&Workflow) -> Vec<(Actor, WorkflowCommand)>,
    /// What tells states apart.
    pub(crate) key: fn(&Workflow) -> String,
    /// Whether it waits for a person's word without a decision being pending.
    pub(crate) waits: fn(&Workflow) -> bool,
    /// Whether it has ended as it was meant to.
    pub(crate) is_success: fn(&Workflow) -> bool,
    /// What must hold of every state, beside what must hold of every mode.
    pub(crate) holds: fn(&Workflow) -> Result<(), String>,
}

/// What a search found.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// States.
    pub(crate) states: usize,
    /// Commands that led somewhere.
    pub(crate) transitions: usize,
    /// Commands that were allowed and changed nothing.
    pub(crate) idle: usize,
    /// Commands that were denied, by code.
    pub(crate) denials: BTreeMap<&'static str, usize>,
    /// Phases and subphases that were reached.
    pub(crate) phases: BTreeSet<(&'static str, Option<&'static str>)>,
    /// How many states have which status.
    pub(crate) statuses: BTreeMap<&'static str, usize>,
}

/// Searches everything, and panics with the way to the first state that breaks a rule.
pub(crate) fn search(alphabet: &Alphabet) -> Found {
    let mut search = Search::new(alphabet);
    for start in &alphabet.starts {
        search.reach(start.clone(), None, String::new());
    }
    while let Some(location) = search.queue.pop_front() {
        search.explore(location);
    }
    search.every_state_can_succeed();
    let mut found = search.found;
    found.states = search.states.len();
    found
}

/// Prints what was found and the guidance of every phase that was reached; panics where there is
/// none.
pub(crate) fn print(title: &str, found: &Found, alphabet: &Alphabet) {
    println!(
        "{title}: {} states, {} transitions, {} requests for what held already, {} denials",
        found.states,
        found.transitions,
        found.idle,
        found.denials.values().sum::<usize>()
    );
    println!("  denials: {:?}", found.denials);
    println!("  statuses: {:?}", found.statuses);
    let spec = alphabet.starts[0].body.rules().spec();
    for (phase, subphase) in &found.phases {
        let spec = spec.phases.iter().find(|spec| spec.name == *phase);
        let spec = spec.unwrap_or_else(|| panic!("{phase} is no phase of the mode"));
        println!("  {phase} {}: {:?}", subphase.unwrap_or("-"), spec.guidance);
    }
    for phase in spec.phases {
        let is_reached = |subphase| found.phases.contains(&(phase.name, subphase));
        let parts = phase.subphases.iter().copied();
        let reached = if phase.subphases.is_empty() {
            is_reached(None)
        } else {
            parts.map(Some).all(is_reached)
        };
        assert!(reached, "nothing reaches {phase:?} or a part of it");
    }
}

/// Tells whether the phase and the part of it are the mode's own.
pub(crate) fn is_in_spec(workflow: &Workflow) -> bool {
    let mode = workflow.body.rules();
    let (phase, subphase) = mode.phase();
    let has_part = subphase.map_or(phase.subphases.is_empty(), |part| {
        phase.subphases.contains(&part)
    });
    has_part && mode.spec().phases.contains(&phase)
}

/// One state, how it was reached, and where one gets to from it without giving up.
struct Reached {
    workflow: Workflow,
    from: Option<usize>,
    by: String,
    leads_to: BTreeSet<usize>,
}

struct Search<'alphabet> {
    alphabet: &'alphabet Alphabet,
    found: Found,
    states: Vec<Reached>,
    known: BTreeMap<String, usize>,
    queue: VecDeque<usize>,
}

impl<'alphabet> Search<'alphabet> {
    fn new(alphabet: &'alphabet Alphabet) -> Self {
        Self {
            alphabet,
            found: Found::default(),
            states: Vec::new(),
            known: BTreeMap::new(),
            queue: VecDeque::new(),
        }
    }

    /// Returns the place of a state, new or known.
    fn reach(&mut self, workflow: Workflow, from: Option<usize>, by: String) -> usize {
        let key = (self.alphabet.key)(&workflow);
        if let Some(location) = self.known.get(&key) {
            return *location;
        }
        let location = self.states.len();
        assert!(
            location < STATES_MAX,
            "more than {STATES_MAX} states; the last: {key}"
        );
        self.found.phases.insert(workflow.phase());
        let status = workflow.status.as_str();
        *self.found.statuses.entry(status).or_default() += 1;
        self.known.insert(key, location);
        self.states.push(Reached {
            workflow,
            from,
            by,
            leads_to: BTreeSet::new(),
        });
        self.queue.push_back(location);
        self.check(location);
        location
    }

    /// Checks what must hold of every state.
    fn check(&self, location: usize) {
        let workflow = &self.states[location].workflow;
        let effects = next(workflow);
        let ids: BTreeSet<_> = effects.iter().map(|effect| &effect.id).collect();
        self.assert(
            location,
            ids.len() == effects.len(),
            "two effects have one id",
        );
        self.assert(location, is_in_spec(workflow), "the mode has no such phase");
        if workflow.status.is_terminal() {
            self.assert(
                location,
                effects.is_empty(),
                "something is wanted after the end",
            );
            self.assert(
                location,
                workflow.pending.is_none(),
                "something is pending after the end",
            );
        } else {
            let is_blocked = workflow.status == WorkflowStatus::Blocked
                && workflow
                    .blocked
                    .as_ref()
                    .is_some_and(|why| !why.unblock.is_empty());
            let waits = workflow.pending.is_some() || (self.alphabet.waits)(workflow);
            let goes_on = !effects.is_empty() || waits || is_blocked;
            self.assert(location, goes_on, "it is stuck");
        }
        if let Some(pending) = &workflow.pending {
            let all = documents(workflow);
            let artifacts = pending.decision.artifacts();
            let is_there = |name: &&str| all.iter().any(|one| one.name == **name);
            let subject = subject(workflow, pending.decision, &given());
            let is_bound = artifacts.iter().all(is_there) && subject == pending.sha256;
            self.assert(
                location,
                is_bound,
                "the decision is not bound to the artifact as it is",
            );
        }
        let kept: Workflow =
            serde_json::from_str(&serde_json::to_string(workflow).unwrap()).unwrap();
        self.assert(
            location,
            kept == *workflow,
            "it does not read back as it was written",
        );
        if let Err(why) = (self.alphabet.holds)(workflow) {
            self.assert(location, false, &why);
        }
    }

    fn explore(&mut self, location: usize) {
        let workflow = self.states[location].workflow.clone();
        let before = serde_json::to_string(&workflow).unwrap();
        for (actor, command) in (self.alphabet.commands)(&workflow) {
            let decided = decide(Some(&workflow), &actor, &command, &given());
            let events = match decided {
                Ok(events) => events,
                Err(denied) => {
                    let says = denied.phase == Some(workflow.phase())
                        && !denied.next_commands.is_empty()
                        && denied.pending == workflow.pending.as_ref().map(|it| it.decision);
                    self.assert(
                        location,
                        says,
                        &format!("{command:?} is denied without a way on"),
                    );
                    *self.found.denials.entry(denied.why.code()).or_default() += 1;
                    continue;
                }
            };
            if events.is_empty() {
                self.found.idle += 1;
                continue;
            }
            self.found.transitions += 1;
            let after = folded(&workflow, &events);
            self.check_end(location, &workflow, &after, &command);
            let by = format!("{actor}: {command:?}");
            let reached = self.reach(after, Some(location), by);
            if !matches!(command, WorkflowCommand::Abandon { .. }) {
                self.states[location].leads_to.insert(reached);
            }
        }
        // No request, denied or not, may have touched the state it was asked of.
        let after = serde_json::to_string(&workflow).unwrap();
        self.assert(
            location,
            before == after,
            "a request changed the state it was asked of",
        );
    }

    /// Nothing leaves an end but completed work that is integrated.
    fn check_end(
        &self,
        location: usize,
        before: &Workflow,
        after: &Workflow,
        command: &WorkflowCommand,
    ) {
        if before.status.is_terminal() && before.status != after.status {
            let is_allowed = before.status == WorkflowStatus::Completed
                && after.status == WorkflowStatus::Integrated;
            self.assert(location, is_allowed, &format!("{command:?} left an end"));
        }
    }

    /// From everywhere but an end there is a way to the end that was meant.
    fn every_state_can_succeed(&self) {
        let mut backwards: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (location, state) in self.states.iter().enumerate() {
            for to in &state.leads_to {
                backwards.entry(*to).or_default().push(location);
            }
        }
        let is_success = |state: &Reached| (self.alphabet.is_success)(&state.workflow);
        let ends = self.states.iter().enumerate();
        let mut queue: Vec<usize> = ends
            .filter(|(_, s)| is_success(s))
            .map(|(p, _)| p)
            .collect();
        assert!(!queue.is_empty(), "nothing reaches the end that was meant");
        let mut good: BTreeSet<usize> = queue.iter().copied().collect();
        while let Some(location) = queue.pop() {
            let before = backwards.get(&location).into_iter().flatten();
            queue.extend(before.filter(|from| good.insert(**from)));
        }
        for (location, state) in self.states.iter().enumerate() {
            let is_over = state.workflow.status.is_terminal();
            self.assert(
                location,
                is_over || good.contains(&location),
                "nothing leads to success",
            );
        }
    }

    fn assert(&self, location: usize, holds: bool, what: &str) {
        if holds {
            return;
        }
        let mut way = Vec::new();
        let mut at = Some(location);
        while let Some(location) = at {
            way.push(self.states[location].by.clone());
            at = self.states[location].from;
        }
        way.reverse();
        let state = &self.states[location].workflow;
        panic!("{what}\nafter{}\nin {state:#?}", way.join("\n  "));
    }
}
