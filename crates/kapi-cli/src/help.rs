//! Help texts with defaults that stand in a constant, which clap does not know.
//!
//! What a command or an option does is said where it is defined.

use std::fmt;

/// Returns a help text that ends with its default, written as clap writes the defaults it knows.
pub(crate) fn with_default(help: &str, default: impl fmt::Display) -> String {
    format!("{help} [default: {default}]")
}

/// Writes a duration as it is typed, with the largest unit that leaves a whole number: `30m`, `1h`.
pub(crate) fn time(ms: u64) -> String {
    let units = [(3_600_000, "h"), (60_000, "m"), (1_000, "s")];
    units
        .iter()
        .find(|(size, _)| ms >= *size && ms.is_multiple_of(*size))
        .map_or_else(
            || format!("{ms}ms"),
            |(size, unit)| format!("{}{unit}", ms / size),
        )
}

#[cfg(test)]
mod tests {
    use super::time;

    #[test]
    fn durations_are_written_as_they_are_typed() {
        assert_eq!(
            [86_400_000, 5_400_000, 1_800_000, 90_000, 1_500].map(time),
            ["24h", "90m", "30m", "90s", "1500ms"]
        );
    }
}
