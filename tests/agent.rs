//! The agent that `configs/tictactoe.json` trains, measured against perfect play.
//!
//! `SPARRING_AGENT=FILE cargo test --release --test agent -- --ignored --nocapture` examines the checkpoint FILE instead of
//! training one.

mod common;

use std::path::{Path, PathBuf};

use common::{Process, run, train};

#[test]
#[ignore = "slow: trains for minutes"]
fn the_trained_network_alone_never_loses() {
    let scratch = tempfile::tempdir().unwrap();
    let file = match std::env::var_os("SPARRING_AGENT") {
        Some(file) => {
            println!("not trained: SPARRING_AGENT names {}", file.display());
            PathBuf::from(file)
        }
        None => {
            let config = Path::new(env!("CARGO_MANIFEST_DIR")).join("configs/tictactoe.json");
            let done = Process::start(&mut train(&config, &scratch.path().join("tictactoe"), &[])).finish().expect(0);
            PathBuf::from(done.out.trim_end())
        }
    };
    let player = format!("{}@policy", file.display());
    let report = run(["accuracy", &player, "--json"]).expect(0).json();
    let total = &report["total"];
    println!("against perfect play: {total}");
    assert_eq!(total["positions"], 4520);
    assert_eq!(
        (&total["wins_lost"], &total["draws_lost"]),
        (&0.into(), &0.into()),
        "the network alone loses: {report}"
    );

    let report = run(["pit", &player, "random", "--games", "200", "--opening-plies", "0", "--json"]).expect(0).json();
    println!("against random: {}", report["games"]);
    assert_eq!(report["games"]["losses"], 0, "{report}");
    // Perfect play against random moves scores about 0.99 as first and 0.9 as second player.
    let score = report["score"]["value"].as_f64().unwrap();
    assert!(score > 0.88, "{report}");
}
