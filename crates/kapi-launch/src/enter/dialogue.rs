//! An agent on its own screen: started as its adapter starts it for a run, with the parts that take
//! the screen away left out.
//!
//! So the placeholder, the gateway's address and what keeps the repository's own settings quiet are
//! the same. Knows nothing of terminals.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use kapi_agent::agent::AgentKind;
use kapi_agent::launch::{self, AgentTurn, HomeFile, HostEnvironment, LaunchPurpose};
use kapi_core::failure::Failure;
use kapi_core::isolation::SandboxLevel;
use kapi_run::confine::{AGENT_TAIL_BYTES_MAX, SandboxConfig, SandboxedProgram, WORKSPACE_INSIDE};
use kapi_run::host_grants::HostGrants;
use kapi_run::network::NetworkAccess;
use kapi_run::{failure, home};
use kapi_sandbox::spec::BenchmarkSetup;
use serde_json::json;

use super::hooks::Hooks;
use crate::error::LaunchError;
use crate::plan::LaunchPlan;
use crate::shown;

/// Characters of a key by which Claude Code remembers that it may be used.
const KEY_TAIL_CHARS: usize = 20;

/// What is to be started, and what the person should know about it.
#[derive(Debug)]
pub(super) struct ScreenProgram {
    pub(super) payload: SandboxedProgram,
    pub(super) notes: Vec<String>,
}

/// An agent that is about to be started on its own screen.
pub(super) struct Dialogue<'a> {
    pub(super) plan: &'a LaunchPlan,
    pub(super) config: &'a SandboxConfig<'a>,
    pub(super) hooks: Option<&'a Hooks>,
    /// The file with the task, as the agent sees it.
    pub(super) task: &'a Path,
}

impl Dialogue<'_> {
    /// Makes the agent ready: its home has its files, and the gateway knows its server.
    pub(super) fn open(
        self,
        grants: &HostGrants,
        access: &mut NetworkAccess,
    ) -> Result<ScreenProgram, LaunchError> {
        let Self {
            plan,
            config,
            hooks,
            task,
        } = self;
        let turn = AgentTurn {
            prompt: &plan.prompt,
            prompt_file: task,
            session: None,
            turn: 1,
            run_id: config.name,
            purpose: LaunchPurpose::Work,
            home: &config.home_seen(grants),
            workspace: &config.workspace_seen(grants),
            gateway: access.gateway(),
            tools: None,
            gate: None,
        };
        let host = HostEnvironment { env: &grants.env };
        let mut launch = launch::launch(&plan.agent, &plan.settings, &host, &turn)
            .map_err(|error| failure::agent(&error))?;
        if plan.agent == AgentKind::Claude && launch.upstream.is_some() {
            let file = settled(turn.gateway.placeholder, plan.level);
            launch.files.push(file);
        }
        let mut notes = std::mem::take(&mut launch.notes);
        let mut hook_args: &[&str] = &[];
        match hooks {
            None => home::furnish(config.home, &launch, grants)?,
            Some(hooks) => {
                hooks.unmute(&mut launch.files)?;
                home::furnish(config.home, &launch, grants)?;
                let merged = hooks.merge(config.home)?;
                notes.extend(merged.note);
                hook_args = merged.args;
            }
        }
        let args = on_screen(&plan.agent, launch.args.clone());
        let args = args.ok_or_else(|| Failure {
            message: format!("start {} on its own screen", plan.agent.name()),
            hint: Some("omit `--interactive`.".to_owned()),
        })?;
        let words = if plan.prompt.trim().is_empty() {
            Vec::new()
        } else {
            first_words(&plan.agent, task)
        };
        // Before all others: some options take every word that follows them.
        let hook_args = hook_args.iter().map(|&word| word.to_owned());
        let args = words.into_iter().chain(hook_args).chain(args);
        access.allow(&launch.hosts)?;
        access.upstream.clone_from(&launch.upstream);
        let program = super::find(grants, OsStr::new(&launch.program))?;
        let env = launch.env.into_iter();
        Ok(ScreenProgram {
            payload: SandboxedProgram {
                program,
                args: args.map(OsString::from).collect(),
                env: env
                    .map(|(name, value)| (name.into(), value.into()))
                    .collect(),
                stdin: Vec::new(),
                below: PathBuf::new(),
                path_first: Vec::new(),
                tail_bytes_max: AGENT_TAIL_BYTES_MAX,
                benchmark: BenchmarkSetup::default(),
                stop_grace: None,
            },
            notes,
        })
    }
}

/// Returns an adapter's arguments without those that take the agent's own screen away.
///
/// `None` when one of them is not there: then nobody knows what the others mean together.
fn on_screen(kind: &AgentKind, mut args: Vec<String>) -> Option<Vec<String>> {
    let headless: &[&[&str]] = match kind {
        AgentKind::Claude => &[&["-p"], &["--output-format", "stream-json"], &["--verbose"]],
        AgentKind::Codex => &[&["exec"], &["--json"], &["--skip-git-repo-check"], &["-"]],
        AgentKind::Gemini => &[&["-o", "stream-json"]],
        AgentKind::Pi => &[&["-p"], &["--mode", "json"]],
        AgentKind::Acp(_) | AgentKind::Command(_) | AgentKind::Script(_) => &[],
    };
    for words in headless {
        // The adapter's own come first, the person's after them.
        let at = args.windows(words.len()).position(|some| some == *words)?;
        args.drain(at..at + words.len());
    }
    Some(args)
}

/// Returns the arguments that make the agent begin with the task.
///
/// They lead to its file: a task on a command line is seen by every process, is cut where it is
/// long, and is an option where it begins with a dash.
fn first_words(kind: &AgentKind, task: &Path) -> Vec<String> {
    let words = format!("Do what the file {} describes.", task.display());
    match kind {
        AgentKind::Claude | AgentKind::Codex | AgentKind::Pi => vec![words],
        AgentKind::Gemini => vec!["-i".to_owned(), words],
        AgentKind::Acp(_) | AgentKind::Command(_) | AgentKind::Script(_) => Vec::new(),
    }
}

/// Returns the file by which Claude Code knows that it was set up and may use the placeholder: it
/// asks about both otherwise, and about a key that it has not seen its own proposal is not to use it.
///
/// Inside a sandbox it need not ask either whether it may work there: the settings of the project
/// are not read, and what it does without asking is done to a view of the project.
fn settled(placeholder: &str, level: SandboxLevel) -> HomeFile {
    let from = placeholder.len().saturating_sub(KEY_TAIL_CHARS);
    let tail = placeholder.get(from..).unwrap_or(placeholder);
    let mut content = json!({
        "hasCompletedOnboarding": true,
        "customApiKeyResponses": {"approved": [tail], "rejected": []},
    });
    if shown::has_layers(level) {
        content["bypassPermissionsModeAccepted"] = json!(true);
        content["projects"] = json!({WORKSPACE_INSIDE: {"hasTrustDialogAccepted": true}});
    }
    HomeFile {
        path: PathBuf::from(".claude.json"),
        content: format!("{content:#}\n").into_bytes(),
        mode: 0o600,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::Path;

    use kapi_agent::agent::AgentKind;
    use kapi_agent::launch::upstream::GatewayAddress;
    use kapi_agent::launch::{AgentTurn, HostEnvironment, LaunchPurpose, launch};
    use kapi_agent::settings::AgentSettings;

    use super::on_screen;

    /// Returns the line of an agent, with an argument of the person's that looks like the adapter's.
    fn check(kind: &AgentKind, expected: &str) {
        let settings = AgentSettings {
            model: Some("m".to_owned()),
            base_url: Some("http://127.0.0.1:1".to_owned()),
            args: vec!["-p".to_owned()],
            ..AgentSettings::default()
        };
        let turn = AgentTurn {
            prompt: "task",
            prompt_file: Path::new("/task-spec.md"),
            session: None,
            turn: 1,
            run_id: "r",
            purpose: LaunchPurpose::Work,
            home: Path::new("/home/agent"),
            workspace: Path::new("/workspace"),
            tools: None,
            gate: None,
            gateway: GatewayAddress {
                url: "http://127.0.0.1:2",
                placeholder: "p",
            },
        };
        let env = BTreeMap::new();
        let launch = launch(kind, &settings, &HostEnvironment { env: &env }, &turn).unwrap();
        let args = on_screen(kind, launch.args).unwrap();
        assert_eq!(args.join(" "), expected);
    }

    #[test]
    fn every_agent_keeps_its_screen_and_loses_nothing_else() {
        check(
            &AgentKind::Claude,
            "--dangerously-skip-permissions --setting-sources user --strict-mcp-config --model m \
             --add-dir /workspace -p",
        );
        check(
            &AgentKind::Codex,
            "--dangerously-bypass-approvals-and-sandbox -p",
        );
        check(
            &AgentKind::Gemini,
            "-m m -y --skip-trust --allowed-mcp-server-names kapi -p",
        );
        check(
            &AgentKind::Pi,
            "--provider kapi --model m --no-extensions -p",
        );
    }

    #[test]
    fn a_line_that_is_not_the_adapters_is_not_guessed_at() {
        assert_eq!(on_screen(&AgentKind::Pi, vec!["-p".to_owned()]), None);
    }
}
