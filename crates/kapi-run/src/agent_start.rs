//! Whether an agent really starts: its program is run in the sandbox until it has said its version,
//! and its provider is asked for what uses no tokens.
//!
//! The same sandbox as for work, around an empty workspace. What comes of it is the caller's affair.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use kapi_agent::agent::AgentKind;
use kapi_agent::launch::upstream::{AgentUpstream, UpstreamDialect};
use kapi_agent::manifest::Manifest;
use kapi_core::failure::Failure;
use kapi_core::isolation::{NetworkMode, SandboxLevel};
use kapi_gateway::ask::error::AskError;
use kapi_gateway::ask::probe::{self, ServerGreeting};
use kapi_gateway::ask::server::{ModelApi, ModelEndpoint};
use kapi_gateway::model::route::BaseUrl;
use kapi_gateway::model::secret::ProviderKey;
use kapi_machine::watch::{Activity, EffectWatch, unlimited};
use kapi_sandbox::spec::{BenchmarkSetup, MountAccess};
use kapi_sys::cancel::Cancel;
use kapi_sys::process::{FinishedProcess, ProcessEnd};

use crate::asking::launch_without_question;
use crate::confine::{SandboxConfig, SandboxedProgram, WorksAt};
use crate::host_grants::HostGrants;
use crate::network::NetworkAccess;
use crate::network::serve::NetworkServices;
use crate::run_dir::RunDir;
use crate::shown_program::find_program;
use crate::{failure, home};

/// The longest a program may take to print its version.
const START_DEADLINE: Duration = Duration::from_secs(60);
/// The longest a provider may take to answer.
const GREETING_DEADLINE: Duration = Duration::from_secs(15);
/// The same while a person waits for a contract.
const CHECK_DEADLINE: Duration = Duration::from_secs(5);
/// Bytes kept of each output stream.
const TAIL_BYTES_MAX: usize = 16 << 10;

/// An agent that started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentStart {
    /// Its program on the host.
    pub program: PathBuf,
    /// What it says of its version.
    pub version: String,
}

/// Where an agent is started.
#[derive(Debug, Clone, Copy)]
pub struct StartSite<'a> {
    /// The isolation.
    pub level: SandboxLevel,
    /// A directory for this alone, which the caller removes.
    pub scratch: &'a Path,
    /// Raised when nobody waits for it any more.
    pub cancel: &'a Cancel,
}

/// Starts an agent in the sandbox, until it has said its version.
///
/// # Errors
/// When it is not installed, or does not start; with why and what to do.
pub fn start(
    grants: &HostGrants,
    agent: &Manifest,
    site: StartSite<'_>,
) -> Result<AgentStart, Failure> {
    let kind = AgentKind::parse(agent.name).map_err(|error| failure::agent(&error))?;
    let settings = grants.settings(&kind);
    let command = settings.command.as_deref().unwrap_or(agent.binary);
    let program = find_program(grants, &kind, command)?;
    let finished = run(grants, agent, &program, site).map_err(|failed| Failure {
        message: format!(
            "start {} in the sandbox: {}",
            program.display(),
            failed.message
        ),
        hint: failed.hint.or_else(|| Some(hint(agent, &program))),
    })?;
    let version = |text: &str| {
        text.lines()
            .find(|line| !line.trim().is_empty())
            .map(str::to_owned)
    };
    let said = version(&finished.stdout.text()).or_else(|| version(&finished.stderr.text()));
    match (finished.end, said) {
        (ProcessEnd::Exited(0), Some(said)) => Ok(AgentStart {
            program,
            version: said.trim().to_owned(),
        }),
        (end, _) => Err(Failure {
            message: format!(
                "start {} in the sandbox: {}",
                program.display(),
                reason(end, &finished)
            ),
            hint: Some(hint(agent, &program)),
        }),
    }
}

fn hint(agent: &Manifest, program: &Path) -> String {
    let name = agent.name;
    format!(
        "it may need files that the sandbox does not show: try `{} --version` yourself; if that \
         works, add what it needs to `read_only` under [sandbox], set `command` under \
         [agents.{name}] to the program itself, or install it with `{}`.",
        program.display(),
        agent.install
    )
}

/// Says how a program ended that should have said its version.
fn reason(end: ProcessEnd, finished: &FinishedProcess) -> String {
    let ended = match end {
        ProcessEnd::Exited(0) => "it says nothing about its version".to_owned(),
        ProcessEnd::Exited(code) => format!("exit {code}"),
        ProcessEnd::Signaled(signal) => format!("signal {signal}"),
        ProcessEnd::DeadlinePassed | ProcessEnd::IdlePassed => {
            format!("no answer within {} s", START_DEADLINE.as_secs())
        }
        ProcessEnd::Cancelled => "interrupted".to_owned(),
    };
    let said = finished.stderr.text();
    match said.lines().rev().find(|line| !line.trim().is_empty()) {
        Some(line) => format!("{ended}: {}", line.trim()),
        None => ended,
    }
}

fn run(
    grants: &HostGrants,
    agent: &Manifest,
    program: &Path,
    site: StartSite<'_>,
) -> Result<FinishedProcess, Failure> {
    let workspace = home::make_anew(&site.scratch.join("workspace"))?;
    let own_home = home::make_anew(&site.scratch.join("home"))?;
    let run_dir = RunDir::open(site.scratch, "run")?;
    let name = format!("start-{}-{}", agent.name, std::process::id());
    let config = SandboxConfig {
        name: &name,
        level: site.level,
        workspace: &workspace,
        workspace_access: MountAccess::ReadOnly,
        project: None,
        works_at: WorksAt::Workspace,
        home: &own_home,
        git_view: None,
        mounts: Vec::new(),
        deadline: START_DEADLINE,
        idle: None,
    };
    let watch = EffectWatch {
        cancel: site.cancel,
        notice: &|_: Activity| {},
        room: &unlimited,
    };
    let access = NetworkAccess::new(site.level, NetworkMode::None, &grants.grant)?;
    let served = NetworkServices::new(&access, &watch, &run_dir)?;
    let payload = SandboxedProgram {
        program: program.to_path_buf(),
        args: agent.version_args.iter().map(Into::into).collect(),
        env: BTreeMap::new(),
        stdin: Vec::new(),
        below: PathBuf::new(),
        path_first: Vec::new(),
        tail_bytes_max: TAIL_BYTES_MAX,
        benchmark: BenchmarkSetup::default(),
        stop_grace: None,
    };
    let ran = config.run(grants, payload, &served, &mut |_| {})?;
    Ok(ran.finished)
}

/// Checks that an agent has what it proves itself with to its provider.
///
/// # Errors
/// With what is missing and what to do.
pub fn check_credentials(grants: &HostGrants, agent: &Manifest) -> Result<(), Failure> {
    let kind = AgentKind::parse(agent.name).map_err(|error| failure::agent(&error))?;
    launch_without_question(grants, &kind).map(drop)
}

/// What the provider of an agent says before anything is asked of a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProviderGreeting {
    /// The server accepts the key, or wants none.
    Accepted {
        /// Its address.
        server: String,
    },
    /// The server is there, and has no list of models to ask for.
    NoList {
        /// Its address.
        server: String,
    },
    /// The agent asks its provider itself, with a login: only an answer shows whether that works.
    Login,
}

/// Asks an agent's provider for its list of models: the gateway's way, from outside of the sandbox,
/// and nothing is spent.
///
/// # Errors
/// When the agent has neither a key nor a login, or the provider refuses.
pub fn greet(
    grants: &HostGrants,
    agent: &Manifest,
    cancel: &Cancel,
) -> Result<ProviderGreeting, Failure> {
    let greeted = greeted(grants, agent, GREETING_DEADLINE, cancel)?;
    greeted.map_err(|error| failure_of(&error))
}

/// Checks that an agent's provider takes its key, before anything depends on it. Returns what to
/// know where nobody answers for now: a run waits for its provider.
///
/// # Errors
/// When the agent has neither a key nor a login, or the provider refuses.
pub fn check_provider(
    grants: &HostGrants,
    agent: &Manifest,
    cancel: &Cancel,
) -> Result<Option<String>, Failure> {
    match greeted(grants, agent, CHECK_DEADLINE, cancel)? {
        Ok(_) => Ok(None),
        Err(error @ (AskError::Unauthorised { .. } | AskError::OutOfCredit { .. })) => {
            Err(failure_of(&error))
        }
        Err(error) => Ok(Some(format!(
            "{}'s provider does not answer at the moment (failed to {}).",
            agent.name,
            failure::chain(&error)
        ))),
    }
}

fn failure_of(error: &AskError) -> Failure {
    Failure {
        message: failure::chain(error),
        hint: error.hint(),
    }
}

fn greeted(
    grants: &HostGrants,
    agent: &Manifest,
    deadline: Duration,
    cancel: &Cancel,
) -> Result<Result<ProviderGreeting, AskError>, Failure> {
    let kind = AgentKind::parse(agent.name).map_err(|error| failure::agent(&error))?;
    let launch = launch_without_question(grants, &kind)?;
    let Some(upstream) = launch.upstream else {
        return Ok(Ok(ProviderGreeting::Login));
    };
    let server = endpoint(grants, &upstream)?;
    let address = upstream.base_url;
    let said = probe::greet(&server, deadline, cancel);
    Ok(said.map(|said| match said {
        ServerGreeting::Accepted => ProviderGreeting::Accepted { server: address },
        ServerGreeting::NoList => ProviderGreeting::NoList { server: address },
    }))
}

/// Returns the server of an agent in the words of whoever asks it directly.
fn endpoint(grants: &HostGrants, upstream: &AgentUpstream) -> Result<ModelEndpoint, Failure> {
    let key = upstream.key.as_deref().map(ProviderKey::parse).transpose();
    Ok(ModelEndpoint {
        api: match upstream.dialect {
            UpstreamDialect::Anthropic => ModelApi::Anthropic,
            UpstreamDialect::Responses | UpstreamDialect::Chat => ModelApi::Chat,
            UpstreamDialect::Gemini => ModelApi::Gemini,
        },
        base_url: BaseUrl::parse(&upstream.base_url).map_err(|error| failure::plain(&error))?,
        key: key.map_err(|error| failure::plain(&error))?,
        extra_authorities: None,
        host_proxy: grants.grant.host_proxy.clone(),
    })
}
