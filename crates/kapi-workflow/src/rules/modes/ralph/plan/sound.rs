//! What every plan must be before it is argued about: whole, proved at every step, without circles.
//!
//! Pure rules. What is wrong is told to the planner in full, so that one more answer can mend all of
//! it. Whether a plan is wise is for its critics and the person.

use std::collections::BTreeSet;

use kapi_goal::rules::plan::graph::{GraphNode, circle, unknown_dependency};
use kapi_goal::rules::plan::task::PlanTaskId;

use crate::rules::branch::BranchType;
use crate::rules::handover::Spec;
use crate::rules::modes::ralph::plan::{Criterion, PlanTask, RalphPlan, TASKS_MAX};
use crate::rules::terms::WorkflowTerms;

/// The most bytes of a title, a name or a glob.
pub const SHORT_BYTES_MAX: usize = 300;
/// The most bytes of any other text of a plan.
pub const LONG_BYTES_MAX: usize = 8 * 1024;
/// The most bytes of all texts of a plan together.
pub const PLAN_BYTES_MAX: usize = 128 * 1024;
/// The most entries of any list of a plan beside its tasks.
pub const ITEMS_MAX: usize = 64;

/// One thing that is wrong with a plan, as its planner is told.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanFault {
    /// A text is missing.
    #[error("{location} is empty")]
    Empty {
        /// Where.
        location: String,
    },
    /// A text is too long.
    #[error("{location} has {bytes} bytes; the maximum is {bytes_max}")]
    TooLong {
        /// Where.
        location: String,
        /// How long.
        bytes: usize,
        /// The most.
        bytes_max: usize,
    },
    /// A list is too long.
    #[error("{location} has {n} entries; the maximum is {n_max}")]
    TooMany {
        /// Where.
        location: String,
        /// How many.
        n: usize,
        /// The most.
        n_max: usize,
    },
    /// No alternative was considered, and not said why.
    #[error(
        "options needs at least two ways, exactly one of them without `rejected`; or one way whose `rejected` explains why there is no other"
    )]
    Options,
    /// A name has another shape.
    #[error("{location}: {id:?} is not of the form {shape}")]
    Shape {
        /// Where.
        location: &'static str,
        /// The name.
        id: String,
        /// The shape.
        shape: &'static str,
    },
    /// Two have one name.
    #[error("{location}: {id} appears twice")]
    Twice {
        /// Where.
        location: &'static str,
        /// The name.
        id: String,
    },
    /// A task waits for one that is not there.
    #[error("task {task} depends on {dependency}, which the plan does not have")]
    UnknownDependency {
        /// The task.
        task: PlanTaskId,
        /// What it names.
        dependency: PlanTaskId,
    },
    /// Tasks wait for each other.
    #[error("tasks depend on each other in a cycle: {}", names(.path))]
    Circle {
        /// Them, each depending on the next.
        path: Vec<PlanTaskId>,
    },
    /// A task serves a criterion that is not there.
    #[error("task {task} serves criterion {criterion}, which the plan does not have")]
    UnknownCriterion {
        /// The task.
        task: PlanTaskId,
        /// What it names.
        criterion: String,
    },
    /// A path pattern cannot be one.
    #[error("task {task} touches {glob:?}: {rule}")]
    Glob {
        /// The task.
        task: PlanTaskId,
        /// The pattern.
        glob: String,
        /// The rule.
        rule: &'static str,
    },
    /// Nothing shows that a task is done.
    #[error("task {task} has no verify command")]
    Unproved {
        /// The task.
        task: PlanTaskId,
    },
    /// Nothing shows that the whole holds.
    #[error("verify of the plan is empty: the whole needs at least one command")]
    WholeUnproved,
    /// Nothing shows that a criterion holds.
    #[error("criterion {criterion} needs either verify or exempt, and not both")]
    Criterion {
        /// The criterion.
        criterion: String,
    },
    /// A criterion of the approved spec is missing.
    #[error("criterion {criterion} is missing: the approved spec has it as {text:?}")]
    Uncovered {
        /// The name it must have.
        criterion: String,
        /// What the spec says.
        text: String,
    },
    /// A criterion is checked otherwise than the approved spec says.
    #[error("criterion {criterion} must be verified by {verify:?}, as in the approved spec")]
    OtherProof {
        /// The criterion.
        criterion: String,
        /// The command of the spec.
        verify: String,
    },
    /// The branch is there already, under another type.
    #[error("branch_type must stay {}: the branch already exists", .0.as_str())]
    OtherType(BranchType),
}

fn names(path: &[PlanTaskId]) -> String {
    let names: Vec<&str> = path.iter().map(PlanTaskId::as_str).collect();
    names.join(" -> ")
}

/// Checks a plan; `branch` is the type of the workflow's branch where it is there already.
///
/// # Errors
/// With everything that is wrong, in the order of the plan.
pub fn sound(
    plan: &RalphPlan,
    spec: Option<&Spec>,
    terms: &WorkflowTerms,
    branch: Option<BranchType>,
) -> Result<(), Vec<PlanFault>> {
    let mut faults = Vec::new();
    check_texts(plan, &mut faults);
    check_options(plan, &mut faults);
    check_tasks(plan, &mut faults);
    for task in &plan.tasks {
        check_task(task, plan, &mut faults);
    }
    check_criteria(&plan.criteria, &mut faults);
    check_spec(plan, spec, &mut faults);
    if plan.verify.is_empty() && terms.verify.is_empty() {
        faults.push(PlanFault::WholeUnproved);
    }
    if let Some(branch) = branch.filter(|branch| *branch != plan.branch_type) {
        faults.push(PlanFault::OtherType(branch));
    }
    if faults.is_empty() {
        Ok(())
    } else {
        Err(faults)
    }
}

/// Returns what makes one doubt a sound plan: shown to its critics and to the person.
#[must_use]
pub fn doubts(plan: &RalphPlan) -> Vec<String> {
    let of_tasks = plan.tasks.iter().flat_map(|task| {
        let named = move |command: &'_ String| (task.id.to_string(), command.clone());
        task.verify.iter().map(named)
    });
    let of_criteria = plan
        .criteria
        .iter()
        .filter_map(|criterion| Some((criterion.id.clone(), criterion.verify.clone()?)));
    let of_whole = plan
        .verify
        .iter()
        .map(|command| ("The plan".to_owned(), command.clone()));
    of_tasks
        .chain(of_criteria)
        .chain(of_whole)
        .filter(|(_, command)| always_passes(command))
        .map(|(owner, command)| format!("{owner} is verified by `{command}`, which always passes."))
        .collect()
}

fn always_passes(command: &str) -> bool {
    let command = command.trim();
    matches!(command, "true" | ":" | "exit 0" | "exit" | "/bin/true")
        || (command.starts_with("echo ") && !command.contains(['|', '&', ';', '\n', '`', '$']))
}

fn check_text(location: &str, text: &str, bytes_max: usize, faults: &mut Vec<PlanFault>) {
    let location = location.to_owned();
    if text.trim().is_empty() {
        faults.push(PlanFault::Empty { location });
    } else if text.len() > bytes_max {
        faults.push(PlanFault::TooLong {
            location,
            bytes: text.len(),
            bytes_max,
        });
    }
}

fn check_list(location: &str, items: &[String], bytes_max: usize, faults: &mut Vec<PlanFault>) {
    if items.len() > ITEMS_MAX {
        faults.push(PlanFault::TooMany {
            location: location.to_owned(),
            n: items.len(),
            n_max: ITEMS_MAX,
        });
    }
    for (at, item) in items.iter().enumerate().take(ITEMS_MAX) {
        check_text(&format!("{location}[{at}]"), item, bytes_max, faults);
    }
}

fn check_texts(plan: &RalphPlan, faults: &mut Vec<PlanFault>) {
    check_text("summary", &plan.summary, LONG_BYTES_MAX, faults);
    check_text("context", &plan.context, LONG_BYTES_MAX, faults);
    check_list("excluded", &plan.excluded, LONG_BYTES_MAX, faults);
    check_list("risks", &plan.risks, LONG_BYTES_MAX, faults);
    check_list("verify", &plan.verify, LONG_BYTES_MAX, faults);
    let bytes = text_bytes(plan);
    if bytes > PLAN_BYTES_MAX {
        faults.push(PlanFault::TooLong {
            location: "the plan".to_owned(),
            bytes,
            bytes_max: PLAN_BYTES_MAX,
        });
    }
}

fn text_bytes(plan: &RalphPlan) -> usize {
    let sum = |texts: &[String]| texts.iter().map(String::len).sum::<usize>();
    let options = plan.options.iter().map(|option| {
        let rejected = option.rejected.as_ref().map_or(0, String::len);
        option.name.len() + option.summary.len() + rejected
    });
    let tasks = plan.tasks.iter().map(|task| {
        let lists = sum(&task.touches) + sum(&task.verify) + sum(&task.criteria);
        task.title.len() + task.description.len() + lists
    });
    let criteria = plan.criteria.iter().map(|criterion| {
        let verify = criterion.verify.as_ref().map_or(0, String::len);
        let exempt = criterion.exempt.as_ref().map_or(0, String::len);
        criterion.text.len() + verify + exempt
    });
    let lists = sum(&plan.excluded) + sum(&plan.risks) + sum(&plan.verify);
    let parts = options.chain(tasks).chain(criteria);
    plan.summary.len() + plan.context.len() + lists + parts.sum::<usize>()
}

fn check_options(plan: &RalphPlan, faults: &mut Vec<PlanFault>) {
    let n_taken = plan.options.iter().filter(|o| o.rejected.is_none()).count();
    let is_argued = match plan.options.len() {
        0 => false,
        1 => n_taken == 0,
        n => n_taken == 1 && n <= ITEMS_MAX,
    };
    if !is_argued {
        faults.push(PlanFault::Options);
    }
    for (at, option) in plan.options.iter().enumerate() {
        let location = |field: &str| format!("options[{at}].{field}");
        check_text(&location("name"), &option.name, SHORT_BYTES_MAX, faults);
        check_text(
            &location("summary"),
            &option.summary,
            LONG_BYTES_MAX,
            faults,
        );
        if let Some(rejected) = &option.rejected {
            check_text(&location("rejected"), rejected, LONG_BYTES_MAX, faults);
        }
    }
}

fn check_tasks(plan: &RalphPlan, faults: &mut Vec<PlanFault>) {
    if plan.tasks.is_empty() {
        faults.push(PlanFault::Empty {
            location: "tasks".to_owned(),
        });
    }
    if plan.tasks.len() > TASKS_MAX {
        faults.push(PlanFault::TooMany {
            location: "tasks".to_owned(),
            n: plan.tasks.len(),
            n_max: TASKS_MAX,
        });
    }
    let mut seen = BTreeSet::new();
    for task in &plan.tasks {
        if !is_numbered(task.id.as_str(), "T-", 3) {
            faults.push(PlanFault::Shape {
                location: "tasks",
                id: task.id.to_string(),
                shape: "T-001",
            });
        }
        if !seen.insert(&task.id) {
            faults.push(PlanFault::Twice {
                location: "tasks",
                id: task.id.to_string(),
            });
        }
    }
    let nodes: Vec<GraphNode<'_>> = plan.tasks.iter().map(node).collect();
    if let Some((task, dependency)) = unknown_dependency(&nodes) {
        faults.push(PlanFault::UnknownDependency {
            task: task.clone(),
            dependency: dependency.clone(),
        });
    } else if let Some(path) = circle(&nodes) {
        faults.push(PlanFault::Circle { path });
    }
}

const fn node(task: &PlanTask) -> GraphNode<'_> {
    GraphNode {
        id: &task.id,
        after: task.depends_on.as_slice(),
    }
}

/// Tells whether a name is a prefix and at least so many digits.
fn is_numbered(id: &str, prefix: &str, digits_min: usize) -> bool {
    id.strip_prefix(prefix).is_some_and(|digits| {
        (digits_min..=6).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_digit())
    })
}

fn check_task(task: &PlanTask, plan: &RalphPlan, faults: &mut Vec<PlanFault>) {
    let location = |field: &str| format!("{}.{field}", task.id);
    check_text(&location("title"), &task.title, SHORT_BYTES_MAX, faults);
    check_text(
        &location("description"),
        &task.description,
        LONG_BYTES_MAX,
        faults,
    );
    if task.verify.is_empty() {
        faults.push(PlanFault::Unproved {
            task: task.id.clone(),
        });
    }
    check_list(&location("verify"), &task.verify, LONG_BYTES_MAX, faults);
    check_list(&location("touches"), &task.touches, SHORT_BYTES_MAX, faults);
    for glob in &task.touches {
        if let Some(rule) = glob_fault(glob) {
            faults.push(PlanFault::Glob {
                task: task.id.clone(),
                glob: glob.clone(),
                rule,
            });
        }
    }
    let is_known = |id: &&String| plan.criteria.iter().any(|c| c.id == **id);
    for criterion in task.criteria.iter().filter(|id| !is_known(id)) {
        faults.push(PlanFault::UnknownCriterion {
            task: task.id.clone(),
            criterion: criterion.clone(),
        });
    }
}

/// Returns why a path pattern cannot be one.
fn glob_fault(glob: &str) -> Option<&'static str> {
    if glob.starts_with('/') || glob.contains('\\') {
        return Some("it must be relative to the repository, with slashes");
    }
    if glob.chars().any(char::is_control) {
        return Some("it contains an invisible character");
    }
    let mut names = glob.split('/');
    if names.clone().any(|name| name == "..") {
        return Some("it must not leave the repository");
    }
    names
        .any(|name| name == ".git" || name == ".ilchul")
        .then_some("a task must not change files of Kapi or git")
}

fn check_criteria(criteria: &[Criterion], faults: &mut Vec<PlanFault>) {
    if criteria.is_empty() {
        faults.push(PlanFault::Empty {
            location: "criteria".to_owned(),
        });
    }
    if criteria.len() > ITEMS_MAX {
        faults.push(PlanFault::TooMany {
            location: "criteria".to_owned(),
            n: criteria.len(),
            n_max: ITEMS_MAX,
        });
    }
    let mut seen = BTreeSet::new();
    for criterion in criteria {
        if !is_numbered(&criterion.id, "AC-", 1) {
            faults.push(PlanFault::Shape {
                location: "criteria",
                id: criterion.id.clone(),
                shape: "AC-1",
            });
        }
        if !seen.insert(&criterion.id) {
            faults.push(PlanFault::Twice {
                location: "criteria",
                id: criterion.id.clone(),
            });
        }
        let text = format!("{}.text", criterion.id);
        check_text(&text, &criterion.text, LONG_BYTES_MAX, faults);
        let said = |text: &Option<String>| text.as_ref().is_some_and(|t| !t.trim().is_empty());
        if said(&criterion.verify) == said(&criterion.exempt) {
            faults.push(PlanFault::Criterion {
                criterion: criterion.id.clone(),
            });
        }
    }
}

/// The criteria of an approved spec come first, under their numbers, with their commands.
fn check_spec(plan: &RalphPlan, spec: Option<&Spec>, faults: &mut Vec<PlanFault>) {
    let Some(spec) = spec else {
        return;
    };
    for (at, wanted) in spec.success_criteria.iter().enumerate() {
        let id = format!("AC-{}", at + 1);
        let Some(found) = plan.criteria.iter().find(|c| c.id == id) else {
            faults.push(PlanFault::Uncovered {
                criterion: id,
                text: wanted.text.clone(),
            });
            continue;
        };
        if let Some(verify) = wanted.verify.clone()
            && found.verify.as_ref() != Some(&verify)
        {
            faults.push(PlanFault::OtherProof {
                criterion: id,
                verify,
            });
        }
    }
}

#[cfg(test)]
mod tests;
