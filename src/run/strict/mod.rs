//! Strict reading of configs: everything that is wrong with one, at once, with key path and line.
//!
//! A config is a plain struct that derives `Deserialize`, `Serialize` and `JsonSchema`. The JSON Schema of
//! the struct is the single source of keys, types, ranges, defaults and descriptions: [`Reader`] holds
//! the text against it, [`explain`] prints from it, [`schema_json`] writes it out for editors.
//!
//! What a config type may use: nested structs, `Option`, lists, arrays, tuples, maps, enums of texts,
//! internally tagged enums, untagged enums; `#[schemars(range(min = .., max = ..))]`,
//! `#[schemars(length(..))]`, `#[schemars(extend("exclusiveMinimum" = 0.0))]`,
//! `#[schemars(extend("x-unit" = "plies", "x-paper" = "0.3 (AlphaZero, chess)"))]`.

mod blame;
mod check;
mod diff;
mod explain;
mod numeral;
mod problem;
mod set;
mod shape;
#[cfg(test)]
mod tests;
mod tree;
mod words;

use std::fs::File;
use std::io::Read as _;
use std::marker::PhantomData;
use std::path::Path;

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value as Json;

pub use diff::{Change, diff};
pub(crate) use problem::nearest;

pub use explain::{Explanation, UnknownKey, explain, keys, schema_json};
pub use problem::{At, ConfigErrors, Findings, Problem};

use shape::{Kind, Shape};
use tree::Node;

type Preset<'a> = Box<dyn Fn(&Json) -> Option<Json> + 'a>;
type CheckGiven<'a> = Box<dyn Fn(&Json, &mut Findings) + 'a>;
type Check<'a, T> = Box<dyn Fn(&T, &mut Findings) + 'a>;

/// The largest config file that is read, in bytes.
const MAX_BYTES: u64 = 1 << 20;

/// Reads configs of type `T`.
///
/// ```ignore
/// let config: RunConfig = Reader::new()
///     .preset(|given| presets_of(given.get("game")?.as_str()?))
///     .check(|config: &RunConfig, findings| {
///         if config.selfplay.games % 2 == 1 {
///             findings.add("selfplay.games", "must be even");
///         }
///     })
///     .read_file(path, &["search.simulations=200".to_owned()])?;
/// ```
pub struct Reader<'a, T> {
    preset: Option<Preset<'a>>,
    check_given: Option<CheckGiven<'a>>,
    checks: Vec<Check<'a, T>>,
    of: PhantomData<T>,
}

impl<T: DeserializeOwned + JsonSchema> Default for Reader<'_, T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<'a, T: DeserializeOwned + JsonSchema> Reader<'a, T> {
    /// A reader without presets and checks.
    pub fn new() -> Self {
        Self { preset: None, check_given: None, checks: Vec::new(), of: PhantomData }
    }

    /// Values that stand for keys which the config leaves out, depending on what it gives (the defaults
    /// of a game). Objects are merged key by key, except a tagged object of another tag; everything else
    /// in the config replaces the preset. `None` for no preset.
    #[must_use]
    pub fn preset(mut self, preset: impl Fn(&Json) -> Option<Json> + 'a) -> Self {
        self.preset = Some(Box::new(preset));
        self
    }

    /// A check of what is given, as it stands in the text; run also when there are problems with keys, types or ranges,
    /// so that a person sees all at once. It must pass over what has the wrong type.
    #[must_use]
    pub fn check_given(mut self, check: impl Fn(&Json, &mut Findings) + 'a) -> Self {
        self.check_given = Some(Box::new(check));
        self
    }

    /// A check of the meaning, run on configs whose keys, types and ranges are right.
    #[must_use]
    pub fn check(mut self, check: impl Fn(&T, &mut Findings) + 'a) -> Self {
        self.checks.push(Box::new(check));
        self
    }

    /// Reads the file `path` with the overrides `sets` (`search.simulations=200`, later ones win).
    ///
    /// # Errors
    /// Everything that is wrong with the file and the overrides.
    pub fn read_file(&self, path: &Path, sets: &[String]) -> Result<T, ConfigErrors> {
        let name = path.display().to_string();
        let fail = |message: String| ConfigErrors::new(&name, vec![Problem::new(At::Whole, "", message)]);
        if path.is_dir() {
            return Err(fail("is a folder, expected a config file".to_owned()));
        }
        // A device or pipe has no size that could be asked beforehand.
        let mut bytes = Vec::new();
        File::open(path)
            .and_then(|file| file.take(MAX_BYTES + 1).read_to_end(&mut bytes))
            .map_err(|e| fail(format!("cannot be read: {e}{}", neighbour(path))))?;
        if bytes.len() as u64 > MAX_BYTES {
            return Err(fail(format!("is larger than {MAX_BYTES} bytes, which no config is")));
        }
        let text = String::from_utf8(bytes)
            .map_err(|e| fail(format!("is no UTF-8 text (byte {})", e.utf8_error().valid_up_to())))?;
        self.read_text(&name, &text, sets)
    }

    /// Reads a config from `text`; `source` names it in messages.
    ///
    /// # Errors
    /// Everything that is wrong with the text and the overrides.
    pub fn read_text(&self, source: &str, text: &str, sets: &[String]) -> Result<T, ConfigErrors> {
        let shape = root_shape::<T>();
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let starts: Vec<usize> = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        let place = |offset: usize| At::File { line: starts.partition_point(|&start| start <= offset), column: None };

        let mut trailing = None;
        let parsed = tree::parse(text, &place, &mut trailing);
        let mut problems: Vec<Problem> = trailing.into_iter().collect();
        let mut tree = match parsed {
            Ok(tree) => tree,
            Err(problem) => {
                problems.push(problem);
                return Err(ConfigErrors::new(source, problems));
            }
        };
        problems.extend(sets.iter().filter_map(|set| set::apply(&mut tree, &shape, set).err()));

        let given = tree.to_json();
        let preset = self.preset.as_ref().and_then(|preset| preset(&given));
        problems.extend(check::check(&tree, &shape, preset.as_ref()));
        if let Some(check) = &self.check_given {
            let mut findings = Findings::default();
            check(&given, &mut findings);
            problems.extend(placed(findings, &tree));
        }
        let mut value = match preset {
            Some(preset) => merge(preset, given, &shape),
            None => given,
        };
        if let Some(map) = value.as_object_mut() {
            map.shift_remove("$schema");
        }
        // Where something is wrong already, the meaning of the rest is checked with defaults in its place.
        let told = problems.len();
        for problem in &problems {
            prune(&mut value, &problem.path);
        }
        let config: Option<T> = loop {
            match serde_json::from_value(value.clone()) {
                Ok(config) => break Some(config),
                Err(e) => {
                    let path = blame::blame::<T>(&value, &e.to_string());
                    let pruned = prune(&mut value, &path);
                    // What is missing because it was taken out has been told.
                    if told == 0 || (pruned && !e.to_string().starts_with("missing field")) {
                        problems.push(Problem::new(place_of(&tree, &path), path, e.to_string()));
                    }
                    if !pruned {
                        break None;
                    }
                }
            }
        };
        if let Some(config) = &config {
            let mut findings = Findings::default();
            self.checks.iter().for_each(|check| check(config, &mut findings));
            let known: Vec<String> = problems.iter().map(|problem| problem.path.clone()).collect();
            problems.extend(placed(findings, &tree).filter(|problem| !known.contains(&problem.path)));
        }
        match config {
            Some(config) if problems.is_empty() => Ok(config),
            _ => Err(ConfigErrors::new(source, problems)),
        }
    }
}

/// Takes the key `path` (`search.simulations`, `devices[1]`) out of a config; of a list the whole of it. Whether it was
/// there. The game stays: it has no default, and all others depend on it.
fn prune(value: &mut Json, path: &str) -> bool {
    let key = path.split('[').next().unwrap_or_default();
    let (parents, last) = key.rsplit_once('.').unwrap_or(("", key));
    let place = parents.split('.').filter(|part| !part.is_empty()).try_fold(value, |value, part| value.get_mut(part));
    let Some(map) = place.and_then(Json::as_object_mut) else { return false };
    map.get(last).is_some_and(|found| path != "game" || !found.is_string()) && map.shift_remove(last).is_some()
}

/// Findings with their places.
fn placed(findings: Findings, tree: &Node) -> impl Iterator<Item = Problem> + '_ {
    findings.0.into_iter().map(|(path, message)| Problem::new(place_of(tree, &path), path, message))
}

/// Where `path` is written; a key that is left to its default is nowhere.
fn place_of(tree: &Node, path: &str) -> At {
    if path.is_empty() { At::Whole } else { tree.locate(path) }
}

/// For a file that is not there: one beside it or in `configs/` that may be meant.
fn neighbour(path: &Path) -> String {
    let name = path.with_extension("json");
    let configs = Path::new("configs").join(name.file_name().unwrap_or_default());
    let found = [name, configs].into_iter().find(|near| near != path && near.is_file() && !path.exists());
    found.map_or_else(String::new, |near| format!("; did you mean {}?", near.display()))
}

/// The shape of a config file: that of the type, with the key by which editors find the schema.
fn root_shape<T: JsonSchema>() -> Shape {
    let mut shape = Shape::of::<T>();
    if let Kind::Object(fields) = &mut shape.kind {
        fields.push(shape::Field { name: "$schema".to_owned(), required: false, shape: explain::schema_key() });
    }
    shape
}

/// `given` over `preset`.
fn merge(preset: Json, given: Json, shape: &Shape) -> Json {
    let (mut base, over) = match (preset, given) {
        (Json::Object(base), Json::Object(over)) => (base, over),
        (_, given) => return given,
    };
    let fields: &[shape::Field] = match &shape.kind {
        Kind::Object(fields) => fields,
        Kind::Tagged { tag, variants } => {
            let name = over.get(tag).or(base.get(tag)).and_then(Json::as_str);
            if base.get(tag).and_then(Json::as_str) != name {
                return Json::Object(over);
            }
            variants.iter().find(|variant| Some(variant.name.as_str()) == name).map_or(&[], |variant| &variant.fields)
        }
        _ => return Json::Object(over),
    };
    for (key, value) in over {
        let inner = fields.iter().find(|field| field.name == key).map(|field| &field.shape);
        let merged = match (inner, base.shift_remove(&key)) {
            (Some(inner), Some(preset)) => merge(preset, value, inner),
            _ => value,
        };
        base.insert(key, merged);
    }
    Json::Object(base)
}

/// The whole config as JSON text, every default written out, numbers in their shortest form.
pub fn resolved_json<T: Serialize>(config: &T) -> String {
    let mut text = serde_json::to_string_pretty(config).expect("a config has text keys and no failing part");
    text.push('\n');
    text
}

/// The whole config as a JSON value, with the numbers of [`resolved_json`]: what [`diff`] compares.
pub fn resolved_value<T: Serialize>(config: &T) -> Json {
    serde_json::from_str(&resolved_json(config)).expect("what was just written as JSON is JSON")
}
