//! Results as they come: how far all so far scatter, told after each at little cost.
//!
//! The same numbers as [`crate::rules::measure::statistics`] finds in a list.

use crate::rules::measure::number::Number;

/// The fewest results that say how far they scatter.
const RESULTS_MIN: usize = 3;

/// Results so far.
#[derive(Debug, Clone, Default)]
pub struct Results {
    sorted: Vec<Number>,
}

impl Results {
    /// Takes one more.
    pub fn add(&mut self, result: Number) {
        let place = self.sorted.partition_point(|known| *known < result);
        self.sorted.insert(place, result);
    }

    /// Returns pi-autoresearch's confidence: how many times the scatter of all results a gain is.
    /// Positive where it is an improvement. `None` of fewer than three results, or where they do not
    /// scatter.
    #[must_use]
    pub fn confidence(&self, gain: f64) -> Option<Number> {
        if self.sorted.len() < RESULTS_MIN {
            return None;
        }
        let scatter = self.scatter()?.get();
        if scatter == 0.0 {
            return None;
        }
        Number::new(gain / scatter)
    }

    /// Returns the median distance from the median.
    fn scatter(&self) -> Option<Number> {
        let n_results = self.sorted.len();
        let middle = self.middle()?.get();
        let away = |place: usize| {
            let result = self.sorted.get(place)?;
            Some((result.get() - middle).abs())
        };
        // Outwards from the middle, the nearer one first, up to the distance in the middle of all.
        let mut above = self.sorted.partition_point(|result| result.get() < middle);
        let mut below = above;
        let mut last = [0.0; 2];
        for _ in 0..=n_results / 2 {
            let (left, right) = (below.checked_sub(1).and_then(away), away(above));
            let is_left = match (left, right) {
                (Some(left), Some(right)) => left < right,
                (left, _) => left.is_some(),
            };
            let nearest = if is_left { left? } else { right? };
            if is_left {
                below -= 1;
            } else {
                above += 1;
            }
            last = [last[1], nearest];
        }
        let [before, at] = last;
        if n_results % 2 == 1 {
            return Number::new(at);
        }
        Number::new(f64::midpoint(before, at))
    }

    fn middle(&self) -> Option<Number> {
        let place = self.sorted.len() / 2;
        let upper = *self.sorted.get(place)?;
        if self.sorted.len() % 2 == 1 {
            return Some(upper);
        }
        let lower = *self.sorted.get(place.checked_sub(1)?)?;
        Number::new(f64::midpoint(lower.get(), upper.get()))
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::{prop_assert_eq, proptest};

    use super::Results;
    use crate::rules::measure::number::Number;
    use crate::rules::measure::statistics::scatter;

    proptest! {
        #[test]
        fn they_scatter_as_a_list_of_them_does(numbers in vec(-20..20_i32, 0..40)) {
            let mut results = Results::default();
            let mut list = Vec::new();
            for number in numbers {
                let number = Number::new(f64::from(number) / 4.0).unwrap();
                results.add(number);
                list.push(number);
                let expected = scatter(&list).or(Number::new(0.0));
                prop_assert_eq!(results.scatter(), expected, "{:?}", list);
            }
        }
    }
}
