//! What a key means, and the JSON Schema for editors.

use std::collections::BTreeSet;
use std::fmt;

use schemars::JsonSchema;
use serde_json::{Value, json};

use super::check::join;
use super::problem::nearest;
use super::shape::{Field, Kind, Shape, schema_of};

/// Everything there is to say about a key.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    /// The whole path (`search.simulations`).
    pub key: String,
    /// For a key of one form of a tagged object, that form (`network.type is "resnet"`).
    pub when: Option<String>,
    /// What it means.
    pub meaning: String,
    /// Type and range ("an integer from 1 to 100000").
    pub allowed: String,
    /// What the numbers count or measure.
    pub unit: Option<String>,
    /// The value when the key is left out; `None` when it must be given.
    pub default: Option<Value>,
    /// The value that a paper used, with the paper.
    pub paper: Option<String>,
    /// What values or inner keys mean: (name, first sentence).
    pub parts: Vec<(String, String)>,
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.key)?;
        if let Some(when) = &self.when {
            write!(f, " (when {when})")?;
        }
        if !self.meaning.is_empty() {
            write!(f, "\n  {}", self.meaning.replace('\n', "\n  "))?;
        }
        write!(f, "\n  value:   {}", self.allowed)?;
        if let Some(unit) = &self.unit {
            write!(f, "\n  unit:    {unit}")?;
        }
        match &self.default {
            Some(default) => write!(f, "\n  default: {default}")?,
            None => write!(f, "\n  default: none, it must be given")?,
        }
        if let Some(paper) = &self.paper {
            write!(f, "\n  paper:   {paper}")?;
        }
        let width = self.parts.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
        for (name, meaning) in &self.parts {
            write!(f, "\n    {name:width$}  {meaning}")?;
        }
        Ok(())
    }
}

/// A key that no config has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no key {key:?}{}", match &near[..] {
    [] => String::new(),
    near => format!("; did you mean {}?", near.iter().map(|key| format!("{key:?}")).collect::<Vec<_>>().join(" or ")),
})]
pub struct UnknownKey {
    /// The key asked for.
    pub key: String,
    /// Those that it may be meant for: all that end in it, or else the nearest one.
    pub near: Vec<String>,
}

/// Explains `key` (`search.simulations`, or a section) of the config type `T`. A key that several forms of a
/// tagged object have is explained for each. `defaults` is a whole resolved config whose values are
/// shown as defaults where they exist (the presets of a game).
///
/// # Errors
/// When there is no such key; names those that may be meant.
pub fn explain<T: JsonSchema>(key: &str, defaults: Option<&Value>) -> Result<Vec<Explanation>, UnknownKey> {
    let all = keys::<T>(defaults);
    let found: Vec<Explanation> = all.iter().filter(|entry| entry.key == key).cloned().collect();
    if !found.is_empty() {
        return Ok(found);
    }
    let last = |path: &str| path.rsplit('.').next().unwrap_or_default().to_owned();
    let ending_in = |name: &str| -> Vec<String> {
        // The forms of a tagged object have keys of the same path.
        let paths = all.iter().map(|entry| entry.key.clone()).filter(|path| last(path) == name);
        paths.collect::<BTreeSet<_>>().into_iter().collect()
    };
    let mut near = ending_in(key);
    if near.is_empty() {
        near.extend(nearest(key, all.iter().map(|entry| entry.key.as_str())).map(str::to_owned));
    }
    if near.is_empty() {
        let lasts: Vec<String> = all.iter().map(|entry| last(&entry.key)).collect();
        near = nearest(&last(key), lasts.iter().map(String::as_str)).map(ending_in).unwrap_or_default();
    }
    Err(UnknownKey { key: key.to_owned(), near })
}

/// Every key of the config type `T`, sections before what is in them.
pub fn keys<T: JsonSchema>(defaults: Option<&Value>) -> Vec<Explanation> {
    let mut out = Vec::new();
    walk(Shape::of::<T>().fields(), "", None, defaults, &mut out);
    out
}

fn walk(fields: &[Field], path: &str, when: Option<&str>, defaults: Option<&Value>, out: &mut Vec<Explanation>) {
    for field in fields {
        let shape = &field.shape;
        let path = join(path, &field.name);
        let default = defaults.and_then(|defaults| defaults.get(&field.name)).or(shape.default.as_ref());
        out.push(Explanation {
            key: path.clone(),
            when: when.map(str::to_owned),
            meaning: shape.help.clone(),
            allowed: shape.allowed(),
            unit: shape.unit.clone(),
            default: default.filter(|_| !field.required || defaults.is_some()).cloned(),
            paper: shape.paper.clone(),
            parts: parts(shape),
        });
        inside(shape, &path, when, default, out);
    }
}

/// The keys inside a value.
fn inside(shape: &Shape, path: &str, when: Option<&str>, default: Option<&Value>, out: &mut Vec<Explanation>) {
    match &shape.kind {
        Kind::Object(fields) => walk(fields, path, when, default, out),
        Kind::Tagged { tag, variants } => {
            let choices = variants.iter().map(|variant| (variant.name.clone(), variant.help.clone())).collect();
            let kind = Kind::Choice(choices);
            let selector = Shape {
                help: format!("Selects the form of {path}."),
                default: default.and_then(|default| default.get(tag)).cloned(),
                kind,
                ..schema_key()
            };
            let required = selector.default.is_none();
            walk(&[Field { name: tag.clone(), required, shape: selector }], path, when, None, out);
            for variant in variants {
                let own = default.filter(|default| default.get(tag).is_some_and(|name| *name == *variant.name));
                walk(&variant.fields, path, Some(&format!("{path}.{tag} is {:?}", variant.name)), own, out);
            }
        }
        Kind::Either(shapes) => shapes.iter().for_each(|shape| inside(shape, path, when, default, out)),
        _ => {}
    }
}

fn parts(shape: &Shape) -> Vec<(String, String)> {
    match &shape.kind {
        Kind::Object(fields) => fields.iter().map(|field| (field.name.clone(), sentence(&field.shape.help))).collect(),
        Kind::Choice(choices) => choices.iter().map(|(name, help)| (format!("{name:?}"), sentence(help))).collect(),
        Kind::Tagged { variants, .. } => {
            variants.iter().map(|variant| (format!("{:?}", variant.name), sentence(&variant.help))).collect()
        }
        Kind::Either(shapes) => shapes.iter().flat_map(parts).collect(),
        _ => Vec::new(),
    }
}

/// The first sentence of a text: up to a full stop before a capital letter, as one in `et al. 2008` ends none.
fn sentence(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    let ends = |(at, stop): &(usize, &str)| line[at + stop.len()..].starts_with(char::is_uppercase);
    let end = line.match_indices(". ").find(ends).map_or(line.len(), |(at, _)| at);
    line[..end].to_owned()
}

/// The key by which editors find the schema.
pub(super) fn schema_key() -> Shape {
    Shape {
        help: SCHEMA_HELP.to_owned(),
        unit: None,
        paper: None,
        default: None,
        nullable: false,
        kind: Kind::Text { min: 0, max: usize::MAX },
    }
}

const SCHEMA_HELP: &str = "Where editors find the JSON Schema of this file; has no effect on the run.";

/// The JSON Schema (draft 2020-12) of the config type `T` as text, for editors. It is generated, never
/// written by hand.
pub fn schema_json<T: JsonSchema>() -> String {
    let mut schema = schema_of::<T>();
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        properties.shift_insert(0, "$schema".to_owned(), json!({"description": SCHEMA_HELP, "type": "string"}));
    }
    let mut text = serde_json::to_string_pretty(&schema).expect("a JSON value can be written");
    text.push('\n');
    text
}
