//! The rules of each game: perft tables, hand-written edge cases, comparison with plain slow rules, and
//! recorded sequences of moves where a folder of them is given.

use sparring::game::perft::{divide, perft};
use sparring::game::{Action, End, EndReason, Game, Outcome, Player, legal_list};
use sparring::games::connect4::ConnectFour;
use sparring::games::othello::Othello;
use sparring::games::tictactoe::TicTacToe;
use sparring::games::uttt::Uttt;
use sparring::games::{GameVisitor, NAMES, dispatch};
use sparring::util::rng::Stream;

/// Counts by depth from 1 on.
const PERFT: [(&str, &[u64]); 4] = [
    ("uttt", &[81, 720, 6336, 55_080, 473_256, 4_020_960]),
    ("connect4", &[7, 49, 343, 2401, 16_807, 117_649]),
    ("tictactoe", &[9, 72, 504, 3024, 15_120, 54_720]),
    ("othello", &[4, 12, 56, 244, 1396, 8200]),
];

struct Perft(usize);

impl GameVisitor for Perft {
    type Output = u64;

    fn visit<G: Game>(self, game: G) -> u64 {
        let state = game.startpos();
        let total = perft(&game, &state, self.0);
        let parts = divide(&game, &state, self.0);
        assert_eq!(parts.iter().map(|(_, count)| count).sum::<u64>(), total);
        assert_eq!(parts.iter().map(|&(action, _)| action).collect::<Vec<_>>(), legal_list(&game, &state));
        total
    }
}

fn check_perft(wanted: impl Fn(u64) -> bool) {
    for (name, counts) in PERFT {
        for (index, &count) in counts.iter().enumerate().filter(|&(_, &count)| wanted(count)) {
            assert_eq!(dispatch(name, Perft(index + 1)).unwrap(), count, "{name} at depth {}", index + 1);
        }
    }
}

#[test]
fn perft_tables() {
    check_perft(|count| count <= 500_000);
}

#[test]
#[ignore = "slow: counts millions of positions"]
fn perft_tables_deep() {
    check_perft(|count| count > 500_000);
}

#[test]
fn perft_at_the_ends() {
    // No game of tic-tac-toe has ten moves; 127,872 have nine (and 255,168 games exist at all).
    let start = TicTacToe.startpos();
    assert_eq!(perft(&TicTacToe, &start, 0), 1);
    assert_eq!(perft(&TicTacToe, &start, 9), 127_872);
    assert_eq!(perft(&TicTacToe, &start, 10), 0);
    assert_eq!(perft(&TicTacToe, &start, usize::MAX), 0);
    assert!(divide(&TicTacToe, &start, 0).is_empty());
}

/// Plays moves given as text, each of which must be legal.
fn play_all<G: Game>(game: &G, state: &mut G::State, moves: &[&str]) {
    for text in moves {
        let action = game.parse_action(text).unwrap();
        assert!(legal_list(game, state).contains(&action), "{text} in {}", game.state_text(state));
        game.play(state, action);
    }
}

fn position<G: Game>(game: &G, text: &str) -> G::State {
    game.parse_state(text).unwrap_or_else(|error| panic!("{error}"))
}

fn moves<G: Game>(game: &G, state: &G::State) -> Vec<String> {
    legal_list(game, state).into_iter().map(|action| game.action_text(action)).collect()
}

fn end(outcome: Outcome) -> Option<End> {
    Some(End { outcome, reason: EndReason::Rules })
}

#[test]
fn uttt_sends_to_the_board_of_the_cell() {
    let mut state = Uttt.startpos();
    assert_eq!(moves(&Uttt, &state).len(), 81);
    play_all(&Uttt, &mut state, &["e5"]);
    assert_eq!(Uttt.state_text(&state), "9/9/9/9/4x4/9/9/9/9 o 5");
    assert_eq!(moves(&Uttt, &state), ["d4", "d5", "d6", "e4", "e6", "f4", "f5", "f6"]);
    play_all(&Uttt, &mut state, &["f4"]);
    assert_eq!(Uttt.state_text(&state), "9/9/9/5o3/4x4/9/9/9/9 x 3");
}

#[test]
fn uttt_choice_is_free_when_sent_to_a_won_board() {
    // x wins board 1 by its left column; o is then sent to it.
    let mut state = Uttt.startpos();
    play_all(&Uttt, &mut state, &["a1", "b1", "d1", "b2", "d4", "a4", "a2", "a5", "a7", "c7", "g1", "a8", "a6"]);
    assert_eq!(Uttt.ply(&state), 13);
    // That was a6 in board 4, place 7; now somebody must be sent to board 1 after it is won.
    play_all(&Uttt, &mut state, &["c9", "g7", "b3", "d7", "c3", "i9"]);
    let text = Uttt.state_text(&state);
    assert!(text.ends_with(" o 9"), "{text}");
    let won = position(&Uttt, "xoo6/xo7/x8/9/9/9/9/9/9 o -");
    assert!(
        moves(&Uttt, &won).iter().all(|text| !["a", "b", "c"].contains(&&text[..1]) || !"123".contains(&text[1..]))
    );
    assert_eq!(moves(&Uttt, &won).len(), 72);
}

#[test]
fn uttt_choice_is_free_when_sent_to_a_drawn_board() {
    // Board 1 is full without a line; o has just played place 1 of board 5.
    let state = position(&Uttt, "xox6/xoo6/oxx6/3o5/9/9/9/9/9 x -");
    assert_eq!(moves(&Uttt, &state).len(), 71);
    assert_eq!(Uttt.end(&state), None);
}

#[test]
fn uttt_three_won_boards_in_line_end_the_game_at_once() {
    let before = "xxxoo4/oo7/9/xxxoo4/9/9/xx7/9/9 x 7";
    let mut state = position(&Uttt, before);
    play_all(&Uttt, &mut state, &["c7"]);
    assert_eq!(Uttt.end(&state), end(Outcome::Win(Player::First)));
    assert_eq!(moves(&Uttt, &state), Vec::<String>::new());
    assert_eq!(Uttt.state_text(&state), "xxxoo4/oo7/9/xxxoo4/9/9/xxx6/9/9 o -");
}

#[test]
fn uttt_is_drawn_when_no_board_is_undecided_and_nobody_has_a_line() {
    // Small boards by result: x o x / x o o / o x d with the ninth drawn by the last move.
    let x = ["xxx", "oo1", "1o1"];
    let o = ["ooo", "xx1", "1x1"];
    let last = ["xox", "xoo", "oxx"];
    let rows: Vec<String> = [[x, o, x], [x, o, o], [o, x, last]]
        .iter()
        .flat_map(|boards| (0..3).map(|row| boards.map(|board| board[row]).concat()))
        .collect();
    let full = rows.join("/");
    let counts = ['x', 'o'].map(|sign| full.matches(sign).count());
    let side = if counts[0] == counts[1] { 'x' } else { 'o' };
    let merged = merge_runs(&full);
    let state = position(&Uttt, &format!("{merged} {side} -"));
    assert_eq!(Uttt.end(&state), end(Outcome::Draw));
    assert!(moves(&Uttt, &state).is_empty());
}

/// Adds up neighbouring digits of a hand-made board.
fn merge_runs(board: &str) -> String {
    let mut text = String::new();
    let mut run = 0;
    for sign in board.chars().chain(['/']) {
        if let Some(digit) = sign.to_digit(10) {
            run += digit;
            continue;
        }
        if run > 0 {
            text += &run.to_string();
            run = 0;
        }
        text.push(sign);
    }
    text.pop();
    text
}

#[test]
fn tictactoe_ends() {
    let mut state = TicTacToe.startpos();
    play_all(&TicTacToe, &mut state, &["a1", "b1", "b2", "c1"]);
    play_all(&TicTacToe, &mut state.clone(), &["a3"]);
    play_all(&TicTacToe, &mut state, &["c3"]);
    assert_eq!(TicTacToe.end(&state), end(Outcome::Win(Player::First)));
    let full = position(&TicTacToe, "xox/xoo/oxx o");
    assert_eq!(TicTacToe.end(&full), end(Outcome::Draw));
    // A line made with the last free cell wins.
    let line = position(&TicTacToe, "xox/oxo/xox o");
    assert_eq!(TicTacToe.end(&line), end(Outcome::Win(Player::First)));
}

#[test]
fn connect4_wins_in_each_direction_and_full_columns() {
    for sequence in [
        ["1", "1", "2", "2", "3", "3", "4"].as_slice(),
        &["1", "2", "1", "2", "1", "2", "1"],
        &["1", "2", "2", "3", "3", "4", "3", "4", "4", "6", "4"],
        &["7", "6", "6", "5", "5", "4", "5", "4", "4", "2", "4"],
    ] {
        let mut state = ConnectFour.startpos();
        play_all(&ConnectFour, &mut state, sequence);
        assert_eq!(ConnectFour.end(&state), end(Outcome::Win(Player::First)), "{sequence:?}");
        assert!(moves(&ConnectFour, &state).is_empty());
    }
    let mut state = ConnectFour.startpos();
    play_all(&ConnectFour, &mut state, &["3"; 6]);
    assert_eq!(moves(&ConnectFour, &state), ["1", "2", "4", "5", "6", "7"]);
}

#[test]
fn connect4_full_board_is_drawn() {
    // Column by column, so that the rows shift and no four stand in line.
    let mut state = ConnectFour.startpos();
    let order = ["1", "1", "1", "1", "1", "1", "2", "2", "2", "2", "2", "2", "3", "3", "3", "3", "3", "3"];
    play_all(&ConnectFour, &mut state, &order);
    play_all(&ConnectFour, &mut state, &["5", "4", "4", "4", "4", "4", "4", "5", "5", "5", "5", "5"]);
    play_all(&ConnectFour, &mut state, &["6", "6", "6", "6", "6", "6", "7", "7", "7", "7", "7"]);
    assert_eq!(ConnectFour.end(&state), None);
    play_all(&ConnectFour, &mut state, &["7"]);
    assert_eq!(ConnectFour.end(&state), end(Outcome::Draw), "{}", ConnectFour.draw(&state));
    assert!(moves(&ConnectFour, &state).is_empty());
}

#[test]
fn othello_passes_only_when_it_must() {
    let game = Othello::new(4).unwrap();
    // x has nothing to turn, o can take b1: x passes and o is to move on the same board.
    let mut state = position(&game, "4/1xx1/1xx1/1o2 o");
    assert!(!moves(&game, &state).contains(&"pass".to_owned()));
    state = position(&game, "2o1/1ox1/1xx1/1o2 x");
    assert!(!moves(&game, &state).is_empty());
    let mut state = position(&game, "oooo/ooo1/oox1/oox1 o");
    play_all(&game, &mut state, &["d4"]);
    let text = game.state_text(&state);
    if game.end(&state).is_none() && moves(&game, &state) == ["pass"] {
        play_all(&game, &mut state, &["pass"]);
        assert_ne!(game.state_text(&state), text);
    }
}

#[test]
fn othello_is_over_when_neither_can_move_even_with_free_cells() {
    let game = Othello::new(4).unwrap();
    // x has no disc left.
    let state = position(&game, "4/1oo1/1oo1/1o2 x");
    assert_eq!(game.end(&state), end(Outcome::Win(Player::Second)));
    assert!(moves(&game, &state).is_empty());
    assert_eq!(position(&game, "xxoo/xxoo/xxoo/xxoo x").pipe(|s| game.end(&s)), end(Outcome::Draw));
}

/// Calls `f` on a value; reads better at the end of a chain.
trait Pipe: Sized {
    fn pipe<T>(self, f: impl FnOnce(Self) -> T) -> T {
        f(self)
    }
}

impl<T> Pipe for T {}
