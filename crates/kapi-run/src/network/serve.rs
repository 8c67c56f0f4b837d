//! Serving the network access of a run for as long as its sandbox lives.
//!
//! Every decision of the proxy and every event of the gateway is written down by this side; what a
//! model used is told to the engine as the provider counts it, or as an estimate where it does not.
//! Knows nothing of what runs inside.

mod cost;
mod network_log;

use std::net::TcpListener;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, Scope};
use std::time::Duration;

use kapi_agent::launch::upstream;
use kapi_core::agent_end::{ProviderFailure, ProviderFailureKind};
use kapi_core::failure::Failure;
use kapi_core::usage::Usage;
use kapi_gateway::egress::EgressLimits;
use kapi_gateway::egress::dial::system_resolve;
use kapi_gateway::egress::forward::Forward;
use kapi_gateway::egress::log::{ConnectionRecord, ConnectionVerdict};
use kapi_gateway::egress::proxy::{self, Proxy};
use kapi_gateway::model::dialect::ModelDialect;
use kapi_gateway::model::route::{AuthStyle, BaseUrl, ProviderRoute};
use kapi_gateway::model::secret::ProviderKey;
use kapi_gateway::model::{
    self, CallUsage, GatewayEvent, GatewayRefusal, MeteredUsage, ModelGateway, Timeouts,
    UsageVerdict, quota,
};
use kapi_gateway::serve::StopSignal;
use kapi_machine::watch::{Activity, EffectWatch};
use kapi_spend::rules::account;
use kapi_spend::rules::day::Day;
use kapi_spend::rules::prices::Prices;
use kapi_sys::clock::{Clock as _, SystemClock};

use crate::failure;
use crate::gate::PermissionGate;
use crate::network::refused_connection::RefusedConnection;
use crate::network::serve::cost::Cost;
use crate::network::serve::network_log::{LogCapacity, NetworkLog};
use crate::network::{NetworkAccess, NetworkEndpoint};
use crate::run_dir::RunDir;
use crate::tool_endpoint::ToolEndpoint;

/// How often it is looked whether a sandbox that is to be ended has ended.
const END_LOOK: Duration = Duration::from_millis(20);
/// How often at most: an answer is not held for ever.
const END_LOOKS_MAX: u32 = 150;
/// Connections of an agent to its gateway at once.
const CONNECTIONS_MAX: usize = 128;
/// How many refused hosts are reported to the person; the log has all.
const REPORTED_MAX: usize = 20;
/// The longest text of a host in the log; names are shorter.
const HOST_MAX: usize = 255;
/// Reported once, whatever else was reported.
const AN_ESTIMATE: &str = "the usage of at least one model call is an estimate";
/// Reported once, whatever else was reported.
const LOG_FULL: &str = "the network is closed: the connection log is full";

/// The network access of one run, what serves it, and who hears of its use.
pub struct NetworkServices<'a> {
    /// What may be reached.
    pub access: &'a NetworkAccess,
    /// Who hears of its use, and stops it.
    pub watch: &'a EffectWatch<'a>,
    /// Where the agent's tools are answered, if it has any.
    pub(crate) endpoint: Option<&'a ToolEndpoint<'a>>,
    /// Where it is asked before the agent's tools run, if it is.
    pub(crate) gate: Option<&'a PermissionGate<'a>>,
    /// What models cost; without them the gateway counts tokens alone.
    pub(crate) prices: Option<&'a Prices>,
    cost: Mutex<Cost>,
    log: Mutex<NetworkLog>,
    /// What was reported already, so that an agent that tries again and again does not repeat it.
    noted: Mutex<Vec<String>>,
    /// What is reported however much was reported before.
    noted_always: Mutex<Vec<&'static str>>,
    /// Why the provider's last answer did not come, if it did not.
    trouble: Mutex<Option<ProviderFailure>>,
}

/// Takes the listeners that were made inside.
pub(crate) type OnListeners<'a> = dyn FnMut(Vec<TcpListener>) + Send + 'a;

impl<'a> NetworkServices<'a> {
    /// Opens the log; nothing is served yet.
    pub fn new(
        access: &'a NetworkAccess,
        watch: &'a EffectWatch<'a>,
        run_dir: &RunDir,
    ) -> Result<Self, Failure> {
        Ok(Self {
            access,
            watch,
            endpoint: None,
            gate: None,
            prices: None,
            cost: Mutex::new(Cost::default()),
            log: Mutex::new(NetworkLog::new(
                run_dir.log("network.jsonl")?,
                LogCapacity::usual(),
            )),
            noted: Mutex::new(Vec::new()),
            noted_always: Mutex::new(Vec::new()),
            trouble: Mutex::new(None),
        })
    }

    /// Runs something while the endpoints are served, and closes them when it has ended.
    pub fn open<T>(
        &self,
        run: impl FnOnce(&mut OnListeners<'_>) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let stop = StopSignal::new().map_err(|error| failure::plain(&error))?;
        // Apart from the other, for the network also closes when it cannot be recorded.
        let network = StopSignal::new().map_err(|error| failure::plain(&error))?;
        let on_usage = |metered: &CallUsage<'_>| self.used(metered, &stop);
        let on_event = |event: GatewayEvent| self.note_event(&event);
        let on_record = |record: ConnectionRecord| self.note_record(&record, &network);
        let watch = model::GatewayWatch {
            on_usage: &on_usage,
            on_event: &on_event,
        };
        let gateway = self.gateway(watch)?;
        let proxy = self.access.policy.as_ref().map(|policy| {
            let config = proxy::ProxyConfig {
                policy: policy.clone(),
                resolve: system_resolve(),
                limits: EgressLimits::usual(),
            };
            Proxy::new(config, &SystemClock, &on_record).through(self.access.host_proxy.clone())
        });
        let forwards: Vec<Option<Forward<'_>>> = self
            .access
            .kinds()
            .map(|socket| match socket {
                NetworkEndpoint::Forward(port) => {
                    let limits = EgressLimits::usual();
                    Some(Forward::new(port, limits, &SystemClock, &on_record))
                }
                NetworkEndpoint::Model | NetworkEndpoint::Proxy => None,
            })
            .collect();
        let hall = RunServices {
            access: self.access,
            gateway: gateway.as_ref(),
            proxy: proxy.as_ref(),
            forwards: &forwards,
            stop: &stop,
            network: &network,
        };
        let result = thread::scope(|scope| {
            if let (Some(gateway), Some(listener)) = (hall.gateway, self.access.on_host()) {
                scope.spawn(|| drop(gateway.serve(listener, &stop)));
            }
            if let Some(endpoint) = self.endpoint {
                scope.spawn(|| endpoint.serve(&stop));
            }
            if let Some(gate) = self.gate {
                scope.spawn(|| gate.serve(&stop));
            }
            let result = run(&mut |listeners| hall.attend(scope, listeners));
            stop.raise();
            network.raise();
            result
        });
        self.log().finish();
        result
    }

    fn gateway<'g>(
        &self,
        watch: model::GatewayWatch<'g>,
    ) -> Result<Option<ModelGateway<'g>>, Failure> {
        let Some(upstream) = &self.access.upstream else {
            return Ok(None);
        };
        let config = model::GatewayConfig {
            upstream: translated(upstream)?,
            placeholder: self.access.gateway().placeholder.to_owned(),
            timeouts: Timeouts::usual(),
            extra_authorities: None,
            cassette: self.access.cassette.clone(),
            connections_max: CONNECTIONS_MAX,
        };
        ModelGateway::new(config, watch)
            .map(|gateway| Some(gateway.through(self.access.host_proxy.clone())))
            .map_err(|error| failure::plain(&error))
    }

    /// Passes on what a model used; a run that is being stopped gets no further answer.
    fn used(&self, metered: &CallUsage<'_>, stop: &StopSignal) -> UsageVerdict {
        let usd_micros = self.price(metered);
        let used = |usage: Usage| {
            Activity::Used(Usage {
                usd_micros,
                ..usage
            })
        };
        match metered.used {
            MeteredUsage::Tokens(usage) => (self.watch.notice)(used(usage)),
            // What is not known is charged at its most: hanging up must not be cheaper.
            MeteredUsage::Unknown { estimate, .. } => {
                (self.watch.notice)(used(estimate));
                self.tell_always(AN_ESTIMATE);
            }
        }
        if !self.watch.cancel.is_raised() {
            return UsageVerdict::GoOn;
        }
        // The sandbox is about to be ended. An agent that saw an error first would write it into
        // its session, which could then not be resumed.
        for _ in 0..END_LOOKS_MAX {
            if stop.is_raised() {
                break;
            }
            thread::sleep(END_LOOK);
        }
        UsageVerdict::Spent
    }

    /// Returns what a use costs beyond what was reported, by the price list.
    fn price(&self, metered: &CallUsage<'_>) -> Option<u64> {
        let (prices, upstream) = (self.prices?, self.access.upstream.as_ref()?);
        let provider = account::ModelProvider::At(&upstream.base_url).provider();
        let today = Day::of_ms(SystemClock.now_ms());
        let cost = prices.cost(&provider, metered.model, today, &metered.counts);
        self.cost().priced(cost)
    }

    /// Returns what an agent's own report adds to what the gateway counted: no tokens, and the
    /// cost as far as the gateway knows no better. Without a gateway it is all there is.
    pub(crate) fn beside_gateway(&self, usage: Usage) -> Usage {
        if self.access.upstream.is_none() {
            return usage;
        }
        let reported = usage.usd_micros;
        Usage {
            usd_micros: reported.and_then(|micros| self.cost().reported(micros)),
            ..Usage::default()
        }
    }

    fn cost(&self) -> MutexGuard<'_, Cost> {
        self.cost.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns why the provider's last answer did not come: seen here, whatever a CLI makes of it.
    pub(crate) fn trouble(&self) -> Option<ProviderFailure> {
        self.trouble
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn note_event(&self, event: &GatewayEvent) {
        let line = serde_json::json!({"model": format!("{event:?}")});
        if matches!(event, GatewayEvent::Refused { .. }) {
            self.log().refused(line.to_string(), line);
        } else {
            self.log().model(&line);
        }
        if let Some(trouble) = trouble_of(event) {
            *self.trouble.lock().unwrap_or_else(PoisonError::into_inner) = trouble;
        }
        match event {
            GatewayEvent::Stalled { .. } => self.notify("the model's provider stopped responding"),
            GatewayEvent::Unreachable { why, .. } => {
                self.notify(&format!("the model's provider cannot be reached: {why}"));
            }
            GatewayEvent::Refused {
                why: GatewayRefusal::Key | GatewayRefusal::NotAllowed,
            } => self.notify("a request to the model gateway was refused; see the log"),
            GatewayEvent::Call { .. }
            | GatewayEvent::UsageAsked { .. }
            | GatewayEvent::Answered { .. }
            | GatewayEvent::Used { .. }
            | GatewayEvent::Unmetered { .. }
            | GatewayEvent::Refused { .. }
            | GatewayEvent::Cut { .. }
            | GatewayEvent::Retried { .. }
            | GatewayEvent::BrokenOff { .. }
            | GatewayEvent::AgentLeft { .. }
            | GatewayEvent::RecordingStopped { .. }
            | GatewayEvent::ReplayDiffers { .. }
            | GatewayEvent::ReplayMissed { .. } => {}
        }
    }

    /// Writes a decision down; where what was let through has no room, the network closes.
    fn note_record(&self, record: &ConnectionRecord, network: &StopSignal) {
        let host = record.host.get(..HOST_MAX).unwrap_or(&record.host);
        let (decision, reason) = match &record.verdict {
            ConnectionVerdict::Allowed { rule, cut } => ("allowed", cut.as_ref().unwrap_or(rule)),
            ConnectionVerdict::Denied { reason } => ("denied", reason),
            ConnectionVerdict::Failed { reason, .. } => ("failed", reason),
        };
        let line = serde_json::json!({
            "at_ms": record.at_ms,
            "kind": format!("{:?}", record.kind).to_lowercase(),
            "host": host,
            "port": record.port,
            "method": record.method,
            "path": record.path,
            "decision": decision,
            "reason": reason,
            "bytes_up": record.bytes_up,
            "bytes_down": record.bytes_down,
            "duration_ms": u64::try_from(record.duration.as_millis()).unwrap_or(u64::MAX),
        });
        let is_denied = matches!(record.verdict, ConnectionVerdict::Denied { .. });
        // What was cut off after bytes had gone out was let through all the same.
        if is_denied && record.bytes_up == 0 && record.bytes_down == 0 {
            let what = format!("{:?} {host}:{}", record.kind, record.port);
            self.log().refused(what, line);
        } else {
            let access = self.log().allowed(&line);
            if access == network_log::NetworkDecision::MustClose {
                network.raise();
                self.tell_always(LOG_FULL);
            }
        }
        if is_denied {
            let refusal = RefusedConnection {
                host: format!("{host}:{}", record.port),
                reason: reason.clone(),
            };
            self.notify(&refusal.to_string());
        }
    }

    fn log(&self) -> MutexGuard<'_, NetworkLog> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells the person something that no flood of other things may hide, once.
    fn tell_always(&self, text: &'static str) {
        let mut noted = self
            .noted_always
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if noted.contains(&text) {
            return;
        }
        noted.push(text);
        let text = text.to_owned();
        (self.watch.notice)(Activity::Note { text });
    }

    /// Tells the person something, once.
    fn notify(&self, text: &str) {
        let mut noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
        if noted.len() >= REPORTED_MAX || noted.iter().any(|known| known == text) {
            return;
        }
        noted.push(text.to_owned());
        let text = text.to_owned();
        (self.watch.notice)(Activity::Note { text });
    }
}

/// Returns what an event says of the provider, if it says anything: that it is well, or why not.
fn trouble_of(event: &GatewayEvent) -> Option<Option<ProviderFailure>> {
    let failure = |kind, message: String| {
        Some(Some(ProviderFailure {
            kind,
            message,
            retry_after_ms: None,
        }))
    };
    match event {
        GatewayEvent::Answered {
            status,
            retry_after_ms,
            ..
        } if quota::is_used_up(*status, *retry_after_ms) => Some(Some(ProviderFailure {
            kind: ProviderFailureKind::RateLimited,
            message: format!("{status}: the quota is used up for now"),
            retry_after_ms: *retry_after_ms,
        })),
        GatewayEvent::Answered { .. } => Some(None),
        GatewayEvent::Unreachable { why, .. } => {
            failure(ProviderFailureKind::Unreachable, why.clone())
        }
        GatewayEvent::Stalled { .. } => failure(
            ProviderFailureKind::Unreachable,
            "the provider stopped responding".to_owned(),
        ),
        GatewayEvent::BrokenOff { .. } => failure(
            ProviderFailureKind::TruncatedStream,
            "the provider cut off its answer".to_owned(),
        ),
        GatewayEvent::Call { .. }
        | GatewayEvent::UsageAsked { .. }
        | GatewayEvent::Used { .. }
        | GatewayEvent::Unmetered { .. }
        | GatewayEvent::Refused { .. }
        | GatewayEvent::Cut { .. }
        | GatewayEvent::Retried { .. }
        | GatewayEvent::AgentLeft { .. }
        | GatewayEvent::RecordingStopped { .. }
        | GatewayEvent::ReplayDiffers { .. }
        | GatewayEvent::ReplayMissed { .. } => None,
    }
}

/// Everything that answers, put together for one run.
struct RunServices<'a> {
    access: &'a NetworkAccess,
    gateway: Option<&'a ModelGateway<'a>>,
    proxy: Option<&'a Proxy<'a>>,
    forwards: &'a [Option<Forward<'a>>],
    /// Ends the model's gateway.
    stop: &'a StopSignal,
    /// Ends the proxy and the forwards.
    network: &'a StopSignal,
}

impl<'a> RunServices<'a> {
    /// Serves each listener with what belongs behind it, on threads of the run.
    fn attend<'scope>(&self, scope: &'scope Scope<'scope, '_>, listeners: Vec<TcpListener>)
    where
        'a: 'scope,
    {
        let kinds = self.access.kinds().zip(self.forwards);
        for (listener, (socket, forward)) in listeners.into_iter().zip(kinds) {
            let keeper = self.keeper(socket, forward.as_ref());
            let stop = match socket {
                NetworkEndpoint::Model => self.stop,
                NetworkEndpoint::Proxy | NetworkEndpoint::Forward(_) => self.network,
            };
            scope.spawn(move || keeper.serve(&listener, stop));
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
    fn serve(self, listener: &TcpListener, stop: &StopSignal) {
        let served = match self {
            Self::Model(gateway) => gateway.serve(listener, stop),
            Self::Proxy(proxy) => proxy.serve(listener, stop),
            Self::Forward(forward) => forward.serve(listener, stop),
            Self::Nobody => Ok(()),
        };
        drop(served);
    }
}

/// Puts an agent's provider into the gateway's words.
fn translated(upstream: &upstream::AgentUpstream) -> Result<ProviderRoute, Failure> {
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

#[cfg(test)]
mod tests;
