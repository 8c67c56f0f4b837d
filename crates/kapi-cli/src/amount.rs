//! Amounts as people write them: durations, money, counts, and additions to them.
//!
//! Every reader says what it expected; nothing is rounded silently.

/// Reads `90s`, `15m`, `2h`, `1d` or a plain number of seconds, as milliseconds.
pub(crate) fn parse_duration_ms(text: &str) -> Result<u64, String> {
    let trimmed = text.trim();
    let digits_end = trimmed
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(trimmed.len());
    let (digits, unit) = trimmed.split_at(digits_end);
    let scale: u64 = match unit {
        "ms" => 1,
        "" | "s" => 1_000,
        "m" | "min" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return Err(duration_rule(text)),
    };
    let count: u64 = digits.parse().map_err(|_| duration_rule(text))?;
    count
        .checked_mul(scale)
        .filter(|ms| *ms > 0)
        .ok_or_else(|| duration_rule(text))
}

fn duration_rule(text: &str) -> String {
    format!("{text:?} is not a duration such as 90s, 15m, 2h or 1d")
}

/// Reads a duration for clap, with an optional leading `+`.
pub(crate) fn parse_added_duration_ms(text: &str) -> Result<u64, String> {
    parse_duration_ms(text.strip_prefix('+').unwrap_or(text))
}

/// Reads a count with an optional leading `+` and an optional `k` or `M`.
pub(crate) fn parse_count(text: &str) -> Result<u64, String> {
    let rule = || format!("{text:?} is not a count such as 10, 500k or 2M");
    let trimmed = text.trim().strip_prefix('+').unwrap_or(text.trim());
    let (digits, scale): (&str, u64) = match trimmed.char_indices().last() {
        Some((at, 'k')) => (trimmed.get(..at).unwrap_or_default(), 1_000),
        Some((at, 'M')) => (trimmed.get(..at).unwrap_or_default(), 1_000_000),
        Some(_) | None => (trimmed, 1),
    };
    let count: u64 = digits.parse().map_err(|_| rule())?;
    count.checked_mul(scale).ok_or_else(rule)
}

/// Reads US dollars with at most six decimals and an optional leading `+`, as millionths.
pub(crate) fn parse_usd_micros(text: &str) -> Result<u64, String> {
    let rule = || format!("{text:?} is not an amount of US dollars such as 5 or 0.25");
    let trimmed = text.trim();
    let plain = trimmed.strip_prefix('+').unwrap_or(trimmed);
    let plain = plain.strip_prefix('$').unwrap_or(plain);
    let (whole, fraction) = plain.split_once('.').unwrap_or((plain, ""));
    if fraction.len() > 6 || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(rule());
    }
    let whole: u64 = whole.parse().map_err(|_| rule())?;
    let fraction: u64 = format!("{fraction:0<6}").parse().map_err(|_| rule())?;
    whole
        .checked_mul(1_000_000)
        .and_then(|w| w.checked_add(fraction))
        .ok_or_else(rule)
}

/// Reads `512m`, `8g`, `1TiB` or a plain number of bytes; every unit is a power of 1024.
pub(crate) fn parse_bytes(text: &str) -> Result<u64, String> {
    let rule = || format!("{text:?} is not a size such as 512m or 8g");
    let trimmed = text.trim().to_ascii_lowercase();
    let digits_end = trimmed
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(trimmed.len());
    let (digits, unit) = trimmed.split_at(digits_end);
    let power = match unit {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 1,
        "m" | "mb" | "mib" => 2,
        "g" | "gb" | "gib" => 3,
        "t" | "tb" | "tib" => 4,
        _ => return Err(rule()),
    };
    let count: u64 = digits.parse().map_err(|_| rule())?;
    count
        .checked_mul(1024_u64.pow(power))
        .filter(|bytes| *bytes > 0)
        .ok_or_else(rule)
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
    use super::{
        bytes, duration, parse_bytes, parse_count, parse_duration_ms, parse_usd_micros, tokens, usd,
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
        assert_eq!(parse_bytes("8g"), Ok(8 << 30));
        assert_eq!(parse_bytes("512MiB"), Ok(512 << 20));
        assert_eq!(parse_bytes("4096"), Ok(4096));
        for bad in ["", "g", "0", "-1g", "1.5g", "8x", "99999999999t"] {
            assert!(parse_bytes(bad).is_err(), "{bad}");
        }
        assert_eq!(bytes(8 << 30), "8 GiB");
        assert_eq!(bytes(1500 << 20), "1500 MiB");
        assert_eq!(bytes(1000), "1000 bytes");
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
