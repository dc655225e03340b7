//! Networks that no training was needed for.

use std::path::{Path, PathBuf};

use sparring::game::Game;
use sparring::games::{self, GameVisitor};
use sparring::net::{Architecture, Checkpoint, CheckpointInfo, Mlp, NetSpec, Resnet, Role, Weights};
use sparring::util::rng::Stream;

/// A small network of each architecture, as it begins and as after training: with opinions, and with normalisations that do
/// something.
struct Networks<'a>(&'a Path);

impl GameVisitor for Networks<'_> {
    type Output = Vec<PathBuf>;

    fn visit<G: Game>(self, game: G) -> Vec<PathBuf> {
        let net = Resnet { blocks: 2, channels: 16, global_pooling: true, ..Resnet::default() };
        let kinds = [Architecture::Resnet(net), Architecture::Mlp(Mlp { hidden: vec![32, 16] })];
        let mut paths = Vec::new();
        for (kind, architecture) in kinds.into_iter().enumerate() {
            let spec = NetSpec::for_game(&game, architecture);
            let random = Weights::init(&spec, &mut Stream::test(1));
            let mut trained = random.clone();
            let mut stream = Stream::test(2);
            for info in spec.tensors() {
                for x in &mut trained.0.get_mut(&info.name).unwrap().data {
                    *x = match info.role {
                        Role::Kernel { gain, .. } => *x / gain.max(0.3),
                        Role::Bias | Role::Mean => 0.1 * stream.normal() as f32,
                        Role::Scale => 1.0 + 0.2 * stream.normal() as f32,
                        Role::Variance => (0.5 + stream.unit()) as f32,
                    };
                }
            }
            for (state, weights) in [("random", random), ("trained", trained)] {
                let path = self.0.join(format!("{}-{kind}-{state}.safetensors", G::NAME));
                let info = CheckpointInfo { step: 7, ..CheckpointInfo::untrained(&game, spec.clone()) };
                Checkpoint { info, weights }.save(&path).unwrap();
                paths.push(path);
            }
        }
        paths
    }
}

/// Their checkpoints: residual, random and trained, then `mlp`.
pub fn networks(name: &str, folder: &Path) -> Vec<PathBuf> {
    games::dispatch(name, Networks(folder)).unwrap()
}
