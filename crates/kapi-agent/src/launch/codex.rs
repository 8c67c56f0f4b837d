//! Starts Codex CLI headlessly.
//!
//! Its configuration is written whole at every launch. Its own sandbox is off: Kapi's surrounds
//! it. A session names the thread and what the thread had used before (see `stream::codex`).

use std::path::PathBuf;

use toml::{Table, Value};

use crate::agent::AgentError;
use crate::launch::credentials::{
    ApiKey, ProviderCredentials, base_url, credentials, login, login_hosts, with_version,
};
use crate::launch::upstream::{AgentUpstream, KeyLocation, UpstreamDialect};
use crate::launch::{
    AgentLaunch, AgentTurn, HomeFile, HostEnvironment, IDLE_MS, LaunchPurpose, PRIVATE_MODE, gate,
    path_text, resumed, tools, words,
};
use crate::manifest::CODEX;
use crate::settings::AgentSettings;
use crate::stream::codex::thread_of;

/// Where the vendor answers.
const VENDOR_URL: &str = "https://api.openai.com/v1";
/// The name of the provider that stands for the gateway.
const PROVIDER: &str = "kapi";

pub(super) fn launch(
    settings: &AgentSettings,
    host: &HostEnvironment<'_>,
    turn: &AgentTurn<'_>,
) -> Result<AgentLaunch, AgentError> {
    let credentials = credentials(&CODEX, CODEX.api_key_env, settings, host)?;
    let home = path_text(CODEX.name, &turn.home.join(".codex"))?;
    let mut env = [("CODEX_HOME".to_owned(), home)]
        .into_iter()
        .collect::<std::collections::BTreeMap<_, _>>();
    let mut upstream = None;
    if let ProviderCredentials::Key(key) = credentials {
        env.insert(
            CODEX.api_key_env.to_owned(),
            turn.gateway.placeholder.to_owned(),
        );
        let own = base_url(&CODEX, settings)?.map(|url| with_version(&url));
        upstream = Some(AgentUpstream {
            base_url: own.unwrap_or_else(|| VENDOR_URL.to_owned()),
            key: key.map(|ApiKey(key)| key),
            key_location: KeyLocation::Bearer,
            dialect: UpstreamDialect::Responses,
        });
    }
    let mut args = words(&["exec"]);
    let session = resumed(turn);
    if session.is_some() {
        args.extend(words(&["resume"]));
    }
    args.extend(words(&[
        "--json",
        "--dangerously-bypass-approvals-and-sandbox",
    ]));
    args.extend(words(&["--skip-git-repo-check"]));
    if turn.purpose == LaunchPurpose::Judge {
        args.extend(words(&["--ephemeral"]));
    }
    let gateway = upstream.as_ref().map(|_| turn.gateway.url);
    let mut table = config(settings, turn.purpose, gateway);
    args.extend(gate::codex(turn, &mut table)?);
    args.extend(settings.args.clone());
    args.extend(session.map(|session| thread_of(session).to_owned()));
    // The prompt comes on standard input.
    args.extend(words(&["-"]));
    if let Some(tools) = tools::of_turn(turn) {
        table.insert("mcp_servers".to_owned(), tools::codex(tools)?.into());
    }
    let config = HomeFile {
        path: PathBuf::from(".codex/config.toml"),
        content: table.to_string().into_bytes(),
        mode: PRIVATE_MODE,
    };
    let (login_files, notes) = login(&CODEX, settings);
    Ok(AgentLaunch {
        program: settings
            .command
            .clone()
            .unwrap_or_else(|| CODEX.binary.to_owned()),
        args,
        env,
        stdin: turn.prompt.as_bytes().to_vec(),
        files: vec![config],
        login_files,
        notes,
        idle_ms: Some(IDLE_MS),
        reports_usd: false,
        upstream,
        hosts: login_hosts(&CODEX, settings),
    })
}

fn config(settings: &AgentSettings, purpose: LaunchPurpose, gateway: Option<&str>) -> Table {
    let mut config = Table::new();
    if !purpose.is_work() {
        // What the executor left in the checkout must not instruct the judge.
        config.insert("project_doc_max_bytes".to_owned(), Value::Integer(0));
    }
    config.extend(
        settings
            .model
            .clone()
            .map(|model| ("model".to_owned(), Value::String(model))),
    );
    config.insert(
        "check_for_update_on_startup".to_owned(),
        Value::Boolean(false),
    );
    config.insert("analytics".to_owned(), switches(&["enabled"]));
    // An unreachable server must end the turn; plugins and apps ask the vendor's servers at start.
    let features = switches(&["apps", "plugins", "unbounded_connection_retries"]);
    config.insert("features".to_owned(), features);
    let Some(url) = gateway else { return config };
    config.insert("model_provider".to_owned(), Value::from(PROVIDER));
    let provider: Table = [
        ("name", Value::from(PROVIDER)),
        ("base_url", Value::from(url)),
        ("env_key", Value::from(CODEX.api_key_env)),
        ("wire_api", Value::from("responses")),
        ("request_max_retries", Value::Integer(2)),
        ("stream_max_retries", Value::Integer(2)),
        ("stream_idle_timeout_ms", Value::Integer(300_000)),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value))
    .collect();
    let providers: Table = [(PROVIDER.to_owned(), Value::Table(provider))]
        .into_iter()
        .collect();
    config.insert("model_providers".to_owned(), Value::Table(providers));
    config
}

/// Returns a table in which every named feature is off.
fn switches(names: &[&str]) -> Value {
    Value::Table(
        names
            .iter()
            .map(|name| ((*name).to_owned(), Value::Boolean(false)))
            .collect(),
    )
}
