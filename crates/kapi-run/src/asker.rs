//! Asking an agent something, read-only: the files of a commit, a home, one question, one answer.
//!
//! The only place where that is done, for judges, reviewers, side questions, drafts and accounts
//! alike; what differs is said in the question. Its directory is made anew before and removed after,
//! whatever happened. What an answer leads to is not known here.

pub mod patience;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use kapi_agent::agent::AgentKind;
use kapi_agent::launch::LaunchPurpose;
use kapi_core::agent_end::{AgentEnd, AgentRun};
use kapi_core::failure::Failure;
use kapi_core::isolation::{NetworkMode, SandboxLevel};
use kapi_core::usage::Usage;
use kapi_git::checkout::CheckoutPlan;
use kapi_git::id::CommitId;
use kapi_git::owned_dir;
use kapi_machine::watch::EffectWatch;
use kapi_sandbox::spec::{Mount, MountAccess};
use kapi_sys::process::ProcessEnd;

use crate::asker::patience::{AfterFailure, ProviderRetry};
use crate::asking::{AgentRequest, ask_gated, ask_with_tools};
use crate::confine::{SandboxConfig, WorksAt};
use crate::failure;
use crate::gate::GateRules;
use crate::host_grants::HostGrants;
use crate::private_dir::make_private;
use crate::repository_session::RepositorySession;
use crate::repository_settings::settings_hidden;
use crate::run_dir::RunDir;
use crate::run_service::RunService;
use crate::shell::Listener;

/// A question to an agent that changes nothing.
pub struct ReadOnlyQuestion<'a> {
    /// Who is asked.
    pub agent: &'a AgentKind,
    /// What is asked.
    pub prompt: &'a str,
    /// What can be read.
    pub files: QuestionFiles<'a>,
    /// Where the agent's own files are.
    pub home: AgentHome<'a>,
    /// The session that is gone on with; only a home that was kept has one.
    pub session: Option<&'a str>,
    /// What the agent may use.
    pub tools: ToolSet<'a>,
    /// The turn that it is, for agents that answer by turns.
    pub turn: u32,
    /// The run's id.
    pub run_id: &'a str,
    /// Where prompt, transcript and logs are kept.
    pub run_dir: &'a RunDir,
    /// A directory of this question alone.
    pub dir: &'a Path,
    /// The isolation.
    pub level: SandboxLevel,
    /// What it can reach.
    pub network: NetworkMode,
    /// How long it may take.
    pub deadline: Duration,
    /// Variables beside those of the launch.
    pub env: Vec<(OsString, OsString)>,
    /// Further mounts.
    pub mounts: Vec<Mount>,
}

/// What an agent can read in its working directory.
#[derive(Clone, Copy)]
pub enum QuestionFiles<'a> {
    /// The files of a commit.
    Commit {
        /// The repository.
        repo: &'a RepositorySession,
        /// The commit.
        commit: &'a CommitId,
    },
    /// None.
    Nothing,
}

/// Where an agent's own files are.
#[derive(Clone, Copy)]
pub enum AgentHome<'a> {
    /// Made anew for the question.
    Anew,
    /// Kept from one run to the next, with the agent's sessions.
    Kept(&'a Path),
}

/// What an agent may use.
#[derive(Clone, Copy)]
pub enum ToolSet<'a> {
    /// Tools that read, and a person is asked before what these rules list.
    Reading(GateRules<'a>),
    /// The tools that the run's service offers beside those that read.
    Service(&'a dyn RunService),
}

/// Asks, and returns how the run went and how its process ended.
pub fn ask(
    grants: &HostGrants,
    question: &ReadOnlyQuestion<'_>,
    watch: &EffectWatch<'_>,
) -> Result<(AgentRun, ProcessEnd), Failure> {
    clear(question.dir)?;
    let asked = ask_in(grants, question, watch);
    let cleared = clear(question.dir);
    let answer = asked?;
    cleared?;
    Ok(answer)
}

/// Asks, and asks again while a provider fails in a way that may pass. For callers that have no turn
/// to charge and no log in which a wait could stand.
///
/// What failed tries used is reported by notices; what is returned is the use of the last.
pub fn ask_patiently(
    grants: &HostGrants,
    question: &ReadOnlyQuestion<'_>,
    watch: &EffectWatch<'_>,
) -> Result<(AgentRun, ProcessEnd), Failure> {
    patiently(watch, || ask(grants, question, watch))
}

/// Asks again until a provider lets it be answered, or stays away for too long.
pub fn patiently(
    watch: &EffectWatch<'_>,
    mut ask: impl FnMut() -> Result<(AgentRun, ProcessEnd), Failure>,
) -> Result<(AgentRun, ProcessEnd), Failure> {
    let mut patience = ProviderRetry::default();
    loop {
        let (run, end) = ask()?;
        let AgentEnd::Provider(trouble) = &run.end else {
            return Ok((run, end));
        };
        if end == ProcessEnd::Cancelled {
            return Ok((run, end));
        }
        match patience.wait(trouble, run.usage, watch) {
            AfterFailure::AskAgain => {}
            AfterFailure::GiveUp => return Ok((run, end)),
            AfterFailure::Cancelled => {
                let usage = Usage::default();
                return Ok((AgentRun { usage, ..run }, ProcessEnd::Cancelled));
            }
        }
    }
}

fn ask_in(
    grants: &HostGrants,
    question: &ReadOnlyQuestion<'_>,
    watch: &EffectWatch<'_>,
) -> Result<(AgentRun, ProcessEnd), Failure> {
    make_private(question.dir)?;
    let workspace = files(question)?;
    let home = match question.home {
        AgentHome::Anew => question.dir.join("home"),
        AgentHome::Kept(home) => home.to_path_buf(),
    };
    let mut mounts = settings_hidden(question.agent, &workspace, question.run_dir)?;
    mounts.extend(question.mounts.iter().cloned());
    let config = SandboxConfig {
        name: question.run_id,
        level: question.level,
        workspace: &workspace,
        workspace_access: MountAccess::ReadOnly,
        project: match question.files {
            QuestionFiles::Commit { repo, .. } => Some(repo.repository.top_level()),
            QuestionFiles::Nothing => None,
        },
        works_at: WorksAt::Project,
        home: &home,
        git_view: None,
        mounts,
        deadline: question.deadline,
        idle: None,
    };
    let settings = grants.settings(question.agent);
    let asked = AgentRequest {
        kind: question.agent,
        settings: &settings,
        prompt: question.prompt,
        session: question.session,
        turn: question.turn,
        run_id: question.run_id,
        // Tools that only read, and no session that could be mixed up with the work's.
        purpose: match (question.tools, question.home) {
            (ToolSet::Reading(_), AgentHome::Anew) => LaunchPurpose::Judge,
            (ToolSet::Reading(_), AgentHome::Kept(_)) => LaunchPurpose::Converse,
            (ToolSet::Service(_), _) => LaunchPurpose::Work,
        },
        network: question.network,
        scratch: question.dir,
        env: question.env.clone(),
    };
    let listener = Listener {
        watch,
        run_dir: question.run_dir,
    };
    match question.tools {
        ToolSet::Reading(rules) => ask_gated(grants, config, &asked, rules, listener),
        ToolSet::Service(service) => ask_with_tools(grants, config, &asked, service, listener),
    }
}

/// Makes the files that are read.
fn files(question: &ReadOnlyQuestion<'_>) -> Result<PathBuf, Failure> {
    let to = question.dir.join("files");
    match question.files {
        QuestionFiles::Nothing => {
            make_private(&to)?;
            Ok(to)
        }
        QuestionFiles::Commit { repo, commit } => {
            let plan = CheckoutPlan {
                commit,
                base: commit,
                protect: &[],
                to: &to,
            };
            repo.checkout(&plan)
        }
    }
}

fn clear(dir: &Path) -> Result<(), Failure> {
    owned_dir::wipe(dir).map_err(|error| failure::plain(&error))
}
