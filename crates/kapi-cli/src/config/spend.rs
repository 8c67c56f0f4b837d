//! `[spend]` and `[prices]`: how much a day may cost, and what a person knows better of prices.
//!
//! Only the person's own file sets a cap or a price; a project's file only makes caps smaller.

use std::collections::BTreeMap;

use kapi_core::spend::caps::{ASK_AT_PERCENT_DEFAULT, Caps};
use kapi_core::spend::price::parse_usd_micros;
use kapi_core::spend::prices::{Prices, WrittenPrice};
use serde::Deserialize;

use crate::config::source::Text;
use crate::error::{Error, chain};

/// The keys that a project may lower.
pub(crate) const KEYS: [&str; 3] = [
    "spend.machine_per_day_usd",
    "spend.project_per_day_usd",
    "spend.ask_at_percent",
];

/// `[spend]`, in either file.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct SpendTable {
    /// What all projects of the machine may cost a day, in US dollars.
    machine_per_day_usd: Option<f64>,
    /// What one project may cost a day, in US dollars.
    project_per_day_usd: Option<f64>,
    /// The percent of a daily cap from which on a person is asked.
    ask_at_percent: Option<u8>,
}

/// `[prices."provider/model"]`: US dollars for a million tokens.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PriceTable {
    input: f64,
    output: f64,
    cache_read: Option<f64>,
    cache_write: Option<f64>,
}

/// What turns may spend, and what they cost.
#[derive(Debug, Clone)]
pub(crate) struct Spending {
    /// The person's caps, narrowed by the project.
    pub(crate) caps: Caps,
    /// The prices, with the person's own.
    pub(crate) prices: Prices,
}

impl Spending {
    /// Returns what holds when nobody said anything.
    pub(crate) fn unconfigured() -> Self {
        Self {
            caps: Caps::none(),
            prices: Prices::built_in(),
        }
    }

    /// Returns what the person's tables say.
    pub(crate) fn said(
        file: &Text<'_>,
        spend: &SpendTable,
        prices: &BTreeMap<String, PriceTable>,
    ) -> Result<Self, Error> {
        Ok(Self {
            caps: caps(file, spend, ASK_AT_PERCENT_DEFAULT)?,
            prices: own_prices(file, prices)?,
        })
    }

    /// Lowers the caps to a project's; returns the keys of those that became lower.
    pub(crate) fn narrow(
        &mut self,
        file: &Text<'_>,
        spend: &SpendTable,
    ) -> Result<Vec<&'static str>, Error> {
        // What the project does not say changes nothing.
        let before = self.caps;
        self.caps = before.within(&caps(file, spend, 100)?);
        let is_lower = [
            self.caps.machine_per_day != before.machine_per_day,
            self.caps.project_per_day != before.project_per_day,
            self.caps.ask_at_percent != before.ask_at_percent,
        ];
        let keys = KEYS.into_iter().zip(is_lower);
        Ok(keys
            .filter(|(_, is_lower)| *is_lower)
            .map(|(key, _)| key)
            .collect())
    }
}

fn caps(file: &Text<'_>, table: &SpendTable, ask_default: u8) -> Result<Caps, Error> {
    let dollars = |key: &str, usd: Option<f64>| {
        let parsed = usd
            .map(|usd| parse_usd_micros(&usd.to_string()))
            .transpose();
        parsed.map_err(|error| wrong(file, &format!("spend.{key}"), &error))
    };
    let ask_at_percent = table.ask_at_percent.unwrap_or(ask_default);
    if !(1..=100).contains(&ask_at_percent) {
        let key = "spend.ask_at_percent";
        let place = file.at(key);
        return Err(Error::usage(format!(
            "{place}: `{key}`: it must be between 1 and 100, not {ask_at_percent}"
        )));
    }
    Ok(Caps {
        machine_per_day: dollars("machine_per_day_usd", table.machine_per_day_usd)?,
        project_per_day: dollars("project_per_day_usd", table.project_per_day_usd)?,
        ask_at_percent,
    })
}

fn own_prices(file: &Text<'_>, tables: &BTreeMap<String, PriceTable>) -> Result<Prices, Error> {
    let mut prices = Prices::built_in();
    for (name, table) in tables {
        let text = |usd: Option<f64>| usd.map(|usd| usd.to_string());
        let (cache_read, cache_write) = (text(table.cache_read), text(table.cache_write));
        let written = WrittenPrice {
            input: &table.input.to_string(),
            output: &table.output.to_string(),
            cache_read: cache_read.as_deref(),
            cache_write: cache_write.as_deref(),
        };
        prices
            .set_own(name, &written)
            .map_err(|error| wrong(file, &format!("prices.{name}"), &error))?;
    }
    Ok(prices)
}

fn wrong(file: &Text<'_>, key: &str, error: &dyn std::error::Error) -> Error {
    let place = file.at(key);
    Error::usage(format!("{place}: `{key}`: failed to {}", chain(error))).with_hint(
        "write US dollars, for instance `input = 3.0`; `docs/configuration.md` lists every key.",
    )
}
