//! The price list that comes with Kapi: data, to be read and corrected by people.
//!
//! Each row holds from its day until a later row of the same model. Prices are the vendors' list
//! prices for ordinary requests with prompts of ordinary length, in thousandths of a US dollar for
//! a million tokens. A model that is not here has no known price.

use crate::rules::day::Day;

/// One row: provider, model, the day from which it holds, price, source.
#[derive(Debug, Clone, Copy)]
pub struct PriceRow {
    /// Whose list it is on.
    pub provider: &'static str,
    /// The model's name without a date; `*` for every model of the provider.
    pub model: &'static str,
    /// The first day it holds.
    pub from: Day,
    /// Input, output, read from a cache, written to a cache; in thousandths of a US dollar for a
    /// million tokens.
    pub mills: [u64; 4],
    /// Where it was read, and when.
    pub source: &'static str,
}

/// Anthropic's page of prices; five-minute cache writes.
const ANTHROPIC: &str = "platform.claude.com/docs/en/about-claude/pricing, read 2026-10";
/// The same, for models it lists as retired or leaves out.
const ANTHROPIC_OLD: &str = "platform.claude.com/docs/en/about-claude/pricing, read 2026-08";
/// OpenAI's page of prices; before GPT-5.6 writing to a cache costs what input costs.
const OPENAI: &str = "developers.openai.com/api/docs/pricing, read 2026-09";
/// Prices of models that OpenAI's page no longer lists.
const OPENAI_OLD: &str = "developers.openai.com/api/docs/models, read 2026-08";
/// Google's prices, as GitHub repeats them for prompts of at most 200,000 tokens.
const GOOGLE: &str = "github.com/github/docs models-and-pricing.yml, read 2026-09";
/// Google's page of prices, prompts of at most 200,000 tokens.
const GOOGLE_OLD: &str = "ai.google.dev/gemini-api/docs/pricing, read 2026-06";
/// Said by those who run it.
const NO_CHARGE: &str = "no charge for each token";

const fn row(
    provider: &'static str,
    model: &'static str,
    from: Day,
    mills: [u64; 4],
    source: &'static str,
) -> PriceRow {
    PriceRow {
        provider,
        model,
        from,
        mills,
        source,
    }
}

const fn anthropic(model: &'static str, from: Day, mills: [u64; 4]) -> PriceRow {
    row("anthropic", model, from, mills, ANTHROPIC)
}

const fn anthropic_old(model: &'static str, from: Day, mills: [u64; 4]) -> PriceRow {
    row("anthropic", model, from, mills, ANTHROPIC_OLD)
}

const fn openai(model: &'static str, from: Day, mills: [u64; 4]) -> PriceRow {
    row("openai", model, from, mills, OPENAI)
}

const fn openai_old(model: &'static str, from: Day, mills: [u64; 4]) -> PriceRow {
    row("openai", model, from, mills, OPENAI_OLD)
}

const fn google(model: &'static str, from: Day, mills: [u64; 4]) -> PriceRow {
    row("gemini", model, from, mills, GOOGLE)
}

const fn google_old(model: &'static str, from: Day, mills: [u64; 4]) -> PriceRow {
    row("gemini", model, from, mills, GOOGLE_OLD)
}

const fn on(year: i64, month: i64, day: i64) -> Day {
    Day::of_date(year, month, day)
}

/// Every row, in no particular order.
pub const ROWS: &[PriceRow] = &[
    // What a flat subscription covers. A server of one's own is not here: it may pass requests on
    // to a vendor, and only the person knows.
    row("subscription", "*", on(2020, 1, 1), [0, 0, 0, 0], NO_CHARGE),
    // Anthropic.
    anthropic(
        "claude-fable-5-1",
        on(2026, 9, 24),
        [10_000, 50_000, 250, 12_500],
    ),
    anthropic(
        "claude-fable-5",
        on(2026, 8, 1),
        [10_000, 50_000, 1_000, 12_500],
    ),
    anthropic(
        "claude-opus-5-5",
        on(2026, 9, 22),
        [4_000, 20_000, 200, 5_000],
    ),
    anthropic("claude-opus-5", on(2026, 7, 1), [5_000, 25_000, 500, 6_250]),
    anthropic(
        "claude-opus-4-8",
        on(2026, 5, 1),
        [5_000, 25_000, 500, 6_250],
    ),
    anthropic(
        "claude-opus-4-7",
        on(2026, 3, 1),
        [5_000, 25_000, 500, 6_250],
    ),
    anthropic(
        "claude-opus-4-6",
        on(2026, 1, 1),
        [5_000, 25_000, 500, 6_250],
    ),
    anthropic(
        "claude-opus-4-5",
        on(2025, 11, 1),
        [5_000, 25_000, 500, 6_250],
    ),
    anthropic_old(
        "claude-opus-4-1",
        on(2025, 8, 1),
        [15_000, 75_000, 1_500, 18_750],
    ),
    anthropic_old(
        "claude-opus-4",
        on(2025, 5, 1),
        [15_000, 75_000, 1_500, 18_750],
    ),
    anthropic(
        "claude-sonnet-5-5",
        on(2026, 9, 28),
        [2_000, 10_000, 200, 2_500],
    ),
    anthropic(
        "claude-sonnet-5-5",
        on(2026, 10, 7),
        [2_000, 10_000, 100, 2_500],
    ),
    anthropic(
        "claude-sonnet-5",
        on(2026, 6, 1),
        [2_000, 10_000, 200, 2_500],
    ),
    anthropic_old(
        "claude-sonnet-4-6",
        on(2026, 1, 1),
        [3_000, 15_000, 300, 3_750],
    ),
    anthropic_old(
        "claude-sonnet-4-5",
        on(2025, 9, 1),
        [3_000, 15_000, 300, 3_750],
    ),
    anthropic_old(
        "claude-sonnet-4",
        on(2025, 5, 1),
        [3_000, 15_000, 300, 3_750],
    ),
    anthropic("claude-haiku-5-5", on(2026, 10, 7), [100, 500, 10, 125]),
    anthropic(
        "claude-haiku-4-5",
        on(2025, 10, 1),
        [1_000, 5_000, 100, 1_250],
    ),
    anthropic_old("claude-3-5-haiku", on(2024, 11, 1), [800, 4_000, 80, 1_000]),
    // OpenAI.
    openai("gpt-6.1-sol", on(2026, 9, 29), [2_000, 10_000, 100, 2_500]),
    openai(
        "gpt-6-astra",
        on(2026, 9, 1),
        [10_000, 50_000, 1_000, 12_500],
    ),
    openai("gpt-6-sol", on(2026, 9, 22), [2_000, 10_000, 200, 2_500]),
    openai("gpt-6-luna", on(2026, 9, 22), [100, 500, 10, 125]),
    openai("gpt-5.6-sol", on(2026, 7, 1), [5_000, 30_000, 500, 6_250]),
    openai("gpt-5.6-terra", on(2026, 7, 1), [2_000, 12_000, 200, 2_500]),
    openai("gpt-5.6-luna", on(2026, 7, 1), [200, 1_200, 20, 250]),
    openai("gpt-5.5", on(2026, 4, 1), [5_000, 30_000, 500, 5_000]),
    openai_old("gpt-5.4", on(2026, 3, 1), [2_500, 15_000, 250, 2_500]),
    openai_old("gpt-5.4-mini", on(2026, 3, 1), [750, 4_500, 75, 750]),
    openai_old("gpt-5.4-nano", on(2026, 3, 1), [200, 1_250, 20, 200]),
    openai_old("gpt-5.3-codex", on(2026, 2, 1), [1_750, 14_000, 175, 1_750]),
    openai_old("gpt-5.2", on(2025, 12, 1), [1_750, 14_000, 175, 1_750]),
    openai_old(
        "gpt-5.2-codex",
        on(2025, 12, 1),
        [1_750, 14_000, 175, 1_750],
    ),
    openai_old("gpt-5.1", on(2025, 11, 1), [1_250, 10_000, 125, 1_250]),
    openai_old("gpt-5", on(2025, 8, 1), [1_250, 10_000, 125, 1_250]),
    openai_old("gpt-5-codex", on(2025, 9, 1), [1_250, 10_000, 125, 1_250]),
    openai_old("gpt-5-mini", on(2025, 8, 1), [250, 2_000, 25, 250]),
    openai_old("gpt-5-nano", on(2025, 8, 1), [50, 400, 5, 50]),
    openai_old("gpt-4.1", on(2025, 4, 1), [2_000, 8_000, 500, 2_000]),
    openai_old("gpt-4.1-mini", on(2025, 4, 1), [400, 1_600, 100, 400]),
    // Google.
    google("gemini-3.7-flash", on(2026, 9, 1), [750, 3_750, 75, 750]),
    google("gemini-3.6-flash", on(2026, 8, 1), [750, 3_750, 75, 750]),
    google(
        "gemini-3.5-flash",
        on(2026, 5, 1),
        [1_500, 9_000, 150, 1_500],
    ),
    google(
        "gemini-3.1-pro",
        on(2026, 2, 1),
        [2_000, 12_000, 200, 2_000],
    ),
    google_old("gemini-3-pro", on(2025, 11, 1), [2_000, 12_000, 200, 2_000]),
    google_old("gemini-3-flash", on(2025, 12, 1), [500, 3_000, 50, 500]),
    google_old(
        "gemini-2.5-pro",
        on(2025, 6, 1),
        [1_250, 10_000, 125, 1_250],
    ),
    google_old("gemini-2.5-flash", on(2025, 6, 1), [300, 2_500, 30, 300]),
    google_old("gemini-2.5-flash-lite", on(2025, 7, 1), [100, 400, 10, 100]),
];
