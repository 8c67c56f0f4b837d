//! What later runs should know: lessons that the agent marked, or which eval a run did not pass.
//!
//! They are proposed, with the task they are from; who accepts them is not decided here.

use kapi_run::failure;

use super::context::LESSON;
use super::{Ended, LoopExecution, skipped};
use crate::perform::prompt;
use crate::record::guardrails::NewLesson;
use crate::rules::definition::Learn;
use crate::rules::guardrail::{LessonSource, Severity};
use crate::rules::task::{End, FailureKind, PhaseStatus};

/// Lessons of one run.
const LESSONS_MAX: usize = 3;

impl LoopExecution<'_> {
    /// Notes what was learnt. That nothing could be noted is no reason to fail a run.
    pub(super) fn learn(&self) -> Ended {
        let has_failed = self.has_failed();
        match self.run.definition.learn {
            Learn::Never => return skipped("it never learns"),
            Learn::OnFailure if !has_failed => return skipped("it did not fail"),
            Learn::OnFailure | Learn::Always => {}
        }
        if !self.has_run() {
            return skipped("nothing was done to learn from");
        }
        let severity = if has_failed {
            Severity::Warning
        } else {
            Severity::Info
        };
        let lessons = self.lessons();
        let memory = prompt::memory(self.performer);
        for lesson in &lessons {
            let new = NewLesson {
                domain: self.run.name().as_str(),
                lesson,
                severity,
                source: LessonSource::in_loop(&self.task.id.to_string()),
                expires_at_ms: None,
            };
            if let Err(error) = memory.add(&new) {
                let text = format!("failed to {}", failure::chain(&error));
                return (PhaseStatus::Error, Some(text));
            }
        }
        match lessons.len() {
            0 => skipped("no lesson was marked"),
            1 => (PhaseStatus::Ok, Some("1 lesson proposed".to_owned())),
            n => (PhaseStatus::Ok, Some(format!("{n} lessons proposed"))),
        }
    }

    fn lessons(&self) -> Vec<String> {
        let marked = marked(&self.report.output, LESSON);
        let mut lessons: Vec<String> = marked.take(LESSONS_MAX).map(str::to_owned).collect();
        if let End::Failed(failure) = &self.report.end
            && failure.kind == FailureKind::EvalFailed
            && lessons.is_empty()
        {
            // What an error says is another text each time, and no lesson; what it was held to is.
            let missed = self
                .report
                .evals
                .iter()
                .find(|it| it.blocking && !it.passed);
            lessons.extend(missed.map(|eval| format!("A run did not pass its eval {}", eval.name)));
        }
        lessons
    }
}

/// Returns what stands after a mark at the beginning of lines.
pub(super) fn marked<'a>(text: &'a str, mark: &'a str) -> impl Iterator<Item = &'a str> {
    let lines = text
        .lines()
        .map(|line| line.trim_start_matches([' ', '\t', '-', '*']));
    let said = lines.filter_map(move |line| line.strip_prefix(mark));
    let said = said.map(|said| said.trim_matches([' ', '\t', '*']));
    said.filter(|said| !said.is_empty())
}

#[cfg(test)]
mod tests {
    use super::marked;

    #[test]
    fn marks_count_at_the_beginning_of_a_line() {
        let text = "LESSON: one\nno LESSON: two\n- **LESSON:** three\n* LESSON:\nLESSON: four  ";
        let found: Vec<&str> = marked(text, "LESSON:").collect();
        assert_eq!(found, ["one", "three", "four"]);
    }
}
