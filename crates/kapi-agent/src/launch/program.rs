//! Starts any program as an agent: a command for the shell.
//!
//! The prompt is on its standard input and in a file; exit code 0 means its turn is over.

use crate::agent::AgentError;
use crate::launch::{AgentLaunch, AgentTurn, path_text, variables, words};
use crate::settings::AgentSettings;

pub(super) fn launch(
    shell: &str,
    settings: &AgentSettings,
    turn: &AgentTurn<'_>,
) -> Result<AgentLaunch, AgentError> {
    let prompt_file = path_text("command", turn.prompt_file)?;
    let number = turn.turn.to_string();
    Ok(AgentLaunch {
        program: "/bin/sh".to_owned(),
        args: words(&["-c", shell]),
        env: variables(&[
            ("KAPI_PROMPT_FILE", &prompt_file),
            ("KAPI_TURN", &number),
            ("KAPI_RUN_ID", turn.run_id),
        ]),
        stdin: turn.prompt.as_bytes().to_vec(),
        files: Vec::new(),
        login_files: Vec::new(),
        notes: unused(settings),
        // Any program may be silent for as long as it has time.
        idle_ms: None,
        reports_usd: false,
        upstream: None,
        hosts: Vec::new(),
    })
}

/// Names the settings that mean nothing for a command, so that nobody relies on them.
fn unused(settings: &AgentSettings) -> Vec<String> {
    let AgentSettings {
        command,
        model,
        base_url,
        api_key_env,
        args,
        env: _,
        pass_env: _,
        login,
        models,
        provider_tools,
    } = settings;
    let set = [
        ("command", command.is_some()),
        ("model", model.is_some()),
        ("base_url", base_url.is_some()),
        ("api_key_env", api_key_env.is_some()),
        ("args", !args.is_empty()),
        ("login", *login),
        ("models", !models.is_empty()),
        ("provider_tools", *provider_tools),
    ];
    let unused = set.iter().filter(|(_, is_set)| *is_set);
    unused
        .map(|(name, _)| format!("`{name}` in [agents.command] has no effect."))
        .collect()
}
