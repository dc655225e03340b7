//! What changed between two configs.

use std::fmt;

use serde_json::Value;

use super::check::join;

/// A key whose value differs.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// The whole path of the key.
    pub path: String,
    /// The value before; `None` when the key was not there.
    pub old: Option<Value>,
    /// The value after; `None` when the key is gone.
    pub new: Option<Value>,
}

impl fmt::Display for Change {
    /// `search.simulations: 100 -> 200`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |value: &Option<Value>| value.as_ref().map_or_else(|| "(none)".to_owned(), Value::to_string);
        write!(f, "{}: {} -> {}", self.path, text(&self.old), text(&self.new))
    }
}

/// The keys in which two resolved configs differ, in the order of `old` and then of what only `new` has.
/// Objects are compared key by key, lists as a whole, numbers by value (1 equals 1.0).
pub fn diff(old: &Value, new: &Value) -> Vec<Change> {
    let mut changes = Vec::new();
    walk(Some(old), Some(new), "", &mut changes);
    changes
}

fn walk(old: Option<&Value>, new: Option<&Value>, path: &str, changes: &mut Vec<Change>) {
    match (old, new) {
        (Some(Value::Object(before)), Some(Value::Object(after))) => {
            let added = after.keys().filter(|key| !before.contains_key(*key));
            for key in before.keys().chain(added) {
                walk(before.get(key), after.get(key), &join(path, key), changes);
            }
        }
        _ if same(old, new) => {}
        _ => changes.push(Change { path: path.to_owned(), old: old.cloned(), new: new.cloned() }),
    }
}

fn same(old: Option<&Value>, new: Option<&Value>) -> bool {
    match (old, new) {
        (Some(Value::Number(a)), Some(Value::Number(b))) => {
            a == b || (a.is_f64() || b.is_f64()) && a.as_f64() == b.as_f64()
        }
        (Some(Value::Array(a)), Some(Value::Array(b))) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(Some(a), Some(b)))
        }
        (Some(Value::Object(_)), Some(Value::Object(_))) => {
            let mut inner = Vec::new();
            walk(old, new, "", &mut inner);
            inner.is_empty()
        }
        _ => old == new,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn lists_what_differs_and_nothing_else() {
        let old = json!({"game": "uttt", "net": {"type": "resnet", "blocks": 4}, "lr": 1, "list": [1, {"a": 2.0}], "gone": null});
        let new = json!({"net": {"blocks": 6, "type": "resnet", "extra": true}, "game": "uttt", "lr": 1.0, "list": [1, {"a": 2}]});
        let lines: Vec<String> = diff(&old, &new).iter().map(Change::to_string).collect();
        assert_eq!(lines, ["net.blocks: 4 -> 6", "net.extra: (none) -> true", "gone: null -> (none)"]);
        assert_eq!(diff(&old, &old), []);
        let lists = diff(&json!({"d": [1, 2]}), &json!({"d": [1]}));
        assert_eq!(lists[0].to_string(), "d: [1,2] -> [1]");
    }
}
