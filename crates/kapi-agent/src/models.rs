//! Which models an agent may ask: the one that it is started with, what its name stands for at the
//! provider, and the small ones that the agent asks by itself.
//!
//! A list that a person wrote is the whole of it. Knows no price and no server.

use kapi_core::agent_models::AgentModels;
use kapi_core::pattern;

use crate::agent::{AgentError, AgentKind};
use crate::settings::AgentSettings;

/// A date behind a model's name: `-20251001`.
const DATED: &str = "-????????";
/// The small models that Claude Code asks beside its own: for titles, summaries and searches.
const CLAUDE_HELPERS: &str = "claude-*haiku*";
/// The small models that Gemini CLI asks beside its own: for summaries and loops that it notices.
const GEMINI_HELPERS: &str = "gemini-*flash*";
/// How hard Pi's model is to think, as it stands behind the model's name.
const PI_THINKING: &[&str] = &["off", "minimal", "low", "medium", "high", "xhigh"];

/// Returns the models that an agent may ask, as patterns; any where nobody named one.
#[must_use]
pub fn may_ask(kind: &AgentKind, settings: &AgentSettings) -> Vec<String> {
    let kind = kind.vendor();
    let mut found = settings.models.clone();
    let Some(model) = &settings.model else {
        return found;
    };
    let is_listed = !found.is_empty();
    found.extend(stands_for(kind, model));
    if !is_listed {
        found.extend(helpers(kind, model).map(str::to_owned));
    }
    let mut seen = Vec::new();
    found.retain(|name| {
        let is_new = !seen.contains(name);
        seen.push(name.clone());
        is_new
    });
    found
}

/// Returns the models of an agent for a contract; nothing where it may ask any.
#[must_use]
pub fn approved(kind: &AgentKind, settings: &AgentSettings) -> Option<AgentModels> {
    let may_ask = may_ask(kind, settings);
    (!may_ask.is_empty()).then(|| AgentModels {
        agent: kind.name().to_owned(),
        model: settings.model.clone(),
        may_ask,
    })
}

/// Starts an agent with a model that was asked for.
///
/// # Errors
/// When the agent chooses its model itself, or its `models` do not list this one.
pub fn choose(
    settings: &mut AgentSettings,
    kind: &AgentKind,
    model: &str,
) -> Result<(), AgentError> {
    let kind = kind.vendor();
    let agent = kind.name();
    if matches!(
        kind,
        AgentKind::Acp(_) | AgentKind::Command(_) | AgentKind::Script(_)
    ) {
        let model = model.to_owned();
        return Err(AgentError::OwnModel { agent, model });
    }
    let is_listed = |name: &String| settings.models.iter().any(|rule| covers(rule, name));
    let is_allowed = settings.models.is_empty() || stands_for(kind, model).iter().any(is_listed);
    if !is_allowed {
        return Err(AgentError::ModelNotListed {
            agent,
            model: model.to_owned(),
            models: settings.models.join(", "),
        });
    }
    settings.model = Some(model.to_owned());
    Ok(())
}

/// Tells whether a rule of a person's list lets a name, or all that a pattern stands for, through.
fn covers(rule: &str, name: &str) -> bool {
    pattern::is_name(rule, name)
}

/// Returns the names that the provider may know a model by.
fn stands_for(kind: &AgentKind, model: &str) -> Vec<String> {
    let mut names = vec![model.to_owned()];
    // Some agents write their model with its provider before it, and ask without.
    let tails = model.match_indices('/').map(|(at, _)| at + 1);
    names.extend(tails.filter_map(|at| model.get(at..).map(str::to_owned)));
    let plain: Vec<String> = names.iter().map(|name| plain(kind, name)).collect();
    names.extend(plain.iter().cloned());
    names.extend(plain.iter().map(|name| format!("{name}{DATED}")));
    if let Some(last) = plain.last() {
        names.extend(alias(kind, last).into_iter().map(str::to_owned));
    }
    names
}

/// Leaves out what an agent reads from a model's name and does not ask for.
fn plain(kind: &AgentKind, name: &str) -> String {
    let end = match kind {
        AgentKind::Claude => name.strip_suffix("[1m]"),
        AgentKind::Pi => name
            .rsplit_once(':')
            .filter(|(_, level)| PI_THINKING.contains(level))
            .map(|(name, _)| name),
        AgentKind::Codex
        | AgentKind::Gemini
        | AgentKind::Acp(_)
        | AgentKind::Command(_)
        | AgentKind::Script(_) => None,
    };
    end.unwrap_or(name).to_owned()
}

/// Returns the models that an agent's short name for several stands for.
fn alias(kind: &AgentKind, name: &str) -> Vec<&'static str> {
    match (kind, name) {
        (AgentKind::Claude | AgentKind::Pi, "opus") => vec!["claude-*opus*"],
        (AgentKind::Claude | AgentKind::Pi, "sonnet") => vec!["claude-*sonnet*"],
        (AgentKind::Claude | AgentKind::Pi, "haiku") => vec!["claude-*haiku*"],
        (AgentKind::Claude, "opusplan") => vec!["claude-*opus*", "claude-*sonnet*"],
        (AgentKind::Claude, "default" | "best") => vec!["claude-*"],
        (AgentKind::Gemini, "pro") => vec!["gemini-*pro*"],
        (AgentKind::Gemini, "flash" | "flash-lite") => vec!["gemini-*flash*"],
        (AgentKind::Gemini, auto) if auto == "auto" || auto.starts_with("auto-") => {
            vec!["gemini-*"]
        }
        (
            AgentKind::Claude
            | AgentKind::Codex
            | AgentKind::Gemini
            | AgentKind::Pi
            | AgentKind::Acp(_)
            | AgentKind::Command(_)
            | AgentKind::Script(_),
            _,
        ) => Vec::new(),
    }
}

/// Returns the small models that an agent asks by itself beside its vendor's own.
fn helpers(kind: &AgentKind, model: &str) -> Option<&'static str> {
    match kind {
        AgentKind::Claude if is_anthropic(model) => Some(CLAUDE_HELPERS),
        AgentKind::Gemini if model.starts_with("gemini-") || !alias(kind, model).is_empty() => {
            Some(GEMINI_HELPERS)
        }
        AgentKind::Claude
        | AgentKind::Codex
        | AgentKind::Gemini
        | AgentKind::Pi
        | AgentKind::Acp(_)
        | AgentKind::Command(_)
        | AgentKind::Script(_) => None,
    }
}

/// Tells whether a model that Claude Code is started with is one of its vendor's.
#[must_use]
pub(crate) fn is_anthropic(model: &str) -> bool {
    let kind = AgentKind::Claude;
    model.contains("claude") || !alias(&kind, &plain(&kind, model)).is_empty()
}

#[cfg(test)]
mod tests {
    use kapi_core::pattern;

    use super::{choose, may_ask};
    use crate::agent::AgentKind;
    use crate::settings::AgentSettings;

    fn settings(model: Option<&str>, models: &[&str]) -> AgentSettings {
        AgentSettings {
            model: model.map(str::to_owned),
            models: models.iter().map(|&name| name.to_owned()).collect(),
            ..AgentSettings::default()
        }
    }

    fn lets(kind: &AgentKind, model: &str, asked: &str) -> bool {
        let rules = may_ask(kind, &settings(Some(model), &[]));
        rules.iter().any(|rule| pattern::is_name(rule, asked))
    }

    #[test]
    fn a_named_model_lets_itself_and_the_agents_helpers_through() {
        let (claude, codex, gemini, pi) = (
            AgentKind::Claude,
            AgentKind::Codex,
            AgentKind::Gemini,
            AgentKind::Pi,
        );
        for (kind, model, asked, expected) in [
            (&claude, "claude-opus-4-5", "claude-opus-4-5", true),
            (&claude, "claude-opus-4-5", "claude-opus-4-5-20251101", true),
            (
                &claude,
                "claude-opus-4-5",
                "claude-haiku-4-5-20251001",
                true,
            ),
            (
                &claude,
                "claude-opus-4-5",
                "claude-3-5-haiku-20241022",
                true,
            ),
            (&claude, "claude-opus-4-5", "claude-sonnet-4-5", false),
            (&claude, "claude-opus-4", "claude-opus-4-5", false),
            (&claude, "opus", "claude-opus-4-5-20251101", true),
            (&claude, "opus", "claude-3-opus-20240229", true),
            (&claude, "opus", "claude-sonnet-4-5", false),
            (&claude, "sonnet[1m]", "claude-sonnet-4-5-20250929", true),
            (&claude, "claude-sonnet-4-5[1m]", "claude-sonnet-4-5", true),
            (&claude, "opusplan", "claude-sonnet-4-5", true),
            (&claude, "qwen3", "qwen3", true),
            (&claude, "qwen3", "claude-haiku-4-5", false),
            (&codex, "gpt-5.5", "gpt-5.5", true),
            (&codex, "gpt-5.5", "gpt-5.5-pro", false),
            (&codex, "gpt-5.5", "gpt-5.4-mini", false),
            (&gemini, "gemini-2.5-pro", "gemini-2.5-pro", true),
            (&gemini, "gemini-2.5-pro", "gemini-2.5-flash-lite", true),
            (&gemini, "gemini-2.5-pro", "gemini-3-pro", false),
            (&gemini, "pro", "gemini-3-pro-preview", true),
            (&gemini, "auto", "gemini-3-pro-preview", true),
            (&pi, "anthropic/claude-opus-4-5", "claude-opus-4-5", true),
            (
                &pi,
                "anthropic/claude-opus-4-5:high",
                "claude-opus-4-5",
                true,
            ),
            (&pi, "anthropic/claude-opus-4-5", "claude-haiku-4-5", false),
            (&pi, "anthropic/sonnet", "claude-sonnet-4-5", true),
            (&pi, "openrouter/a/b", "a/b", true),
            (&pi, "openrouter/a/b", "a/c", false),
        ] {
            assert_eq!(
                lets(kind, model, asked),
                expected,
                "{kind}: {model} {asked}"
            );
        }
    }

    #[test]
    fn a_list_is_the_whole_of_it() {
        let kind = AgentKind::Claude;
        let unnamed = may_ask(&kind, &settings(None, &[]));
        assert_eq!(unnamed, Vec::<String>::new());
        let listed = may_ask(&kind, &settings(None, &["claude-opus-*"]));
        assert_eq!(listed, ["claude-opus-*"]);
        let both = may_ask(&kind, &settings(Some("m"), &["claude-opus-*"]));
        assert_eq!(both, ["claude-opus-*", "m", "m-????????"]);
        // What a contract named is named again from itself.
        let named = AgentSettings {
            models: both.clone(),
            ..settings(Some("m"), &[])
        };
        assert_eq!(may_ask(&kind, &named), both);
    }

    #[test]
    fn a_model_outside_of_the_list_is_not_chosen() {
        let mut own = settings(None, &["claude-opus-*"]);
        choose(&mut own, &AgentKind::Claude, "claude-opus-4-5").unwrap();
        choose(&mut own, &AgentKind::Claude, "opus").unwrap_err();
        let error = choose(&mut own, &AgentKind::Claude, "claude-sonnet-4-5").unwrap_err();
        assert_eq!(
            error.to_string(),
            "start claude with the model \"claude-sonnet-4-5\": its `models` list only \
             claude-opus-*"
        );
        assert_eq!(own.model.as_deref(), Some("claude-opus-4-5"));
        let kind = AgentKind::Command("true".to_owned());
        choose(&mut settings(None, &[]), &kind, "m").unwrap_err();
    }
}
