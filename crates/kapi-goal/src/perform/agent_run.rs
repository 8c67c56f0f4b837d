//! One agent turn: the workspace it starts from, its home, its view of git.
//!
//! An attempt that was cut off is done again from the turn's start; what it had made is kept
//! under a ref of its own first.

use std::path::Path;
use std::time::Duration;

use kapi_agent::agent::AgentKind;
use kapi_agent::launch::LaunchPurpose;
use kapi_check::perform::dependencies::Dependencies;
use kapi_check::perform::dependencies::lend::{Borrower, Lending, MountedDependencies};
use kapi_check::perform::prover::seal::Seal;
use kapi_core::agent_end::AgentRun;
use kapi_core::failure::Failure;
use kapi_core::id::{EffectId, GoalId};
use kapi_core::isolation::SandboxLevel;
use kapi_git::candidate::CandidatePlan;
use kapi_git::workspace::{Origin, Workspace};
use kapi_machine::watch::{Activity, Watch};
use kapi_run::asking::{AgentRequest, ask_gated, ask_with_tools};
use kapi_run::confine::{SandboxConfig, WORKSPACE_INSIDE, WorksAt};
use kapi_run::gate::GateRules;
use kapi_run::ignored::{IgnoredDirectories, IgnoredPlan, is_way_clear};
use kapi_run::repository_settings::settings_hidden;
use kapi_run::run_dir::RunDir;
use kapi_run::shell::Listener;
use kapi_run::workshop::{GitViewPlan, ShownAt, Workshop};
use kapi_run::{failure, state_cover, workshop};
use kapi_sandbox::spec::{Mount, MountAccess};
use kapi_sys::process::ProcessEnd;

use crate::perform::real::RealWorld;
use crate::perform::tools::ToolCaller;
use crate::rules::effect::{AgentTask, Effect};
use crate::rules::outcome::Outcome;

/// One turn in a workspace: a goal's, or a workflow's own.
pub struct WorkspaceTurn<'a> {
    /// What is asked of whom, and where.
    pub task: &'a AgentTask,
    /// The effect, as a part of the names of refs.
    pub effect: &'a EffectId,
    /// Whose it is.
    pub owner: &'a GoalId,
    /// The run's name.
    pub run_id: &'a str,
    /// Who answers its tools; nobody where it has none.
    pub tools: Option<&'a ToolCaller<'a>>,
    /// Patterns of files that it cannot write.
    pub sealed: &'a [String],
}

impl RealWorld<'_> {
    pub(crate) fn run_agent(
        &self,
        effect: &Effect,
        task: &AgentTask,
        watch: &Watch<'_>,
    ) -> Result<Outcome, Failure> {
        let run_id = run_id(effect);
        let turn = WorkspaceTurn {
            task,
            effect: &effect.id,
            owner: &effect.goal,
            run_id: &run_id,
            tools: Some(&self.caller(effect, &run_id)),
            sealed: &[],
        };
        self.run_in_workspace(&turn, watch)
            .map(|(run, end)| outcome_of(run, end))
    }

    /// Runs an agent in a workspace to the end of its turn.
    pub fn run_in_workspace(
        &self,
        turn: &WorkspaceTurn<'_>,
        watch: &Watch<'_>,
    ) -> Result<(AgentRun, ProcessEnd), Failure> {
        let (task, run_id) = (turn.task, turn.run_id);
        let kind = AgentKind::parse(&task.agent).map_err(|error| failure::agent(&error))?;
        let settings = self.book.settings(&kind);
        let workshop = Workshop::open(&self.book, &self.place.project, watch.cancel)?;
        let workspace =
            workshop.workspace(&self.place, &task.branch, &task.base, &task.start_commit)?;
        let run_dir = RunDir::open(&self.place.runs, run_id)?;
        let was_cut_off = run_dir.mark_started()?;
        if was_cut_off && workspace.origin == Origin::Adopted {
            rewind(&workshop, &workspace, turn)?;
        }
        let view_dir = self.place.scratch.join("agent-git");
        let start = workshop::commit_id(&task.start_commit)?;
        let (git_view, git_env) = workshop.git_view(&GitViewPlan {
            to: &view_dir,
            shown: &workspace.shown(),
            commit: &start,
            shown_at: ShownAt::of(task.sandbox, &workspace.path),
            stores: &self.place.stores,
        })?;
        let home = self.place.scratch.join(format!("home-{}", kind.name()));
        let installed = self.installed(&workshop, &workspace, task, run_id)?;
        for note in &installed.notes {
            (watch.notice)(Activity::Note { text: note.clone() });
        }
        let mut mounts = settings_hidden(&kind, &workspace.path, &run_dir)?;
        mounts.extend(self.submodules(task, &workshop, &workspace)?);
        let lent = &installed.lent;
        mounts.extend(installed.ignored.mounts.iter().chain(&lent.mounts).cloned());
        mounts.extend(self.state_cover(task, &workshop, &workspace)?);
        mounts.extend(sealed(&workshop, &workspace, turn)?);
        let cell = SandboxConfig {
            name: run_id,
            level: task.sandbox,
            workspace: &workspace.path,
            workspace_access: MountAccess::ReadWrite,
            project: Some(workshop.repository.top_level()),
            works_at: WorksAt::Project,
            home: &home,
            git_view: Some(git_view),
            mounts,
            deadline: Duration::from_millis(task.deadline_ms),
            idle: None,
        };
        let prompt = if was_cut_off {
            format!("{CUT_OFF_NOTE}\n\n{}", task.prompt)
        } else {
            task.prompt.clone()
        };
        let asked = AgentRequest {
            kind: &kind,
            settings: &settings,
            prompt: &prompt,
            session: task.session.as_deref(),
            turn: task.turn,
            run_id,
            purpose: LaunchPurpose::Work,
            network: task.network,
            scratch: &self.place.scratch,
            env: lent.env.clone().into_iter().chain(git_env).collect(),
        };
        let listener = Listener {
            watch,
            run_dir: &run_dir,
        };
        match turn.tools {
            Some(caller) => ask_with_tools(&self.book, cell, &asked, caller, listener),
            None => ask_gated(&self.book, cell, &asked, GateRules::Fixed(&[]), listener),
        }
    }
}

/// Returns what keeps an agent from writing files that are not its to change.
fn sealed(
    workshop: &Workshop,
    workspace: &Workspace,
    turn: &WorkspaceTurn<'_>,
) -> Result<Vec<Mount>, Failure> {
    let start = workshop::commit_id(&turn.task.start_commit)?;
    let paths = workshop
        .repository
        .tracked_files_matching(&start, turn.sealed)
        .map_err(|error| failure::plain(&error))?;
    let seal = Seal::of(&workspace.path, paths)?;
    Ok(seal.mounts(&workspace.path, turn.task.sandbox))
}

/// What an agent finds installed and built, as long as this is held.
struct InstalledView {
    ignored: IgnoredDirectories,
    lent: MountedDependencies,
    notes: Vec<String>,
}

impl RealWorld<'_> {
    /// Returns what hides Kapi's own state in a workspace, where there is an inside.
    fn state_cover(
        &self,
        task: &AgentTask,
        workshop: &Workshop,
        workspace: &Workspace,
    ) -> Result<Vec<Mount>, Failure> {
        if task.sandbox == SandboxLevel::None {
            return Ok(Vec::new());
        }
        let base = workshop::commit_id(&task.base)?;
        let tracked = state_cover::tracked(&workshop.repository, &base)?;
        let cover = self.place.scratch.join("state");
        state_cover::state_cover(&workspace.path, &tracked, &cover)
    }

    /// Shows the content of submodules, as copies of the goal's own: what an agent changes in them
    /// stays there for its next turns and is no part of its work.
    fn submodules(
        &self,
        task: &AgentTask,
        workshop: &Workshop,
        workspace: &Workspace,
    ) -> Result<Vec<Mount>, Failure> {
        if task.sandbox == SandboxLevel::None {
            return Ok(Vec::new());
        }
        let base = workshop::commit_id(&task.base)?;
        let into = self.place.scratch.join("submodules");
        let contents = workshop.repository.check_out_submodules(&base, &into);
        let contents = contents
            .map_err(|error| failure::plain(&error))?
            .into_iter();
        // The agent may have put something else there.
        let is_there =
            |path: &Path| is_way_clear(&workspace.path, path) && workspace.path.join(path).is_dir();
        let shown = contents.filter(|content| is_there(&content.path));
        let mounts = shown.map(|content| Mount {
            host: content.at,
            inside: Path::new(WORKSPACE_INSIDE).join(content.path),
            access: MountAccess::ReadWrite,
        });
        Ok(mounts.collect())
    }

    fn installed(
        &self,
        workshop: &Workshop,
        workspace: &Workspace,
        task: &AgentTask,
        run_id: &str,
    ) -> Result<InstalledView, Failure> {
        let repository = &workshop.repository;
        let dependencies = Dependencies::of_goal(&self.book, repository, &self.place.scratch)?;
        let ignored = match task.sandbox {
            SandboxLevel::Native => {
                let layers = self.place.scratch.join("ignored");
                let plan = IgnoredPlan {
                    home: &self.book.home,
                    workspace: &workspace.path,
                    layers: &layers,
                    except: &dependencies.shown(),
                    owner: run_id,
                };
                IgnoredDirectories::open(repository, &plan)?
            }
            SandboxLevel::Podman | SandboxLevel::None => IgnoredDirectories::default(),
        };
        let lending = Lending {
            layers: &self.place.scratch.join("dependencies"),
            workspace: &workspace.path,
            borrower: Borrower::Agent,
            network: task.network,
            level: task.sandbox,
        };
        let lent = dependencies.lend(&self.book, &lending)?;
        let mut notes = ignored.notes.clone();
        notes.extend(dependencies.notes);
        notes.extend(lent.notes.iter().cloned());
        Ok(InstalledView {
            ignored,
            lent,
            notes,
        })
    }

    /// Returns who speaks by the tools of a run.
    pub(crate) fn caller<'a>(&'a self, effect: &'a Effect, run: &'a str) -> ToolCaller<'a> {
        ToolCaller {
            desk: &self.desk,
            goal: &effect.goal,
            run,
            hidden: &self.place.hidden,
        }
    }
}

const CUT_OFF_NOTE: &str = "Note: an earlier attempt at this turn was cut off. The working \
     directory has been put back to what it was before that attempt.";

/// Returns the id of the run that performs an effect.
pub(crate) fn run_id(effect: &Effect) -> String {
    format!("{}-{}", effect.goal, effect.id)
}

pub(crate) fn outcome_of(run: AgentRun, end: ProcessEnd) -> Outcome {
    if end == ProcessEnd::Cancelled {
        Outcome::Cancelled {
            usage: run.usage,
            session: run.session,
        }
    } else {
        Outcome::Agent(run)
    }
}

/// Keeps what a cut-off attempt made, then puts the workspace back to the turn's start.
fn rewind(
    workshop: &Workshop,
    workspace: &Workspace,
    turn: &WorkspaceTurn<'_>,
) -> Result<(), Failure> {
    let WorkspaceTurn {
        task,
        effect,
        owner,
        ..
    } = turn;
    let known = workshop::tree_id(&task.start_tree)?;
    let plan = CandidatePlan {
        name: workshop::ref_part(&format!("rescue-{effect}"))?,
        message: format!("rescue: cut-off attempt {effect} of {owner}\n"),
        author: workshop::author(),
        at_unix_seconds: 0,
    };
    workshop
        .repository
        .rescue(workspace, &plan, &known)
        .map_err(|error| failure::plain(&error))?;
    let start = workshop::commit_id(&task.start_commit)?;
    workshop
        .repository
        .reset_workspace(workspace, &start)
        .map_err(|error| failure::plain(&error))
}
