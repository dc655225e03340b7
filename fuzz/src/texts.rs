//! Texts.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use sparring::game::{Action, Game, Place, legal_list, parse_places, replay};
use sparring::games::{GameVisitor, dispatch};
use sparring::play::Player;
use sparring::run::config::RunConfig;
use sparring::run::player::PlayerSpec;
use sparring::run::strict::resolved_json;
use sparring::ugi::{Info, Limits, Position, SeatThinker, Thinker, UgiOption, serve};
use sparring::util::rng::Stream;

use super::files::{refused, written};

/// A config; behind a NUL byte overrides as `--set` takes them, one a line.
pub fn config(data: &[u8]) -> bool {
    let (text, sets) = data.split_at(data.iter().position(|&byte| byte == 0).unwrap_or(data.len()));
    let sets = String::from_utf8_lossy(sets.strip_prefix(&[0]).unwrap_or(sets)).into_owned();
    let sets: Vec<String> = sets.lines().map(str::to_owned).collect();
    let read = match std::str::from_utf8(text) {
        Ok(text) => RunConfig::parse("config.json", text, &sets),
        Err(_) => RunConfig::read(&written("config.json", text), &sets),
    };
    let config = match read {
        Ok(config) => config,
        Err(errors) => return refused(&errors),
    };
    let resolved = resolved_json(&config);
    let again = RunConfig::parse("config.json", &resolved, &[]).expect("a resolved config is one");
    assert_eq!(again, config);
    assert_eq!(again.identity(), config.identity());
    true
}

/// The first line of a text, and the rest.
fn head(data: &[u8]) -> Option<(&str, &str)> {
    let text = std::str::from_utf8(data).ok()?;
    Some(text.split_once('\n').unwrap_or((text, "")))
}

/// A game on the first line, a position on the second, moves from there on the third. All but the first line is read as a
/// file of positions besides.
pub fn notation(data: &[u8]) -> bool {
    let Some((name, text)) = head(data) else { return false };
    dispatch(name, Notation(text)).unwrap_or_else(|error| refused(&error))
}

struct Notation<'a>(&'a str);

impl GameVisitor for Notation<'_> {
    type Output = bool;

    fn visit<G: Game>(self, game: G) -> bool {
        let mut lines = self.0.lines();
        let (fen, moves) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
        let moves: Vec<&str> = moves.split_whitespace().collect();
        for text in &moves {
            match game.parse_action(text) {
                Ok(action) => {
                    assert!(action.index() < game.action_count(), "{text}");
                    assert_eq!(game.action_text(action), *text);
                }
                Err(error) => _ = refused(&error),
            }
        }
        match parse_places(&game, Path::new("positions.txt"), self.0) {
            Ok(places) => places.iter().for_each(|place| examine(&game, &place.state)),
            Err(error) => _ = refused(&error),
        }
        if let Err(error) = Place::new(&game, Some(fen), &moves) {
            refused(&error);
        }
        let state = match game.parse_state(fen) {
            Ok(state) => state,
            Err(error) => return refused(&error),
        };
        assert_eq!(game.state_text(&state), fen, "a position has one form");
        examine(&game, &state);
        match replay(&game, &state, &moves) {
            Ok((after, actions)) => {
                assert_eq!(actions.len(), moves.len());
                examine(&game, &after);
                true
            }
            Err(error) => refused(&error),
        }
    }
}

/// Does with a position what is done with positions.
fn examine<G: Game>(game: &G, state: &G::State) {
    let legal = legal_list(game, state);
    assert_eq!(game.end(state).is_some(), legal.is_empty());
    assert!(game.ply(state) <= game.max_plies());
    for &action in &legal {
        assert!(action.index() < game.action_count());
        assert_eq!(game.parse_action(&game.action_text(action)).as_ref(), Ok(&action));
        let mut next = state.clone();
        game.play(&mut next, action);
        let _ = (game.end(&next), game.key(&next), game.turn_text(&next));
    }
    let mut planes = vec![0.0; game.plane_shape().len()];
    game.encode(state, &mut planes);
    assert!(planes.iter().all(|number| number.is_finite()));
    let _ = (game.key(state), game.turn_text(state), game.paint(state, legal.first().copied()).to_string());
    for symmetry in 0..game.symmetry_count() {
        let mapped = game.map_state(state, symmetry);
        // Not always a position that the notation has: the start of othello turned by a quarter cannot be reached.
        let _ = (game.state_text(&mapped), game.key(&mapped));
        assert_eq!(legal_list(game, &mapped).len(), legal.len());
    }
    let mut end = state.clone();
    let result = game.playout(&mut end, &mut Stream::test(1), &mut Vec::new());
    assert_eq!(game.end(&end), Some(result));
    assert!(game.ply(&end) <= game.max_plies());
}

/// A game on the first line, then a conversation with an engine of it.
pub fn ugi(data: &[u8]) -> bool {
    let lossy = String::from_utf8_lossy(data);
    let (name, text) = lossy.split_once('\n').unwrap_or((&lossy, ""));
    dispatch(name, Conversation(text)).unwrap_or_else(|error| refused(&error))
}

/// Lines of a conversation that are heard.
const MOST_LINES: usize = 60;

/// The deepest perft that is counted.
const DEEPEST: u32 = 2;

struct Conversation<'a>(&'a str);

impl GameVisitor for Conversation<'_> {
    type Output = bool;

    fn visit<G: Game>(self, game: G) -> bool {
        let is_quick = |line: &&str| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let deep = |depth: &&str| depth.parse::<u32>().is_ok_and(|depth| depth > DEEPEST);
            !(words.starts_with(&["go", "perft"]) && words.get(2).is_some_and(deep))
        };
        let lines = self.0.split('\n').filter(is_quick).take(MOST_LINES);
        let mut input = lines.collect::<Vec<_>>().join("\n");
        // Tells whether the engine is still what it was.
        input.push_str("\nuginewgame\nisready\nquit\n");
        let player = Player::mcts(SIMULATIONS, 1.0);
        let known = |text: &str| match PlayerSpec::parse(text) {
            Ok(_) => Err("there are no networks here".to_owned()),
            Err(error) => Err(error.to_string()),
        };
        let thinker = Hasty(SeatThinker::new(player).with_networks(Box::new(known)));
        let mut output = Vec::new();
        serve(game, Box::new(thinker), input.as_bytes(), &mut output).expect("nothing that comes in is an error");
        let output = String::from_utf8(output).expect("answers are text");
        let begins = |line: &str, words: &[&str]| words.iter().any(|word| line.starts_with(word));
        for line in output.lines() {
            assert!(!line.contains(char::is_control), "{line:?}");
            let broken = ["the search failed", "the engine broke", "the engine cannot get ready"];
            let told = line.strip_prefix("info string error ").unwrap_or_default();
            assert!(!begins(told, &broken), "{line}");
            let count = line.split_once(": ").is_some_and(|(_, count)| count.parse::<u64>().is_ok());
            let known = ["id ", "option ", "ugiok", "readyok", "response ", "info ", "bestmove "];
            assert!(count || begins(line, &known), "{line:?}");
        }
        !output.contains("info string error")
    }
}

/// Simulations of a search.
const SIMULATIONS: u32 = 8;

/// Thinks no longer than for a few simulations, whatever the limits.
struct Hasty<G: Game>(SeatThinker<G>);

impl<G: Game> Thinker<G> for Hasty<G> {
    fn think(
        &mut self,
        game: &G,
        position: &Position<'_, G>,
        limits: &Limits,
        stop: &AtomicBool,
        info: &mut dyn FnMut(Info),
    ) -> Result<Action, String> {
        let most = u64::from(SIMULATIONS);
        let nodes = limits.nodes.unwrap_or(most).min(most);
        self.0.think(game, position, &Limits { nodes: Some(nodes), ..*limits }, stop, info)
    }

    fn new_game(&mut self) {
        self.0.new_game();
    }

    fn prepare(&mut self, game: &G) -> Result<(), String> {
        self.0.prepare(game)
    }

    fn options(&self) -> Vec<UgiOption> {
        self.0.options()
    }

    fn set_option(&mut self, name: &str, value: &str) -> Result<(), String> {
        self.0.set_option(name, value)
    }
}
