//! Which variables no setting may give to an agent, because Kapi gives them or keeps them outside.
//!
//! A key that is passed on by its name would be inside again, uncounted; a server's address or a
//! proxy would lead past the gateway. Knows names only, never a value.

use crate::agent::{AgentError, AgentKind};
use crate::launch::pi;
use crate::manifest::manifest_of;
use crate::settings::AgentSettings;

/// What Kapi's own variables begin with.
const PREFIX: &str = "KAPI_";
/// The one of them that travels in settings: the task of a launch, for the command that takes it.
const TASK: &str = "KAPI_TASK";
/// Variables that say who somebody is and where they work, or where an adapter's files are.
const LOCATIONS: &[&str] = &[
    "HOME",
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_COMMON_DIR",
    "CODEX_HOME",
];
/// Variables that lead to a proxy, in small letters: programs read both spellings.
const PROXIES: &[&str] = &["http_proxy", "https_proxy", "all_proxy", "no_proxy"];

/// Refuses a variable that is not the settings' to say.
///
/// A command asks its model itself, so its key is its own affair.
///
/// # Errors
/// With the variable, the setting that names it, and what to do instead.
pub fn check(kind: &AgentKind, settings: &AgentSettings) -> Result<(), AgentError> {
    let passed = settings.pass_env.iter().map(|name| ("pass_env", name));
    let set = settings.env.keys().map(|name| ("env", name));
    for (key, name) in passed.chain(set) {
        if let Some((why, instead)) = fault(kind, settings, name) {
            return Err(AgentError::OwnVariable {
                agent: kind.name(),
                key,
                variable: name.clone(),
                why,
                instead,
            });
        }
    }
    Ok(())
}

/// Returns why a variable is refused, and what to do instead.
fn fault(
    kind: &AgentKind,
    settings: &AgentSettings,
    name: &str,
) -> Option<(&'static str, &'static str)> {
    if name == TASK {
        return None;
    }
    if name.starts_with(PREFIX) || LOCATIONS.contains(&name) {
        return Some(("Kapi sets it itself", ""));
    }
    if PROXIES.contains(&name.to_ascii_lowercase().as_str()) {
        return Some((
            "traffic from a sandbox goes through Kapi's own proxy",
            "; list reachable hosts with `allow` under [network]",
        ));
    }
    if server_variable(kind) == Some(name) {
        return Some((
            "it points the agent at Kapi's gateway",
            "; set the gateway's server with `base_url`",
        ));
    }
    if key_variables(kind, settings).iter().any(|key| key == name) {
        return Some((
            "the key stays outside, and the agent gets a placeholder for it",
            "; name the variable with the key in `api_key_env`",
        ));
    }
    None
}

/// Returns the variable that an agent takes its server's address from.
fn server_variable(kind: &AgentKind) -> Option<&'static str> {
    match kind.vendor() {
        AgentKind::Claude => Some("ANTHROPIC_BASE_URL"),
        AgentKind::Codex => Some("OPENAI_BASE_URL"),
        AgentKind::Gemini => Some("GOOGLE_GEMINI_BASE_URL"),
        AgentKind::Pi | AgentKind::Acp(_) | AgentKind::Command(_) | AgentKind::Script(_) => None,
    }
}

/// Returns the variables that hold the agent's key, outside or inside.
fn key_variables(kind: &AgentKind, settings: &AgentSettings) -> Vec<String> {
    let Some(manifest) = manifest_of(kind) else {
        return Vec::new();
    };
    let mut names = vec![manifest.api_key_env.to_owned()];
    names.extend(settings.api_key_env.clone());
    if *kind == AgentKind::Pi {
        names.push(pi::key_variable(settings));
    }
    names
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::agent::AgentKind;
    use crate::settings::AgentSettings;

    /// Returns whether a variable is refused, which must not depend on how it is named.
    fn is_refused(agent: &str, name: &str, change: impl Fn(&mut AgentSettings)) -> bool {
        let kind = AgentKind::parse(agent).unwrap();
        let mut settings = AgentSettings::default();
        change(&mut settings);
        let (mut passed, mut set) = (settings.clone(), settings);
        passed.pass_env.push(name.to_owned());
        set.env.insert(name.to_owned(), "x".to_owned());
        let found = [check(&kind, &passed).is_err(), check(&kind, &set).is_err()];
        assert_eq!(found[0], found[1], "{agent} {name}");
        found[0]
    }

    #[test]
    fn keys_servers_proxies_and_our_own_are_refused() {
        for (agent, name) in [
            ("claude", "ANTHROPIC_API_KEY"),
            ("claude", "ANTHROPIC_BASE_URL"),
            ("codex", "OPENAI_API_KEY"),
            ("codex", "OPENAI_BASE_URL"),
            ("codex", "CODEX_HOME"),
            ("gemini", "GEMINI_API_KEY"),
            ("gemini", "GOOGLE_GEMINI_BASE_URL"),
            ("pi", "ANTHROPIC_API_KEY"),
            ("command:x", "KAPI_RUN_ID"),
            ("command:x", "https_proxy"),
            ("command:x", "No_Proxy"),
            ("claude", "HTTPS_PROXY"),
            ("claude", "HOME"),
            ("claude", "GIT_DIR"),
        ] {
            assert!(is_refused(agent, name, |_| ()), "{agent} {name}");
        }
        for agent in ["claude", "codex", "gemini", "pi"] {
            let named =
                |settings: &mut AgentSettings| settings.api_key_env = Some("MY_KEY".to_owned());
            assert!(is_refused(agent, "MY_KEY", named), "{agent}");
            assert!(!is_refused(agent, "MY_KEY", |_| ()), "{agent}");
        }
        assert!(is_refused("pi", "OPENROUTER_API_KEY", |settings| {
            settings.model = Some("openrouter/a/b".to_owned());
        }));
        let logged_in = |settings: &mut AgentSettings| settings.login = true;
        assert!(is_refused("claude", "ANTHROPIC_API_KEY", logged_in));
    }

    #[test]
    fn what_is_nobodys_business_passes() {
        for (agent, name) in [
            ("claude", "GITHUB_TOKEN"),
            ("claude", "CLAUDE_CODE_MAX_RETRIES"),
            ("claude", "OPENAI_API_KEY"),
            ("codex", "MY_KAPI_THING"),
            ("command:x", "ANTHROPIC_API_KEY"),
            ("command:x", "ANTHROPIC_BASE_URL"),
        ] {
            assert!(!is_refused(agent, name, |_| ()), "{agent} {name}");
        }
    }
}
