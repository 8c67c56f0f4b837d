//! Amounts as people write them: durations, money, counts, sizes.
//!
//! Each kind has one function, which says what it expected; nothing is rounded silently.

/// Decimals of an amount that can be kept.
const DECIMALS_MAX: usize = 6;

/// Reads `90s`, `15m`, `2h`, `1d` or a plain number of seconds, as milliseconds.
///
/// # Errors
/// With the rule that the text breaks.
pub fn parse_duration_ms(text: &str) -> Result<u64, String> {
    let (digits, unit) = digits_and_rest(text.trim());
    let scale = match unit.trim_start() {
        "ms" => Some(1),
        "" | "s" => Some(1_000),
        "m" | "min" => Some(60_000),
        "h" => Some(3_600_000),
        "d" => Some(86_400_000),
        _ => None,
    };
    let ms = scale.and_then(|scale| digits.parse::<u64>().ok()?.checked_mul(scale));
    ms.ok_or_else(|| format!("{text:?} is not a duration such as 90s, 15m, 2h or 1d"))
}

/// Reads a count with an optional `k` or `M`.
///
/// # Errors
/// With the rule that the text breaks.
pub fn parse_count(text: &str) -> Result<u64, String> {
    let (digits, unit) = digits_and_rest(text.trim());
    let scale = match unit {
        "" => Some(1),
        "k" => Some(1_000),
        "M" => Some(1_000_000),
        _ => None,
    };
    let count = scale.and_then(|scale| digits.parse::<u64>().ok()?.checked_mul(scale));
    count.ok_or_else(|| format!("{text:?} is not a count such as 10, 500k or 2M"))
}

/// Reads US dollars with at most six decimals, as millionths.
///
/// # Errors
/// With the rule that the text breaks.
pub fn parse_usd_micros(text: &str) -> Result<u64, String> {
    let plain = text.trim();
    let plain = plain.strip_prefix('$').unwrap_or(plain);
    parse_millionths(plain).ok_or_else(|| {
        format!(
            "{text:?} is not an amount of US dollars such as 5 or 0.25, with at most six decimals"
        )
    })
}

/// Reads digits, perhaps with a point and at most six digits after it, as millionths.
#[must_use]
pub fn parse_millionths(text: &str) -> Option<u64> {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, "0"));
    let is_digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    if !is_digits(whole) || !is_digits(decimals) || decimals.len() > DECIMALS_MAX {
        return None;
    }
    let decimals: u64 = format!("{decimals:0<DECIMALS_MAX$}").parse().ok()?;
    let whole: u64 = whole.parse().ok()?;
    whole.checked_mul(1_000_000)?.checked_add(decimals)
}

/// Reads `512m`, `8g`, `1TiB` or a plain number of bytes; every unit is a power of 1024.
///
/// # Errors
/// With the rule that the text breaks.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    let trimmed = text.trim().to_ascii_lowercase();
    let (digits, unit) = digits_and_rest(&trimmed);
    let power = match unit {
        "" | "b" => Some(0),
        "k" | "kb" | "kib" => Some(1),
        "m" | "mb" | "mib" => Some(2),
        "g" | "gb" | "gib" => Some(3),
        "t" | "tb" | "tib" => Some(4),
        _ => None,
    };
    let bytes =
        power.and_then(|power| digits.parse::<u64>().ok()?.checked_mul(1024_u64.pow(power)));
    bytes
        .filter(|bytes| *bytes > 0)
        .ok_or_else(|| format!("{text:?} is not a size such as 512m or 8g"))
}

/// Reads a number of processors, such as `1.5`, in thousandths.
///
/// # Errors
/// With the rule that the text breaks.
pub fn parse_cpu_millis(text: &str) -> Result<u64, String> {
    let cpus: Option<f64> = text.trim().parse().ok();
    let millis = cpus.and_then(|cpus| format!("{:.0}", cpus * 1000.0).parse::<u64>().ok());
    millis
        .filter(|millis| (10..=1_024_000).contains(millis))
        .ok_or_else(|| format!("it must be between 0.01 and 1024 processors, not {text}"))
}

fn digits_and_rest(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit());
    text.split_at(end.unwrap_or(text.len()))
}

#[cfg(test)]
mod tests {
    use super::{parse_bytes, parse_count, parse_duration_ms, parse_usd_micros};

    #[test]
    fn durations_have_a_unit_or_are_seconds() {
        for (text, ms) in [
            ("90", 90_000),
            ("90s", 90_000),
            ("15 m", 900_000),
            ("2h", 7_200_000),
            ("1d", 86_400_000),
            ("250ms", 250),
            ("0", 0),
        ] {
            assert_eq!(parse_duration_ms(text), Ok(ms), "{text}");
        }
        for bad in ["", "h", "1w", "-1s", "1.5h", "99999999999999999999s"] {
            assert!(parse_duration_ms(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn sizes() {
        assert_eq!(parse_bytes("8g"), Ok(8 << 30));
        assert_eq!(parse_bytes("512MiB"), Ok(512 << 20));
        assert_eq!(parse_bytes("4096"), Ok(4096));
        for bad in ["", "g", "0", "-1g", "1.5g", "8x", "99999999999t"] {
            assert!(parse_bytes(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn counts_and_money() {
        assert_eq!(parse_count("500k"), Ok(500_000));
        assert_eq!(parse_count("2M"), Ok(2_000_000));
        for bad in ["", "-1", "k", "1m", "1 k"] {
            assert!(parse_count(bad).is_err(), "{bad}");
        }
        assert_eq!(parse_usd_micros("0.25"), Ok(250_000));
        assert_eq!(parse_usd_micros("$5"), Ok(5_000_000));
        for bad in ["", ".", "1.", ".5", "-1", "1e3", "0.0000001", "x"] {
            assert!(parse_usd_micros(bad).is_err(), "{bad}");
        }
    }
}
