//! One `[agents.<name>]` table of the configuration.
//!
//! What a person wants different from the agent's own defaults. Knows nothing of where the table
//! came from nor of what an adapter makes of it.

use std::collections::BTreeMap;

use serde::Deserialize;

/// The settings of one agent; everything is optional.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AgentSettings {
    /// The program, as a path or a name to be found on the host's `PATH`.
    pub command: Option<String>,
    /// The model, in the agent's own spelling.
    pub model: Option<String>,
    /// The server to ask instead of the vendor's.
    pub base_url: Option<String>,
    /// The host's variable that holds the key; the vendor's usual one if absent.
    pub api_key_env: Option<String>,
    /// Further arguments, after the adapter's own.
    pub args: Vec<String>,
    /// Further variables; they win over the adapter's own, but for those that are Kapi's alone (see
    /// `launch::own_variable`).
    pub env: BTreeMap<String, String>,
    /// Variables of the host to pass on, within the same limits.
    pub pass_env: Vec<String>,
    /// Whether the agent may use the person's own log-in from the host's home.
    pub login: bool,
    /// The models that its runs may ask, by name or by the beginning of one before `*`; any if
    /// empty.
    pub models: Vec<String>,
    /// Whether its provider may search the web, fetch, run code and read files for it.
    pub provider_tools: bool,
}

#[cfg(test)]
mod tests {
    use super::AgentSettings;

    #[test]
    fn an_empty_table_is_the_default() {
        assert_eq!(
            toml::from_str::<AgentSettings>("").unwrap(),
            AgentSettings::default()
        );
    }

    #[test]
    fn an_unknown_key_is_named() {
        let error = toml::from_str::<AgentSettings>("modle = \"x\"").unwrap_err();
        assert!(error.to_string().contains("modle"), "{error}");
    }

    #[test]
    fn a_full_table_is_read() {
        let table = r#"
            command = "claude"
            model = "m"
            base_url = "http://127.0.0.1:1"
            api_key_env = "KEY"
            args = ["--a"]
            env = { A = "1" }
            pass_env = ["B"]
            login = true
            models = ["m", "n-*"]
            provider_tools = true
        "#;
        let settings: AgentSettings = toml::from_str(table).unwrap();
        let expected = AgentSettings {
            command: Some("claude".to_owned()),
            model: Some("m".to_owned()),
            base_url: Some("http://127.0.0.1:1".to_owned()),
            api_key_env: Some("KEY".to_owned()),
            args: vec!["--a".to_owned()],
            env: [("A".to_owned(), "1".to_owned())].into(),
            pass_env: vec!["B".to_owned()],
            login: true,
            models: vec!["m".to_owned(), "n-*".to_owned()],
            provider_tools: true,
        };
        assert_eq!(settings, expected);
    }
}
