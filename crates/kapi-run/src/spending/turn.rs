//! What a turn is booked as, and what it may cost as far as anybody knows beforehand.
//!
//! Names come from the contract and the person's settings; what model really answered is seen only
//! later. Knows no ledger.

use kapi_agent::agent::AgentKind;
use kapi_agent::settings::AgentSettings;
use kapi_core::text::agent_name;
use kapi_spend::rules::account::{Account, ModelProvider, ModelRole, PROGRAM, ReservationId};
use kapi_spend::rules::day::Day;
use kapi_spend::rules::decide::Amount;
use kapi_spend::rules::price::Price;
use kapi_spend::rules::prices::Prices;

use crate::host_grants::HostGrants;
use crate::judge_provider;
use crate::judge_provider::JudgeReference;

/// What the first turn of an agent with a model is taken to cost, in millionths of a US dollar.
const FIRST_TURN_MICROS: u64 = 500_000;
/// With less than this left under a cap no turn is begun, in millionths of a US dollar.
const LEAST_MICROS: u64 = 1_000;
/// The model of which nobody said which it is.
const MODEL_DEFAULT: &str = "default";

/// What a turn is called in the account of spending.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnKey {
    /// The goal, or whatever stands for one.
    pub goal: String,
    /// What tells it from other turns of that.
    pub effect: String,
}

/// One turn, or one judgement, that may cost something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BookedTurn {
    goal: String,
    effect: String,
    agent: String,
    role: ModelRole,
    provider: String,
    model: String,
    worth: CostEstimate,
    prices: Prices,
}

/// What is known of a turn's cost before it begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CostEstimate {
    /// It costs nothing.
    Free,
    /// The agent itself says what it costs.
    Told,
    /// What it costs is known where the model's price is.
    Listed,
}

impl BookedTurn {
    /// Returns the turn of an agent or a model by the name a contract gives it; nothing where the
    /// name cannot be read, which those refuse who perform it.
    #[must_use]
    pub fn of_reference(
        key: TurnKey,
        reference: &str,
        role: ModelRole,
        grants: &HostGrants,
    ) -> Option<Self> {
        match JudgeReference::parse(reference) {
            JudgeReference::Model { provider, model } => Some(Self {
                goal: key.goal,
                effect: key.effect,
                agent: reference.to_owned(),
                role,
                provider: judge_provider::price_name(grants, provider),
                model: model.to_owned(),
                worth: CostEstimate::Listed,
                prices: grants.prices.clone(),
            }),
            JudgeReference::Agent(reference) => {
                let kind = AgentKind::parse(reference).ok()?;
                Some(Self::of_agent(key, &kind, role, grants))
            }
        }
    }

    /// Returns the turn of an agent.
    #[must_use]
    pub fn of_agent(key: TurnKey, kind: &AgentKind, role: ModelRole, grants: &HostGrants) -> Self {
        Self::of_settings(key, kind, &grants.settings(kind), role, grants)
    }

    /// Returns the turn of an agent that is wanted with settings of its own.
    #[must_use]
    pub fn of_settings(
        key: TurnKey,
        kind: &AgentKind,
        settings: &AgentSettings,
        role: ModelRole,
        grants: &HostGrants,
    ) -> Self {
        let (provider, model) = served(kind, settings);
        Self {
            goal: key.goal,
            effect: key.effect,
            agent: agent_name(&kind.to_string()),
            role,
            worth: worth(kind, settings, &provider),
            provider,
            model,
            prices: grants.prices.clone(),
        }
    }

    /// Returns the turn of a model that is asked directly; `provider` is the name of its prices.
    #[must_use]
    pub fn of_model(
        key: TurnKey,
        provider: &str,
        model: &str,
        role: ModelRole,
        grants: &HostGrants,
    ) -> Self {
        Self {
            goal: key.goal,
            effect: key.effect,
            agent: format!("{provider}/{model}"),
            role,
            provider: provider.to_owned(),
            model: model.to_owned(),
            worth: CostEstimate::Listed,
            prices: grants.prices.clone(),
        }
    }

    pub(super) fn account(&self, project: &str) -> Account {
        Account {
            project: project.to_owned(),
            goal: self.goal.clone(),
            agent: self.agent.clone(),
            role: self.role,
            provider: self.provider.clone(),
            model: self.model.clone(),
        }
    }

    pub(super) fn reservation(&self, project: &str) -> ReservationId {
        ReservationId::new(project, &self.goal, &self.effect)
    }

    /// Returns what it may cost, guessed from the dearest turn of its kind so far.
    pub(super) fn amount(&self, today: Day, dearest: Option<u64>) -> Amount {
        let guess = Amount::Known {
            wanted: dearest.unwrap_or(FIRST_TURN_MICROS).max(LEAST_MICROS),
            least: LEAST_MICROS,
        };
        let free = Amount::Known {
            wanted: 0,
            least: 0,
        };
        let found = self.prices.find(&self.provider, &self.model, today);
        match (self.worth, found) {
            (CostEstimate::Free, _) => free,
            (CostEstimate::Told | CostEstimate::Listed, Some(found))
                if found.price == Price::free() =>
            {
                free
            }
            (CostEstimate::Told, _) | (CostEstimate::Listed, Some(_)) => guess,
            (CostEstimate::Listed, None) => Amount::Unknown,
        }
    }

    pub(super) const fn is_free(&self) -> bool {
        matches!(self.worth, CostEstimate::Free)
    }

    /// Tells whether it may use a model that nobody counts.
    pub(super) fn is_unseen(&self) -> bool {
        self.provider == PROGRAM
    }
}

fn worth(kind: &AgentKind, settings: &AgentSettings, provider: &str) -> CostEstimate {
    let tells_cost = match kind {
        AgentKind::Claude | AgentKind::Script(_) => true,
        // The prices of a server of one's own are unknown to it.
        AgentKind::Pi => settings.base_url.is_none(),
        AgentKind::Codex | AgentKind::Gemini | AgentKind::Acp(_) | AgentKind::Command(_) => false,
    };
    if provider == ModelProvider::BySubscription.provider() {
        CostEstimate::Free
    } else if tells_cost {
        CostEstimate::Told
    } else {
        CostEstimate::Listed
    }
}

/// Returns under whose prices an agent asks its model, and which.
fn served(kind: &AgentKind, settings: &AgentSettings) -> (String, String) {
    let model = settings.model.as_deref().unwrap_or(MODEL_DEFAULT);
    let vendor = match kind.vendor() {
        AgentKind::Acp(_) | AgentKind::Command(_) | AgentKind::Script(_) => {
            return (PROGRAM.to_owned(), kind.name().to_owned());
        }
        AgentKind::Claude => "anthropic",
        AgentKind::Codex => "openai",
        AgentKind::Gemini => "gemini",
        AgentKind::Pi => return served_to_pi(settings, model),
    };
    (served_by(settings, vendor).provider(), model.to_owned())
}

/// Pi's model names begin with their provider.
fn served_to_pi(settings: &AgentSettings, model: &str) -> (String, String) {
    let (vendor, model) = match model.split_once('/') {
        Some((vendor, model)) if settings.base_url.is_none() => (vendor, model),
        Some(_) | None => ("anthropic", model),
    };
    let vendor = if vendor == "google" { "gemini" } else { vendor };
    (served_by(settings, vendor).provider(), model.to_owned())
}

fn served_by<'a>(settings: &'a AgentSettings, vendor: &'a str) -> ModelProvider<'a> {
    match &settings.base_url {
        Some(url) => ModelProvider::At(url),
        None if settings.login => ModelProvider::BySubscription,
        None => ModelProvider::ByVendor(vendor),
    }
}
