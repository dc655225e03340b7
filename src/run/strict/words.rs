//! Shapes in words: what is allowed at a place, for error messages and explanations.

use super::shape::{Bound, Kind, Shape};

impl Shape {
    /// What is allowed, as it follows "expected": "an integer from 1 to 100000".
    pub(super) fn allowed(&self) -> String {
        let text = match &self.kind {
            Kind::Object(_) | Kind::Map(_) => "an object { ... }".to_owned(),
            Kind::Tagged { tag, variants } => {
                format!("an object with {tag:?}: {}", either(variants.iter().map(|variant| quoted(&variant.name))))
            }
            Kind::Choice(choices) => either(choices.iter().map(|(value, _)| quoted(value))),
            Kind::Integer { min, max } => integers(*min, *max),
            Kind::Number { min, max } => numbers(*min, *max),
            Kind::Bool => "true or false".to_owned(),
            Kind::Text { min: 0, max: usize::MAX } => "a text in double quotes".to_owned(),
            Kind::Text { min: 1, max: usize::MAX } => "a text in double quotes, not empty".to_owned(),
            Kind::Text { min, max: usize::MAX } => format!("a text of at least {min} characters"),
            Kind::Text { min, max } => format!("a text of {min} to {max} characters"),
            Kind::List { first, rest, min, max } => {
                let items = first.first().or(rest.as_deref()).map_or_else(|| "anything".to_owned(), Self::allowed);
                format!("a list of {}, each {items}", counted(*min, *max))
            }
            Kind::Either(shapes) => shapes.iter().map(Self::allowed).collect::<Vec<_>>().join(", or "),
            Kind::Any => "any value".to_owned(),
        };
        if self.nullable && !matches!(self.kind, Kind::Any) { format!("{text}, or null") } else { text }
    }
}

/// `"a"`, `"a" or "b"`, `"a", "b" or "c"`.
fn either(items: impl Iterator<Item = String>) -> String {
    let items: Vec<String> = items.collect();
    match &items[..] {
        [] => "nothing".to_owned(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}

fn quoted(text: &str) -> String {
    format!("{text:?}")
}

fn integers(min: i128, max: i128) -> String {
    // The limits of the wide types say nothing to a person.
    let open_below = min <= i64::MIN.into();
    let open_above = max >= u32::MAX.into();
    match (open_below, open_above) {
        (true, true) => "an integer".to_owned(),
        (true, false) => format!("an integer of at most {max}"),
        (false, true) => format!("an integer of at least {min}"),
        (false, false) => format!("an integer from {min} to {max}"),
    }
}

fn numbers(min: Bound, max: Bound) -> String {
    let low = (min.value > f32::MIN.into()).then(|| match min.included {
        true => format!("of at least {}", min.value),
        false => format!("above {}", min.value),
    });
    let high = (max.value < f32::MAX.into()).then(|| match max.included {
        true => format!("at most {}", max.value),
        false => format!("below {}", max.value),
    });
    match (low, high) {
        (None, None) => "a number".to_owned(),
        (Some(_), Some(_)) if min.included && max.included => format!("a number from {} to {}", min.value, max.value),
        (Some(low), Some(high)) => format!("a number {low} and {high}"),
        (Some(low), None) => format!("a number {low}"),
        (None, Some(high)) => format!("a number {}{high}", if max.included { "of " } else { "" }),
    }
}

/// "3 items", "at least 1 item", "any length".
pub(super) fn counted(min: usize, max: usize) -> String {
    let items = |n: usize| if n == 1 { "1 item".to_owned() } else { format!("{n} items") };
    match (min, max) {
        (0, usize::MAX) => "any length".to_owned(),
        (_, usize::MAX) => format!("at least {}", items(min)),
        _ if min == max => items(min),
        _ => format!("{min} to {}", items(max)),
    }
}
