//! The work that comes in during a soak, and going on with it at the end.
//!
//! Remembers what was accepted, for the judge to look for.

use std::collections::BTreeMap;
use std::process::Child;
use std::thread;
use std::time::{Duration, Instant};

use crate::launch_schedule::model::Generator;
use crate::soak::machine::SoakMachine;

/// The longest that a process is waited for, and how often it is looked at.
const PATIENCE: Duration = Duration::from_secs(300);
const LOOK: Duration = Duration::from_millis(50);
/// How often what was cut off is gone on with at the end.
const TRIES_MAX: u32 = 12;
/// The exit codes of `kapi up --once` when a task failed, and of others when they are refused or find
/// nothing.
const EXIT_NOT_DONE: i32 = 5;
const EXIT_DENIED: i32 = 3;
const EXIT_NOT_FOUND: i32 = 6;

/// What was accepted.
#[derive(Debug, Default)]
pub(super) struct AcceptedWork {
    n: u64,
    /// The number that each task writes down, by its id.
    pub(super) tasks: BTreeMap<String, u64>,
    /// The same of runs of the loop.
    pub(super) runs: BTreeMap<String, u64>,
    /// The number of each launch.
    pub(super) launches: Vec<u64>,
    launched: Vec<Child>,
    /// The references of workflows.
    pub(super) workflows: Vec<String>,
}

impl AcceptedWork {
    fn next(&mut self) -> u64 {
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

    /// Starts a launch, which is looked after at the end.
    pub(super) fn launch(&mut self, machine: &SoakMachine, random: &mut Generator) -> String {
        let n = self.next();
        let pause = random.below(30);
        let agent = format!(
            "command:sleep {}.{}; echo {n} > out-{n}.txt",
            pause / 10,
            pause % 10
        );
        match machine.start(&launch_words(
            &format!("l{n}"),
            &format!("launch-{n}"),
            &agent,
        )) {
            Ok(child) => {
                self.launches.push(n);
                // Who has ended is taken out of the process table.
                self.launched.retain_mut(|child| !has_ended(child));
                self.launched.push(child);
                format!("launch/l{n} writes {n}")
            }
            Err(why) => why,
        }
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

    /// Plans a workflow, which a supervisor's tasks carry out.
    pub(super) fn workflow(&mut self, machine: &SoakMachine) -> String {
        let (agent, reviewer) = (script(machine, "agent"), script(machine, "reviewer"));
        let args = [
            "ralph",
            "greet people by name",
            "--unlinked",
            "--agent",
            &agent,
            "--reviewer",
            &reviewer,
            "--judge",
            "none",
            "--json",
        ];
        let run = machine.kapi(&args);
        let Some(id) = run.last()["id"].as_str().map(str::to_owned) else {
            return format!("the workflow was not accepted: {}", run.stderr.trim_end());
        };
        self.workflows.push(id.clone());
        // It is driven at the end, unless something drives it before.
        let approved =
            machine.kapi(&["ralph", "approve", &id, "--yes", "--accept-risks", "--json"]);
        let driven = machine.start(&["ralph", "resume", &id, "--json"]);
        self.launched.extend(driven.ok());
        format!("workflow {id} is planned, approved: {}", approved.code)
    }

    /// Returns how many workflows have not ended.
    pub(super) fn n_open_workflows(&self, machine: &SoakMachine) -> usize {
        let ids = self.workflows.iter();
        ids.filter(|id| status(machine, id) != "completed").count()
    }

    /// Goes on with everything that was cut off, until nothing is left to do.
    pub(super) fn finish(&mut self, machine: &SoakMachine, steps: &mut Vec<String>) {
        for child in &mut self.launched {
            if !await_end(child) {
                steps.push(format!("process {} did not end and was killed", child.id()));
            }
        }
        for tries in 0..TRIES_MAX {
            let run = machine.kapi(&["up", "--once"]);
            steps.push(format!(
                "up --once, {tries}: {} {}",
                run.code,
                run.stderr.trim_end()
            ));
            if run.code == 0 || run.code == EXIT_NOT_DONE {
                break;
            }
        }
        for n in &self.launches {
            finish_launch(machine, *n, steps);
        }
        for id in &self.workflows {
            finish_workflow(machine, id, steps);
        }
    }

    /// Returns how much was accepted.
    pub(super) fn counts(&self) -> BTreeMap<&'static str, u64> {
        let count = |n: usize| u64::try_from(n).unwrap_or(u64::MAX);
        BTreeMap::from([
            ("tasks", count(self.tasks.len())),
            ("loop runs", count(self.runs.len())),
            ("launches", count(self.launches.len())),
            ("workflows", count(self.workflows.len())),
        ])
    }
}

fn finish_workflow(machine: &SoakMachine, id: &str, steps: &mut Vec<String>) {
    for tries in 0..TRIES_MAX {
        if status(machine, id) == "completed" {
            return;
        }
        let approve = ["ralph", "approve", id, "--yes", "--accept-risks", "--json"];
        drop(machine.kapi(&approve));
        let run = machine.kapi(&["ralph", "resume", id, "--json"]);
        steps.push(format!(
            "resume {id}, {tries}: {} {}",
            run.code,
            run.stderr.trim_end()
        ));
    }
}

fn finish_launch(machine: &SoakMachine, n: u64, steps: &mut Vec<String>) {
    let (id, branch) = (format!("l{n}"), format!("launch-{n}"));
    let reference = format!("launch/{id}");
    for tries in 0..TRIES_MAX {
        let shown = machine.kapi(&["show", &reference, "--json"]).last();
        if shown["state"] == "finished" || shown["status"] == "finished" {
            return;
        }
        let mut run = machine.kapi(&["resume", &reference, "--json"]);
        if run.code == EXIT_DENIED || run.code == EXIT_NOT_FOUND {
            // It was killed before it was on record: nobody knows of it.
            let agent = format!("command:echo {n} > out-{n}.txt");
            run = machine.kapi(&launch_words(&id, &branch, &agent));
        }
        steps.push(format!(
            "resume {reference}, {tries}: {} {}",
            run.code,
            run.stderr.trim_end()
        ));
        if run.code == 0 {
            return;
        }
    }
}

fn launch_words<'a>(id: &'a str, branch: &'a str, agent: &'a str) -> [&'a str; 10] {
    [
        "launch",
        id,
        ".",
        "--task",
        "write it down",
        "--agent",
        agent,
        "--branch",
        branch,
        "--json",
    ]
}

/// Returns where a workflow stands.
pub(super) fn status(machine: &SoakMachine, id: &str) -> String {
    let shown = machine.kapi(&["status", id, "--json"]).last();
    shown["status"].as_str().unwrap_or_default().to_owned()
}

fn script(machine: &SoakMachine, name: &str) -> String {
    format!(
        "script:{}",
        machine.root().join(format!("{name}.yaml")).display()
    )
}

/// Tells whether a child has ended.
pub(super) fn has_ended(child: &mut Child) -> bool {
    child.try_wait().is_ok_and(|ended| ended.is_some())
}

/// Waits until a process has ended; one that takes too long is killed.
fn await_end(child: &mut Child) -> bool {
    let began = Instant::now();
    while began.elapsed() < PATIENCE {
        if has_ended(child) {
            return true;
        }
        thread::sleep(LOOK);
    }
    drop(child.kill());
    drop(child.wait());
    false
}
