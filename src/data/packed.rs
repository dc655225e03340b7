//! A game in the memory of the replay window.
//!
//! One allocation of `u16`s, column after column (P plies):
//!
//! ```text
//! P moves | P draw weights | P marks | P values first | P values draw | P policy lengths | all policies
//! ```
//!
//! A policy is a list of pairs, action and part, without the parts of 0. With the actions at hand a sample can be
//! replayed in mapped moves, where the legal moves come in another order than in the record. A ply takes 12 bytes and
//! a policy entry 4. The columns that drawing reads are contiguous.

use crate::game::{Action, Game, Outcome, WdlAbs};

use super::codec::{marks, unmark};
use super::quant;
use super::record::{Finish, GameRecord, PlyKind, ReplayError};
use super::sample::SampleParams;

const COLUMNS: usize = 6;

/// A game with what drawing and targets need.
#[derive(Clone, Debug)]
pub(super) struct PackedGame {
    data: Box<[u16]>,
    /// The start position, `None` where it is the game's `startpos`.
    start: Option<Box<str>>,
    plies: u16,
    pub(super) generation: u32,
    /// Draw weights of all plies, in steps of 1/[`quant::WEIGHT_STEPS`].
    pub(super) steps: u32,
    pub(super) outcome: Outcome,
    pub(super) finish: Finish,
}

/// In how many steps a position of this kind and weight is drawn.
fn draw_steps(kind: PlyKind, steps: u16, params: &SampleParams) -> u16 {
    let factor = match kind {
        PlyKind::Opening => return 0,
        PlyKind::Full => return steps,
        PlyKind::Fast => params.fast_weight,
        PlyKind::Forced => params.forced_weight,
    };
    quant::weight_steps(quant::weight(steps) * factor.clamp(0.0, 1.0))
}

impl PackedGame {
    /// Checks a record and packs it; `startpos` is the text of the usual start.
    pub(super) fn new<G: Game>(
        game: &G,
        record: &GameRecord,
        startpos: &str,
        params: &SampleParams,
    ) -> Result<Self, ReplayError> {
        let plies = &record.plies;
        let (mut lengths, mut policies, mut parts) = (Vec::with_capacity(plies.len()), Vec::new(), Vec::new());
        record.check_with(game, |ply, legal| {
            parts.clear();
            if !ply.policy.is_empty() {
                quant::parts(&ply.policy, &mut parts);
            }
            let before = policies.len();
            let entries = legal.iter().zip(&parts).filter(|(_, part)| **part > 0);
            policies.extend(entries.flat_map(|(action, &part)| [action.0, part]));
            lengths.push(((policies.len() - before) / 2) as u16);
        })?;
        let mut data = Vec::with_capacity(COLUMNS * plies.len() + policies.len());
        data.extend(plies.iter().map(|ply| ply.action.0));
        data.extend(plies.iter().map(|ply| draw_steps(ply.kind, quant::weight_steps(ply.weight), params)));
        data.extend(plies.iter().map(|ply| u16::from(marks(ply))));
        let values: Vec<[u16; 2]> = plies.iter().map(|ply| quant::value_parts(ply.value)).collect();
        data.extend(values.iter().map(|value| value[0]));
        data.extend(values.iter().map(|value| value[1]));
        data.extend(lengths);
        data.extend(policies);
        let steps = data[plies.len()..2 * plies.len()].iter().copied().map(u32::from).sum();
        Ok(Self {
            data: data.into_boxed_slice(),
            start: (record.start != startpos).then(|| record.start.as_str().into()),
            plies: plies.len() as u16,
            generation: record.generation,
            steps,
            outcome: record.end.outcome,
            finish: record.end.reason,
        })
    }

    fn column(&self, column: usize) -> &[u16] {
        let plies = self.plies();
        &self.data[column * plies..(column + 1) * plies]
    }

    /// Number of plies.
    pub(super) fn plies(&self) -> usize {
        usize::from(self.plies)
    }

    /// The start position, `None` where it is the game's `startpos`.
    pub(super) fn start(&self) -> Option<&str> {
        self.start.as_deref()
    }

    /// The first `count` moves.
    pub(super) fn moves(&self, count: usize) -> impl Iterator<Item = Action> {
        self.column(0)[..count].iter().map(|&action| Action(action))
    }

    /// Plies that are drawn at all.
    pub(super) fn drawn_plies(&self) -> usize {
        self.column(1).iter().filter(|steps| **steps > 0).count()
    }

    /// The ply that holds step `step` of the game's draw weights, which is below [`steps`](Self::steps).
    pub(super) fn ply_at(&self, mut step: u32) -> usize {
        for (ply, &steps) in self.column(1).iter().enumerate() {
            match step.checked_sub(u32::from(steps)) {
                Some(left) => step = left,
                None => return ply,
            }
        }
        unreachable!("the step is below the sum of the weights")
    }

    fn marks_of(&self, ply: usize) -> (PlyKind, Option<Outcome>) {
        unmark(self.column(2)[ply] as u8).expect("packed from a record's own marks")
    }

    /// How ply `ply` came about.
    pub(super) fn kind(&self, ply: usize) -> PlyKind {
        self.marks_of(ply).0
    }

    /// The proven result of the position before ply `ply`.
    pub(super) fn proven(&self, ply: usize) -> Option<Outcome> {
        self.marks_of(ply).1
    }

    /// Policy of ply `ply`, moves with their parts that are not 0; empty unless the search was full.
    pub(super) fn policy(&self, ply: usize) -> impl ExactSizeIterator<Item = (Action, u16)> {
        let lengths = self.column(5);
        let before: usize = lengths[..ply].iter().copied().map(usize::from).sum();
        let begin = COLUMNS * self.plies() + 2 * before;
        let entries = &self.data[begin..begin + 2 * usize::from(lengths[ply])];
        entries.chunks_exact(2).map(|entry| (Action(entry[0]), entry[1]))
    }

    /// Root value of the first search at ply `ply` or after it; `None` where none follows.
    pub(super) fn search_value(&self, ply: usize) -> Option<WdlAbs> {
        let searched = |&ply: &usize| matches!(self.marks_of(ply).0, PlyKind::Fast | PlyKind::Full);
        let ply = (ply..self.plies()).find(searched)?;
        Some(quant::value([self.column(3)[ply], self.column(4)[ply]]).expect("packed from a value"))
    }

    /// Bytes in memory beside the struct itself, allocation overhead included.
    pub(super) fn heap_bytes(&self) -> usize {
        let block = |bytes: usize| (bytes + 8).next_multiple_of(16);
        block(2 * self.data.len()) + self.start.as_ref().map_or(0, |start| block(start.len()))
    }
}
