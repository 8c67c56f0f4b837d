//! `kapi spend`: where money and tokens went, and what today may still cost.
//!
//! Reads the ledger of the machine; `--go-on` alone writes, and only for a person.

pub(crate) mod today;

use std::fs;

use kapi_core::failure::chain;
use kapi_core::usage::{Doubt, Usage};
use kapi_spend::record::LedgerHome;
use kapi_spend::record::error::LedgerError;
use kapi_spend::rules::account::PROGRAM;
use kapi_spend::rules::caps::{CapStatus, Caps};
use kapi_spend::rules::day::Day;
use kapi_spend::rules::decide::day_standings;
use kapi_spend::rules::event::SpendPermit;
use kapi_spend::rules::prices::Prices;
use kapi_spend::rules::report::{SpendGrouping, SpendReport, SpendSelection, report};
use kapi_spend::rules::totals::{LedgerTotals, Sum};
use kapi_store::error::StoreError;
use kapi_store::layout::project_key;
use kapi_sys::clock::Clock as _;
use kapi_sys::lock::LockError;
use serde::Serialize;

use crate::context::Context;
use crate::error::{Error, optional};
use crate::exit_code::Exit;
use crate::ui::Format;
use crate::{amount, help};

/// Days that are shown when nobody says since when.
const DAYS_SHOWN: u32 = 30;

/// Options of `kapi spend`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Group by
    #[arg(long, value_enum, default_value_t = GroupKey::Goal, conflicts_with = "go_on")]
    by: GroupKey,
    #[arg(help = help::with_default("First day to include, in UTC, such as 2026-11-01", format!("{DAYS_SHOWN} days ago")), long, value_name = "DATE", value_parser = parse_day, conflicts_with = "go_on")]
    since: Option<Day>,
    /// Show all projects since the first record
    #[arg(long, conflicts_with = "go_on")]
    all: bool,
    /// Answer a spending question for the rest of today
    #[arg(long, value_enum, value_name = "QUESTION")]
    go_on: Option<SpendDecisionView>,
}

/// What to add up by.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum GroupKey {
    Goal,
    Agent,
    Model,
    Day,
    Project,
}

/// What a person answers.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum SpendDecisionView {
    /// Continue although a daily cap is nearly used up
    Threshold,
    /// Continue although a cap is set and a model's price is unknown
    UnknownPrice,
}

#[derive(Debug, Serialize)]
struct SpendView {
    by: String,
    project: Option<String>,
    since: Option<Day>,
    today: Day,
    rows: Vec<RowView>,
    total: SumView,
    unknown_models: Vec<String>,
    caps: Vec<CapStatus>,
    open: Vec<OpenView>,
}

#[derive(Debug, Serialize)]
struct RowView {
    key: String,
    sum: SumView,
}

#[derive(Debug, Serialize)]
struct SumView {
    turns: u64,
    unknown_turns: u64,
    input_tokens: u64,
    output_tokens: u64,
    cache_read_tokens: u64,
    cache_write_tokens: u64,
    usd_micros: u64,
    /// What of these is not certain.
    #[serde(skip_serializing_if = "Doubt::is_none")]
    doubt: Doubt,
}

#[derive(Debug, Serialize)]
struct OpenView {
    id: String,
    agent: String,
    model: String,
    usd_micros: Option<u64>,
}

#[derive(Debug, Serialize)]
struct AllowedView {
    allowed: SpendPermit,
    day: Day,
}

/// What holds now, beside what was.
#[derive(Clone, Copy)]
struct CurrentSpend<'a> {
    standings: &'a [CapStatus],
    prices: &'a Prices,
    today: Day,
}

/// Shows the ledger.
pub(crate) fn run(context: &Context, args: &Args) -> Result<Exit, Error> {
    let home = LedgerHome {
        disk: &context.disk,
        clock: &context.clock,
        home: context.home.clone(),
        owner: "kapi spend".to_owned(),
    };
    if let Some(answered) = args.go_on {
        return go_on(context, &home, answered);
    }
    let root = optional(context.project_root())?;
    let config = context.config(root.as_deref())?;
    let key = root.as_ref().map(|root| {
        let real = fs::canonicalize(root).unwrap_or_else(|_| root.clone());
        project_key(&real)
    });
    let totals = home.totals().map_err(|error| failed(&error))?;
    let today = Day::of_ms(context.clock.now_ms());
    let selection = SpendSelection {
        project: key.clone().filter(|_| !args.all),
        since: match (args.since, args.all) {
            (Some(since), _) => Some(since),
            (None, true) => None,
            (None, false) => Some(today.days_before(DAYS_SHOWN - 1)),
        },
    };
    let found = report(&totals, by(args.by), &selection);
    let standings = standings(&totals, key.as_deref(), &config.spending.caps, today);
    match context.ui.format {
        Format::Json => {
            let view = SpendView {
                by: word(args.by).to_owned(),
                project: selection.project,
                since: selection.since,
                today,
                rows: found
                    .rows
                    .iter()
                    .map(|row| RowView {
                        key: row.key.clone(),
                        sum: sum_view(&row.sum),
                    })
                    .collect(),
                total: sum_view(&found.total),
                unknown_models: found.unknown_models,
                caps: standings,
                open: open(&totals),
            };
            context.ui.json(&view);
        }
        Format::Human => {
            let now = CurrentSpend {
                standings: &standings,
                prices: &config.spending.prices,
                today,
            };
            human(context, args.by, &selection, &found, &now);
        }
    }
    Ok(Exit::Success)
}

fn go_on(
    context: &Context,
    home: &LedgerHome<'_>,
    answered: SpendDecisionView,
) -> Result<Exit, Error> {
    let question = match answered {
        SpendDecisionView::Threshold => SpendPermit::Threshold,
        SpendDecisionView::UnknownPrice => SpendPermit::UnknownPrice,
    };
    context.require_human("continue spending")?;
    home.allow(&context.actor, question)
        .map_err(|error| failed(&error))?;
    let day = Day::of_ms(context.clock.now_ms());
    match context.ui.format {
        Format::Json => context.ui.json(&AllowedView {
            allowed: question,
            day,
        }),
        Format::Human => {
            context.ui.line(&format!(
                "Turns continue for {day} (UTC); the caps still apply."
            ));
            context.ui.say("Resume waiting goals with `kapi resume`.");
        }
    }
    Ok(Exit::Success)
}

fn cap_line(cap_status: &CapStatus) -> String {
    format!(
        "{}: {} of {} spent, {} more reserved.",
        capitalised(&cap_status.scope.to_string()),
        amount::usd(cap_status.spent),
        amount::usd(cap_status.cap),
        amount::usd(cap_status.reserved),
    )
}

/// Returns the caps of the machine, and of the project one stands in.
fn standings(
    totals: &LedgerTotals,
    project: Option<&str>,
    caps: &Caps,
    day: Day,
) -> Vec<CapStatus> {
    match project {
        Some(project) => day_standings(totals, project, caps, day),
        None => {
            let of_machine = caps.machine_per_day;
            let cap_status = of_machine.map(|cap| totals.cap_status(None, day, cap));
            cap_status.into_iter().collect()
        }
    }
}

fn human(
    context: &Context,
    key: GroupKey,
    selection: &SpendSelection,
    found: &SpendReport,
    now: &CurrentSpend<'_>,
) {
    let ui = context.ui;
    let CurrentSpend {
        standings,
        prices,
        today,
    } = *now;
    if found.rows.is_empty() {
        ui.line("Nothing was spent.");
    } else {
        let width = found.rows.iter().map(|row| row.key.chars().count()).max();
        let width = width.unwrap_or(0).max(word(key).len()).max("total".len());
        ui.line(&format!(
            "{:width$}  {:>6}  {:>8}  cost",
            word(key),
            "turns",
            "tokens"
        ));
        for row in &found.rows {
            ui.line(&line(&row.key, width, &row.sum));
        }
        ui.line(&line("total", width, &found.total));
    }
    for cap_status in standings {
        ui.line(&cap_line(cap_status));
    }
    for model in &found.unknown_models {
        ui.say(&unknown_price(model, prices, today));
    }
    if found.has_partial_month {
        ui.say("Older days are kept as months; the first month is shown in full.");
    }
    if selection.project.is_some() {
        ui.say("This is the current project; see `kapi spend --all` for everything.");
    }
}

/// Says what became of turns whose price was not known, and what to do.
fn unknown_price(name: &str, prices: &Prices, today: Day) -> String {
    let (provider, model) = name.split_once('/').unwrap_or(("", name));
    if provider == PROGRAM {
        return format!(
            "An agent of your own (`{model}:…`) reports no cost: what it may have spent by itself is in \
             no total."
        );
    }
    let start = format!("The price of {name}");
    match prices.find(provider, model, today) {
        Some(found) => format!(
            "{start} was unknown for some turns, which no total includes; now it is {} in and {} out \
             for a million tokens ({}).",
            amount::usd(found.price.input),
            amount::usd(found.price.output),
            found.source,
        ),
        None => format!(
            "{start} is unknown, so no total includes its turns; set it under \
             [prices.\"{name}\"] in your configuration (`input = 0` and `output = 0` if it is free)."
        ),
    }
}

fn line(key: &str, width: usize, sum: &Sum) -> String {
    let tokens = amount::tokens(sum.tokens.total());
    format!("{key:width$}  {:>6}  {tokens:>8}  {}", sum.turns, cost(sum))
}

/// Returns what a sum cost; what nobody knows is said and is not nought.
fn cost(sum: &Sum) -> String {
    if !sum.doubt.is_none() {
        let known = Usage {
            usd_micros: Some(sum.usd_micros),
            doubt: sum.doubt,
            ..Usage::ZERO
        };
        return amount::cost(&known).unwrap_or_default();
    }
    match (sum.unknown_turns, sum.turns) {
        (0, _) => amount::usd(sum.usd_micros),
        (unknown, turns) if unknown == turns => amount::not_known(sum.tokens.total()).to_owned(),
        (unknown, _) => format!(
            "{} and {unknown} of unknown cost",
            amount::usd(sum.usd_micros)
        ),
    }
}

fn capitalised(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(chars).collect()
}

fn open(totals: &LedgerTotals) -> Vec<OpenView> {
    let open = totals.open.iter();
    open.map(|(id, open)| OpenView {
        id: id.to_string(),
        agent: open.account.agent.clone(),
        model: open.account.model.clone(),
        usd_micros: open.usd_micros,
    })
    .collect()
}

fn sum_view(sum: &Sum) -> SumView {
    SumView {
        turns: sum.turns,
        unknown_turns: sum.unknown_turns,
        input_tokens: sum.tokens.input,
        output_tokens: sum.tokens.output,
        cache_read_tokens: sum.tokens.cache_read,
        cache_write_tokens: sum.tokens.cache_write,
        usd_micros: sum.usd_micros,
        doubt: sum.doubt,
    }
}

const fn by(key: GroupKey) -> SpendGrouping {
    match key {
        GroupKey::Goal => SpendGrouping::Goal,
        GroupKey::Agent => SpendGrouping::Agent,
        GroupKey::Model => SpendGrouping::Model,
        GroupKey::Day => SpendGrouping::Day,
        GroupKey::Project => SpendGrouping::Project,
    }
}

const fn word(key: GroupKey) -> &'static str {
    match key {
        GroupKey::Goal => "goal",
        GroupKey::Agent => "agent",
        GroupKey::Model => "model",
        GroupKey::Day => "day",
        GroupKey::Project => "project",
    }
}

fn parse_day(text: &str) -> Result<Day, String> {
    Day::parse(text).map_err(|_| format!("{text:?} is not a date such as 2026-11-22"))
}

fn failed(error: &LedgerError) -> Error {
    let exit = match error {
        LedgerError::Denied(_) => Exit::Denied,
        LedgerError::Store(StoreError::Lock(LockError::Busy { .. })) => Exit::Busy,
        LedgerError::Store(_)
        | LedgerError::UnknownEvent { .. }
        | LedgerError::NotDerived(_)
        | LedgerError::Place(_) => Exit::Failed,
        LedgerError::Encode { .. } => Exit::Internal,
    };
    let mut failed = Error::new(exit, format!("failed to {}", chain(error)));
    failed.hint = error.hint();
    failed
}
