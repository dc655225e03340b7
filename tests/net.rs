//! Networks on the encodings of real games: every engine against libtorch float32, and the evaluator.

use sparring::eval::{Evaluations, Evaluator, Leaves, Rollout};
use sparring::game::{Action, Game, PolicyShape};
use sparring::games::{self, GameVisitor};
use sparring::net::{
    Architecture, Checkpoint, CheckpointInfo, DeviceName, Engine, EngineChoice, InferenceFactory, NetEvaluator,
    NetSpec, Precision, Resnet, Weights, available,
};
use sparring::search::{Budget, Solo, Tree};
use sparring::util::rng::Stream;

/// Positions of self-play, with their legal moves: most moves are found by a small search.
fn self_played<G: Game>(game: &G, count: usize) -> Leaves<G> {
    collect(game, count, |game, state, legal, random| {
        if random.unit() < 0.2 {
            return legal[random.below(legal.len())];
        }
        let mut tree = Tree::ucb1(1.0, 100, state.clone());
        tree.begin(Budget::plain(8), Stream::test(random.bits()));
        let mut rollout = Rollout::new(Stream::test(random.bits()), 1);
        Solo::default().search(&mut tree, game, &mut rollout, |_| 1, |_| true).unwrap();
        let summary = tree.summary().unwrap();
        summary.moves[summary.best].action
    })
}

/// Positions of random games, with their legal moves.
fn positions<G: Game>(game: &G, count: usize) -> Leaves<G> {
    collect(game, count, |_, _, legal, random| legal[random.below(legal.len())])
}

fn collect<G: Game>(
    game: &G,
    count: usize,
    choose: impl Fn(&G, &G::State, &[Action], &mut Stream) -> Action,
) -> Leaves<G> {
    let mut random = Stream::test(5);
    let (mut leaves, mut legal) = (Leaves::default(), Vec::new());
    while leaves.len() < count {
        let mut state = game.start(&mut random);
        while game.end(&state).is_none() && leaves.len() < count {
            legal.clear();
            game.legal(&state, &mut legal);
            leaves.push(&state, &legal);
            let action = choose(game, &state, &legal, &mut random);
            game.play(&mut state, action);
        }
    }
    leaves
}

/// A network with opinions: the logits' layers ten times as large as in a new one.
fn network<G: Game>(game: &G) -> (NetSpec, Weights) {
    let net = Resnet { blocks: 2, channels: 32, global_pooling: true, ..Resnet::default() };
    let spec = NetSpec::for_game(game, Architecture::Resnet(net));
    let mut weights = Weights::init(&spec, &mut Stream::test(6));
    for name in ["policy.spatial.weight", "policy.flat.weight", "value.out.weight"] {
        if let Some(tensor) = weights.0.get_mut(name) {
            tensor.data.iter_mut().for_each(|x| *x *= 5.0);
        }
    }
    (spec, weights)
}

fn evaluate<G: Game>(game: &G, factory: &InferenceFactory, leaves: &Leaves<G>) -> Evaluations {
    let mut out = Evaluations::default();
    NetEvaluator::new(factory).unwrap().evaluate(game, leaves, &mut out).unwrap();
    out
}

fn best(priors: &[f32]) -> usize {
    (0..priors.len()).max_by(|&a, &b| priors[a].total_cmp(&priors[b])).unwrap()
}

/// Every engine and precision against libtorch's float32.
struct Agreement {
    count: usize,
    self_play: bool,
}

impl GameVisitor for Agreement {
    type Output = ();

    fn visit<G: Game>(self, game: G) {
        let count = self.count;
        let leaves = if self.self_play { self_played(&game, count) } else { positions(&game, count) };
        let (spec, weights) = network(&game);
        let open = |engine, precision| {
            let choice = EngineChoice { engine, precision, device: DeviceName::Cpu };
            InferenceFactory::open(&spec, &weights, &choice).unwrap()
        };
        let wider = NetSpec { policy: PolicyShape { planes: 9, flat: 1 }, ..spec.clone() };
        let unlike = InferenceFactory::open(
            &wider,
            &Weights::init(&wider, &mut Stream::test(7)),
            &EngineChoice { engine: Engine::Libtorch, ..EngineChoice::default() },
        );
        let mut unlike = NetEvaluator::new(&unlike.unwrap()).unwrap();
        let error = unlike.evaluate(&game, &leaves, &mut Evaluations::default()).unwrap_err().to_string();
        assert!(error.contains(G::NAME) && error.contains("planes: 9"), "{error}");
        let reference = evaluate(&game, &open(Engine::Libtorch, Precision::F32), &leaves);
        for index in 0..count {
            let priors = &reference.priors[leaves.span(index)];
            assert!((priors.iter().sum::<f32>() - 1.0).abs() < 1e-5 && priors.iter().all(|&p| p >= 0.0));
            let value = reference.values[index];
            assert!((value.win + value.draw + value.loss - 1.0).abs() < 1e-5);
        }
        let mut setups = vec![(Engine::Libtorch, Precision::Bf16)];
        if available().openvino.is_ok() {
            setups.extend([(Engine::Openvino, Precision::F32), (Engine::Openvino, Precision::Bf16)]);
        }
        for (engine, precision) in setups {
            let other = evaluate(&game, &open(engine, precision), &leaves);
            let (mut same, mut divergence, mut difference) = (0, 0.0f64, 0.0f64);
            for index in 0..count {
                let (a, b) = (&reference.priors[leaves.span(index)], &other.priors[leaves.span(index)]);
                same += usize::from(best(a) == best(b) || a[best(a)] - a[best(b)] < 0.002);
                let kl = |(x, y): (&f32, &f32)| f64::from(*x) * f64::from(x / y).ln();
                divergence += a.iter().zip(b).map(kl).sum::<f64>() / count as f64;
                let utility = |evaluations: &Evaluations| f64::from(evaluations.values[index].utility(0.0));
                difference += (utility(&reference) - utility(&other)).abs() / count as f64;
                if precision == Precision::F32 {
                    let worst = a.iter().zip(b).map(|(x, y)| (x - y).abs()).fold(0.0, f32::max);
                    assert!(worst < 1e-4, "{} {engine}: {worst}", G::NAME);
                }
            }
            let seen =
                format!("{} {engine} {precision}: {same} of {count}, KL {divergence}, value {difference}", G::NAME);
            assert!(same * 100 >= count * 98 && divergence < 0.002 && difference < 0.01, "{seen}");
        }
    }
}

#[test]
fn engines_agree_on_positions_of_every_game() {
    for name in games::NAMES {
        games::dispatch(name, Agreement { count: 400, self_play: false }).unwrap();
    }
}

#[test]
#[ignore = "slow: 10,000 positions of each game through every engine"]
fn engines_agree_on_ten_thousand_self_play_positions_of_every_game() {
    for name in games::NAMES {
        games::dispatch(name, Agreement { count: 10_000, self_play: true }).unwrap();
    }
}

struct WrongGame;

impl GameVisitor for WrongGame {
    type Output = Vec<String>;

    fn visit<G: Game>(self, game: G) -> Vec<String> {
        let (spec, weights) = network(&game);
        let info = CheckpointInfo::untrained(&game, spec);
        let checkpoint = Checkpoint { info, weights };
        assert_eq!(checkpoint.check_game(&game), Ok(()));
        let mut older = checkpoint.clone();
        older.info.encoding_version += 1;
        let mut other = checkpoint;
        other.info.game = "chess:size=9".into();
        [older, other].iter().map(|checkpoint| checkpoint.check_game(&game).unwrap_err().to_string()).collect()
    }
}

#[test]
fn a_checkpoint_of_another_game_or_encoding_names_both_values_and_a_remedy() {
    for name in games::NAMES {
        let [version, game] = &games::dispatch(name, WrongGame).unwrap()[..] else { panic!("two errors") };
        assert!(version.contains("encoding version") && version.contains("train a new one"), "{version}");
        assert!(game.contains("chess:size=9") && game.contains(name) && game.contains("another checkpoint"), "{game}");
    }
}

struct Overflow;

impl GameVisitor for Overflow {
    type Output = ();

    fn visit<G: Game>(self, game: G) {
        let (spec, mut weights) = network(&game);
        for name in ["value.hidden.weight", "value.out.weight"] {
            weights.0.get_mut(name).unwrap().data.iter_mut().for_each(|x| *x *= 1e30);
        }
        let leaves = positions(&game, 5);
        for engine in [Engine::Libtorch, Engine::Auto] {
            let choice = EngineChoice { engine, precision: Precision::F32, device: DeviceName::Cpu };
            let factory = InferenceFactory::open(&spec, &weights, &choice).unwrap();
            let mut evaluator = NetEvaluator::new(&factory).unwrap();
            let error = evaluator.evaluate(&game, &leaves, &mut Evaluations::default()).unwrap_err().to_string();
            assert!(error.contains("output") && error.contains("precision"), "{error}");
        }
    }
}

#[test]
fn outputs_that_are_not_finite_are_errors() {
    games::dispatch("tictactoe", Overflow).unwrap();
}
