//! Networks and inputs for the tests of this module.

use crate::game::{PlaneShape, PolicyShape};
use crate::net::spec::{Architecture, AuxiliaryHeads, Mlp, NetSpec, Resnet, Role};
use crate::net::weights::Weights;
use crate::util::rng::Stream;

pub fn spec(architecture: Architecture) -> NetSpec {
    NetSpec {
        input: PlaneShape { channels: 3, height: 4, width: 5 },
        policy: PolicyShape { planes: 2, flat: 3 },
        architecture,
        auxiliary: AuxiliaryHeads::default(),
    }
}

/// One small network of each kind, with every feature used.
pub fn specs() -> Vec<NetSpec> {
    let net = Resnet { blocks: 2, channels: 16, global_pooling: true, value_hidden: 16, ..Resnet::default() };
    let flat_only = NetSpec { policy: PolicyShape { planes: 0, flat: 7 }, ..spec(Architecture::Resnet(net.clone())) };
    let planes_only = NetSpec { policy: PolicyShape { planes: 1, flat: 0 }, ..spec(Architecture::Resnet(net.clone())) };
    let mlp = spec(Architecture::Mlp(Mlp { hidden: vec![32, 16] }));
    vec![spec(Architecture::Resnet(net)), flat_only, planes_only, mlp]
}

/// Weights as after training: normalisations with all kinds of statistics, heads that have opinions.
pub fn trained(spec: &NetSpec, seed: u64) -> Weights {
    let mut random = Stream::test(seed);
    let mut weights = Weights::init(spec, &mut random);
    for info in spec.tensors() {
        let data = &mut weights.0.get_mut(&info.name).expect("every tensor").data;
        for x in data {
            *x = match info.role {
                Role::Kernel { gain, .. } => *x / gain,
                Role::Bias | Role::Mean => 0.2 * random.normal() as f32,
                Role::Scale => 1.0 + 0.2 * random.normal() as f32,
                Role::Variance => (0.5 + random.unit()) as f32,
            };
        }
    }
    weights
}

/// Planes of `batch` positions, 30 % ones.
pub fn planes(spec: &NetSpec, batch: usize, seed: u64) -> Vec<f32> {
    let mut random = Stream::test(seed);
    (0..batch * spec.input.len()).map(|_| f32::from(random.unit() < 0.3)).collect()
}
