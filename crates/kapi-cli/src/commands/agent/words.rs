//! The options of the simple tools, and the input that they say.
//!
//! Whether the input is right is not decided here: it is read like any other.

use serde_json::{Map, Value, json};

/// Options of `kapi agent task-update`.
#[derive(Debug, clap::Args)]
pub(crate) struct TaskUpdate {
    /// The task's id
    #[arg(value_name = "TASK")]
    id: Option<String>,
    /// New status: pending, in_progress, done, blocked or skipped
    #[arg(long, value_name = "STATUS", requires = "id")]
    status: Option<String>,
    /// New phase
    #[arg(long, value_name = "PHASE", requires = "id")]
    phase: Option<String>,
    /// A learning to add
    #[arg(long, value_name = "TEXT", requires = "id")]
    learning: Option<String>,
    /// A gotcha to add
    #[arg(long, value_name = "TEXT", requires = "id")]
    gotcha: Option<String>,
    /// New notes
    #[arg(long, value_name = "TEXT", requires = "id")]
    notes: Option<String>,
}

/// Options of `kapi agent progress`.
#[derive(Debug, clap::Args)]
pub(crate) struct ProgressArgs {
    /// One line of progress
    #[arg(value_name = "NOTE")]
    note: Option<String>,
    /// The new phase
    #[arg(long, value_name = "PHASE", requires = "note")]
    phase: Option<String>,
}

/// Options of `kapi agent complete`.
#[derive(Debug, clap::Args)]
pub(crate) struct Complete {
    /// Quoted output of the verify command
    #[arg(long, value_name = "TEXT")]
    evidence: Option<String>,
    /// A one-sentence summary of the work
    #[arg(long, value_name = "TEXT", requires = "evidence")]
    summary: Option<String>,
}

/// Options of `kapi agent block`.
#[derive(Debug, clap::Args)]
pub(crate) struct BlockArgs {
    /// The question to the user
    #[arg(long, value_name = "TEXT", requires = "reason")]
    question: Option<String>,
    /// Why the work cannot continue without an answer
    #[arg(long, value_name = "TEXT", requires = "question")]
    reason: Option<String>,
}

/// Options of `kapi agent wait`.
#[derive(Debug, clap::Args)]
pub(crate) struct WaitArgs {
    /// Wait this many seconds
    #[arg(long, value_name = "N", group = "until", requires = "reason")]
    seconds: Option<u64>,
    /// Wait until this file exists in the working directory
    #[arg(long, value_name = "PATH", group = "until", requires = "reason")]
    file: Option<String>,
    /// Wait until the file is deleted instead
    #[arg(long, requires = "file", conflicts_with = "changed")]
    gone: bool,
    /// Wait until the file changes instead
    #[arg(long, requires = "file")]
    changed: bool,
    /// Wait until this shell command exits 0
    #[arg(long, value_name = "COMMAND", group = "until", requires = "reason")]
    command: Option<String>,
    /// Seconds between runs of the command
    #[arg(long, value_name = "N", requires = "command", default_value_t = 60)]
    every: u64,
    /// Wait until the user approves this
    #[arg(long, value_name = "TEXT", group = "until", requires = "reason")]
    approval: Option<String>,
    /// The reason for the wait
    #[arg(long, value_name = "TEXT", requires = "until")]
    reason: Option<String>,
    /// Stop waiting after this many seconds
    #[arg(long, value_name = "N", requires = "until")]
    timeout: Option<u64>,
}

/// Options of `kapi agent distill`.
#[derive(Debug, clap::Args)]
pub(crate) struct DistillArgs {
    /// The summary, in Markdown
    #[arg(long, value_name = "TEXT")]
    markdown: Option<String>,
}

/// Options of `kapi agent status`.
#[derive(Debug, clap::Args)]
pub(crate) struct StatusArgs {
    /// The goal, when called outside a run
    #[arg(value_name = "GOAL")]
    goal: Option<String>,
}

impl TaskUpdate {
    pub(super) fn input(&self) -> Option<Value> {
        let id = self.id.as_ref()?;
        let patch = object(&[
            ("status", &self.status),
            ("phase", &self.phase),
            ("addLearning", &self.learning),
            ("addGotcha", &self.gotcha),
            ("notes", &self.notes),
        ]);
        Some(json!({"id": id, "patch": patch}))
    }
}

impl ProgressArgs {
    pub(super) fn input(&self) -> Option<Value> {
        self.note.as_ref()?;
        Some(object(&[("note", &self.note), ("phase", &self.phase)]))
    }
}

impl Complete {
    pub(super) fn input(&self) -> Option<Value> {
        self.evidence.as_ref()?;
        Some(object(&[
            ("evidence", &self.evidence),
            ("summary", &self.summary),
        ]))
    }
}

impl BlockArgs {
    pub(super) fn input(&self) -> Option<Value> {
        self.question.as_ref()?;
        Some(object(&[
            ("question", &self.question),
            ("reason", &self.reason),
        ]))
    }
}

impl WaitArgs {
    pub(super) fn input(&self) -> Option<Value> {
        let reason = self.reason.as_ref()?;
        let state = match (self.gone, self.changed) {
            (true, _) => "gone",
            (false, true) => "changed",
            (false, false) => "exists",
        };
        let until = match (self.seconds, &self.file, &self.command, &self.approval) {
            (Some(seconds), _, _, _) => json!({"for": "time", "seconds": seconds}),
            (None, Some(path), _, _) => json!({"for": "file", "path": path, "until": state}),
            (None, None, Some(command), _) => {
                json!({"for": "command", "command": command, "everySeconds": self.every})
            }
            (None, None, None, what) => json!({"for": "approval", "what": what}),
        };
        let mut input = json!({"until": until, "reason": reason});
        if let Some(seconds) = self.timeout {
            input["timeoutSeconds"] = json!(seconds);
        }
        Some(input)
    }
}

impl DistillArgs {
    pub(super) fn input(&self) -> Option<Value> {
        self.markdown.as_ref()?;
        Some(object(&[("prdMarkdown", &self.markdown)]))
    }
}

impl StatusArgs {
    pub(super) fn input(&self) -> Value {
        object(&[("goal", &self.goal)])
    }
}

/// Returns an object of those fields that were given.
pub(super) fn object(fields: &[(&str, &Option<String>)]) -> Value {
    let given = fields.iter().filter_map(|(name, value)| {
        let value = value.as_ref()?;
        Some(((*name).to_owned(), json!(value)))
    });
    Value::Object(given.collect::<Map<String, Value>>())
}
