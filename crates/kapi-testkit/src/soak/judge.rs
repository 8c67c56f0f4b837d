//! What must hold after a soak: everything that was accepted has ended, once, and is what it should be,
//! and nothing is left that nobody needs.
//!
//! Looks by the program's own commands, by its log and by git; each is asked once for all.

use std::collections::BTreeMap;
use std::fs;

use serde_json::Value;

use crate::soak::accepted_work::AcceptedWork;
use crate::soak::launches::{branch, reference};
use crate::soak::leavings;
use crate::soak::machine::SoakMachine;
use crate::soak::work_content::{self, NumberedWork};
use crate::soak::workflows::status;

/// Looks at everything; returns how what was accepted has ended. All work began at `base`.
pub(super) fn judge(
    machine: &SoakMachine,
    accepted: &AcceptedWork,
    base: &str,
) -> Result<BTreeMap<String, u64>, Vec<String>> {
    let mut verdict = Verdict::default();
    let tasks = listed(machine, &["task", "list", "--all", "--limit", "10000"]);
    let ends = LoggedEnds::read(machine);
    for (list, file) in [(&accepted.tasks, "out"), (&accepted.runs, "loop")] {
        for (id, n) in list {
            let shown = tasks.get(id).cloned();
            let shown = shown.unwrap_or_else(|| machine.kapi(&["show", id, "--json"]).last());
            verdict.task(id, &format!("{file}-{n}.txt"), *n, &shown);
            verdict.once(id, &ends);
        }
    }
    let launches = listed(machine, &["sandbox", "list"]);
    for n in &accepted.launches.numbers {
        let shown = launches.get(&format!("l{n}"));
        verdict.launch(*n, shown.unwrap_or(&Value::Null));
    }
    for id in &accepted.workflows.ids {
        let word = status(machine, id);
        verdict.count("workflow", &word);
        if word != "completed" {
            verdict.faults.push(format!("workflow {id} is {word}"));
        }
    }
    let wrong = work_content::faults(machine, &verdict.works, base);
    verdict.faults.extend(wrong);
    verdict
        .faults
        .extend(leavings::faults(machine, &tasks, &launches));
    if verdict.faults.is_empty() {
        Ok(verdict.ended)
    } else {
        Err(verdict.faults)
    }
}

/// Returns what a command lists, by id.
fn listed(machine: &SoakMachine, words: &[&str]) -> BTreeMap<String, Value> {
    let document = machine.kapi(&[words, &["--json"]].concat()).last();
    let rows = document["tasks"].as_array().or(document.as_array());
    let rows = rows.into_iter().flatten();
    let by_id = rows.filter_map(|row| Some((row["id"].as_str()?.to_owned(), row.clone())));
    by_id.collect()
}

#[derive(Default)]
struct Verdict {
    ended: BTreeMap<String, u64>,
    faults: Vec<String>,
    works: Vec<NumberedWork>,
}

impl Verdict {
    fn count(&mut self, kind: &str, word: &str) {
        *self.ended.entry(format!("{kind} {word}")).or_default() += 1;
    }

    /// A task has ended: with its number on its branch, or with a reason why not.
    fn task(&mut self, id: &str, file: &str, n: u64, shown: &Value) {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        match text(&shown["state"]).as_str() {
            "completed" => {
                self.count("task", "completed");
                self.works.push(NumberedWork {
                    whose: id.to_owned(),
                    revision: text(&shown["work"]["commit"]),
                    file: file.to_owned(),
                    number: n,
                    goes_on: false,
                });
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

    /// A task was let in once, and has ended once.
    fn once(&mut self, id: &str, ends: &LoggedEnds) {
        let counts = [&ends.submitted, &ends.ended].map(|of| of.get(id).copied().unwrap_or(0));
        if counts != [1, 1] {
            let [submitted, ended] = counts;
            let fault = format!("{id} was let in {submitted} times and ended {ended} times");
            self.faults.push(fault);
        }
    }

    fn launch(&mut self, n: u64, shown: &Value) {
        let is_well = shown["exit_code"] == 0 && shown["state"] == "finished";
        self.count("launch", if is_well { "finished" } else { "failed" });
        if is_well {
            self.works.push(NumberedWork {
                whose: reference(n),
                revision: branch(n),
                file: format!("out-{n}.txt"),
                number: n,
                goes_on: true,
            });
        } else {
            let (reference, shown) = (reference(n), shown.to_string());
            self.faults
                .push(format!("{reference} did not end well: {shown}"));
        }
    }
}

/// How often the log of tasks says that each was let in, and that it ended.
#[derive(Debug, Default)]
struct LoggedEnds {
    submitted: BTreeMap<String, u64>,
    ended: BTreeMap<String, u64>,
}

impl LoggedEnds {
    fn read(machine: &SoakMachine) -> Self {
        let log = machine.project().join(".ilchul/kernel/events.jsonl");
        // A log that cannot be read has none of them.
        let text = fs::read_to_string(log).unwrap_or_default();
        let mut ends = Self::default();
        for line in text.lines() {
            let record: Value = serde_json::from_str(line).unwrap_or_default();
            let of = match record["type"].as_str() {
                Some("submitted") => &mut ends.submitted,
                Some("ended") => &mut ends.ended,
                _ => continue,
            };
            let task = record["data"]["task"].as_str().unwrap_or_default();
            *of.entry(task.to_owned()).or_default() += 1;
        }
        ends
    }
}
