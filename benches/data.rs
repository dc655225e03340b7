//! Speed of the data path on one core, and what a position takes in memory and on disk, for each game:
//! drawing samples, bringing games into the window, writing and reading files, the evaluation cache.
//!
//! Games are random ones whose searches (half of them full) are drawn from a Dirichlet distribution, which compresses
//! worse than what a real search leaves behind.

use std::hint::black_box;
use std::sync::Arc;

use criterion::{BenchmarkGroup, Criterion, Throughput, criterion_group, criterion_main, measurement::WallTime};
use sparring::data::{
    self, Batch, FurtherTargets, GameRecord, PlyKind, PlyRecord, ReplayParams, ReplayWindow, SampleKey, SampleParams,
    Sampler,
};
use sparring::eval::{Cached, EvalCache, Evaluations, Evaluator as _, HashEval, Leaves};
use sparring::game::{Game, WdlAbs, full_name, legal_list};
use sparring::games::{GameVisitor, NAMES, dispatch};
use sparring::util::rng::Stream;

fn random_record<G: Game>(game: &G, stream: &mut Stream, index: u32) -> GameRecord {
    let mut state = game.start(stream);
    let start = game.state_text(&state);
    let mut plies = Vec::new();
    let end = loop {
        if let Some(end) = game.end(&state) {
            break end;
        }
        let legal = legal_list(game, &state);
        let kind = match legal.len() {
            1 => PlyKind::Forced,
            _ if stream.below(2) == 0 => PlyKind::Fast,
            _ => PlyKind::Full,
        };
        let mut policy = vec![0.0; if kind == PlyKind::Full { legal.len() } else { 0 }];
        if !policy.is_empty() {
            stream.dirichlet(0.3, &mut policy);
        }
        let mut wdl = [0.0; 3];
        stream.dirichlet(1.0, &mut wdl);
        let value = WdlAbs { first: wdl[0], draw: wdl[1], second: wdl[2] };
        let action = legal[stream.below(legal.len())];
        plies.push(PlyRecord { action, kind, value, policy, proven: None, weight: 1.0 });
        game.play(&mut state, action);
    };
    let (game, rules_version) = (full_name(game), G::RULES_VERSION);
    GameRecord { game, rules_version, seed: 1, generation: 0, index, start, plies, end: end.into() }
}

/// All measurements of one game.
struct Measure<'c>(&'c mut Criterion);

impl GameVisitor for Measure<'_> {
    type Output = ();

    fn visit<G: Game>(self, game: G) {
        let mut stream = Stream::test(1);
        let records: Vec<GameRecord> = (0..3000).map(|index| random_record(&game, &mut stream, index)).collect();
        let plies: usize = records.iter().map(|record| record.plies.len()).sum();
        let params = SampleParams { fast_weight: 1.0, ..SampleParams::default() };
        let mut window = ReplayWindow::new(ReplayParams::default(), params.clone());
        window.push(&game, &records).expect("the games are legal");
        let held = window.stats();
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("games");
        data::write(&path, &records).expect("the folder can be written");
        let size = std::fs::metadata(&path).expect("it was written").len();
        println!(
            "{}: {} positions, in memory {:.1} bytes each, on disk {:.1}",
            G::NAME,
            plies,
            held.bytes as f64 / (held.mean_plies * held.games as f64),
            size as f64 / plies as f64,
        );

        let mut group = self.0.benchmark_group(G::NAME);
        let sampler = Sampler::new(game.clone(), params.clone());
        let mut batch = Batch::new(&game, 256, FurtherTargets::default());
        let mut step = 0;
        group.throughput(Throughput::Elements(256));
        group.bench_function("samples", |bencher| {
            bencher.iter(|| {
                step += 1;
                let key = SampleKey { seed: 1, generation: 0, step };
                sampler.fill(&window, key, &mut batch).expect("there are games");
            });
        });
        group.throughput(Throughput::Elements(plies as u64));
        group.sample_size(10);
        group.bench_function("positions into the window", |bencher| {
            bencher.iter(|| {
                let mut window = ReplayWindow::new(ReplayParams::default(), params.clone());
                window.push(&game, black_box(&records)).expect("the games are legal");
                window
            });
        });
        group.bench_function("positions written", |bencher| bencher.iter(|| data::write(&path, &records)));
        group.bench_function("positions read", |bencher| bencher.iter(|| data::read(&path)));
        cached(&mut group, &game, &records);
        group.finish();
    }
}

/// Answers from the cache, all of them hits.
fn cached<G: Game>(group: &mut BenchmarkGroup<'_, WallTime>, game: &G, records: &[GameRecord]) {
    let mut leaves = Leaves::default();
    for record in &records[..64] {
        for (state, _) in record.replay(game).expect("the games are legal") {
            leaves.push(&state, &legal_list(game, &state));
        }
    }
    let mut evaluator = Cached::new(HashEval::default(), Arc::new(EvalCache::<G::Key>::new(64 << 20)));
    let mut out = Evaluations::default();
    group.throughput(Throughput::Elements(leaves.len() as u64));
    group.bench_function("cache hits", |bencher| bencher.iter(|| evaluator.evaluate(game, &leaves, &mut out)));
}

fn all_games(criterion: &mut Criterion) {
    for name in NAMES {
        dispatch(name, Measure(&mut *criterion)).expect("registered names are right");
    }
}

criterion_group!(benches, all_games);
criterion_main!(benches);
