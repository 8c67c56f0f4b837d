//! Whether what a goal proved can still be relied on: its branch is where it was put, its log and
//! the files of its runs are what was recorded, and its change does not sweep the project away.
//!
//! Only looks. What cannot be looked at now is not reported.

use std::path::Path;

use kapi_core::deletions::Deletions;
use kapi_core::failure::chain;
use kapi_core::text::short_id;
use kapi_goal::perform::survey::RepositorySurvey;
use kapi_goal::record::audit::audit_goal;
use kapi_goal::record::project::Project;
use kapi_goal::rules::state::Goal;
use kapi_goal::rules::words;
use serde::Serialize;

use crate::context::Context;
use crate::ui::Ui;

/// Findings of an audit that are shown with a goal.
const FINDINGS_MAX: usize = 3;

/// A branch that is not where the proof left it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct MovedBranch {
    /// `moved`, `ahead` when what is there contains the proved commit, or `deleted`.
    kind: &'static str,
    /// The commit that was proved or accepted.
    proved: String,
    /// The commit the branch is at now.
    found: Option<String>,
}

/// What speaks against relying on a goal.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Trust {
    /// Where its branch is, if that is not the proved commit.
    pub(crate) moved_branch: Option<MovedBranch>,
    /// What an audit of its log and its runs finds.
    pub(crate) damage: Vec<String>,
    /// What its change deletes, if that is much of the project.
    pub(crate) deletes: Option<Deletions>,
    /// Whether a process drives it, which nothing else may do then.
    #[serde(skip)]
    is_driven: bool,
}

impl Trust {
    /// Looks at a goal. Reads all of its log.
    pub(crate) fn of(context: &Context, project: &Project<'_>, goal: &Goal) -> Self {
        let (moved_branch, deletes) = looked_at(context, project.layout.root(), goal);
        Self {
            moved_branch,
            damage: damage(project, goal),
            deletes,
            // Where nobody can tell, resuming finds it out.
            is_driven: project
                .driver(&goal.id)
                .is_ok_and(|driver| driver.is_some()),
        }
    }

    /// Returns what to type next, which never relies on a branch that has moved.
    pub(crate) fn next_commands(&self, goal: &Goal) -> Vec<String> {
        let index = goal.id.reference();
        if !self.damage.is_empty() {
            return vec![format!("kapi audit {index}")];
        }
        match &self.moved_branch {
            None if self.is_driven && goal.is_driven() => vec![
                format!("kapi log {index} -f"),
                format!("kapi pause {index}"),
                format!("kapi cancel {index}"),
            ],
            None => words::next_commands(goal),
            Some(moved) => moved.next_commands(&index, &goal.contract.branch),
        }
    }

    /// Says in sentences without a full stop what speaks against relying on the goal.
    pub(crate) fn warnings(&self, goal: &Goal) -> Vec<String> {
        let moved = self.moved_branch.iter();
        let moved = moved.map(|moved| moved.sentence(&goal.contract.branch));
        let damage = self.damage.iter().take(FINDINGS_MAX);
        let damage = damage.map(|finding| format!("its log is damaged: failed to {finding}"));
        let deletes = self.deletes.iter().map(Deletions::sentence);
        moved.chain(damage).chain(deletes).collect()
    }

    /// Prints what speaks against relying on the goal.
    pub(crate) fn show(&self, ui: Ui, goal: &Goal) {
        if let Some(moved) = &self.moved_branch {
            ui.line(&format!(
                "  MOVED    {}",
                moved.sentence(&goal.contract.branch)
            ));
        }
        for finding in self.damage.iter().take(FINDINGS_MAX) {
            ui.line(&format!("  DAMAGED  failed to {finding}"));
        }
        if self.damage.len() > FINDINGS_MAX {
            let more = self.damage.len() - FINDINGS_MAX;
            ui.line(&format!(
                "  DAMAGED  {more} more findings; `kapi audit {}` lists them",
                goal.id.reference()
            ));
        }
        if let Some(deletes) = &self.deletes {
            ui.line(&format!("  caution  {}", deletes.sentence()));
        }
    }
}

impl MovedBranch {
    /// Compares where a branch is with where the proof left it.
    pub(crate) fn find(survey: &RepositorySurvey, branch: &str, proved: &str) -> Option<Self> {
        let found = survey.branch_tip(branch).ok()?;
        if found.as_deref() == Some(proved) {
            return None;
        }
        let kind = match &found {
            None => "deleted",
            Some(tip) if survey.contains(tip, proved).unwrap_or(false) => "ahead",
            Some(_) => "moved",
        };
        Some(Self {
            kind,
            proved: proved.to_owned(),
            found,
        })
    }

    /// Compares a branch's tip, if it has one, with where the proof left it; what is between the two
    /// is not looked at.
    pub(crate) fn of_tip(tip: Option<&String>, proved: &str) -> Option<Self> {
        if tip.is_some_and(|tip| tip == proved) {
            return None;
        }
        Some(Self {
            kind: if tip.is_some() { "moved" } else { "deleted" },
            proved: proved.to_owned(),
            found: tip.cloned(),
        })
    }

    /// Tells whether the branch is there, somewhere else.
    pub(crate) const fn is_elsewhere(&self) -> bool {
        self.found.is_some()
    }

    /// Says where the branch is, naming both commits.
    pub(crate) fn sentence(&self, branch: &str) -> String {
        let proved = short_id(&self.proved);
        match (&self.found, self.kind) {
            (Some(found), "ahead") => format!(
                "{branch} is at {}, ahead of the proved commit {proved}; the later commits are \
                 not proved",
                short_id(found)
            ),
            (Some(found), _) => format!(
                "{branch} is at {}, which was not proved; the proved commit is {proved}",
                short_id(found)
            ),
            (None, _) => format!("{branch} no longer exists; the proved commit is {proved}"),
        }
    }

    /// Returns what takes over the proved commit itself.
    fn next_commands(&self, index: &str, branch: &str) -> Vec<String> {
        let proved = &self.proved;
        let mut commands = vec![format!("kapi diff {index}"), format!("git merge {proved}")];
        if self.found.is_none() {
            commands.push(format!("git branch {branch} {proved}"));
        }
        commands
    }
}

/// Prints what a goal's change deletes, if that is much of the project.
pub(crate) fn deletions(context: &Context, root: &Path, goal: &Goal) {
    let (_, deletes) = looked_at(context, root, goal);
    if let Some(deletes) = deletes {
        context
            .ui
            .line(&format!("  caution  {}", deletes.sentence()));
    }
}

fn looked_at(
    context: &Context,
    root: &Path,
    goal: &Goal,
) -> (Option<MovedBranch>, Option<Deletions>) {
    let Some(commit) = &goal.result else {
        return (None, None);
    };
    let Ok(config) = context.config(Some(root)) else {
        return (None, None);
    };
    let Ok(survey) = RepositorySurvey::of(&context.grants(&config), root) else {
        return (None, None);
    };
    // The work of a session stands in the person's own files: nothing was published to a branch.
    let is_published = !goal.contract.is_session();
    let moved = is_published.then(|| MovedBranch::find(&survey, &goal.contract.branch, commit));
    let moved = moved.flatten();
    // The branch of a task goes once its workflow has ended; its commits stay under its refs.
    let is_of_workflow = goal.contract.working.workflow.is_some();
    let moved = moved.filter(|moved| !(is_of_workflow && moved.found.is_none()));
    let deletes = survey.deletions(&goal.contract.base.commit, commit).ok();
    (moved, deletes.filter(Deletions::is_mass))
}

fn damage(project: &Project<'_>, goal: &Goal) -> Vec<String> {
    let found: Vec<String> = match audit_goal(project, &goal.id) {
        Ok(audit) => audit.faults.iter().map(|fault| chain(fault)).collect(),
        Err(error) => vec![chain(&error)],
    };
    if !found.is_empty() {
        let damage = [(goal.id.to_string(), found.clone())].into();
        // Listings show it from now on; here it is shown in any case.
        drop(project.remember_damage(&damage));
    }
    found
}
