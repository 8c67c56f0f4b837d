//! `[spend]` and `[prices]`: how much a day may cost, and what a person knows better of prices.
//!
//! Only the person's own file sets a cap or a price; a project's file only makes caps smaller.

use std::collections::BTreeMap;

use kapi_core::failure::chain;
use kapi_settings::fault::Faults;
use kapi_settings::scalar::{NumberText, UsdMicros, Whole};
use kapi_settings::setting::Setting;
use kapi_spend::rules::caps::{ASK_AT_PERCENT_DEFAULT, Caps};
use kapi_spend::rules::prices::{Prices, WrittenPrice};
use serde::Deserialize;

/// The keys that a project may lower.
pub(crate) const KEYS: [&str; 3] = [
    "spend.machine_per_day_usd",
    "spend.project_per_day_usd",
    "spend.ask_at_percent",
];

/// `[spend]`, in either file.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct SpendTable {
    /// What all projects of the machine may cost a day.
    machine_per_day_usd: Option<UsdMicros>,
    /// What one project may cost a day.
    project_per_day_usd: Option<UsdMicros>,
    /// The percent of a daily cap from which on a person is asked.
    ask_at_percent: Option<Whole<1, 100>>,
    /// Whether models of unknown price may be asked where money is limited.
    allow_unpriced: Option<bool>,
}

/// `[prices."provider/model"]`: US dollars for a million tokens.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct PriceTable {
    input: NumberText,
    output: NumberText,
    cache_read: Option<NumberText>,
    cache_write: Option<NumberText>,
}

/// What turns may spend, and what they cost.
#[derive(Debug, Clone)]
pub(crate) struct SpendConfig {
    /// The person's caps, narrowed by the project.
    pub(crate) caps: Caps,
    /// The prices, with the person's own.
    pub(crate) prices: Prices,
}

impl SpendConfig {
    /// Returns what holds when nobody said anything.
    pub(crate) fn unconfigured() -> Self {
        Self {
            caps: Caps::none(),
            prices: Prices::built_in(),
        }
    }

    /// Returns what the person's tables say.
    pub(crate) fn said(
        spend: &SpendTable,
        prices: &BTreeMap<String, Setting<PriceTable>>,
        faults: &mut Faults,
    ) -> Self {
        Self {
            caps: caps(spend, ASK_AT_PERCENT_DEFAULT),
            prices: own_prices(prices, faults),
        }
    }

    /// Lowers the caps to a project's; returns the keys of those that became lower.
    pub(crate) fn narrow(&mut self, spend: &SpendTable) -> Vec<&'static str> {
        // What the project does not say changes nothing.
        let before = self.caps;
        self.caps = before.within(&caps(spend, 100));
        let is_lower = [
            self.caps.machine_per_day != before.machine_per_day,
            self.caps.project_per_day != before.project_per_day,
            self.caps.ask_at_percent != before.ask_at_percent,
        ];
        let keys = KEYS.into_iter().zip(is_lower);
        keys.filter(|(_, is_lower)| *is_lower)
            .map(|(key, _)| key)
            .collect()
    }
}

fn caps(table: &SpendTable, ask_default: u8) -> Caps {
    let percent = table
        .ask_at_percent
        .and_then(|said| u8::try_from(said.0).ok());
    Caps {
        machine_per_day: table.machine_per_day_usd.map(|usd| usd.0),
        project_per_day: table.project_per_day_usd.map(|usd| usd.0),
        ask_at_percent: percent.unwrap_or(ask_default),
        allows_unpriced: table.allow_unpriced.unwrap_or(false),
    }
}

fn own_prices(tables: &BTreeMap<String, Setting<PriceTable>>, faults: &mut Faults) -> Prices {
    let mut prices = Prices::built_in();
    for (name, said) in tables {
        let table = &said.value;
        let written = WrittenPrice {
            input: &table.input.0,
            output: &table.output.0,
            cache_read: table.cache_read.as_ref().map(|price| price.0.as_str()),
            cache_write: table.cache_write.as_ref().map(|price| price.0.as_str()),
        };
        if let Err(error) = prices.set_own(name, &written) {
            let remedy = "write US dollars, for instance `input = 3.0`";
            faults.at(said, format!("failed to {}", chain(&error)), remedy);
        }
    }
    prices
}
