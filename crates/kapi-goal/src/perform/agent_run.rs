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
use kapi_git::workspace::{GitWorkspace, WorkspaceOrigin};
use kapi_machine::watch::{Activity, EffectWatch};
use kapi_run::asking::{AgentRequest, ask_gated, ask_with_tools};
use kapi_run::confine::{SandboxConfig, WORKSPACE_INSIDE, WorksAt};
use kapi_run::gate::GateRules;
use kapi_run::ignored::{IgnoredDirectories, IgnoredPlan, is_way_clear};
use kapi_run::repository_session::{GitViewPlan, RepositorySession, ShownAt};
use kapi_run::repository_settings::settings_hidden;
use kapi_run::run_dir::RunDir;
use kapi_run::shell::Listener;
use kapi_run::{failure, repository_session, state_cover};
use kapi_sandbox::spec::{Mount, MountAccess};
use kapi_sys::process::ProcessEnd;

use crate::perform::real::RealWorld;
use crate::perform::tools::ToolCaller;
use crate::rules::effect::{AgentTask, GoalEffect};
use crate::rules::outcome::GoalOutcome;

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
        effect: &GoalEffect,
        task: &AgentTask,
        watch: &EffectWatch<'_>,
    ) -> Result<GoalOutcome, Failure> {
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
        watch: &EffectWatch<'_>,
    ) -> Result<(AgentRun, ProcessEnd), Failure> {
        let (task, run_id) = (turn.task, turn.run_id);
        let kind = AgentKind::parse(&task.agent).map_err(|error| failure::agent(&error))?;
        let settings = self.grants.settings(&kind);
        let repo = RepositorySession::open(&self.grants, &self.location.project, watch.cancel)?;
        let workspace =
            repo.workspace(&self.location, &task.branch, &task.base, &task.start_commit)?;
        let run_dir = RunDir::open(&self.location.runs, run_id)?;
        let was_cut_off = run_dir.mark_started()?;
        if was_cut_off && workspace.origin == WorkspaceOrigin::Adopted {
            rewind(&repo, &workspace, turn)?;
        }
        let view_dir = self.location.scratch.join("agent-git");
        let start = repository_session::commit_id(&task.start_commit)?;
        let (git_view, git_env) = repo.git_view(&GitViewPlan {
            to: &view_dir,
            shown: &workspace.shown(),
            commit: &start,
            shown_at: ShownAt::of(task.sandbox, &workspace.path),
            stores: &self.location.stores,
        })?;
        let home = self.location.scratch.join(format!("home-{}", kind.name()));
        let installed = self.installed(&repo, &workspace, task, run_id)?;
        for note in &installed.notes {
            (watch.notice)(Activity::Note { text: note.clone() });
        }
        let mut mounts = settings_hidden(&kind, &workspace.path, &run_dir)?;
        mounts.extend(self.submodules(task, &repo, &workspace)?);
        let deps = &installed.deps;
        mounts.extend(installed.ignored.mounts.iter().chain(&deps.mounts).cloned());
        mounts.extend(self.state_cover(task, &repo, &workspace)?);
        mounts.extend(sealed(&repo, &workspace, turn)?);
        let config = SandboxConfig {
            name: run_id,
            level: task.sandbox,
            workspace: &workspace.path,
            workspace_access: MountAccess::ReadWrite,
            project: Some(repo.repository.top_level()),
            works_at: WorksAt::Project,
            home: &home,
            git_view: Some(git_view),
            mounts,
            deadline: Duration::from_millis(task.deadline_ms),
            idle: None,
        };
        let prompt = prompt(task, was_cut_off);
        let asked = AgentRequest {
            kind: &kind,
            settings: &settings,
            prompt: &prompt,
            session: task.session.as_deref(),
            turn: task.turn,
            run_id,
            purpose: LaunchPurpose::Work,
            network: task.network,
            scratch: &self.location.scratch,
            env: deps.env.clone().into_iter().chain(git_env).collect(),
        };
        let listener = Listener {
            watch,
            run_dir: &run_dir,
        };
        match turn.tools {
            Some(caller) => ask_with_tools(&self.grants, config, &asked, caller, listener),
            None => {
                let rules = GateRules::Fixed(&[]);
                ask_gated(&self.grants, config, &asked, rules, listener)
            }
        }
    }
}

/// Returns what keeps an agent from writing files that are not its to change.
fn sealed(
    repo: &RepositorySession,
    workspace: &GitWorkspace,
    turn: &WorkspaceTurn<'_>,
) -> Result<Vec<Mount>, Failure> {
    let start = repository_session::commit_id(&turn.task.start_commit)?;
    let paths = repo
        .repository
        .tracked_files_matching(&start, turn.sealed)
        .map_err(|error| failure::plain(&error))?;
    let seal = Seal::of(&workspace.path, paths)?;
    Ok(seal.mounts(&workspace.path, turn.task.sandbox))
}

/// What an agent finds installed and built, as long as this is held.
struct InstalledView {
    ignored: IgnoredDirectories,
    deps: MountedDependencies,
    notes: Vec<String>,
}

impl RealWorld<'_> {
    /// Returns what hides Kapi's own state in a workspace, where there is an inside.
    fn state_cover(
        &self,
        task: &AgentTask,
        repo: &RepositorySession,
        workspace: &GitWorkspace,
    ) -> Result<Vec<Mount>, Failure> {
        if task.sandbox == SandboxLevel::None {
            return Ok(Vec::new());
        }
        let base = repository_session::commit_id(&task.base)?;
        let tracked = state_cover::tracked(&repo.repository, &base)?;
        let cover = self.location.scratch.join("state");
        state_cover::state_cover(&workspace.path, &tracked, &cover)
    }

    /// Shows the content of submodules, as copies of the goal's own: what an agent changes in them
    /// stays there for its next turns and is no part of its work.
    fn submodules(
        &self,
        task: &AgentTask,
        repo: &RepositorySession,
        workspace: &GitWorkspace,
    ) -> Result<Vec<Mount>, Failure> {
        if task.sandbox == SandboxLevel::None {
            return Ok(Vec::new());
        }
        let base = repository_session::commit_id(&task.base)?;
        let into = self.location.scratch.join("submodules");
        let contents = repo.repository.check_out_submodules(&base, &into);
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
        repo: &RepositorySession,
        workspace: &GitWorkspace,
        task: &AgentTask,
        run_id: &str,
    ) -> Result<InstalledView, Failure> {
        let repository = &repo.repository;
        let dependencies = Dependencies::of_goal(&self.grants, repository, &self.location.scratch)?;
        let ignored = match task.sandbox {
            SandboxLevel::Native => {
                let layers = self.location.scratch.join("ignored");
                let plan = IgnoredPlan {
                    home: &self.grants.home,
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
            layers: &self.location.scratch.join("dependencies"),
            workspace: &workspace.path,
            borrower: Borrower::Agent,
            network: task.network,
            level: task.sandbox,
        };
        let deps = dependencies.lend(&self.grants, &lending)?;
        let mut notes = ignored.notes.clone();
        notes.extend(dependencies.notes);
        notes.extend(deps.notes.iter().cloned());
        Ok(InstalledView {
            ignored,
            deps,
            notes,
        })
    }

    /// Returns who speaks by the tools of a run.
    pub(crate) fn caller<'a>(&'a self, effect: &'a GoalEffect, run: &'a str) -> ToolCaller<'a> {
        ToolCaller {
            tool_service: &self.tool_service,
            goal: &effect.goal,
            run,
            hidden: &self.location.hidden,
        }
    }
}

const CUT_OFF_NOTE: &str = "Note: an earlier attempt at this turn was cut off. The working \
     directory has been put back to what it was before that attempt.";

/// Returns the id of the run that performs an effect.
pub(crate) fn run_id(effect: &GoalEffect) -> String {
    format!("{}-{}", effect.goal, effect.id)
}

pub(crate) fn outcome_of(run: AgentRun, end: ProcessEnd) -> GoalOutcome {
    if end == ProcessEnd::Cancelled {
        GoalOutcome::Cancelled {
            usage: run.usage,
            session: run.session,
        }
    } else {
        GoalOutcome::Agent(run)
    }
}

/// Keeps what a cut-off attempt made, then puts the workspace back to the turn's start.
fn rewind(
    repo: &RepositorySession,
    workspace: &GitWorkspace,
    turn: &WorkspaceTurn<'_>,
) -> Result<(), Failure> {
    let WorkspaceTurn {
        task,
        effect,
        owner,
        ..
    } = turn;
    let known = repository_session::tree_id(&task.start_tree)?;
    let plan = CandidatePlan {
        name: repository_session::ref_part(&format!("rescue-{effect}"))?,
        message: format!("rescue: cut-off attempt {effect} of {owner}\n"),
        author: repository_session::author(),
        at_unix_seconds: 0,
    };
    repo.repository
        .rescue(workspace, &plan, &known)
        .map_err(|error| failure::plain(&error))?;
    let start = repository_session::commit_id(&task.start_commit)?;
    repo.repository
        .reset_workspace(workspace, &start)
        .map_err(|error| failure::plain(&error))
}

/// Returns what the agent is asked; one whose turn was cut off is told so.
fn prompt(task: &AgentTask, was_cut_off: bool) -> String {
    if was_cut_off {
        format!("{CUT_OFF_NOTE}\n\n{}", task.prompt)
    } else {
        task.prompt.clone()
    }
}
