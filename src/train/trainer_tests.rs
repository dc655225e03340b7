use std::fs;

use super::*;
use crate::train::params::{AdamwParams, AuxiliaryParams, SgdParams};
use crate::train::schedule::{Cosine, Schedule};
use crate::train::testing::{self, OwnedBatch};
use crate::util::rng::Stream;

fn weights(spec: &NetSpec) -> Weights {
    Weights::init(spec, &mut Stream::test(11))
}

fn fast() -> TrainParams {
    TrainParams { learning_rate: 0.01, warmup_steps: 5, ema_decay: 0.9, ..TrainParams::default() }
}

fn trainer(spec: &NetSpec, params: TrainParams, threads: usize) -> Trainer {
    Trainer::new(spec, &weights(spec), params, Device::Cpu, threads).unwrap()
}

fn sgd() -> TrainParams {
    let optimizer = OptimizerParams::Sgd(SgdParams::default());
    let schedule = Schedule::Cosine(Cosine { steps: 10, end: 0.1 });
    TrainParams { optimizer, schedule, learning_rate: 0.05, weight_decay: 1e-4, ..fast() }
}

fn batches(spec: &NetSpec, count: u64) -> Vec<OwnedBatch> {
    (0..count).map(|i| testing::batch(spec, 11, 100 + i)).collect()
}

fn make(trainer: &mut Trainer, batch: &OwnedBatch) {
    trainer.step(batch.view()).unwrap();
}

#[test]
fn a_tiny_network_learns_sixteen_positions_by_heart() {
    let with_heads = testing::with_auxiliary(&testing::small_resnet());
    for (spec, threads) in
        [(testing::small_resnet(), 1), (testing::small_resnet(), 2), (testing::small_mlp(), 1), (with_heads, 2)]
    {
        let batch = testing::batch(&spec, 16, 5);
        let auxiliary = Some(AuxiliaryParams::default());
        let params =
            TrainParams { learning_rate: 0.02, weight_decay: 0.0, ema_decay: 0.9, auxiliary, ..TrainParams::default() };
        let mut trainer = trainer(&spec, params, threads);
        let first = trainer.step(batch.view()).unwrap().report;
        let mut last = first;
        for _ in 0..150 {
            last = trainer.step(batch.view()).unwrap().report;
        }
        assert!(first.policy_kl > 0.3, "{first:?}");
        assert!(last.policy_kl < 0.01 && last.policy_accuracy > 0.9, "{threads} threads, {spec}: {last:?}");
        assert!(last.value < first.value, "{last:?}");
        if spec.auxiliary.any() {
            assert!(first.ending > 0.65 && last.ending < 0.1, "{first:?} {last:?}");
            assert!(last.reply < first.reply, "{last:?}");
        }
        // The averaged weights, with running statistics, know them too.
        let played = trainer.evaluate(batch.view()).unwrap();
        assert!(played.policy_kl < 0.05, "{threads} threads, {spec}: {played:?}");
    }
}

#[test]
fn an_interrupted_training_gives_the_same_weights_bit_for_bit() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("training.safetensors");
    for params in [fast(), sgd()] {
        let params = TrainParams { auxiliary: Some(AuxiliaryParams::default()), ..params };
        for threads in [1, 2] {
            let spec = testing::with_auxiliary(&testing::small_resnet());
            let batches = batches(&spec, 8);
            let mut whole = trainer(&spec, params.clone(), threads);
            batches.iter().for_each(|batch| make(&mut whole, batch));

            let mut first = trainer(&spec, params.clone(), threads);
            batches[..4].iter().for_each(|batch| make(&mut first, batch));
            first.save_state(&path).unwrap();
            let mut second =
                Trainer::new(&spec, &Weights::init(&spec, &mut Stream::test(99)), params.clone(), Device::Cpu, threads)
                    .unwrap();
            second.load_state(&path).unwrap();
            assert_eq!((second.step_count(), second.learning_rate()), (4, first.learning_rate()));
            assert_eq!(second.play_weights().unwrap(), first.play_weights().unwrap());
            batches[4..].iter().for_each(|batch| make(&mut second, batch));

            assert_eq!(second.step_count(), 8);
            assert_eq!(second.raw_weights().unwrap(), whole.raw_weights().unwrap());
            assert_eq!(second.play_weights().unwrap(), whole.play_weights().unwrap());
            // The saved file is a pure function of the state.
            let (a, b) = (folder.path().join("a"), folder.path().join("b"));
            second.save_state(&a).unwrap();
            whole.save_state(&b).unwrap();
            assert_eq!(fs::read(a).unwrap(), fs::read(b).unwrap());
        }
    }
}

#[test]
fn auxiliary_heads_come_and_go_between_states() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("training.safetensors");
    let (plain, heads) = (testing::small_resnet(), testing::with_auxiliary(&testing::small_resnet()));
    let params = TrainParams { auxiliary: Some(AuxiliaryParams::default()), ..fast() };
    let mut before = trainer(&plain, params.clone(), 1);
    batches(&plain, 4).iter().for_each(|batch| make(&mut before, batch));
    before.save_state(&path).unwrap();

    // New heads begin as the trainer was made, everything else as it was saved.
    let mut with = trainer(&heads, params.clone(), 1);
    with.load_state(&path).unwrap();
    assert_eq!(with.step_count(), 4);
    assert_eq!(with.play_weights().unwrap(), before.play_weights().unwrap());
    let (raw, fresh) = (with.raw_weights().unwrap(), weights(&heads));
    assert_eq!(raw.part(&plain), before.raw_weights().unwrap());
    let added = |name: &&String| crate::net::is_auxiliary(name);
    assert!(raw.0.keys().filter(added).count() > 0);
    assert!(raw.0.keys().filter(added).all(|name| raw.0[name] == fresh.0[name]));

    // They change nothing of what plays but by their loss.
    batches(&heads, 4).iter().for_each(|batch| make(&mut with, batch));
    with.play_weights().unwrap().check(&plain).unwrap();
    with.save_state(&path).unwrap();
    let mut after = trainer(&plain, params, 1);
    after.load_state(&path).unwrap();
    assert_eq!(after.raw_weights().unwrap(), with.raw_weights().unwrap().part(&plain));
    assert_eq!(after.play_weights().unwrap(), with.play_weights().unwrap());
}

#[test]
fn shards_of_a_network_without_batch_statistics_add_up_to_the_whole_batch() {
    let spec = testing::small_mlp();
    let mut results = Vec::new();
    for threads in [1, 2, 3, 16] {
        let mut trainer = trainer(&spec, sgd(), threads);
        for batch in batches(&spec, 3) {
            trainer.step(batch.view()).unwrap();
        }
        results.push(to_vec(&trainer.values).unwrap());
    }
    for other in &results[1..] {
        for (a, b) in results[0].iter().zip(other) {
            assert!((a - b).abs() < 1e-5, "{a} {b}");
        }
    }
}

#[test]
fn running_statistics_are_the_mean_of_the_shards() {
    let spec = testing::small_resnet();
    let batch = testing::batch(&spec, 8, 1);
    let statistics = |trainer: &Trainer| {
        let weights = trainer.raw_weights().unwrap().0;
        weights["stem.norm.running_mean"].data.clone()
    };
    let mut whole = trainer(&spec, fast(), 1);
    whole.step(batch.view()).unwrap();
    let mut halves = trainer(&spec, fast(), 2);
    halves.step(batch.view()).unwrap();
    // The mean of two halves' means is the mean of all.
    for (a, b) in statistics(&whole).iter().zip(statistics(&halves)) {
        assert!((a - b).abs() < 1e-6, "{a} {b}");
    }
    assert!(statistics(&whole).iter().any(|x| x.abs() > 1e-3));
}

#[test]
fn a_long_gradient_is_shortened() {
    let spec = testing::small_mlp();
    let batch = testing::batch(&spec, 8, 1);
    let mut free = trainer(&spec, TrainParams { gradient_clip: 0.0, ..fast() }, 1);
    let norm = free.step(batch.view()).unwrap().gradient_norm;
    let mut bound = trainer(&spec, TrainParams { gradient_clip: norm / 3.0, ..fast() }, 1);
    let stats = bound.step(batch.view()).unwrap();
    assert!(stats.clipped && (stats.gradient_norm - norm).abs() < 1e-6);
    let length = bound.replicas[0].gradient.norm().double_value(&[]);
    assert!((length - norm / 3.0).abs() < 1e-5, "{length}");
    let names: Vec<String> = bound.histograms().unwrap().into_iter().map(|(name, _)| name).collect();
    assert!(names.contains(&"weights/value.out.bias".into()) && names.contains(&"gradients/value.out.bias".into()));
}

/// Finite inputs that no network bears.
fn overflowing(spec: &NetSpec) -> OwnedBatch {
    let mut batch = testing::batch(spec, 8, 2);
    batch.planes.fill(3e38);
    batch
}

#[test]
fn what_is_not_finite_is_named_and_changes_nothing() {
    let spec = testing::small_resnet();
    let good = testing::batch(&spec, 8, 1);
    for threads in [1, 2] {
        let mut trainer = trainer(&spec, fast(), threads);
        trainer.step(good.view()).unwrap();
        let before = (trainer.raw_weights().unwrap(), trainer.play_weights().unwrap());
        let terms = ["batch's `policy`", "batch's `value`", "batch's `planes`", "policy loss"];
        for (part, term) in ["policy", "value", "planes", "overflow"].into_iter().zip(terms) {
            let mut bad = testing::batch(&spec, 8, 2);
            match part {
                "policy" => bad.policy[3] = f32::NAN,
                "value" => bad.value[3] = f32::INFINITY,
                "planes" => bad.planes[3] = f32::NAN,
                _ => bad = overflowing(&spec),
            }
            let message = trainer.step(bad.view()).unwrap_err().to_string();
            assert!(message.contains("step 1") && message.contains(term), "{part}: {message}");
            assert_eq!((trainer.raw_weights().unwrap(), trainer.play_weights().unwrap()), before);
            assert_eq!(trainer.step_count(), 1);
        }
        assert_eq!(trainer.not_finite(good.view()).unwrap(), None);
        assert!(trainer.not_finite(overflowing(&spec).view()).unwrap().unwrap().contains("answers"));
        // The next good step is the one that would have come without the bad ones.
        let mut other = Trainer::new(&spec, &weights(&spec), fast(), Device::Cpu, threads).unwrap();
        other.step(good.view()).unwrap();
        assert_eq!(trainer.step(good.view()).unwrap(), other.step(good.view()).unwrap());
        assert_eq!(trainer.raw_weights().unwrap(), other.raw_weights().unwrap());
    }
}

#[test]
fn a_gradient_that_is_not_finite_is_named() {
    // Finite inputs whose loss is finite but whose gradient overflows: a huge weight behind a normalised layer.
    let spec = testing::small_mlp();
    let mut start = weights(&spec);
    start.0.get_mut("value.out.weight").unwrap().data.fill(3e38);
    start.0.get_mut("layers.0.weight").unwrap().data.fill(0.0);
    start.0.get_mut("layers.0.bias").unwrap().data.fill(1e-38);
    let mut trainer = Trainer::new(&spec, &start, fast(), Device::Cpu, 1).unwrap();
    let mut batch = testing::batch(&spec, 8, 1);
    batch.weight.fill(1e-30);
    batch.weight[0] = 1.0;
    batch.planes.fill(1e30);
    match trainer.step(batch.view()) {
        Err(TrainError::NotFinite { step: 0, term }) => assert_eq!(term, "gradient of layers.0.weight"),
        other => panic!("{other:?}"),
    }
    assert_eq!(trainer.raw_weights().unwrap(), start);
}

#[test]
fn impossible_beginnings_are_refused() {
    let spec = testing::small_mlp();
    let bad = TrainParams { batch_size: 0, ema_decay: 2.0, ..TrainParams::default() };
    let message = Trainer::new(&spec, &weights(&spec), bad, Device::Cpu, 1).unwrap_err().to_string();
    assert!(message.contains("`batch_size` is 0") && message.contains("`ema_decay` is 2"), "{message}");
    assert!(matches!(Trainer::new(&spec, &weights(&spec), fast(), Device::Cpu, 0), Err(TrainError::Threads)));
    let other = testing::small_resnet();
    let message = Trainer::new(&spec, &weights(&other), fast(), Device::Cpu, 1).unwrap_err().to_string();
    assert!(message.contains("missing"), "{message}");
    let mut trainer = trainer(&spec, fast(), 1);
    let batch = testing::batch(&spec, 4, 1);
    let short = BatchView { weight: &batch.weight[1..], ..batch.view() };
    assert!(trainer.step(short).unwrap_err().to_string().contains("`weight` has 3 numbers"));
}

/// A state file, the trainer it came from, and how another trainer takes it.
struct Saved {
    _folder: tempfile::TempDir,
    path: std::path::PathBuf,
    bytes: Vec<u8>,
    spec: NetSpec,
}

impl Saved {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("training.safetensors");
        let spec = testing::small_resnet();
        let mut trainer = trainer(&spec, fast(), 1);
        trainer.step(testing::batch(&spec, 4, 1).view()).unwrap();
        trainer.save_state(&path).unwrap();
        let bytes = fs::read(&path).unwrap();
        Self { _folder: folder, path, bytes, spec }
    }

    /// The message with which a trainer refuses the file as it is now, having changed nothing.
    fn refused(&self, spec: &NetSpec, params: TrainParams) -> String {
        let mut trainer = trainer(spec, params, 1);
        let message = trainer.load_state(&self.path).unwrap_err().to_string();
        assert_eq!((trainer.step_count(), trainer.raw_weights().unwrap()), (0, weights(spec)));
        assert!(message.contains("training.safetensors"), "{message}");
        message
    }

    /// The file with a text in its header replaced by one of the same length.
    fn with(&self, old: &str, new: &str) -> Vec<u8> {
        assert_eq!(old.len(), new.len());
        let place = self.bytes.windows(old.len()).position(|part| part == old.as_bytes()).unwrap();
        let mut bytes = self.bytes.clone();
        bytes[place..place + new.len()].copy_from_slice(new.as_bytes());
        bytes
    }
}

#[test]
fn damaged_and_foreign_states_are_refused_whole() {
    let saved = Saved::new();
    let refuse = |bytes: &[u8]| {
        fs::write(&saved.path, bytes).unwrap();
        saved.refused(&saved.spec, fast())
    };
    for length in [0, 7, 100, saved.bytes.len() / 2, saved.bytes.len() - 1] {
        assert!(refuse(&saved.bytes[..length]).contains("damaged"), "{length}");
    }
    let mut flipped = saved.bytes.clone();
    *flipped.last_mut().unwrap() ^= 1;
    assert!(refuse(&flipped).contains("checksum"));
    assert!(refuse(&saved.with(r#"\"step\":1"#, r#"\"step\":2"#)).contains("checksum"));
    assert!(refuse(&saved.with(r#"\"format\":1"#, r#"\"format\":7"#)).contains("format 7"));
    assert!(refuse(&saved.with("sparring_training_state", "sparring_training_stale")).contains("no training state"));
    assert!(refuse(&saved.with("first_moment/stem.conv.weight", "first_moment/stam.conv.weight")).contains("checksum"));

    fs::write(&saved.path, &saved.bytes).unwrap();
    assert!(saved.refused(&testing::small_mlp(), fast()).contains("another network"));
    let message = saved.refused(&saved.spec, sgd());
    assert!(message.contains("`adamw`") && message.contains("`sgd`"), "{message}");
    fs::remove_file(&saved.path).unwrap();
    assert!(saved.refused(&saved.spec, fast()).contains("there is no file"));
}

#[test]
fn every_tensor_that_does_not_fit_is_named() {
    let saved = Saved::new();
    let names = ["first_moment", "second_moment"];
    let state = State::load(&saved.path, &saved.spec, &Weights::default(), "adamw", &names).unwrap();
    let mut wrong = state.clone();
    let moment = &mut wrong.moments[1].1.0;
    moment.remove("stem.conv.weight").unwrap();
    moment.get_mut("value.out.bias").unwrap().data[0] = f32::NAN;
    let bias = moment.get_mut("value.hidden.bias").unwrap();
    bias.shape = vec![bias.data.len(), 1];
    let extra = moment["value.out.bias"].clone();
    moment.insert("extra".into(), extra);
    wrong.save(&saved.path).unwrap();
    let message = saved.refused(&saved.spec, fast());
    for part in [
        "`second_moment/stem.conv.weight` is missing",
        "`second_moment/value.out.bias` holds NaN",
        "`second_moment/value.hidden.bias` has shape",
        "`second_moment/extra` is unexpected",
    ] {
        assert!(message.contains(part), "{part}: {message}");
    }
    let mut wrong = state.clone();
    wrong.average.0.get_mut("stem.conv.weight").unwrap().data[2] = f32::INFINITY;
    wrong.save(&saved.path).unwrap();
    assert!(saved.refused(&saved.spec, fast()).contains("stem.conv.weight"));
    let mut wrong = state;
    wrong.moments.pop();
    wrong.save(&saved.path).unwrap();
    assert!(saved.refused(&saved.spec, fast()).contains("has the moments"));
}

#[test]
fn a_save_that_fails_keeps_the_older_file_and_names_the_folder() {
    let folder = tempfile::tempdir().unwrap();
    let trainer = trainer(&testing::small_mlp(), fast(), 1);
    let gone = folder.path().join("gone").join("training.safetensors");
    let message = trainer.save_state(&gone).unwrap_err().to_string();
    assert!(message.contains("gone"), "{message}");
}

#[test]
fn bfloat16_learns_too_and_settings_may_change_on_resume() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("training.safetensors");
    let spec = testing::small_resnet();
    let batch = testing::batch(&spec, 16, 5);
    let half = TrainParams { precision: TrainPrecision::Bf16, ..fast() };
    let mut trainer = trainer(&spec, half.clone(), 2);
    assert_eq!(trainer.precision(), TrainPrecision::Bf16);
    let first = trainer.step(batch.view()).unwrap().report.policy_kl;
    (0..150).for_each(|_| make(&mut trainer, &batch));
    let last = trainer.step(batch.view()).unwrap().report.policy_kl;
    assert!(last < first / 3.0, "{first} {last}");
    trainer.save_state(&path).unwrap();
    let adamw = OptimizerParams::Adamw(AdamwParams { beta1: 0.8, ..AdamwParams::default() });
    let changed = TrainParams { optimizer: adamw, learning_rate: 1e-4, precision: TrainPrecision::F32, ..half };
    let mut other = Trainer::new(&spec, &weights(&spec), changed, Device::Cpu, 1).unwrap();
    other.load_state(&path).unwrap();
    assert_eq!((other.step_count(), other.learning_rate()), (152, 1e-4));
    assert!(other.step(batch.view()).unwrap().report.policy_kl < first);
}
