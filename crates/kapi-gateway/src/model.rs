//! How a sandbox reaches its model: a gateway that holds the key and counts what is used.
//!
//! The agent inside knows a placeholder and an address on its own loopback. Knows no goals and no
//! prices: what may be used is decided by whoever watches.

pub mod cassette;
pub mod dialect;
pub mod event;
pub mod meter;
pub mod route;
pub mod rules;
pub mod secret;
pub mod trust;
pub mod wire;
pub mod wish;

mod admission;
mod call;
mod drain;
mod estimate;
mod event_lines;
mod exchange;
mod grant;
mod members;
mod output_limit;
mod pick;
pub(crate) mod provider;
mod provider_tools;
pub mod quota;
mod relay;

use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use kapi_core::usage::Usage;
use kapi_spend::rules::tokens::TokenCounts;

use crate::egress::host_proxy::HostProxy;
use crate::model::cassette::recorder::{RecordError, Recorder};
use crate::model::cassette::replay::Replay;
use crate::model::cassette::{Cassette, CassetteError};
use crate::model::event::GatewayEvent;
use crate::model::meter::UnknownUsage;
use crate::model::provider::ProviderClient;
use crate::model::route::{AuthStyle, ProviderRoute};
use crate::model::rules::CallRules;
use crate::model::trust::TrustError;
use crate::model::wish::{CallAnswer, CallWish};
use crate::serve::{self, ServeLimits, StopSignal};

/// Why a gateway cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum GatewayError {
    /// The provider wants a key and there is none.
    #[error("make the gateway: the provider at {host} needs a key")]
    NoKey {
        /// The provider's host.
        host: String,
    },
    /// A placeholder that any request could have.
    #[error("make the gateway: the placeholder is empty or not plain ASCII")]
    Placeholder,
    /// There is nobody to believe about the provider.
    #[error(transparent)]
    Trust(#[from] TrustError),
    /// The cassette cannot be used.
    #[error(transparent)]
    Cassette(#[from] CassetteError),
}

/// How long the gateway waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// For a connection to the provider, its name and TLS included.
    pub connect: Duration,
    /// For the first byte of an answer, once the request was sent.
    pub first_byte: Duration,
    /// For the next bytes of an answer that has begun, and for the provider to read.
    pub silence: Duration,
    /// For the end of an answer whose agent went away, so that its usage is still counted.
    pub drain: Duration,
    /// For an agent that sends a request, or does not read its answer.
    pub agent: Duration,
}

/// What a gateway is made of.
#[derive(Debug)]
pub struct GatewayConfig {
    /// The provider.
    pub upstream: ProviderRoute,
    /// What agents send in place of a key.
    pub placeholder: String,
    /// How long to wait.
    pub timeouts: Timeouts,
    /// A file of authorities to believe beside the system's.
    pub extra_authorities: Option<PathBuf>,
    /// Whether traffic is recorded or replayed.
    pub cassette: Option<Cassette>,
    /// What may be asked of a model.
    pub rules: CallRules,
    /// Connections from agents that are served at once.
    pub connections_max: usize,
}

/// What may happen after something was used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UsageVerdict {
    /// The run goes on.
    GoOn,
    /// The budget is spent: streams end at their next event and further calls are refused.
    Spent,
}

/// What a call has used since its last report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MeteredUsage {
    /// So many tokens more, as the provider counts.
    Tokens(Usage),
    /// The call has ended and used more than was reported; the exact amount is unknown.
    Unknown {
        /// Why it is not exactly known.
        why: UnknownUsage,
        /// An upper bound of what it used beyond the reports.
        estimate: Usage,
    },
}

/// A part of a call's usage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallUsage<'a> {
    /// The call's number, counted from 1.
    pub call: u64,
    /// The model that the request named.
    pub model: &'a str,
    /// What was used.
    pub used: MeteredUsage,
    /// The same by what each kind of token costs; where it is an estimate, nothing came from a
    /// cache.
    pub counts: TokenCounts,
}

/// Who is told what happens. Called from every connection's thread, also at once.
#[derive(Clone, Copy)]
pub struct GatewayWatch<'a> {
    /// Is asked before each model call, and may let it wait.
    pub on_call: &'a (dyn Fn(&CallWish<'_>) -> CallAnswer + Sync),
    /// Is told the number of each call that was let through, once all of its use was told.
    pub on_end: &'a (dyn Fn(u64) + Sync),
    /// Is told every use as soon as it is known, and decides.
    pub on_usage: &'a (dyn Fn(&CallUsage<'_>) -> UsageVerdict + Sync),
    /// Is told everything.
    pub on_event: &'a (dyn Fn(GatewayEvent) + Sync),
}

/// What went through a gateway so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct GatewayTotals {
    /// Model calls that were sent on.
    pub n_calls: u64,
    /// Requests that were refused.
    pub n_refused: u64,
    /// Model calls whose usage is not exactly known.
    pub n_unmetered: u64,
    /// Requests that the provider let stall.
    pub n_stalled: u64,
    /// Everything that was counted.
    pub usage: Usage,
    /// What else was used at most, by the calls whose usage is not exactly known.
    pub estimated: Usage,
}

/// The gateway of one run to one provider.
pub struct ModelGateway<'a> {
    upstream: ProviderRoute,
    placeholder: String,
    timeouts: Timeouts,
    connections_max: usize,
    source: AnswerSource,
    recorder: Option<Recorder>,
    rules: CallRules,
    watch: GatewayWatch<'a>,
    n_requests: AtomicU64,
    /// Bytes of request bodies that are held, of all connections.
    held_bytes: AtomicUsize,
    /// Answers that are read on although their agent went away.
    n_drains: AtomicUsize,
    is_spent: AtomicBool,
    totals: Mutex<GatewayTotals>,
}

/// When a connection ends.
#[derive(Clone, Copy)]
pub(crate) struct Stops<'a> {
    /// No agent is served any longer.
    pub(crate) stop: &'a StopSignal,
    /// No provider is listened to any longer.
    pub(crate) hang_up: &'a StopSignal,
}

/// Where answers come from.
enum AnswerSource {
    Provider(Box<ProviderClient>),
    Replay(Replay),
}

impl Timeouts {
    /// Returns limits that leave a thinking model its time and end a dead one.
    #[must_use]
    pub const fn usual() -> Self {
        Self {
            connect: Duration::from_secs(15),
            first_byte: Duration::from_secs(300),
            silence: Duration::from_secs(180),
            drain: Duration::from_secs(600),
            agent: Duration::from_secs(300),
        }
    }
}

impl<'a> ModelGateway<'a> {
    /// Makes a gateway; nothing is connected yet, but a cassette is opened.
    pub fn new(config: GatewayConfig, watch: GatewayWatch<'a>) -> Result<Self, GatewayError> {
        let GatewayConfig {
            upstream,
            placeholder,
            timeouts,
            extra_authorities,
            cassette,
            rules,
            connections_max,
        } = config;
        if placeholder.is_empty() || !placeholder.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(GatewayError::Placeholder);
        }
        let (replayed, recorder) = match cassette {
            None => (None, None),
            Some(Cassette::Replay { path }) => (Some(Replay::load(&path)?), None),
            Some(Cassette::Record { path, bytes_max }) => {
                (None, Some(Recorder::create(&path, bytes_max)?))
            }
        };
        let needs_key = !matches!(upstream.auth, AuthStyle::None | AuthStyle::AgentsOwn);
        if replayed.is_none() && needs_key && upstream.key.is_none() {
            return Err(GatewayError::NoKey {
                host: upstream.base_url.authority(),
            });
        }
        let source = match replayed {
            Some(replay) => AnswerSource::Replay(replay),
            None => {
                let tls = trust::client_config(extra_authorities.as_deref())?;
                let provider = ProviderClient::new(upstream.base_url.clone(), tls, timeouts);
                AnswerSource::Provider(Box::new(provider))
            }
        };
        Ok(Self {
            upstream,
            placeholder,
            timeouts,
            connections_max,
            source,
            recorder,
            rules,
            watch,
            n_requests: AtomicU64::new(0),
            held_bytes: AtomicUsize::new(0),
            n_drains: AtomicUsize::new(0),
            is_spent: AtomicBool::new(false),
            totals: Mutex::new(GatewayTotals::default()),
        })
    }

    /// Goes out through the proxies that this host needs.
    #[must_use]
    pub fn through(mut self, host_proxy: Option<HostProxy>) -> Self {
        self.source = match self.source {
            AnswerSource::Provider(provider) => {
                AnswerSource::Provider(Box::new(provider.through(host_proxy)))
            }
            replay @ AnswerSource::Replay(_) => replay,
        };
        self
    }

    /// Serves agents until `stop` is raised and the last connection is closed.
    ///
    /// Answers that are under way then are read on, so that their usage is still counted, until
    /// `hang_up` is raised too.
    pub fn serve(
        &self,
        listener: &TcpListener,
        stop: &StopSignal,
        hang_up: &StopSignal,
    ) -> Result<(), serve::ServeError> {
        let limits = ServeLimits {
            connections_max: self.connections_max,
        };
        let handle = |agent: &TcpStream| exchange::serve(self, agent, Stops { stop, hang_up });
        serve::serve(listener, stop, limits, &handle)
    }

    /// Refuses every further call, as if its budget were spent.
    pub fn spend_out(&self) {
        self.is_spent.store(true, Ordering::SeqCst);
    }

    /// Returns what went through so far.
    #[must_use]
    pub fn totals(&self) -> GatewayTotals {
        *self.totals.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn is_spent(&self) -> bool {
        self.is_spent.load(Ordering::SeqCst)
    }

    /// Counts an event and passes it on.
    fn notify(&self, event: GatewayEvent) {
        let count = |change: &dyn Fn(&mut GatewayTotals)| {
            change(&mut self.totals.lock().unwrap_or_else(PoisonError::into_inner));
        };
        match &event {
            GatewayEvent::Call { .. } => count(&|totals| totals.n_calls += 1),
            GatewayEvent::Refused { .. } => count(&|totals| totals.n_refused += 1),
            GatewayEvent::Unmetered { estimate, .. } => count(&|totals| {
                totals.n_unmetered += 1;
                totals.estimated.add(estimate);
            }),
            GatewayEvent::Stalled { .. } => count(&|totals| totals.n_stalled += 1),
            GatewayEvent::Used { usage, .. } => count(&|totals| totals.usage.add(usage)),
            GatewayEvent::UsageAsked { .. }
            | GatewayEvent::Lowered { .. }
            | GatewayEvent::TakenOut { .. }
            | GatewayEvent::ModelRefused { .. }
            | GatewayEvent::Answered { .. }
            | GatewayEvent::Cut { .. }
            | GatewayEvent::Retried { .. }
            | GatewayEvent::Unreachable { .. }
            | GatewayEvent::BrokenOff { .. }
            | GatewayEvent::AgentLeft { .. }
            | GatewayEvent::RecordingStopped { .. }
            | GatewayEvent::ReplayDiffers { .. }
            | GatewayEvent::ReplayMissed { .. } => {}
        }
        (self.watch.on_event)(event);
    }

    /// Tells what a call used, as the provider counts, and takes the verdict on it.
    fn meter_tokens(&self, call: u64, model: &str, counts: TokenCounts) {
        self.tell_used(&CallUsage {
            call,
            model,
            used: MeteredUsage::Tokens(counts.usage(None)),
            counts,
        });
    }

    /// Tells what a call used beyond what its answer told, and takes the verdict on it.
    fn meter_unknown(&self, call: u64, model: &str, why: UnknownUsage, estimate: Usage) {
        self.tell_used(&CallUsage {
            call,
            model,
            used: MeteredUsage::Unknown { why, estimate },
            counts: TokenCounts::of_usage(&estimate),
        });
    }

    fn tell_used(&self, metered: &CallUsage<'_>) {
        let CallUsage { call, used, .. } = *metered;
        match (self.watch.on_usage)(metered) {
            UsageVerdict::GoOn => {}
            UsageVerdict::Spent => self.spend_out(),
        }
        self.notify(match used {
            MeteredUsage::Tokens(usage) => GatewayEvent::Used { call, usage },
            MeteredUsage::Unknown { why, estimate } => GatewayEvent::Unmetered {
                call,
                why,
                estimate,
            },
        });
    }

    /// Records something where traffic is recorded.
    fn record(&self, write: &dyn Fn(&Recorder) -> Result<(), RecordError>) {
        if let Some(recorder) = &self.recorder
            && let Err(error) = write(recorder)
        {
            self.notify(GatewayEvent::RecordingStopped {
                why: error.to_string(),
            });
        }
    }
}
