//! Who answers at which endpoint of a run.
//!
//! Each listener gets a thread of the run; what is answered is the business of those who do.

use std::net::TcpListener;
use std::thread::Scope;

use kapi_agent::launch::upstream;
use kapi_core::failure::Failure;
use kapi_gateway::egress::forward::Forward;
use kapi_gateway::egress::proxy::Proxy;
use kapi_gateway::model::ModelGateway;
use kapi_gateway::model::dialect::ModelDialect;
use kapi_gateway::model::route::{AuthStyle, BaseUrl, ProviderRoute};
use kapi_gateway::model::secret::ProviderKey;
use kapi_gateway::serve::StopSignal;

use crate::failure;
use crate::network::{NetworkAccess, NetworkEndpoint};

/// Everything that answers, put together for one run.
pub(super) struct RunServices<'a> {
    pub(super) access: &'a NetworkAccess,
    pub(super) gateway: Option<&'a ModelGateway<'a>>,
    pub(super) proxy: Option<&'a Proxy<'a>>,
    pub(super) forwards: &'a [Option<Forward<'a>>],
    /// Ends the model's gateway.
    pub(super) stop: &'a StopSignal,
    /// Ends what the gateway still reads from the provider.
    pub(super) hang_up: &'a StopSignal,
    /// Ends the proxy and the forwards.
    pub(super) network: &'a StopSignal,
}

impl<'a> RunServices<'a> {
    /// Serves each listener with what belongs behind it, on threads of the run.
    pub(super) fn attend<'scope>(
        &self,
        scope: &'scope Scope<'scope, '_>,
        listeners: Vec<TcpListener>,
    ) where
        'a: 'scope,
    {
        let kinds = self.access.kinds().zip(self.forwards);
        for (listener, (socket, forward)) in listeners.into_iter().zip(kinds) {
            let keeper = self.keeper(socket, forward.as_ref());
            let stop = match socket {
                NetworkEndpoint::Model => self.stop,
                NetworkEndpoint::Proxy | NetworkEndpoint::Forward(_) => self.network,
            };
            let hang_up = self.hang_up;
            scope.spawn(move || keeper.serve(&listener, stop, hang_up));
        }
    }

    fn keeper(&self, socket: NetworkEndpoint, forward: Option<&'a Forward<'a>>) -> Responder<'a> {
        match (socket, forward) {
            (NetworkEndpoint::Model, _) => self.gateway.map_or(Responder::Nobody, Responder::Model),
            (NetworkEndpoint::Proxy, _) => self.proxy.map_or(Responder::Nobody, Responder::Proxy),
            (NetworkEndpoint::Forward(_), Some(forward)) => Responder::Forward(forward),
            (NetworkEndpoint::Forward(_), None) => Responder::Nobody,
        }
    }
}

/// Who answers at an endpoint.
#[derive(Clone, Copy)]
enum Responder<'a> {
    Model(&'a ModelGateway<'a>),
    Proxy(&'a Proxy<'a>),
    Forward(&'a Forward<'a>),
    /// An agent that asks no model has no gateway.
    Nobody,
}

impl Responder<'_> {
    /// Serves until the stop sign. A listener that fails closes its endpoint; the run goes on.
    fn serve(self, listener: &TcpListener, stop: &StopSignal, hang_up: &StopSignal) {
        let served = match self {
            Self::Model(gateway) => gateway.serve(listener, stop, hang_up),
            Self::Proxy(proxy) => proxy.serve(listener, stop),
            Self::Forward(forward) => forward.serve(listener, stop),
            Self::Nobody => Ok(()),
        };
        drop(served);
    }
}

/// Puts an agent's provider into the gateway's words.
pub(super) fn translated(upstream: &upstream::AgentUpstream) -> Result<ProviderRoute, Failure> {
    let base_url = BaseUrl::parse(&upstream.base_url).map_err(|error| failure::plain(&error))?;
    let key = upstream
        .key
        .as_deref()
        .map(ProviderKey::parse)
        .transpose()
        .map_err(|error| failure::plain(&error))?;
    let auth = match upstream.key_location {
        _ if key.is_none() => AuthStyle::None,
        upstream::KeyLocation::XApiKey => AuthStyle::XApiKey,
        upstream::KeyLocation::Bearer => AuthStyle::Bearer,
        upstream::KeyLocation::XGoogApiKey => AuthStyle::XGoogApiKey,
    };
    Ok(ProviderRoute {
        base_url,
        dialect: match upstream.dialect {
            upstream::UpstreamDialect::Anthropic => ModelDialect::Anthropic,
            upstream::UpstreamDialect::Responses => ModelDialect::Responses,
            upstream::UpstreamDialect::Chat => ModelDialect::Chat,
            upstream::UpstreamDialect::Gemini => ModelDialect::Gemini,
        },
        auth,
        key,
    })
}
