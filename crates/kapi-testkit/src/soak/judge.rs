//! What must hold after a soak: everything that was accepted has ended and is what it should be, and
//! nothing is left that nobody needs.
//!
//! Looks by the program's own commands, by git, and at processes, mounts and directories.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::soak::accepted_work::{AcceptedWork, status};
use crate::soak::machine::SoakMachine;

/// Looks at everything; returns how what was accepted has ended.
pub(super) fn judge(
    machine: &SoakMachine,
    accepted: &AcceptedWork,
) -> Result<BTreeMap<String, u64>, Vec<String>> {
    let mut verdict = Verdict {
        machine,
        ended: BTreeMap::new(),
        faults: Vec::new(),
    };
    for (id, n) in &accepted.tasks {
        verdict.task(id, &format!("out-{n}.txt"), *n);
    }
    for (id, n) in &accepted.runs {
        verdict.task(id, &format!("loop-{n}.txt"), *n);
    }
    for n in &accepted.launches {
        verdict.launch(*n);
    }
    for id in &accepted.workflows {
        let word = status(machine, id);
        verdict.count("workflow", &word);
        if word != "completed" {
            verdict.faults.push(format!("workflow {id} is {word}"));
        }
    }
    verdict.leavings();
    if verdict.faults.is_empty() {
        Ok(verdict.ended)
    } else {
        Err(verdict.faults)
    }
}

struct Verdict<'a> {
    machine: &'a SoakMachine,
    ended: BTreeMap<String, u64>,
    faults: Vec<String>,
}

impl Verdict<'_> {
    fn count(&mut self, kind: &str, word: &str) {
        *self.ended.entry(format!("{kind} {word}")).or_default() += 1;
    }

    /// A task has ended: with its number on its branch, or with a reason why not.
    fn task(&mut self, id: &str, file: &str, n: u64) {
        let shown = self.machine.kapi(&["show", id, "--json"]).last();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        match text(&shown["state"]).as_str() {
            "completed" => {
                self.count("task", "completed");
                let commit = text(&shown["work"]["commit"]);
                self.holds(id, &commit, file, n);
            }
            "failed" => {
                let kind = text(&shown["error_kind"]);
                self.count("task", &kind);
                if text(&shown["error"]).is_empty() {
                    self.faults.push(format!("{id} failed without a reason"));
                }
            }
            other => self
                .faults
                .push(format!("{id} was accepted and is {other:?}: {shown}")),
        }
    }

    fn launch(&mut self, n: u64) {
        let reference = format!("launch/l{n}");
        let shown = self.machine.kapi(&["show", &reference, "--json"]).last();
        let is_well = shown["exit_code"] == 0;
        self.count("launch", if is_well { "finished" } else { "failed" });
        if is_well {
            self.holds(
                &reference,
                &format!("launch-{n}"),
                &format!("out-{n}.txt"),
                n,
            );
        } else {
            self.faults
                .push(format!("{reference} did not end well: {shown}"));
        }
    }

    fn holds(&mut self, whose: &str, revision: &str, file: &str, n: u64) {
        match self.machine.git(&["show", &format!("{revision}:{file}")]) {
            Ok(text) if text == n.to_string() => {}
            Ok(text) => self
                .faults
                .push(format!("{whose} has {text:?} in {file} instead of {n}")),
            Err(why) => self.faults.push(format!("{whose} lost its work: {why}")),
        }
    }

    /// Nothing is left in processes, mounts, worktrees and sandboxes of tasks.
    fn leavings(&mut self) {
        let audit = self.machine.kapi(&["audit"]);
        if audit.code != 0 {
            let said = format!("{}{}", audit.stdout, audit.stderr);
            self.faults.push(format!("the audit finds: {said}"));
        }
        for (pid, words) in self.machine.processes() {
            self.faults.push(format!("process {pid} is left: {words}"));
        }
        let root = self.machine.root().display().to_string();
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
        let points = mounts.lines().filter_map(|line| line.split(' ').nth(1));
        for point in points.filter(|point| point.starts_with(&format!("{root}/"))) {
            self.faults.push(format!("a mount is left at {point}"));
        }
        let sandboxes = below(&self.machine.home().join(".ilchul/sandboxes"));
        for dir in sandboxes.iter().flat_map(|dir| below(dir)) {
            let name = dir
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            let is_more = below(&dir).iter().any(|entry| !entry.ends_with("runs"));
            if name.starts_with("task_") && is_more {
                self.faults
                    .push(format!("a sandbox is left: {}", dir.display()));
            }
        }
        let worktrees = below(&self.machine.home().join(".ilchul/worktrees"));
        for dir in worktrees.iter().flat_map(|dir| below(dir)) {
            let name = dir
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            if name.starts_with("launch-") {
                self.faults
                    .push(format!("a worktree is left: {}", dir.display()));
            }
        }
        if let Err(why) = self.machine.git(&["fsck", "--no-dangling"]) {
            self.faults
                .push(format!("the repository is damaged: {why}"));
        }
    }
}

fn below(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}
