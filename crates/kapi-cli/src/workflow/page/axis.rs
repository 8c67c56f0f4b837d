//! Where numbers go in a picture: a range, its place on paper, and round numbers to write beside it.

/// A range of numbers, laid over a range of points.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Axis {
    least: f64,
    most: f64,
    from: f64,
    to: f64,
}

impl Axis {
    /// Lays numbers over points; a range without extent gets some.
    pub(crate) fn new(numbers: [f64; 2], points: [f64; 2]) -> Self {
        let [mut least, mut most] = numbers;
        if most - least <= f64::EPSILON * most.abs().max(least.abs()) {
            let some = (most.abs() * 0.1).max(f64::MIN_POSITIVE.sqrt());
            (least, most) = (least - some, most + some);
        }
        let [from, to] = points;
        Self {
            least,
            most,
            from,
            to,
        }
    }

    /// Returns the point of a number, at the nearer end where it is outside.
    pub(crate) fn point(&self, number: f64) -> f64 {
        // Halved before they are subtracted, as the whole range may not be a number.
        let extent = self.most / 2.0 - self.least / 2.0;
        let share = (number / 2.0 - self.least / 2.0) / extent;
        let share = if share.is_nan() { 0.0 } else { share };
        share
            .clamp(0.0, 1.0)
            .mul_add(self.to - self.from, self.from)
    }

    /// Returns round numbers within the range, about as many as wanted.
    pub(crate) fn ticks(&self, wanted: u8) -> Vec<f64> {
        /// More than any picture has room for.
        const TICKS_MAX: usize = 50;
        let rough = (self.most / 2.0 - self.least / 2.0) / f64::from(wanted.max(1)) * 2.0;
        let power = 10_f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0]
            .into_iter()
            .map(|times| times * power)
            .find(|step| *step >= rough);
        let Some(step) = step.filter(|step| step.is_normal()) else {
            return Vec::new();
        };
        let first = (self.least / step).ceil();
        (0_u8..)
            .map(|place| (first + f64::from(place)) * step)
            .take_while(|tick| *tick <= self.most)
            .take(TICKS_MAX)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::Axis;

    #[test]
    fn numbers_have_points_and_round_marks() {
        let axis = Axis::new([0.0, 44.0], [100.0, 0.0]);
        assert_eq!(
            [axis.point(0.0), axis.point(22.0), axis.point(99.0)],
            [100.0, 50.0, 0.0]
        );
        assert_eq!(axis.ticks(4), [0.0, 20.0, 40.0]);
        let small = Axis::new([0.001, 0.0042], [0.0, 1.0]);
        assert_eq!(small.ticks(3), [0.002, 0.004]);
    }

    #[test]
    fn any_range_has_points() {
        for numbers in [
            [5.0, 5.0],
            [0.0, 0.0],
            [-1.0, -1.0],
            [f64::MIN, f64::MAX],
            [0.0, f64::MIN_POSITIVE],
            [1e300, 1e300],
        ] {
            let axis = Axis::new(numbers, [10.0, 20.0]);
            for number in numbers {
                let point = axis.point(number);
                assert!((10.0..=20.0).contains(&point), "{numbers:?}: {point}");
            }
            assert!(axis.ticks(5).len() <= 50, "{numbers:?}");
        }
    }
}
