//! The models that ship: whole, with their cards, and as good as is said of them where that is quickly tried.

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use common::run;
use sparring::net::Checkpoint;

fn models() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("models");
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    files.filter(|file| file.extension().is_some_and(|end| end == "safetensors")).collect()
}

#[test]
fn every_game_has_a_model_with_a_card() {
    let mut games = Vec::new();
    for file in models() {
        let card = fs::read_to_string(file.with_extension("md")).unwrap();
        let info = Checkpoint::load(&file).unwrap().info;
        let name = file.file_stem().unwrap().to_str().unwrap();
        assert!(card.starts_with(&format!("# {name}\n")), "{name}");
        assert!(
            card.contains("## How it was trained") && card.contains(&format!("| training steps | {} |", info.step))
        );
        assert!(card.contains("\"learning_rate\""), "the card of {name} has no config");
        assert!(info.licence.is_some(), "{name}");
        assert!(fs::metadata(&file).unwrap().len() < 8_000_000, "{name}");
        // It wins against chance, also with few simulations.
        let player = format!("{}@sims=8", file.display());
        let report =
            run(["pit", &player, "random", "--games", "10", "--opening-plies", "1", "--json"]).expect(0).json();
        let losses = report["encounters"][0]["games"]["losses"].as_u64();
        assert!(losses.is_some_and(|losses| losses <= 3), "{name}: {report}");
        games.push(info.game);
    }
    for game in ["tictactoe", "connect4", "uttt", "zener", "othello"] {
        assert!(games.iter().any(|found| found == game), "{game} has no model");
    }
}

#[test]
fn the_network_of_tictactoe_alone_makes_no_mistake() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("models/tictactoe.safetensors");
    let done = run(["accuracy", &format!("{}@policy@precision=f32", file.display())]).expect(0);
    assert!(done.out.contains("mistakes: 0 wins drawn, 0 wins lost, 0 draws lost"), "{}", done.out);
}
