//! One game in progress: its position, the trees of its players, and the record that grows with it.

use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use super::pool::{Clock, Finished, PoolStats, Table};
use super::resign::Despair;
use super::seat::{Choice, Mover, Player, SearchSeat, Teaching, Turn};
use crate::data::{Finish, GameRecord, OldGame, PlyKind, PlyRecord, RecordEnd};
use crate::eval::Leaves;
use crate::game::{Action, Game, Outcome, Player as Side, WdlAbs, WdlPov, full_name};
use crate::search::{Budget, Gathered, SearchSummary, Ticket, Tree};
use crate::util::rng::{Purpose, Stream};

/// Why a game in progress was left alone.
pub(super) enum Step {
    /// It waits for an evaluation by this player's evaluator.
    Leaf { player: usize, tree: usize, ticket: Ticket },
    /// It has ended.
    Over,
    /// It was stopped in the middle of a move, and cannot go on.
    Stopped,
}

/// What the players of a worker use: one entry for each player.
pub(super) struct Desks<'a, G: Game> {
    pub game: &'a G,
    pub players: &'a [Player<G>],
    pub movers: &'a mut [Option<Box<dyn Mover<G>>>],
    pub leaves: &'a mut [Leaves<G>],
    /// Counts descents.
    pub simulations: &'a mut u64,
    pub stats: &'a PoolStats,
    /// Whether games in progress are to be dropped.
    pub stop: &'a dyn Fn() -> bool,
}

pub(super) struct Running<G: Game> {
    index: u64,
    seats: [usize; 2],
    start: String,
    state: G::State,
    /// One tree for each player that searches; in self-play both sides share the first.
    trees: [Option<Tree<G>>; 2],
    plies: Vec<PlyRecord>,
    /// Of each full search its ply and how much it changed the prior, in nats.
    surprises: Vec<(usize, f64)>,
    /// Counts hopeless searches, in a game where players may give up.
    despair: Option<Despair>,
    script: Option<OldGame>,
    random: Stream,
    /// Whether the search of the current move has begun, and if so whether it is a full one.
    searching: Option<PlyKind>,
    legal: Vec<Action>,
    end: Option<RecordEnd>,
    fault: Option<String>,
    clocks: [Clock; 2],
}

impl<G: Game> Running<G> {
    pub(super) fn new(game: &G, players: &[Player<G>], mut table: Table<G>) -> Self {
        let resign = players[table.seats[0]].seat.batched().and_then(|search| search.teaching.resign);
        let may_resign = resign.is_some_and(|resign| table.random.unit() >= f64::from(resign.play_on));
        let mut state = table.start;
        let start = game.state_text(&state);
        let mut plies = Vec::new();
        for action in table.opening {
            game.play(&mut state, action);
            plies.push(unsearched(action, PlyKind::Opening));
        }
        let tree = |seat: usize| {
            let search = players[table.seats[seat]].seat.batched()?;
            Some(Tree::new(search.search.clone(), state.clone()))
        };
        let trees = [tree(0), if table.seats[0] == table.seats[1] { None } else { tree(1) }];
        Self {
            index: table.index,
            seats: table.seats,
            start,
            end: game.end(&state).map(RecordEnd::from),
            state,
            trees,
            plies,
            surprises: Vec::new(),
            despair: may_resign.then(Despair::default),
            script: table.script,
            random: table.random,
            searching: None,
            legal: Vec::new(),
            fault: None,
            clocks: [Clock::default(); 2],
        }
    }

    /// Plays on until an evaluation is needed or the game is over.
    pub(super) fn step(&mut self, at: &mut Desks<'_, G>) -> Step {
        if self.is_self_play() {
            return self.think(at, &mut |_, _| {});
        }
        let mut mark = Instant::now();
        let mut clocks = self.clocks;
        let step = self.think(at, &mut |side, decided| {
            let now = Instant::now();
            clocks[side.index()].thinking += now - mark;
            clocks[side.index()].moves += u64::from(decided);
            mark = now;
        });
        self.clocks = clocks;
        step
    }

    fn is_self_play(&self) -> bool {
        self.seats[0] == self.seats[1]
    }

    /// [`step`](Self::step), which tells `spent` whose thinking a stretch of time went into, and whether a move came of it.
    fn think(&mut self, at: &mut Desks<'_, G>, spent: &mut dyn FnMut(Side, bool)) -> Step {
        while self.end.is_none() {
            let side = at.game.to_move(&self.state);
            let player = self.seats[side.index()];
            if self.searching.is_none() {
                self.legal.clear();
                at.game.legal(&self.state, &mut self.legal);
                if let [only] = self.legal[..] {
                    self.play(at, unsearched(only, PlyKind::Forced));
                    continue;
                }
            }
            match at.players[player].seat.batched() {
                Some(seat) => {
                    let tree = if self.is_self_play() { 0 } else { side.index() };
                    if let Some(ticket) = self.search(at, seat, player, tree) {
                        spent(side, false);
                        return Step::Leaf { player, tree, ticket };
                    }
                    let kind = self.searching.take().expect("a search was under way");
                    let own = self.trees[tree].as_ref().expect("a searching player has a tree");
                    let summary = own.summary().expect("the root of a finished search is evaluated");
                    let temperature = seat.temperature.at(at.game.ply(&self.state));
                    let chosen = match &self.script {
                        Some(script) => position_of(script.moves[self.plies.len()], &summary),
                        None => summary.choose(temperature, &mut self.random),
                    };
                    if kind == PlyKind::Full && seat.teaching.surprise_share > 0.0 {
                        self.surprises.push((self.plies.len(), surprise(&summary)));
                    }
                    self.play(at, searched(&summary, chosen, kind));
                    if self.end.is_none() && self.script.is_none() {
                        self.end = self.ends_early(seat.teaching, side, &summary);
                    }
                }
                None => {
                    let answer = self.ask_mover(at, player);
                    // What a search that was cut short has found must not come into a game.
                    if (at.stop)() {
                        return Step::Stopped;
                    }
                    self.take_answer(at, player, side, answer);
                }
            }
            spent(side, true);
        }
        Step::Over
    }

    /// How the game ends after a move of `side` with which the rules do not end it, if it does.
    fn ends_early(&mut self, teaching: Teaching, side: Side, summary: &SearchSummary) -> Option<RecordEnd> {
        let hopeless = match (&mut self.despair, teaching.resign) {
            (Some(despair), Some(resign)) => despair.after(resign, side, summary.value),
            _ => false,
        };
        match summary.proven {
            Some(outcome) if teaching.end_proven => Some(RecordEnd { outcome, reason: Finish::Proven }),
            _ => hopeless.then_some(RecordEnd { outcome: Outcome::Win(side.other()), reason: Finish::Resigned }),
        }
    }

    /// Begins or continues the search of a move; `None` when it is finished.
    fn search(&mut self, at: &mut Desks<'_, G>, seat: &SearchSeat<G>, player: usize, tree: usize) -> Option<Ticket> {
        let own = self.trees[tree].as_mut().expect("a searching player has a tree");
        if self.searching.is_none() {
            let fast = seat.fast.filter(|fast| self.random.unit() >= f64::from(fast.full_share));
            let budget = match fast {
                Some(fast) => Budget::plain(fast.simulations),
                None => Budget { simulations: seat.simulations, noise: seat.noise, gumbel_noise: seat.gumbel_noise },
            };
            self.searching = Some(if fast.is_some() { PlyKind::Fast } else { PlyKind::Full });
            own.begin(budget, fork(&mut self.random));
        }
        let before = own.simulations();
        let mut leaf = None;
        while leaf.is_none() && !own.finished() {
            if let Gathered::Leaf(ticket) = own.gather(at.game, &mut at.leaves[player]) {
                leaf = Some(ticket);
            }
        }
        *at.simulations += u64::from(own.simulations() - before);
        leaf
    }

    fn ask_mover(&mut self, at: &mut Desks<'_, G>, player: usize) -> Result<Choice, String> {
        let mover = at.movers[player].as_mut().expect("a mover for each player that has one");
        let moves: Vec<Action> = self.plies.iter().map(|ply| ply.action).collect();
        let turn = Turn { start: &self.start, moves: &moves, state: &self.state, stop: at.stop };
        mover.choose(at.game, &turn, fork(&mut self.random))
    }

    fn take_answer(&mut self, at: &Desks<'_, G>, player: usize, side: Side, answer: Result<Choice, String>) {
        let name = &at.players[player].name;
        match answer {
            Ok(Choice { action, value }) if self.legal.contains(&action) => {
                let value = value.unwrap_or(UNKNOWN);
                self.play(at, PlyRecord { value, ..unsearched(action, PlyKind::Fast) });
            }
            Ok(Choice { action, .. }) => {
                let text = at.game.action_text(action);
                self.forfeit(side, format!("{name} played the illegal move {text}"));
            }
            Err(fault) => self.forfeit(side, format!("{name}: {fault}")),
        }
    }

    fn forfeit(&mut self, side: Side, fault: String) {
        self.end = Some(RecordEnd { outcome: Outcome::Win(side.other()), reason: Finish::Adjudicated });
        self.fault = Some(fault);
    }

    fn play(&mut self, at: &Desks<'_, G>, ply: PlyRecord) {
        let action = ply.action;
        self.plies.push(ply);
        for tree in self.trees.iter_mut().flatten() {
            tree.advance(at.game, action);
        }
        at.game.play(&mut self.state, action);
        self.end = at.game.end(&self.state).map(RecordEnd::from);
        if let (None, Some(script)) = (self.end, &self.script) {
            // The rules need not have ended it.
            self.end = (script.moves.len() == self.plies.len()).then_some(script.end);
        }
        at.stats.moves.fetch_add(1, Relaxed);
    }

    /// Hands an evaluation to the tree that waits for it; `share` is this game's part of the time it took.
    pub(super) fn apply(&mut self, tree: usize, ticket: Ticket, value: WdlPov, priors: &[f32], share: Duration) {
        // In a match each side has the tree of its own number.
        self.clocks[tree].thinking += share;
        self.trees[tree].as_mut().expect("the tree that gathered the leaf").apply(ticket, value, priors);
    }

    /// The finished game. A ply without a search takes the value of the next one that has one, or of the result:
    /// values are absolute, and a forced move changes nothing.
    pub(super) fn finish(mut self, game: &G, players: &[Player<G>]) -> Finished {
        if let Some(seat) = players[self.seats[0]].seat.batched() {
            let weights = surprise_weights(&self.surprises, seat.teaching.surprise_share);
            self.surprises.iter().zip(weights).for_each(|(&(ply, _), weight)| self.plies[ply].weight = weight);
        }
        let end = self.end.expect("a finished game has an end");
        let judged = |ply: &PlyRecord| (ply.value != UNKNOWN).then_some(ply.value);
        let opinions = if self.is_self_play() { Vec::new() } else { self.plies.iter().map(judged).collect() };
        let mut value = end.outcome.wdl();
        for ply in self.plies.iter_mut().rev() {
            if ply.value == UNKNOWN {
                ply.value = value;
            } else {
                value = ply.value;
            }
        }
        let record = GameRecord {
            game: full_name(game),
            rules_version: G::RULES_VERSION,
            seed: 0,
            generation: 0,
            index: self.index as u32,
            start: self.start,
            plies: self.plies,
            end,
        };
        Finished { index: self.index, seats: self.seats, record, fault: self.fault, clocks: self.clocks, opinions }
    }
}

/// A stream of its own for one move, so that what a player draws does not shift what the game draws.
fn fork(random: &mut Stream) -> Stream {
    Stream::keyed(random.bits(), Purpose::Match, &[])
}

/// The value of a ply without a search until the game is over.
const UNKNOWN: WdlAbs = WdlAbs { first: 0.0, draw: 0.0, second: 0.0 };

fn unsearched(action: Action, kind: PlyKind) -> PlyRecord {
    PlyRecord { action, kind, value: UNKNOWN, policy: Vec::new(), proven: None, weight: 1.0 }
}

/// How far the searched policy is from the prior: Kullback-Leibler divergence in nats.
fn surprise(summary: &SearchSummary) -> f64 {
    let term = |policy: f32, prior: f32| match policy > 0.0 {
        // A prior may have been rounded to nothing.
        true => f64::from(policy) * (f64::from(policy) / f64::from(prior.max(1e-9))).ln(),
        false => 0.0,
    };
    summary.moves.iter().map(|m| term(m.policy, m.prior)).sum::<f64>().max(0.0)
}

/// No position is drawn more often than this many others.
const MOST_WEIGHT: f64 = 16.0;

/// The weights of the full searches of a game, whose mean is 1 but for the limit.
fn surprise_weights(surprises: &[(usize, f64)], share: f32) -> Vec<f32> {
    let mean = surprises.iter().map(|(_, surprise)| surprise).sum::<f64>() / surprises.len().max(1) as f64;
    let weight = |surprise: f64| match mean > 0.0 {
        true => (1.0 - f64::from(share) + f64::from(share) * surprise / mean).min(MOST_WEIGHT) as f32,
        false => 1.0,
    };
    surprises.iter().map(|&(_, surprise)| weight(surprise)).collect()
}

/// Where the summary of a search has a legal move.
fn position_of(action: Action, summary: &SearchSummary) -> usize {
    summary.moves.iter().position(|m| m.action == action).expect("a search has every legal move")
}

/// The record of a searched move. Only a full search leaves a policy target.
fn searched(summary: &SearchSummary, chosen: usize, kind: PlyKind) -> PlyRecord {
    let policy = match kind {
        PlyKind::Full => summary.moves.iter().map(|m| m.policy).collect(),
        _ => Vec::new(),
    };
    let action = summary.moves[chosen].action;
    PlyRecord { action, kind, value: summary.value, policy, proven: summary.proven, weight: 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_surprises_weighs_more() {
        let of = |surprises: [f64; 3], share| surprise_weights(&surprises.map(|surprise| (0, surprise)), share);
        // Mean 0.2: half of the weight by 0.5, 2 and 0.5 times that.
        assert_eq!(of([0.1, 0.4, 0.1], 0.5), [0.75, 1.5, 0.75]);
        assert_eq!(of([0.1, 0.4, 0.1], 1.0), [0.5, 2.0, 0.5]);
        assert_eq!(of([0.1, 0.4, 0.1], 0.0), [1.0; 3]);
        assert_eq!(of([0.0; 3], 0.5), [1.0; 3]);
        assert!(surprise_weights(&[], 0.5).is_empty());
        let many: Vec<(usize, f64)> = (0..100).map(|at| (at, f64::from(at == 7))).collect();
        assert_eq!(surprise_weights(&many, 1.0)[7], MOST_WEIGHT as f32);
    }
}
