//! Measurements as a table that people read.
//!
//! Knows nothing of how they were taken.

use std::fmt::Write as _;

use super::sample::{Pair, Spread};

/// Comparisons that belong together.
#[derive(Debug)]
pub(super) struct ComparisonTable {
    pub(super) title: &'static str,
    /// What must be known to read the numbers.
    pub(super) note: String,
    pub(super) quantity: Quantity,
    pub(super) rows: Vec<ComparisonRow>,
}

/// What a table's numbers are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Quantity {
    /// Seconds.
    Time,
    /// Bytes.
    Memory,
    /// Seconds for each, shown as how many a second.
    Rate,
    /// Tokens of a model.
    Tokens,
}

/// Ours beside a peer.
#[derive(Debug)]
pub(super) struct ComparisonRow {
    pub(super) ours: String,
    pub(super) peer: String,
    pub(super) finding: ComparisonFinding,
}

/// What came of a comparison.
#[derive(Debug)]
pub(super) enum ComparisonFinding {
    Measured(Pair),
    NotRun(Gap),
}

/// Something that could not be run here.
#[derive(Debug, Clone)]
pub(super) struct Gap {
    pub(super) name: String,
    pub(super) reason: String,
    pub(super) is_ours: bool,
}

impl ComparisonTable {
    /// Returns what could not be run.
    pub(super) fn gaps(&self) -> impl Iterator<Item = &Gap> {
        self.rows.iter().filter_map(|row| match &row.finding {
            ComparisonFinding::Measured(_) => None,
            ComparisonFinding::NotRun(gap) => Some(gap),
        })
    }

    /// Writes the table as Markdown.
    pub(super) fn render(&self, out: &mut String) -> std::fmt::Result {
        writeln!(out, "## {}\n\n{}\n", self.title, self.note)?;
        let quantity = match self.quantity {
            Quantity::Time => "time",
            Quantity::Memory => "memory",
            Quantity::Rate => "a second",
            Quantity::Tokens => "tokens",
        };
        writeln!(
            out,
            "| ours | {quantity} | peer | {quantity} | ours / peer | rounds |"
        )?;
        writeln!(out, "|---|---|---|---|---|---|")?;
        for row in &self.rows {
            let (ours, peer) = (&row.ours, &row.peer);
            match &row.finding {
                ComparisonFinding::Measured(pair) => writeln!(
                    out,
                    "| {ours} | {} | {peer} | {} | {} | {} |",
                    self.quantity.shown(pair.ours()),
                    self.quantity.shown(pair.peer()),
                    times(pair.ratio()),
                    pair.rounds(),
                )?,
                ComparisonFinding::NotRun(gap) => {
                    writeln!(
                        out,
                        "| {ours} | | {peer} | | **not run:** {} | 0 |",
                        gap.reason
                    )?;
                }
            }
        }
        writeln!(out)
    }
}

impl Quantity {
    fn shown(self, spread: Spread) -> String {
        if self == Self::Rate {
            return rates(spread);
        }
        if self == Self::Tokens {
            return format!("{:.0}", spread.median);
        }
        let (factor, unit) = match (self, spread.median) {
            (Self::Time, median) if median >= 1.0 => (1.0, "s"),
            (Self::Time, median) if median >= 1e-3 => (1e3, "ms"),
            (Self::Time | Self::Rate | Self::Tokens, _) => (1e6, "µs"),
            (Self::Memory, median) if median >= 1e6 => (1e-6, "MB"),
            (Self::Memory, _) => (1e-3, "kB"),
        };
        let Spread {
            median,
            p99,
            min,
            max,
        } = spread;
        format!(
            "{:.2} {unit} · {:.2} ({:.2} to {:.2})",
            median * factor,
            p99 * factor,
            min * factor,
            max * factor
        )
    }
}

/// Shows times as rates; the longest time is the lowest rate.
fn rates(spread: Spread) -> String {
    let Spread {
        median,
        p99,
        min,
        max,
    } = spread;
    format!(
        "{:.0}/s · {:.0} ({:.0} to {:.0})",
        median.recip(),
        p99.recip(),
        max.recip(),
        min.recip()
    )
}

fn times(spread: Spread) -> String {
    let Spread {
        median, min, max, ..
    } = spread;
    // A small ratio is read as "one so-manieth" faster than as zeros.
    if median < 0.1 && min > 0.0 {
        let one_of = |ratio: f64| format!("1/{:.0}", 1.0 / ratio);
        return format!(
            "**{}** ({} to {})",
            one_of(median),
            one_of(min),
            one_of(max)
        );
    }
    format!("**{median:.2}** ({min:.2} to {max:.2})")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::sample::by_turns;
    use super::{ComparisonFinding, ComparisonRow, ComparisonTable, Gap, Quantity};

    #[test]
    fn rates_are_shown_from_the_lowest_to_the_highest() {
        let mut ours = [9, 9, 9, 10, 2, 5].into_iter().map(Duration::from_millis);
        let pair = by_turns(3, &mut || Ok(ours.next().unwrap()), &mut || {
            Ok(Duration::from_millis(10))
        });
        let shown = Quantity::Rate.shown(pair.unwrap().ours());
        assert_eq!(shown, "200/s · 100 (100 to 500)");
    }

    #[test]
    fn what_was_not_run_stands_in_the_table() {
        let pair = by_turns(1, &mut || Ok(Duration::from_micros(1500)), &mut || {
            Ok(Duration::from_micros(500))
        });
        let gap = Gap {
            name: "podman".to_owned(),
            reason: "it said no".to_owned(),
            is_ours: false,
        };
        let row = |finding| ComparisonRow {
            ours: "kapi".to_owned(),
            peer: "podman".to_owned(),
            finding,
        };
        let table = ComparisonTable {
            title: "Sandboxes",
            note: "Note.".to_owned(),
            quantity: Quantity::Time,
            rows: vec![
                row(ComparisonFinding::Measured(pair.unwrap())),
                row(ComparisonFinding::NotRun(gap)),
            ],
        };
        let mut text = String::new();
        table.render(&mut text).unwrap();
        let lines: Vec<&str> = text.lines().skip(6).collect();
        assert_eq!(
            lines,
            [
                "| kapi | 1.50 ms · 1.50 (1.50 to 1.50) | podman | 500.00 µs · 500.00 (500.00 to 500.00) | **3.00** (3.00 to 3.00) | 1 |",
                "| kapi | | podman | | **not run:** it said no | 0 |",
                "",
            ]
        );
        assert_eq!(table.gaps().count(), 1);
    }
}
