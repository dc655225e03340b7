use serde_json::{Value, json};

use super::*;
use crate::games::tictactoe::TicTacToe;

/// Three players, of whom the first and the third meet in every second pair.
fn header() -> Header {
    let players = ["a", "b", "c"].map(str::to_owned).to_vec();
    Header { players, encounters: vec![[0, 1], [0, 2]], ..Header::new(&TicTacToe, String::new(), 1) }
}

/// Game 3: the second of the second pair.
fn line() -> Value {
    json!({
        "index": 3, "first": "c", "second": "a", "seats": [2, 0],
        "start": "3/3/3 x", "opening": ["a1"], "moves": ["b1", "a2", "b2", "a3"],
        "evaluations": [null, [0.5, 0.25, 0.25], null, [1.0, 0.0, 0.0]],
        "result": "1-0", "reason": "rules", "fault": null, "seconds": [0.5, 0.0], "decisions": [2, 2],
    })
}

fn read(line: &Value) -> Result<Finished, String> {
    let line: Line = serde_json::from_value(line.clone()).map_err(|error| error.to_string())?;
    line.finished(&TicTacToe, &header())
}

#[test]
fn a_line_is_a_game_of_its_match() {
    let game = read(&line()).unwrap();
    assert_eq!((game.index, game.seats, game.record.plies.len()), (3, [2, 0], 5));
    assert_eq!(game.clocks[0], Clock { thinking: Duration::from_millis(500), moves: 2 });
    assert_eq!(serde_json::to_value(Line::new(&TicTacToe, &header(), &game)).unwrap(), line());
}

#[test]
fn what_cannot_have_been_played_is_no_game() {
    let wrongs: [(&str, Value, &str); 16] = [
        ("index", json!(2), "between players [0, 2]"),
        ("index", json!(1u64 << 40), "no game 1099511627776"),
        ("seats", json!([0, 2]), "between players [2, 0]"),
        ("first", json!("b"), "not the players"),
        ("moves", json!(["b1", "a2", "b2"]), "4 evaluations of 3 moves"),
        ("moves", json!(["b1", "a2", "b2", "b1"]), "not legal"),
        ("evaluations", json!([null, [2.0, 0.0, -1.0], null, null]), "chances"),
        ("evaluations", json!([null, [0.1, 0.1, 0.1], null, null]), "chances"),
        ("result", json!("0-1"), "the record says"),
        ("result", json!("2-0"), "none of 1-0"),
        ("reason", json!("adjudicated"), "fault"),
        ("fault", json!("it slept"), "fault"),
        ("reason", json!("proven"), "do not end"),
        ("seconds", json!([1e300, 0.0]), "seconds"),
        ("seconds", json!([-1.0, 0.0]), "seconds"),
        ("decisions", json!([2, 1u64 << 63]), "decisions"),
    ];
    // Who gave the game away has lost it.
    let mut given = line();
    given["reason"] = json!("adjudicated");
    given["fault"] = json!("c: it slept");
    given["moves"] = json!(["b1", "a2", "b2"]);
    given["evaluations"] = json!([null, null, null]);
    given["result"] = json!("0-1");
    read(&given).unwrap();
    given["result"] = json!("1/2-1/2");
    assert!(read(&given).unwrap_err().contains("has not lost"));
    for (key, value, part) in wrongs {
        let mut wrong = line();
        wrong[key] = value;
        let told = read(&wrong).expect_err(part);
        assert!(told.contains(part), "{part}: {told}");
    }
}
