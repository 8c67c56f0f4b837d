//! Books against what a model server really served: one seed is one run with everything that goes
//! wrong between an agent and its provider.
//!
//! The gateway, the spending rules and the ledger are the real ones; the server keeps count of what
//! it worked for, whether or not it told. Decides nothing about the product.

mod client;
mod server;
mod story;

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use kapi_agent::launch::upstream::{AgentUpstream, KeyLocation};
use kapi_core::failure::Failure;
use kapi_core::isolation::{NetworkMode, SandboxLevel};
use kapi_core::room::Room;
use kapi_core::usage::Usage;
use kapi_gateway::model::rules::{CallRules, ProviderTools};
use kapi_machine::effect_room::EffectRoom;
use kapi_machine::watch::{Activity, EffectWatch, RoomQuery};
use kapi_run::grant::Grant;
use kapi_run::network::NetworkAccess;
use kapi_run::network::serve::NetworkServices;
use kapi_run::run_dir::RunDir;
use kapi_run::spending::turn::{BookedTurn, TurnKey};
use kapi_run::spending::{BookedResult, Spending};
use kapi_spend::record::{Ledger, LedgerHome};
use kapi_spend::rules::account::ModelRole;
use kapi_spend::rules::caps::Caps;
use kapi_spend::rules::prices::Prices;
use kapi_spend::rules::report::{SpendGrouping, SpendSelection, report};
use kapi_spend::rules::totals::Sum;
use kapi_sys::cancel::Cancel;
use kapi_sys::clock::SystemClock;
use kapi_sys::real_disk::RealDisk;

use crate::books::server::BookServer;
use crate::books::story::Story;

/// The most millionths by which the parts of one call cost more than the whole.
const ROUNDED_MICROS_MAX: u64 = 4;

/// What a server worked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ServedUsage {
    /// Calls that cost something.
    pub calls: u64,
    /// Those of them whose model has no price.
    pub unpriced_calls: u64,
    /// Tokens read and written.
    pub tokens: u64,
    /// What the priced ones cost, each rounded up to a millionth of a US dollar.
    pub usd_micros: u64,
    /// The most tokens of one call.
    pub largest_tokens: u64,
    /// The most that one call cost.
    pub largest_usd_micros: u64,
}

/// What came of one seed.
#[derive(Debug, Clone, Copy)]
pub struct BooksTally {
    /// What was served.
    pub served: ServedUsage,
    /// What the books say.
    pub booked: Usage,
    /// Whether a limit ended the run.
    pub is_limited: bool,
}

/// Books that are wrong.
#[derive(Debug, thiserror::Error)]
pub enum BooksError {
    /// Something that the run stands on could not be had.
    #[error("play seed {seed}: {why}")]
    Setup {
        /// The seed.
        seed: u64,
        /// Why.
        why: String,
    },
    /// They do not agree with what was served.
    #[error("seed {seed}: {what}\nserved {served:?}\nbooked {booked:?}")]
    Wrong {
        /// The seed.
        seed: u64,
        /// What is wrong.
        what: String,
        /// What was served.
        served: Box<ServedUsage>,
        /// What was booked.
        booked: Box<Usage>,
    },
}

/// Plays one seed, and compares the books with what was served.
///
/// # Errors
/// When they do not agree, or something that the run stands on cannot be had.
pub fn play(seed: u64) -> Result<BooksTally, BooksError> {
    let story = Story::of(seed);
    let failed = |why: String| BooksError::Setup { seed, why };
    let home = tempfile::tempdir().map_err(|error| failed(error.to_string()))?;
    let server = BookServer::start(&story).map_err(|error| failed(error.to_string()))?;
    let ledger_home = LedgerHome {
        disk: &RealDisk,
        clock: &SystemClock,
        home: home.path().to_path_buf(),
        owner: "books".to_owned(),
    };
    let ledger = Ledger::open(ledger_home.clone()).map_err(|error| failed(error.to_string()))?;
    let spending = Spending {
        ledger: Some(ledger),
        caps: Caps {
            machine_per_day: story.cap_usd_micros,
            ask_at_percent: 100,
            allows_unpriced: story.allows_unpriced,
            ..Caps::none()
        },
        project: "books".to_owned(),
        clock: &SystemClock,
    };
    let booked = Mutex::new(Usage::ZERO);
    let cancel = Cancel::new();
    let heard = RunAccount {
        booked: &booked,
        cancel: &cancel,
    };
    let is_limited = run(&story, &server, &spending, heard, home.path()).map_err(failed)?;
    let booked = *booked.lock().unwrap_or_else(PoisonError::into_inner);
    let totals = ledger_home
        .totals()
        .map_err(|error| failed(error.to_string()))?;
    let selection = SpendSelection {
        project: None,
        since: None,
    };
    let in_ledger = report(&totals, SpendGrouping::Project, &selection).total;
    let served = server.served();
    match wrong(&story, &served, &booked, &in_ledger) {
        None => Ok(BooksTally {
            served,
            booked,
            is_limited,
        }),
        Some(what) => Err(BooksError::Wrong {
            seed,
            what,
            served: Box::new(served),
            booked: Box::new(booked),
        }),
    }
}

/// Lets the agent of a story ask all that it wants; tells whether a limit ended that.
fn run(
    story: &Story,
    server: &BookServer,
    spending: &Spending<'_>,
    heard: RunAccount<'_>,
    home: &Path,
) -> Result<bool, String> {
    let room = EffectRoom::default();
    room.set_limit(Room::left(story.tokens, story.usd_micros, &Usage::ZERO));
    let share = room.share();
    let notice = |activity: Activity| {
        if let Activity::Used(usage) = activity {
            share.count(&usage);
            let mut booked = heard.booked.lock().unwrap_or_else(PoisonError::into_inner);
            booked.add(&usage);
        }
    };
    let limits = |query: &RoomQuery<'_>| match query {
        RoomQuery::Claim(claim) => share.claim(claim),
        RoomQuery::Refused { .. } => Room::UNLIMITED,
    };
    let watch = EffectWatch {
        cancel: heard.cancel,
        notice: &notice,
        room: &limits,
    };
    let grants = story::grants().map_err(|error| error.to_string())?;
    let turn = BookedTurn::of_model(
        TurnKey {
            goal: "001-books".to_owned(),
            effect: "t1".to_owned(),
        },
        story::PROVIDER,
        story::PRICED,
        ModelRole::Executor,
        &grants,
    );
    let asked = spending.booked(&turn, &watch, |watch| BookedResult {
        value: ask(
            story,
            server,
            RunTerms {
                prices: &grants.prices,
                watch,
            },
            home,
        ),
        rest: Usage::ZERO,
        has_run: true,
    });
    let (asked, stopped) = asked.map_err(|stopped| stopped.text())?;
    asked.map_err(|failure| failure.message)?;
    Ok(stopped.is_some())
}

/// Serves a gateway to the agent of a story, in front of the server.
fn ask(story: &Story, server: &BookServer, with: RunTerms<'_>, home: &Path) -> Result<(), Failure> {
    let RunTerms { prices, watch } = with;
    let grant = Grant::default();
    let mut access = NetworkAccess::new(SandboxLevel::None, NetworkMode::Open, &grant)?;
    access.upstream = Some(AgentUpstream {
        base_url: format!("http://127.0.0.1:{}", server.port()),
        key: None,
        key_location: KeyLocation::Bearer,
        dialect: story.dialect,
    });
    let run_dir = RunDir::open(home, "run")?;
    let rules = CallRules {
        models: Vec::new(),
        provider_tools: ProviderTools::TakenOut,
    };
    let served = NetworkServices::new(&access, watch, &run_dir)?.with_models(prices, rules);
    let gateway = access.gateway();
    served.open(|_| {
        client::ask_all(story, gateway.url, gateway.placeholder, watch.cancel);
        Ok(())
    })
}

/// Where what happens is kept.
#[derive(Clone, Copy)]
struct RunAccount<'a> {
    booked: &'a Mutex<Usage>,
    cancel: &'a Cancel,
}

/// Prices, and who limits what is asked.
#[derive(Clone, Copy)]
struct RunTerms<'a> {
    prices: &'a Prices,
    watch: &'a EffectWatch<'a>,
}

/// Says in what the books are wrong, if they are.
fn wrong(story: &Story, served: &ServedUsage, booked: &Usage, in_ledger: &Sum) -> Option<String> {
    let (tokens, doubt) = (booked.tokens(), &booked.doubt);
    let usd_micros = booked.usd_micros.unwrap_or(0);
    // Each report of a part is rounded up by itself.
    let rounded = served.calls.saturating_mul(ROUNDED_MICROS_MAX);
    let limited_usd = match (story.usd_micros, story.cap_usd_micros) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    };
    let is_over = |limit: Option<u64>, used: u64, largest: u64| {
        limit.is_some_and(|limit| used > limit.saturating_add(largest))
    };
    let is_refused = limited_usd.is_some() && !story.allows_unpriced;
    let rules = [
        (
            tokens < served.tokens,
            "fewer tokens are booked than were served",
        ),
        (
            tokens.saturating_sub(doubt.tokens) > served.tokens,
            "more tokens are booked as certain than were served",
        ),
        (
            usd_micros < served.usd_micros,
            "less money is booked than was served",
        ),
        (
            usd_micros.saturating_sub(doubt.usd_micros) > served.usd_micros.saturating_add(rounded),
            "more money is booked as certain than was served",
        ),
        (
            doubt.unpriced_calls > served.unpriced_calls
                || (doubt.unpriced_calls == 0) != (served.unpriced_calls == 0),
            "calls without a price are miscounted",
        ),
        (
            is_refused && served.unpriced_calls > 0,
            "a model without a price was asked although money is limited",
        ),
        (
            is_over(story.tokens, served.tokens, served.largest_tokens),
            "the limit of tokens is passed by more than one answer",
        ),
        (
            is_over(limited_usd, served.usd_micros, served.largest_usd_micros),
            "the limit of money is passed by more than one answer",
        ),
        (
            in_ledger.tokens.total() != tokens
                || in_ledger.usd_micros != usd_micros
                || in_ledger.doubt != *doubt,
            "the ledger differs from what was told",
        ),
    ];
    rules
        .iter()
        .find(|(is_wrong, _)| *is_wrong)
        .map(|(_, what)| (*what).to_owned())
}

#[cfg(test)]
mod tests {
    use kapi_core::usage::{Doubt, Usage};
    use kapi_spend::rules::tokens::TokenCounts;
    use kapi_spend::rules::totals::Sum;

    use super::story::Story;
    use super::{ServedUsage, wrong};

    /// Two calls, one of which broke off, within their limits.
    struct Case {
        story: Story,
        served: ServedUsage,
        booked: Usage,
    }

    impl Case {
        fn right() -> Self {
            let mut story = Story::of(1);
            (story.tokens, story.usd_micros, story.cap_usd_micros) =
                (Some(1_000), Some(2_000), None);
            story.allows_unpriced = false;
            Self {
                story,
                served: ServedUsage {
                    calls: 2,
                    unpriced_calls: 0,
                    tokens: 1_200,
                    usd_micros: 2_100,
                    largest_tokens: 700,
                    largest_usd_micros: 1_500,
                },
                booked: Usage {
                    input_tokens: 1_000,
                    output_tokens: 500,
                    usd_micros: Some(2_600),
                    doubt: Doubt {
                        calls: 1,
                        tokens: 400,
                        usd_micros: 600,
                        unpriced_calls: 0,
                    },
                },
            }
        }

        fn found(&self) -> Option<String> {
            let in_ledger = Sum {
                tokens: TokenCounts::of_usage(&self.booked),
                usd_micros: self.booked.usd_micros.unwrap_or(0),
                doubt: self.booked.doubt,
                ..Sum::default()
            };
            wrong(&self.story, &self.served, &self.booked, &in_ledger)
        }
    }

    #[test]
    fn every_rule_of_the_books_can_be_broken() {
        assert_eq!(Case::right().found(), None);
        let check = |spoil: &dyn Fn(&mut Case), words: &str| {
            let mut case = Case::right();
            spoil(&mut case);
            let found = case.found().expect("the books are wrong");
            assert!(found.contains(words), "{found}");
        };
        check(&|case| case.booked.output_tokens = 100, "fewer tokens");
        check(&|case| case.booked.doubt.tokens = 200, "more tokens");
        check(&|case| case.booked.usd_micros = Some(2_000), "less money");
        check(&|case| case.booked.doubt.usd_micros = 400, "more money");
        check(&|case| case.booked.doubt.unpriced_calls = 1, "miscounted");
        let unpriced = |case: &mut Case| {
            case.served.unpriced_calls = 1;
            case.booked.doubt.unpriced_calls = 1;
        };
        check(&unpriced, "although money is limited");
        check(&|case| case.served.largest_tokens = 100, "limit of tokens");
        check(
            &|case| case.served.largest_usd_micros = 50,
            "limit of money",
        );
        let case = Case::right();
        let found = wrong(&case.story, &case.served, &case.booked, &Sum::default());
        assert_eq!(
            found.as_deref(),
            Some("the ledger differs from what was told")
        );
    }
}
