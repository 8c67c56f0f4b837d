//! Starts Claude Code headlessly.
//!
//! Settings, hooks and servers that the repository brings are not loaded: they would run before
//! the first tool call.

use std::collections::BTreeMap;

use crate::agent::AgentError;
use crate::launch::credentials::{
    ApiKey, ProviderCredentials, base_url, credentials, login, login_hosts,
};
use crate::launch::tools::NamedFiles;
use crate::launch::upstream::{AgentUpstream, KeyLocation, UpstreamDialect};
use crate::launch::{
    AgentLaunch, AgentTurn, HostEnvironment, IDLE_MS, LaunchPurpose, gate, path_text, resumed,
    tools, variables, words,
};
use crate::manifest::CLAUDE;
use crate::models::is_anthropic;
use crate::settings::AgentSettings;

/// Where the vendor answers.
const VENDOR_URL: &str = "https://api.anthropic.com";
/// Which models it asks for its short names, and for small things beside the work.
const OWN_MODELS: [&str; 4] = [
    "ANTHROPIC_DEFAULT_OPUS_MODEL",
    "ANTHROPIC_DEFAULT_SONNET_MODEL",
    "ANTHROPIC_DEFAULT_HAIKU_MODEL",
    "ANTHROPIC_SMALL_FAST_MODEL",
];

pub(super) fn launch(
    settings: &AgentSettings,
    host: &HostEnvironment<'_>,
    turn: &AgentTurn<'_>,
) -> Result<AgentLaunch, AgentError> {
    let workspace = path_text(CLAUDE.name, turn.workspace)?;
    let credentials = credentials(&CLAUDE, CLAUDE.api_key_env, settings, host)?;
    let mut env = variables(&[
        // Without it the permission flag is refused to root; it must be exactly this value.
        ("IS_SANDBOX", "1"),
        ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
        ("DISABLE_AUTOUPDATER", "1"),
        // Otherwise newer versions keep Kapi's tools back until the model looks them up.
        ("ENABLE_TOOL_SEARCH", "false"),
        // Kapi waits and retries itself, visibly and across restarts.
        ("CLAUDE_CODE_MAX_RETRIES", "2"),
    ]);
    let mut upstream = None;
    if let ProviderCredentials::Key(key) = credentials {
        env.extend(variables(&[
            (CLAUDE.api_key_env, turn.gateway.placeholder),
            ("ANTHROPIC_BASE_URL", turn.gateway.url),
        ]));
        upstream = Some(AgentUpstream {
            base_url: base_url(&CLAUDE, settings)?.unwrap_or_else(|| VENDOR_URL.to_owned()),
            key: key.map(|ApiKey(key)| key),
            key_location: KeyLocation::XApiKey,
            dialect: UpstreamDialect::Anthropic,
        });
    }
    let mut args = words(&["-p", "--output-format", "stream-json", "--verbose"]);
    args.extend(words(&[
        "--dangerously-skip-permissions",
        "--setting-sources",
        "user",
    ]));
    let NamedFiles { files, args: named } = gate::claude(turn, tools::claude(turn)?)?;
    args.extend(named);
    args.extend(words(&["--strict-mcp-config"]));
    args.extend(model(settings, &mut env));
    if turn.purpose.is_work() {
        // Its context file comes with its settings, or with a directory that is added by name.
        args.extend(words(&["--add-dir", &workspace]));
        env.insert(
            "CLAUDE_CODE_ADDITIONAL_DIRECTORIES_CLAUDE_MD".to_owned(),
            "1".to_owned(),
        );
    }
    if let Some(session) = resumed(turn) {
        args.extend(words(&["--resume", session]));
    }
    if !turn.purpose.is_work() {
        // What the executor left in the checkout must not instruct the judge.
        env.insert("CLAUDE_CODE_DISABLE_CLAUDE_MDS".to_owned(), "1".to_owned());
        args.extend(words(&["--tools", "Read,Grep,Glob"]));
    }
    if turn.purpose == LaunchPurpose::Judge {
        args.extend(words(&["--no-session-persistence"]));
    }
    args.extend(settings.args.clone());
    let (login_files, notes) = login(&CLAUDE, settings);
    Ok(AgentLaunch {
        program: settings
            .command
            .clone()
            .unwrap_or_else(|| CLAUDE.binary.to_owned()),
        args,
        env,
        stdin: turn.prompt.as_bytes().to_vec(),
        files,
        login_files,
        notes,
        idle_ms: Some(IDLE_MS),
        reports_usd: true,
        upstream,
        hosts: login_hosts(&CLAUDE, settings),
    })
}

/// Returns the arguments that name its model, and adds the variables of those it asks beside it.
fn model(settings: &AgentSettings, env: &mut BTreeMap<String, String>) -> Vec<String> {
    let Some(model) = &settings.model else {
        return Vec::new();
    };
    if settings.base_url.is_some() && !is_anthropic(model) {
        // A server of one's own has none of the models that it would ask beside.
        env.extend(variables(&OWN_MODELS.map(|name| (name, model.as_str()))));
    }
    words(&["--model", model])
}
