//! Small networks and random batches for this module's tests.

use crate::game::{PlaneShape, PolicyShape};
use crate::net::{Architecture, AuxiliaryHeads, Mlp, NetSpec, Resnet};
use crate::train::batch::{AuxiliaryView, BatchView};
use crate::train::crew::Crew;
use crate::util::rng::Stream;

/// A batch that owns its numbers.
pub(crate) struct OwnedBatch {
    pub size: usize,
    pub planes: Vec<f32>,
    pub legal: Vec<f32>,
    pub policy: Vec<f32>,
    pub policy_weight: Vec<f32>,
    pub value: Vec<f32>,
    pub weight: Vec<f32>,
    pub ending: Vec<f32>,
    pub ending_weight: Vec<f32>,
    pub reply: Vec<f32>,
    pub reply_weight: Vec<f32>,
}

impl OwnedBatch {
    pub(crate) fn view(&self) -> BatchView<'_> {
        BatchView {
            size: self.size,
            planes: &self.planes,
            legal: &self.legal,
            policy: &self.policy,
            policy_weight: &self.policy_weight,
            value: &self.value,
            weight: &self.weight,
            auxiliary: AuxiliaryView {
                ending: &self.ending,
                ending_weight: &self.ending_weight,
                reply: &self.reply,
                reply_weight: &self.reply_weight,
            },
        }
    }
}

/// `size` random positions: binary planes, about half of the moves legal, all weights 1.
pub(crate) fn batch(spec: &NetSpec, size: usize, seed: u64) -> OwnedBatch {
    let mut random = Stream::test(seed);
    let actions = spec.action_count();
    let mut batch = OwnedBatch {
        size,
        planes: (0..size * spec.input.len()).map(|_| random.below(2) as f32).collect(),
        legal: vec![0.0; size * actions],
        policy: vec![0.0; size * actions],
        policy_weight: vec![1.0; size],
        value: vec![0.0; size * 3],
        weight: vec![1.0; size],
        ending: Vec::new(),
        ending_weight: Vec::new(),
        reply: Vec::new(),
        reply_weight: Vec::new(),
    };
    for row in 0..size {
        let legal = &mut batch.legal[row * actions..(row + 1) * actions];
        legal.iter_mut().for_each(|x| *x = random.below(2) as f32);
        legal[random.below(actions)] = 1.0;
        let slots: Vec<usize> = (0..actions).filter(|&a| legal[a] == 1.0).collect();
        let mut target = vec![0.0; slots.len()];
        random.dirichlet(0.5, &mut target);
        for (&slot, p) in slots.iter().zip(target) {
            batch.policy[row * actions + slot] = p;
        }
        random.dirichlet(0.5, &mut batch.value[row * 3..(row + 1) * 3]);
    }
    if spec.ending_count() > 0 {
        batch.ending = (0..size * spec.ending_count()).map(|_| random.below(2) as f32).collect();
        batch.ending_weight = vec![1.0; size];
    }
    if spec.auxiliary.reply {
        batch.reply = vec![0.0; size * actions];
        batch.reply.chunks_mut(actions).for_each(|row| random.dirichlet(0.5, row));
        batch.reply_weight = vec![1.0; size];
    }
    batch
}

/// The same network with both auxiliary heads.
pub(crate) fn with_auxiliary(spec: &NetSpec) -> NetSpec {
    NetSpec { auxiliary: AuxiliaryHeads { ending: PolicyShape { planes: 2, flat: 3 }, reply: true }, ..spec.clone() }
}

fn spec(architecture: Architecture) -> NetSpec {
    NetSpec {
        input: PlaneShape { channels: 3, height: 4, width: 5 },
        policy: PolicyShape { planes: 1, flat: 3 },
        architecture,
        auxiliary: AuxiliaryHeads::default(),
    }
}

/// Two blocks of eight channels with global pooling on a board of 4x5 with 23 actions.
pub(crate) fn small_resnet() -> NetSpec {
    spec(Architecture::Resnet(Resnet { blocks: 2, channels: 8, global_pooling: true, ..Resnet::default() }))
}

/// One hidden layer of 16 on the same board.
pub(crate) fn small_mlp() -> NetSpec {
    spec(Architecture::Mlp(Mlp { hidden: vec![16] }))
}

/// The same with so many units that an update is made in several pieces.
pub(crate) fn wide_mlp() -> NetSpec {
    spec(Architecture::Mlp(Mlp { hidden: vec![300] }))
}

/// Two threads for updates.
pub(crate) fn crew() -> Crew {
    Crew::new(2).unwrap()
}
