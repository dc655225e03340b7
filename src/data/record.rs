//! The record of one game, and the proof that it is one.

use crate::game::{Action, End, EndReason, Game, Outcome, Player, WdlAbs, full_name};

use super::quant;

/// How a ply came about, which decides what may be learned from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PlyKind {
    /// A random move at the start of the game; nothing is learned from the position.
    Opening,
    /// A cheap search (playout cap randomisation, KataGo, arXiv 1902.10565, section 3.1): its value is a
    /// target, its policy is not.
    Fast,
    /// A full search: policy and value are targets.
    Full,
    /// The only legal move, made without a search.
    Forced,
}

/// One ply and what the search thought of the position before it.
#[derive(Clone, Debug, PartialEq)]
pub struct PlyRecord {
    /// The move.
    pub action: Action,
    /// How it came about.
    pub kind: PlyKind,
    /// Root value of the search. Of no meaning, but still a distribution, where nothing was searched
    /// ([`PlyKind::Opening`], [`PlyKind::Forced`]).
    pub value: WdlAbs,
    /// Policy target of [`PlyKind::Full`], one share for each legal move in notation order, sum 1; empty for the other
    /// kinds. Stored in steps of 1/65535, see [`quant::parts`].
    pub policy: Vec<f32>,
    /// The result with best play, where the search proved it.
    pub proven: Option<Outcome>,
    /// How often the position is drawn for training relative to others; 1 is usual, 0 is never. Stored in steps of
    /// 1/1024, cut at [`quant::MAX_WEIGHT`].
    pub weight: f32,
}

/// Why a record ends where it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Finish {
    /// By the ordinary rules.
    Rules,
    /// The position occurred too often.
    Repetition,
    /// The game reached its largest number of plies.
    PlyCap,
    /// The search proved the result; the game was not played out.
    Proven,
    /// The loser gave up.
    Resigned,
    /// Broken off with a declared result.
    Adjudicated,
}

impl Finish {
    /// Whether the game itself ended; otherwise it was stopped while moves were left.
    pub const fn by_the_game(self) -> bool {
        matches!(self, Finish::Rules | Finish::Repetition | Finish::PlyCap)
    }
}

impl From<EndReason> for Finish {
    fn from(reason: EndReason) -> Self {
        match reason {
            EndReason::Rules => Finish::Rules,
            EndReason::Repetition => Finish::Repetition,
            EndReason::PlyCap => Finish::PlyCap,
        }
    }
}

/// The result of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordEnd {
    /// Who won, or that nobody did.
    pub outcome: Outcome,
    /// Why it ended.
    pub reason: Finish,
}

impl From<End> for RecordEnd {
    fn from(end: End) -> Self {
        Self { outcome: end.outcome, reason: end.reason.into() }
    }
}

/// What all records of one generation have in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The game with its options, as [`full_name`] writes it.
    pub game: String,
    /// [`Game::RULES_VERSION`] of the rules it was played by.
    pub rules_version: u32,
    /// Seed of the run.
    pub seed: u64,
    /// Generation of the run, from 0.
    pub generation: u32,
}

impl std::fmt::Display for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { game, rules_version, seed, generation } = self;
        write!(f, "{game} (rules version {rules_version}), seed {seed}, generation {generation}")
    }
}

/// One game.
#[derive(Clone, Debug, PartialEq)]
pub struct GameRecord {
    /// The game with its options, as [`full_name`] writes it.
    pub game: String,
    /// [`Game::RULES_VERSION`] of the rules it was played by.
    pub rules_version: u32,
    /// Seed of the run.
    pub seed: u64,
    /// Generation of the run, from 0.
    pub generation: u32,
    /// Number of the game within its generation, from 0.
    pub index: u32,
    /// The start position (fen).
    pub start: String,
    /// The plies in order.
    pub plies: Vec<PlyRecord>,
    /// The result.
    pub end: RecordEnd,
}

/// A record that is not a game by the rules it names.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("game {index} of generation {generation}{}: {fault}", .ply.map_or(String::new(), |ply| format!(", ply {ply}")))]
pub struct ReplayError {
    /// Generation of the record.
    pub generation: u32,
    /// Number of the record within it.
    pub index: u32,
    /// The ply at fault, from 0; `None` where it is the record as a whole.
    pub ply: Option<usize>,
    /// What is wrong.
    pub fault: ReplayFault,
}

/// What is wrong with a record.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ReplayFault {
    /// It is of another game or other options.
    #[error("it is a game of {found}, expected {expected}")]
    OtherGame {
        /// What the record says.
        found: String,
        /// What was asked for.
        expected: String,
    },
    /// The rules have changed since.
    #[error("it was played by version {found} of the rules, this program plays version {known}: play new games")]
    OtherRules {
        /// What the record says.
        found: u32,
        /// What this program knows.
        known: u32,
    },
    /// The start is not a position.
    #[error("its start position {text:?} is not one: {error}")]
    Start {
        /// The text.
        text: String,
        /// Why not.
        error: String,
    },
    /// More plies than a record can hold.
    #[error("it has {0} plies, at most 65535 can be stored")]
    TooLong(usize),
    /// A move that is not legal where it is made.
    #[error("move {0} is not legal there")]
    Illegal(String),
    /// Moves after the end.
    #[error("the game had ended before")]
    AfterEnd,
    /// The number of policy entries does not fit the position.
    #[error("the policy has {found} entries, expected {expected}")]
    PolicyLength {
        /// Entries in the record.
        found: usize,
        /// Legal moves with a full search, none otherwise.
        expected: usize,
    },
    /// The policy is not a distribution.
    #[error("the policy is not a distribution (finite, not negative, sum 1)")]
    Policy,
    /// The value is not a distribution.
    #[error("the value {0:?} is not a distribution (finite, not negative, sum 1)")]
    Value(WdlAbs),
    /// The weight is negative or not finite.
    #[error("the weight {0} must be finite and not negative")]
    Weight(f32),
    /// A forced move where there is a choice.
    #[error("the move is marked as forced, but there are {0} legal moves")]
    NotForced(usize),
    /// The recorded result is not that of the final position.
    #[error("the record says {}, but after its last ply the game {}", end_text(*.recorded), .actual.map_or("goes on".into(), |end| format!("has ended: {}", end_text(end.into()))))]
    End {
        /// The recorded result.
        recorded: RecordEnd,
        /// The end of the final position.
        actual: Option<End>,
    },
}

fn end_text(end: RecordEnd) -> String {
    let outcome = match end.outcome {
        Outcome::Win(Player::First) => "the first player won",
        Outcome::Win(Player::Second) => "the second player won",
        Outcome::Draw => "drawn",
    };
    let reason = match end.reason {
        Finish::Rules => "by the rules",
        Finish::Repetition => "by repetition",
        Finish::PlyCap => "at the ply limit",
        Finish::Proven => "proven by search",
        Finish::Resigned => "by resignation",
        Finish::Adjudicated => "adjudicated",
    };
    format!("{outcome} {reason}")
}

impl GameRecord {
    /// What this record has in common with those of its generation.
    pub fn origin(&self) -> Origin {
        Origin {
            game: self.game.clone(),
            rules_version: self.rules_version,
            seed: self.seed,
            generation: self.generation,
        }
    }

    pub(super) fn fault(&self, ply: Option<usize>, fault: ReplayFault) -> ReplayError {
        ReplayError { generation: self.generation, index: self.index, ply, fault }
    }

    /// The start position, after checking that the record is of `game` by these rules.
    fn open<G: Game>(&self, game: &G) -> Result<G::State, ReplayError> {
        let expected = full_name(game);
        if self.game != expected {
            return Err(self.fault(None, ReplayFault::OtherGame { found: self.game.clone(), expected }));
        }
        if self.rules_version != G::RULES_VERSION {
            let fault = ReplayFault::OtherRules { found: self.rules_version, known: G::RULES_VERSION };
            return Err(self.fault(None, fault));
        }
        game.parse_state(&self.start)
            .map_err(|error| self.fault(None, ReplayFault::Start { text: self.start.clone(), error: error.0 }))
    }

    /// Plays the whole game through and returns its final position: every move is legal, policies, values and weights
    /// are what they must be, the result is that of the final position.
    ///
    /// # Errors
    /// Names the game, the ply and what is wrong.
    pub fn check<G: Game>(&self, game: &G) -> Result<G::State, ReplayError> {
        self.check_with(game, |_, _| ())
    }

    /// [`check`](Self::check) that shows each ply with the legal moves of its position, in order.
    pub(super) fn check_with<G: Game>(
        &self,
        game: &G,
        mut visit: impl FnMut(&PlyRecord, &[Action]),
    ) -> Result<G::State, ReplayError> {
        if self.plies.len() > usize::from(u16::MAX) {
            return Err(self.fault(None, ReplayFault::TooLong(self.plies.len())));
        }
        let mut state = self.open(game)?;
        let mut legal = Vec::new();
        for (index, ply) in self.plies.iter().enumerate() {
            legal.clear();
            game.legal(&state, &mut legal);
            check_ply(game, ply, &legal).map_err(|fault| self.fault(Some(index), fault))?;
            visit(ply, &legal);
            game.play(&mut state, ply.action);
        }
        let actual = game.end(&state);
        let fits = match actual {
            Some(end) => self.end == end.into(),
            None => !self.end.reason.by_the_game(),
        };
        if fits { Ok(state) } else { Err(self.fault(None, ReplayFault::End { recorded: self.end, actual })) }
    }

    /// The positions of the game, each with the ply made in it, after a [`check`](Self::check).
    ///
    /// # Errors
    /// Those of [`check`](Self::check).
    pub fn replay<'a, G: Game>(&'a self, game: &'a G) -> Result<Replay<'a, G>, ReplayError> {
        self.check(game)?;
        Ok(Replay { game, state: self.open(game)?, plies: self.plies.iter() })
    }
}

fn check_ply<G: Game>(game: &G, ply: &PlyRecord, legal: &[Action]) -> Result<(), ReplayFault> {
    if legal.is_empty() {
        return Err(ReplayFault::AfterEnd);
    }
    if !legal.contains(&ply.action) {
        // An index that is no move at all has no text.
        let known = ply.action.index() < game.action_count();
        let text = if known { game.action_text(ply.action) } else { format!("number {}", ply.action.0) };
        return Err(ReplayFault::Illegal(text));
    }
    if ply.kind == PlyKind::Forced && legal.len() != 1 {
        return Err(ReplayFault::NotForced(legal.len()));
    }
    let expected = if ply.kind == PlyKind::Full { legal.len() } else { 0 };
    if ply.policy.len() != expected {
        return Err(ReplayFault::PolicyLength { found: ply.policy.len(), expected });
    }
    ply.numbers()
}

impl PlyRecord {
    /// Whether policy, value and weight can be stored.
    pub(super) fn numbers(&self) -> Result<(), ReplayFault> {
        if !self.policy.is_empty() && !quant::is_distribution(&self.policy) {
            return Err(ReplayFault::Policy);
        }
        let WdlAbs { first, draw, second } = self.value;
        if !quant::is_distribution(&[first, draw, second]) {
            return Err(ReplayFault::Value(self.value));
        }
        if !(self.weight.is_finite() && self.weight >= 0.0) {
            return Err(ReplayFault::Weight(self.weight));
        }
        Ok(())
    }
}

/// The positions of a game with the plies made in them, in order; see [`GameRecord::replay`].
#[derive(Clone, Debug)]
pub struct Replay<'a, G: Game> {
    game: &'a G,
    state: G::State,
    plies: std::slice::Iter<'a, PlyRecord>,
}

impl<G: Game> Replay<'_, G> {
    /// The position reached: before the next ply, or the final one.
    pub fn state(&self) -> &G::State {
        &self.state
    }
}

impl<'a, G: Game> Iterator for Replay<'a, G> {
    type Item = (G::State, &'a PlyRecord);

    fn next(&mut self) -> Option<Self::Item> {
        let ply = self.plies.next()?;
        let before = self.state.clone();
        self.game.play(&mut self.state, ply.action);
        Some((before, ply))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.plies.size_hint()
    }
}

impl<G: Game> ExactSizeIterator for Replay<'_, G> {}

#[cfg(test)]
#[path = "record_tests.rs"]
mod tests;
