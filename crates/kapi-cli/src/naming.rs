//! Choosing a goal's slug and branch, and keeping two runs from choosing the same.
//!
//! A branch is taken when git has it, or when a goal that has not ended will make it.

use std::collections::BTreeSet;

use kapi_core::failure::chain;
use kapi_core::id::Slug;
use kapi_goal::perform::survey::RepositorySurvey;
use kapi_goal::record::goal_listing::ListingStatus;
use kapi_goal::record::project::Project;
use kapi_sys::lock::{Lock, LockError};
use kapi_workflow::rules::branch::BranchType;
use kapi_workflow::rules::transliterate::plain;

use crate::config::goal::GoalTable;
use crate::contract::flags::{Args, parse_branch_type};
use crate::error::Error;
use crate::exit_code::Exit;

/// The end of a branch's name that nobody gives one.
const NOBODYS: &str = "kapi-looks-whether-it-could";
/// Bytes of a word of another script that are kept.
const FOREIGN_BYTES_MAX: usize = 24;
/// How many names are tried for a branch.
const BRANCH_TRIES_MAX: u32 = 99;
/// The longest another run may take to create its goal, in milliseconds.
const LOCK_WAIT_MS: u64 = 10_000;

/// Chooses a slug and a branch that is free: the plain one first, then numbered ones.
pub(crate) fn choose(
    args: &Args,
    table: &GoalTable,
    survey: &RepositorySurvey,
    reserved: &BTreeSet<String>,
) -> Result<(Slug, String), Error> {
    let branch_type = match (args.branch_type, table.branch_type.as_deref()) {
        (Some(branch_type), _) => branch_type,
        (None, Some(text)) => {
            parse_branch_type(text).map_err(|error| Error::usage(format!("`type`: {error}")))?
        }
        (None, None) if starts_with_fix(&args.intent) => BranchType::Fix,
        (None, None) => BranchType::Feat,
    };
    let prefix = branch_type.as_str();
    check_type(prefix, survey)?;
    let told = Slug::from_sentence(&in_plain_letters(&args.intent));
    for number in 1..=BRANCH_TRIES_MAX {
        let slug = numbered(&told, number)?;
        let branch = format!("{prefix}/goal-{slug}");
        if is_free(&branch, survey, reserved)? {
            return Ok((slug, branch));
        }
    }
    Err(Error::usage(format!(
        "every branch name of the form {prefix}/goal-{told} is taken"
    ))
    .with_hint("reword the task."))
}

/// Returns a sentence with the words of other scripts in plain letters.
fn in_plain_letters(sentence: &str) -> String {
    let words = sentence.split_whitespace().map(|word| {
        if word.is_ascii() {
            return word.to_owned();
        }
        let mut written = plain(word);
        // Some scripts put no spaces between words.
        written.truncate(FOREIGN_BYTES_MAX);
        written
    });
    words.collect::<Vec<_>>().join(" ")
}

/// Refuses a type of branch of which git could make none: a branch that has the type's own name is in
/// the way of all.
pub(crate) fn check_type(prefix: &str, survey: &RepositorySurvey) -> Result<(), Error> {
    let is_open = survey.branch_is_free(&format!("{prefix}/{NOBODYS}"));
    if is_open.map_err(|failure| Error::world(&failure))? {
        return Ok(());
    }
    Err(Error::usage(format!(
        "the local branch {prefix:?} prevents every branch {prefix}/…; nothing was started"
    ))
    .with_hint(format!(
        "rename it: `git branch -m {prefix} {prefix}-old`, then try again."
    )))
}

/// Returns a type of branch that nothing is in the way of, if there is one.
pub(crate) fn open_type(survey: &RepositorySurvey) -> Option<BranchType> {
    BranchType::ALL
        .into_iter()
        .find(|kind| check_type(kind.as_str(), survey).is_ok())
}

/// Tells whether a branch can be made by a new goal.
pub(crate) fn is_free(
    branch: &str,
    survey: &RepositorySurvey,
    reserved: &BTreeSet<String>,
) -> Result<bool, Error> {
    if reserved.contains(branch) {
        return Ok(false);
    }
    survey
        .branch_is_free(branch)
        .map_err(|failure| Error::world(&failure))
}

/// Returns the branches of the project's goals that have not ended, made or not.
pub(crate) fn reserved(project: &Project<'_>) -> Result<BTreeSet<String>, Error> {
    let goals = project.goals().map_err(|error| Error::engine(&error, ""))?;
    let branch = |state| match state {
        ListingStatus::Known(entry) if !entry.status.is_terminal() => Some(entry.branch),
        // What a damaged goal wanted is unknown; if it made its branch, git knows.
        ListingStatus::Known(_) | ListingStatus::Damaged(_) => None,
    };
    Ok(goals
        .into_iter()
        .filter_map(|listed| branch(listed.state))
        .collect())
}

/// Keeps other runs of the project from creating a goal until it is dropped.
pub(crate) fn hold(project: &Project<'_>) -> Result<Lock, Error> {
    project
        .prepare()
        .map_err(|error| Error::engine(&error, ""))?;
    let path = project.layout.state_dir().join("naming.lock");
    project
        .disk
        .lock(&path, &project.owner, LOCK_WAIT_MS)
        .map_err(|error| {
            let exit = match &error {
                LockError::Busy { .. } => Exit::Busy,
                LockError::Failed { .. } => Exit::Failed,
            };
            Error::new(exit, format!("failed to {}", chain(&error)))
        })
}

fn starts_with_fix(intent: &str) -> bool {
    let first = intent
        .split_whitespace()
        .next()
        .unwrap_or_default()
        .to_lowercase();
    matches!(
        first.trim_matches(|c: char| !c.is_alphanumeric()),
        "fix" | "repair" | "mend"
    )
}

fn numbered(plain: &Slug, number: u32) -> Result<Slug, Error> {
    if number == 1 {
        return Ok(plain.clone());
    }
    let words: Vec<&str> = plain.as_str().split('-').take(4).collect();
    Slug::parse(&format!("{}-{number}", words.join("-")))
        .map_err(|error| Error::usage(error.to_string()))
}
