//! Asking an agent: launch it in a sandbox, read its stream, and report what came of it.
//!
//! The same for the executor and for a judge; only what they may touch differs.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use kapi_agent::agent::AgentKind;
use kapi_agent::launch::tools::Tools;
use kapi_agent::launch::upstream::GatewayAddress;
use kapi_agent::launch::{self, AgentLaunch, AgentTurn, HostEnvironment, LaunchPurpose};
use kapi_agent::manifest::manifest;
use kapi_agent::settings::AgentSettings;
use kapi_agent::stream::{StreamEvent, StreamParser, is_session_lost};
use kapi_core::agent_end::{AgentEnd, AgentRun};
use kapi_core::failure::Failure;
use kapi_core::isolation::{NetworkMode, SandboxLevel};
use kapi_core::text::limit_met;
use kapi_machine::watch::{Activity, EffectWatch};
use kapi_sandbox::expose;
use kapi_sandbox::outcome::SandboxRun;
use kapi_sandbox::spec::BenchmarkSetup;
use kapi_sys::process::{OutputLine, ProcessEnd};

use crate::call_rules::call_rules;
use crate::confine::{self, AGENT_TAIL_BYTES_MAX, KAPI_INSIDE, SandboxConfig, SandboxedProgram};
use crate::gate::{GateRules, GateSite, PermissionGate};
use crate::host_grants::HostGrants;
use crate::network::NetworkAccess;
use crate::network::serve::NetworkServices;
use crate::run_dir::{AgentTranscript, RunDir};
use crate::run_service::RunService;
use crate::shell::Listener;
use crate::shown_program::{ShownProgram, find_program};
use crate::tool_client::RUN_ID_VARIABLE;
use crate::tool_endpoint::ToolEndpoint;
use crate::{failure, home};

/// An agent, ready to be asked something.
pub struct AgentRequest<'a> {
    /// Which agent.
    pub kind: &'a AgentKind,
    /// How it is started.
    pub settings: &'a AgentSettings,
    /// What it is asked.
    pub prompt: &'a str,
    /// The session that goes on; `None` begins one.
    pub session: Option<&'a str>,
    /// The turn, from 1.
    pub turn: u32,
    /// The run that it is recorded as.
    pub run_id: &'a str,
    /// What it is asked for.
    pub purpose: LaunchPurpose,
    /// What it may reach.
    pub network: NetworkMode,
    /// A directory for what is made for this run alone.
    pub scratch: &'a Path,
    /// Variables beside those of the launch.
    pub env: Vec<(OsString, OsString)>,
}

/// Asks an agent something in a sandbox and returns what came of it; it asks before what these rules
/// list.
///
/// A session that is gone is not an end: nothing was done in it, so the same is asked in a new one.
pub fn ask_gated(
    grants: &HostGrants,
    config: SandboxConfig<'_>,
    asked: &AgentRequest<'_>,
    rules: GateRules<'_>,
    listener: Listener<'_>,
) -> Result<(AgentRun, ProcessEnd), Failure> {
    let gate = gate(grants, &config, asked, rules)?;
    let behind = RunEndpoints {
        endpoint: None,
        gate: gate.as_ref(),
    };
    ask_at(grants, config, asked, behind, listener)
}

fn gate<'a>(
    grants: &HostGrants,
    config: &SandboxConfig<'_>,
    asked: &AgentRequest<'_>,
    rules: GateRules<'a>,
) -> Result<Option<PermissionGate<'a>>, Failure> {
    let site = GateSite {
        level: config.level,
        workspace: config.workspace,
        directory: &asked.scratch.join("gate"),
        self_exe: &grants.self_exe,
    };
    PermissionGate::open(rules, asked.kind, &site)
}

/// Does the same with an agent that is handed the tools of its goal.
pub fn ask_with_tools(
    grants: &HostGrants,
    mut config: SandboxConfig<'_>,
    asked: &AgentRequest<'_>,
    service: &dyn RunService,
    listener: Listener<'_>,
) -> Result<(AgentRun, ProcessEnd), Failure> {
    let directory = asked.scratch.join("tools");
    let endpoint = ToolEndpoint::open(service, config.level, &directory, &grants.self_exe)?;
    config.mounts.extend(endpoint.mounts(&grants.self_exe));
    let gate = gate(grants, &config, asked, GateRules::Service(service))?;
    let behind = RunEndpoints {
        endpoint: Some(&endpoint),
        gate: gate.as_ref(),
    };
    ask_at(grants, config, asked, behind, listener)
}

fn ask_at(
    grants: &HostGrants,
    mut config: SandboxConfig<'_>,
    asked: &AgentRequest<'_>,
    behind: RunEndpoints<'_>,
    listener: Listener<'_>,
) -> Result<(AgentRun, ProcessEnd), Failure> {
    let Listener { watch, run_dir } = listener;
    run_dir.keep("prompt.md", asked.prompt.as_bytes())?;
    let prompt_file = prompt_file_seen(&config, run_dir);
    config
        .mounts
        .push(confine::read_only(&run_dir.file("prompt.md"), &prompt_file));
    let mut shown = ShownProgram::of(asked.kind, grants, config.level)?;
    config.mounts.append(&mut shown.mounts);
    if let Some(gate) = behind.gate {
        let mounts = gate.mounts(asked.kind, &config, grants);
        config.mounts.extend(mounts);
    }
    let mut transcript = run_dir.transcript()?;
    let mut question = AgentExchange {
        grants,
        config,
        asked,
        behind,
        shown,
        prompt_file,
        watch,
        run_dir,
    };
    let answer = question.put(asked.session, &mut transcript)?;
    let answer = if asked.session.is_some() && is_session_lost(&answer.run, &answer.stderr) {
        let text = "the agent's session is gone; starting a new one".to_owned();
        (watch.notice)(Activity::Note { text });
        question.put(None, &mut transcript)?
    } else {
        answer
    };
    run_dir.keep("stderr.txt", answer.stderr.as_bytes())?;
    Ok((answer.run, answer.end))
}

/// What answers a run on this side, besides its network access.
#[derive(Clone, Copy, Default)]
struct RunEndpoints<'a> {
    endpoint: Option<&'a ToolEndpoint<'a>>,
    gate: Option<&'a PermissionGate<'a>>,
}

struct AgentExchange<'a> {
    grants: &'a HostGrants,
    config: SandboxConfig<'a>,
    asked: &'a AgentRequest<'a>,
    behind: RunEndpoints<'a>,
    shown: ShownProgram,
    prompt_file: PathBuf,
    watch: &'a EffectWatch<'a>,
    run_dir: &'a RunDir,
}

struct AgentAnswer {
    run: AgentRun,
    end: ProcessEnd,
    stderr: String,
}

/// Puts what the gateway saw of the provider in the place of an end that says less.
fn blame_provider(run: &mut AgentRun, served: &NetworkServices<'_>) {
    let has_failed = matches!(run.end, AgentEnd::Provider(_) | AgentEnd::Crashed { .. });
    if has_failed && let Some(trouble) = served.trouble() {
        run.end = AgentEnd::Provider(trouble);
    }
}

impl AgentExchange<'_> {
    fn put(
        &mut self,
        session: Option<&str>,
        transcript: &mut AgentTranscript,
    ) -> Result<AgentAnswer, Failure> {
        let Self {
            grants,
            config,
            asked,
            behind: RunEndpoints { endpoint, gate },
            shown,
            prompt_file,
            watch,
            run_dir,
        } = self;
        let program = endpoint.map(ToolEndpoint::program).unwrap_or_default();
        let leading = endpoint.map(ToolEndpoint::leading_here).unwrap_or_default();
        let tools = endpoint.map(|_| Tools {
            program: &program,
            env: &leading,
        });
        let mut access = NetworkAccess::new(config.level, asked.network, &grants.grant)?;
        let turn = AgentTurn {
            prompt: asked.prompt,
            prompt_file,
            session,
            turn: asked.turn,
            run_id: asked.run_id,
            purpose: asked.purpose,
            home: &config.home_seen(grants),
            workspace: &config.workspace_seen(grants),
            gateway: access.gateway(),
            tools,
            gate: gate.map(PermissionGate::seen_inside),
        };
        let host = HostEnvironment { env: &grants.env };
        let launch = launch::launch(asked.kind, asked.settings, &host, &turn)
            .map_err(|error| failure::agent(&error))?;
        for note in &launch.notes {
            (watch.notice)(Activity::Note { text: note.clone() });
        }
        home::furnish(config.home, &launch, grants)?;
        config.idle = launch.idle_ms.map(Duration::from_millis);
        let payload = payload(grants, asked, &launch, &leading, shown)?;
        access.allow(&launch.hosts)?;
        access.upstream.clone_from(&launch.upstream);
        access.insert_cassette(&grants.grant, asked.run_id);
        let rules = call_rules(asked.kind, asked.settings, asked.network);
        let mut served =
            NetworkServices::new(&access, watch, run_dir)?.with_models(&grants.prices, rules);
        (served.endpoint, served.gate) = (*endpoint, *gate);
        let mut parser = StreamParser::new(asked.kind, session);
        let ran = config.run(grants, payload, &served, &mut |line| {
            let events = match line {
                OutputLine::Stdout(bytes) => parser.stdout_line(bytes),
                OutputLine::Stderr(bytes) => parser.stderr_line(bytes),
            };
            for event in events {
                take(counted(event, &served), transcript, watch);
            }
        })?;
        let finished = &ran.finished;
        let stderr = finished.stderr.text();
        let mut run = parser.finish(finished.end, &stderr, &finished.stdout.text());
        run.usage = served.beside_gateway(run.usage);
        blame_provider(&mut run, &served);
        // Tools that were refused are no work.
        run.score = gate.map_or(run.score, |gate| gate.without_refused(run.score, run.tools));
        note_limits(&mut run, &ran, watch);
        Ok(AgentAnswer {
            run,
            end: finished.end,
            stderr,
        })
    }
}

/// Records how a run was kept apart and which limits it met.
fn note_limits(run: &mut AgentRun, ran: &SandboxRun, watch: &EffectWatch<'_>) {
    run.isolation = Some(ran.grade.to_string()).filter(|text| !text.is_empty());
    for met in &ran.met {
        let text = limit_met(met.resource, &met.limit);
        (watch.notice)(Activity::Note { text });
    }
    if let Some(exceeded) = &ran.exceeded {
        run.end = AgentEnd::OutOfResources {
            resource: exceeded.resource.to_owned(),
            limit: exceeded.limit.clone(),
        };
    }
}

fn prompt_file_seen(config: &SandboxConfig<'_>, run_dir: &RunDir) -> PathBuf {
    match config.level {
        SandboxLevel::Native | SandboxLevel::Podman => Path::new(KAPI_INSIDE).join("prompt.md"),
        SandboxLevel::None => run_dir.file("prompt.md"),
    }
}

/// Leaves out what an agent reports where the gateway counts it itself.
fn counted(event: StreamEvent, served: &NetworkServices<'_>) -> StreamEvent {
    match event {
        StreamEvent::Used(usage) => StreamEvent::Used(served.beside_gateway(usage)),
        other => other,
    }
}

/// Passes one stream event on and keeps it in the transcript.
fn take(event: StreamEvent, transcript: &mut AgentTranscript, watch: &EffectWatch<'_>) {
    let line = match &event {
        StreamEvent::Session(id) => serde_json::json!({"type": "session", "id": id}),
        StreamEvent::Tool { name, detail } => {
            serde_json::json!({"type": "tool", "name": name, "detail": detail})
        }
        StreamEvent::Text(text) => serde_json::json!({"type": "text", "text": text}),
        StreamEvent::Used(usage) => serde_json::json!({"type": "used", "usage": usage}),
        StreamEvent::Retrying { message } => {
            serde_json::json!({"type": "retrying", "message": message})
        }
    };
    // A full disk must not end an agent's turn: the transcript then ends early.
    drop(transcript.add(&line.to_string()));
    match event {
        StreamEvent::Session(_) => {}
        StreamEvent::Tool { name, detail } => (watch.notice)(Activity::Tool { name, detail }),
        StreamEvent::Text(text) => (watch.notice)(Activity::Text { text }),
        StreamEvent::Used(usage) => (watch.notice)(Activity::Used(usage)),
        StreamEvent::Retrying { message } => (watch.notice)(Activity::Note { text: message }),
    }
}

fn payload(
    grants: &HostGrants,
    asked: &AgentRequest<'_>,
    launch: &AgentLaunch,
    leading: &BTreeMap<String, String>,
    shown: &ShownProgram,
) -> Result<SandboxedProgram, Failure> {
    let program = if launch.program == launch::SELF_EXE {
        grants.self_exe.clone()
    } else {
        find_program(grants, asked.kind, &launch.program)?
    };
    let mut env: BTreeMap<OsString, OsString> = asked.env.iter().cloned().collect();
    env.insert(RUN_ID_VARIABLE.into(), asked.run_id.into());
    env.extend(
        launch
            .env
            .iter()
            .chain(leading)
            .map(|(name, value)| (name.into(), value.into())),
    );
    env.extend(shown.env.iter().cloned());
    Ok(SandboxedProgram {
        program,
        args: launch.args.iter().map(OsString::from).collect(),
        env,
        stdin: launch.stdin.clone(),
        below: PathBuf::new(),
        path_first: shown.path_first.clone(),
        tail_bytes_max: AGENT_TAIL_BYTES_MAX,
        benchmark: BenchmarkSetup::default(),
        stop_grace: asked.kind.stop_grace(),
    })
}

/// Checks that an agent could be started: known, with credentials, installed, and its paths exposable.
///
/// # Errors
/// With what is missing and what to do about it.
pub fn check_agent(
    grants: &HostGrants,
    reference: &str,
    level: SandboxLevel,
) -> Result<AgentCheck, Failure> {
    let kind = AgentKind::parse(reference).map_err(|error| failure::agent(&error))?;
    let launch = launch_without_question(grants, &kind)?;
    let checked = AgentCheck {
        reports_usd: launch.reports_usd,
    };
    if launch.program == launch::SELF_EXE {
        ShownProgram::of(&kind, grants, level)?;
        return Ok(checked);
    }
    let program = find_program(grants, &kind, &launch.program)?;
    if level == SandboxLevel::Native {
        expose::expose(&program, &grants.search_path(), &grants.home)
            .map_err(|error| failure::sandbox(&error))?;
    }
    Ok(checked)
}

/// Returns the built-in agents that can work here: installed, and with credentials.
#[must_use]
pub fn able(grants: &HostGrants, level: SandboxLevel) -> Vec<&'static str> {
    let names = manifest().iter().map(|agent| agent.name);
    names
        .filter(|name| check_agent(grants, name, level).is_ok())
        .collect()
}

/// Returns the agent that works on tasks where nobody named one: Pi, as the specification of loops has
/// it, where it can work here, and otherwise the first that can.
#[must_use]
pub fn default_agent(grants: &HostGrants, level: SandboxLevel) -> Option<&'static str> {
    let able = able(grants, level);
    let pi = able.iter().find(|name| **name == AgentKind::Pi.name());
    pi.or(able.first()).copied()
}

/// Returns how an agent would be started, with nothing to do.
pub(crate) fn launch_without_question(
    grants: &HostGrants,
    kind: &AgentKind,
) -> Result<AgentLaunch, Failure> {
    let nowhere = Path::new("/");
    let turn = AgentTurn {
        prompt: "",
        prompt_file: nowhere,
        session: None,
        turn: 1,
        run_id: "check",
        purpose: LaunchPurpose::Work,
        home: nowhere,
        workspace: nowhere,
        gateway: GatewayAddress {
            url: "http://127.0.0.1:1",
            placeholder: "check",
        },
        tools: None,
        gate: None,
    };
    let host = HostEnvironment { env: &grants.env };
    launch::launch(kind, &grants.settings(kind), &host, &turn)
        .map_err(|error| failure::agent(&error))
}

/// What is known of an agent that could be started.
#[derive(Debug, Clone, Copy)]
pub struct AgentCheck {
    /// Whether it reports what it costs.
    pub reports_usd: bool,
}
