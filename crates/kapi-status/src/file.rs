//! The status file: one run as outside tools that poll see it, schema 1.0.
//!
//! Fourteen fields, always all of them, always in this order, and three of ours after them. Text in it comes from agents and
//! projects, so it is cut and cleaned on the way out. Knows nothing of files or of progress.

use jiff::Timestamp;
use kapi_core::quote::is_hidden;
use serde::{Deserialize, Serialize};

use crate::rules::phase::StatusPhase;

/// The version of the schema; a reader of 1.0 understands every file with it.
pub const VERSION: &str = "1.0";

/// Characters of the message.
const MESSAGE_CHARS_MAX: usize = 200;
/// Characters of the error.
const ERROR_CHARS_MAX: usize = 1_000;
/// Characters of names.
const NAME_CHARS_MAX: usize = 255;
/// Characters of paths and addresses.
const PATH_CHARS_MAX: usize = 4_096;

/// Where a run's workspace comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SandboxMode {
    /// A git worktree on a branch.
    Worktree,
    /// A copy-on-write view of the project.
    Overlay,
}

/// The content of a status file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatusFile {
    /// The schema's version.
    pub version: String,
    /// The run's id.
    pub agent_id: String,
    /// The project's name.
    pub project: String,
    /// The branch the work goes to; none for an overlay without one.
    pub branch: Option<String>,
    /// Where the workspace comes from.
    pub sandbox_mode: SandboxMode,
    /// Where the run stands.
    pub phase: StatusPhase,
    /// How far it is, in per cent; never falls.
    pub progress: u8,
    /// What it does, for people.
    pub message: String,
    /// When it began, UTC.
    pub started_at: String,
    /// When this was written, UTC.
    pub updated_at: String,
    /// How it ended; none before the end.
    pub exit_code: Option<i32>,
    /// Why it failed.
    pub error: Option<String>,
    /// Its worktree on the host.
    pub worktree_path: Option<String>,
    /// The pull request, if the remote named one.
    pub pr_url: Option<String>,
    /// Whose failure it was.
    #[serde(default)]
    pub error_class: Option<ErrorClass>,
    /// What to do about it.
    #[serde(default)]
    pub advice: Option<String>,
    /// When the run last showed that it lives, UTC.
    #[serde(default)]
    pub heartbeat_at: String,
}

/// Whose failure a run ended with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorClass {
    /// The agent's own.
    Agent,
    /// It took too long.
    Timeout,
    /// It used all the tokens or money it may.
    Limit,
    /// A person or a signal stopped it.
    Stopped,
    /// Kapi or the machine could not do its part.
    Kapi,
}

impl StatusFile {
    /// Returns it as the bytes of a file, every text in it clean and within its cap.
    ///
    /// # Errors
    /// Never in practice: nothing in it has a shape that JSON lacks.
    pub fn to_bytes(&self) -> Result<Vec<u8>, serde_json::Error> {
        let clean = Self {
            version: VERSION.to_owned(),
            agent_id: line(&self.agent_id, NAME_CHARS_MAX),
            project: line(&self.project, NAME_CHARS_MAX),
            branch: optional(self.branch.as_deref(), NAME_CHARS_MAX),
            sandbox_mode: self.sandbox_mode,
            phase: self.phase,
            progress: self.progress.min(100),
            message: line(&self.message, MESSAGE_CHARS_MAX),
            started_at: self.started_at.clone(),
            updated_at: self.updated_at.clone(),
            exit_code: self.exit_code,
            error: optional(self.error.as_deref(), ERROR_CHARS_MAX),
            worktree_path: optional(self.worktree_path.as_deref(), PATH_CHARS_MAX),
            pr_url: optional(self.pr_url.as_deref(), PATH_CHARS_MAX).filter(|url| is_web(url)),
            error_class: self.error_class,
            advice: optional(self.advice.as_deref(), ERROR_CHARS_MAX),
            heartbeat_at: self.heartbeat_at.clone(),
        };
        let mut bytes = serde_json::to_vec_pretty(&clean)?;
        bytes.push(b'\n');
        Ok(bytes)
    }
}

/// Returns milliseconds since the epoch as `2026-08-22T10:00:00Z`.
#[must_use]
pub fn timestamp(at_ms: i64) -> String {
    let seconds = at_ms.div_euclid(1_000);
    let at = Timestamp::from_second(seconds).unwrap_or(if seconds < 0 {
        Timestamp::MIN
    } else {
        Timestamp::MAX
    });
    format!("{at:.0}")
}

/// Returns text as one line without anything that could act on a terminal or reorder its words.
fn line(text: &str, chars_max: usize) -> String {
    let mut line = String::new();
    let mut n_chars = 0;
    let mut is_gap = false;
    for c in text.chars() {
        if c.is_whitespace() || c.is_control() {
            is_gap = n_chars > 0;
            continue;
        }
        if is_hidden(c) {
            continue;
        }
        if n_chars + 1 + usize::from(is_gap) > chars_max {
            break;
        }
        if is_gap {
            line.push(' ');
            n_chars += 1;
            is_gap = false;
        }
        line.push(c);
        n_chars += 1;
    }
    line
}

fn optional(text: Option<&str>, chars_max: usize) -> Option<String> {
    text.map(|text| line(text, chars_max))
        .filter(|text| !text.is_empty())
}

/// Tells whether an address can be opened without running anything else than a browser.
fn is_web(url: &str) -> bool {
    let rest = url
        .strip_prefix("https://")
        .or_else(|| url.strip_prefix("http://"));
    rest.is_some_and(|rest| !rest.is_empty() && !rest.contains([' ', '"', '<', '>', '\\']))
}

#[cfg(test)]
mod tests {
    use super::{SandboxMode, StatusFile, line, timestamp};
    use crate::rules::phase::StatusPhase;

    fn example() -> StatusFile {
        StatusFile {
            version: "1.0".to_owned(),
            agent_id: "1".to_owned(),
            project: "products".to_owned(),
            branch: Some("feature/DEV-123".to_owned()),
            sandbox_mode: SandboxMode::Worktree,
            phase: StatusPhase::Implementing,
            progress: 45,
            message: "Implementing feature".to_owned(),
            started_at: timestamp(1_765_895_400_999),
            updated_at: timestamp(1_765_895_700_000),
            exit_code: None,
            error: None,
            worktree_path: Some("/home/user/.ilchul/worktrees/products-1".to_owned()),
            pr_url: None,
            error_class: None,
            advice: None,
            heartbeat_at: timestamp(1_765_895_701_000),
        }
    }

    #[test]
    fn the_file_has_its_fourteen_fields_in_order_and_ours_after_them() {
        let golden = r#"{
  "version": "1.0",
  "agent_id": "1",
  "project": "products",
  "branch": "feature/DEV-123",
  "sandbox_mode": "worktree",
  "phase": "implementing",
  "progress": 45,
  "message": "Implementing feature",
  "started_at": "2025-12-16T14:30:00Z",
  "updated_at": "2025-12-16T14:35:00Z",
  "exit_code": null,
  "error": null,
  "worktree_path": "/home/user/.ilchul/worktrees/products-1",
  "pr_url": null,
  "error_class": null,
  "advice": null,
  "heartbeat_at": "2025-12-16T14:35:01Z"
}
"#;
        let bytes = example().to_bytes().unwrap();
        assert_eq!(String::from_utf8(bytes.clone()).unwrap(), golden);
        let read: StatusFile = serde_json::from_slice(&bytes).unwrap();
        assert_eq!(read, example());
    }

    #[test]
    fn foreign_text_is_cut_and_cleaned() {
        let hostile = "a\u{1b}[31m\nb\u{0}\u{202e}c\u{e0041}\u{9b}d\"\\".to_owned();
        let file = StatusFile {
            agent_id: hostile.clone(),
            project: hostile.clone(),
            branch: Some(hostile.clone()),
            message: format!("{hostile}{}", "x".repeat(10_000)),
            error: Some("y".repeat(10_000)),
            worktree_path: Some("\u{1b}".to_owned()),
            pr_url: Some(format!("https://forge.example/{hostile}")),
            exit_code: Some(-1),
            progress: 255,
            ..example()
        };
        let bytes = file.to_bytes().unwrap();
        let read: StatusFile = serde_json::from_slice(&bytes).unwrap();
        assert_eq!(read.agent_id, "a [31m b c d\"\\");
        assert_eq!(read.message.chars().count(), 200);
        assert_eq!(read.error.as_ref().map(String::len), Some(1_000));
        assert_eq!(read.worktree_path, None, "nothing was left of it");
        assert_eq!(read.pr_url, None, "no address");
        assert_eq!((read.progress, read.exit_code), (100, Some(-1)));
        let text = String::from_utf8(bytes).unwrap();
        assert!(
            text.chars().all(|c| c == '\n' || !c.is_control()),
            "{text:?}"
        );
    }

    #[test]
    fn only_web_addresses_are_shown_as_pull_requests() {
        let cases = [
            ("https://forge.example/a/b/pull/1", true),
            ("http://forge.example/1", true),
            ("https://", false),
            ("javascript:alert(1)", false),
            ("file:///etc/passwd", false),
            ("https://forge.example/a b", false),
            ("HTTPS", false),
        ];
        for (url, is_shown) in cases {
            let file = StatusFile {
                pr_url: Some(url.to_owned()),
                ..example()
            };
            let read: StatusFile = serde_json::from_slice(&file.to_bytes().unwrap()).unwrap();
            assert_eq!(read.pr_url.is_some(), is_shown, "{url}");
        }
    }

    #[test]
    fn times_are_whole_seconds_of_universal_time() {
        let cases = [
            (0, "1970-01-01T00:00:00Z"),
            (999, "1970-01-01T00:00:00Z"),
            (-1, "1969-12-31T23:59:59Z"),
            (1_765_895_400_000, "2025-12-16T14:30:00Z"),
            (i64::MAX, "9999-12-30T22:00:00Z"),
        ];
        for (at_ms, text) in cases {
            assert_eq!(timestamp(at_ms), text);
        }
    }

    #[test]
    fn a_line_of_blanks_is_empty() {
        assert_eq!(line(" \n\t\u{200b} ", 10), "");
        assert_eq!(line("a b", 2), "a");
        assert_eq!(line("üüü", 2), "üü");
    }
}
