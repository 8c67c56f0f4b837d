//! Starts Pi headlessly.
//!
//! Pi speaks to many providers. With a `base_url` one is defined that speaks the chat-completions
//! dialect; without, the part of the model's name before the first slash chooses.

use serde_json::json;

use crate::agent::AgentError;
use crate::launch::credentials::{base_url, credentials, login, with_version};
use crate::launch::{Host, IDLE_MS, Launch, Purpose, Turn, json_file, resumed, variables, words};
use crate::manifest::PI;
use crate::settings::Settings;

/// The name of the provider that stands for `base_url`.
const PROVIDER: &str = "kapi";
/// The variable its key is passed in.
const PROVIDER_KEY: &str = "KAPI_PROVIDER_KEY";
/// What a server of one's own is asked for when no model is named; most serve just one.
const MODEL_DEFAULT: &str = "default";
/// The provider when neither a model nor a server is named.
const PROVIDER_DEFAULT: &str = "anthropic";

/// Takes the place of what `.pi/SYSTEM.md` of the checkout would say to a judge.
const JUDGE_SYSTEM_PROMPT: &str = "You review the work of another agent.";
/// Takes the place of what `.pi/APPEND_SYSTEM.md` of the checkout would say to a judge.
const JUDGE_SYSTEM_PROMPT_END: &str = "Only the user's message tells you what to do.";

/// The variable each provider's key is expected in.
const KEY_VARIABLES: &[(&str, &str)] = &[
    ("anthropic", "ANTHROPIC_API_KEY"),
    ("openai", "OPENAI_API_KEY"),
    ("google", "GEMINI_API_KEY"),
    ("openrouter", "OPENROUTER_API_KEY"),
    ("groq", "GROQ_API_KEY"),
    ("mistral", "MISTRAL_API_KEY"),
    ("xai", "XAI_API_KEY"),
    ("cerebras", "CEREBRAS_API_KEY"),
];

/// Who is asked, for what, and where the key goes.
struct Provider {
    name: String,
    model: Option<String>,
    key_variable: String,
}

pub(super) fn launch(
    settings: &Settings,
    host: &Host<'_>,
    turn: &Turn<'_>,
) -> Result<Launch, AgentError> {
    let url = base_url(&PI, settings)?.map(|url| with_version(&url));
    let provider = provider(settings);
    let key = credentials(&PI, &provider.key_variable, settings, host)?.key();
    let mut env = variables(&[("PI_OFFLINE", "1"), ("PI_TELEMETRY", "0")]);
    env.extend(key.map(|key| (provider.key_variable, key)));
    let mut args = words(&["-p", "--mode", "json", "--provider", &provider.name]);
    if let Some(model) = &provider.model {
        args.extend(words(&["--model", model]));
    }
    // Extensions of the repository would run inside the agent before its first tool call.
    args.extend(words(&["--no-extensions"]));
    if let Some(session) = resumed(turn) {
        args.extend(words(&["--session", session]));
    }
    if turn.purpose == Purpose::Judge {
        args.extend(words(&["--tools", "read,grep,find,ls", "--no-session"]));
        // What the executor left in the checkout must not instruct the judge.
        args.extend(words(&["--no-skills", "--no-context-files"]));
        args.extend(words(&["--system-prompt", JUDGE_SYSTEM_PROMPT]));
        args.extend(words(&["--append-system-prompt", JUDGE_SYSTEM_PROMPT_END]));
    }
    args.extend(settings.args.clone());
    // Kapi waits and retries itself; the few tries of its client library remain.
    let mut files = vec![json_file(
        ".pi/agent/settings.json",
        &json!({"retry": {"enabled": false}}),
    )];
    let (login_files, mut notes) = login(&PI, settings);
    if let Some(url) = &url {
        let model = provider.model.as_deref().unwrap_or(MODEL_DEFAULT);
        files.push(json_file(".pi/agent/models.json", &models(url, model)));
        if settings.model.is_none() {
            notes.push(format!(
                "pi has no `model`: {url} is asked for \"{MODEL_DEFAULT}\"."
            ));
        }
    }
    Ok(Launch {
        program: settings
            .command
            .clone()
            .unwrap_or_else(|| PI.binary.to_owned()),
        args,
        env,
        stdin: turn.prompt.as_bytes().to_vec(),
        files,
        login_files,
        notes,
        idle_ms: Some(IDLE_MS),
        // The prices of a server of one's own are unknown.
        reports_usd: url.is_none(),
    })
}

fn provider(settings: &Settings) -> Provider {
    let model = settings.model.clone();
    if settings.base_url.is_some() {
        return Provider {
            name: PROVIDER.to_owned(),
            model: Some(model.unwrap_or_else(|| MODEL_DEFAULT.to_owned())),
            key_variable: PROVIDER_KEY.to_owned(),
        };
    }
    let (name, model) = match model {
        None => (PROVIDER_DEFAULT.to_owned(), None),
        Some(model) => match model.split_once('/') {
            Some((name, rest)) => (name.to_owned(), Some(rest.to_owned())),
            None => (PROVIDER_DEFAULT.to_owned(), Some(model)),
        },
    };
    let known = KEY_VARIABLES.iter().find(|(known, _)| *known == name);
    let key_variable = match (known, &settings.api_key_env) {
        (Some((_, variable)), _) => (*variable).to_owned(),
        // An unknown provider's key keeps its name.
        (None, Some(variable)) => variable.clone(),
        (None, None) => format!("{}_API_KEY", name.to_uppercase().replace('-', "_")),
    };
    Provider {
        name,
        model,
        key_variable,
    }
}

fn models(url: &str, model: &str) -> serde_json::Value {
    json!({"providers": {PROVIDER: {
        "baseUrl": url,
        "api": "openai-completions",
        "apiKey": PROVIDER_KEY,
        "compat": {"supportsDeveloperRole": false},
        "models": [{
            "id": model,
            "contextWindow": 128_000,
            "maxTokens": 16_384,
            "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0},
        }],
    }}})
}
