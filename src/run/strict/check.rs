//! Holds a tree against a shape and lists everything that does not fit.

use serde_json::Value as Json;

use super::numeral::Numeral;
use super::problem::{At, Problem, nearest};
use super::shape::{Field, Kind, Shape, Variant};
use super::tree::{Entry, Node, Value};
use super::words::counted;

/// Everything in `node` that `shape` does not allow. `preset` holds values for keys that may therefore be
/// left out.
pub(super) fn check(node: &Node, shape: &Shape, preset: Option<&Json>) -> Vec<Problem> {
    let mut checker = Checker { root: shape, problems: Vec::new() };
    checker.value(node, shape, "", preset, &node.at);
    checker.problems
}

struct Checker<'a> {
    root: &'a Shape,
    problems: Vec<Problem>,
}

impl Checker<'_> {
    fn report(&mut self, at: &At, path: &str, message: impl Into<String>) {
        self.problems.push(Problem::new(at.clone(), path, message));
    }

    /// `at` is the place of the key, which is where a person looks for the value.
    fn value(&mut self, node: &Node, shape: &Shape, path: &str, preset: Option<&Json>, at: &At) {
        if matches!(node.value, Value::Null) && shape.nullable {
            return;
        }
        match (&shape.kind, &node.value) {
            (Kind::Any, _) | (Kind::Bool, Value::Bool(_)) => {}
            (Kind::Object(fields), Value::Object(entries)) => {
                self.object(entries, fields, path, preset, at, &|name| unknown_key(self.root, name, fields));
            }
            (Kind::Map(values), Value::Object(entries)) => {
                self.duplicates(entries, path);
                for entry in entries {
                    self.value(&entry.node, values, &join(path, &entry.name), None, &entry.at);
                }
            }
            (Kind::Tagged { tag, variants }, Value::Object(entries)) => {
                self.tagged(node, entries, tag, variants, path, preset, at);
            }
            (Kind::Choice(choices), Value::Text(text)) => {
                if !choices.iter().any(|(value, _)| value == text) {
                    let hint = hint(nearest(text, choices.iter().map(|(value, _)| value.as_str())));
                    self.report(at, path, format!("{} is not allowed; expected {}{hint}", show(node), shape.allowed()));
                }
            }
            (Kind::Text { min, max }, Value::Text(text)) => {
                if !(*min..=*max).contains(&text.chars().count()) {
                    self.report(at, path, format!("{} has the wrong length; expected {}", show(node), shape.allowed()));
                }
            }
            (Kind::Integer { min, max }, Value::Number(text)) => match Numeral::parse(text) {
                Numeral::Integer(value) if (*min..=*max).contains(&value) => {}
                Numeral::Fraction(_) => {
                    self.report(
                        at,
                        path,
                        format!("{} is not a whole number; expected {}", show(node), shape.allowed()),
                    );
                }
                _ => self.out_of_range(node, shape, path, at),
            },
            (Kind::Number { min, max }, Value::Number(text)) => {
                let value = Numeral::parse(text).as_f64();
                let above = if min.included { value >= min.value } else { value > min.value };
                let below = if max.included { value <= max.value } else { value < max.value };
                if !(above && below) {
                    self.out_of_range(node, shape, path, at);
                }
            }
            (Kind::List { first, rest, min, max }, Value::List(items)) => {
                if !(*min..=*max).contains(&items.len()) {
                    self.report(
                        at,
                        path,
                        format!("found {}; expected {}", counted(items.len(), items.len()), counted(*min, *max)),
                    );
                }
                for (index, item) in items.iter().enumerate() {
                    if let Some(shape) = first.get(index).or(rest.as_deref()) {
                        self.value(item, shape, &format!("{path}[{index}]"), None, &item.at);
                    }
                }
            }
            (Kind::Either(shapes), _) => self.either(node, shape, shapes, path, preset, at),
            _ => self.report(at, path, format!("found {}, expected {}", describe(node), shape.allowed())),
        }
    }

    fn out_of_range(&mut self, node: &Node, shape: &Shape, path: &str, at: &At) {
        self.report(at, path, format!("{} is out of range; expected {}", show(node), shape.allowed()));
    }

    fn object(
        &mut self,
        entries: &[Entry],
        fields: &[Field],
        path: &str,
        preset: Option<&Json>,
        at: &At,
        unknown: &dyn Fn(&str) -> String,
    ) {
        self.duplicates(entries, path);
        for entry in entries {
            let path = join(path, &entry.name);
            match fields.iter().find(|field| field.name == entry.name) {
                Some(field) => {
                    let preset = preset.and_then(|preset| preset.get(&entry.name));
                    self.value(&entry.node, &field.shape, &path, preset, &entry.at);
                }
                None => self.report(&entry.at, &path, unknown(&entry.name)),
            }
        }
        for field in fields.iter().filter(|field| field.required) {
            let given = entries.iter().any(|entry| entry.name == field.name);
            if !given && preset.and_then(|preset| preset.get(&field.name)).is_none() {
                let message = format!("missing; expected {}", field.shape.allowed());
                self.report(at, &join(path, &field.name), message);
            }
        }
    }

    fn duplicates(&mut self, entries: &[Entry], path: &str) {
        for (index, entry) in entries.iter().enumerate() {
            if let Some(first) = entries[..index].iter().find(|other| other.name == entry.name) {
                let place = match &first.at {
                    At::File { line, .. } => format!(" (first on line {line})"),
                    _ => String::new(),
                };
                self.report(&entry.at, &join(path, &entry.name), format!("duplicate key{place}; remove one"));
            }
        }
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of one value and its shape")]
    fn tagged(
        &mut self,
        node: &Node,
        entries: &[Entry],
        tag: &str,
        variants: &[Variant],
        path: &str,
        preset: Option<&Json>,
        at: &At,
    ) {
        let names = || variants.iter().map(|variant| variant.name.as_str());
        let list = names().map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ");
        let given = node.get(tag);
        let preset_tag = preset.and_then(|preset| preset.get(tag)).and_then(Json::as_str);
        let name = match (given.map(|entry| &entry.node.value), preset_tag) {
            (Some(Value::Text(text)), _) => text.as_str(),
            (None, Some(name)) => name,
            (Some(_), _) => {
                let (at, found) = given.map_or((at, node), |entry| (&entry.at, &entry.node));
                let message = format!("found {}, expected one of {list}", describe(found));
                return self.report(at, &join(path, tag), message);
            }
            (None, None) => return self.report(at, &join(path, tag), format!("missing; expected one of {list}")),
        };
        let Some(variant) = variants.iter().find(|variant| variant.name == name) else {
            let message = format!("{name:?} is not allowed; expected one of {list}{}", hint(nearest(name, names())));
            return self.report(given.map_or(at, |entry| &entry.at), &join(path, tag), message);
        };
        // The tag itself is of no interest to the fields, but its duplicates are.
        let others: Vec<Entry> = entries.iter().filter(|entry| entry.name != tag).cloned().collect();
        let tags: Vec<Entry> = entries.iter().filter(|entry| entry.name == tag).cloned().collect();
        self.duplicates(&tags, path);
        let preset = preset.filter(|_| preset_tag == Some(name));
        self.object(&others, &variant.fields, path, preset, at, &|key| {
            let elsewhere = variants.iter().find(|other| other.fields.iter().any(|field| field.name == key));
            match elsewhere {
                Some(other) => format!(
                    "unknown key for {tag} {name:?}; it belongs to {tag} {:?}{}",
                    other.name,
                    known(&variant.fields)
                ),
                None => unknown_key(self.root, key, &variant.fields),
            }
        });
    }

    /// Several forms: the one that fits, or the problems of the one that was probably meant.
    fn either(&mut self, node: &Node, whole: &Shape, shapes: &[Shape], path: &str, preset: Option<&Json>, at: &At) {
        let mut best: Option<Vec<Problem>> = None;
        for shape in shapes.iter().filter(|shape| same_type(node, shape)) {
            let mut attempt = Checker { root: self.root, problems: Vec::new() };
            attempt.value(node, shape, path, preset, at);
            if best.as_ref().is_none_or(|best| attempt.problems.len() < best.len()) {
                best = Some(attempt.problems);
            }
        }
        match best {
            Some(problems) => self.problems.extend(problems),
            None => self.report(at, path, format!("found {}, expected {}", describe(node), whole.allowed())),
        }
    }
}

/// Whether the value has the JSON type of the shape.
fn same_type(node: &Node, shape: &Shape) -> bool {
    match (&shape.kind, &node.value) {
        (_, Value::Null) => shape.nullable,
        (Kind::Object(_) | Kind::Map(_) | Kind::Tagged { .. }, Value::Object(_))
        | (Kind::Choice(_) | Kind::Text { .. }, Value::Text(_))
        | (Kind::Integer { .. } | Kind::Number { .. }, Value::Number(_))
        | (Kind::Bool, Value::Bool(_))
        | (Kind::List { .. }, Value::List(_))
        | (Kind::Any, _) => true,
        (Kind::Either(shapes), _) => shapes.iter().any(|shape| same_type(node, shape)),
        _ => false,
    }
}

pub(super) fn join(path: &str, name: &str) -> String {
    let plain = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "_-$".contains(c));
    let name = if plain { name.to_owned() } else { format!("{:?}", clip(name)) };
    if path.is_empty() { name } else { format!("{path}.{name}") }
}

fn unknown_key(root: &Shape, name: &str, fields: &[Field]) -> String {
    let near = nearest(name, fields.iter().map(|field| field.name.as_str()));
    // A right key at the wrong place is a common slip.
    let elsewhere = || paths_of(root, name).into_iter().next();
    let hint = match near {
        Some(_) => hint(near),
        None => hint(elsewhere().as_deref()),
    };
    format!("unknown key{hint}{}", known(fields))
}

/// The paths at which a key with this name is allowed.
fn paths_of(root: &Shape, name: &str) -> Vec<String> {
    fn walk(fields: &[Field], path: &str, name: &str, found: &mut Vec<String>) {
        for field in fields {
            let path = join(path, &field.name);
            if field.name == name {
                found.push(path.clone());
            }
            match &field.shape.kind {
                Kind::Object(fields) => walk(fields, &path, name, found),
                Kind::Tagged { variants, .. } => variants.iter().for_each(|v| walk(&v.fields, &path, name, found)),
                _ => {}
            }
        }
    }
    let mut found = Vec::new();
    walk(root.fields(), "", name, &mut found);
    found
}

fn known(fields: &[Field]) -> String {
    match fields {
        [] => " (no key is allowed here)".to_owned(),
        _ => format!(" (known: {})", fields.iter().map(|field| field.name.as_str()).collect::<Vec<_>>().join(", ")),
    }
}

fn hint(name: Option<&str>) -> String {
    name.map_or_else(String::new, |name| format!("; did you mean {name:?}?"))
}

fn clip(text: &str) -> String {
    const MOST: usize = 40;
    if text.chars().count() <= MOST { text.to_owned() } else { text.chars().take(MOST).chain("...".chars()).collect() }
}

/// The value as it was written, shortened.
fn show(node: &Node) -> String {
    match &node.value {
        Value::Null => "null".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Number(text) => clip(text),
        Value::Text(text) => format!("{:?}", clip(text)),
        Value::List(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    }
}

/// The value with its type: `the text "fast"`.
fn describe(node: &Node) -> String {
    match &node.value {
        Value::Number(_) => format!("the number {}", show(node)),
        Value::Text(_) => format!("the text {}", show(node)),
        _ => show(node),
    }
}
