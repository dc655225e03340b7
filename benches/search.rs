//! Simulations per second of the tree itself, on one thread.
//!
//! `cargo bench --bench search`; the third column of criterion's `thrpt` is in simulations per second.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use sparring::eval::{Evaluations, Evaluator, Leaves, Rollout, Uniform};
use sparring::game::Game;
use sparring::games::{connect4::ConnectFour, tictactoe::TicTacToe, uttt::Uttt};
use sparring::search::{Algorithm, Budget, Gathered, SearchParams, Tree};
use sparring::util::rng::Stream;

const SIMULATIONS: u32 = 800;

/// One search from the start position, one leaf at a time.
struct Bench<G: Game, E> {
    game: G,
    tree: Tree<G>,
    evaluator: E,
    leaves: Leaves<G>,
    answers: Evaluations,
}

impl<G: Game, E: Evaluator<G>> Bench<G, E> {
    fn new(game: G, tree: Tree<G>, evaluator: E) -> Self {
        Self { game, tree, evaluator, leaves: Leaves::default(), answers: Evaluations::default() }
    }

    fn search(&mut self) -> u32 {
        self.tree.reset(&self.game.startpos());
        self.tree.begin(Budget::plain(SIMULATIONS), Stream::test(1));
        while !self.tree.finished() {
            self.leaves.clear();
            if let Gathered::Leaf(ticket) = self.tree.gather(&self.game, &mut self.leaves) {
                self.evaluator.evaluate(&self.game, &self.leaves, &mut self.answers).expect("needs no engine");
                self.tree.apply(ticket, self.answers.values[0], &self.answers.priors);
            }
        }
        self.tree.simulations()
    }
}

fn one_game<G: Game>(c: &mut Criterion, game: &G) {
    let mut group = c.benchmark_group(G::NAME);
    group.throughput(Throughput::Elements(SIMULATIONS.into()));
    let start = game.startpos();
    for algorithm in [Algorithm::Puct, Algorithm::Gumbel] {
        // Without the solver, so that every search has the whole number of simulations.
        let params = SearchParams { algorithm, solver: false, ..Default::default() };
        let mut bench = Bench::new(game.clone(), Tree::new(params, start.clone()), Uniform);
        assert_eq!(bench.search(), SIMULATIONS);
        group.bench_function(format!("{algorithm:?} uniform"), |b| b.iter(|| bench.search()));
    }
    let rollouts = Rollout::new(Stream::test(1), 1);
    let mut bench = Bench::new(game.clone(), Tree::ucb1(1.0, 100_000, start), rollouts);
    group.bench_function("Ucb1 rollouts", |b| b.iter(|| bench.search()));
    group.finish();
}

fn all(c: &mut Criterion) {
    one_game(c, &TicTacToe);
    one_game(c, &ConnectFour);
    one_game(c, &Uttt);
}

criterion_group!(benches, all);
criterion_main!(benches);
