//! The newest games in memory, as many as the window law says.

use std::collections::VecDeque;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::packed::PackedGame;
use super::quant::WEIGHT_STEPS;
use super::record::{Finish, GameRecord, PlyKind, RecordEnd, ReplayError, ReplayFault};
use super::sample::SampleParams;
use crate::game::{Action, Game, Outcome, Player};
use crate::util::rng::Stream;

/// How many positions of the past are trained on.
///
/// KataGo's law (arXiv 1902.10565, appendix C): with N positions made since the start of the run, the window holds
/// the newest `c * (1 + beta * ((N / c)^alpha - 1) / alpha)` of them, and all while N is below c. That is N^alpha,
/// scaled so that the window is c at N = c and grows there by beta for each new position.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ReplayParams {
    /// c of the window law: up to so many positions everything is kept, then the window grows more slowly than what
    /// is played. A position counts as much as its weight.
    #[schemars(range(min = 1, max = 1_000_000_000), extend("x-unit" = "positions", "x-paper" = "250000 (KataGo, go)"))]
    pub min_positions: u64,
    /// alpha of the window law: 1 lets the window grow in proportion to all positions played, a small value hardly
    /// at all.
    #[schemars(range(min = 0.01, max = 1.0), extend("x-unit" = "none", "x-paper" = "0.75 (KataGo)"))]
    pub exponent: f64,
    /// beta of the window law: growth of the window for each new position when `min_positions` is reached.
    #[schemars(range(min = 0.0, max = 1.0), extend("x-unit" = "none", "x-paper" = "0.4 (KataGo)"))]
    pub expand: f64,
    /// The window never takes more memory than this, whatever the law says; the oldest games go first.
    #[schemars(range(min = 1_048_576), extend("x-unit" = "bytes"))]
    pub max_bytes: u64,
    /// How often a position is drawn for training during the generation that made it, on average over all
    /// new positions: a generation trains on `reuse` times as many samples as it made positions.
    #[schemars(range(min = 0.01, max = 1000.0), extend("x-unit" = "samples per position", "x-paper" = "4 (KataGo)"))]
    pub reuse: f64,
}

impl Default for ReplayParams {
    fn default() -> Self {
        Self { min_positions: 100_000, exponent: 0.75, expand: 0.4, max_bytes: 1 << 30, reuse: 4.0 }
    }
}

impl ReplayParams {
    /// Positions in the window when `total` have been made.
    pub fn window_positions(&self, total: f64) -> f64 {
        let c = self.min_positions as f64;
        if total <= c {
            return c;
        }
        // The parameters' ranges hold the result below the total, also against rounding.
        (c * (1.0 + self.expand * ((total / c).powf(self.exponent) - 1.0) / self.exponent)).min(total)
    }

    /// The window in steps when `total` steps have been made.
    fn window_steps(&self, total: u64) -> u64 {
        let steps = f64::from(WEIGHT_STEPS);
        (self.window_positions(total as f64 / steps) * steps) as u64
    }

    /// Training steps of `batch_size` samples for `new_positions`, rounded up.
    pub fn training_steps(&self, new_positions: f64, batch_size: usize) -> u64 {
        (new_positions * self.reuse / batch_size.max(1) as f64).ceil() as u64
    }

    /// The first generation of which the window still holds games, where `totals[g]` is
    /// [`ReplayWindow::total_steps`] after generation g. A resumed run loads the generations from there
    /// on; loading more does no harm. (The memory limit can only make the window smaller.)
    pub fn first_generation(&self, totals: &[u64]) -> usize {
        let Some(&total) = totals.last() else { return 0 };
        let outside = total.saturating_sub(self.window_steps(total));
        totals.partition_point(|&through| through <= outside)
    }
}

/// A game as it was played.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OldGame {
    /// Its start position, `None` where it is the game's `startpos`.
    pub start: Option<String>,
    /// Moves of its opening.
    pub opening: usize,
    /// All moves.
    pub moves: Vec<Action>,
    /// How it ended.
    pub end: RecordEnd,
}

/// What the window holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct WindowStats {
    /// Games.
    pub games: usize,
    /// Positions that can be drawn.
    pub positions: usize,
    /// The same, each counted by its weight: what the window law bounds.
    pub weighted_positions: f64,
    /// Weighted positions made since the start of the run, also those that have left the window.
    pub total_positions: f64,
    /// Generation of the oldest game.
    pub oldest_generation: u32,
    /// Generation of the newest game.
    pub newest_generation: u32,
    /// Mean age of the weighted positions in generations; those of the newest have age 0.
    pub mean_age: f64,
    /// Mean length of the games in plies.
    pub mean_plies: f64,
    /// Share of games won by the first player, 0 to 1.
    pub first_share: f64,
    /// Share of games drawn.
    pub draw_share: f64,
    /// Share of games that reached the largest number of plies.
    pub capped_share: f64,
    /// Share of games that ended by repetition.
    pub repetition_share: f64,
    /// Memory in bytes.
    pub bytes: usize,
}

/// A game and where its draw weights lie among those of all games ever.
#[derive(Debug)]
struct Slot {
    game: PackedGame,
    /// Steps of all games up to and with this one.
    through: u64,
}

/// What a game takes in the list: a growing list has up to twice the room that it needs.
const SLOT_BYTES: usize = 2 * size_of::<Slot>();

/// The newest games, packed. What it holds depends only on the games of the run so far, not on how they were cut into
/// generations or whether the window was built up or loaded again.
#[derive(Debug)]
pub struct ReplayWindow {
    params: ReplayParams,
    sampling: SampleParams,
    /// The game with its options, once there is one.
    game: Option<String>,
    slots: VecDeque<Slot>,
    /// Steps before the first game that is held, and with all of them.
    before: u64,
    total: u64,
    heap: usize,
}

impl ReplayWindow {
    /// An empty window of a new run. Draw weights follow `sampling`.
    pub fn new(params: ReplayParams, sampling: SampleParams) -> Self {
        Self::resumed(params, sampling, 0)
    }

    /// An empty window of a run whose first generations are not loaded again: `before` is the
    /// [`total_steps`](Self::total_steps) they left behind.
    pub fn resumed(params: ReplayParams, sampling: SampleParams, before: u64) -> Self {
        Self { params, sampling, game: None, slots: VecDeque::new(), before, total: before, heap: 0 }
    }

    /// Adds the games of one generation, in order of their numbers whatever the order given, and lets go of those
    /// that the law or the memory limit pushes out.
    ///
    /// # Errors
    /// When a record is not a game of `game` by its rules, or the window holds another game; then none is added.
    pub fn push<G: Game>(&mut self, game: &G, records: &[GameRecord]) -> Result<(), ReplayError> {
        if let (Some(record), Some(expected)) = (records.first(), &self.game)
            && record.game != *expected
        {
            let (found, expected) = (record.game.clone(), expected.clone());
            return Err(record.fault(None, ReplayFault::OtherGame { found, expected }));
        }
        let startpos = game.state_text(&game.startpos());
        let mut order: Vec<&GameRecord> = records.iter().collect();
        order.sort_by_key(|record| (record.generation, record.index));
        let pack = |record: &&GameRecord| PackedGame::new(game, record, &startpos, &self.sampling);
        let packed: Vec<PackedGame> = order.iter().map(pack).collect::<Result<_, _>>()?;
        self.game = records.first().map(|record| record.game.clone()).or(self.game.take());
        for packed in packed {
            self.total += u64::from(packed.steps);
            self.heap += packed.heap_bytes();
            self.slots.push_back(Slot { game: packed, through: self.total });
            self.evict();
        }
        Ok(())
    }

    fn evict(&mut self) {
        let limit = self.params.window_steps(self.total);
        let max_bytes = usize::try_from(self.params.max_bytes).unwrap_or(usize::MAX);
        while self.slots.len() > 1 {
            let oldest = &self.slots[0];
            if self.total - oldest.through < limit && self.bytes_used() <= max_bytes {
                break;
            }
            self.before = oldest.through;
            self.heap -= oldest.game.heap_bytes();
            self.slots.pop_front();
        }
    }

    /// Memory in bytes, the list's spare room and the allocator's overhead included.
    pub fn bytes_used(&self) -> usize {
        self.heap + self.slots.len() * SLOT_BYTES
    }

    /// Draw weights of all games since the start of the run, in steps of 1/1024 position: what a run
    /// stores for [`resumed`](Self::resumed) and [`ReplayParams::first_generation`].
    pub fn total_steps(&self) -> u64 {
        self.total
    }

    /// Weighted positions made since the start of the run.
    pub fn total_positions(&self) -> f64 {
        self.total as f64 / f64::from(WEIGHT_STEPS)
    }

    /// Weighted positions in the window.
    pub fn positions(&self) -> f64 {
        self.steps() as f64 / f64::from(WEIGHT_STEPS)
    }

    /// Draw weights of the games held, in steps.
    pub(super) fn steps(&self) -> u64 {
        self.total - self.before
    }

    /// The game with its options that the window holds; `None` as long as it is empty.
    pub fn game(&self) -> Option<&str> {
        self.game.as_deref()
    }

    /// Games in the window.
    pub fn games(&self) -> usize {
        self.slots.len()
    }

    /// The game and ply that hold step `step`, which is below [`steps`](Self::steps).
    pub(super) fn at(&self, step: u64) -> (&PackedGame, usize) {
        let step = self.before + step;
        let place = self.slots.partition_point(|slot| slot.through <= step);
        let slot = &self.slots[place];
        let first = slot.through - u64::from(slot.game.steps);
        (&slot.game, slot.game.ply_at((step - first) as u32))
    }

    /// A game and a ply of it, drawn by their weights; `None` where there is nothing to draw.
    pub(super) fn draw(&self, random: &mut Stream) -> Option<(&PackedGame, usize)> {
        let total = self.steps();
        // The bias of a draw by multiplication is below total / 2^64.
        let step = ((u128::from(random.bits()) * u128::from(total)) >> 64) as u64;
        (total > 0).then(|| self.at(step))
    }

    /// A game of the window, drawn in proportion to what it teaches; `None` where there is nothing to draw.
    pub fn old_game(&self, random: &mut Stream) -> Option<OldGame> {
        let (game, _) = self.draw(random)?;
        Some(OldGame {
            start: game.start().map(str::to_owned),
            opening: (0..game.plies()).take_while(|&ply| game.kind(ply) == PlyKind::Opening).count(),
            moves: game.moves(game.plies()).collect(),
            end: RecordEnd { outcome: game.outcome, reason: game.finish },
        })
    }

    /// What the window holds; looks at every game.
    pub fn stats(&self) -> WindowStats {
        let (Some(first), Some(last)) = (self.slots.front(), self.slots.back()) else {
            return WindowStats { total_positions: self.total_positions(), ..WindowStats::default() };
        };
        let games = self.slots.len() as f64;
        let share =
            |of: &dyn Fn(&PackedGame) -> bool| self.slots.iter().filter(|slot| of(&slot.game)).count() as f64 / games;
        let newest = last.game.generation;
        let age = |slot: &Slot| f64::from(newest - slot.game.generation.min(newest)) * f64::from(slot.game.steps);
        WindowStats {
            games: self.slots.len(),
            positions: self.slots.iter().map(|slot| slot.game.drawn_plies()).sum(),
            weighted_positions: self.positions(),
            total_positions: self.total_positions(),
            oldest_generation: first.game.generation,
            newest_generation: newest,
            mean_age: self.slots.iter().map(age).sum::<f64>() / (self.steps().max(1) as f64),
            mean_plies: self.slots.iter().map(|slot| slot.game.plies()).sum::<usize>() as f64 / games,
            first_share: share(&|game| game.outcome == Outcome::Win(Player::First)),
            draw_share: share(&|game| game.outcome == Outcome::Draw),
            capped_share: share(&|game| game.finish == Finish::PlyCap),
            repetition_share: share(&|game| game.finish == Finish::Repetition),
            bytes: self.bytes_used(),
        }
    }
}

#[cfg(test)]
#[path = "window_tests.rs"]
mod tests;
