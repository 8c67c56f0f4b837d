//! How people name a thing: a goal or a workflow by index, slug or both, a task by its number, a
//! launch by its id.
//!
//! Pure: given the names there are, finds what is meant or says why it cannot.

use std::fmt;

use kapi_core::id::GoalId;
use kapi_core::mode::Mode;
use kapi_core::task_id::KernelTaskId;
use kapi_core::workflow_key::WorkflowKey;
use kapi_store::error::StoreError;

/// Names that an error lists at most.
const CANDIDATES_MAX: usize = 10;

/// What a reference names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum ReferenceTarget {
    /// A goal.
    Goal(GoalId),
    /// A workflow.
    Workflow(WorkflowKey),
    /// A task.
    Task(KernelTaskId),
    /// The sandbox of a launch, by its id.
    Launch(String),
}

/// The kinds of what a reference names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SubjectKind {
    /// A goal.
    Goal,
    /// A workflow.
    Workflow,
    /// A task.
    Task,
    /// A launch.
    Launch,
}

/// The names there are in a project. Tasks are asked for one by one: there may be very many.
#[derive(Debug, Clone, Copy)]
pub struct Names<'a> {
    /// Of goals.
    pub goals: &'a [GoalId],
    /// Of workflows.
    pub workflows: &'a [WorkflowKey],
    /// Of launches.
    pub launches: &'a [String],
}

impl ReferenceTarget {
    /// Returns which kind it is of.
    #[must_use]
    pub const fn kind(&self) -> SubjectKind {
        match self {
            Self::Goal(_) => SubjectKind::Goal,
            Self::Workflow(_) => SubjectKind::Workflow,
            Self::Task(_) => SubjectKind::Task,
            Self::Launch(_) => SubjectKind::Launch,
        }
    }
}

impl fmt::Display for ReferenceTarget {
    /// Writes the reference that names it alone, whatever else there is.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Goal(id) if id.is_part() => write!(out, "goal/{}", id.reference()),
            Self::Goal(id) => write!(out, "goal/{}", id.index()),
            Self::Workflow(key) => write!(out, "workflow/{}", key.id.index()),
            Self::Task(id) => write!(out, "{id}"),
            Self::Launch(id) => write!(out, "launch/{id}"),
        }
    }
}

impl SubjectKind {
    const ALL: [Self; 4] = [Self::Goal, Self::Workflow, Self::Task, Self::Launch];

    /// Returns its name, which stands before `/` in a reference.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Goal => "goal",
            Self::Workflow => "workflow",
            Self::Task => "task",
            Self::Launch => "launch",
        }
    }

    /// Reads the kind that a reference names, and the name behind it; `None` for a bare word.
    #[must_use]
    pub fn of(reference: &str) -> Option<(Self, &str)> {
        let (word, name) = match reference.split_once('/') {
            Some(parts) => parts,
            None if reference.starts_with("task_") => ("task", reference),
            None => return None,
        };
        let kind = Self::ALL.into_iter().find(|kind| kind.as_str() == word)?;
        Some((kind, name))
    }
}

impl fmt::Display for SubjectKind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

/// Returns everything that a reference fits, goals first.
///
/// A bare number is that of a goal or a workflow; only where there is none, of a task or a launch.
///
/// # Errors
/// When `is_task` cannot tell whether there is a task.
pub fn fitting<E>(
    reference: &str,
    names: &Names<'_>,
    is_task: &dyn Fn(KernelTaskId) -> Result<bool, E>,
) -> Result<Vec<ReferenceTarget>, E> {
    let (kind, name) = match SubjectKind::of(reference) {
        Some((kind, name)) => (Some(kind), name),
        None => (None, reference),
    };
    let is_meant = |of: SubjectKind| kind.is_none_or(|kind| kind == of);
    let mut ids: Vec<GoalId> = Vec::new();
    if is_meant(SubjectKind::Goal) {
        ids.extend_from_slice(names.goals);
    }
    if is_meant(SubjectKind::Workflow) {
        ids.extend(names.workflows.iter().map(|key| key.id.clone()));
    }
    let called = called(name, &ids);
    let mut found: Vec<ReferenceTarget> = Vec::new();
    if is_meant(SubjectKind::Goal) {
        let goals = names.goals.iter().filter(|id| called.contains(id));
        found.extend(goals.cloned().map(ReferenceTarget::Goal));
    }
    if is_meant(SubjectKind::Workflow) {
        let workflows = names.workflows.iter();
        let workflows = workflows.filter(|key| called.contains(&key.id));
        found.extend(workflows.cloned().map(ReferenceTarget::Workflow));
    }
    if kind.is_none() && !found.is_empty() && number(name).is_some() {
        return Ok(found);
    }
    if is_meant(SubjectKind::Task)
        && let Ok(id) = KernelTaskId::parse(name)
        && is_task(id)?
    {
        found.push(ReferenceTarget::Task(id));
    }
    if is_meant(SubjectKind::Launch) {
        let launches = names.launches.iter().filter(|id| *id == name);
        found.extend(launches.cloned().map(ReferenceTarget::Launch));
    }
    Ok(found)
}

fn number(name: &str) -> Option<u32> {
    let is_number = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| name.parse().ok()).flatten()
}

/// Returns the ids that a name fits. An index wins over a slug made of digits.
fn called(name: &str, ids: &[GoalId]) -> Vec<GoalId> {
    let matching = |fits: &dyn Fn(&GoalId) -> bool| -> Vec<GoalId> {
        ids.iter().filter(|id| fits(id)).cloned().collect()
    };
    let index = number(name);
    let by_index = matching(&|id| !id.is_part() && index == Some(id.index()));
    if by_index.is_empty() {
        matching(&|id| id.is_called(name))
    } else {
        by_index
    }
}

/// A reference that does not lead to one goal.
#[derive(Debug, thiserror::Error)]
pub enum ResolveError {
    /// Nothing fits.
    #[error("find a goal {reference:?}")]
    Unknown {
        /// What was asked for.
        reference: String,
        /// The latest goals there are.
        candidates: Vec<GoalId>,
    },
    /// Several fit.
    #[error("find one goal {reference:?}: {} match", candidates.len())]
    Ambiguous {
        /// What was asked for.
        reference: String,
        /// Those that fit.
        candidates: Vec<GoalId>,
    },
    /// It means a workflow, which is not a goal.
    #[error("find a goal {reference:?}: {id} is a {mode} workflow")]
    Workflow {
        /// What was asked for.
        reference: String,
        /// The workflow.
        id: GoalId,
        /// Its mode.
        mode: Mode,
    },
    /// It says itself that it means something else.
    #[error("find a goal {reference:?}: it is a {kind}")]
    OtherKind {
        /// What was asked for.
        reference: String,
        /// What it says it is.
        kind: SubjectKind,
    },
    /// The goals could not be listed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl ResolveError {
    /// Returns what to type instead.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        let names = |candidates: &[GoalId]| {
            let names: Vec<String> = candidates.iter().map(ToString::to_string).collect();
            names.join(", ")
        };
        match self {
            Self::Unknown { candidates, .. } if candidates.is_empty() => {
                Some("there are no goals here yet; start one with `kapi run`.".to_owned())
            }
            Self::Unknown { candidates, .. } => Some(format!("available: {}.", names(candidates))),
            Self::Ambiguous { candidates, .. } => {
                Some(format!("name one of them: {}.", names(candidates)))
            }
            Self::Workflow { id, mode, .. } => Some(format!(
                "show it with `kapi show {index:03}`, resume it with `kapi {mode} resume {index:03}`.",
                index = id.index()
            )),
            Self::OtherKind { reference, .. } => {
                Some(format!("show it with `kapi show {reference}`."))
            }
            Self::Store(error) => error.hint(),
        }
    }
}

/// Finds the goal that a reference means. An index wins over a slug made of digits.
///
/// # Errors
/// When none or several fit, or it names something else.
pub fn find(reference: &str, ids: &[GoalId]) -> Result<GoalId, ResolveError> {
    let name = match SubjectKind::of(reference) {
        Some((SubjectKind::Goal, name)) => name,
        Some((kind, _)) => {
            let reference = reference.to_owned();
            return Err(ResolveError::OtherKind { reference, kind });
        }
        None => reference,
    };
    let mut candidates = called(name, ids);
    let reference = reference.to_owned();
    match candidates.len() {
        1 => Ok(candidates.remove(0)),
        0 => {
            let latest = ids.len().saturating_sub(CANDIDATES_MAX);
            let candidates = ids.get(latest..).unwrap_or_default().to_vec();
            Err(ResolveError::Unknown {
                reference,
                candidates,
            })
        }
        _ => Err(ResolveError::Ambiguous {
            reference,
            candidates,
        }),
    }
}

#[cfg(test)]
mod tests {
    use kapi_core::id::GoalId;
    use kapi_core::mode::Mode;
    use kapi_core::task_id::KernelTaskId;
    use kapi_core::workflow_key::WorkflowKey;

    use super::{Names, ReferenceTarget, find, fitting};

    /// Looks a reference up among two goals, two workflows, tasks 1 to 20 and three launches.
    fn fits(reference: &str) -> String {
        let goal = |name: &str| GoalId::parse(name).unwrap();
        let workflow = |name: &str| WorkflowKey {
            mode: Mode::Ralph,
            id: goal(name),
        };
        let launches = ["2", "9", "fix-login"].map(str::to_owned);
        let names = Names {
            goals: &[
                goal("001-fix-login"),
                goal("003-7"),
                goal("004-plan_T-002"),
                goal("004-plan_T-002_2"),
            ],
            workflows: &[workflow("002-fix-login"), workflow("004-plan")],
            launches: &launches,
        };
        let is_task =
            |id: KernelTaskId| -> Result<bool, ()> { Ok((1..=20).contains(&id.number())) };
        let found = fitting(reference, &names, &is_task).unwrap();
        let found: Vec<String> = found.iter().map(ReferenceTarget::to_string).collect();
        found.join(" ")
    }

    #[test]
    fn a_reference_names_what_the_table_of_references_says() {
        for (reference, expected) in [
            // A number is a goal's or a workflow's as long as one has it.
            ("1", "goal/1"),
            ("002", "workflow/2"),
            ("003-7", "goal/3"),
            ("7", "goal/3"),
            ("plan", "workflow/4"),
            // Otherwise a task's or a launch's, or both.
            ("17", "task_17"),
            ("9", "task_9 launch/9"),
            ("21", ""),
            // A kind that is named is certain.
            ("goal/1", "goal/1"),
            ("goal/2", ""),
            ("workflow/2", "workflow/2"),
            ("workflow/fix-login", "workflow/2"),
            ("task_1", "task_1"),
            ("task/1", "task_1"),
            ("task/task_1", "task_1"),
            ("launch/2", "launch/2"),
            ("launch/1", ""),
            // The goals of a workflow stand under its name.
            ("4", "workflow/4"),
            ("4/T-002", "goal/004/T-002"),
            ("goal/004/T-002", "goal/004/T-002"),
            ("plan/T-002.2", "goal/004/T-002.2"),
            ("004-plan_T-002_2", "goal/004/T-002.2"),
            ("4/T-003", ""),
            ("T-002", ""),
            // A word that fits several things names none of them alone.
            ("fix-login", "goal/1 workflow/2 launch/fix-login"),
            ("fix", ""),
            ("", ""),
            ("ralph/2", ""),
        ] {
            assert_eq!(fits(reference), expected, "{reference}");
        }
    }

    fn check(reference: &str, expected: &str) {
        let names = [
            "001-fix-login",
            "002-7",
            "007-add-tests",
            "012-fix-login",
            "1000-big",
        ];
        let ids: Vec<GoalId> = names
            .iter()
            .map(|name| GoalId::parse(name).unwrap())
            .collect();
        let found = match find(reference, &ids) {
            Ok(id) => id.to_string(),
            Err(error) => format!("{error}; {}", error.hint().unwrap()),
        };
        assert_eq!(found, expected);
    }

    #[test]
    fn one_goal_is_found_by_every_name() {
        for reference in ["7", "007", "0007", "add-tests", "007-add-tests"] {
            check(reference, "007-add-tests");
        }
        check("1000", "1000-big");
        check("2", "002-7");
    }

    #[test]
    fn an_ambiguous_slug_lists_what_fits() {
        check(
            "fix-login",
            "find one goal \"fix-login\": 2 match; name one of them: 001-fix-login, 012-fix-login.",
        );
        check("012", "012-fix-login");
    }

    #[test]
    fn an_unknown_name_lists_what_there_is() {
        for reference in ["", "3", "fix", "99999999999999", "-1", "001-other"] {
            check(
                reference,
                &format!(
                    "find a goal {reference:?}; available: 001-fix-login, 002-7, \
                     007-add-tests, 012-fix-login, 1000-big."
                ),
            );
        }
    }

    #[test]
    fn a_goal_may_be_said_to_be_one_and_nothing_else_is() {
        check("goal/7", "007-add-tests");
        check(
            "task_7",
            "find a goal \"task_7\": it is a task; show it with `kapi show task_7`.",
        );
    }

    #[test]
    fn an_empty_project_says_so() {
        let error = find("1", &[]).unwrap_err();
        assert!(error.hint().unwrap().contains("no goals here yet"));
    }
}
