//! The config of a run: the sections of each layer, composed.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};

use super::gate::{GateMode, GateParams};
use super::generate::SelfPlayParams;
use super::growth::GrowthParams;
use super::keep::KeepParams;
use super::stop::StopParams;
use super::strict::{ConfigErrors, Findings, Reader, resolved_value};
use crate::data::{ReplayParams, SampleParams};
use crate::game::Game;
use crate::games::{self, GameVisitor};
use crate::net::{Architecture, DeviceName, Engine, EngineChoice, NetSpec, Precision};
use crate::search::SearchParams;
use crate::train::TrainParams;

/// A training run. Only `game` must be given: everything else has defaults that fit the game.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunConfig {
    /// The game, with options behind a colon: `uttt`, `zener:setup=official,max_plies=300`.
    pub game: String,
    /// Every random decision of the run comes from this number.
    #[serde(default)]
    #[schemars(extend("x-unit" = "none"))]
    pub seed: u64,
    /// The library that evaluates the network in self-play and gate.
    #[serde(default)]
    pub engine: Engine,
    /// The number format of these evaluations.
    #[serde(default)]
    pub precision: Precision,
    /// Where the network runs and trains: `auto`, `cpu`, `cuda:N` or `mps`.
    #[serde(default)]
    pub device: DeviceName,
    /// Threads that train on the CPU; null takes all cores. The same weights come out only for the same number.
    #[serde(default)]
    #[schemars(range(min = 1, max = 4096), extend("x-unit" = "threads"))]
    pub training_threads: Option<u32>,
    /// A checkpoint of the same game and network that the run begins with, or the folder of a run (its best); null begins with random weights.
    #[serde(default)]
    pub start: Option<PathBuf>,
    /// The network.
    #[serde(default)]
    pub network: Architecture,
    /// Other networks that take over while the run goes on, in the order of their generations.
    #[serde(default)]
    pub growth: Vec<GrowthParams>,
    /// The tree search, in self-play and gate.
    #[serde(default)]
    pub search: SearchParams,
    /// Self-play.
    #[serde(default)]
    pub selfplay: SelfPlayParams,
    /// How many of the games played are learned from, and how often.
    #[serde(default)]
    pub replay: ReplayParams,
    /// What a position teaches.
    #[serde(default)]
    pub samples: SampleParams,
    /// The training steps.
    #[serde(default)]
    pub training: TrainParams,
    /// Which networks replace the best one.
    #[serde(default)]
    pub gate: GateParams,
    /// What stays on disk.
    #[serde(default)]
    pub keep: KeepParams,
    /// When the run is complete; without any goal it goes on until it is interrupted.
    #[serde(default)]
    pub stop: StopParams,
}

/// Keys that decide what a run is: they cannot change when it is resumed.
pub const IDENTITY: &[&str] = &["game", "seed", "start", "network", "training_threads", "training.optimizer"];

impl RunConfig {
    /// A digest of the keys that make a run what it is ([`IDENTITY`]): files of runs with another one do not belong together.
    pub fn identity(&self) -> String {
        let all = resolved_value(self);
        let values: Vec<&Json> = IDENTITY
            .iter()
            .map(|path| path.split('.').fold(&all, |value, key| value.get(key).unwrap_or(&Json::Null)))
            // Runs that were there before the key have the same digest without it.
            .filter(|value| !value.is_null())
            .collect();
        format!("crc32:{:08x}", crc32fast::hash(json!(values).to_string().as_bytes()))
    }

    /// Reads and checks the config file `path` with the overrides `sets` (`search.draw_score=0.1`).
    ///
    /// # Errors
    /// Everything that is wrong with it, each with key path and line.
    pub fn read(path: &Path, sets: &[String]) -> Result<Self, ConfigErrors> {
        reader().read_file(path, sets)
    }

    /// Reads and checks a config from text; `source` names it in messages.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn parse(source: &str, text: &str, sets: &[String]) -> Result<Self, ConfigErrors> {
        reader().read_text(source, text, sets)
    }

    /// Engine, precision and device together.
    pub fn engine_choice(&self) -> EngineChoice {
        EngineChoice { engine: self.engine, precision: self.precision, device: self.device }
    }

    /// Threads that train.
    pub fn training_threads(&self) -> usize {
        self.training_threads.map_or_else(crate::util::machine::cores, |threads| threads as usize)
    }
}

fn reader() -> Reader<'static, RunConfig> {
    Reader::new().preset(|given| preset(given.get("game")?.as_str()?)).check_given(check_game).check(check)
}

/// Whether there is such a game with such options.
fn check_game(given: &Json, findings: &mut Findings) {
    struct Exists;
    impl GameVisitor for Exists {
        type Output = ();
        fn visit<G: Game>(self, _: G) {}
    }
    if let Some(Err(error)) = given.get("game").and_then(Json::as_str).map(|name| games::dispatch(name, Exists)) {
        findings.add("game", error.to_string());
    }
}

/// Defaults that depend on the game: small boards get small networks and short openings.
pub fn preset(game: &str) -> Option<Json> {
    struct Preset;
    impl GameVisitor for Preset {
        type Output = Json;
        fn visit<G: Game>(self, game: G) -> Json {
            let is_tiny = game.action_count() <= 16 && game.plane_shape().cells() <= 16;
            let (blocks, channels) = if is_tiny { (2, 32) } else { (6, 64) };
            let opening = opening_plies(&game);
            let mut network = serde_json::to_value(Architecture::default()).expect("plain data");
            network["blocks"] = json!(blocks);
            network["channels"] = json!(channels);
            json!({
                "network": network,
                "selfplay": { "temperature_plies": (game.max_plies() / 5).clamp(4, 20), "opening_plies": opening },
                "gate": { "opening_plies": opening },
            })
        }
    }
    games::dispatch(game, Preset).ok()
}

/// Random plies at the beginning of a pair of games that leave most positions open. Where there are few moves, a few
/// random ones often decide a game already.
pub fn opening_plies<G: Game>(game: &G) -> u32 {
    match (game.plane_shape().cells(), game.action_count()) {
        (..=16, ..=16) => 1,
        (_, ..=16) => 2,
        _ => 4,
    }
}

/// What ranges alone cannot say.
fn check(config: &RunConfig, findings: &mut Findings) {
    struct Shapes<'a>(&'a RunConfig, &'a mut Findings);
    impl GameVisitor for Shapes<'_> {
        type Output = ();
        fn visit<G: Game>(self, game: G) {
            let Self(config, findings) = self;
            if let Err(error) = NetSpec::for_game(&game, config.network.clone()).validate() {
                findings.add("network", error.to_string());
            }
            config.check_growth(&game, findings);
        }
    }
    // Whether there is such a game, `check_game` has said before.
    let _ = games::dispatch(&config.game, Shapes(config, findings));
    for problem in config.training.problems() {
        findings.add(format!("training.{}", problem.field), problem.to_string());
    }
    if config.start.as_ref().is_some_and(|start| start.as_os_str().is_empty()) {
        findings.add("start", "names no file; null begins with random weights");
    }
    if let Err(error) = config.gate.sprt().check() {
        findings.add("gate.elo1", error.to_string());
    }
    if config.stop.elo.is_some() && config.gate.mode == GateMode::Off && config.gate.anchor_games == 0 {
        findings.add(
            "stop.elo",
            "is never reached: no games are rated, as gate.mode is off and gate.anchor_games is 0; set one of them",
        );
    }
    if config.gate.games % 2 == 1 {
        findings.add("gate.games", "must be even: every opening is played from both sides");
    }
}
