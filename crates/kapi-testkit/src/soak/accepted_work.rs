//! The work that comes in during a soak, and going on with what was cut off.
//!
//! Remembers what was accepted, for the judge to look for.

use std::collections::BTreeMap;

use crate::launch_schedule::model::Generator;
use crate::soak::launches::SoakLaunches;
use crate::soak::machine::SoakMachine;
use crate::soak::workflows::SoakWorkflows;

/// What was accepted.
#[derive(Debug, Default)]
pub(super) struct AcceptedWork {
    n: u64,
    /// The number that each task writes down, by its id.
    pub(super) tasks: BTreeMap<String, u64>,
    /// The same of runs of the loop.
    pub(super) runs: BTreeMap<String, u64>,
    pub(super) launches: SoakLaunches,
    pub(super) workflows: SoakWorkflows,
    /// How many tasks and runs had not ended when it was last looked at.
    n_queued: usize,
}

impl AcceptedWork {
    const fn next(&mut self) -> u64 {
        self.n += 1;
        self.n
    }

    /// Submits a task; it counts once its id was printed.
    pub(super) fn task(&mut self, machine: &SoakMachine, random: &mut Generator) -> String {
        let n = self.next();
        let pause = random.below(15);
        let agent = format!(
            "command:sleep {}.{}; echo {n} > out-{n}.txt",
            pause / 10,
            pause % 10
        );
        let (prompt, check) = (
            format!("Write {n} down"),
            format!("grep -qx {n} out-{n}.txt"),
        );
        let mut args = vec![
            "task",
            "run",
            &prompt,
            "--agent",
            &agent,
            "--detach",
            "--json",
            "--retries",
            "9",
            "--backoff",
            "1s",
        ];
        if random.below(2) == 0 {
            args.extend(["--verify", &check]);
        }
        let run = machine.kapi(&args);
        let id = run.first()["id"].as_str().unwrap_or_default().to_owned();
        if run.code != 0 || id.is_empty() {
            return format!("task {n} was not accepted: {}", run.stderr.trim_end());
        }
        self.tasks.insert(id.clone(), n);
        format!("{id} writes {n}")
    }

    /// Has the loop run with a payload of its own.
    pub(super) fn loop_run(&mut self, machine: &SoakMachine) -> String {
        let n = self.next();
        let payload = format!("{{\"n\": {n}}}");
        let args = [
            "loop",
            "run",
            "echo",
            "--payload",
            &payload,
            "--detach",
            "--again",
            "--json",
        ];
        let run = machine.kapi(&args);
        let id = run.first()["id"].as_str().unwrap_or_default().to_owned();
        if run.code != 0 || id.is_empty() {
            let why = if run.stderr.is_empty() {
                run.stdout
            } else {
                run.stderr
            };
            return format!("run {n} of the loop was not accepted: {}", why.trim_end());
        }
        self.runs.insert(id.clone(), n);
        format!("{id} runs the loop with {n}")
    }

    /// Starts a launch.
    pub(super) fn launch(
        &mut self,
        machine: &SoakMachine,
        random: &mut Generator,
    ) -> Result<String, String> {
        let n = self.next();
        self.launches.start(machine, random, n)
    }

    /// Goes on with launches and workflows that were cut off; tasks are the supervisors' own business.
    pub(super) fn go_on(
        &mut self,
        machine: &SoakMachine,
        steps: &mut Vec<String>,
    ) -> Result<(), String> {
        self.launches.go_on(machine, steps)?;
        self.workflows.go_on(machine, steps)
    }

    /// Looks at how many tasks and runs have not ended. A machine that cannot tell has what it had.
    pub(super) fn look_at_queue(&mut self, machine: &SoakMachine) {
        let listed = machine.kapi(&["task", "list", "--limit", "10000", "--json"]);
        if let Some(tasks) = listed.last()["tasks"].as_array() {
            self.n_queued = tasks.len();
        }
    }

    /// Returns how many tasks and runs had not ended when it was last looked at.
    pub(super) const fn n_queued(&self) -> usize {
        self.n_queued
    }

    /// Tells whether all of it has ended.
    pub(super) fn is_over(&self) -> bool {
        self.n_queued + self.launches.n_open() + self.workflows.n_open() == 0
    }

    /// Returns how much was accepted.
    pub(super) fn counts(&self) -> BTreeMap<&'static str, u64> {
        let count = |n: usize| u64::try_from(n).unwrap_or(u64::MAX);
        BTreeMap::from([
            ("tasks", count(self.tasks.len())),
            ("loop runs", count(self.runs.len())),
            ("launches", count(self.launches.numbers.len())),
            ("workflows", count(self.workflows.ids.len())),
        ])
    }

    /// Returns how often something was gone on with.
    pub(super) fn resumed(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("launches resumed", self.launches.n_resumed()),
            ("workflows resumed", self.workflows.n_resumed()),
        ]
    }

    /// Returns in a line what was accepted, and how much of it has not ended.
    pub(super) fn line(&self) -> String {
        let open = [
            self.tasks.len() + self.runs.len(),
            self.n_queued,
            self.launches.numbers.len(),
            self.launches.n_open(),
            self.workflows.ids.len(),
            self.workflows.n_open(),
        ];
        let [tasks, queued, launches, launched, workflows, driven] = open;
        format!(
            "{tasks} tasks and runs ({queued} open), {launches} launches ({launched} open), \
             {workflows} workflows ({driven} open)"
        )
    }
}
