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
    /// Where it stands: pending, in_progress, done, blocked or skipped
    #[arg(long, value_name = "STATUS", requires = "id")]
    status: Option<String>,
    /// Its phase
    #[arg(long, value_name = "PHASE", requires = "id")]
    phase: Option<String>,
    /// One more learning
    #[arg(long, value_name = "TEXT", requires = "id")]
    learning: Option<String>,
    /// One more gotcha
    #[arg(long, value_name = "TEXT", requires = "id")]
    gotcha: Option<String>,
    /// Its notes
    #[arg(long, value_name = "TEXT", requires = "id")]
    notes: Option<String>,
}

/// Options of `kapi agent progress`.
#[derive(Debug, clap::Args)]
pub(crate) struct Progress {
    /// One line
    #[arg(value_name = "NOTE")]
    note: Option<String>,
    /// The phase from now on
    #[arg(long, value_name = "PHASE", requires = "note")]
    phase: Option<String>,
}

/// Options of `kapi agent complete`.
#[derive(Debug, clap::Args)]
pub(crate) struct Complete {
    /// The output of the verify command, quoted
    #[arg(long, value_name = "TEXT")]
    evidence: Option<String>,
    /// What was done, in a sentence
    #[arg(long, value_name = "TEXT", requires = "evidence")]
    summary: Option<String>,
}

/// Options of `kapi agent block`.
#[derive(Debug, clap::Args)]
pub(crate) struct Block {
    /// What the person is asked
    #[arg(long, value_name = "TEXT", requires = "reason")]
    question: Option<String>,
    /// Why it cannot go on without an answer
    #[arg(long, value_name = "TEXT", requires = "question")]
    reason: Option<String>,
}

/// Options of `kapi agent wait`.
#[derive(Debug, clap::Args)]
pub(crate) struct Wait {
    /// Seconds from now
    #[arg(long, value_name = "N", group = "until", requires = "reason")]
    seconds: Option<u64>,
    /// A file of the working directory, which is to exist
    #[arg(long, value_name = "PATH", group = "until", requires = "reason")]
    file: Option<String>,
    /// The file is to be gone
    #[arg(long, requires = "file", conflicts_with = "changed")]
    gone: bool,
    /// The file is to be changed
    #[arg(long, requires = "file")]
    changed: bool,
    /// A shell command, which is to exit 0
    #[arg(long, value_name = "COMMAND", group = "until", requires = "reason")]
    command: Option<String>,
    /// Seconds between two tries of the command
    #[arg(long, value_name = "N", requires = "command", default_value_t = 60)]
    every: u64,
    /// What a person is to allow
    #[arg(long, value_name = "TEXT", group = "until", requires = "reason")]
    approval: Option<String>,
    /// Why
    #[arg(long, value_name = "TEXT", requires = "until")]
    reason: Option<String>,
    /// Seconds after which it goes on all the same
    #[arg(long, value_name = "N", requires = "until")]
    timeout: Option<u64>,
}

/// Options of `kapi agent distill`.
#[derive(Debug, clap::Args)]
pub(crate) struct Distill {
    /// The document, in Markdown
    #[arg(long, value_name = "TEXT")]
    markdown: Option<String>,
}

/// Options of `kapi agent status`.
#[derive(Debug, clap::Args)]
pub(crate) struct Status {
    /// Which goal, outside of a run
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

impl Progress {
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

impl Block {
    pub(super) fn input(&self) -> Option<Value> {
        self.question.as_ref()?;
        Some(object(&[
            ("question", &self.question),
            ("reason", &self.reason),
        ]))
    }
}

impl Wait {
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

impl Distill {
    pub(super) fn input(&self) -> Option<Value> {
        self.markdown.as_ref()?;
        Some(object(&[("prdMarkdown", &self.markdown)]))
    }
}

impl Status {
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
