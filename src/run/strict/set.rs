//! Overrides from the command line: `--set search.simulations=200`.

use std::sync::Arc;

use super::problem::{At, Problem};
use super::shape::{Kind, Shape};
use super::tree::{self, Entry, Node, Value};

/// Puts `KEY=VALUE` into the tree; sections on the way are made when they are missing. The value is read
/// as JSON, and as a text when it is none or when the key takes texts only.
///
/// # Errors
/// When there is no `=`, a part of the key is empty, or the key leads into something that is no object.
pub(super) fn apply(root: &mut Node, shape: &Shape, text: &str) -> Result<(), Problem> {
    let at = At::Set(Arc::from(text));
    let Some((key, value)) = text.split_once('=') else {
        return Err(Problem::new(at, "", "expected KEY=VALUE, as in search.simulations=200"));
    };
    let parts: Vec<&str> = key.trim().split('.').collect();
    if parts.iter().any(|part| part.is_empty()) {
        return Err(Problem::new(at, "", "the key has an empty part; expected something like search.simulations"));
    }
    if parts.len() > tree::MAX_DEPTH {
        return Err(Problem::new(at, "", "the key has more parts than any key of a config"));
    }
    let node = read_value(value, shape_at(shape, &parts), &at);
    let mut place = &mut *root;
    for (index, part) in parts.iter().enumerate() {
        let Value::Object(entries) = &mut place.value else {
            let path = parts[..index].join(".");
            return Err(Problem::new(at, path, "is no object in the config, so no key inside it can be set"));
        };
        let found = entries.iter().rposition(|entry| entry.name == *part).unwrap_or_else(|| {
            let empty = Node { at: at.clone(), value: Value::Object(Vec::new()) };
            entries.push(Entry { at: at.clone(), name: (*part).to_owned(), node: empty });
            entries.len() - 1
        });
        let entry = &mut entries[found];
        if index + 1 == parts.len() {
            entry.at = at;
            entry.node = node;
            return Ok(());
        }
        place = &mut entry.node;
    }
    Ok(())
}

fn read_value(text: &str, shape: Option<&Shape>, at: &At) -> Node {
    let as_text = || Node { at: at.clone(), value: Value::Text(text.to_owned()) };
    let place = |_| at.clone();
    let mut trailing = None;
    match tree::parse(text, &place, &mut trailing) {
        Ok(node) if trailing.is_none() => match (&node.value, shape.map(|shape| &shape.kind)) {
            (Value::Number(_) | Value::Bool(_), Some(Kind::Text { .. } | Kind::Choice(_))) => as_text(),
            _ => node,
        },
        _ => as_text(),
    }
}

fn shape_at<'a>(shape: &'a Shape, parts: &[&str]) -> Option<&'a Shape> {
    let (first, rest) = match parts {
        [] => return Some(shape),
        [first, rest @ ..] => (first, rest),
    };
    let find = |fields: &'a [super::shape::Field]| fields.iter().find(|field| field.name == **first);
    let field = match &shape.kind {
        Kind::Object(fields) => find(fields),
        Kind::Tagged { variants, .. } => variants.iter().find_map(|variant| find(&variant.fields)),
        _ => None,
    };
    shape_at(&field?.shape, rest)
}
