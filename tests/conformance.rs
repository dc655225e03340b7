//! Every registered game keeps the laws, whichever it is, with the options its own help names. And the laws
//! find faults: a game that breaks one of them is caught.

use sparring::game::laws::check_all;
use sparring::game::{
    Action, Drawing, End, Game, Outcome, PlaneShape, Player, PolicyShape, Refusal, Solved, Solver, TextError,
    full_name, legal_list,
};
use sparring::games::tictactoe::{State, TicTacToe};
use sparring::games::{GameVisitor, NAMES, dispatch};
use sparring::util::rng::Stream;

/// Every spec of a game: the defaults, and each value that the text of allowed values mentions and that the
/// game takes, one option at a time.
struct Specs;

impl GameVisitor for Specs {
    type Output = Vec<String>;

    fn visit<G: Game>(self, _: G) -> Vec<String> {
        let mut specs = vec![G::NAME.to_owned()];
        for info in G::option_infos() {
            for word in info.allowed.split([' ', ',', ';']).filter(|word| !word.is_empty() && *word != info.default) {
                if G::from_options(&[(info.name.to_owned(), word.to_owned())]).is_ok() {
                    specs.push(format!("{}:{}={word}", G::NAME, info.name));
                }
            }
        }
        specs
    }
}

struct Check {
    seed: u64,
    games: usize,
}

impl GameVisitor for Check {
    type Output = ();

    fn visit<G: Game>(self, game: G) {
        if let Err(violation) = check_all(&game, self.seed, self.games) {
            panic!("{violation}");
        }
    }
}

fn all_specs() -> Vec<String> {
    NAMES.iter().flat_map(|name| dispatch(name, Specs).expect("registered")).collect()
}

#[test]
fn every_registered_game_keeps_the_laws() {
    for spec in all_specs() {
        println!("{spec}");
        dispatch(&spec, Check { seed: 1, games: 40 }).expect("the game took these options");
    }
}

#[test]
#[ignore = "slow: many games and seeds"]
fn every_registered_game_keeps_the_laws_for_long() {
    for spec in all_specs() {
        for seed in 2..6 {
            println!("{spec}, seed {seed}");
            dispatch(&spec, Check { seed, games: 500 }).expect("the game took these options");
        }
    }
}

#[test]
fn option_values_are_found_in_the_help() {
    let specs = all_specs();
    for spec in ["uttt", "othello", "othello:size=4", "othello:size=6", "othello:size=10"] {
        assert!(specs.iter().any(|known| known == spec), "{spec} is missing in {specs:?}");
    }
    for spec in &specs {
        assert_eq!(dispatch(spec, FullName).as_ref(), Ok(spec));
    }
}

struct FullName;

impl GameVisitor for FullName {
    type Output = String;

    fn visit<G: Game>(self, game: G) -> String {
        full_name(&game)
    }
}

/// What is wrong with a [`Faulty`] game.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    None,
    MovesReversed,
    MoveTwice,
    ListCleared,
    MovesAfterTheEnd,
    TooLong,
    PlyStandsStill,
    BoardMappedMovesNot,
    MovesMappedBoardNot,
    StoneLostInMapping,
    NoGroup,
    NotOneToOne,
    OpponentNotEncoded,
    EncodingTransposed,
    EncodingHasABlindCorner,
    KeyForgetsOpponent,
    FirstMoveFavoured,
    FirstMoveFavouredInPlayouts,
    PlayoutDoesNotMove,
    SpacesTaken,
    PanicsOnShortText,
    PanicsOnShortMove,
    SideForgotten,
    NamelessPlane,
    SolverMissesAMove,
    SolverHopes,
    SolverGivesAway,
    SolverRefuses,
    DrawingWithCodes,
}

/// Tic-tac-toe with one fault.
#[derive(Clone, Copy, Debug)]
struct Faulty(Fault);

impl Faulty {
    fn is(&self, fault: Fault) -> bool {
        self.0 == fault
    }
}

impl Game for Faulty {
    type State = State;
    type Key = u32;

    const NAME: &'static str = "faulty";
    const ENCODING_VERSION: u32 = 1;
    const RULES_VERSION: u32 = 1;

    fn from_options(options: &[(String, String)]) -> Result<Self, TextError> {
        TicTacToe::from_options(options).map(|_| Self(Fault::None))
    }

    fn action_count(&self) -> usize {
        9
    }

    fn policy_shape(&self) -> PolicyShape {
        TicTacToe.policy_shape()
    }

    fn plane_shape(&self) -> PlaneShape {
        TicTacToe.plane_shape()
    }

    fn plane_names(&self) -> Vec<String> {
        let mut names = TicTacToe.plane_names();
        names.truncate(if self.is(Fault::NamelessPlane) { 1 } else { 2 });
        names
    }

    fn max_plies(&self) -> usize {
        if self.is(Fault::TooLong) { 8 } else { 9 }
    }

    fn start(&self, random: &mut Stream) -> State {
        TicTacToe.start(random)
    }

    fn to_move(&self, state: &State) -> Player {
        TicTacToe.to_move(state)
    }

    fn end(&self, state: &State) -> Option<End> {
        TicTacToe.end(state)
    }

    fn legal(&self, state: &State, out: &mut Vec<Action>) {
        let mut legal = legal_list(&TicTacToe, state);
        if self.is(Fault::MovesReversed) {
            legal.reverse();
        }
        if self.is(Fault::MoveTwice) {
            legal.extend_from_within(..legal.len().min(1));
        }
        if self.is(Fault::MovesAfterTheEnd) && legal.is_empty() {
            legal.push(Action(0));
        }
        if self.is(Fault::ListCleared) {
            out.clear();
        }
        out.extend(legal);
    }

    fn play(&self, state: &mut State, action: Action) {
        TicTacToe.play(state, action);
    }

    fn ply(&self, state: &State) -> usize {
        TicTacToe.ply(state) - usize::from(self.is(Fault::PlyStandsStill) && TicTacToe.ply(state) == 9)
    }

    fn random_action(&self, state: &State, random: &mut Stream, scratch: &mut Vec<Action>) -> Action {
        if self.is(Fault::FirstMoveFavoured) && random.below(8) == 0 {
            return legal_list(&TicTacToe, state)[0];
        }
        TicTacToe.random_action(state, random, scratch)
    }

    fn playout(&self, state: &mut State, random: &mut Stream, scratch: &mut Vec<Action>) -> End {
        if self.is(Fault::PlayoutDoesNotMove) {
            return TicTacToe.playout(&mut state.clone(), random, scratch);
        }
        while TicTacToe.end(state).is_none() {
            let action = match self.is(Fault::FirstMoveFavouredInPlayouts) && random.below(2) == 0 {
                true => legal_list(&TicTacToe, state)[0],
                false => TicTacToe.random_action(state, random, scratch),
            };
            TicTacToe.play(state, action);
        }
        TicTacToe.end(state).expect("the loop went on until here")
    }

    fn key(&self, state: &State) -> u32 {
        let key = TicTacToe.key(state);
        if self.is(Fault::KeyForgetsOpponent) { key & 0o777 } else { key }
    }

    fn encode(&self, state: &State, out: &mut [f32]) {
        TicTacToe.encode(state, out);
        if self.is(Fault::OpponentNotEncoded) {
            out[9..].fill(0.0);
        }
        if self.is(Fault::EncodingHasABlindCorner) {
            out[0] = 0.0;
        }
        if self.is(Fault::EncodingTransposed) {
            // The second plane only: its cells no longer lie under those of the moves.
            let plane: Vec<f32> = out[9..].to_vec();
            (0..9).for_each(|cell| out[9 + cell] = plane[(cell + 1) % 9]);
        }
    }

    fn symmetry_count(&self) -> usize {
        if self.is(Fault::NoGroup) { 3 } else { 8 }
    }

    fn map_state(&self, state: &State, symmetry: usize) -> State {
        if self.is(Fault::MovesMappedBoardNot) {
            return *state;
        }
        if self.is(Fault::StoneLostInMapping) && symmetry == 5 && self.ply(state) == 8 {
            return TicTacToe.startpos();
        }
        TicTacToe.map_state(state, symmetry)
    }

    fn map_action(&self, action: Action, symmetry: usize) -> Action {
        if self.is(Fault::BoardMappedMovesNot) || self.is(Fault::NotOneToOne) && symmetry == 3 && action.0 < 2 {
            return action;
        }
        TicTacToe.map_action(action, symmetry)
    }

    fn action_text(&self, action: Action) -> String {
        TicTacToe.action_text(action)
    }

    fn parse_action(&self, text: &str) -> Result<Action, TextError> {
        if self.is(Fault::PanicsOnShortMove) {
            assert!(text.len() > 1, "a fault on purpose");
        }
        TicTacToe.parse_action(text)
    }

    fn state_text(&self, state: &State) -> String {
        TicTacToe.state_text(state)
    }

    fn parse_state(&self, text: &str) -> Result<State, TextError> {
        if self.is(Fault::PanicsOnShortText) {
            assert!(text.len() > 6, "a fault on purpose");
        }
        if self.is(Fault::SpacesTaken) {
            return TicTacToe.parse_state(&text.replace("  ", " "));
        }
        let state = TicTacToe.parse_state(text);
        match state {
            Ok(_) if self.is(Fault::SideForgotten) && text.ends_with(" o") => Ok(TicTacToe.startpos()),
            _ => state,
        }
    }

    fn paint(&self, state: &State, last: Option<Action>) -> Drawing {
        let drawing = TicTacToe.paint(state, last);
        if self.is(Fault::DrawingWithCodes) { format!("\x1b[1m{drawing}").into() } else { drawing }
    }

    fn player_names(&self) -> [&'static str; 2] {
        TicTacToe.player_names()
    }

    fn solver(&self) -> Option<Box<dyn Solver<Self>>> {
        Some(Box::new(FaultySolver(self.0, TicTacToe.solver()?)))
    }
}

/// The solver of tic-tac-toe with one fault.
struct FaultySolver(Fault, Box<dyn Solver<TicTacToe>>);

impl Solver<Faulty> for FaultySolver {
    fn solve(&mut self, state: &State) -> Result<Solved, Refusal> {
        let solved = self.1.solve(state)?;
        let mut moves = solved.moves().to_vec();
        let mover = TicTacToe.to_move(state);
        match self.0 {
            Fault::SolverMissesAMove if moves.len() > 3 => drop(moves.pop()),
            Fault::SolverHopes if solved.outcome() == Outcome::Draw => moves[0].outcome = Outcome::Win(mover),
            Fault::SolverRefuses if moves.len() == 2 => return Err(Refusal("too hard".to_owned())),
            _ => {}
        }
        Ok(Solved::new(mover, moves))
    }

    fn best_moves(&mut self, state: &State) -> Result<Vec<Action>, Refusal> {
        match self.0 {
            Fault::SolverGivesAway => Ok(legal_list(&TicTacToe, state)),
            _ => self.1.best_moves(state),
        }
    }
}

#[test]
fn each_fault_breaks_its_law() {
    let faults = [
        (Fault::MovesReversed, "legal moves are unique and in notation order"),
        (Fault::MoveTwice, "legal moves are unique and in notation order"),
        (Fault::ListCleared, "legal moves are appended, the same each time"),
        (Fault::MovesAfterTheEnd, "a game has ended exactly when there is no legal move"),
        (Fault::TooLong, "no game is longer than max_plies"),
        (Fault::PlyStandsStill, "a move raises the ply by one"),
        (Fault::BoardMappedMovesNot, "playing and mapping give the same in either order"),
        (Fault::MovesMappedBoardNot, "playing and mapping give the same in either order"),
        (Fault::StoneLostInMapping, "a symmetry keeps the ply"),
        (Fault::NoGroup, "two symmetries one after the other are a symmetry"),
        (Fault::NotOneToOne, "a symmetry maps the actions one to one"),
        (Fault::OpponentNotEncoded, "positions of different keys have different encodings"),
        (Fault::EncodingHasABlindCorner, "positions of different keys have different encodings"),
        (Fault::EncodingTransposed, "the planes of an encoding follow a symmetry as the actions do"),
        (Fault::KeyForgetsOpponent, "positions of equal keys have equal encodings"),
        (Fault::FirstMoveFavoured, "random moves are uniform"),
        (Fault::FirstMoveFavouredInPlayouts, "random games have the distribution of uniform moves"),
        (Fault::PlayoutDoesNotMove, "a random game leaves the position it ended in"),
        (Fault::SpacesTaken, "a position that was read is written the same"),
        (Fault::PanicsOnShortText, "no text makes reading a position panic"),
        (Fault::PanicsOnShortMove, "no text makes reading a move panic"),
        (Fault::SideForgotten, "a position that was read is written the same"),
        (Fault::NamelessPlane, "each plane has a name"),
        (Fault::SolverMissesAMove, "a solver judges every legal move"),
        (Fault::SolverHopes, "a move is worth what the position after it is worth"),
        (Fault::SolverGivesAway, "the best moves keep the result"),
        (Fault::SolverRefuses, "a solver solves late positions"),
        (Fault::DrawingWithCodes, "a drawing is lines of text, at most 80 signs each"),
    ];
    let wrong: Vec<String> = faults
        .into_iter()
        .filter_map(|(fault, law)| match check_all(&Faulty(fault), 1, 100) {
            Ok(()) => Some(format!("{fault:?} is not noticed")),
            Err(violation) => (violation.law != law).then(|| format!("{fault:?} breaks another law: {violation}")),
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    check_all(&Faulty(Fault::None), 1, 100).unwrap();
}
