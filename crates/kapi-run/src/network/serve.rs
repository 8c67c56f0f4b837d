//! Serving the network access of a run for as long as its sandbox lives.
//!
//! Every decision of the proxy and every event of the gateway is written down by this side; what a
//! model used is told to the engine as the provider counts it, or as an estimate where it does not.
//! Knows nothing of what runs inside.

mod cost;
mod network_log;
mod responders;
mod trouble;

use std::net::TcpListener;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use kapi_core::agent_end::ProviderFailure;
use kapi_core::failure::Failure;
use kapi_core::usage::{Doubt, Usage};
use kapi_gateway::egress::EgressLimits;
use kapi_gateway::egress::dial::system_resolve;
use kapi_gateway::egress::forward::Forward;
use kapi_gateway::egress::log::{ConnectionRecord, ConnectionVerdict};
use kapi_gateway::egress::proxy::{self, Proxy};
use kapi_gateway::model::event::{GatewayEvent, GatewayRefusal};
use kapi_gateway::model::rules::{CallRules, ProviderTools};
use kapi_gateway::model::wish::{CallAnswer, CallWish};
use kapi_gateway::model::{self, CallUsage, MeteredUsage, ModelGateway, Timeouts, UsageVerdict};
use kapi_gateway::serve::StopSignal;
use kapi_machine::watch::{Activity, EffectWatch};
use kapi_spend::rules::account;
use kapi_spend::rules::call::CallRefusal;
use kapi_spend::rules::price::Price;
use kapi_spend::rules::prices::Prices;
use kapi_sys::clock::{Clock as _, SystemClock};

use crate::failure;
use crate::gate::PermissionGate;
use crate::network::refused_connection::RefusedConnection;
use crate::network::serve::cost::Cost;
use crate::network::serve::network_log::{LogCapacity, NetworkLog};
use crate::network::serve::responders::{RunServices, translated};
use crate::network::serve::trouble::trouble_of;
use crate::network::{NetworkAccess, NetworkEndpoint};
use crate::run_dir::RunDir;
use crate::spending::calls::{CallBook, CallStart};
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
const AN_ESTIMATE: &str = "at least one model call did not report all of its usage; it is counted \
                           at the most it can have used";
/// How long the answers of a run that has ended are read on, so that their usage is known.
const SETTLE_MAX: Duration = Duration::from_secs(5);
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
    /// What may be asked of models.
    rules: CallRules,
    /// The model calls under way.
    calls: CallBook<'a>,
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

/// Returns under whose prices the models of a run are asked.
fn provider_of(access: &NetworkAccess) -> String {
    let url = access
        .upstream
        .as_ref()
        .map(|upstream| upstream.base_url.as_str());
    account::ModelProvider::At(url.unwrap_or_default()).provider()
}

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
            rules: CallRules {
                models: Vec::new(),
                provider_tools: ProviderTools::TakenOut,
            },
            calls: CallBook::new(watch, None, provider_of(access)),
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

    /// Counts money too, by these prices, and keeps models to these rules.
    #[must_use]
    pub fn with_models(mut self, prices: &'a Prices, rules: CallRules) -> Self {
        self.calls = CallBook::new(self.watch, Some(prices), provider_of(self.access));
        self.rules = rules;
        self
    }

    /// Runs something while the endpoints are served, and closes them when it has ended.
    pub fn open<T>(
        &self,
        run: impl FnOnce(&mut OnListeners<'_>) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let stop = StopSignal::new().map_err(|error| failure::plain(&error))?;
        let hang_up = StopSignal::new().map_err(|error| failure::plain(&error))?;
        // Apart from the other, for the network also closes when it cannot be recorded.
        let network = StopSignal::new().map_err(|error| failure::plain(&error))?;
        let on_call = |wish: &CallWish<'_>| self.begin(wish, &stop);
        let on_usage = |metered: &CallUsage<'_>| self.used(metered, &stop);
        let on_event = |event: GatewayEvent| self.note_event(&event);
        let on_record = |record: ConnectionRecord| self.note_record(&record, &network);
        let watch = model::GatewayWatch {
            on_call: &on_call,
            on_end: &|call| self.calls.end(call),
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
            hang_up: &hang_up,
            network: &network,
        };
        let result = thread::scope(|scope| {
            if let (Some(gateway), Some(listener)) = (hall.gateway, self.access.on_host()) {
                scope.spawn(|| drop(gateway.serve(listener, &stop, &hang_up)));
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
            // What is not known of an answer counts at its most, so its end is worth a moment.
            self.calls.settle(SETTLE_MAX);
            hang_up.raise();
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
            rules: self.rules.clone(),
            connections_max: CONNECTIONS_MAX,
        };
        ModelGateway::new(config, watch)
            .map(|gateway| Some(gateway.through(self.access.host_proxy.clone())))
            .map_err(|error| failure::plain(&error))
    }

    /// Lets a model call be sent, once there is room for it.
    fn begin(&self, wish: &CallWish<'_>, stop: &StopSignal) -> CallAnswer {
        let is_stopped = || stop.is_raised();
        let start = self
            .calls
            .begin(wish.call, wish.model, &wish.bounds, &is_stopped);
        if !matches!(start, CallStart::Go { .. }) {
            self.await_end(stop);
        }
        match start {
            CallStart::Go { output_max } => CallAnswer::Go { output_max },
            CallStart::Stopped => CallAnswer::Stopped,
            CallStart::Refused(CallRefusal::TooLittle) => CallAnswer::Refused {
                why: "the rest of this run's budget is too small for another model call".to_owned(),
            },
            CallStart::Refused(CallRefusal::Unpriced) => CallAnswer::Refused {
                why: "this model has no known price, and this run has a limit in US dollars"
                    .to_owned(),
            },
        }
    }

    /// Passes on what a model used; a run that is being stopped gets no further answer.
    fn used(&self, metered: &CallUsage<'_>, stop: &StopSignal) -> UsageVerdict {
        (self.watch.notice)(Activity::Used(self.priced(metered)));
        if matches!(metered.used, MeteredUsage::Unknown { .. }) {
            self.tell_always(AN_ESTIMATE);
        }
        // Once no agent is served any longer, answers are only read to count them.
        if stop.is_raised() {
            return UsageVerdict::GoOn;
        }
        if !self.watch.cancel.is_raised() {
            return UsageVerdict::GoOn;
        }
        self.await_end(stop);
        UsageVerdict::Spent
    }

    /// Waits a moment for a run that is being cancelled: its sandbox is about to be ended, and an agent
    /// that saw an error first would write it into its session, which could then not be resumed.
    fn await_end(&self, stop: &StopSignal) {
        for _ in 0..END_LOOKS_MAX {
            if stop.is_raised() || !self.watch.cancel.is_raised() {
                break;
            }
            thread::sleep(END_LOOK);
        }
    }

    /// Returns a use with what it costs beyond what was reported, and with what of it is not certain.
    fn priced(&self, metered: &CallUsage<'_>) -> Usage {
        let price = self.calls.price(metered.model);
        // What is not known is charged at its most: hanging up must not be cheaper.
        let (usage, cost) = match metered.used {
            MeteredUsage::Tokens(usage) => (usage, price.map(|price| price.cost(&metered.counts))),
            MeteredUsage::Unknown { estimate, .. } => {
                let most = |price: Price| price.most(estimate.input_tokens, estimate.output_tokens);
                (estimate, price.map(most))
            }
        };
        let usd_micros = self.cost().priced(cost);
        let mut doubt = Doubt::NONE;
        if matches!(metered.used, MeteredUsage::Unknown { .. }) {
            doubt.calls = 1;
            doubt.tokens = usage.tokens();
            doubt.usd_micros = usd_micros.unwrap_or(0).min(cost.unwrap_or(0));
        }
        if price.is_none() && self.calls.is_new_unpriced(metered.call) {
            doubt.unpriced_calls = 1;
        }
        Usage {
            usd_micros,
            doubt,
            ..usage
        }
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
        let mut line = serde_json::to_value(event).unwrap_or_default();
        let what = line.to_string();
        line["at_ms"] = SystemClock.now_ms().into();
        line["kind"] = "model".into();
        if matches!(
            event,
            GatewayEvent::Refused { .. } | GatewayEvent::ModelRefused { .. }
        ) {
            self.log().refused(what, line);
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
            GatewayEvent::ModelRefused { model } => self.notify(&format!(
                "the agent asked the model {model}, which this run may not ask; name it with \
                 `--model` or in the agent's `models`"
            )),
            GatewayEvent::TakenOut { parts, .. } => {
                let text = format!("taken out of model requests: {}", parts.join(", "));
                self.notify(&text);
            }
            GatewayEvent::Call { .. }
            | GatewayEvent::UsageAsked { .. }
            | GatewayEvent::Lowered { .. }
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

#[cfg(test)]
mod tests;
