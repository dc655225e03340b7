//! A measured number with its spread, and how numbers are written.

/// The median of several repetitions, with the smallest and the largest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figure {
    /// The median; of an even number of repetitions the mean of the middle two.
    pub value: f64,
    /// The smallest.
    pub low: f64,
    /// The largest.
    pub high: f64,
}

impl Figure {
    /// The figure of these repetitions; `None` when there are none.
    pub fn of(repetitions: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut sorted: Vec<f64> = repetitions.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        let (&low, &high) = (sorted.first()?, sorted.last()?);
        let middle = sorted.len() / 2;
        let value = if sorted.len() % 2 == 1 { sorted[middle] } else { (sorted[middle - 1] + sorted[middle]) / 2.0 };
        Some(Self { value, low, high })
    }

    /// A number that has no spread, because it is counted and not timed.
    pub fn exact(value: f64) -> Self {
        Self { value, low: value, high: value }
    }
}

/// A number with as many digits as say something: four or more before the point, or three in all; thousands apart.
pub(super) fn text(number: f64) -> String {
    let decimals = match number.abs() {
        0.0 | 99.5.. => 0,
        9.95.. => 1,
        0.995.. => 2,
        _ => 3,
    };
    let plain = format!("{number:.decimals$}");
    let (whole, fraction) = plain.split_once('.').map_or((&plain[..], None), |(whole, rest)| (whole, Some(rest)));
    let (sign, digits) = whole.strip_prefix('-').map_or(("", whole), |digits| ("-", digits));
    let mut out = sign.to_owned();
    for (index, digit) in digits.char_indices() {
        if index > 0 && (digits.len() - index) % 3 == 0 {
            out.push(',');
        }
        out.push(digit);
    }
    if let Some(fraction) = fraction {
        out.push('.');
        out.push_str(fraction);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_with_its_spread() {
        assert_eq!(Figure::of([]), None);
        assert_eq!(Figure::of([3.0]), Some(Figure::exact(3.0)));
        assert_eq!(Figure::of([5.0, 1.0, 2.0]), Some(Figure { value: 2.0, low: 1.0, high: 5.0 }));
        assert_eq!(Figure::of([4.0, 1.0, 2.0, 9.0]), Some(Figure { value: 3.0, low: 1.0, high: 9.0 }));
    }

    #[test]
    fn numbers_are_readable() {
        for (number, expected) in [
            (0.0, "0"),
            (0.12345, "0.123"),
            (1.2345, "1.23"),
            (12.345, "12.3"),
            (123.45, "123"),
            (999.6, "1,000"),
            (1234.5, "1,234"),
            (1_234_567.0, "1,234,567"),
            (-1234.0, "-1,234"),
        ] {
            assert_eq!(text(number), expected);
        }
    }
}
