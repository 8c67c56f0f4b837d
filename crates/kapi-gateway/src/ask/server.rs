//! The server that is asked: where it is, how it speaks, and the key for it.
//!
//! Knows no models; which of them there are only the server can say.

use std::path::PathBuf;

use crate::egress::host_proxy::HostProxy;
use crate::model::dialect::ModelDialect;
use crate::model::route::{AuthStyle, BaseUrl, ProviderRoute};
use crate::model::secret::ProviderKey;

/// The ways of speaking in which one question can be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModelApi {
    /// Anthropic Messages.
    Anthropic,
    /// Chat Completions, as OpenAI, Ollama, LM Studio, vLLM and most others speak it.
    Chat,
    /// Gemini `generateContent`.
    Gemini,
}

/// A server that is asked.
#[derive(Debug, Clone)]
pub struct ModelEndpoint {
    /// How it speaks.
    pub api: ModelApi,
    /// Its address: the vendor's own, or another that speaks the same.
    pub base_url: BaseUrl,
    /// The key; `None` for a server that wants none.
    pub key: Option<ProviderKey>,
    /// A file of authorities to believe beside the system's.
    pub extra_authorities: Option<PathBuf>,
    /// The proxies that this host needs to get out.
    pub host_proxy: Option<HostProxy>,
}

impl ModelApi {
    /// Returns the address of the vendor whose way of speaking it is.
    #[must_use]
    pub const fn vendor_url(self) -> &'static str {
        match self {
            Self::Anthropic => "https://api.anthropic.com",
            Self::Chat => "https://api.openai.com/v1",
            Self::Gemini => "https://generativelanguage.googleapis.com",
        }
    }

    pub(crate) const fn dialect(self) -> ModelDialect {
        match self {
            Self::Anthropic => ModelDialect::Anthropic,
            Self::Chat => ModelDialect::Chat,
            Self::Gemini => ModelDialect::Gemini,
        }
    }
}

impl ModelEndpoint {
    pub(crate) fn upstream(&self) -> ProviderRoute {
        let auth = match (&self.key, self.api) {
            (None, _) => AuthStyle::None,
            (Some(_), ModelApi::Anthropic) => AuthStyle::XApiKey,
            (Some(_), ModelApi::Chat) => AuthStyle::Bearer,
            (Some(_), ModelApi::Gemini) => AuthStyle::XGoogApiKey,
        };
        ProviderRoute {
            base_url: self.base_url.clone(),
            dialect: self.api.dialect(),
            auth,
            key: self.key.clone(),
        }
    }
}
