//! The rules of each game: perft tables, hand-written edge cases, comparison with plain slow rules, and
//! recorded sequences of moves where a folder of them is given.

use sparring::game::perft::{divide, perft};
use sparring::game::{End, EndReason, Game, Outcome, Player, legal_list};
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
    let mut state = position(&Uttt, "xo7/x6o1/x5o2/9/9/9/9/9/9 x 5");
    play_all(&Uttt, &mut state, &["d4"]);
    assert_eq!(Uttt.state_text(&state), "xo7/x6o1/x5o2/3x5/9/9/9/9/9 o -");
    // All free cells but those of the won board.
    let moves = moves(&Uttt, &state);
    assert_eq!(moves.len(), 69);
    assert!(moves.iter().all(|text| !["c1", "b2", "c2", "b3", "c3"].contains(&text.as_str())));
}

#[test]
fn uttt_choice_is_free_when_sent_to_a_drawn_board() {
    let mut state = position(&Uttt, "xox6/xoo6/oxx6/9/9/9/9/9/9 o 9");
    play_all(&Uttt, &mut state, &["g7"]);
    assert_eq!(Uttt.state_text(&state), "xox6/xoo6/oxx6/9/9/9/6o2/9/9 x -");
    assert_eq!(moves(&Uttt, &state).len(), 71);
    assert_eq!(Uttt.end(&state), None);
}

#[test]
fn uttt_a_move_can_send_to_the_board_it_is_in_and_so_decides() {
    // x wins board 1 by its first cell, which sends o to that very board: a free choice.
    let mut state = position(&Uttt, "3o2o2/x8/x8/9/9/9/9/9/9 x 1");
    play_all(&Uttt, &mut state, &["a1"]);
    assert_eq!(Uttt.state_text(&state), "x2o2o2/x8/x8/9/9/9/9/9/9 o -");
}

#[test]
fn uttt_three_won_boards_in_line_end_the_game_at_once() {
    let mut state = position(&Uttt, "xxxoo2o1/oo7/6o2/xxx6/oo7/9/xx7/9/9 x 7");
    play_all(&Uttt, &mut state, &["c7"]);
    assert_eq!(Uttt.end(&state), end(Outcome::Win(Player::First)));
    assert_eq!(moves(&Uttt, &state), Vec::<String>::new());
    assert_eq!(Uttt.state_text(&state), "xxxoo2o1/oo7/6o2/xxx6/oo7/9/xxx6/9/9 o -");
}

#[test]
fn uttt_is_drawn_when_no_board_is_undecided_and_nobody_has_a_line() {
    // By result the boards are x o x / x o o / o x and one still undecided, which x fills without a line.
    let text = "xxxoooxxx/oo1xx1oo1/1o2x2o1/xxxoooooo/oo1xx1xx1/1o2x2x1/oooxxxxox/xx1oo1xoo/1x2o1ox1 x -";
    let mut state = position(&Uttt, text);
    assert_eq!(Uttt.end(&state), None);
    assert_eq!(moves(&Uttt, &state), ["i9"]);
    play_all(&Uttt, &mut state, &["i9"]);
    assert_eq!(Uttt.end(&state), end(Outcome::Draw));
    assert!(moves(&Uttt, &state).is_empty());
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
    let mut state = game.startpos();
    play_all(&game, &mut state, &["d3", "d2", "b1", "d4"]);
    assert_eq!(game.state_text(&state), "1x2/1xxo/1xxo/3o x");
    assert_eq!(moves(&game, &state), ["pass"]);
    assert_eq!(game.end(&state), None);
    play_all(&game, &mut state, &["pass"]);
    assert_eq!(game.state_text(&state), "1x2/1xxo/1xxo/3o o");
    assert_eq!(moves(&game, &state), ["a1", "a2", "a3", "b4"]);
    assert_eq!(game.ply(&state), 5);
}

#[test]
fn othello_is_over_when_neither_can_move_even_with_free_cells() {
    let game = Othello::new(4).unwrap();
    let mut state = game.startpos();
    play_all(&game, &mut state, &["a2", "a3", "a4", "a1", "c1", "pass", "d4"]);
    assert_eq!(game.state_text(&state), "o1x1/xxx1/xxx1/x2x o");
    assert_eq!(game.end(&state), end(Outcome::Win(Player::First)));
    assert!(moves(&game, &state).is_empty());
    // One player has no disc left; a full board with as many of each.
    assert_eq!(game.end(&position(&game, "4/1oo1/1oo1/1o2 x")), end(Outcome::Win(Player::Second)));
    assert_eq!(game.end(&position(&game, "xxoo/xxoo/xxoo/xxoo x")), end(Outcome::Draw));
}

/// The discs that `sign` turns by a move on `at`, found by walking along each line.
fn turned_plainly(board: &[Vec<char>], sign: char, at: (usize, usize)) -> Vec<(usize, usize)> {
    let cell = |(column, row): (isize, isize)| {
        let get = |at: isize| usize::try_from(at).ok();
        get(column).zip(get(row)).and_then(|(column, row)| board.get(column)?.get(row).copied())
    };
    let mut turned = Vec::new();
    if board[at.0][at.1] != '.' {
        return turned;
    }
    for (dc, dr) in (-1..=1).flat_map(|dc| (-1..=1).map(move |dr| (dc, dr))).filter(|&step| step != (0, 0)) {
        let place = |n: isize| (at.0 as isize + n * dc, at.1 as isize + n * dr);
        let run = (1..).take_while(|&n| cell(place(n)).is_some_and(|found| found != '.' && found != sign)).count();
        if cell(place(run as isize + 1)) == Some(sign) {
            turned.extend((1..=run as isize).map(|n| (place(n).0 as usize, place(n).1 as usize)));
        }
    }
    turned
}

#[test]
fn othello_agrees_with_plain_rules_on_every_size() {
    for size in [4, 6, 8, 10] {
        let game = Othello::new(size).unwrap();
        let cells = || (0..size * size).map(|index| (index / size, index % size));
        let text = |(column, row): (usize, usize)| format!("{}{}", char::from(b'a' + column as u8), row + 1);
        for seed in 0..30 {
            let mut random = Stream::test(seed);
            let mut state = game.startpos();
            let mut board = vec![vec!['.'; size]; size];
            let (low, high) = (size / 2 - 1, size / 2);
            (board[low][low], board[high][high], board[low][high], board[high][low]) = ('o', 'o', 'x', 'x');
            let (mut mover, mut other) = ('x', 'o');
            loop {
                let moves_of =
                    |sign| cells().filter(|&at| !turned_plainly(&board, sign, at).is_empty()).collect::<Vec<_>>();
                let mut expected: Vec<String> = moves_of(mover).into_iter().map(text).collect();
                if expected.is_empty() && !moves_of(other).is_empty() {
                    expected.push("pass".to_owned());
                }
                assert_eq!(moves(&game, &state), expected, "{}", game.state_text(&state));
                if expected.is_empty() {
                    let [x, o] = ['x', 'o'].map(|sign| board.iter().flatten().filter(|&&found| found == sign).count());
                    let outcome = match x.cmp(&o) {
                        std::cmp::Ordering::Greater => Outcome::Win(Player::First),
                        std::cmp::Ordering::Equal => Outcome::Draw,
                        std::cmp::Ordering::Less => Outcome::Win(Player::Second),
                    };
                    assert_eq!(game.end(&state), end(outcome));
                    break;
                }
                let choice = &expected[random.below(expected.len())];
                if let Some(at) = cells().find(|&at| text(at) == *choice) {
                    for (column, row) in turned_plainly(&board, mover, at) {
                        board[column][row] = mover;
                    }
                    board[at.0][at.1] = mover;
                }
                play_all(&game, &mut state, &[choice]);
                (mover, other) = (other, mover);
            }
        }
    }
}

/// One line of a file of vectors.
#[derive(serde::Deserialize)]
struct Vector {
    moves: Vec<String>,
    p1turn: bool,
    /// Sorted as plain text.
    legal: Vec<String>,
    result: String,
}

/// One entry of a table of counts.
#[derive(serde::Deserialize)]
struct Counts {
    moves: Vec<String>,
    counts: Vec<u64>,
}

/// Plays vectors and counts; the answer is how many of each were checked.
struct Replay<'a>(&'a [Vector], &'a [Counts]);

impl GameVisitor for Replay<'_> {
    type Output = [usize; 2];

    fn visit<G: Game>(self, game: G) -> [usize; 2] {
        let reach = |moves: &[String]| {
            let mut state = game.startpos();
            play_all(&game, &mut state, &moves.iter().map(String::as_str).collect::<Vec<_>>());
            state
        };
        for vector in self.0 {
            let state = reach(&vector.moves);
            let mut legal = moves(&game, &state);
            legal.sort();
            assert_eq!(legal, vector.legal, "{}", game.state_text(&state));
            let result = match game.end(&state).map(|end| end.outcome) {
                None => "none",
                Some(Outcome::Win(Player::First)) => "p1win",
                Some(Outcome::Win(Player::Second)) => "p2win",
                Some(Outcome::Draw) => "draw",
            };
            assert_eq!(result, vector.result, "{}", game.state_text(&state));
            if result == "none" {
                assert_eq!(game.to_move(&state) == Player::First, vector.p1turn, "{}", game.state_text(&state));
            }
        }
        for entry in self.1 {
            let state = reach(&entry.moves);
            for (index, &count) in entry.counts.iter().enumerate().filter(|&(_, &count)| count <= 5_000_000) {
                assert_eq!(perft(&game, &state, index + 1), count, "{} depth {}", game.state_text(&state), index + 1);
            }
        }
        [self.0.len(), self.1.len()]
    }
}

/// Replays `GAME.jsonl`, `GAME_*.jsonl` and `perft.json` of the folder that `SPARRING_VECTORS` names.
#[test]
fn vectors_of_the_folder_named_by_the_environment() {
    let Some(folder) = std::env::var_os("SPARRING_VECTORS").map(std::path::PathBuf::from) else {
        println!("skipped: SPARRING_VECTORS names no folder of vectors");
        return;
    };
    let table: serde_json::Value = std::fs::read(folder.join("perft.json"))
        .map_or(serde_json::Value::Null, |text| serde_json::from_slice(&text).unwrap());
    let files: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    let mut total = 0;
    for &name in NAMES {
        let mut vectors = Vec::new();
        for path in &files {
            let stem = path.file_stem().unwrap().to_string_lossy();
            if path.extension().is_some_and(|e| e == "jsonl") && (stem == name || stem.starts_with(&format!("{name}_")))
            {
                let lines = std::fs::read_to_string(path).unwrap();
                vectors.extend(lines.lines().map(|line| serde_json::from_str::<Vector>(line).unwrap()));
            }
        }
        let counts: Vec<Counts> = match table.get(name) {
            Some(entries) => serde_json::from_value(entries.clone()).unwrap(),
            None => Vec::new(),
        };
        let checked = dispatch(name, Replay(&vectors, &counts)).unwrap();
        println!("{name}: {} vectors, {} tables of counts", checked[0], checked[1]);
        total += checked[0] + checked[1];
    }
    assert!(total > 0, "{} holds no vectors of any game", folder.display());
}
