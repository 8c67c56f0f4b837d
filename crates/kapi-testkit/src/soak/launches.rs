//! The launches of a soak: each is started once, and gone on with as soon as its process was cut off.
//!
//! Waits for none of them: whoever calls looks again and again, as a person would.

use std::collections::BTreeMap;
use std::process::Child;

use crate::launch_schedule::model::Generator;
use crate::soak::machine::{SoakMachine, exit_code};

/// The most that are gone on with at one look, so that a look stays short.
const GONE_ON_MAX: usize = 2;
/// What a process ends with that did what it was told.
const EXIT_SUCCESS: i32 = 0;
/// The exit codes of `kapi resume` when it is refused, and of `kapi show` when there is no such launch.
const EXIT_DENIED: i32 = 3;
const EXIT_NOT_FOUND: i32 = 6;

/// The launches that were accepted.
#[derive(Debug, Default)]
pub(super) struct SoakLaunches {
    /// The number of each, which it writes down.
    pub(super) numbers: Vec<u64>,
    /// Those that have not ended.
    open: BTreeMap<u64, OpenLaunch>,
    n_resumed: u64,
}

/// A launch that has not ended.
#[derive(Debug)]
struct OpenLaunch {
    child: Child,
    next: NextWords,
}

/// With which words a launch is gone on with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NextWords {
    Resume,
    /// The same as the first time: it was killed before it was on record.
    Launch,
}

impl SoakLaunches {
    /// Starts a launch.
    pub(super) fn start(
        &mut self,
        machine: &SoakMachine,
        random: &mut Generator,
        n: u64,
    ) -> Result<String, String> {
        let pause = random.below(30);
        let agent = format!(
            "command:sleep {}.{}; echo {n} > out-{n}.txt",
            pause / 10,
            pause % 10
        );
        let child = launch(machine, n, &agent)?;
        self.numbers.push(n);
        let next = NextWords::Resume;
        self.open.insert(n, OpenLaunch { child, next });
        Ok(format!("launch/l{n} writes {n}"))
    }

    /// Looks at those whose process has ended, and goes on with those that were cut off.
    pub(super) fn go_on(
        &mut self,
        machine: &SoakMachine,
        steps: &mut Vec<String>,
    ) -> Result<(), String> {
        let mut n_gone_on = 0;
        let mut over = Vec::new();
        for (&n, open) in &mut self.open {
            let Some(code) = exit_code(&mut open.child) else {
                continue;
            };
            if code == EXIT_SUCCESS || has_ended_well(machine, n, code, open) {
                over.push(n);
                continue;
            }
            open.child = match open.next {
                NextWords::Resume => machine.start(&["resume", &reference(n), "--json"])?,
                NextWords::Launch => {
                    launch(machine, n, &format!("command:echo {n} > out-{n}.txt"))?
                }
            };
            steps.push(format!(
                "{} ended with {code}: {:?}",
                reference(n),
                open.next
            ));
            n_gone_on += 1;
            if n_gone_on == GONE_ON_MAX {
                break;
            }
        }
        self.n_resumed += n_gone_on as u64;
        self.open.retain(|n, _| !over.contains(n));
        Ok(())
    }

    /// Returns how many have not ended.
    pub(super) fn n_open(&self) -> usize {
        self.open.len()
    }

    /// Returns how often one was gone on with.
    pub(super) const fn n_resumed(&self) -> u64 {
        self.n_resumed
    }
}

/// Tells whether a launch has done its work although its process did not end well, and otherwise notes
/// with which words to go on.
fn has_ended_well(machine: &SoakMachine, n: u64, code: i32, open: &mut OpenLaunch) -> bool {
    let run = machine.kapi(&["show", &reference(n), "--json"]);
    let shown = run.last();
    let was_refused =
        open.next == NextWords::Resume && [EXIT_DENIED, EXIT_NOT_FOUND].contains(&code);
    open.next = if run.code == EXIT_NOT_FOUND || was_refused {
        NextWords::Launch
    } else {
        NextWords::Resume
    };
    shown["state"] == "finished" && shown["exit_code"] == 0
}

/// Returns what a launch is called in references.
pub(super) fn reference(n: u64) -> String {
    format!("launch/l{n}")
}

/// Returns the name of a launch's branch.
pub(super) fn branch(n: u64) -> String {
    format!("launch-{n}")
}

fn launch(machine: &SoakMachine, n: u64, agent: &str) -> Result<Child, String> {
    machine.start(&[
        "launch",
        &format!("l{n}"),
        ".",
        "--task",
        "write it down",
        "--agent",
        agent,
        "--branch",
        &branch(n),
        "--json",
    ])
}
