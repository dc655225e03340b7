//! Searches of the start position: trees are searched on one thread, a network may answer on all.

use super::{Bench, BenchError, Rows};
use crate::eval::{Evaluator, Rollout, Uniform};
use crate::game::Game;
use crate::net::NetEvaluator;
use crate::search::{Algorithm, Budget, SearchParams, Solo, Spread, Tree, width_of};
use crate::util::machine::cores;
use crate::util::rng::{Purpose, Stream};

/// Simulations of one search.
const SIMULATIONS: u32 = 800;

/// How leaves are judged.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Judge {
    /// At no cost, so that tree and rules are left.
    Uniform(Algorithm),
    /// By one random game: the player `mcts`.
    Rollouts,
    /// By the network, by the config's algorithm: leaf for leaf on one thread, or as many at once as where one position is
    /// analysed, on one thread or all.
    Network { together: bool, all_threads: bool },
}

/// The rows.
const CASES: [(&str, Judge); 6] = [
    ("uniform evaluator, puct", Judge::Uniform(Algorithm::Puct)),
    ("uniform evaluator, gumbel", Judge::Uniform(Algorithm::Gumbel)),
    ("random rollouts, ucb1", Judge::Rollouts),
    ("network, leaf for leaf", Judge::Network { together: false, all_threads: false }),
    ("network, several leaves, 1 thread", Judge::Network { together: true, all_threads: false }),
    ("network, several leaves, all threads", Judge::Network { together: true, all_threads: true }),
];

/// What a thread works with.
struct Worker<G: Game> {
    tree: Tree<G>,
    solo: Solo<G>,
    evaluator: Box<dyn Evaluator<G>>,
    together: bool,
    searches: u64,
}

impl<G: Game> Worker<G> {
    fn new(bench: &Bench<'_, G>, judge: Judge) -> Result<Self, BenchError> {
        let start = bench.game.startpos();
        let search = &bench.config.search;
        let (tree, evaluator): (_, Box<dyn Evaluator<G>>) = match judge {
            Judge::Uniform(algorithm) => {
                (Tree::new(SearchParams { algorithm, ..search.clone() }, start), Box::new(Uniform))
            }
            Judge::Rollouts => {
                let random = Stream::keyed(0, Purpose::Analysis, &[0]);
                (Tree::ucb1(1.0, SIMULATIONS + 2, start), Box::new(Rollout::new(random, 1)))
            }
            Judge::Network { all_threads, .. } => {
                let threads = if all_threads { cores() } else { 1 };
                let worker = || Ok(NetEvaluator::new(&bench.network()?.factory)?);
                let workers = (0..threads).map(|_| worker()).collect::<Result<_, BenchError>>()?;
                (Tree::new(search.clone(), start), Box::new(Spread::new(workers)?))
            }
        };
        let together = matches!(judge, Judge::Network { together: true, .. });
        Ok(Self { tree, solo: Solo::default(), evaluator, together, searches: 0 })
    }

    /// One search from the start, with nothing known.
    fn search(&mut self, game: &G) -> Result<u64, BenchError> {
        let start = self.tree.state().clone();
        self.tree.reset(&start);
        self.searches += 1;
        let random = Stream::keyed(0, Purpose::Analysis, &[1, self.searches]);
        self.tree.begin(Budget::plain(SIMULATIONS), random);
        let together = self.together;
        let width = |tree: &Tree<G>| if together { width_of(tree) } else { 1 };
        self.solo.search(&mut self.tree, game, self.evaluator.as_mut(), width, |_| true)?;
        Ok(u64::from(self.tree.simulations()))
    }
}

pub(super) fn measure<G: Game>(bench: &Bench<'_, G>, rows: &mut Rows<'_>) -> Result<(), BenchError> {
    for (case, judge) in CASES {
        match judge {
            Judge::Network { .. } if bench.network.is_none() => continue,
            Judge::Network { all_threads: true, .. } if cores() == 1 => continue,
            _ => {}
        }
        let work = |worker: &mut Worker<G>| worker.search(&bench.game);
        rows.add(case, "simulations/s", bench.rate(1, &|| Worker::new(bench, judge), &work)?);
    }
    Ok(())
}
