//! Starts Gemini CLI headlessly.
//!
//! Hooks and servers that the repository's own `.gemini` brings are off: a settings file of the
//! system's rank forbids hooks, and no server name is allowed.

use serde_json::json;

use crate::agent::AgentError;
use crate::launch::credentials::{Credentials, base_url, credentials, login};
use crate::launch::{
    Host, IDLE_MS, Launch, Purpose, Turn, json_file, path_text, resumed, variables, words,
};
use crate::manifest::GEMINI;
use crate::settings::Settings;

/// Without a model a router call to another model comes first.
const MODEL_DEFAULT: &str = "gemini-2.5-pro";
/// Kapi's own settings of the system's rank, relative to the home.
const SYSTEM_SETTINGS: &str = ".gemini/system.json";

pub(super) fn launch(
    settings: &Settings,
    host: &Host<'_>,
    turn: &Turn<'_>,
) -> Result<Launch, AgentError> {
    let credentials = credentials(&GEMINI, GEMINI.api_key_env, settings, host)?;
    let auth = match &credentials {
        Credentials::Key(_) => "gemini-api-key",
        Credentials::Login => "oauth-personal",
    };
    let mut env = variables(&[
        // Otherwise a parent process takes the signals and ignores them.
        ("GEMINI_CLI_NO_RELAUNCH", "true"),
    ]);
    let system_settings = path_text(GEMINI.name, &turn.home.join(SYSTEM_SETTINGS))?;
    env.insert(
        "GEMINI_CLI_SYSTEM_SETTINGS_PATH".to_owned(),
        system_settings,
    );
    env.extend(
        credentials
            .key()
            .map(|key| (GEMINI.api_key_env.to_owned(), key)),
    );
    env.extend(base_url(&GEMINI, settings)?.map(|url| ("GOOGLE_GEMINI_BASE_URL".to_owned(), url)));
    let model = settings.model.as_deref().unwrap_or(MODEL_DEFAULT);
    let mut args = words(&["-y", "--skip-trust", "-m", model, "-o", "stream-json"]);
    args.extend(words(&["--allowed-mcp-server-names", "kapi"]));
    if let Some(session) = resumed(turn) {
        args.extend(words(&["--resume", session]));
    }
    args.extend(settings.args.clone());
    let mut own = json!({
        "security": {"auth": {"selectedType": auth}, "folderTrust": {"enabled": false}},
        "privacy": {"usageStatisticsEnabled": false},
        "telemetry": {"enabled": false},
        "general": {
            "enableAutoUpdate": false,
            "enableAutoUpdateNotification": false,
            "maxAttempts": 3,
        },
    });
    if turn.purpose == Purpose::Judge {
        own["tools"] = json!({"core": ["read_file", "list_directory", "glob", "grep_search"]});
    }
    let system = json!({"hooksConfig": {"enabled": false}});
    let (login_files, notes) = login(&GEMINI, settings);
    Ok(Launch {
        program: settings
            .command
            .clone()
            .unwrap_or_else(|| GEMINI.binary.to_owned()),
        args,
        env,
        stdin: turn.prompt.as_bytes().to_vec(),
        files: vec![
            json_file(".gemini/settings.json", &own),
            json_file(SYSTEM_SETTINGS, &system),
        ],
        login_files,
        notes,
        idle_ms: Some(IDLE_MS),
        reports_usd: false,
    })
}
