//! What a game is: the trait [`Game`], the values that belong to players, and the laws every game keeps.

pub mod bits;
pub mod grid;
pub mod laws;
mod options;
mod paint;
pub mod perft;
mod place;
mod solver;
#[cfg(test)]
pub(crate) mod toy;
mod value;

pub use options::{bad_value, option_values};
#[cfg(test)]
pub(crate) use paint::without_colors;
pub use paint::{Drawing, Ink};
pub use place::{MoveError, Place, parse_places, replay};
pub use solver::{Refusal, Solved, SolvedMove, Solver};
pub use value::{Outcome, Player, WdlAbs, WdlPov};

use std::fmt::Debug;
use std::hash::Hash;

use crate::util::rng::Stream;

/// The index of a move: a slot of the policy head, fixed for a game with its options.
///
/// It is *not* a place in the list of legal moves; that list is in notation order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Action(pub u16);

impl Action {
    /// The index as a `usize`, for looking up tables of `Game::action_count` entries.
    #[inline]
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// The shape of an encoded position: `channels` planes of `height` x `width` cells.
///
/// Flat layout of an encoding: `[channels, height, width]`, row-major.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub struct PlaneShape {
    /// Number of planes.
    pub channels: usize,
    /// Rows of a plane.
    pub height: usize,
    /// Columns of a plane.
    pub width: usize,
}

impl PlaneShape {
    /// Cells of one plane.
    pub fn cells(&self) -> usize {
        self.height * self.width
    }

    /// Numbers of a whole encoding.
    pub fn len(&self) -> usize {
        self.channels * self.cells()
    }

    /// Whether the encoding has no numbers at all (no registered game has such a shape).
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// How action indices lie on the board, so that a policy head can be convolutional.
///
/// The first `planes * cells` indices are `plane * cells + row * width + column` of the encoding's
/// grid; the last `flat` indices (a pass, the columns of connect four) belong to no cell.
/// `planes * cells + flat` is the game's action count. The slots of [`Game::ending_shape`] lie likewise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub struct PolicyShape {
    /// Slots for each cell.
    pub planes: usize,
    /// Slots that belong to no cell.
    pub flat: usize,
}

impl PolicyShape {
    /// Slots of both kinds on a board of `cells` cells.
    pub fn slots(&self, cells: usize) -> usize {
        self.planes * cells + self.flat
    }
}

/// Why a game ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndReason {
    /// By the ordinary rules: a line, no move left, more discs, ...
    Rules,
    /// The position occurred too often.
    Repetition,
    /// The game reached its largest number of plies.
    PlyCap,
}

/// A finished game.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct End {
    /// Who won, or that nobody did.
    pub outcome: Outcome,
    /// Why it ended.
    pub reason: EndReason,
}

impl End {
    /// A win of `player` by the ordinary rules.
    pub const fn win(player: Player) -> Self {
        Self { outcome: Outcome::Win(player), reason: EndReason::Rules }
    }

    /// A draw for `reason`.
    pub const fn draw(reason: EndReason) -> Self {
        Self { outcome: Outcome::Draw, reason }
    }
}

/// Text that is not a position, a move or an option of a game. The message names the field and says
/// what is allowed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TextError(pub String);

impl TextError {
    /// An error with this message.
    pub fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}

/// One option of a game, for help, configs and error messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OptionInfo {
    /// Its name.
    pub name: &'static str,
    /// What is allowed, in words ("standard or official", "1 to 10000").
    pub allowed: &'static str,
    /// The default value.
    pub default: &'static str,
    /// What it does, one sentence.
    pub help: &'static str,
}

/// The rules of one game with its options.
///
/// A value of the implementing type is a game *with its options* (`othello:size=6`); positions are
/// its [`State`](Game::State)s. Shapes and counts are methods because they may depend on options.
///
/// Laws (checked for every registered game, and for yours with [`laws::check_all`]):
/// - a state without an [`end`](Game::end) has at least one legal move, a state with one has none;
/// - legal moves are unique, below `action_count`, and in notation order (ascending move text, numbers in it
///   compared as such: `a2` before `a10`; see [`laws::notation_order`]);
/// - the text forms of states and moves round-trip;
/// - `play` then `map_state` equals `map_state` then `play` of the mapped move, for each symmetry;
///   legal sets, ends, encodings and policy indices commute with symmetries in the same way;
/// - two states of equal [`key`](Game::key) have equal encodings and legal lists, and states of different keys
///   have different encodings. Their movers may differ: an encoding is from the mover's point of view, so a
///   position and the same with colours and mover exchanged can share one evaluation;
/// - no assumption is made anywhere that players alternate: the mover is read from the state.
pub trait Game: Clone + Debug + Send + Sync + 'static {
    /// A position with the history that the rules need (repetition). Equality compares everything that
    /// can matter to the rest of the game.
    type State: Clone + Eq + Hash + Debug + Send + Sync + 'static;
    /// What the evaluation of a position may depend on, packed exactly (no hash): equal keys mean equal
    /// encodings. Used by caches and for counting distinct positions.
    type Key: Copy + Eq + Hash + Debug + Send + Sync + 'static;

    /// The name in the registry, as in `sparring ugi NAME`.
    const NAME: &'static str;
    /// Raised when the meaning of planes or action indices changes; stored in checkpoints.
    const ENCODING_VERSION: u32;
    /// Raised when rules change so that old records no longer replay; stored in records.
    const RULES_VERSION: u32;

    /// The options that [`from_options`](Game::from_options) knows; none unless overridden.
    fn option_infos() -> &'static [OptionInfo] {
        &[]
    }

    /// The game with these options (name, value); missing ones take their default.
    ///
    /// # Errors
    /// Names the unknown option or the value that is not allowed, and what is.
    fn from_options(options: &[(String, String)]) -> Result<Self, TextError>;

    /// Every option with its value, in the order of [`option_infos`](Game::option_infos).
    fn options(&self) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    /// Slots of the policy head.
    fn action_count(&self) -> usize;
    /// How action indices lie on the grid of the encoding.
    fn policy_shape(&self) -> PolicyShape;
    /// Shape of an encoded position.
    fn plane_shape(&self) -> PlaneShape;
    /// What each plane of the encoding means, one text for each channel.
    fn plane_names(&self) -> Vec<String>;
    /// No game is longer than this many single moves (plies).
    fn max_plies(&self) -> usize;

    /// A start position; games with one fixed start ignore `random`.
    fn start(&self, random: &mut Stream) -> Self::State;
    /// The position that the notation calls `startpos`.
    fn startpos(&self) -> Self::State {
        self.start(&mut Stream::test(0))
    }
    /// Whose move it is. Of a finished game: whoever would have been next, of no consequence.
    fn to_move(&self, state: &Self::State) -> Player;
    /// How the game ended, `None` while it goes on.
    fn end(&self, state: &Self::State) -> Option<End>;
    /// Appends the legal moves in notation order to `out`; none when the game has ended.
    fn legal(&self, state: &Self::State, out: &mut Vec<Action>);
    /// Makes a legal move. An illegal one is a bug of the caller (the state afterwards is unspecified,
    /// but memory-safe; it may panic).
    fn play(&self, state: &mut Self::State, action: Action);
    /// Single moves made since the start of the game (or what the fen says).
    fn ply(&self, state: &Self::State) -> usize;

    /// A uniformly random legal move of a game that goes on. Override where listing moves is slow.
    fn random_action(&self, state: &Self::State, random: &mut Stream, scratch: &mut Vec<Action>) -> Action {
        scratch.clear();
        self.legal(state, scratch);
        scratch[random.below(scratch.len())]
    }

    /// Plays uniformly random moves to the end. Override where a faster loop exists; the distribution
    /// must be the same.
    fn playout(&self, state: &mut Self::State, random: &mut Stream, scratch: &mut Vec<Action>) -> End {
        loop {
            if let Some(end) = self.end(state) {
                return end;
            }
            let action = self.random_action(state, random, scratch);
            self.play(state, action);
        }
    }

    /// What an evaluation may depend on.
    fn key(&self, state: &Self::State) -> Self::Key;
    /// Writes the encoding from the mover's point of view into `out`, of `plane_shape().len()` numbers
    /// that are all zero on entry.
    fn encode(&self, state: &Self::State, out: &mut [f32]);

    /// What a network may learn to foresee of the final position besides the result: slots that
    /// [`encode_ending`](Game::encode_ending) fills, laid out as the policy's are. None unless overridden.
    fn ending_shape(&self) -> PolicyShape {
        PolicyShape::default()
    }
    /// Writes which of these facts hold in the final position `end`, as `viewer` sees them: 1 where one does, into `out`, of
    /// as many numbers as there are slots, all zero on entry.
    fn encode_ending(&self, end: &Self::State, viewer: Player, out: &mut [f32]) {
        let _ = (end, viewer, out);
    }

    /// Number of symmetries; index 0 is the identity.
    fn symmetry_count(&self) -> usize;
    /// The state as seen through symmetry `symmetry`.
    fn map_state(&self, state: &Self::State, symmetry: usize) -> Self::State;
    /// The move that means in the mapped state what `action` means in the original.
    fn map_action(&self, action: Action, symmetry: usize) -> Action;

    /// A move as text, the same form everywhere.
    fn action_text(&self, action: Action) -> String;
    /// The action with this text; it need not be legal anywhere in particular.
    ///
    /// # Errors
    /// Says what is wrong with the text.
    fn parse_action(&self, text: &str) -> Result<Action, TextError>;
    /// The position as text ("fen").
    fn state_text(&self, state: &Self::State) -> String;
    /// The position with this text; writing it gives the same text.
    ///
    /// # Errors
    /// Names the field that is malformed or impossible and what was expected.
    fn parse_state(&self, text: &str) -> Result<Self::State, TextError>;
    /// The position drawn for a person: several lines with coordinates, at most 80 signs wide. `last`, the move that
    /// led here where one is known, is marked. No escape codes: what parts mean is said by their [`Ink`].
    fn paint(&self, state: &Self::State, last: Option<Action>) -> Drawing;
    /// The position drawn without colours and without a mark at the last move.
    fn draw(&self, state: &Self::State) -> String {
        self.paint(state, None).to_string()
    }
    /// What the players are called, first then second ("x" and "o", "white" and "black").
    fn player_names(&self) -> [&'static str; 2];
    /// Who is to move, in a few words for a prompt. Override where a turn has several kinds of moves, to say which
    /// this is.
    fn turn_text(&self, state: &Self::State) -> String {
        self.player_names()[self.to_move(state).index()].to_owned()
    }

    /// Perfect play, for games that can supply it: `sparring pit` and others then have the player `solver`, and
    /// `sparring accuracy` measures against it. None unless overridden.
    fn solver(&self) -> Option<Box<dyn Solver<Self>>> {
        None
    }
}

/// The legal moves of `state` in a new list.
pub fn legal_list<G: Game>(game: &G, state: &G::State) -> Vec<Action> {
    let mut out = Vec::new();
    game.legal(state, &mut out);
    out
}

/// The text of each entry of a policy, by index; `-` for entries that no move has.
pub fn action_texts<G: Game>(game: &G) -> Vec<String> {
    let text = |index: usize| {
        let action = Action(index as u16);
        let text = game.action_text(action);
        if game.parse_action(&text) == Ok(action) { text } else { "-".to_owned() }
    };
    (0..game.action_count()).map(text).collect()
}

/// The name of a game with its options that differ from the default: `othello:size=6`, `uttt`.
pub fn full_name<G: Game>(game: &G) -> String {
    let changed: Vec<String> = game
        .options()
        .into_iter()
        .zip(G::option_infos())
        .filter(|((_, value), info)| value != info.default)
        .map(|((name, value), _)| format!("{name}={value}"))
        .collect();
    if changed.is_empty() { G::NAME.to_owned() } else { format!("{}:{}", G::NAME, changed.join(",")) }
}
