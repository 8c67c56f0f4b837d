//! Amounts as people write them: durations, money, counts, and additions to them.
//!
//! Every reader says what it expected; nothing is rounded silently.

use kapi_core::text::counted;
use kapi_core::usage::Usage;
use kapi_settings::amount;

/// Reads a duration for clap, with an optional leading `+`; one of nothing is none.
pub(crate) fn parse_duration_ms(text: &str) -> Result<u64, String> {
    let ms = amount::parse_duration_ms(added(text))?;
    match ms {
        0 => Err(format!(
            "{text:?} is not a duration such as 90s, 15m, 2h or 1d"
        )),
        ms => Ok(ms),
    }
}

/// Reads a count for clap, with an optional leading `+`.
pub(crate) fn parse_count(text: &str) -> Result<u64, String> {
    amount::parse_count(added(text))
}

/// Reads US dollars for clap, with an optional leading `+`, as millionths.
pub(crate) fn parse_usd_micros(text: &str) -> Result<u64, String> {
    amount::parse_usd_micros(added(text))
}

fn added(text: &str) -> &str {
    let text = text.trim();
    text.strip_prefix('+').unwrap_or(text)
}

/// Writes a size with the largest unit that leaves a whole number: `8 GiB`, `1500 MiB`.
pub(crate) fn bytes(count: u64) -> String {
    let units = [
        (1_u64 << 40, "TiB"),
        (1 << 30, "GiB"),
        (1 << 20, "MiB"),
        (1 << 10, "KiB"),
    ];
    units
        .iter()
        .find(|(size, _)| count >= *size && count.is_multiple_of(*size))
        .map_or_else(
            || format!("{count} bytes"),
            |(size, name)| format!("{} {name}", count / size),
        )
}

/// Writes millionths of a US dollar as `$1.25`.
pub(crate) fn usd(micros: u64) -> String {
    let cents_and_less = micros % 1_000_000;
    let text = format!("${}.{:06}", micros / 1_000_000, cents_and_less);
    let shown = text.trim_end_matches('0');
    let decimals = shown.rsplit('.').next().map_or(0, str::len);
    format!("{shown}{}", "0".repeat(2_usize.saturating_sub(decimals)))
}

/// Writes what was spent of money. Where nobody knows, it matters whether a model was asked at all as far
/// as Kapi saw: a command or a script need not have.
pub(crate) fn spent(used: &Usage) -> String {
    cost(used).unwrap_or_else(|| not_known(used.tokens()).to_owned())
}

/// Says that the cost of so many tokens is not known, or that there were none to count.
pub(crate) const fn not_known(tokens: u64) -> &'static str {
    match tokens {
        0 => "none counted",
        _ => "unknown",
    }
}

/// Writes what something cost as far as it is known; nothing where nobody knows anything.
///
/// A sum with parts that were broken off or have no price is said to be at least so much.
pub(crate) fn cost(used: &Usage) -> Option<String> {
    let doubt = &used.doubt;
    let at_most = match used.usd_micros {
        Some(micros) => micros,
        None if doubt.unpriced_calls > 0 => 0,
        None => return None,
    };
    let at_least = at_most.saturating_sub(doubt.usd_micros);
    let is_doubtful = doubt.usd_micros > 0;
    if !is_doubtful && doubt.unpriced_calls == 0 {
        return Some(usd(at_most));
    }
    let mut parts = vec![format!("at least {}", usd(at_least))];
    if is_doubtful {
        let calls = counted(doubt.calls, "call");
        parts.push(format!(
            "at most {} ({calls} not fully reported)",
            usd(at_most)
        ));
    }
    if doubt.unpriced_calls > 0 {
        let calls = counted(doubt.unpriced_calls, "call");
        parts.push(format!("{calls} of unknown price"));
    }
    Some(parts.join(", "))
}

/// Writes milliseconds as `2h 05m`, `3m 20s`, `12.3s`.
pub(crate) fn duration(ms: u64) -> String {
    let seconds = ms / 1000;
    match seconds {
        3600.. => format!("{}h {:02}m", seconds / 3600, seconds % 3600 / 60),
        60.. => format!("{}m {:02}s", seconds / 60, seconds % 60),
        _ => format!("{seconds}.{}s", ms % 1000 / 100),
    }
}

/// Writes a count of tokens as `950`, `12.3k`, `1.5M`.
pub(crate) fn tokens(count: u64) -> String {
    match count {
        1_000_000.. => format!("{}.{}M", count / 1_000_000, count % 1_000_000 / 100_000),
        10_000.. => format!("{}.{}k", count / 1_000, count % 1_000 / 100),
        _ => count.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use kapi_core::usage::{Doubt, Usage};

    use super::{
        bytes, cost, duration, parse_count, parse_duration_ms, parse_usd_micros, tokens, usd,
    };

    #[test]
    fn durations() {
        assert_eq!(parse_duration_ms("90"), Ok(90_000));
        assert_eq!(parse_duration_ms("2h"), Ok(7_200_000));
        assert_eq!(parse_duration_ms("250ms"), Ok(250));
        for bad in ["", "h", "0", "1w", "-1s", "99999999999999999999s"] {
            assert!(parse_duration_ms(bad).is_err(), "{bad}");
        }
        assert_eq!(duration(12_345), "12.3s");
        assert_eq!(duration(200_000), "3m 20s");
        assert_eq!(duration(7_500_000), "2h 05m");
    }

    #[test]
    fn sizes() {
        assert_eq!(bytes(8 << 30), "8 GiB");
        assert_eq!(bytes(1500 << 20), "1500 MiB");
        assert_eq!(bytes(1000), "1000 bytes");
    }

    #[test]
    fn what_is_not_known_of_a_cost_is_said() {
        let used = |usd_micros, doubt: Doubt| Usage {
            usd_micros,
            doubt,
            ..Usage::ZERO
        };
        let broken_off = Doubt {
            calls: 1,
            tokens: 9,
            usd_micros: 30_000,
            unpriced_calls: 0,
        };
        let unpriced = Doubt {
            unpriced_calls: 3,
            ..Doubt::NONE
        };
        let mut both = broken_off;
        both.add(&unpriced);
        for (used, expected) in [
            (used(None, Doubt::NONE), None),
            (used(Some(50_000), Doubt::NONE), Some("$0.05")),
            (
                used(Some(50_000), broken_off),
                Some("at least $0.02, at most $0.05 (1 call not fully reported)"),
            ),
            (
                used(Some(3_810), unpriced),
                Some("at least $0.00381, 3 calls of unknown price"),
            ),
            (
                used(None, unpriced),
                Some("at least $0.00, 3 calls of unknown price"),
            ),
            (
                used(Some(50_000), both),
                Some(
                    "at least $0.02, at most $0.05 (1 call not fully reported), 3 calls of unknown price",
                ),
            ),
        ] {
            assert_eq!(cost(&used).as_deref(), expected);
        }
    }

    #[test]
    fn counts_and_money() {
        assert_eq!(parse_count("+10"), Ok(10));
        assert_eq!(parse_count("500k"), Ok(500_000));
        assert!(
            parse_count("").is_err() && parse_count("-1").is_err() && parse_count("k").is_err()
        );
        assert_eq!(parse_usd_micros("+0.25"), Ok(250_000));
        assert_eq!(parse_usd_micros("$5"), Ok(5_000_000));
        assert!(parse_usd_micros("0.0000001").is_err() && parse_usd_micros("x").is_err());
        assert_eq!(usd(1_250_000), "$1.25");
        assert_eq!(usd(3_000), "$0.003");
        assert_eq!(usd(5_000_000), "$5.00");
        assert_eq!(tokens(12_345), "12.3k");
    }
}
