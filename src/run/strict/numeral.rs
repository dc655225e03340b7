//! Numbers as they are written, with exact integers.

/// The value of a JSON number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Numeral {
    /// An integer, written in any way (`1000`, `1e3`, `1000.0`).
    Integer(i128),
    /// An integer too large to be held exactly; only its sign and rough size are known.
    Huge(f64),
    /// Anything else; infinite when beyond the range of a 64-bit float.
    Fraction(f64),
}

impl Numeral {
    /// The number with this text, which must be a JSON number.
    pub(super) fn parse(text: &str) -> Self {
        let (negative, digits) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let approximate: f64 = text.parse().unwrap_or(f64::NAN);
        let (mantissa, exponent) = digits.split_once(['e', 'E']).unwrap_or((digits, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let all = format!("{whole}{fraction}");
        let significant = all.trim_end_matches('0');
        let stripped = (all.len() - significant.len()) as i64;
        let significant = significant.trim_start_matches('0');
        if significant.is_empty() {
            return Self::Integer(0);
        }
        // An exponent that does not fit in 64 bits is far outside of every range in its direction.
        let exponent: i64 = exponent.parse().unwrap_or(if exponent.starts_with('-') { i64::MIN } else { i64::MAX });
        let scale = exponent.saturating_sub(fraction.len() as i64).saturating_add(stripped);
        if scale < 0 {
            return Self::Fraction(approximate);
        }
        if scale.saturating_add(significant.len() as i64) > 38 {
            return Self::Huge(approximate);
        }
        let value = significant.parse::<i128>().ok().and_then(|v| v.checked_mul(10i128.pow(scale as u32)));
        value.map_or(Self::Huge(approximate), |v| Self::Integer(if negative { -v } else { v }))
    }

    /// The number as a float, infinite when out of range.
    pub(super) fn as_f64(self) -> f64 {
        match self {
            Self::Integer(value) => value as f64,
            Self::Huge(value) | Self::Fraction(value) => value,
        }
    }

    /// As JSON: an integer where 64 bits suffice, else a float (null when it is not finite).
    pub(super) fn to_json(self) -> serde_json::Value {
        if let Self::Integer(value) = self {
            if let Ok(value) = u64::try_from(value) {
                return value.into();
            }
            if let Ok(value) = i64::try_from(value) {
                return value.into();
            }
        }
        serde_json::Number::from_f64(self.as_f64()).map_or(serde_json::Value::Null, Into::into)
    }
}

#[cfg(test)]
mod tests {
    use super::Numeral::{self, Fraction, Huge, Integer};

    #[test]
    fn integers_are_exact_however_they_are_written() {
        let cases = [
            ("0", 0),
            ("-0", 0),
            ("-0.0e9", 0),
            ("1.0", 1),
            ("1e3", 1000),
            ("1.5e1", 15),
            ("1200e-2", 12),
            ("-7", -7),
            ("18446744073709551615", 18_446_744_073_709_551_615),
            ("9007199254740993", 9_007_199_254_740_993),
        ];
        for (text, value) in cases {
            assert_eq!(Numeral::parse(text), Integer(value), "{text}");
        }
    }

    #[test]
    fn the_rest_is_told_apart() {
        assert_eq!(Numeral::parse("0.25"), Fraction(0.25));
        assert_eq!(Numeral::parse("15e-1"), Fraction(1.5));
        assert_eq!(Numeral::parse("1e400"), Huge(f64::INFINITY));
        assert_eq!(Numeral::parse("-1e99999999999999999999"), Huge(f64::NEG_INFINITY));
        assert_eq!(Numeral::parse("1e-99999999999999999999"), Fraction(0.0));
        assert!(matches!(Numeral::parse(&"9".repeat(60)), Huge(v) if v > 1e59));
        assert_eq!(Numeral::parse("1e400").to_json(), serde_json::Value::Null);
        assert_eq!(Numeral::parse("18446744073709551615").to_json(), serde_json::json!(u64::MAX));
    }
}
