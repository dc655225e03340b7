use super::*;
use crate::games::connect4::ConnectFour;
use crate::games::tictactoe::TicTacToe;
use crate::games::zener::Zener;
use crate::ugi::SeatThinker;

/// What is shown when `lines` are said to `mcts:200`.
fn told<G: Game>(game: &G, side: Option<Player>, lines: &str) -> String {
    let mut output = Vec::new();
    let thinker = Box::new(SeatThinker::new(crate::play::Player::mcts(200, 1.0)));
    let seat = Seat { side, opponent: "mcts:200".to_owned(), prompt: true };
    play(game, game.startpos(), thinker, seat, lines.as_bytes(), &mut output).unwrap();
    String::from_utf8(output).unwrap()
}

#[test]
fn a_whole_game_is_played_and_the_end_is_told() {
    // The first free move each time: some of these are taken, which is said and does no harm.
    let text = told(&TicTacToe, Some(Player::First), "a1\na2\na3\nb1\nb2\nb3\nc1\nc2\nc3\nmoves\nb2\n");
    assert!(text.contains("o plays ") && text.contains("expects"), "{text}");
    assert!(text.contains("you have lost") || text.contains("a draw") || text.contains("you have won"), "{text}");
    assert!(text.ends_with("the game is over; `new`, `undo`, `swap` or `quit`\nthe game is over> "), "{text}");
}

#[test]
fn every_command_answers() {
    let text = told(
        &TicTacToe,
        Some(Player::Second),
        "help\nboard\nmoves\n#1\nhint\neval\nlevel 50\nlevel x\nundo\nundo\nswap\nnew\nresign\n#1\nundo\nquit\nnever",
    );
    for part in [
        "save FILE",
        "#1 a1",
        "mcts:200 would play",
        "% loss; expected: ",
        "now makes 50 simulations",
        "`level` takes a number",
        "there is no move of yours to take back",
        "you are x now",
        "you have given up",
        "the game is over; `new`",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains("never"), "{text}");
}

#[test]
fn what_is_wrong_is_explained() {
    let text = told(&ConnectFour, Some(Player::First), "8\nhelpp\nboard now\nsave\n\n#9\n4 4\n");
    for part in ["expected", "did you mean `help`?", "`board` stands alone", "`save` takes", "`moves` lists"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let taken = told(&TicTacToe, Some(Player::First), "b2\nb2\n");
    assert!(taken.contains("b2 is not possible now"), "{taken}");
}

#[test]
fn undo_takes_back_the_persons_own_move_where_players_do_not_alternate() {
    let game = Zener::default();
    let first = |state: &_| game.action_text(legal_list(&game, state)[0]);
    let one = first(&game.startpos());
    let text = told(&game, Some(Player::First), &format!("{one}\nundo\nmoves\n"));
    // Back at the start, where the same moves are possible.
    assert!(text.contains("black plays"), "{text}");
    assert!(text.trim_end().ends_with('>') && text.contains(&format!("#1 {one}")), "{text}");
    assert_eq!(text.matches(&game.draw(&game.startpos())).count(), 2, "{text}");
}

#[test]
fn a_game_is_saved_once_and_can_be_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("game");
    let lines = format!("b2\nsave {0}\nsave {0}\nsave {0}/x\n", file.display());
    let text = told(&TicTacToe, Some(Player::First), &lines);
    assert!(text.contains("saved as") && text.contains("is there already"), "{text}");
    let saved = std::fs::read_to_string(file).unwrap();
    let mut output = Vec::new();
    let thinker = Box::new(SeatThinker::new(crate::play::Player::mcts(10, 1.0)));
    crate::ugi::serve(TicTacToe, thinker, format!("{saved}query p1turn\n").as_bytes(), &mut output).unwrap();
    assert_eq!(String::from_utf8(output).unwrap(), "response true\n");
}

#[test]
fn without_a_side_the_person_watches() {
    let text = told(&TicTacToe, None, "");
    assert!(text.contains("x plays") && text.contains("o plays"), "{text}");
    assert!(text.contains("a draw") || text.contains("has won"), "{text}");
}
