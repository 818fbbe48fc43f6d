//! Maps numbers to positions in a figure, with marks at round numbers.

/// Approximate number of marks of an axis.
const TICKS: f64 = 5.0;

/// Max absolute value: the difference of two values must be finite as well.
const MOST: f64 = f64::MAX / 4.0;

/// The range of an axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Axis {
    least: f64,
    most: f64,
    step: f64,
}

impl Axis {
    /// An axis that covers the values, from one mark to another; ignores values that are not finite.
    pub(crate) fn covering(values: impl IntoIterator<Item = f64>) -> Self {
        let finite = values.into_iter().filter(|value| value.abs() <= MOST);
        let (min, max) = finite.fold((f64::INFINITY, f64::NEG_INFINITY), |(min, max), value| {
            (min.min(value), max.max(value))
        });
        if min > max {
            return Self::covering([0.0, 1.0]);
        }
        // A single value is in the middle.
        let around = if min < max { 0.0 } else { (min.abs() * 0.1).max(0.5) };
        let (min, max) = (min - around, max + around);
        let step = round_step((max - min) / TICKS);
        Self { least: (min / step).floor() * step, most: (max / step).ceil() * step, step }
    }

    /// An axis from one number to another.
    pub(crate) fn exactly(min: f64, max: f64) -> Self {
        Self { least: min, most: max, step: round_step((max - min) / TICKS) }
    }

    /// The start of the axis.
    pub(crate) fn least(self) -> f64 {
        self.least
    }

    /// The position of a value: 0 at the start, 1 at the end; 0 for NaN.
    pub(crate) fn place(self, value: f64) -> f64 {
        let place = (value - self.least) / (self.most - self.least);
        if place.is_nan() { 0.0 } else { place.clamp(0.0, 1.0) }
    }

    /// The marked values.
    pub(crate) fn ticks(self) -> impl Iterator<Item = f64> {
        let Self { least, most, step } = self;
        let count = ((most - least) / step + 1e-6).floor() as u32;
        // Zero is exact, without a rounding error.
        let at = move |tick| least + f64::from(tick) * step;
        (0..=count).map(at).map(move |value| if value.abs() < step / 1e6 { 0.0 } else { value })
    }
}

/// The next larger of 1, 2, 5, 10, 20, 50, …, or of 0.5, 0.2, …
fn round_step(about: f64) -> f64 {
    let decade = 10_f64.powf(about.log10().floor());
    let digit = about / decade;
    let digit = [1.0, 2.0, 5.0].into_iter().find(|step| digit <= step * 1.000_001);
    decade * digit.unwrap_or(10.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_has_all_of_its_numbers_between_round_ones() {
        for (values, ticks) in [
            ([3.0, 97.0], vec![0.0, 20.0, 40.0, 60.0, 80.0, 100.0]),
            ([-0.2, 1.01], vec![-0.5, 0.0, 0.5, 1.0, 1.5]),
            ([7.0, 7.0], vec![6.0, 6.5, 7.0, 7.5, 8.0]),
        ] {
            let axis = Axis::covering(values);
            let found: Vec<f64> = axis.ticks().collect();
            let close = found.iter().zip(&ticks).all(|(tick, other)| (tick - other).abs() < 1e-9);
            assert!(close && found.len() <= ticks.len(), "{found:?} {ticks:?}");
            assert!(values.iter().all(|value| (0.0..=1.0).contains(&axis.place(*value))));
        }
    }

    #[test]
    fn numbers_that_are_none_have_an_axis_of_their_own() {
        assert_eq!(Axis::covering([]), Axis::covering([0.0, 1.0]));
        assert_eq!(Axis::covering([f64::NAN, 2.0, f64::INFINITY]), Axis::covering([2.0]));
        for huge in [
            Axis::covering([-f64::MAX, f64::MAX]),
            Axis::covering([-MOST, MOST]),
            Axis::covering([1e-300]),
        ] {
            assert!([-f64::MAX, 0.0, f64::NAN].iter().all(|value| huge.place(*value).is_finite()));
            assert!(huge.ticks().count() < 100);
        }
    }
}
