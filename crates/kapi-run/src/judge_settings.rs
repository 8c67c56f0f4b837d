//! What a person's configuration says of a provider of judging models.

use kapi_gateway::ask::server::ModelApi;

/// What a person says of one provider; everything is optional for a known one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProviderSettings {
    /// How its server speaks.
    pub api: Option<ModelApi>,
    /// The server, instead of the vendor's.
    pub base_url: Option<String>,
    /// The host's variable that holds the key.
    pub api_key_env: Option<String>,
}
