//! Training samples: positions drawn from the window, with their targets.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::packed::PackedGame;
use super::quant;
use super::record::PlyKind;
use super::targets::value_target;
use super::window::ReplayWindow;
use crate::game::{Action, Game, PlaneShape, WdlPov, full_name};
use crate::util::rng::{Purpose, Stream};

/// What is drawn, and which targets it gets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SampleParams {
    /// Share of the search's root value in the value target; the rest is the result of the game. More makes
    /// the target less noisy and more biased. Proven results are not mixed.
    #[schemars(range(min = 0.0, max = 1.0), extend("x-unit" = "share of the target", "x-paper" = "0 (AlphaZero)"))]
    pub q_mix: f32,
    /// How often a position with a cheap search is drawn, relative to one with a full search. It trains the value
    /// head only. 0 leaves such positions out.
    #[schemars(range(min = 0.0, max = 1.0), extend("x-unit" = "none", "x-paper" = "0 (KataGo)"))]
    pub fast_weight: f32,
    /// The same for positions with a single legal move.
    #[schemars(range(min = 0.0, max = 1.0), extend("x-unit" = "none", "x-paper" = "1 (AlphaZero)"))]
    pub forced_weight: f32,
    /// Whether each sample is seen through a random symmetry of the game.
    #[schemars(extend("x-paper" = "true (AlphaGo Zero), false (AlphaZero)"))]
    pub symmetries: bool,
}

impl Default for SampleParams {
    fn default() -> Self {
        Self { q_mix: 0.25, fast_weight: 0.25, forced_weight: 0.25, symmetries: true }
    }
}

/// Why no batch could be drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SampleError {
    /// The window holds no position that may be drawn.
    #[error("the replay window holds no position to train on: play games first, or give positions a weight above 0")]
    Empty,
    /// The window holds another game, or the batch was made for another one.
    #[error("the {0} does not belong to the game of the sampler")]
    Mismatch(&'static str),
}

/// Names the random streams of one batch: row r draws from (`seed`, samples, `generation`, `step`, r), so a row
/// depends neither on other rows nor on threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SampleKey {
    /// Seed of the run.
    pub seed: u64,
    /// Generation that is learned from.
    pub generation: u64,
    /// Training step within it.
    pub step: u64,
}

/// Which targets samples get besides policy and value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FurtherTargets {
    /// What holds in the final position ([`Game::ending_shape`]).
    pub ending: bool,
    /// The opponent's next move.
    pub reply: bool,
}

/// Samples side by side. B rows, A actions, E facts of an ending; each list is row-major.
#[derive(Clone, Debug, PartialEq)]
pub struct Batch {
    /// B.
    pub size: usize,
    /// A.
    pub actions: usize,
    /// C, H and W.
    pub shape: PlaneShape,
    /// Encoded positions from the mover's view, `[B, C, H, W]`.
    pub planes: Vec<f32>,
    /// 1 where a move is legal, else 0, `[B, A]`.
    pub legal: Vec<f32>,
    /// Policy target, `[B, A]`: sums to 1 over the legal moves, or is all 0 where `policy_weight` is 0.
    pub policy: Vec<f32>,
    /// 1 where the policy is trained, 0 where it is not, `[B]`.
    pub policy_weight: Vec<f32>,
    /// Value target, `[B, 3]`: win, draw, loss of the mover, sum 1.
    pub value: Vec<f32>,
    /// Weight of the row in the loss, `[B]`. 1 everywhere: rows are drawn in proportion to their weights.
    pub weight: Vec<f32>,
    /// What holds in the final position as the mover sees it, `[B, E]`, 0 or 1. This list and the following ones are empty where
    /// nobody asked for them.
    pub ending: Vec<f32>,
    /// 1 where that is known, 0 where the game was not played to its end, `[B]`.
    pub ending_weight: Vec<f32>,
    /// Policy target of the opponent's next position, `[B, A]`: what a full search says, or the forced move; all 0 elsewhere.
    pub reply: Vec<f32>,
    /// 1 where there is such a target, else 0, `[B]`.
    pub reply_weight: Vec<f32>,
}

impl Batch {
    /// An empty batch of `size` rows for `game`, with room for these targets.
    pub fn new<G: Game>(game: &G, size: usize, further: FurtherTargets) -> Self {
        let (shape, actions) = (game.plane_shape(), game.action_count());
        let facts = if further.ending { game.ending_shape().slots(shape.cells()) } else { 0 };
        let replies = if further.reply { actions } else { 0 };
        Self {
            size,
            actions,
            shape,
            planes: vec![0.0; size * shape.len()],
            legal: vec![0.0; size * actions],
            policy: vec![0.0; size * actions],
            policy_weight: vec![0.0; size],
            value: vec![0.0; size * 3],
            weight: vec![0.0; size],
            ending: vec![0.0; size * facts],
            ending_weight: vec![0.0; size * facts.min(1)],
            reply: vec![0.0; size * replies],
            reply_weight: vec![0.0; size * replies.min(1)],
        }
    }

    /// All rows.
    fn rows(&mut self) -> BatchRows<'_> {
        BatchRows {
            first: 0,
            count: self.size,
            actions: self.actions,
            shape: self.shape,
            planes: &mut self.planes,
            legal: &mut self.legal,
            policy: &mut self.policy,
            policy_weight: &mut self.policy_weight,
            value: &mut self.value,
            weight: &mut self.weight,
            ending: &mut self.ending,
            ending_weight: &mut self.ending_weight,
            reply: &mut self.reply,
            reply_weight: &mut self.reply_weight,
        }
    }

    /// Cuts the batch into pieces of at most `rows` rows, for filling on several threads.
    ///
    /// # Panics
    /// When `rows` is 0.
    pub fn pieces(&mut self, rows: usize) -> impl Iterator<Item = BatchRows<'_>> {
        assert!(rows > 0, "pieces have rows");
        let mut rest = self.rows();
        std::iter::from_fn(move || (rest.count > 0).then(|| rest.take(rows)))
    }
}

/// Some neighbouring rows of a [`Batch`].
#[derive(Debug)]
pub struct BatchRows<'a> {
    /// Number of the first row within the batch.
    first: usize,
    count: usize,
    actions: usize,
    shape: PlaneShape,
    planes: &'a mut [f32],
    legal: &'a mut [f32],
    policy: &'a mut [f32],
    policy_weight: &'a mut [f32],
    value: &'a mut [f32],
    weight: &'a mut [f32],
    ending: &'a mut [f32],
    ending_weight: &'a mut [f32],
    reply: &'a mut [f32],
    reply_weight: &'a mut [f32],
}

impl<'a> BatchRows<'a> {
    /// Cuts off the first `rows` rows, or all there are.
    fn take(&mut self, rows: usize) -> Self {
        let (first, rows, count) = (self.first, rows.min(self.count), self.count);
        let cut = |list: &mut &'a mut [f32]| {
            let whole = std::mem::take(list);
            let width = whole.len() / count.max(1);
            let (head, tail) = whole.split_at_mut(rows * width);
            *list = tail;
            head
        };
        self.first += rows;
        self.count -= rows;
        Self {
            first,
            count: rows,
            actions: self.actions,
            shape: self.shape,
            planes: cut(&mut self.planes),
            legal: cut(&mut self.legal),
            policy: cut(&mut self.policy),
            policy_weight: cut(&mut self.policy_weight),
            value: cut(&mut self.value),
            weight: cut(&mut self.weight),
            ending: cut(&mut self.ending),
            ending_weight: cut(&mut self.ending_weight),
            reply: cut(&mut self.reply),
            reply_weight: cut(&mut self.reply_weight),
        }
    }
}

/// Draws samples from a window.
#[derive(Clone, Debug)]
pub struct Sampler<G: Game> {
    game: G,
    name: String,
    params: SampleParams,
    startpos: G::State,
}

impl<G: Game> Sampler<G> {
    /// A sampler for `game`. Draw weights are the window's, which should have the same `params`.
    pub fn new(game: G, params: SampleParams) -> Self {
        let (name, startpos) = (full_name(&game), game.startpos());
        Self { game, name, params, startpos }
    }

    /// Fills the whole batch on this thread.
    ///
    /// # Errors
    /// When the window has nothing to draw, or is of another game.
    pub fn fill(&self, window: &ReplayWindow, key: SampleKey, batch: &mut Batch) -> Result<(), SampleError> {
        let rows = batch.size.max(1);
        batch.pieces(rows).try_for_each(|mut piece| self.fill_rows(window, key, &mut piece))
    }

    /// Fills some rows of a batch; whoever fills the others, the batch is the same.
    ///
    /// # Errors
    /// When the window has nothing to draw, or is of another game.
    pub fn fill_rows(
        &self,
        window: &ReplayWindow,
        key: SampleKey,
        rows: &mut BatchRows<'_>,
    ) -> Result<(), SampleError> {
        if window.steps() == 0 {
            return Err(SampleError::Empty);
        }
        let facts = self.game.ending_shape().slots(rows.shape.cells()) * rows.ending_weight.len();
        if rows.shape != self.game.plane_shape()
            || rows.actions != self.game.action_count()
            || rows.ending.len() != facts
        {
            return Err(SampleError::Mismatch("batch"));
        }
        if window.game() != Some(&self.name) {
            return Err(SampleError::Mismatch("window"));
        }
        rows.planes.fill(0.0);
        rows.legal.fill(0.0);
        rows.policy.fill(0.0);
        rows.weight.fill(1.0);
        for list in [&mut rows.ending, &mut rows.ending_weight, &mut rows.reply, &mut rows.reply_weight] {
            list.fill(0.0);
        }
        let symmetries = if self.params.symmetries { self.game.symmetry_count() } else { 1 };
        let (mut state, mut moves) = (self.startpos.clone(), Vec::new());
        for row in 0..rows.count {
            let indices = [key.generation, key.step, (rows.first + row) as u64];
            let mut stream = Stream::keyed(key.seed, Purpose::Samples, &indices);
            let (game, ply) = window.draw(&mut stream).ok_or(SampleError::Empty)?;
            let symmetry = stream.below(symmetries);
            self.replay(game, ply, symmetry, &mut state);
            self.write(game, ply, &state, symmetry, rows, row, &mut moves);
            self.foresee(game, ply, &mut state, symmetry, rows, row);
        }
        Ok(())
    }

    /// The position before ply `ply`, seen through a symmetry. The start is mapped and then the moves, which by the
    /// laws of a game is the same as mapping the position, and cheaper where positions carry a history.
    fn replay(&self, game: &PackedGame, ply: usize, symmetry: usize, state: &mut G::State) {
        match (game.start(), symmetry) {
            (None, 0) => state.clone_from(&self.startpos),
            (None, _) => *state = self.game.map_state(&self.startpos, symmetry),
            (Some(text), _) => {
                let start = self.game.parse_state(text).expect("checked when it came into the window");
                *state = if symmetry == 0 { start } else { self.game.map_state(&start, symmetry) };
            }
        }
        for action in game.moves(ply) {
            self.game.play(state, self.map(action, symmetry));
        }
    }

    fn map(&self, action: Action, symmetry: usize) -> Action {
        if symmetry == 0 { action } else { self.game.map_action(action, symmetry) }
    }

    #[expect(clippy::too_many_arguments, reason = "one row: where it comes from, how it is seen, where it goes")]
    fn write(
        &self,
        game: &PackedGame,
        ply: usize,
        state: &G::State,
        symmetry: usize,
        rows: &mut BatchRows<'_>,
        row: usize,
        moves: &mut Vec<Action>,
    ) {
        let width = rows.shape.len();
        self.game.encode(state, &mut rows.planes[row * width..(row + 1) * width]);
        let span = row * rows.actions..(row + 1) * rows.actions;
        let (legal, target) = (&mut rows.legal[span.clone()], &mut rows.policy[span]);
        moves.clear();
        self.game.legal(state, moves);
        for action in moves.iter() {
            legal[action.index()] = 1.0;
        }
        let policy = game.policy(ply);
        rows.policy_weight[row] = if policy.len() > 0 { 1.0 } else { 0.0 };
        for (action, part) in policy {
            target[self.map(action, symmetry).index()] = quant::share(part);
        }
        let value = value_target(game, ply, self.params.q_mix);
        let WdlPov { win, draw, loss } = value.pov(self.game.to_move(state));
        rows.value[3 * row..3 * row + 3].copy_from_slice(&[win, draw, loss]);
    }

    /// Plays on from the position before ply `ply` as far as the targets need that are asked for, and writes them.
    fn foresee(
        &self,
        game: &PackedGame,
        ply: usize,
        state: &mut G::State,
        symmetry: usize,
        rows: &mut BatchRows<'_>,
        row: usize,
    ) {
        let mover = self.game.to_move(state);
        let mut reply_missing = !rows.reply_weight.is_empty();
        let ending_missing = !rows.ending_weight.is_empty() && game.finish.by_the_game();
        for (later, action) in game.moves(game.plies()).enumerate().skip(ply) {
            if reply_missing && self.game.to_move(state) != mover {
                reply_missing = false;
                let target = &mut rows.reply[row * rows.actions..(row + 1) * rows.actions];
                for (action, part) in game.policy(later) {
                    target[self.map(action, symmetry).index()] = quant::share(part);
                    rows.reply_weight[row] = 1.0;
                }
                if game.kind(later) == PlyKind::Forced {
                    target[self.map(action, symmetry).index()] = 1.0;
                    rows.reply_weight[row] = 1.0;
                }
            }
            if !reply_missing && !ending_missing {
                return;
            }
            self.game.play(state, self.map(action, symmetry));
        }
        if ending_missing {
            let facts = rows.ending.len() / rows.count;
            self.game.encode_ending(state, mover, &mut rows.ending[row * facts..(row + 1) * facts]);
            rows.ending_weight[row] = 1.0;
        }
    }
}

#[cfg(test)]
#[path = "sample_tests.rs"]
mod tests;
