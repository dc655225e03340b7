//! JSON text as a tree in which every key and value knows where it was written.

use jsonc_parser::ast;
use jsonc_parser::common::Ranged as _;
use jsonc_parser::errors::ParseErrorKind;

use super::numeral::Numeral;
use super::problem::{At, Problem};

/// Objects and lists nested deeper than this are refused. No config comes near; the limit keeps every
/// recursive walk over the tree shallow.
pub(super) const MAX_DEPTH: usize = 32;

/// A value with its place.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) at: At,
    pub(super) value: Value,
}

/// A JSON value; numbers keep their text, objects their order and their duplicates.
#[derive(Clone, Debug)]
pub(super) enum Value {
    Null,
    Bool(bool),
    Number(String),
    Text(String),
    List(Vec<Node>),
    Object(Vec<Entry>),
}

/// A key of an object with its value.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) at: At,
    pub(super) name: String,
    pub(super) node: Node,
}

impl Node {
    /// The entries of an object.
    pub(super) fn entries(&self) -> Option<&[Entry]> {
        match &self.value {
            Value::Object(entries) => Some(entries),
            _ => None,
        }
    }

    /// The value of the last key with this name, the one that JSON readers take.
    pub(super) fn get(&self, name: &str) -> Option<&Entry> {
        self.entries()?.iter().rev().find(|entry| entry.name == name)
    }

    /// Where `path` (`search.simulations`, `devices[1]`) is written, or else the nearest thing around it.
    pub(super) fn locate(&self, path: &str) -> At {
        let mut node = self;
        let mut at = self.at.clone();
        for part in path.split(['.', '[']).filter(|part| !part.is_empty()) {
            match (&node.value, part.strip_suffix(']').and_then(|index| index.parse::<usize>().ok())) {
                (Value::List(items), Some(index)) if index < items.len() => node = &items[index],
                (Value::Object(_), None) => match node.get(part) {
                    Some(entry) => {
                        at = entry.at.clone();
                        node = &entry.node;
                        continue;
                    }
                    None => break,
                },
                _ => break,
            }
            at = node.at.clone();
        }
        at
    }

    /// The tree as a plain JSON value: of duplicate keys the last one, whole numbers as integers
    /// however they were written (`1e3` is 1000).
    pub(super) fn to_json(&self) -> serde_json::Value {
        match &self.value {
            Value::Null => serde_json::Value::Null,
            Value::Bool(value) => (*value).into(),
            Value::Number(text) => Numeral::parse(text).to_json(),
            Value::Text(text) => text.clone().into(),
            Value::List(items) => items.iter().map(Self::to_json).collect::<Vec<_>>().into(),
            Value::Object(entries) => {
                let pairs = entries.iter().map(|entry| (entry.name.clone(), entry.node.to_json()));
                serde_json::Value::Object(pairs.collect())
            }
        }
    }
}

/// Reads strict JSON (RFC 8259: no comments, no trailing commas, one value). Text behind the value is noted in
/// `trailing`, so that what is wrong with the value comes to light all the same.
///
/// # Errors
/// The first place where the text is not JSON, or is nested too deeply.
pub(super) fn parse(text: &str, place: &dyn Fn(usize) -> At, trailing: &mut Option<Problem>) -> Result<Node, Problem> {
    let options = jsonc_parser::ParseOptions {
        allow_comments: false,
        allow_loose_object_property_names: false,
        allow_trailing_commas: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    };
    let column = |at: At, column: usize| match at {
        At::File { line, .. } => At::File { line, column: Some(column) },
        set => set,
    };
    let parsed = match jsonc_parser::parse_to_ast(text, &jsonc_parser::CollectOptions::default(), &options) {
        Ok(parsed) => parsed,
        Err(e) => {
            let start = e.range().start;
            let problem = Problem::new(column(place(start), e.column_display()), "", syntax_message(e.kind()));
            if trailing.is_some() || !matches!(e.kind(), ParseErrorKind::MultipleRootJsonValues) {
                return Err(problem);
            }
            *trailing = Some(problem);
            return parse(&text[..start], place, trailing);
        }
    };
    // The parser is laxer than JSON in a few corners (raw line ends in strings, exotic white space), so
    // the text must satisfy a second, strict one too.
    if parsed.value.is_some()
        && let Err(e) = serde_json::from_str::<serde::de::IgnoredAny>(text)
    {
        let start = text.split_inclusive('\n').take(e.line().saturating_sub(1)).map(str::len).sum();
        let full = e.to_string();
        let message = full.split(" at line ").next().unwrap_or(&full);
        return Err(Problem::new(column(place(start), e.column()), "", format!("not JSON: {message}")));
    }
    match parsed.value {
        Some(value) => convert(value, place, 0),
        None => Err(Problem::new(place(0), "", "there is nothing here; the smallest config is {\"game\": \"uttt\"}")),
    }
}

fn convert(value: ast::Value<'_>, place: &dyn Fn(usize) -> At, depth: usize) -> Result<Node, Problem> {
    let at = place(value.range().start);
    if depth > MAX_DEPTH {
        return Err(Problem::new(at, "", format!("nested deeper than {MAX_DEPTH} levels, which no config needs")));
    }
    let value = match value {
        ast::Value::NullKeyword(_) => Value::Null,
        ast::Value::BooleanLit(literal) => Value::Bool(literal.value),
        ast::Value::NumberLit(literal) => Value::Number(literal.value.to_owned()),
        ast::Value::StringLit(literal) => Value::Text(literal.value.into_owned()),
        ast::Value::Array(list) => {
            let items = list.elements.into_iter().map(|item| convert(item, place, depth + 1));
            Value::List(items.collect::<Result<_, _>>()?)
        }
        ast::Value::Object(object) => {
            let entries = object.properties.into_iter().map(|property| {
                Ok(Entry {
                    at: place(property.range.start),
                    name: property.name.into_string(),
                    node: convert(property.value, place, depth + 1)?,
                })
            });
            Value::Object(entries.collect::<Result<_, Problem>>()?)
        }
    };
    Ok(Node { at, value })
}

/// What is wrong and what JSON wants instead.
fn syntax_message(kind: &ParseErrorKind) -> String {
    match kind {
        ParseErrorKind::CommentsNotAllowed => "comments are not part of JSON; remove it".into(),
        ParseErrorKind::TrailingCommasNotAllowed => "a comma before a closing bracket; remove it".into(),
        ParseErrorKind::ExpectedComma => "a comma is missing here".into(),
        ParseErrorKind::ExpectedStringObjectProperty | ParseErrorKind::UnexpectedTokenInObject => {
            "expected a key in double quotes".into()
        }
        ParseErrorKind::MultipleRootJsonValues => "text after the end of the config; remove it".into(),
        ParseErrorKind::UnterminatedObject => "this object is not closed: a } is missing".into(),
        ParseErrorKind::UnterminatedArray => "this list is not closed: a ] is missing".into(),
        ParseErrorKind::UnexpectedWord | ParseErrorKind::UnexpectedToken => {
            "expected a number, a text in double quotes, true, false, null, a list or an object".into()
        }
        ParseErrorKind::SingleQuotedStringsNotAllowed => "texts stand in double quotes, not single ones".into(),
        ParseErrorKind::NonFiniteNumbersNotAllowed => "Infinity and NaN are not numbers of JSON".into(),
        ParseErrorKind::NestingDepthExceeded => format!("nested deeper than {MAX_DEPTH} levels, which no config needs"),
        other => format!("not JSON: {}", lower_first(&other.to_string())),
    }
}

fn lower_first(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_lowercase().chain(chars).collect())
}
