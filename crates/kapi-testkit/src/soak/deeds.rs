//! What is done in a soak: work that comes in, supervisors that do it, and whatever disturbs them.
//!
//! Remembers what was accepted, for the judge to look for.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::Child;
use std::time::{Duration, Instant};
use std::{fs, thread};

use rustix::process::{Pid, Signal, kill_process};

use crate::launch_schedule::model::Generator;
use crate::soak::MemoryGrowth;
use crate::soak::machine::{SoakMachine, put};

/// How often something is killed, the disk is filled and the clock jumps.
const KILL_EVERY: Duration = Duration::from_secs(3);
const FILL_EVERY: Duration = Duration::from_secs(31);
const JUMP_EVERY: Duration = Duration::from_secs(19);
/// How long the disk stays full.
const FULL: Duration = Duration::from_secs(2);
/// How far the clock jumps, in seconds.
const JUMPS_S: [i64; 5] = [90, 3_600, -30, -600, 86_400];
/// The longest that a process is waited for, and how often it is looked at.
const PATIENCE: Duration = Duration::from_secs(300);
const LOOK: Duration = Duration::from_millis(50);
/// Bytes that are written at a time to fill the disk.
const FILL_BYTES: usize = 1 << 20;
/// How often what was cut off is gone on with at the end.
const TRIES_MAX: u32 = 12;
/// The exit codes of `kapi up --once` when a task failed, and of others when they are refused or find
/// nothing.
const EXIT_NOT_DONE: i32 = 5;
const EXIT_DENIED: i32 = 3;
const EXIT_NOT_FOUND: i32 = 6;

/// What was accepted.
#[derive(Debug, Default)]
pub(super) struct Accepted {
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

impl Accepted {
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

/// Two supervisors: one that is never killed, and one that is.
#[derive(Debug, Default)]
pub(super) struct Supervisors {
    steady: Option<SteadySupervisor>,
    killed: Option<Child>,
    n_started: u64,
    longest: Option<MemoryGrowth>,
}

#[derive(Debug)]
struct SteadySupervisor {
    child: Child,
    began: Instant,
    memory_kib: Vec<u64>,
}

impl Supervisors {
    /// Starts what is not there, and looks at the memory of the one that stays.
    pub(super) fn keep(&mut self, machine: &SoakMachine) -> Result<(), Vec<String>> {
        let has_ended = |child: &mut Child| child.try_wait().is_ok_and(|ended| ended.is_some());
        if self
            .steady
            .as_mut()
            .is_some_and(|it| has_ended(&mut it.child))
        {
            self.note_memory();
            self.steady = None;
        }
        if self.killed.as_mut().is_some_and(has_ended) {
            self.killed = None;
        }
        let mut start = || {
            self.n_started += 1;
            machine
                .start(&["up", "--tasks", "2"])
                .map_err(|why| vec![why])
        };
        if self.steady.is_none() {
            self.steady = Some(SteadySupervisor {
                child: start()?,
                began: Instant::now(),
                memory_kib: Vec::new(),
            });
        }
        if self.killed.is_none() {
            self.killed = Some(start()?);
        }
        if let Some(steady) = &mut self.steady {
            steady.memory_kib.extend(memory_kib(steady.child.id()));
        }
        Ok(())
    }

    fn note_memory(&mut self) {
        let Some(steady) = &self.steady else {
            return;
        };
        let third = steady.memory_kib.len() / 3;
        let (Some(first), Some(last)) = (
            steady.memory_kib.get(..third),
            steady.memory_kib.get(steady.memory_kib.len() - third..),
        ) else {
            return;
        };
        let growth = MemoryGrowth {
            early: median(first),
            late: median(last),
            seconds: steady.began.elapsed().as_secs(),
        };
        if self
            .longest
            .is_none_or(|longest| longest.seconds < growth.seconds)
        {
            self.longest = Some(growth);
        }
    }

    fn spares(&self, pid: u32) -> bool {
        self.steady.as_ref().is_some_and(|it| it.child.id() == pid)
    }

    pub(super) fn counts(&self) -> Vec<(&'static str, u64)> {
        vec![("supervisors started", self.n_started)]
    }

    /// Asks both to stop, and returns how the memory of the one that lived longest grew.
    pub(super) fn end(&mut self) -> Option<MemoryGrowth> {
        self.note_memory();
        let children = self.steady.as_mut().map(|it| &mut it.child).into_iter();
        for child in children.chain(self.killed.as_mut()) {
            signal(child.id(), Signal::INT);
            drop(child.wait());
        }
        self.longest
    }
}

/// Kills processes, fills the disk and has the clock jump.
#[derive(Debug)]
pub(super) struct Disturber<'a> {
    machine: &'a SoakMachine,
    last_kill: Instant,
    last_fill: Instant,
    last_jump: Instant,
    shift_ms: i64,
    counts: BTreeMap<&'static str, u64>,
}

impl<'a> Disturber<'a> {
    pub(super) fn new(machine: &'a SoakMachine) -> Self {
        let now = Instant::now();
        Self {
            machine,
            last_kill: now,
            last_fill: now,
            last_jump: now,
            shift_ms: 0,
            counts: BTreeMap::new(),
        }
    }

    /// Does what is due.
    pub(super) fn disturb(
        &mut self,
        random: &mut Generator,
        supervisors: &Supervisors,
        steps: &mut Vec<String>,
    ) -> Result<(), Vec<String>> {
        if self.last_kill.elapsed() > KILL_EVERY {
            self.last_kill = Instant::now();
            let mut victims = self.machine.processes();
            victims.retain(|(pid, _)| !supervisors.spares(*pid));
            if let Some((pid, words)) = victims.get(random.below(victims.len())) {
                signal(*pid, Signal::KILL);
                *self.counts.entry("killed").or_default() += 1;
                steps.push(format!("killed {pid} {words}"));
            }
        }
        if self.last_fill.elapsed() > FILL_EVERY {
            self.last_fill = Instant::now();
            self.fill();
            steps.push("the disk was full".to_owned());
        }
        if self.last_jump.elapsed() > JUMP_EVERY {
            self.last_jump = Instant::now();
            let jump_s = JUMPS_S.get(random.below(JUMPS_S.len())).copied();
            self.shift_ms += jump_s.unwrap_or_default() * 1_000;
            self.shift().map_err(|why| vec![why])?;
            *self.counts.entry("clock jumped").or_default() += 1;
            steps.push(format!("the clock is off by {} ms", self.shift_ms));
        }
        Ok(())
    }

    fn shift(&self) -> Result<(), String> {
        let file = self.machine.clock();
        let next = file.with_extension("next");
        put(&next, &format!("{:+}", self.shift_ms))?;
        fs::rename(&next, &file).map_err(|error| format!("set the clock: {error}"))
    }

    /// Takes all that is left of the disk for a while.
    fn fill(&mut self) {
        let path = self.filler();
        let block = vec![1; FILL_BYTES];
        if let Ok(mut file) = fs::File::create(&path) {
            while file.write_all(&block).is_ok() {}
            while file.write_all(&block[..1]).is_ok() {}
        }
        thread::sleep(FULL);
        drop(fs::remove_file(&path));
        *self.counts.entry("disk filled").or_default() += 1;
    }

    fn filler(&self) -> PathBuf {
        self.machine.root().join("filler")
    }

    /// Leaves the machine alone.
    pub(super) fn end(&self) -> Result<(), Vec<String>> {
        drop(fs::remove_file(self.filler()));
        self.shift().map_err(|why| vec![why])
    }

    pub(super) fn counts(&self) -> Vec<(&'static str, u64)> {
        self.counts.iter().map(|(what, n)| (*what, *n)).collect()
    }
}

/// Waits until a process has ended; one that takes too long is killed.
fn await_end(child: &mut Child) -> bool {
    let began = Instant::now();
    while began.elapsed() < PATIENCE {
        if child.try_wait().is_ok_and(|ended| ended.is_some()) {
            return true;
        }
        thread::sleep(LOOK);
    }
    drop(child.kill());
    drop(child.wait());
    false
}

fn signal(pid: u32, signal: Signal) {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    if let Some(pid) = pid {
        // It may have ended meanwhile.
        kill_process(pid, signal).ok();
    }
}

/// Returns the memory that a process holds.
fn memory_kib(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

fn median(values: &[u64]) -> u64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    sorted.get(sorted.len() / 2).copied().unwrap_or_default()
}
