//! The reader against a config type with every feature that sections may use.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::*;

/// A run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Demo {
    /// The game with its options.
    #[schemars(length(min = 1))]
    game: String,
    /// Seed of all randomness.
    #[serde(default)]
    seed: u64,
    /// The search for each move.
    #[serde(default)]
    search: Search,
    #[serde(default)]
    network: Network,
    #[serde(default)]
    optimizer: Optimizer,
    /// Where to compute.
    #[serde(default)]
    device: Device,
    /// Hypotheses of the test, in Elo.
    #[serde(default)]
    bounds: (f64, f64),
    #[serde(default)]
    stages: Vec<Stage>,
    #[serde(default)]
    limits: BTreeMap<String, u32>,
    #[serde(default)]
    duration: Duration,
}

/// How moves are searched.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct Search {
    /// Simulations for each move. More are
    /// slower and stronger.
    #[schemars(range(min = 1, max = 100_000), extend("x-unit" = "simulations", "x-paper" = "800 (AlphaZero)"))]
    simulations: u32,
    /// Share of noise in the priors of the root.
    #[schemars(range(min = 0.0, max = 1.0))]
    noise: f32,
    /// Concentration of the noise.
    #[schemars(extend("exclusiveMinimum" = 0.0))]
    alpha: f64,
    /// Plies with temperature; null for all.
    temperature_plies: Option<u16>,
    /// Keep the tree between moves.
    reuse: bool,
}

impl Default for Search {
    fn default() -> Self {
        Self { simulations: 200, noise: 0.3, alpha: 0.8, temperature_plies: Some(30), reuse: true }
    }
}

/// The network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
enum Network {
    /// Residual blocks.
    Resnet {
        /// Number of blocks.
        #[serde(default = "four")]
        #[schemars(range(min = 1))]
        blocks: u32,
        /// Channels of the trunk.
        channels: u32,
    },
    /// Dense layers.
    Mlp {
        /// Width of each layer.
        hidden: Vec<u32>,
    },
    /// No network.
    Uniform,
}

fn four() -> u32 {
    4
}

impl Default for Network {
    fn default() -> Self {
        Self::Resnet { blocks: 4, channels: 64 }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Optimizer {
    /// Adam with decoupled weight decay.
    #[default]
    AdamW,
    Sgd,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
enum Device {
    One(String),
    Several(Vec<String>),
}

impl Default for Device {
    fn default() -> Self {
        Self::One("auto".into())
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct Stage {
    steps: u32,
    rate: f32,
}

/// A type that refuses more than its schema does.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
struct Duration(u32);

impl TryFrom<String> for Duration {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        let hours = text.strip_suffix('h').and_then(|hours| hours.parse().ok());
        hours.map(Self).ok_or_else(|| format!("{text:?} is no duration; expected something like \"2h\""))
    }
}

impl From<Duration> for String {
    fn from(duration: Duration) -> Self {
        format!("{}h", duration.0)
    }
}

fn read(text: &str, sets: &[&str]) -> Result<Demo, ConfigErrors> {
    let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
    Reader::new()
        .check(|demo: &Demo, findings| {
            if demo.search.simulations % 2 == 1 {
                findings.add("search.simulations", "must be even");
            }
            if demo.seed == 13 {
                findings.add("seed", "brings bad luck");
            }
        })
        .read_text("x.json", text, &sets)
}

#[track_caller]
fn errors(text: &str, sets: &[&str]) -> Vec<String> {
    read(text, sets).expect_err("this config is wrong").to_string().lines().map(str::to_owned).collect()
}

#[test]
fn a_minimal_config_takes_every_default() {
    let demo = read(r#"{"game": "uttt"}"#, &[]).unwrap();
    assert_eq!((demo.search, demo.network), (Search::default(), Network::default()));
    let partial =
        read("\u{feff}{\"$schema\": \"schema.json\", \"game\": \"uttt\", \"search\": {\"reuse\": false}}", &[])
            .unwrap();
    assert_eq!(partial.search, Search { reuse: false, ..Search::default() });
}

#[test]
fn every_problem_is_reported_at_once_in_order() {
    let text = r#"{
  "game": "uttt",
  "serch": {},
  "search": {
    "simulation": 3,
    "noise": 1.5,
    "alpha": 0,
    "noise": "much",
    "temperature_plies": 70000
  },
  "network": {"type": "resnet", "blocks": 0, "hidden": [1]},
  "optimizer": "adamm",
  "device": 3,
  "bounds": [0.0],
  "stages": [{}, {"steps": -1, "rate": 1e39}],
  "limits": {"a": 1.5},
  "simulations": 1
}"#;
    let expected = [
        r#"x.json:3: serch: unknown key; did you mean "search"? (known: game, seed, search, network, optimizer, device, bounds, stages, limits, duration, $schema)"#,
        r#"x.json:5: search.simulation: unknown key; did you mean "simulations"? (known: simulations, noise, alpha, temperature_plies, reuse)"#,
        "x.json:6: search.noise: 1.5 is out of range; expected a number from 0 to 1",
        "x.json:7: search.alpha: 0 is out of range; expected a number above 0",
        "x.json:8: search.noise: duplicate key (first on line 6); remove one",
        r#"x.json:8: search.noise: found the text "much", expected a number from 0 to 1"#,
        "x.json:9: search.temperature_plies: 70000 is out of range; expected an integer from 0 to 65535, or null",
        "x.json:11: network.blocks: 0 is out of range; expected an integer of at least 1",
        r#"x.json:11: network.hidden: unknown key for type "resnet"; it belongs to type "mlp" (known: blocks, channels)"#,
        "x.json:11: network.channels: missing; expected an integer of at least 0",
        r#"x.json:12: optimizer: "adamm" is not allowed; expected "sgd" or "adamw"; did you mean "adamw"?"#,
        "x.json:13: device: found the number 3, expected a text in double quotes, or a list of any length, each a text in double quotes",
        "x.json:14: bounds: found 1 item; expected 2 items",
        "x.json:15: stages[1].steps: -1 is out of range; expected an integer of at least 0",
        "x.json:15: stages[1].rate: 1e39 is out of range; expected a number",
        "x.json:16: limits.a: 1.5 is not a whole number; expected an integer of at least 0",
        r#"x.json:17: simulations: unknown key; did you mean "search.simulations"? (known: game, seed, search, network, optimizer, device, bounds, stages, limits, duration, $schema)"#,
    ];
    let found = errors(text, &[]);
    for (found, expected) in found.iter().zip(expected) {
        assert_eq!(found, expected);
    }
    assert_eq!(found.len(), expected.len());
}

#[test]
fn missing_keys_and_tags_are_named() {
    assert_eq!(errors("{}", &[]), ["x.json:1: game: missing; expected a text in double quotes, not empty"]);
    assert_eq!(
        errors(r#"{"game": ""}"#, &[]),
        [r#"x.json:1: game: "" has the wrong length; expected a text in double quotes, not empty"#]
    );
    let network = |inner: &str| errors(&format!("{{\"game\": \"g\",\n\"network\": {inner}}}"), &[]).join("\n");
    assert_eq!(network("{}"), r#"x.json:2: network.type: missing; expected one of "resnet", "mlp", "uniform""#);
    assert_eq!(
        network(r#"{"type": 1}"#),
        r#"x.json:2: network.type: found the number 1, expected one of "resnet", "mlp", "uniform""#
    );
    assert_eq!(
        network(r#"{"type": "resnt", "x": 1}"#),
        r#"x.json:2: network.type: "resnt" is not allowed; expected one of "resnet", "mlp", "uniform"; did you mean "resnet"?"#
    );
    // Serde alone would let this pass.
    assert_eq!(
        network(r#"{"type": "uniform", "blocks": 1}"#),
        r#"x.json:2: network.blocks: unknown key for type "uniform"; it belongs to type "resnet" (no key is allowed here)"#
    );
    assert_eq!(
        network(r#"{"type": "uniform", "type": "uniform"}"#),
        "x.json:2: network.type: duplicate key (first on line 2); remove one"
    );
    assert_eq!(
        network("null"),
        r#"x.json:2: network: found null, expected an object with "type": "resnet", "mlp" or "uniform""#
    );
}

#[test]
fn broken_syntax_is_placed() {
    let cases = [
        ("", "x.json:1: there is nothing here; the smallest config is {\"game\": \"uttt\"}"),
        ("{\n  \"game\": \"g\",\n}", "x.json:2:14: a comma before a closing bracket; remove it"),
        ("{\"game\": \"g\"}\n 1", "x.json:2:2: text after the end of the config; remove it"),
        ("{\"game\": \"g\" // no\n}", "x.json:1:14: comments are not part of JSON; remove it"),
        ("{\"game\": \"g\"", "x.json:1:1: this object is not closed: a } is missing"),
        ("{\"game\": \"g\"\n\"seed\": 1}", "x.json:1:13: a comma is missing here"),
        ("{game: \"g\"}", "x.json:1:2: expected a key in double quotes"),
        ("{\"game\": 'g'}", "x.json:1:10: texts stand in double quotes, not single ones"),
        (
            "{\"game\": NaN}",
            "x.json:1:10: expected a number, a text in double quotes, true, false, null, a list or an object",
        ),
        ("[1]", "x.json:1: found a list, expected an object { ... }"),
        ("3", "x.json:1: found the number 3, expected an object { ... }"),
    ];
    for (text, expected) in cases {
        assert_eq!(errors(text, &[]), [expected], "{text}");
    }
    for text in [
        "{\"game\": 01}",
        "{\"game\": \"a\nb\"}",
        "{\"game\":\u{a0}\"g\"}",
        "{\"game\": \"\\ud800\"}",
        "{\"game\": +1}",
        "{\"game\" \"g\"}",
    ] {
        assert!(errors(text, &[])[0].starts_with("x.json:1:"), "{text}: {:?}", errors(text, &[]));
    }
}

#[test]
fn deep_nesting_is_refused_without_a_stack_overflow() {
    for depth in [33, 500, 1_000_000] {
        for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
            let text = format!("{{\"game\": {}1{}}}", open.repeat(depth), close.repeat(depth));
            assert!(errors(&text, &[])[0].contains("nested deeper than 32 levels"), "{depth}");
        }
    }
    assert!(
        errors("{\"game\": \"g\"}", &[&format!("seed={}1", "[".repeat(100_000))])[0].contains("expected an integer")
    );
    assert!(errors("{\"game\": \"g\"}", &[&format!("{}=1", vec!["a"; 5000].join("."))])[0].contains("more parts"));
}

#[test]
fn integers_may_be_written_in_any_exact_way() {
    let demo = read(r#"{"game": "g", "seed": 18446744073709551615, "search": {"simulations": 1e3, "alpha": 3}}"#, &[])
        .unwrap();
    assert_eq!((demo.seed, demo.search.simulations, demo.search.alpha), (u64::MAX, 1000, 3.0));
    assert_eq!(read(r#"{"game": "g", "search": {"simulations": 2.0}}"#, &[]).unwrap().search.simulations, 2);
    for number in ["-1", "1.5", "18446744073709551616", "1e400", "-1e400", "1e-3"] {
        let line = &errors(&format!("{{\"game\": \"g\", \"seed\": {number}}}"), &[])[0];
        assert!(line.starts_with(&format!("x.json:1: seed: {number} is ")), "{line}");
        assert!(line.ends_with("expected an integer of at least 0"), "{line}");
    }
}

#[test]
fn overrides_win_and_their_problems_name_them() {
    let text = r#"{"game": "g", "search": {"simulations": "broken", "noise": 0.1}}"#;
    let sets = [
        "search.simulations=10",
        "search.simulations=50",
        "game=\"h\"",
        "network={\"type\":\"mlp\",\"hidden\":[8]}",
        "stages=[]",
    ];
    let demo = read(text, &sets).unwrap();
    assert_eq!((demo.search.simulations, demo.search.noise, &*demo.game), (50, 0.1, "h"));
    assert_eq!(demo.network, Network::Mlp { hidden: vec![8] });
    // Words need no quotes, and a text stays one even if it looks like a number.
    assert_eq!(read(text, &["search.simulations=2", "game=7"]).unwrap().game, "7");
    assert_eq!(read(text, &["search.simulations=2", "optimizer=sgd"]).unwrap().optimizer, Optimizer::Sgd);
    assert_eq!(
        errors(
            r#"{"game": "g"}"#,
            &["search.simulations=fast", "serch.noise=1", "search.noise=NaN", "plain", "a..b=1", "game.x=1"]
        ),
        [
            r#"--set a..b=1: the key has an empty part; expected something like search.simulations"#,
            r#"--set game.x=1: game: is no object in the config, so no key inside it can be set"#,
            r#"--set plain: expected KEY=VALUE, as in search.simulations=200"#,
            r#"--set search.noise=NaN: search.noise: found the text "NaN", expected a number from 0 to 1"#,
            r#"--set search.simulations=fast: search.simulations: found the text "fast", expected an integer from 1 to 100000"#,
            r#"--set serch.noise=1: serch: unknown key; did you mean "search"? (known: game, seed, search, network, optimizer, device, bounds, stages, limits, duration, $schema)"#,
        ]
    );
}

#[test]
fn findings_of_checks_are_placed() {
    let text = "{\"game\": \"g\",\n\"seed\": 13,\n\"search\": {\n\"simulations\": 3}}";
    assert_eq!(errors(text, &[]), ["x.json:2: seed: brings bad luck", "x.json:4: search.simulations: must be even"]);
    assert_eq!(
        errors(text, &["seed=1", "search.simulations=5"]),
        ["--set search.simulations=5: search.simulations: must be even"]
    );
    // What deserialisation itself refuses is placed too.
    assert_eq!(
        errors("{\"game\": \"g\",\n\n\"duration\": \"soon\"}", &[]),
        [r#"x.json:3: duration: "soon" is no duration; expected something like "2h""#]
    );
}

#[test]
fn presets_lie_under_what_is_given() {
    let preset = serde_json::json!({
        "game": "g", "search": {"simulations": 64, "noise": 0.1}, "network": {"type": "resnet", "blocks": 2, "channels": 8},
    });
    let read = |text: &str| Reader::<Demo>::new().preset(|_| Some(preset.clone())).read_text("x.json", text, &[]);
    let demo = read(r#"{"search": {"noise": 0.2}, "network": {"blocks": 3}}"#).unwrap();
    assert_eq!((demo.search.simulations, demo.search.noise), (64, 0.2));
    assert_eq!(demo.network, Network::Resnet { blocks: 3, channels: 8 });
    assert_eq!(
        read(r#"{"network": {"type": "mlp", "hidden": [2]}}"#).unwrap().network,
        Network::Mlp { hidden: vec![2] }
    );
    // Another form of a tagged object gets nothing from the preset.
    let error = read(r#"{"network": {"type": "mlp"}}"#).unwrap_err().to_string();
    assert!(error.contains("network.hidden: missing"), "{error}");
    assert_eq!(read("{}").unwrap().search.simulations, 64);
}

#[test]
fn the_resolved_config_reads_back_as_itself() {
    let demo = read(r#"{"game": "g", "search": {"noise": 0.1}}"#, &[]).unwrap();
    let text = resolved_json(&demo);
    assert!(text.contains("\"noise\": 0.1,"), "{text}");
    assert_eq!(read(&text, &[]).unwrap(), demo);
    let stored: Json = serde_json::from_str(&text).unwrap();
    assert_eq!(diff(&stored, &resolved_value(&demo)), []);
}

#[test]
fn keys_are_explained() {
    let one = explain::<Demo>("search.simulations", None).unwrap();
    assert_eq!(
        one[0].to_string(),
        "search.simulations\n  Simulations for each move. More are slower and stronger.\n  value:   an integer from 1 to 100000\n  \
         unit:    simulations\n  default: 200\n  paper:   800 (AlphaZero)"
    );
    assert!(
        explain::<Demo>("search", None).unwrap()[0]
            .to_string()
            .contains("noise              Share of noise in the priors of the root.")
    );
    assert_eq!(explain::<Demo>("search.noise", None).unwrap()[0].default, Some(serde_json::json!(0.3)));
    let blocks = explain::<Demo>("network.blocks", None).unwrap();
    assert_eq!(
        (blocks[0].when.as_deref(), &blocks[0].default),
        (Some("network.type is \"resnet\""), &Some(serde_json::json!(4)))
    );
    assert!(explain::<Demo>("network.type", None).unwrap()[0].to_string().contains("\"mlp\"      Dense layers."));
    assert_eq!(explain::<Demo>("game", None).unwrap()[0].default, None);
    let special = serde_json::json!({"search": {"simulations": 32}});
    assert_eq!(explain::<Demo>("search.simulations", Some(&special)).unwrap()[0].default, Some(32.into()));
    for wrong in ["search.simulation", "simulations"] {
        let error = explain::<Demo>(wrong, None).unwrap_err();
        assert_eq!(error.to_string(), format!("there is no key {wrong:?}; did you mean \"search.simulations\"?"));
    }
}

#[test]
fn the_schema_is_for_editors() {
    let schema: Json = serde_json::from_str(&schema_json::<Demo>()).unwrap();
    assert_eq!(schema["properties"]["$schema"]["type"], "string");
    assert_eq!(schema["additionalProperties"], false);
    assert_eq!(schema["$defs"]["Search"]["properties"]["noise"]["default"].to_string(), "0.3");
    assert_eq!(schema["properties"]["search"]["default"]["noise"].to_string(), "0.3");
}

#[test]
fn files_that_are_no_configs_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let read = |path: &Path| Reader::<Demo>::new().read_file(path, &[]).unwrap_err().to_string();
    assert!(read(dir.path()).ends_with("is a folder, expected a config file"));
    assert!(read(&dir.path().join("none.json")).contains("none.json: cannot be read: No such file"));
    let path = dir.path().join("latin.json");
    std::fs::write(&path, b"{\"game\": \"\xe9\"}").unwrap();
    let told = read(&path.with_extension(""));
    assert!(told.ends_with(&format!("did you mean {}?", path.display())), "{told}");
    assert!(read(&path).ends_with("is no UTF-8 text (byte 10)"));
    std::fs::write(&path, vec![b' '; 2 << 20]).unwrap();
    assert!(read(&path).contains("is larger than"));
}

#[test]
fn damaged_texts_never_panic() {
    let text =
        resolved_json(&read(r#"{"game": "gä", "device": ["a"], "limits": {"x": 1}, "stages": [{}]}"#, &[]).unwrap());
    let mut random = crate::util::rng::Stream::test(5);
    let bits = b"{}[]\",:\\/ \n0123456789.-+eEtfnulx\xc3\xa4\0";
    for _ in 0..3000 {
        let mut bytes = text.clone().into_bytes();
        for _ in 0..=random.below(4) {
            let at = random.below(bytes.len());
            match random.below(3) {
                0 => bytes[at] = bits[random.below(bits.len())],
                1 => bytes.insert(at, bits[random.below(bits.len())]),
                _ => bytes.truncate(at.max(1)),
            }
        }
        if let Ok(text) = String::from_utf8(bytes)
            && let Err(errors) = read(&text, &[])
        {
            assert!(!errors.problems.is_empty() && !errors.to_string().contains("invalid type"), "{errors}\n{text}");
        }
    }
}

#[test]
fn reading_is_fast() {
    let text = resolved_json(&read(r#"{"game": "g"}"#, &[]).unwrap());
    let start = std::time::Instant::now();
    for _ in 0..20 {
        read(&text, &["search.simulations=4"]).unwrap();
    }
    let each = start.elapsed() / 20;
    println!("reading a config took {each:?}");
    assert!(each < std::time::Duration::from_millis(100), "{each:?}");
}
