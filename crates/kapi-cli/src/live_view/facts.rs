//! What the live view knows of one goal, workflow, task or launch: facts that stand on disk.
//!
//! Plain data, made of the same records that `kapi status` and `kapi show` read. Knows no terminal
//! and no clock.

pub(crate) mod goal;
pub(crate) mod launch;
pub(crate) mod task;
pub(crate) mod workflow;

use kapi_core::usage::Usage;

/// What is known of one subject.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SubjectFacts {
    /// Its id, by which activities find it.
    pub(crate) id: String,
    /// What a person types to name it.
    pub(crate) reference: String,
    /// What kind of thing it is.
    pub(crate) kind: &'static str,
    /// What it is for, in the person's words.
    pub(crate) title: String,
    /// Where it stands, in a word or two.
    pub(crate) status: String,
    /// How that is to be taken.
    pub(crate) mood: Mood,
    /// What it does next or right now, as far as its records tell.
    pub(crate) phase: String,
    /// Why it stands there.
    pub(crate) why: Option<String>,
    /// Who works, who judges, where the work goes; a name and a value each.
    pub(crate) details: Vec<(&'static str, String)>,
    /// What it used, and of what.
    pub(crate) account: Account,
    /// The parts of its plan.
    pub(crate) tasks: Vec<TaskFacts>,
    /// What it changed so far.
    pub(crate) changes: Option<ChangeFacts>,
    /// Commands that were refused because a person has to be asked first, the last ones.
    pub(crate) refused: Vec<RefusedFacts>,
    /// What a person can do with it.
    pub(crate) verbs: SubjectVerbs,
}

/// The command lines by which a person steers something; none where there is no such command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SubjectVerbs {
    /// Sends its agent the message that follows.
    pub(crate) say: Option<Vec<String>>,
    /// Stops it for now.
    pub(crate) pause: Option<Vec<String>>,
    /// Lets it go on, and drives it.
    pub(crate) resume: Option<Vec<String>>,
    /// Lets it go on where somebody drives it already.
    pub(crate) resume_beside: Option<Vec<String>>,
    /// Ends it for good.
    pub(crate) cancel: Option<Vec<String>>,
    /// Shows what it changed, with the name of what it is by which that can be asked for; of a task or
    /// launch only once it has ended.
    pub(crate) diff: Option<String>,
}

/// Returns a command line of Kapi's own.
pub(crate) fn command_line(words: &[&str]) -> Option<Vec<String>> {
    let all = ["kapi"].iter().chain(words);
    Some(all.map(|&word| word.to_owned()).collect())
}

/// How the status of something is to be taken.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Mood {
    /// It is being worked on.
    #[default]
    Working,
    /// It waits for a person.
    Person,
    /// It waits for something else.
    Waiting,
    /// It ended well.
    Good,
    /// It ended without success.
    Bad,
}

/// What was used, and of what; a limit of `None` is none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Account {
    /// The turn under way or last ended, and the limit.
    pub(crate) turn: Option<TurnFacts>,
    /// Tokens and money.
    pub(crate) used: Usage,
    /// The limit on tokens.
    pub(crate) tokens_max: Option<u64>,
    /// The limit on money, in millionths of a US dollar.
    pub(crate) usd_micros_max: Option<u64>,
    /// Milliseconds during which something was done.
    pub(crate) worked_ms: u64,
    /// The limit on them.
    pub(crate) work_max_ms: Option<u64>,
}

/// A turn and how many there may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TurnFacts {
    /// The turn, from 1; 0 before the first.
    pub(crate) at: u32,
    /// The limit.
    pub(crate) max: u32,
}

/// One part of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TaskFacts {
    /// Where it stands.
    pub(crate) mark: TaskMark,
    /// What it is.
    pub(crate) text: String,
}

/// Where a part of a plan stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TaskMark {
    /// Not begun.
    Open,
    /// Under way.
    Current,
    /// Done.
    Done,
    /// Kept from going on.
    Blocked,
    /// Left out on purpose.
    Skipped,
}

/// What differs from the base.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ChangeFacts {
    /// The files, with the lines that were added and removed.
    pub(crate) files: Vec<FileChange>,
    /// How many files there are, those that are not listed included.
    pub(crate) n_files: usize,
}

/// One file that differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileChange {
    /// Its path.
    pub(crate) path: String,
    /// Lines that were added.
    pub(crate) added: u64,
    /// Lines that were removed.
    pub(crate) removed: u64,
}

/// A command that was refused because a person has to be asked first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RefusedFacts {
    /// The entry of the contract's list, which an approval names.
    pub(crate) pattern: String,
    /// The command.
    pub(crate) command: String,
}

/// Returns how far something is used up, in per cent; `None` without a limit.
pub(crate) fn share(used: u64, limit: Option<u64>) -> Option<u16> {
    let limit = limit.filter(|limit| *limit > 0)?;
    let percent = u128::from(used) * 100 / u128::from(limit);
    Some(u16::try_from(percent.min(100)).unwrap_or(100))
}
