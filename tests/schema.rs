//! The JSON Schema of configs, read by a validator that is not this program's: it lets through what the program takes, refuses what
//! that refuses, and says of every key what there is to say. `docs/configs.md` says the same.

mod common;

use std::path::{Path, PathBuf};

use common::run;
use jsonschema::Validator;
use serde_json::{Map, Value as Json, json};
use sparring::games::NAMES;
use sparring::run::config::RunConfig;
use sparring::run::strict::resolved_value;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("configs")
}

fn read(path: &Path) -> Json {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn schema() -> Json {
    read(&folder().join("schema.json"))
}

fn validator() -> Validator {
    let schema = schema();
    assert!(jsonschema::meta::is_valid(&schema), "the schema itself is one");
    jsonschema::draft202012::new(&schema).unwrap()
}

/// What the program makes of a config.
fn program(config: &Json) -> Result<RunConfig, String> {
    RunConfig::parse("test", &config.to_string(), &[]).map_err(|errors| errors.to_string())
}

#[test]
fn configs_that_ship_and_resolved_ones_are_valid() {
    let validator = validator();
    let check = |config: &Json, name: &str| {
        let errors: Vec<String> =
            validator.iter_errors(config).map(|error| format!("{}: {error}", error.instance_path())).collect();
        assert!(errors.is_empty(), "{name}: {errors:#?}");
    };
    let mut count = 0;
    for entry in std::fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        if path.ends_with("schema.json") {
            continue;
        }
        let config = read(&path);
        check(&config, &path.display().to_string());
        check(&resolved_value(&program(&config).unwrap()), &format!("{}, resolved", path.display()));
        count += 1;
    }
    assert!(count >= 9);
    for name in NAMES {
        check(&json!({ "game": name }), name);
    }
}

/// Whole configs that between them have every key.
fn bases() -> Vec<Json> {
    [
        json!({"game": "uttt"}),
        json!({"game": "uttt", "network": {"type": "mlp"}, "training": {"optimizer": {"type": "sgd"}}}),
        json!({"game": "uttt", "training": {"schedule": {"type": "cosine"}}}),
        json!({"game": "uttt", "training": {"schedule": {"type": "steps"}}}),
    ]
    .map(|config| resolved_value(&program(&config).unwrap()))
    .into()
}

/// Paths (JSON pointers) of everything in `value`.
fn paths(value: &Json, at: &str, out: &mut Vec<String>) {
    out.push(at.to_owned());
    for (key, inner) in value.as_object().into_iter().flatten() {
        paths(inner, &format!("{at}/{key}"), out);
    }
}

#[test]
fn wrong_configs_are_refused_by_both() {
    let validator = validator();
    let mut refused = 0;
    for base in bases() {
        let mut all = Vec::new();
        paths(&base, "", &mut all);
        assert!(all.len() > 60, "{all:?}");
        for path in all {
            let place = base.pointer(&path).unwrap();
            let mut changes = match place {
                Json::Object(keys) => {
                    let mut more: Map<String, Json> = keys.clone();
                    more.insert("nonsense".to_owned(), json!(1));
                    vec![json!(more), json!("text"), json!(3), Json::Null]
                }
                Json::String(_) => vec![json!(3), json!(true), Json::Null, json!([])],
                // Whether a text names a game only the program knows; of all others it must be one of a few.
                _ => vec![json!("text"), json!([[]]), json!({}), json!(-1), json!(-2.5), json!(0), json!(0.5)],
            };
            changes.extend([json!(1e15 as u64), json!(-1e15 as i64), json!([-1]), json!([1e15 as u64])]);
            if place.is_string() && path != "/game" {
                changes.push(json!("nonsense"));
            }
            for change in changes {
                let mut config = base.clone();
                *config.pointer_mut(&path).unwrap() = change.clone();
                let (schema, program) = (validator.is_valid(&config), program(&config));
                // What goes beyond types and ranges only the program sees: it is stricter, and says so.
                let further = ["must be even", "rising", "is never reached", "elo1", "network"];
                match (schema, &program) {
                    (false, Err(_)) => refused += 1,
                    (true, Ok(_)) => {}
                    (true, Err(told)) if further.iter().any(|word| told.contains(word)) => {}
                    _ => panic!("{path} = {change}: the schema says {schema}, the program {program:?}"),
                }
            }
        }
    }
    assert!(refused > 1000, "{refused}");
    for config in [json!({}), json!([]), json!(null), json!({"game": "uttt", "nonsense": 1}), json!({"seed": 1})] {
        assert!(!validator.is_valid(&config) && program(&config).is_err(), "{config}");
    }
}

/// Every key of every section: (section's type, key, its schema).
fn keys(schema: &Json) -> Vec<(String, String, Json)> {
    let of = |name: &str, properties: &Json| -> Vec<_> {
        let entries = properties.as_object().into_iter().flatten();
        entries.map(|(key, value)| (name.to_owned(), key.clone(), value.clone())).collect()
    };
    let mut all = of("the config", &schema["properties"]);
    for (name, part) in schema["$defs"].as_object().unwrap() {
        all.extend(of(name, &part["properties"]));
        for variant in part["oneOf"].as_array().into_iter().flatten() {
            all.extend(of(name, &variant["properties"]));
        }
    }
    all.retain(|(_, key, value)| key != "$schema" && value.get("const").is_none());
    all
}

#[test]
fn every_key_says_what_it_means_and_what_it_counts() {
    let schema = schema();
    let all = keys(&schema);
    assert!(all.len() > 75, "{}", all.len());
    for (section, key, value) in &all {
        let name = format!("{section}: {key}");
        let meaning = value["description"].as_str().unwrap_or_else(|| panic!("{name} has no description"));
        // What the default is and what papers have is said by other means.
        for word in ["Paper:", "Default ", "AlphaZero:", "AlphaGo Zero:", "as in the paper"] {
            assert!(!meaning.contains(word), "{name}: {word:?} in {meaning:?}");
        }
        let is_number = |kind: &Json| ["integer", "number"].iter().any(|number| kind == number);
        let kind = &value["type"];
        if is_number(kind) || kind.as_array().is_some_and(|kinds| kinds.iter().any(is_number)) {
            assert!(value["x-unit"].is_string(), "{name} has no unit (\"none\" for a pure number)");
        }
    }
    assert!(all.iter().filter(|(_, _, value)| value["x-paper"].is_string()).count() >= 40);
    // It comes out of `--explain`.
    let told = run(["config", "--explain", "search.c_puct"]).expect(0).out;
    for line in [
        "value:   a number from 0 to 100",
        "unit:    none",
        "default: 1.5",
        "paper:   1.25 for values in [0, 1] (AlphaZero)",
    ] {
        assert!(told.contains(line), "{told}");
    }
}

#[test]
fn the_page_on_configs_says_the_same() {
    let schema = schema();
    let page = std::fs::read_to_string(folder().join("../docs/configs.md")).unwrap();
    for (section, key, value) in keys(&schema) {
        let target = value["$ref"].as_str().map(|target| &schema["$defs"][target.trim_start_matches("#/$defs/")]);
        // Sections have headings of their own.
        if section == "the config" && target.is_some_and(|target| target["properties"].is_object()) || key == "network"
        {
            continue;
        }
        let mut parts = Vec::new();
        // Where the choices are texts, the page tells them in the same sentence.
        if target.is_none() {
            parts.push(value["description"].as_str().unwrap().replace('\n', " "));
        }
        parts.extend(value["x-unit"].as_str().filter(|unit| *unit != "none").map(|unit| format!(" Unit: {unit}.")));
        parts.extend(value["x-paper"].as_str().map(|paper| format!(" Paper: {paper}.")));
        let mut rows = page.lines().filter(|line| line.starts_with(&format!("| `{key}` |")));
        let found = rows.any(|row| parts.iter().all(|part| row.contains(part.trim())));
        assert!(found, "docs/configs.md has no row of {key} ({section}) with {parts:#?}");
    }
}
