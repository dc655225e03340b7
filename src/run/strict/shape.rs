//! What a config may contain, compiled from the JSON Schema that `schemars` derives from its type.
//!
//! The schema is the single source of keys, types, ranges, defaults and descriptions; this module only
//! brings it into a form that is easy to walk: references resolved, tagged enums recognised, the limits
//! of integer types filled in.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};

/// A place of a config.
#[derive(Clone, Debug)]
pub(super) struct Shape {
    /// What the value means.
    pub(super) help: String,
    /// Its unit (`x-unit` of the schema).
    pub(super) unit: Option<String>,
    /// The value that a paper used, with the paper (`x-paper` of the schema).
    pub(super) paper: Option<String>,
    /// The value when the key is left out.
    pub(super) default: Option<Value>,
    /// Whether `null` is allowed too.
    pub(super) nullable: bool,
    pub(super) kind: Kind,
}

/// What may stand at a place.
#[derive(Clone, Debug)]
pub(super) enum Kind {
    /// An object with these keys and no others.
    Object(Vec<Field>),
    /// An object with any keys and values of one shape.
    Map(Box<Shape>),
    /// An object whose key `tag` selects the other keys.
    Tagged { tag: String, variants: Vec<Variant> },
    /// One of these texts, with their meanings.
    Choice(Vec<(String, String)>),
    /// An integer from `min` to `max`, both included.
    Integer { min: i128, max: i128 },
    /// A finite number.
    Number { min: Bound, max: Bound },
    /// `true` or `false`.
    Bool,
    /// A text of `min` to `max` characters.
    Text { min: usize, max: usize },
    /// A list of `min` to `max` items: `first` for the first ones, `rest` for those after.
    List { first: Vec<Shape>, rest: Option<Box<Shape>>, min: usize, max: usize },
    /// Any of these.
    Either(Vec<Shape>),
    /// Whatever.
    Any,
}

/// A key of an object.
#[derive(Clone, Debug)]
pub(super) struct Field {
    pub(super) name: String,
    pub(super) required: bool,
    pub(super) shape: Shape,
}

/// One form of a tagged object.
#[derive(Clone, Debug)]
pub(super) struct Variant {
    /// The value of the tag.
    pub(super) name: String,
    pub(super) help: String,
    /// The other keys.
    pub(super) fields: Vec<Field>,
}

/// A limit of a number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Bound {
    pub(super) value: f64,
    /// Whether the limit itself is allowed.
    pub(super) included: bool,
}

/// The JSON Schema of `T`, with short defaults for 32-bit floats (0.3, not 0.30000001192092896).
pub(super) fn schema_of<T: JsonSchema>() -> Value {
    let mut schema = SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<T>().to_value();
    shorten_floats(&mut schema);
    schema
}

/// A default of a 32-bit float is written as its shortest decimal form, also inside the defaults of
/// whole sections (where every number with 64 bits that came from 32 is shortened).
fn shorten_floats(schema: &mut Value) {
    fn shorten(value: &mut Value) {
        match value {
            Value::Array(items) => items.iter_mut().for_each(shorten),
            Value::Object(map) => map.values_mut().for_each(shorten),
            Value::Number(number) if number.is_f64() => {
                let wide = number.as_f64().unwrap_or_default();
                let narrow = wide as f32;
                if f64::from(narrow) == wide
                    && let Some(short) = narrow.to_string().parse().ok().and_then(serde_json::Number::from_f64)
                {
                    *number = short;
                }
            }
            _ => {}
        }
    }
    match schema {
        Value::Array(items) => items.iter_mut().for_each(shorten_floats),
        Value::Object(map) => {
            for (key, value) in map {
                if key == "default" { shorten(value) } else { shorten_floats(value) }
            }
        }
        _ => {}
    }
}

impl Shape {
    /// The shape of `T`.
    ///
    /// # Panics
    /// When the type uses a part of JSON Schema that the reader does not enforce, or refers to itself:
    /// a fault of the type, found by the first test that reads it.
    pub(super) fn of<T: JsonSchema>() -> Self {
        let schema = schema_of::<T>();
        let none = Map::new();
        let defs = schema.get("$defs").and_then(Value::as_object).unwrap_or(&none);
        compile(&schema, defs, 0)
    }

    /// The keys of an object; none for anything else.
    pub(super) fn fields(&self) -> &[Field] {
        match &self.kind {
            Kind::Object(fields) => fields,
            _ => &[],
        }
    }
}

/// Keywords that carry no rule, or a rule that [`compile`] takes over.
const KNOWN: [&str; 26] = [
    "$schema",
    "$defs",
    "$ref",
    "title",
    "description",
    "default",
    "examples",
    "format",
    "deprecated",
    "type",
    "properties",
    "required",
    "additionalProperties",
    "oneOf",
    "anyOf",
    "enum",
    "const",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    // For editors; the type itself refuses other texts when it is read.
    "pattern",
];

fn compile(schema: &Value, defs: &Map<String, Value>, depth: usize) -> Shape {
    assert!(depth < 32, "a config type must not contain itself");
    let Some(map) = schema.as_object() else {
        return Shape { help: String::new(), unit: None, paper: None, default: None, nullable: true, kind: Kind::Any };
    };
    for key in map.keys() {
        let known =
            KNOWN.contains(&key.as_str()) || key.starts_with("x-") || ["items", "prefixItems"].contains(&&**key);
        assert!(known, "the config reader does not enforce the JSON Schema keyword {key:?}");
    }
    let text = |key: &str| map.get(key).and_then(Value::as_str).map(unwrap_lines);
    let mut shape = match map.get("$ref").and_then(Value::as_str) {
        Some(target) => {
            let name = target.trim_start_matches("#/$defs/");
            let inner = defs.get(name).expect("schemars defines everything it refers to");
            compile(inner, defs, depth + 1)
        }
        None => {
            let (kind, nullable) = compile_kind(map, defs, depth);
            Shape { help: String::new(), unit: None, paper: None, default: None, nullable, kind }
        }
    };
    // What stands beside a reference is about this place and goes before what the type says of itself.
    shape.help = text("description").unwrap_or(shape.help);
    shape.unit = text("x-unit").or(shape.unit);
    shape.paper = text("x-paper").or(shape.paper);
    shape.default = map.get("default").cloned().or(shape.default);
    shape
}

/// Joins the lines of a doc comment into paragraphs.
fn unwrap_lines(text: &str) -> String {
    text.split("\n\n").map(|part| part.replace('\n', " ")).collect::<Vec<_>>().join("\n")
}

fn compile_kind(map: &Map<String, Value>, defs: &Map<String, Value>, depth: usize) -> (Kind, bool) {
    if let Some(alternatives) = map.get("oneOf").or(map.get("anyOf")).and_then(Value::as_array) {
        return compile_alternatives(alternatives, defs, depth);
    }
    let types: Vec<&str> = match map.get("type") {
        Some(Value::String(one)) => vec![one],
        Some(Value::Array(several)) => several.iter().filter_map(Value::as_str).collect(),
        _ => vec![],
    };
    let nullable = types.contains(&"null");
    let types: Vec<&str> = types.into_iter().filter(|t| *t != "null").collect();
    let count = |key: &str, otherwise: usize| map.get(key).and_then(Value::as_u64).map_or(otherwise, |n| n as usize);
    let kind = match types[..] {
        _ if map.contains_key("enum") || map.contains_key("const") => Kind::Choice(choices(map)),
        ["object"] => match map.get("additionalProperties") {
            Some(values @ Value::Object(_)) if !map.contains_key("properties") => {
                Kind::Map(Box::new(compile(values, defs, depth + 1)))
            }
            _ => Kind::Object(fields(map, defs, depth)),
        },
        ["integer"] => integer(map),
        ["number"] => number(map),
        ["boolean"] => Kind::Bool,
        ["string"] => Kind::Text { min: count("minLength", 0), max: count("maxLength", usize::MAX) },
        ["array"] => {
            let first = map.get("prefixItems").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
            Kind::List {
                first: first.iter().map(|item| compile(item, defs, depth + 1)).collect(),
                rest: map.get("items").map(|item| Box::new(compile(item, defs, depth + 1))),
                min: count("minItems", 0),
                max: count("maxItems", usize::MAX),
            }
        }
        _ => Kind::Any,
    };
    (kind, nullable)
}

fn fields(map: &Map<String, Value>, defs: &Map<String, Value>, depth: usize) -> Vec<Field> {
    let required = |name: &str| {
        let list = map.get("required").and_then(Value::as_array);
        list.is_some_and(|list| list.iter().any(|entry| entry == name))
    };
    let properties = map.get("properties").and_then(Value::as_object);
    let field = |(name, schema): (&String, &Value)| Field {
        name: name.clone(),
        required: required(name),
        shape: compile(schema, defs, depth + 1),
    };
    properties.into_iter().flatten().map(field).collect()
}

fn choices(map: &Map<String, Value>) -> Vec<(String, String)> {
    let help = map.get("description").and_then(Value::as_str).map_or_else(String::new, unwrap_lines);
    let values = match (map.get("const"), map.get("enum")) {
        (Some(one), _) => std::slice::from_ref(one),
        (None, Some(Value::Array(several))) => several,
        _ => &[],
    };
    let text = |value: &Value| {
        let text = value.as_str().expect("the config reader knows enums of texts only");
        (text.to_owned(), help.clone())
    };
    values.iter().map(text).collect()
}

fn integer(map: &Map<String, Value>) -> Kind {
    let (min, max) = match map.get("format").and_then(Value::as_str) {
        Some("uint8") => (0, u8::MAX.into()),
        Some("uint16") => (0, u16::MAX.into()),
        Some("uint32") => (0, u32::MAX.into()),
        Some("uint64" | "uint") => (0, u64::MAX.into()),
        Some("int8") => (i8::MIN.into(), i8::MAX.into()),
        Some("int16") => (i16::MIN.into(), i16::MAX.into()),
        Some("int32") => (i32::MIN.into(), i32::MAX.into()),
        _ => (i64::MIN.into(), i64::MAX.into()),
    };
    let limit = |key: &str| {
        let value = map.get(key)?;
        value.as_u64().map(i128::from).or(value.as_i64().map(i128::from)).or(value.as_f64().map(|v| v as i128))
    };
    let low = limit("minimum").or(limit("exclusiveMinimum").map(|v| v + 1)).unwrap_or(min);
    let high = limit("maximum").or(limit("exclusiveMaximum").map(|v| v - 1)).unwrap_or(max);
    Kind::Integer { min: low.max(min), max: high.min(max) }
}

fn number(map: &Map<String, Value>) -> Kind {
    let largest = if map.get("format").and_then(Value::as_str) == Some("float") { f32::MAX.into() } else { f64::MAX };
    let bound = |included: &str, excluded: &str, otherwise: f64| {
        let value = |key: &str| map.get(key).and_then(Value::as_f64);
        match (value(excluded), value(included)) {
            (Some(value), _) => Bound { value, included: false },
            (None, Some(value)) => Bound { value, included: true },
            (None, None) => Bound { value: otherwise, included: true },
        }
    };
    Kind::Number {
        min: bound("minimum", "exclusiveMinimum", -largest),
        max: bound("maximum", "exclusiveMaximum", largest),
    }
}

/// `oneOf` and `anyOf`: an optional value, an enum of texts, a tagged enum, or several forms.
fn compile_alternatives(alternatives: &[Value], defs: &Map<String, Value>, depth: usize) -> (Kind, bool) {
    let is_null = |schema: &&Value| schema.get("type").is_some_and(|t| t == "null");
    let nullable = alternatives.iter().any(|schema| is_null(&schema));
    let shapes: Vec<Shape> =
        alternatives.iter().filter(|schema| !is_null(schema)).map(|schema| compile(schema, defs, depth + 1)).collect();
    let nullable = nullable || shapes.iter().any(|shape| shape.nullable);
    if let [only] = &shapes[..] {
        return (only.kind.clone(), nullable);
    }
    let texts: Option<Vec<_>> =
        shapes.iter().map(|s| if let Kind::Choice(c) = &s.kind { Some(c) } else { None }).collect();
    if let Some(texts) = texts {
        return (Kind::Choice(texts.into_iter().flatten().cloned().collect()), nullable);
    }
    (tagged(&shapes).unwrap_or(Kind::Either(shapes)), nullable)
}

/// A tagged enum, when every form is an object with one and the same key that allows one text only.
fn tagged(shapes: &[Shape]) -> Option<Kind> {
    let constant = |field: &Field| match &field.shape.kind {
        Kind::Choice(choices) if field.required && choices.len() == 1 => Some(choices[0].0.clone()),
        _ => None,
    };
    let tag = shapes.first()?.fields().iter().find(|field| constant(field).is_some())?.name.clone();
    let variants: Option<Vec<Variant>> = shapes
        .iter()
        .map(|shape| {
            let name = shape.fields().iter().find(|field| field.name == tag).and_then(constant)?;
            let fields = shape.fields().iter().filter(|field| field.name != tag).cloned().collect();
            Some(Variant { name, help: shape.help.clone(), fields })
        })
        .collect();
    Some(Kind::Tagged { tag, variants: variants? })
}
