//! `distilled.md`: what a goal was, how it was solved, and what is worth knowing next time.
//!
//! A pure rendering. What an agent wrote stands in fences or behind a name, so that every heading
//! of the document, and everything under Evidence, is Kapi's own.

use kapi_core::quote::{fenced, tail};

use crate::rules::plan::Plan;
use crate::rules::plan::task::{GoalPlanTask, PlanTaskId, TaskStatus};
use crate::rules::plan::visible::shows;

/// The end of one check's output that is kept, in bytes.
pub const OUTPUT_BYTES_MAX: usize = 2_000;

/// What `distilled.md` is made of.
#[derive(Debug, Clone, Copy)]
pub struct DistilledPlan<'a> {
    /// The goal's id.
    pub goal_id: &'a str,
    /// The goal in one line.
    pub title: &'a str,
    /// What the person wanted, and what had to hold for it to be done.
    pub problem: &'a str,
    /// What the agent says it did.
    pub solution: &'a str,
    /// The commit that was proved, if there is one.
    pub commit: Option<&'a str>,
    /// The checks that Kapi ran on it.
    pub evidence: &'a [CheckEvidence<'a>],
    /// Who judged, and why they agreed.
    pub judge: Option<(&'a str, &'a str)>,
    /// The tasks, if there was a plan.
    pub plan: Option<&'a Plan>,
    /// Where to look: logs, metrics, staging addresses.
    pub surfaces: &'a [WorkSurface<'a>],
    /// The agent's own document, kept word for word.
    pub prd: &'a str,
}

/// One check that Kapi ran.
#[derive(Debug, Clone, Copy)]
pub struct CheckEvidence<'a> {
    /// The command.
    pub command: &'a str,
    /// How it ended; nothing when it was killed.
    pub exit_code: Option<i32>,
    /// How long it took.
    pub duration_ms: u64,
    /// The end of what it wrote.
    pub output_tail: &'a str,
}

/// A place that tells something about the work.
#[derive(Debug, Clone, Copy)]
pub struct WorkSurface<'a> {
    /// What kind of place.
    pub kind: &'a str,
    /// Where it is.
    pub location: &'a str,
    /// What is to be known about it.
    pub notes: Option<&'a str>,
}

impl DistilledPlan<'_> {
    /// Returns the document.
    #[must_use]
    pub fn to_markdown(&self) -> String {
        let tasks = self.plan.map_or(&[][..], Plan::tasks);
        let sections = [
            format!("# {}", one_line(self.title)),
            format!(
                "Goal {}. Headings and evidence come from Kapi; fenced blocks were written by others.",
                one_line(self.goal_id)
            ),
            section("Problem", &fenced_or_none(self.problem)),
            section("Solution", &self.solution_text()),
            section("Evidence", &self.evidence_text()),
            section(
                "Learnings",
                &noted(self.plan.map_or_else(Vec::new, Plan::learnings)),
            ),
            section(
                "Gotchas",
                &noted(self.plan.map_or_else(Vec::new, Plan::gotchas)),
            ),
            section("Useful surfaces", &bullets(&self.surface_lines())),
            section("Follow-ups", &bullets(&follow_ups(tasks))),
            section("The agent's PRD", &fenced_or_none(self.prd)),
        ];
        sections.join("\n\n") + "\n"
    }

    fn solution_text(&self) -> String {
        let mut text = fenced_or_none(self.solution);
        let log = self.plan.map_or(&[][..], Plan::replan_log);
        if !log.is_empty() {
            let reasons: Vec<String> = log.iter().map(|entry| one_line(&entry.reason)).collect();
            let reasons = reasons.iter().map(|reason| format!("because: {reason}"));
            let lines: Vec<String> = reasons.collect();
            text.push_str("\n\nThe plan changed during the work:\n\n");
            text.push_str(&bullets(&lines));
        }
        text
    }

    fn evidence_text(&self) -> String {
        let mut parts: Vec<String> = Vec::new();
        if let Some(commit) = self.commit {
            parts.push(format!("Commit {}.", one_line(commit)));
        }
        if self.evidence.is_empty() {
            parts.push("No check was run.".to_owned());
        }
        parts.extend(self.evidence.iter().map(check_text));
        parts.push(match self.judge {
            None => "No judge reviewed it.".to_owned(),
            Some((by, reason)) => {
                let reason = fenced_or_none(reason);
                format!("Judge {} agreed:\n\n{reason}", one_line(by))
            }
        });
        parts.join("\n\n")
    }

    fn surface_lines(&self) -> Vec<String> {
        let line = |surface: &WorkSurface<'_>| {
            let notes = surface
                .notes
                .map_or_else(String::new, |notes| format!(" ({notes})"));
            format!("({}) {}{notes}", surface.kind, surface.location)
        };
        self.surfaces
            .iter()
            .map(line)
            .map(|line| one_line(&line))
            .collect()
    }
}

fn section(heading: &str, body: &str) -> String {
    format!("## {heading}\n\n{body}")
}

fn check_text(check: &CheckEvidence<'_>) -> String {
    let end = check.exit_code.map_or_else(
        || "was killed".to_owned(),
        |code| format!("exited with {code}"),
    );
    let command = fenced(check.command, "sh");
    let head = format!("This {end} after {} ms:\n\n{command}", check.duration_ms);
    let output = tail(check.output_tail, OUTPUT_BYTES_MAX);
    if output.trim().is_empty() {
        return format!("{head}\n\nIt had no output.");
    }
    format!(
        "{head}\n\nThe end of its output:\n\n{}",
        fenced(output, "text")
    )
}

fn noted(lines: Vec<(&PlanTaskId, &str)>) -> String {
    let line =
        |(id, line): (&PlanTaskId, &str)| format!("({}) {}", one_line(id.as_str()), one_line(line));
    let lines: Vec<String> = lines.into_iter().map(line).collect();
    bullets(&lines)
}

/// Returns the tasks that were left out or left over.
fn follow_ups(tasks: &[GoalPlanTask]) -> Vec<String> {
    let open = tasks.iter().filter(|task| task.status != TaskStatus::Done);
    let lines = open.map(|task| {
        let (id, title) = (one_line(task.id.as_str()), one_line(&task.title));
        format!("({id}) {}: {title}", task.status)
    });
    lines.collect()
}

fn bullets(lines: &[String]) -> String {
    if lines.is_empty() {
        return "None.".to_owned();
    }
    let lines: Vec<String> = lines.iter().map(|line| format!("- {line}")).collect();
    lines.join("\n")
}

fn fenced_or_none(text: &str) -> String {
    if text.trim().is_empty() {
        "None.".to_owned()
    } else {
        fenced(text, "markdown")
    }
}

/// Returns a text as one visible line that is neither HTML nor a link when it stands in Markdown.
fn one_line(text: &str) -> String {
    let is_break = |char: char| char.is_whitespace() || !shows(char);
    let words: Vec<&str> = text
        .split(is_break)
        .filter(|word| !word.is_empty())
        .collect();
    words.join(" ").replace('<', "&lt;").replace('[', "\\[")
}
