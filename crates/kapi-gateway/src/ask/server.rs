//! The server that is asked: where it is, how it speaks, and the key for it.
//!
//! Knows no models; which of them there are only the server can say.

use std::path::PathBuf;

use crate::egress::host_proxy::HostProxy;
use crate::model::dialect::Dialect;
use crate::model::route::{AuthStyle, BaseUrl, Upstream};
use crate::model::secret::Secret;

/// The ways of speaking in which one question can be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Api {
    /// Anthropic Messages.
    Anthropic,
    /// Chat Completions, as OpenAI, Ollama, LM Studio, vLLM and most others speak it.
    Chat,
    /// Gemini `generateContent`.
    Gemini,
}

/// A server that is asked.
#[derive(Debug, Clone)]
pub struct Server {
    /// How it speaks.
    pub api: Api,
    /// Its address: the vendor's own, or another that speaks the same.
    pub base_url: BaseUrl,
    /// The key; `None` for a server that wants none.
    pub key: Option<Secret>,
    /// A file of authorities to believe beside the system's.
    pub extra_authorities: Option<PathBuf>,
    /// The proxies that this host needs to get out.
    pub host_proxy: Option<HostProxy>,
}

impl Api {
    /// Returns the address of the vendor whose way of speaking it is.
    #[must_use]
    pub const fn vendor_url(self) -> &'static str {
        match self {
            Self::Anthropic => "https://api.anthropic.com",
            Self::Chat => "https://api.openai.com/v1",
            Self::Gemini => "https://generativelanguage.googleapis.com",
        }
    }

    pub(crate) const fn dialect(self) -> Dialect {
        match self {
            Self::Anthropic => Dialect::Anthropic,
            Self::Chat => Dialect::Chat,
            Self::Gemini => Dialect::Gemini,
        }
    }
}

impl Server {
    pub(crate) fn upstream(&self) -> Upstream {
        let auth = match (&self.key, self.api) {
            (None, _) => AuthStyle::None,
            (Some(_), Api::Anthropic) => AuthStyle::XApiKey,
            (Some(_), Api::Chat) => AuthStyle::Bearer,
            (Some(_), Api::Gemini) => AuthStyle::XGoogApiKey,
        };
        Upstream {
            base_url: self.base_url.clone(),
            dialect: self.api.dialect(),
            auth,
            key: self.key.clone(),
        }
    }
}
