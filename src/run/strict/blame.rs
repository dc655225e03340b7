//! Finds the key that made deserialisation fail.

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::check::join;

/// The path of the key that `T` refuses with `error`, empty when it cannot be told.
///
/// Types may refuse values that their schema allows (a text in a syntax of its own), and serde does not say
/// where. So keys are left out one by one, on every level, until the complaint changes.
pub(super) fn blame<T: DeserializeOwned>(value: &Value, error: &str) -> String {
    let mut path: Vec<String> = Vec::new();
    while let Some(Value::Object(map)) = path.iter().try_fold(value, |inner, key| inner.get(key)) {
        let mut keys = map.keys();
        let guilty = keys.find(|key| {
            let mut without = value.clone();
            let inner = path.iter().try_fold(&mut without, |inner, key| inner.get_mut(key));
            if let Some(Value::Object(map)) = inner {
                map.shift_remove(*key);
            }
            // Leaving out a required key only changes the complaint to one about that key.
            match serde_json::from_value::<T>(without) {
                Ok(_) => true,
                Err(e) => e.to_string() != error,
            }
        });
        match guilty {
            Some(key) => path.push(key.clone()),
            None => break,
        }
    }
    path.iter().fold(String::new(), |path, key| join(&path, key))
}
