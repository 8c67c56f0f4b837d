//! Where the live view gets what stands on disk: the folds that `kapi show` reads, and what changed.
//!
//! What cannot be read right now is left as it was last; the view is no place for errors.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use kapi_core::id::GoalId;
use kapi_core::workflow_key::WorkflowKey;
use kapi_goal::perform::survey::RepositorySurvey;
use kapi_goal::record::project::Project;
use kapi_goal::rules::state::Goal;
use kapi_workflow::record::workflows::Workflows;

use crate::context::Context;
use crate::live_view::facts::{ChangeFacts, FileChange, SubjectFacts, goal, workflow};
use crate::ui::harmless;

/// Files that are listed; there are never more rows.
const FILES_MAX: usize = 100;

/// Goals of one project.
pub(crate) struct GoalSource<'a> {
    context: &'a Context,
    project: &'a Project<'a>,
    /// What each changed up to which commit, as it was read last.
    changes: Mutex<BTreeMap<GoalId, CommitChanges>>,
}

/// What was changed up to a commit.
#[derive(Debug, Clone)]
struct CommitChanges {
    commit: String,
    changes: ChangeFacts,
}

impl<'a> GoalSource<'a> {
    /// Makes a source of goals.
    pub(crate) const fn new(context: &'a Context, project: &'a Project<'a>) -> Self {
        Self {
            context,
            project,
            changes: Mutex::new(BTreeMap::new()),
        }
    }

    /// Reads what is known of a goal; `None` while it cannot be read.
    pub(crate) fn read(&self, id: &GoalId) -> Option<SubjectFacts> {
        let goal = self.project.load(id).ok()?;
        let driver = self.project.driver(id).ok().flatten();
        let mut facts = goal::facts(&goal, driver.as_deref(), self.changes(&goal));
        leave_out_own(&mut facts);
        Some(facts)
    }

    /// Returns what a goal changed up to its last commit, which git is asked about once.
    fn changes(&self, goal: &Goal) -> Option<ChangeFacts> {
        let commit = &goal.candidate.as_ref()?.commit;
        let mut known = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = known.get(&goal.id).filter(|known| known.commit == *commit) {
            return Some(known.changes.clone());
        }
        let changes = read_changes(self.context, self.project, goal, commit)?;
        let of_commit = CommitChanges {
            commit: commit.clone(),
            changes: changes.clone(),
        };
        known.insert(goal.id.clone(), of_commit);
        Some(changes)
    }
}

/// Reads what is known of a workflow; `None` while it cannot be read.
pub(crate) fn workflow_facts(workflows: &Workflows<'_>, key: &WorkflowKey) -> Option<SubjectFacts> {
    let found = workflows.workflow(key).ok()?;
    let driver = workflows.workflow_driver(key).ok().flatten();
    let mut facts = workflow::facts(&found, driver.as_deref());
    leave_out_own(&mut facts);
    Some(facts)
}

/// Leaves out who drives it where that is this process: whoever looks knows that.
fn leave_out_own(facts: &mut SubjectFacts) {
    let own = format!("pid {},", std::process::id());
    facts
        .details
        .retain(|(name, value)| *name != "driver" || !value.starts_with(&own));
}

fn read_changes(
    context: &Context,
    project: &Project<'_>,
    goal: &Goal,
    commit: &str,
) -> Option<ChangeFacts> {
    let root = project.layout.root();
    let grants = context.grants(&context.config(Some(root)).ok()?);
    let survey = RepositorySurvey::of(&grants, root).ok()?;
    let changed = survey
        .changed_files(&goal.contract.base.commit, commit)
        .ok()?;
    let files = changed.iter().take(FILES_MAX).map(|file| FileChange {
        path: harmless(&file.path.to_string_lossy()),
        added: file.lines.as_ref().map_or(0, |lines| lines.added),
        removed: file.lines.as_ref().map_or(0, |lines| lines.removed),
    });
    Some(ChangeFacts {
        files: files.collect(),
        n_files: changed.len(),
    })
}
