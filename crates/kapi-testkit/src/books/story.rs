//! What a seed stands for: limits, calls, and what goes wrong with each.
//!
//! Drawn once, so that the client and the server play the same story.

use std::collections::BTreeMap;

use kapi_agent::launch::upstream::UpstreamDialect;
use kapi_run::grant::Grant;
use kapi_run::host_grants::HostGrants;
use kapi_spend::rules::price::Price;
use kapi_spend::rules::prices::{PriceError, Prices, WrittenPrice};

use crate::converge::random::Random;

/// Under whose prices a server of this machine is.
pub(super) const PROVIDER: &str = "local";
/// A model with a price.
pub(super) const PRICED: &str = "priced";
/// A model without one.
pub(super) const UNPRICED: &str = "unknown";
/// What tokens of the first cost.
pub(super) const PRICE: Price = Price {
    input: 3_000_000,
    output: 15_000_000,
    cache_read: 300_000,
    cache_write: 3_750_000,
};

/// One seed's story.
#[derive(Debug, Clone)]
pub(super) struct Story {
    pub(super) dialect: UpstreamDialect,
    /// What a day may cost.
    pub(super) cap_usd_micros: Option<u64>,
    /// What the goal may use.
    pub(super) tokens: Option<u64>,
    /// What the goal may cost.
    pub(super) usd_micros: Option<u64>,
    pub(super) allows_unpriced: bool,
    /// Calls that the agent makes at once.
    pub(super) lanes: u32,
    pub(super) calls: Vec<CallPlan>,
}

/// One call of a story.
#[derive(Debug, Clone, Copy)]
pub(super) struct CallPlan {
    pub(super) is_priced: bool,
    /// How long the request is, but for its frame.
    pub(super) filler_bytes: u32,
    /// The most tokens that the request names.
    pub(super) output_named: Option<u32>,
    /// How many tokens the model reads, in percent of the request's bytes.
    pub(super) input_percent: u32,
    /// How many tokens the model would write.
    pub(super) output: u32,
    pub(super) fault: CallFault,
}

/// What goes wrong with a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CallFault {
    Nothing,
    /// The provider refuses, and charges nothing.
    Overloaded,
    /// The provider works, and hangs up without a word; the second time it answers.
    NoAnswer,
    /// The provider hangs up in the middle, and works on.
    BrokenOff,
    /// The provider does not tell what was used.
    NotTold,
    /// The agent hangs up in the middle.
    AgentLeaves,
}

impl Story {
    /// Draws a story.
    pub(super) fn of(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let dialect = match random.next() % 4 {
            0 => UpstreamDialect::Anthropic,
            1 => UpstreamDialect::Responses,
            2 => UpstreamDialect::Chat,
            _ => UpstreamDialect::Gemini,
        };
        let mut limit = |percent: u64, low: u32, high: u32| {
            let drawn = u64::from(random.between(low, high));
            random.chance(percent).then_some(drawn)
        };
        let tokens = limit(40, 2_000, 60_000);
        let usd_micros = limit(40, 20_000, 400_000);
        let cap_usd_micros = limit(30, 20_000, 400_000);
        let n_calls = random.between(6, 24);
        Self {
            dialect,
            cap_usd_micros,
            tokens,
            usd_micros,
            allows_unpriced: random.chance(50),
            lanes: random.between(1, 8),
            calls: (0..n_calls).map(|_| CallPlan::draw(&mut random)).collect(),
        }
    }
}

impl CallPlan {
    fn draw(random: &mut Random) -> Self {
        let fault = match random.next() % 12 {
            0 => CallFault::Overloaded,
            1 => CallFault::NoAnswer,
            2 => CallFault::BrokenOff,
            3 => CallFault::NotTold,
            4 | 5 => CallFault::AgentLeaves,
            _ => CallFault::Nothing,
        };
        let named = random.between(16, 4_000);
        Self {
            is_priced: random.chance(90),
            filler_bytes: random.between(0, 6_000),
            output_named: random.chance(70).then_some(named),
            input_percent: random.between(5, 100),
            output: random.between(1, 2_000),
            fault,
        }
    }
}

/// Returns what a run may use of the host, with the price of the one model that has any.
pub(super) fn grants() -> Result<HostGrants, PriceError> {
    let mut prices = Prices::built_in();
    let written = WrittenPrice {
        input: "3",
        output: "15",
        cache_read: Some("0.3"),
        cache_write: Some("3.75"),
    };
    prices.set_own(&format!("{PROVIDER}/{PRICED}"), &written)?;
    Ok(HostGrants {
        agents: BTreeMap::new(),
        judges: BTreeMap::new(),
        prices,
        grant: Grant::default(),
        env: BTreeMap::new(),
        home: "/home/user".into(),
        self_exe: "/usr/bin/kapi".into(),
    })
}
