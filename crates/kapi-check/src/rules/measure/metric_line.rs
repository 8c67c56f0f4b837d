//! The lines by which a benchmark says its metrics: `METRIC name=value`, as pi-autoresearch reads
//! them.
//!
//! Each line is looked at as it passes, so that nothing is lost of an output of any length.

use crate::rules::measure::Reading;
use crate::rules::measure::counter::Counter;
use crate::rules::measure::number::Number;

/// What a line begins with.
const WORD: &str = "METRIC";
/// Names that mean something else to a reader in JavaScript.
const RESERVED: [&str; 3] = ["__proto__", "constructor", "prototype"];
/// The most metrics of one run that are kept.
pub const METRICS_MAX: usize = 200;
/// The longest name, in bytes.
const NAME_BYTES_MAX: usize = 200;

/// The metrics of one run, in the order of first mention; of one that is said again the last value
/// holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Readings(Vec<Reading>);

impl Readings {
    /// Looks at one line of output.
    pub fn line(&mut self, line: &str) {
        let Some(reading) = parse(line) else {
            return;
        };
        let known = self.0.iter_mut().find(|known| known.name == reading.name);
        if let Some(known) = known {
            known.value = reading.value;
            known.lines = known.lines.saturating_add(1);
        } else if self.0.len() < METRICS_MAX {
            self.0.push(reading);
        }
    }

    /// Adds what Kapi has taken itself.
    pub fn take(&mut self, counter: Counter, value: u64) {
        // Counts beyond what a number holds exactly are rounded.
        #[expect(
            clippy::cast_precision_loss,
            reason = "a metric is a number with 53 bits"
        )]
        let value = Number::new(value as f64);
        let reading = value.map(|value| Reading::of(counter.name().to_owned(), value));
        self.0.extend(reading);
    }

    /// Returns them.
    #[must_use]
    pub fn into_vec(self) -> Vec<Reading> {
        self.0
    }
}

/// Reads one line; `None` where it says no metric.
#[must_use]
pub fn parse(line: &str) -> Option<Reading> {
    let rest = line.strip_prefix(WORD)?;
    let said = rest.trim_start();
    if said.len() == rest.len() {
        return None;
    }
    let (name, value) = said.trim_end().split_once('=')?;
    let value = Number::parse(value)?;
    (is_name(name) && !Counter::is_reserved(name)).then(|| Reading::of(name.to_owned(), value))
}

/// Tells whether a metric may have this name.
#[must_use]
pub fn is_name(name: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '\u{b5}');
    (1..=NAME_BYTES_MAX).contains(&name.len())
        && name.chars().all(is_part)
        && !RESERVED.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::{METRICS_MAX, Readings, parse};

    fn said(line: &str) -> Option<String> {
        parse(line).map(|reading| format!("{}={}", reading.name, reading.value))
    }

    #[test]
    fn whole_lines_of_one_shape_say_a_metric() {
        for (line, expected) in [
            ("METRIC ms=12.5", "ms=12.5"),
            ("METRIC \t total.ms_1=1e3", "total.ms_1=1000"),
            ("METRIC a=5\r", "a=5"),
            ("METRIC a=5   ", "a=5"),
            ("METRIC \u{b5}s=3", "\u{b5}s=3"),
            ("METRIC a=0x10", "a=16"),
        ] {
            assert_eq!(said(line).as_deref(), Some(expected), "{line}");
        }
        for line in [
            " METRIC a=1",
            "x METRIC a=1",
            "METRICa=1",
            "METRIC a=1 b=2",
            "METRIC a = 1",
            "METRIC a= 1",
            "metric a=1",
            "METRIC \u{3bc}s=1",
            "METRIC a-b=1",
            "METRIC a/b=1",
            "METRIC a b=1",
            "METRIC =1",
            "METRIC a=",
            "METRIC a=1_000",
            "METRIC a=NaN",
            "METRIC __proto__=1",
            "METRIC constructor=1",
            "METRIC kapi.instructions=1",
            "METRIC",
        ] {
            assert_eq!(said(line), None, "{line}");
        }
    }

    #[test]
    fn the_last_value_holds_at_the_first_place() {
        let mut readings = Readings::default();
        for line in ["METRIC a=1", "noise", "METRIC b=2", "METRIC a=3"] {
            readings.line(line);
        }
        for n in 0..METRICS_MAX + 5 {
            readings.line(&format!("METRIC m{n}=1"));
        }
        let all = readings.into_vec();
        let shown: Vec<_> = all
            .iter()
            .map(|it| format!("{}={}", it.name, it.value))
            .collect();
        assert_eq!(shown[..2], ["a=3", "b=2"]);
        assert_eq!((all[0].lines, all[1].lines), (2, 1));
        assert_eq!(all.len(), METRICS_MAX);
    }
}
