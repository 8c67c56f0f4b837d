//! Times of one real benchmark, in the order in which they were recorded.
//!
//! Pure text and numbers; how they are recorded is not known here.

/// What a line begins with that is no number.
const COMMENT: char = '#';

/// A recorded series.
#[derive(Debug, Clone, PartialEq)]
pub struct NoiseSeries {
    /// What was run, and what else the machine did.
    pub name: String,
    values: Vec<f64>,
    middle: f64,
}

/// How a series scatters.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SeriesShape {
    /// Its median.
    pub median: f64,
    /// The median distance from it, in percent.
    pub scatter: f64,
    /// By how many percent the run that 99 of 100 do not exceed is above the median.
    pub tail: f64,
    /// How much a run tells of the next: 0 nothing, 1 everything.
    pub memory: f64,
}

/// A file that is no series.
#[derive(Debug, thiserror::Error)]
#[error("read the series: {problem}")]
pub struct SeriesError {
    /// What is wrong with it.
    problem: String,
}

impl NoiseSeries {
    /// Returns a series of these times.
    #[must_use]
    pub fn of(name: &str, values: Vec<f64>) -> Self {
        Self {
            name: name.to_owned(),
            middle: middle(&values),
            values,
        }
    }

    /// Reads a file: its name in the first line, then a time a line.
    ///
    /// # Errors
    /// When a line is no time, or there are none.
    pub fn parse(text: &str) -> Result<Self, SeriesError> {
        let mut lines = text.lines();
        let fault = |problem: String| SeriesError { problem };
        let name = lines.next().and_then(|line| line.strip_prefix(COMMENT));
        let name = name.ok_or_else(|| fault("its first line has no name".to_owned()))?;
        let times = lines.filter(|line| !line.starts_with(COMMENT));
        let values: Result<Vec<f64>, SeriesError> = times
            .map(|line| match line.parse::<f64>() {
                Ok(value) if value > 0.0 && value.is_finite() => Ok(value),
                Ok(_) | Err(_) => Err(fault(format!("{line:?} is no time"))),
            })
            .collect();
        let values = values?;
        if values.is_empty() {
            return Err(fault("it has no times".to_owned()));
        }
        Ok(Self::of(name.trim(), values))
    }

    /// Returns a run as a part of the median; after the last comes the first.
    #[must_use]
    pub fn relative(&self, at: usize) -> f64 {
        let value = self
            .values
            .iter()
            .cycle()
            .nth(at % self.values.len().max(1));
        value.copied().unwrap_or(self.middle) / self.middle
    }

    /// Returns how it scatters.
    #[must_use]
    pub fn shape(&self) -> SeriesShape {
        let away: Vec<f64> = self
            .values
            .iter()
            .map(|value| (value - self.middle).abs())
            .collect();
        let percent = |part: f64| part / self.middle * 100.0;
        SeriesShape {
            median: self.middle,
            scatter: percent(middle(&away)),
            tail: percent(quantile(&self.values, 99) - self.middle),
            memory: self.memory(),
        }
    }

    /// Returns the correlation of the ranks of neighbours, which outliers do not make.
    fn memory(&self) -> f64 {
        let sign = |value: &f64| if *value > self.middle { 1.0 } else { -1.0 };
        let signs: Vec<f64> = self.values.iter().map(sign).collect();
        let products: f64 = signs
            .iter()
            .zip(signs.iter().skip(1))
            .map(|(one, next)| one * next)
            .sum();
        let n = u32::try_from(signs.len().saturating_sub(1)).unwrap_or(u32::MAX);
        products / f64::from(n.max(1))
    }
}

fn middle(values: &[f64]) -> f64 {
    quantile(values, 50)
}

fn quantile(values: &[f64], percent: usize) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = (sorted.len().saturating_sub(1)) * percent / 100;
    sorted.get(at).copied().unwrap_or(1.0)
}

#[cfg(test)]
mod tests {
    use super::NoiseSeries;

    #[test]
    fn a_series_is_read_and_repeated() {
        let series =
            NoiseSeries::parse("# sort, alone\n# recorded somewhere\n10\n12\n11\n").unwrap();
        assert_eq!(series.name, "sort, alone");
        let around: Vec<f64> = (0..4).map(|at| series.relative(at) * 11.0).collect();
        assert!((around[0] - 10.0).abs() < 1e-9 && (around[3] - 10.0).abs() < 1e-9);
        for bad in ["10\n", "# name\n", "# name\nx\n", "# name\n-1\n"] {
            assert!(NoiseSeries::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_shape_tells_drift_from_scatter() {
        let slow = |n: u32| if n % 200 < 100 { 100.0 } else { 106.0 };
        let drifts = NoiseSeries::of("drifts", (0..1_000).map(slow).collect());
        let swings = |n: u32| if n.is_multiple_of(2) { 100.0 } else { 106.0 };
        let swings = NoiseSeries::of("swings", (0..1_000).map(swings).collect());
        assert!(drifts.shape().memory > 0.9, "{:?}", drifts.shape());
        assert!(swings.shape().memory < -0.9, "{:?}", swings.shape());
    }
}
