use std::collections::HashMap;

use super::cases::CASES;
use super::reference::Plain;
use super::tables::{LETTERS, PERMUTATIONS, SYMBOLS};
use super::*;
use crate::game::grid::quoted;
use crate::game::{EndReason, Outcome, legal_list};

/// Moves that lead from the position after the last one back to it.
const CYCLE: &str = "g3f3 a3b3 a5b5 g1f1 f3g3 b3a3 b5a5 f1g1";

fn game(options: &[(&str, &str)]) -> Zener {
    let options: Vec<_> = options.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
    Zener::from_options(&options).expect("good options")
}

fn result(game: &Zener, state: &State) -> &'static str {
    match game.end(state).map(|end| end.outcome) {
        None => "none",
        Some(Outcome::Win(Player::First)) => "p1win",
        Some(Outcome::Win(Player::Second)) => "p2win",
        Some(Outcome::Draw) => "draw",
    }
}

fn legal_texts(game: &Zener, state: &State) -> Vec<String> {
    legal_list(game, state).into_iter().map(|action| game.action_text(action)).collect()
}

/// Plays moves that must be legal.
fn play_all(game: &Zener, state: &mut State, moves: &str) {
    for text in moves.split_whitespace() {
        assert!(legal_texts(game, state).iter().any(|legal| legal == text), "{text} in {state:?}");
        game.play(state, game.parse_action(text).expect("a move"));
    }
}

fn encoded(game: &Zener, state: &State) -> Vec<f32> {
    let mut out = vec![0.0; game.plane_shape().len()];
    game.encode(state, &mut out);
    out
}

#[test]
fn edge_cases() {
    let game = Zener::default();
    for case in CASES {
        let mut state = game.startpos();
        play_all(&game, &mut state, case.moves);
        assert_eq!(result(&game, &state), case.result, "{}", case.name);
        let legal: Vec<String> = case.legal.split_whitespace().map(str::to_owned).collect();
        assert_eq!(legal_texts(&game, &state), legal, "{}", case.name);
        assert_eq!(game.to_move(&state) == Player::First, case.first_to_move, "{}", case.name);
    }
}

#[test]
fn random_games_agree_with_the_plain_rules() {
    for (max_plies, games) in [(200, 600), (37, 100), (1000, 60)] {
        let game = game(&[("max_plies", &max_plies.to_string())]);
        let mut random = Stream::test(max_plies as u64);
        let mut ends = HashMap::new();
        for _ in 0..games {
            let mut plain = Plain::start(max_plies);
            let mut state = game.startpos();
            loop {
                let legal = legal_list(&game, &state);
                assert_eq!(legal_texts(&game, &state), plain.legal(), "{}", plain.fen());
                assert_eq!(game.state_text(&state), plain.fen());
                assert_eq!(result(&game, &state), plain.result, "{}", plain.fen());
                assert_eq!(game.to_move(&state) == Player::First, plain.white);
                assert_eq!(game.ply(&state), plain.plies);
                if plain.result == "none" {
                    let stood = plain.seen[&plain.position()];
                    assert_eq!(usize::from(state.earlier) + 1, stood, "{}", plain.fen());
                }
                let again = game.parse_state(&plain.fen()).expect("a reachable position");
                assert_eq!(game.state_text(&again), plain.fen());
                if !matches!(state.finish, Finish::Repeated) {
                    assert_eq!(game.end(&again), game.end(&state), "{}", plain.fen());
                    assert_eq!(legal_list(&game, &again), legal);
                }
                assert_eq!(again.board, state.board);
                if plain.result != "none" {
                    break;
                }
                let action = legal[random.below(legal.len())];
                plain.play(&game.action_text(action));
                game.play(&mut state, action);
            }
            *ends.entry(state.finish_name()).or_insert(0) += 1;
        }
        if max_plies == 200 {
            assert!(ends.len() >= 3, "leaving, blocking and the cap all occur: {ends:?}");
        }
    }
}

/// Games of players who mostly take moves back, so that positions recur in many ways.
#[test]
fn repetitive_games_agree_with_the_plain_rules() {
    let game = Zener::default();
    let mut random = Stream::test(77);
    let mut repeated = 0;
    for _ in 0..300 {
        let mut plain = Plain::start(200);
        let mut state = game.startpos();
        // Where each piece came from, so that it can go back.
        let mut played: Vec<String> = Vec::new();
        while plain.result == "none" {
            let legal = plain.legal();
            let back = legal.iter().find(|text| {
                let undo = format!("{}{}", &text[2..], &text[..2]);
                played.iter().rev().take(9).any(|earlier| *earlier == undo)
            });
            let text = match back {
                Some(text) if random.below(8) > 0 => text.clone(),
                _ => legal[random.below(legal.len())].clone(),
            };
            plain.play(&text);
            game.play(&mut state, game.parse_action(&text).expect("a move"));
            played.push(text);
            assert_eq!(result(&game, &state), plain.result, "{played:?}");
            if plain.result == "none" {
                assert_eq!(usize::from(state.earlier) + 1, plain.seen[&plain.position()], "{played:?}");
            }
        }
        repeated += usize::from(state.finish == Finish::Repeated);
    }
    assert!(repeated > 100, "{repeated} repetitions");
}

/// The fast loop is the same game as move by move: it draws the same moves from the same stream.
#[test]
fn playouts_equal_games_move_by_move() {
    let mut repeated = 0;
    for options in [&[][..], &[("setup", "official")], &[("max_plies", "1000")], &[("max_plies", "61")]] {
        let game = game(options);
        let mut starts = Stream::test(3);
        for index in 0..2000 {
            let mut slow = game.start(&mut starts);
            // Half of them begin with most of the moves to a third occurrence.
            if index % 2 == 0 {
                let moves: Vec<&str> = CYCLE.split(' ').chain(CYCLE.split(' ')).collect();
                slow = game.startpos();
                play_all(&game, &mut slow, &moves[..12 + index as usize / 2 % 5].join(" "));
            }
            // Also from the middle of a game, with a history.
            let mut random = Stream::test(index);
            for _ in 0..index % 60 * (index % 2) {
                if game.end(&slow).is_none() {
                    let action = game.random_action(&slow, &mut random, &mut Vec::new());
                    game.play(&mut slow, action);
                }
            }
            let mut fast = slow.clone();
            let mut same = random.clone();
            let end = game.playout(&mut fast, &mut same, &mut Vec::new());
            while game.end(&slow).is_none() {
                let action = game.random_action(&slow, &mut random, &mut Vec::new());
                assert!(legal_list(&game, &slow).contains(&action));
                game.play(&mut slow, action);
            }
            assert_eq!(fast, slow);
            assert_eq!(fast.earlier, slow.earlier);
            assert_eq!(random, same);
            assert_eq!(Some(end), game.end(&slow));
            repeated += u32::from(end.reason == EndReason::Repetition);
        }
    }
    assert!(repeated > 50, "{repeated}");
}

#[test]
fn random_moves_are_uniform() {
    let game = Zener::default();
    let mut state = game.startpos();
    play_all(&game, &mut state, "g3f3 a3b3");
    let legal = legal_list(&game, &state);
    let mut counts: HashMap<Action, u32> = HashMap::new();
    let mut random = Stream::test(9);
    for _ in 0..100_000 {
        *counts.entry(game.random_action(&state, &mut random, &mut Vec::new())).or_default() += 1;
    }
    assert_eq!((legal.len(), counts.len()), (10, 10));
    // Standard deviation 95.
    assert!(legal.iter().all(|action| counts[action].abs_diff(10_000) < 480), "{counts:?}");
}

fn perft(game: &Zener, state: &State, depth: usize) -> u64 {
    if depth == 0 {
        return 1;
    }
    let children = legal_list(game, state).into_iter().map(|action| {
        let mut next = state.clone();
        game.play(&mut next, action);
        perft(game, &next, depth - 1)
    });
    children.sum()
}

#[test]
fn perft_table() {
    let game = Zener::default();
    for (moves, counts) in [("", [13, 35, 298, 1062, 6810, 32820]), ("g5f5 a1a2 a4b4", [3, 28, 161, 1000, 5747, 37275])]
    {
        let mut state = game.startpos();
        play_all(&game, &mut state, moves);
        for (depth, count) in (1..).zip(counts) {
            assert_eq!(perft(&game, &state, depth), count, "{moves:?} at depth {depth}");
            // The history plays no part in so few moves, and symmetries none in a count.
            let fresh = game.parse_state(&game.state_text(&state)).expect("a reachable position");
            assert_eq!(perft(&game, &game.map_state(&fresh, 77), depth), count);
        }
    }
}

/// From a fen, after `moves`: the result, and the fen when it is given.
fn after(fen: &str, moves: &str) -> (Zener, State) {
    let game = Zener::default();
    let mut state = game.parse_state(fen).expect(fen);
    assert_eq!(game.state_text(&state), fen);
    play_all(&game, &mut state, moves);
    (game, state)
}

#[test]
fn a_blocked_compulsory_piece_leaves_one_free_move() {
    // Black moved the circle last; white's lies under a black star.
    let (game, state) = after("1qwx1/4c/5/5/5/5/(Cs)XWQS w c - 1", "");
    assert_eq!(legal_list(&game, &state).len(), 11);
    assert!(legal_texts(&game, &state).iter().all(|text| !text.starts_with("g1")));
    // One single move of any free piece, then it is black's turn with that symbol.
    let (game, state) = after("1qwx1/4c/5/5/5/5/(Cs)XWQS w c - 1", "g3f3");
    assert_eq!(game.state_text(&state), "1qwx1/4c/5/5/5/2W2/(Cs)X1QS b w - 2");
}

#[test]
fn a_free_move_that_uncovers_the_compulsory_piece_owes_nothing() {
    // White's circle lies under white's own cross.
    let (game, state) = after("sqwx1/4c/5/5/5/5/(CX)1WQS w c - 2", "g1g2");
    assert_eq!(game.state_text(&state), "sqwx1/4c/5/5/5/5/CXWQS b x - 3");
}

#[test]
fn a_free_move_is_skipped_when_no_other_piece_is_free() {
    // All white pieces but the wave lie under black ones.
    let (game, state) = after("5/c4/5/5/2W2/5/(Cs)(Xq)1(Qx)(Sw) w w - 30", "e3d3");
    assert_eq!(game.state_text(&state), "5/c4/5/2W2/5/5/(Cs)(Xq)1(Qx)(Sw) b w - 31");
}

#[test]
fn compulsory_moves_onto_a_friend_block_it_for_the_free_move() {
    let (game, mut state) = after("sqwxc/5/5/5/5/5/CXWQS w - - 0", "g3g2 a3b3 a1a2");
    assert_eq!(game.state_text(&state), "1(qs)1xc/2w2/5/5/5/5/C(XW)1QS w s - 3");
    play_all(&game, &mut state, "g5g4");
    // Free move: not the star, and the cross and the square are blocked.
    assert_eq!(legal_texts(&game, &state), ["g1f1", "g1g2", "g2f2", "g2g1", "g2g3"]);
}

#[test]
fn leaving_wins_with_either_kind_of_move() {
    let compulsory = "W4/5/5/sqwxc/5/5/CX1QS w w - 20";
    let (game, state) = after(compulsory, "a1off");
    assert_eq!(result(&game, &state), "p1win");
    assert_eq!(game.state_text(&state), "5/5/5/sqwxc/5/5/CX1QS w w - 21");
    assert!(legal_list(&game, &state).is_empty());
    let free = "W4/5/5/sqwxc/5/5/CX1QS w - x 21";
    let (game, state) = after(free, "a1off");
    assert_eq!((result(&game, &state), state.board.square(0, 0)), ("p1win", super::board::OFF));
    // Standing on the row wins nothing, and black's own row is no exit for black.
    let (game, state) = after("5/W4/5/sqwxc/5/5/CX1QS w w - 20", "b1a1");
    assert_eq!(result(&game, &state), "none");
    let (game, state) = after("w4/5/5/sq1xc/W4/5/CX1QS b w - 21", "");
    assert_eq!(legal_texts(&game, &state), ["a1a2", "a1b1"]);
    let (game, state) = after("5/5/5/sq1xc/W4/5/CX1Q(Sw) b w - 21", "g5off");
    assert_eq!(result(&game, &state), "p2win");
    assert_eq!(game.state_text(&state), "5/5/5/sq1xc/W4/5/CX1QS b w - 22");
}

#[test]
fn blocking_the_last_free_piece_wins() {
    // The black star is the only free black piece; white's star steps onto it.
    let blocked = "5/5/5/(wqxcX)4/4s/4S/C2QW w s - 60";
    let (game, state) = after(blocked, "f5e5");
    assert_eq!(result(&game, &state), "p1win");
    assert_eq!(game.end(&state).map(|end| end.reason), Some(EndReason::Rules));
    let text = game.state_text(&state);
    assert_eq!(text, "5/5/5/(wqxcX)4/4(sS)/5/C2QW w s - 61");
    assert_eq!(game.parse_state(&text).map(|state| result(&game, &state)), Ok("p1win"));
    // The same with the loser to move is understood as well.
    let loser = "5/5/5/(wqxcX)4/4(sS)/5/C2QW b s - 61";
    let (game, state) = after(loser, "");
    assert_eq!(result(&game, &state), "p1win");
}

#[test]
fn a_win_goes_before_the_cap_and_repetition_before_the_cap() {
    let game = game(&[("max_plies", "21")]);
    let mut state = game.parse_state("W4/5/5/sqwxc/5/5/CX1QS w w - 20").expect("a position");
    let mut other = state.clone();
    play_all(&game, &mut state, "a1off");
    assert_eq!(game.end(&state), Some(End::win(Player::First)));
    play_all(&game, &mut other, "a1a2");
    assert_eq!(game.end(&other), Some(End::draw(EndReason::PlyCap)));
    assert_eq!(game.parse_state(&game.state_text(&other)).map(|state| game.end(&state)), Ok(game.end(&other)));

    let moves = format!("{CYCLE} {CYCLE} g3f3");
    let game = super::tests::game(&[("max_plies", "17")]);
    let mut state = game.startpos();
    play_all(&game, &mut state, &moves);
    assert_eq!(game.end(&state), Some(End::draw(EndReason::Repetition)));
    assert!(legal_list(&game, &state).is_empty());
    // A fen starts a new history.
    let fresh = game.parse_state("sqwxc/5/5/5/5/2W2/CX1QS b w - 1").expect("a position");
    assert_eq!((fresh.earlier, game.end(&fresh)), (0, None));
}

#[test]
fn moves_as_text() {
    let game = Zener::default();
    for index in 0..game.action_count() {
        let action = Action(index as u16);
        let text = game.action_text(action);
        if text.ends_with('-') {
            assert!(game.parse_action(&text).is_err());
        } else {
            assert_eq!(game.parse_action(&text), Ok(action), "{text}");
        }
    }
    for bad in [
        "", "g", "g3", "g3f", "g3f3 ", " g3f3", "G3F3", "g3e3", "g3g3", "h1g1", "a6a5", "a0a1", "c3off", "a3Off",
        "a3offf", "g3f4", "gé", "é3f3", "g3é3", "0000", "pass",
    ] {
        let error = game.parse_action(bad).expect_err(bad).to_string();
        assert!(error.contains(&quoted(bad)), "{error}");
    }
    assert!(game.parse_action("c3off").expect_err("no edge").to_string().contains("row a or row g"));
}

#[test]
fn bad_positions_are_named() {
    let game = Zener::default();
    for (fen, part) in [
        ("", "expected 5 fields"),
        ("sqwxc/5/5/5/5/5/CXWQS w - -", "expected 5 fields"),
        ("sqwxc/5/5/5/5/5/CXWQS  w - - 0", "expected 5 fields"),
        ("sqwxc/5/5/5/5/5/CXWQS w - - 0 ", "expected 5 fields"),
        ("sqwxc/5/5/5/5/CXWQS w - - 0", "6 of them"),
        ("sqwxc/5/5/5/5/5/5/CXWQS w - - 0", "8 of them"),
        ("sqwxc/6/5/5/5/5/CXWQS w - - 0", "row B"),
        ("sqwxc/23/5/5/5/5/CXWQS w - - 0", "write them as one"),
        ("sqwxc/4/5/5/5/5/CXWQS w - - 0", "4 cells"),
        ("sqwxc1/5/5/5/5/5/CXWQS w - - 0", "more than 5 cells"),
        ("sqwxc/5/5/5/5/5/CXWQSs w - - 0", "twice"),
        ("sqwx1/5/5/5/5/5/CXWQSc w - - 0", "more than 5 cells"),
        ("sqwxc/5/5/5/5/5/CXWQC w - - 0", "C stands on the board twice"),
        ("sqwxk/5/5/5/5/5/CXWQS w - - 0", "'k'"),
        ("sqwx(c)/5/5/5/5/5/CXWQS w - - 0", "at least two"),
        ("sqwx()/5/5/5/5/5/CXWQS w - - 0", "at least two"),
        ("sqwx(cC/5/5/5/5/5/1XWQS w - - 0", "not closed"),
        ("sqwx(c1)/5/5/5/5/5/CXWQS w - - 0", "'1'"),
        ("sqwxc)/5/5/5/5/5/CXWQS w - - 0", "')'"),
        ("sqwxc/5/5/5/5/5/CXWQS W - - 0", "side to move"),
        ("sqwxc/5/5/5/5/5/CXWQS b - - 0", "black"),
        ("sqwxc/5/5/5/5/5/CXWQS w W - 2", "symbol the opponent moved last"),
        ("sqwxc/5/5/5/5/5/CXWQS w ww - 2", "symbol the opponent moved last"),
        ("sqwxc/5/5/5/5/5/CXWQS w - k 2", "symbol just moved"),
        ("sqwxc/5/5/5/5/5/CXWQS w w x 2", "symbol just moved"),
        ("sqwxc/5/5/5/5/5/CXWQS w - - x", "moves made"),
        ("sqwxc/5/5/5/5/5/CXWQS w - - 00", "moves made"),
        ("sqwxc/5/5/5/5/5/CXWQS w - - -1", "moves made"),
        ("sqwxc/5/5/5/5/5/CXWQS w - - +0", "moves made"),
        ("sqwxc/5/5/5/5/5/CXWQS w - - 3", "moves made"),
        ("sqwxc/5/5/5/5/5/CXWQS w w - 0", "moves made"),
        ("sqwxc/5/5/5/5/5/CXWQS w w - 201", "0 to 200"),
        ("sqwxc/5/5/5/5/5/CXWQS w w - 99999999999999999999", "0 to 200"),
        ("5/5/5/5/5/5/5 w - - 0", "10 pieces are missing"),
        ("sqwxc/5/5/5/5/5/CXW2 w w - 10", "white square and the white star"),
        ("sqwxc/5/5/5/5/5/CXWQ1 w - - 0", "moves made"),
        ("sqwxc/5/5/5/5/5/CXWQ1 b w - 31", "white star is missing"),
        ("sqwxc/5/5/5/5/5/CXWQ1 w w - 30", "could not have moved last"),
        ("sqwxc/5/5/5/5/5/CXWQ1 w - s 30", "could not have moved last"),
        ("(sqC)wxc1/5/5/5/5/5/1XWQS w s - 30", "not on top"),
        ("sqwxc/5/5/5/5/5/(CX)1WQS w - c 30", "not on top"),
        ("5/c4/5/5/2W2/5/(Cs)(Xq)1(Qx)(Sw) w - w 30", "no free move"),
        ("5/5/5/(wqxcX)4/4(sS)/5/C2QW b - s 61", "middle of a turn"),
    ] {
        let error = game.parse_state(fen).expect_err(fen).to_string();
        assert!(error.contains(part), "{fen}: {error}");
    }
}

#[test]
fn garbage_is_an_error_and_what_is_accepted_is_written_back() {
    let game = Zener::default();
    let mut random = Stream::test(11);
    let alphabet: Vec<char> = "wxcqsWXCQS12345()/ -b0679é".chars().collect();
    let mut accepted = 0;
    for round in 0..20_000 {
        let mut state = game.startpos();
        for _ in 0..round % 40 {
            if game.end(&state).is_none() {
                let action = game.random_action(&state, &mut random, &mut Vec::new());
                game.play(&mut state, action);
            }
        }
        let mut text: Vec<char> = game.state_text(&state).chars().collect();
        for _ in 0..=random.below(3) {
            let at = random.below(text.len());
            let other = random.below(text.len());
            let letter = alphabet[random.below(alphabet.len())];
            match random.below(4) {
                0 => text[at] = letter,
                1 => text.insert(at, letter),
                2 => drop(text.remove(at)),
                _ => text.swap(at, other),
            }
            if text.is_empty() {
                text.push('w');
            }
        }
        let text: String = text.into_iter().collect();
        if let Ok(state) = game.parse_state(&text) {
            accepted += 1;
            assert_eq!(game.state_text(&state), text);
            assert_eq!(legal_list(&game, &state).is_empty(), game.end(&state).is_some(), "{text}");
            // Whatever is accepted can be played on, and every successor is accepted in turn.
            for action in legal_list(&game, &state) {
                let mut next = state.clone();
                game.play(&mut next, action);
                let text = game.state_text(&next);
                let again = game.parse_state(&text).unwrap_or_else(|error| panic!("{text}: {error}"));
                assert_eq!(game.end(&again), game.end(&next));
            }
        }
        let _ = game.parse_action(&text);
    }
    assert!(accepted > 300, "{accepted}");
}

#[test]
fn symmetries_commute_with_play() {
    let game = Zener::default();
    let mut random = Stream::test(4);
    for round in 0..60 {
        let symmetry = random.below(game.symmetry_count());
        let mut state = game.startpos();
        let mut mapped = game.map_state(&state, symmetry);
        while game.end(&state).is_none() {
            let mut legal: Vec<Action> =
                legal_list(&game, &state).into_iter().map(|action| game.map_action(action, symmetry)).collect();
            legal.sort_by_key(|&action| game.action_text(action));
            assert_eq!(legal, legal_list(&game, &mapped), "round {round}");
            let action = game.random_action(&state, &mut random, &mut Vec::new());
            game.play(&mut state, action);
            game.play(&mut mapped, game.map_action(action, symmetry));
            assert_eq!(game.map_state(&state, symmetry), mapped);
            assert_eq!(game.key(&game.map_state(&state, symmetry)), game.key(&mapped));
            assert_eq!(game.end(&state), game.end(&mapped));
            assert_eq!(mapped.board, game.map_state(&state, symmetry).board);
        }
    }
}

/// The mapping against one written with texts only.
#[test]
fn symmetries_do_what_they_say() {
    let game = Zener::default();
    let mut random = Stream::test(8);
    let mut state = game.startpos();
    for _ in 0..25 {
        let action = game.random_action(&state, &mut random, &mut Vec::new());
        game.play(&mut state, action);
    }
    for symmetry in 0..game.symmetry_count() {
        let permutation = PERMUTATIONS[symmetry / 2];
        let rename = |letter: char| match LETTERS.iter().position(|&l| l == letter.to_ascii_lowercase()) {
            Some(symbol) => {
                let new = LETTERS[usize::from(permutation[symbol])];
                if letter.is_uppercase() { new.to_ascii_uppercase() } else { new }
            }
            None => letter,
        };
        let text = game.state_text(&state);
        let fields: Vec<&str> = text.split(' ').collect();
        let rows: Vec<String> = fields[0]
            .split('/')
            .map(|row| {
                let mut cells: Vec<String> = Vec::new();
                let mut open = false;
                for letter in row.chars() {
                    if open {
                        cells.last_mut().expect("an open stack").push(rename(letter));
                    } else {
                        cells.push(rename(letter).to_string());
                    }
                    open = letter == '(' || open && letter != ')';
                }
                if symmetry % 2 == 1 {
                    cells.reverse();
                }
                cells.concat()
            })
            .collect();
        let symbols: String = [fields[2], fields[3]].join(" ").chars().map(rename).collect();
        let expected = format!("{} {} {symbols} {}", rows.join("/"), fields[1], fields[4]);
        assert_eq!(game.state_text(&game.map_state(&state, symmetry)), expected, "symmetry {symmetry}");
    }
    assert_eq!(game.map_state(&state, 0), state);
    let moved = |text: &str, symmetry| game.action_text(game.map_action(game.parse_action(text).unwrap(), symmetry));
    assert_eq!(moved("g1g2", 1), "g5g4");
    assert_eq!(moved("g1f1", 239), "g5f5");
    assert_eq!(moved("a2off", 3), "a4off");
    assert_eq!(moved("a2off", 2), "a2off");
}

#[test]
fn keys_and_encodings_tell_apart_the_same_positions() {
    let game = Zener::default();
    let mut by_key: HashMap<Key, (Vec<u32>, Vec<Action>, Player)> = HashMap::new();
    let mut by_encoding: HashMap<Vec<u32>, Key> = HashMap::new();
    let mut random = Stream::test(12);
    let mut met_again = 0;
    for _ in 0..500 {
        let mut state = game.startpos();
        loop {
            let bits: Vec<u32> = encoded(&game, &state).into_iter().map(f32::to_bits).collect();
            let value = (bits.clone(), legal_list(&game, &state), game.to_move(&state));
            let key = game.key(&state);
            match by_key.get(&key) {
                Some(earlier) => {
                    assert_eq!(*earlier, value);
                    met_again += 1;
                }
                None => drop(by_key.insert(key, value)),
            }
            assert_eq!(*by_encoding.entry(bits).or_insert(key), key);
            if game.end(&state).is_some() {
                break;
            }
            let action = game.random_action(&state, &mut random, &mut Vec::new());
            game.play(&mut state, action);
        }
    }
    assert!(met_again > 500, "{met_again}");
    assert_eq!(by_key.len(), by_encoding.len());
}

#[test]
fn the_encoding_of_a_known_position() {
    let game = Zener::default();
    let mut state = game.startpos();
    play_all(&game, &mut state, "g3g2 a3b3 a1a2");
    // 1(qs)1xc/2w2/5/5/5/5/C(XW)1QS w s - 3
    let planes = encoded(&game, &state);
    let at = |plane: usize, square: &str| {
        let bytes = square.as_bytes();
        planes[plane * CELLS + usize::from(bytes[0] - b'a') * COLUMNS + usize::from(bytes[1] - b'1')]
    };
    assert_eq!((at(0, "g2"), at(1, "g2"), at(2, "g1"), at(2, "g2")), (1.0, 0.5, 1.0, 0.0));
    assert_eq!((at(5 + 4, "a2"), at(5 + 3, "a2"), at(5, "b3")), (1.0, 0.5, 1.0));
    assert_eq!((at(10, "g2"), at(10, "a2"), at(11, "a2"), at(11, "g2")), (1.0, 0.0, 1.0, 0.0));
    // Only the star may move; it is the compulsory one.
    assert_eq!(planes[12 * CELLS..13 * CELLS].iter().sum::<f32>(), 1.0);
    assert_eq!((at(12, "g5"), at(13, "a2"), at(13, "a1")), (1.0, 0.2, 0.0));
    for plane in 14..24 {
        assert_eq!(at(plane, "c3"), if plane == 14 + 4 { 1.0 } else { 0.0 });
    }
    assert_eq!((at(24, "a1"), at(25, "a1"), at(25, "g1"), at(26, "a1"), at(27, "a1")), (1.0, 0.0, 1.0, 0.0, 1.0));
    assert_eq!(game.plane_names().len(), game.plane_shape().channels);
    // Black sees its own pieces first, the exit on row G, and plies only near the cap.
    let state = game.parse_state("sqwxc/5/5/5/5/2W2/CX1QS b w - 190").expect("a position");
    let planes = encoded(&game, &state);
    assert_eq!((planes[4 * CELLS], planes[24 * CELLS], planes[25 * CELLS], planes[27 * CELLS]), (1.0, 0.0, 1.0, 0.25));
    // A symmetry permutes the planes of symbols.
    let mapped = game.map_state(&state, 2 * 119);
    let other = encoded(&game, &mapped);
    for (base, symbol) in [0, 5, 14, 19].into_iter().flat_map(|base| (0..SYMBOLS).map(move |s| (base, s))) {
        let (old, new) = (base + symbol, base + 4 - symbol);
        assert_eq!(planes[old * CELLS..(old + 1) * CELLS], other[new * CELLS..(new + 1) * CELLS]);
    }
}

#[test]
fn repetition_is_seen_in_the_encoding() {
    let game = Zener::default();
    let mut state = game.startpos();
    play_all(&game, &mut state, "g3f3");
    let first = (game.key(&state), encoded(&game, &state));
    play_all(&game, &mut state, "a3b3 a5b5 g1f1 f3g3 b3a3 b5a5 f1g1 g3f3");
    assert_eq!(state.earlier, 1);
    assert_ne!(game.key(&state), first.0);
    let second = encoded(&game, &state);
    let differing: Vec<usize> = (0..second.len()).filter(|&index| second[index] != first.1[index]).collect();
    assert_eq!(differing, (26 * CELLS..27 * CELLS).collect::<Vec<_>>());
}

#[test]
fn the_official_setup_is_uniform_and_moves_matched_pieces_ahead() {
    let game = game(&[("setup", "official")]);
    let mut random = Stream::test(13);
    let mut places = [[[0u32; COLUMNS]; SYMBOLS]; 2];
    let mut matched = [0u32; COLUMNS + 1];
    for _ in 0..50_000 {
        let state = game.start(&mut random);
        let mut matches = 0;
        for symbol in 0..SYMBOLS {
            let [white, black] = [0, 1].map(|side| usize::from(state.board.square(side, symbol)));
            assert_eq!(white / COLUMNS, 6);
            let same = white % COLUMNS == black % COLUMNS;
            assert_eq!(black / COLUMNS, usize::from(same));
            matches += usize::from(same);
            for (side, square) in places.iter_mut().zip([white, black]) {
                side[symbol][square % COLUMNS] += 1;
            }
        }
        matched[matches] += 1;
    }
    // Standard deviation 89.
    assert!(places.iter().flatten().flatten().all(|count| count.abs_diff(10_000) < 450), "{places:?}");
    // Fixed points of a random permutation: 44, 45, 20, 10, 0, 1 of 120.
    for (matches, ways) in [44, 45, 20, 10, 0, 1].into_iter().enumerate() {
        let expected = 50_000.0 * f64::from(ways) / 120.0;
        let deviation = (f64::from(matched[matches]) - expected).abs();
        assert!(deviation <= 5.0 * expected.sqrt(), "{matched:?}");
    }
    // A fixed stream gives a fixed start; the notation's start is the standard one.
    assert_eq!(game.start(&mut Stream::test(1)), game.start(&mut Stream::test(1)));
    assert_eq!(game.state_text(&game.startpos()), "sqwxc/5/5/5/5/5/CXWQS w - - 0");
    let text = game.state_text(&game.start(&mut Stream::test(1)));
    assert!(game.parse_state(&text).is_ok());
}

#[test]
fn options_are_checked() {
    let bad = |options: &[(&str, &str)]| {
        let options: Vec<_> = options.iter().map(|(n, v)| (n.to_string(), v.to_string())).collect();
        Zener::from_options(&options).expect_err("bad options").to_string()
    };
    assert!(bad(&[("size", "4")]).contains("no option \"size\""));
    assert!(bad(&[("setup", "Standard")]).contains("standard or official"));
    for value in ["0", "10001", "", "+5", "5 ", "x", "99999999999"] {
        assert!(bad(&[("max_plies", value)]).contains("1 to 10000"), "{value}");
    }
    assert!(bad(&[("max_plies", "5"), ("max_plies", "6")]).contains("twice"));
    let game = game(&[("max_plies", "300"), ("setup", "official")]);
    assert_eq!(crate::game::full_name(&game), "zener:setup=official,max_plies=300");
    assert_eq!(crate::game::full_name(&Zener::default()), "zener");
}

#[test]
fn a_drawing_shows_stacks_and_the_compulsory_piece() {
    let game = Zener::default();
    let mut state = game.startpos();
    play_all(&game, &mut state, "g3g2 a3b3 a1a2");
    let drawn = game.draw(&state);
    let lines: Vec<&str> = drawn.lines().collect();
    assert_eq!(lines[0].split_whitespace().collect::<Vec<_>>(), ["1", "2", "3", "4", "5"]);
    assert!(lines[1].starts_with("A  .   qs "), "{drawn}");
    assert!(lines[7].starts_with("G  C   XW  .   Q   S* "), "{drawn}");
    assert!(drawn.contains("; 3 of at most 200 moves made\nwhite to move: the compulsory star (*)\n"), "{drawn}");
    assert_eq!(game.turn_text(&state), "white, compulsory star");
    let marked = game.paint(&state, Some(game.parse_action("a1a2").expect("a move"))).to_string();
    assert!(marked.lines().nth(1).is_some_and(|line| line.starts_with("A  .  [qs] ")), "{marked}");
    play_all(&game, &mut state, "g5g4");
    let drawn = game.draw(&state);
    assert!(drawn.contains("QS'") && drawn.contains("not of the star just moved"), "{drawn}");
    assert_eq!(game.turn_text(&state), "white, free move");
    let blocked = game.parse_state("1qwx1/4c/5/5/5/5/(Cs)XWQS w c - 1").expect("a position");
    assert!(game.draw(&blocked).contains("circle is blocked"));
    assert_eq!(game.turn_text(&blocked), "white, any piece");
}

#[test]
fn the_highest_stacks_fit_a_terminal() {
    let game = Zener::default();
    for text in [
        "5/5/5/2(wWxXcCqQsS)2/5/5/5 w q - 9",
        "5/5/(wW)(xX)(cC)(qQ)(sS)/5/5/5/5 w q - 9",
        "5/5/(WwX)1(xCQS)1(cqs)/5/5/5/5 b s - 199",
    ] {
        let state = game.parse_state(text).expect(text);
        for last in [None, Some("c3d3"), Some("c1d1"), Some("e3d3")] {
            let last = last.map(|text| game.parse_action(text).expect("a move"));
            let drawn = game.paint(&state, last).to_string();
            assert!(drawn.lines().all(|line| line.len() <= 80) && drawn.lines().count() <= 14, "{drawn}");
        }
    }
}

#[test]
fn copying_into_a_state_keeps_its_allocation() {
    let game = Zener::default();
    let mut long = game.startpos();
    game.playout(&mut long, &mut Stream::test(1), &mut Vec::new());
    let mut copy = long.clone();
    let short = game.startpos();
    let before = copy.history_capacity();
    copy.clone_from(&short);
    assert_eq!(copy, short);
    assert_eq!(copy.history_capacity(), before);
    copy.clone_from(&long);
    assert_eq!(copy, long);
    assert_eq!(copy.history_capacity(), before);
}
