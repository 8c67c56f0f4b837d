//! The workflows of a soak: each is planned, approved and driven, and gone on with as soon as its
//! process was cut off.
//!
//! Waits for none of them, but for the interview that plans it.

use std::process::Child;

use crate::soak::machine::{SoakMachine, exit_code};

/// Workflows that were accepted.
#[derive(Debug, Default)]
pub(super) struct SoakWorkflows {
    /// Their references.
    pub(super) ids: Vec<String>,
    /// Those that have not ended.
    open: Vec<OpenWorkflow>,
    n_resumed: u64,
}

/// A workflow that has not ended.
#[derive(Debug)]
struct OpenWorkflow {
    id: String,
    child: Child,
}

impl SoakWorkflows {
    /// Plans a workflow, which a supervisor's tasks carry out.
    pub(super) fn plan(&mut self, machine: &SoakMachine) -> Result<String, String> {
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
            let why = run.stderr.trim_end();
            return Ok(format!("the workflow was not accepted: {why}"));
        };
        self.ids.push(id.clone());
        let child = approve_and_drive(machine, &id)?;
        let said = format!("workflow {id} is planned");
        self.open.push(OpenWorkflow { id, child });
        Ok(said)
    }

    /// Looks at those whose process has ended, and goes on with those that were cut off.
    pub(super) fn go_on(
        &mut self,
        machine: &SoakMachine,
        steps: &mut Vec<String>,
    ) -> Result<(), String> {
        let mut still_open = Vec::new();
        for mut open in self.open.drain(..) {
            let Some(code) = exit_code(&mut open.child) else {
                still_open.push(open);
                continue;
            };
            let word = status(machine, &open.id);
            steps.push(format!("workflow {} is {word} after {code}", open.id));
            if word != "completed" {
                self.n_resumed += 1;
                open.child = approve_and_drive(machine, &open.id)?;
                still_open.push(open);
            }
        }
        self.open = still_open;
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

/// Approves what waits for it, and starts what drives the workflow.
fn approve_and_drive(machine: &SoakMachine, id: &str) -> Result<Child, String> {
    // Nothing waits for it where it was approved before.
    drop(machine.kapi(&["ralph", "approve", id, "--yes", "--accept-risks", "--json"]));
    machine.start(&["ralph", "resume", id, "--json"])
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
