//! Starts Gemini CLI headlessly.
//!
//! Hooks and servers that the repository's own `.gemini` brings are off, unless its settings turn
//! hooks on by name: they outrank ours, and settings that outrank theirs must belong to root,
//! whom no sandbox has.

use serde_json::json;

use crate::agent::AgentError;
use crate::launch::credentials::{
    ApiKey, ProviderCredentials, base_url, credentials, login, login_hosts,
};
use crate::launch::upstream::{AgentUpstream, KeyLocation, UpstreamDialect};
use crate::launch::{
    AgentLaunch, AgentTurn, HostEnvironment, IDLE_MS, LaunchPurpose, gate, json_file, resumed,
    tools, variables, words,
};
use crate::manifest::GEMINI;
use crate::settings::AgentSettings;

/// Where the vendor answers.
const VENDOR_URL: &str = "https://generativelanguage.googleapis.com";
/// Without a model a router call to another model comes first.
pub(super) const MODEL_DEFAULT: &str = "gemini-2.5-pro";

pub(super) fn launch(
    settings: &AgentSettings,
    host: &HostEnvironment<'_>,
    turn: &AgentTurn<'_>,
) -> Result<AgentLaunch, AgentError> {
    let credentials = credentials(&GEMINI, GEMINI.api_key_env, settings, host)?;
    let auth = match &credentials {
        ProviderCredentials::Key(_) => "gemini-api-key",
        ProviderCredentials::Login => "oauth-personal",
    };
    let mut env = variables(&[
        // Otherwise a parent process takes the signals and ignores them.
        ("GEMINI_CLI_NO_RELAUNCH", "true"),
    ]);
    let mut upstream = None;
    if let ProviderCredentials::Key(key) = credentials {
        env.extend(variables(&[
            (GEMINI.api_key_env, turn.gateway.placeholder),
            ("GOOGLE_GEMINI_BASE_URL", turn.gateway.url),
        ]));
        upstream = Some(AgentUpstream {
            base_url: base_url(&GEMINI, settings)?.unwrap_or_else(|| VENDOR_URL.to_owned()),
            key: key.map(|ApiKey(key)| key),
            key_location: KeyLocation::XGoogApiKey,
            dialect: UpstreamDialect::Gemini,
        });
    }
    let model = settings.model.as_deref().unwrap_or(MODEL_DEFAULT);
    let mut args = words(&["-m", model, "-o", "stream-json"]);
    match turn.purpose {
        LaunchPurpose::Work => args.extend(words(&["-y", "--skip-trust"])),
        // What the executor left in the checkout must not instruct the judge: in a folder that is
        // not trusted neither settings, hooks, servers nor context files of it are read.
        LaunchPurpose::Converse | LaunchPurpose::Judge => {
            env.insert("GEMINI_CLI_TRUST_WORKSPACE".to_owned(), "false".to_owned());
        }
    }
    args.extend(words(&["--allowed-mcp-server-names", tools::SERVER]));
    if let Some(session) = resumed(turn) {
        args.extend(words(&["--resume", session]));
    }
    args.extend(settings.args.clone());
    let mut own = json!({
        "security": {"auth": {"selectedType": auth}, "folderTrust": {"enabled": false}},
        "privacy": {"usageStatisticsEnabled": false},
        "telemetry": {"enabled": false},
        "hooksConfig": {"enabled": false},
        "general": {
            "enableAutoUpdate": false,
            "enableAutoUpdateNotification": false,
            "maxAttempts": 3,
        },
    });
    if !turn.purpose.is_work() {
        own["tools"] = json!({"core": ["read_file", "list_directory", "glob", "grep_search"]});
    }
    if let Some(tools) = tools::of_turn(turn) {
        own["mcpServers"] = tools::gemini(tools)?;
    }
    gate::gemini(turn, &mut own)?;
    let (login_files, notes) = login(&GEMINI, settings);
    Ok(AgentLaunch {
        program: settings
            .command
            .clone()
            .unwrap_or_else(|| GEMINI.binary.to_owned()),
        args,
        env,
        stdin: turn.prompt.as_bytes().to_vec(),
        files: vec![json_file(".gemini/settings.json", &own)],
        login_files,
        notes,
        idle_ms: Some(IDLE_MS),
        reports_usd: false,
        upstream,
        hosts: login_hosts(&GEMINI, settings),
    })
}
