//! Starts an agent that speaks the Agent Client Protocol, with this executable as its client.
//!
//! One that is known by its program's name has the key, the log-in, the files and the server of that
//! vendor's own adapter; any other has what the person passes on to it.

use crate::acp::ACP_AGENT_COMMAND;
use crate::acp::turn::{AcpAccess, AcpTools, AcpTurn};
use crate::agent::{AgentError, AgentKind, acp_vendor};
use crate::launch::{
    AgentLaunch, AgentTurn, HostEnvironment, IDLE_MS, LaunchPurpose, SELF_EXE, claude, codex, gate,
    gemini, path_text, program, resumed, tools, words,
};
use crate::settings::AgentSettings;

/// The name that errors use.
const AGENT: &str = "acp";

pub(super) fn launch(
    command: &str,
    settings: &AgentSettings,
    host: &HostEnvironment<'_>,
    turn: &AgentTurn<'_>,
) -> Result<AgentLaunch, AgentError> {
    // Tools and the gate come by the protocol; twice would be asked twice.
    let bare = AgentTurn {
        tools: None,
        gate: None,
        ..*turn
    };
    let mut launch = match acp_vendor(command) {
        Some(AgentKind::Claude) => claude::launch(settings, host, &bare)?,
        Some(AgentKind::Codex) => codex::launch(settings, host, &bare)?,
        Some(AgentKind::Gemini) => gemini::launch(settings, host, &bare)?,
        Some(AgentKind::Pi | AgentKind::Acp(_) | AgentKind::Command(_) | AgentKind::Script(_))
        | None => program::launch(command, settings, &bare)?,
    };
    launch.env.extend(model(command, settings));
    let server = tools::of_turn(turn).map(|tools| {
        Ok::<_, AgentError>(AcpTools {
            name: tools::SERVER.to_owned(),
            program: path_text(AGENT, tools.program)?,
            args: words(&tools::SERVER_ARGS),
            env: tools.env.clone(),
        })
    });
    let input = AcpTurn {
        command: command.to_owned(),
        prompt: turn.prompt.to_owned(),
        session: resumed(turn).map(str::to_owned),
        workspace: path_text(AGENT, turn.workspace)?,
        tools: server.transpose()?,
        gate: turn.gate.map(|gate| gate::words(gate, AGENT)).transpose()?,
        access: match turn.purpose {
            LaunchPurpose::Work => AcpAccess::Work,
            LaunchPurpose::Converse | LaunchPurpose::Judge => AcpAccess::Look,
        },
    };
    if turn.gate.is_some() {
        launch.notes.push(
            "An ACP agent is asked about the tools for which it asks permission, and about no \
             others."
                .to_owned(),
        );
    }
    launch.program = SELF_EXE.to_owned();
    launch.args = words(&[ACP_AGENT_COMMAND]);
    launch.stdin = input.bytes();
    launch.idle_ms = Some(IDLE_MS);
    launch.reports_usd = false;
    Ok(launch)
}

/// Returns the variable by which an agent is told its model: the protocol has no word for it.
fn model(command: &str, settings: &AgentSettings) -> Option<(String, String)> {
    let (variable, default) = match acp_vendor(command)? {
        AgentKind::Claude => ("ANTHROPIC_MODEL", None),
        AgentKind::Gemini => ("GEMINI_MODEL", Some(gemini::MODEL_DEFAULT)),
        // Codex reads it from its file.
        AgentKind::Codex
        | AgentKind::Pi
        | AgentKind::Acp(_)
        | AgentKind::Command(_)
        | AgentKind::Script(_) => return None,
    };
    let model = settings.model.as_deref().or(default)?;
    Some((variable.to_owned(), model.to_owned()))
}
