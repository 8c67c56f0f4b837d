//! What a project spent today, and how much of the caps is left: for the dashboard.
//!
//! Read from the ledger once, then said in lines or as JSON.

use kapi_core::text::counted;
use kapi_spend::record::LedgerHome;
use kapi_spend::rules::caps::{CapStatus, Caps};
use kapi_spend::rules::day::Day;
use kapi_spend::rules::report::{SpendGrouping, SpendReport, SpendSelection, report};
use kapi_sys::clock::Clock as _;
use serde::Serialize;

use super::{SumView, cap_line, cost, failed, standings, sum_view};
use crate::amount;
use crate::context::Context;
use crate::error::Error;

/// What a project spent today.
pub(crate) struct SpentToday {
    today: Day,
    found: SpendReport,
    caps: Vec<CapStatus>,
}

/// The same as others see it.
#[derive(Debug, Serialize)]
pub(crate) struct SpentTodayView {
    today: Day,
    total: SumView,
    unknown_models: Vec<String>,
    caps: Vec<CapStatus>,
}

impl SpentToday {
    /// Reads what the project of a key spent today.
    pub(crate) fn read(context: &Context, key: &str, caps: &Caps) -> Result<Self, Error> {
        let home = LedgerHome {
            disk: &context.disk,
            clock: &context.clock,
            home: context.home.clone(),
            owner: "kapi dashboard".to_owned(),
        };
        let totals = home.totals().map_err(|error| failed(&error))?;
        let today = Day::of_ms(context.clock.now_ms());
        let selection = SpendSelection {
            project: Some(key.to_owned()),
            since: Some(today),
        };
        Ok(Self {
            today,
            found: report(&totals, SpendGrouping::Project, &selection),
            caps: standings(&totals, Some(key), caps, today),
        })
    }

    /// Says it in lines.
    pub(crate) fn lines(&self) -> Vec<String> {
        let total = &self.found.total;
        let mut lines = match total.turns {
            0 => vec!["nothing in this project".to_owned()],
            turns if turns == total.unknown_turns && total.tokens.total() == 0 => {
                let turns = counted(turns, "turn");
                vec![format!(
                    "nothing counted in this project: no model was asked in {turns}"
                )]
            }
            _ => vec![format!(
                "{} in this project, {} tokens",
                cost(total),
                amount::tokens(total.tokens.total())
            )],
        };
        lines.extend(self.caps.iter().map(cap_line));
        lines
    }

    /// Returns it as others see it.
    pub(crate) fn into_view(self) -> SpentTodayView {
        SpentTodayView {
            today: self.today,
            total: sum_view(&self.found.total),
            unknown_models: self.found.unknown_models,
            caps: self.caps,
        }
    }
}
