//! What an exported file says about its network, for people and programs that do not know this one.

use serde_json::json;

use crate::game::{Game, action_texts};
use crate::net::{Checkpoint, OnnxForm};

/// Entries by name; lists and numbers are JSON.
pub fn of<G: Game>(game: &G, checkpoint: &Checkpoint, form: OnnxForm) -> Vec<(String, String)> {
    let info = &checkpoint.info;
    let spec = &info.network;
    let actions = action_texts(game);
    let options: serde_json::Map<String, serde_json::Value> =
        game.options().into_iter().map(|(name, value)| (name.to_owned(), value.into())).collect();
    let mut entries = vec![
        ("game", G::NAME.to_owned()),
        ("options", json!(options).to_string()),
        ("encoding_version", info.encoding_version.to_string()),
        ("planes", json!(game.plane_names()).to_string()),
        ("actions", json!(actions).to_string()),
        ("value", json!(["win", "draw", "loss"]).to_string()),
        ("outputs", if form.mask { "probabilities" } else { "logits" }.to_owned()),
        ("precision", if form.half { "f16" } else { "f32" }.to_owned()),
        ("architecture", json!(spec).to_string()),
        ("parameters", spec.parameter_count().to_string()),
        ("training_step", info.step.to_string()),
        ("training_samples", info.samples.to_string()),
        ("generation", info.generation.to_string()),
        ("run", info.run.clone()),
        ("tool_version", info.tool_version.clone()),
    ];
    entries.extend(info.elo.map(|elo| ("elo", elo.to_string())));
    entries.extend(info.licence.clone().map(|licence| ("licence", licence)));
    entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}
