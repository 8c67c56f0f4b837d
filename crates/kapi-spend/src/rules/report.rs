//! Where money and tokens went: the books, added up by one question at a time.
//!
//! Only adds; how a row is shown is the business of those who show it.

use std::collections::BTreeMap;

use crate::rules::account::{Account, ModelRole};
use crate::rules::day::{Day, Month};
use crate::rules::totals::{AccountSum, LedgerTotals, Sum};

/// What is added up under one key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpendGrouping {
    /// One goal of one project.
    Goal,
    /// One agent, its judging apart.
    Agent,
    /// One model of one provider.
    Model,
    /// One day, or one month where days are no longer kept.
    Day,
    /// One project.
    Project,
}

/// What is looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpendSelection {
    /// One project, or all of the machine.
    pub project: Option<String>,
    /// The first day; `None` for everything there is.
    pub since: Option<Day>,
}

/// One key and what was added up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpendRow {
    /// The goal, agent, model, day or project.
    pub key: String,
    /// Its sum.
    pub sum: Sum,
}

/// An answer to where money and tokens went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpendReport {
    /// The rows: days in their order, everything else by cost and then tokens, most first.
    pub rows: Vec<SpendRow>,
    /// All rows together.
    pub total: Sum,
    /// Models, as `provider/model`, that had turns whose cost nobody knows.
    pub unknown_models: Vec<String>,
    /// Whether a month is in it that began before the first day asked for.
    pub has_partial_month: bool,
}

/// Adds up a selection of the books.
#[must_use]
pub fn report(totals: &LedgerTotals, by: SpendGrouping, selection: &SpendSelection) -> SpendReport {
    let mut sums: BTreeMap<String, Sum> = BTreeMap::new();
    let mut report = SpendReport {
        rows: Vec::new(),
        total: Sum::default(),
        unknown_models: Vec::new(),
        has_partial_month: false,
    };
    let mut take = |when: &str, entries: &[AccountSum]| {
        let mut is_taken = false;
        for AccountSum { account, sum } in entries {
            let is_in = |project: &String| *project == account.project;
            if !selection.project.as_ref().is_none_or(is_in) {
                continue;
            }
            is_taken = true;
            sums.entry(key(by, account, when)).or_default().add(sum);
            report.total.add(sum);
            let model = model_name(account);
            if sum.unknown_turns > 0 && !report.unknown_models.contains(&model) {
                report.unknown_models.push(model);
            }
        }
        is_taken
    };
    let since_month: Option<Month> = selection.since.map(Day::month);
    for (month, entries) in &totals.months {
        if since_month.is_none_or(|since| *month >= since) {
            let is_taken = take(&month.to_string(), entries);
            let begins_before = selection.since.is_some_and(|since| {
                since.month() == *month && since.days_before(1).month() == *month
            });
            report.has_partial_month |= is_taken && begins_before;
        }
    }
    for (day, entries) in &totals.days {
        if selection.since.is_none_or(|since| *day >= since) {
            take(&day.to_string(), entries);
        }
    }
    report.unknown_models.sort();
    report.rows = rows(by, sums);
    report
}

fn rows(by: SpendGrouping, sums: BTreeMap<String, Sum>) -> Vec<SpendRow> {
    let mut rows: Vec<SpendRow> = sums
        .into_iter()
        .map(|(key, sum)| SpendRow { key, sum })
        .collect();
    match by {
        SpendGrouping::Day => {}
        SpendGrouping::Goal
        | SpendGrouping::Agent
        | SpendGrouping::Model
        | SpendGrouping::Project => {
            rows.sort_by_key(|row| {
                let Sum {
                    usd_micros, tokens, ..
                } = row.sum;
                std::cmp::Reverse((usd_micros, tokens.total()))
            });
        }
    }
    rows
}

fn key(by: SpendGrouping, account: &Account, when: &str) -> String {
    match by {
        SpendGrouping::Goal if account.goal.is_empty() => format!("{}/(older)", account.project),
        SpendGrouping::Goal => format!("{}/{}", account.project, account.goal),
        SpendGrouping::Agent => match account.role {
            ModelRole::Executor => account.agent.clone(),
            ModelRole::Judge => format!("{} (judge)", account.agent),
        },
        SpendGrouping::Model => model_name(account),
        SpendGrouping::Day => when.to_owned(),
        SpendGrouping::Project => account.project.clone(),
    }
}

fn model_name(account: &Account) -> String {
    format!("{}/{}", account.provider, account.model)
}
