//! Which workflow a person means: exactly one, or an answer that says what to type instead.
//!
//! A pure table over the rows of the inventory. It never guesses from a part of a name.

use kapi_core::id::GoalId;
use kapi_core::mode::Mode;
use kapi_core::workflow_status::WorkflowStatus;

use crate::rules::mode_spec::ModeSpec;

/// The most names that are offered where none fits.
const NEAREST_MAX: usize = 3;

/// What the inventory knows of a workflow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InventoryRow {
    /// Which.
    pub id: GoalId,
    /// Its mode.
    pub mode: Mode,
    /// Where it stands.
    pub status: WorkflowStatus,
    /// Whether it was approved and hands over what it found out.
    pub is_approved: bool,
    /// What it goes on in.
    pub successor: Option<(Mode, GoalId)>,
}

/// What is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkflowTarget {
    /// The workflow to attach to.
    pub workflow: GoalId,
    /// The workflow that was named, where the one that came of it is meant.
    pub by_way_of: Option<GoalId>,
}

/// Why nothing is meant.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// Nothing has this index or name.
    #[error("find a workflow {token:?}{}", offer(.nearest))]
    Unknown {
        /// What was typed.
        token: String,
        /// The names that are nearest.
        nearest: Vec<GoalId>,
    },
    /// Several have this name.
    #[error("resolve the ambiguous workflow {token:?}: {}", names(.workflows))]
    Ambiguous {
        /// What was typed.
        token: String,
        /// Which.
        workflows: Vec<GoalId>,
    },
    /// It is a workflow of another mode.
    #[error("{action} {workflow} as a {asked} workflow: it is a {mode} workflow")]
    WrongMode {
        /// What was asked.
        action: &'static str,
        /// Which.
        workflow: GoalId,
        /// Its mode.
        mode: Mode,
        /// The mode that was asked for.
        asked: Mode,
    },
    /// It has ended.
    #[error("resume {workflow}, which is {}", .status.as_str())]
    AlreadyTerminal {
        /// Which.
        workflow: GoalId,
        /// Its mode.
        mode: Mode,
        /// How it ended.
        status: WorkflowStatus,
        /// What it goes on in.
        successor: Option<(Mode, GoalId)>,
    },
    /// What gives the context is approved, and nothing was started from it.
    #[error(
        "resume from {} {context}: nothing was started from it yet",
        ModeSpec::noun_of(Mode::CONTEXT)
    )]
    NotLinked {
        /// Which.
        context: GoalId,
        /// The mode that was asked for.
        asked: Mode,
    },
    /// What gives the context is not approved.
    #[error(
        "resume from {} {context}, which is not approved yet",
        ModeSpec::noun_of(Mode::CONTEXT)
    )]
    NotApproved {
        /// Which.
        context: GoalId,
    },
}

impl TargetError {
    /// Returns the code, for programs.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Unknown { .. } => "unknown_workflow",
            Self::Ambiguous { .. } => "ambiguous_target",
            Self::WrongMode { .. } => "wrong_mode",
            Self::AlreadyTerminal { .. } => "already_terminal",
            Self::NotLinked { .. } => "not_linked",
            Self::NotApproved { .. } => "not_approved",
        }
    }

    /// Returns what could be typed instead, most useful first; never nothing.
    #[must_use]
    pub fn next_commands(&self) -> Vec<String> {
        let resume = |mode: Mode, id: &GoalId| format!("kapi {mode} resume {:03}", id.index());
        match self {
            Self::Unknown { .. } | Self::Ambiguous { .. } => vec!["kapi status".to_owned()],
            Self::WrongMode {
                action,
                workflow,
                mode,
                ..
            } => vec![format!("kapi {mode} {action} {:03}", workflow.index())],
            Self::AlreadyTerminal {
                workflow,
                successor,
                ..
            } => {
                let next = successor.as_ref().map(|(mode, id)| resume(*mode, id));
                let report = format!("kapi status {:03}", workflow.index());
                next.into_iter().chain([report]).collect()
            }
            Self::NotLinked { context, asked } => {
                vec![format!("kapi {asked} --from {:03}", context.index())]
            }
            Self::NotApproved { context } => vec![resume(Mode::CONTEXT, context)],
        }
    }
}

/// Returns the workflow that `kapi <mode> resume <token>` means.
///
/// # Errors
/// When it means none, several, or one that cannot be resumed so.
pub fn resume(
    asked: Mode,
    token: &str,
    rows: &[InventoryRow],
) -> Result<WorkflowTarget, TargetError> {
    let row = named(asked, token, rows)?;
    if row.mode == asked {
        return attach(row, None);
    }
    if row.mode != Mode::CONTEXT {
        return Err(wrong_mode("resume", row, asked));
    }
    match &row.successor {
        Some((mode, successor)) if *mode == asked => {
            let found = rows
                .iter()
                .find(|row| row.id == *successor && row.mode == asked);
            let row_of = found.ok_or_else(|| unknown(&successor.to_string(), rows))?;
            attach(row_of, Some(&row.id))
        }
        Some((mode, successor)) => Err(TargetError::WrongMode {
            action: "resume",
            workflow: successor.clone(),
            mode: *mode,
            asked,
        }),
        None if row.status.is_terminal() => attach(row, None),
        None if row.is_approved => Err(TargetError::NotLinked {
            context: row.id.clone(),
            asked,
        }),
        None => Err(TargetError::NotApproved {
            context: row.id.clone(),
        }),
    }
}

/// Returns the workflow that `kapi <mode> approve <token>` means: the one that is named, and never
/// one that it is linked with.
///
/// # Errors
/// When it means none, several, or one of another mode.
pub fn approve(asked: Mode, token: &str, rows: &[InventoryRow]) -> Result<GoalId, TargetError> {
    let row = named(asked, token, rows)?;
    if row.mode == asked {
        return Ok(row.id.clone());
    }
    Err(wrong_mode("approve", row, asked))
}

fn attach(row: &InventoryRow, by_way_of: Option<&GoalId>) -> Result<WorkflowTarget, TargetError> {
    if row.status.is_terminal() {
        return Err(TargetError::AlreadyTerminal {
            workflow: row.id.clone(),
            mode: row.mode,
            status: row.status,
            successor: row.successor.clone(),
        });
    }
    Ok(WorkflowTarget {
        workflow: row.id.clone(),
        by_way_of: by_way_of.cloned(),
    })
}

fn wrong_mode(action: &'static str, row: &InventoryRow, asked: Mode) -> TargetError {
    TargetError::WrongMode {
        action,
        workflow: row.id.clone(),
        mode: row.mode,
        asked,
    }
}

/// Finds the row with exactly this index, name or both. A name is looked for in the mode that was
/// asked for, then among those that give context, then in the others.
fn named<'rows>(
    asked: Mode,
    token: &str,
    rows: &'rows [InventoryRow],
) -> Result<&'rows InventoryRow, TargetError> {
    let token = token.trim();
    let is_number = !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_digit());
    let found: Vec<&InventoryRow> = if is_number {
        let index = token.parse().ok();
        let has_index = |row: &&InventoryRow| Some(row.id.index()) == index;
        rows.iter().filter(has_index).collect()
    } else if let Ok(id) = GoalId::parse(token) {
        rows.iter().filter(|row| row.id == id).collect()
    } else {
        let has_slug = |row: &&InventoryRow| row.id.slug().as_str() == token;
        let nearness = |row: &InventoryRow| match row.mode {
            mode if mode == asked => 0,
            mode if mode == Mode::CONTEXT => 1,
            _ => 2,
        };
        let nearest = rows.iter().filter(has_slug).map(nearness).min();
        let is_nearest = |row: &&InventoryRow| Some(nearness(row)) == nearest;
        rows.iter().filter(has_slug).filter(is_nearest).collect()
    };
    match found.as_slice() {
        [] => Err(unknown(token, rows)),
        [row] => Ok(row),
        several => Err(TargetError::Ambiguous {
            token: token.to_owned(),
            workflows: several.iter().map(|row| row.id.clone()).collect(),
        }),
    }
}

fn unknown(token: &str, rows: &[InventoryRow]) -> TargetError {
    let mut near: Vec<(usize, &GoalId)> = rows
        .iter()
        .map(|row| {
            let whole = distance(token, &row.id.to_string());
            (whole.min(distance(token, row.id.slug().as_str())), &row.id)
        })
        .collect();
    near.sort();
    TargetError::Unknown {
        token: token.to_owned(),
        nearest: near
            .into_iter()
            .take(NEAREST_MAX)
            .map(|(_, id)| id.clone())
            .collect(),
    }
}

/// Returns how many letters have to be put in, left out or changed to make one text of another.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (location, letter) in (1..).zip(one.chars().take(SHOWN_CHARS_MAX)) {
        let mut next = vec![location];
        for (known, pair) in other.iter().zip(row.windows(2)) {
            let [before, above] = pair else { continue };
            let left = next.last().copied().unwrap_or_default();
            let changed = before + usize::from(*known != letter);
            next.push(changed.min(above + 1).min(left + 1));
        }
        row = next;
    }
    row.last().copied().unwrap_or_default()
}

/// The most letters of what was typed that are compared.
const SHOWN_CHARS_MAX: usize = 100;

fn offer(nearest: &[GoalId]) -> String {
    if nearest.is_empty() {
        return ": there is none".to_owned();
    }
    format!("; the nearest: {}", names(nearest))
}

fn names(workflows: &[GoalId]) -> String {
    let names: Vec<String> = workflows.iter().map(GoalId::to_string).collect();
    names.join(", ")
}

#[cfg(test)]
mod tests;
