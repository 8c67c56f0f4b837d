//! How an agent proves itself to its provider: a key, the person's own login, or neither.
//!
//! Only looks; whether the provider accepts it is asked elsewhere.

use kapi_agent::manifest::Manifest;
use kapi_run::agent_start;

use crate::config::Config;
use crate::context::Context;

/// How an agent proves itself to its provider.
#[derive(Debug)]
pub(crate) struct CredentialStatus {
    /// Whether a run could use it.
    pub(crate) is_ready: bool,
    /// What there is.
    pub(crate) detail: String,
    /// What to do where it is of no use.
    pub(crate) hint: Option<String>,
    /// Whether a login lies in the home that runs do not get.
    pub(crate) is_login_unshared: bool,
}

/// Returns how an agent proves itself to its provider, as far as can be seen here.
pub(crate) fn credentials(
    context: &Context,
    config: &Config,
    agent: &Manifest,
) -> CredentialStatus {
    let settings = config.agents.get(agent.name).cloned().unwrap_or_default();
    let command = settings.command.as_deref().unwrap_or(agent.binary);
    let key = settings.api_key_env.as_deref().unwrap_or(agent.api_key_env);
    let files = agent.login_files.iter().map(|file| context.home.join(file));
    let login_file = files.into_iter().find(|file| file.is_file());
    let missing = agent_start::check_credentials(&context.grants(config), agent).err();
    let is_ready = missing.is_none();
    let detail = match (&missing, &login_file) {
        (Some(_), Some(file)) => format!("{} is not shared with runs", file.display()),
        (Some(missing), None) => missing
            .message
            .rsplit(": ")
            .next()
            .unwrap_or_default()
            .to_owned(),
        (None, Some(file)) if settings.login => format!("login {}", file.display()),
        (None, _) if context.variable(key).is_some() => format!("{key} is set"),
        (None, _) if settings.base_url.is_some() => "its own server needs no key".to_owned(),
        (None, _) => "its key is set".to_owned(),
    };
    let hint = missing.map(|missing| match &login_file {
        Some(_) => format!(
            "set `login = true` under `[agents.{}]` in your configuration (`kapi init` offers \
             it), or set {key}.",
            agent.name
        ),
        None => missing
            .hint
            .unwrap_or_else(|| format!("set {key}, or log in with `{command}`.")),
    });
    CredentialStatus {
        is_login_unshared: !is_ready && login_file.is_some(),
        is_ready,
        detail,
        hint,
    }
}
