//! Analyses as a whole; the command line is tested in `tests/analyze.rs`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use super::*;
use crate::eval::{Evaluations, Evaluator, HashEval, Leaves};
use crate::game::{Outcome, Player as Side, legal_list};
use crate::games::connect4::ConnectFour;
use crate::games::tictactoe::TicTacToe;
use crate::games::uttt::Uttt;
use crate::games::zener::Zener;
use crate::play::{EvaluatorSource, Player, SearchSeat, Seat, Teaching, Temperature};
use crate::search::SearchParams;

/// A player that judges positions by hash.
fn hashing<G: Game>(evaluators: impl EvaluatorSource<G> + 'static, search: SearchParams) -> Searcher<G> {
    let seat = SearchSeat {
        time: None,
        evaluators: Arc::new(evaluators),
        search,
        simulations: 200,
        temperature: Temperature::GREEDY,
        noise: None,
        gumbel_noise: false,
        fast: None,
        teaching: Teaching::default(),
    };
    Searcher::new(Player::new("hash", Seat::Search(seat))).unwrap()
}

fn by_hash<G: Game>() -> Searcher<G> {
    hashing(|| HashEval::new(4), SearchParams::default())
}

fn alone<G: Game>(game: &G, searcher: &mut Searcher<G>, place: &Place<G>, bounds: &Bounds) -> Analysis {
    let never = Duration::from_secs(1000);
    analyze(game, searcher, place, bounds, &|| false, never, &mut |_| {}).unwrap().unwrap()
}

fn places<G: Game>(game: &G, count: usize, most_plies: usize) -> Vec<Place<G>> {
    places_from(game, count, 0, most_plies)
}

/// Positions of random games so many plies long.
fn places_from<G: Game>(game: &G, count: usize, least_plies: usize, most_plies: usize) -> Vec<Place<G>> {
    let mut random = Stream::test(3);
    let mut found = Vec::new();
    while found.len() < count {
        let (start, mut moves) = (game.startpos(), Vec::new());
        let mut state = start.clone();
        let plies = least_plies + random.below(most_plies + 1 - least_plies);
        while moves.len() < plies && game.end(&state).is_none() {
            let action = game.random_action(&state, &mut random, &mut Vec::new());
            game.play(&mut state, action);
            moves.push(action);
        }
        if game.end(&state).is_none() {
            found.push(Place { source: String::new(), start, moves, state });
        }
    }
    found
}

/// The same without times.
fn timeless(analysis: Analysis) -> Analysis {
    Analysis { seconds: 0.0, simulations_per_second: 0.0, ..analysis }
}

fn together_as_alone<G: Game>(game: &G, new: &dyn Fn() -> Searcher<G>, most_plies: usize) {
    let places = places(game, 70, most_plies);
    let bounds = Bounds::simulations(150);
    for threads in [1, 3] {
        let mut searcher = new();
        searcher.set_threads(threads);
        let mut found = Vec::new();
        analyze_all(game, &mut searcher, &places, &bounds, &|| false, &mut |analysis, _| {
            found.push(timeless(analysis))
        })
        .unwrap();
        assert_eq!(found.len(), places.len());
        for (place, analysis) in places.iter().zip(found) {
            // Bit for bit: floats are compared as they are.
            assert_eq!(timeless(alone(game, &mut new(), place, &bounds)), analysis);
        }
    }
}

#[test]
fn several_positions_are_analysed_as_each_alone() {
    together_as_alone(&Uttt, &by_hash, 50);
    together_as_alone(&TicTacToe, &by_hash, 7);
    let game = Zener::default();
    together_as_alone(&game, &by_hash, 60);
    together_as_alone(&game, &|| Searcher::new(Player::mcts(150, 1.0)).unwrap(), 60);
}

#[test]
fn positions_share_batches() {
    struct Batches(HashEval, Arc<AtomicU32>);
    impl<G: Game> Evaluator<G> for Batches {
        fn evaluate(
            &mut self,
            game: &G,
            leaves: &Leaves<G>,
            out: &mut Evaluations,
        ) -> Result<(), crate::eval::EvalError> {
            self.1.fetch_max(leaves.len() as u32, Relaxed);
            self.0.evaluate(game, leaves, out)
        }
    }
    let largest = Arc::new(AtomicU32::new(0));
    let seen = largest.clone();
    let mut searcher = hashing(move || Batches(HashEval::new(4), seen.clone()), SearchParams::default());
    searcher.set_threads(1);
    let places = places(&Uttt, 10, 5);
    analyze_all(&Uttt, &mut searcher, &places, &Bounds::simulations(50), &|| false, &mut |_, _| {}).unwrap();
    assert!(largest.load(Relaxed) >= 20, "{largest:?}");
}

/// Plies to the end under best play, for the side to move: positive when it wins, negative when it loses, 0 a draw.
fn distance<G: Game>(game: &G, state: &G::State) -> i32 {
    if let Some(end) = game.end(state) {
        // Longer for nobody: 1000 less the plies so far orders results as the players do.
        return match end.outcome.points(game.to_move(state)) {
            1.0 => 1000,
            0.5 => 0,
            _ => -1000,
        };
    }
    let mover = game.to_move(state);
    let replies = legal_list(game, state).into_iter().map(|action| {
        let mut next = state.clone();
        game.play(&mut next, action);
        let value = distance(game, &next);
        let value = if game.to_move(&next) == mover { value } else { -value };
        value - value.signum()
    });
    replies.max().expect("a game that goes on has a move")
}

/// Compares what analyses prove in late positions with exhaustive search; how many they prove.
fn proofs_hold<G: Game>(game: &G, places: &[Place<G>], simulations: u32) -> [usize; 3] {
    let mut seen = [0; 3];
    let mut exact = 0;
    for place in places {
        let analysis = alone(game, &mut by_hash(), place, &Bounds::simulations(simulations));
        let truth = distance(game, &place.state);
        let Some(proven) = analysis.proven else { continue };
        assert_eq!(analysis.ended, Some(Ended::Proven));
        let plies = |value: i32| 1000 - value.unsigned_abs();
        match proven.result {
            Verdict::Win => {
                assert!(truth > 0 && proven.plies.unwrap() >= plies(truth), "{}: {analysis:?}", analysis.position);
                assert_eq!(analysis.moves[0].line.len(), proven.plies.unwrap() as usize);
                exact += usize::from(proven.plies == Some(plies(truth)));
                // What wins at once is found at once.
                assert!(plies(truth) > 1 || proven.plies == Some(1), "{analysis:?}");
            }
            Verdict::Draw => assert_eq!(truth, 0, "{}", analysis.position),
            Verdict::Loss => {
                assert!(truth < 0 && proven.plies.unwrap() >= plies(truth), "{}: {analysis:?}", analysis.position);
            }
        }
        assert_eq!(analysis.moves[0].proven, Some(proven));
        seen[proven.result as usize] += 1;
    }
    assert!(exact * 2 >= seen[0], "most wins are as fast as can be: {exact} of {}", seen[0]);
    seen
}

#[test]
fn wins_in_so_many_plies_against_exhaustive_search() {
    let seen = proofs_hold(&TicTacToe, &places_from(&TicTacToe, 200, 3, 8), 5000);
    assert!(seen.iter().all(|&count| count > 3), "{seen:?}");
    let seen = proofs_hold(&ConnectFour, &places_from(&ConnectFour, 60, 33, 41), 20_000);
    assert!(seen.iter().sum::<usize>() > 45 && seen.iter().all(|&count| count > 3), "{seen:?}");
}

/// Whether `winner` can end the game with a win within so many plies, whatever the other one does.
fn forces<G: Game>(game: &G, state: &G::State, winner: Side, plies: u32) -> bool {
    if let Some(end) = game.end(state) {
        return end.outcome == Outcome::Win(winner);
    }
    let mut replies = legal_list(game, state).into_iter().map(|action| {
        let mut next = state.clone();
        game.play(&mut next, action);
        forces(game, &next, winner, plies - 1)
    });
    match (plies, game.to_move(state) == winner) {
        (0, _) => false,
        (_, true) => replies.any(|won| won),
        (_, false) => replies.all(|won| won),
    }
}

/// A game with double moves and without an end that could be searched to: a few plies before games were won, everything is tried.
#[test]
fn wins_in_so_many_plies_where_players_move_twice() {
    let game = Zener::default();
    let mut random = Stream::test(5);
    let (mut seen, mut exact) = ([0; 3], 0);
    for round in 0..60 {
        let mut states = vec![game.startpos()];
        while game.end(states.last().unwrap()).is_none() {
            let mut next = states.last().unwrap().clone();
            let action = game.random_action(&next, &mut random, &mut Vec::new());
            game.play(&mut next, action);
            states.push(next);
        }
        let state = states.swap_remove(states.len() - 2 - round % 3);
        let place = Place { source: String::new(), start: state.clone(), moves: Vec::new(), state };
        let analysis = alone(&game, &mut by_hash(), &place, &Bounds::simulations(3000));
        let mover = game.to_move(&place.state);
        let Some((proven, plies)) = analysis.proven.and_then(|proven| Some((proven, proven.plies?))) else { continue };
        let winner = if proven.result == Verdict::Win { mover } else { mover.other() };
        seen[proven.result as usize] += 1;
        assert_eq!(analysis.moves[0].line.len() as u32, plies);
        if plies <= 4 {
            assert!(forces(&game, &place.state, winner, plies), "{analysis:?}");
            exact += usize::from(!forces(&game, &place.state, winner, plies - 1));
        }
    }
    assert!(seen[0] > 20 && exact > 15, "{seen:?}, {exact}");
}

#[test]
fn every_way_to_end_is_told() {
    let place = |text: &str| Place::new(&TicTacToe, Some(text), &[] as &[&str]).unwrap();
    let start = place("3/3/3 x");
    let small = SearchParams { max_nodes: 100, solver: false, ..SearchParams::default() };
    let mut full = hashing(|| HashEval::new(4), small);
    let found = alone(&TicTacToe, &mut full, &start, &Bounds::simulations(10_000));
    assert_eq!((found.ended, found.nodes), (Some(Ended::Nodes), 100));
    assert!(table(&found, "board", Look { top: 3, width: 80, color: false }).contains("ended early: the tree is full"));
    let mut searcher = by_hash();
    assert_eq!(alone(&TicTacToe, &mut searcher, &start, &Bounds::simulations(5)).ended, Some(Ended::Simulations));
    let win = alone(&TicTacToe, &mut searcher, &place("xx1/oo1/3 x"), &Bounds::simulations(10_000));
    assert_eq!((win.ended, win.proven), (Some(Ended::Proven), Some(Certain { result: Verdict::Win, plies: Some(1) })));
    let uttt = Place::new(&Uttt, None, &[] as &[&str]).unwrap();
    let endless = Bounds::simulations(u32::MAX);
    let brief = Bounds { time: Some(Duration::from_millis(30)), ..endless };
    assert_eq!(alone(&Uttt, &mut by_hash(), &uttt, &brief).ended, Some(Ended::Time));
    let deep = Bounds { depth: Some(3), ..endless };
    let found = alone(&Uttt, &mut by_hash(), &uttt, &deep);
    assert!(found.ended == Some(Ended::Depth) && found.mean_depth > 3.0 && found.depth >= 4, "{found:?}");
    let (mut told, pace) = (0, Duration::from_millis(5));
    let count = AtomicU32::new(0);
    let stop = || count.fetch_add(1, Relaxed) > 3000;
    let found = analyze(&Uttt, &mut by_hash(), &uttt, &endless, &stop, pace, &mut |analysis| {
        assert!(analysis.ended.is_none() && analysis.simulations > 0);
        told += 1;
    });
    assert_eq!(found.unwrap().unwrap().ended, Some(Ended::Stopped));
    assert!(told > 0);
}

#[test]
fn an_endless_search_ends_when_the_tree_proves_the_result() {
    // Plain tree search does not know of proofs and would go on for ever.
    let mut searcher = Searcher::new(Player::mcts(10, 1.0)).unwrap();
    let place = Place::new(&TicTacToe, Some("xox/oox/3 x"), &[] as &[&str]).unwrap();
    let endless = Bounds::simulations(u32::MAX);
    let pace = Duration::from_millis(10);
    let found = analyze(&TicTacToe, &mut searcher, &place, &endless, &|| false, pace, &mut |_| {}).unwrap().unwrap();
    assert_eq!(
        (found.ended, found.proven),
        (Some(Ended::Proven), Some(Certain { result: Verdict::Win, plies: Some(1) }))
    );
    assert_eq!((found.moves[0].text.as_str(), found.moves[0].prior), ("c3", None));
}

#[test]
fn players_that_do_not_search_are_refused() {
    let error = Searcher::<TicTacToe>::new(Player::random()).err().unwrap().to_string();
    assert!(error.contains("\"random\" does not search") && error.contains("mcts:SIMULATIONS"), "{error}");
}

#[test]
fn tables_and_lines() {
    let place = Place::new(&TicTacToe, Some("xx1/oo1/3 x"), &[] as &[&str]).unwrap();
    let found = alone(&TicTacToe, &mut by_hash(), &place, &Bounds::simulations(400));
    let look = Look { top: 2, width: 80, color: false };
    let text = table(&found, &TicTacToe.draw(&place.state), look);
    for part in [
        "tictactoe, x to move: xx1/oo1/3 x\n",
        "hash: ",
        " a second, depth ",
        "x wins in 1 ply; value for x: 100.0 % win, 0.0 % draw, 0.0 % loss\n",
        "  #  move  visits  share  prior     win  draw  loss  result     line\n",
        "  1  c1 ",
        "  wins in 1  c1\n",
        "     and 3 more moves (--top 5)\n",
    ] {
        assert!(text.contains(part), "{part:?} is missing in:\n{text}");
    }
    assert!(text.lines().all(|line| line.chars().count() <= 80 && line.trim_end() == line), "{text}");
    let colored = table(&found, "board", Look { color: true, ..look });
    assert!(colored.contains("\u{1b}[32mx wins") || colored.contains("\u{1b}[32mwins in 1"), "{colored:?}");
    let line = progress(&found, look);
    assert!(line.contains("simulations") && line.contains("c1") && line.contains("(wins in 1)"), "{line}");
    // A long line of moves is cut between two of them.
    let uttt = Place::new(&Uttt, None, &[] as &[&str]).unwrap();
    let found = alone(&Uttt, &mut by_hash(), &uttt, &Bounds::simulations(30_000));
    let text = table(&found, "board", Look { top: 100, width: 72, color: false });
    let rows: Vec<&str> = text.lines().skip(6).collect();
    assert!(rows.len() > 81 && rows.iter().all(|row| row.chars().count() <= 72), "{text}");
    assert!(rows[0].ends_with("line") && rows.iter().any(|row| row.ends_with(" ...")), "{text}");
}
